# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: the library, its headers, the program, a CMake package and a pkg-config file. Both find the
# rest of the installation from where they lie, so a prefix may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Whoever links the library compiles its headers, which are C++20.
target_compile_features(terrace PUBLIC cxx_std_20)

install(TARGETS terrace EXPORT TerraceTargets)
install(DIRECTORY include/terrace TYPE INCLUDE)
install(FILES ${CMAKE_BINARY_DIR}/generated/terrace/version.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/terrace)
if(TARGET terrace_program)
  install(TARGETS terrace_program)
endif()
if(TARGET terrace_run)
  install(TARGETS terrace_run)
endif()

# The C interface, and the Python package over it where Debian's Python looks below a prefix.
install(TARGETS terrace_c LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  install(DIRECTORY python/terrace DESTINATION lib/python${Python3_VERSION_MAJOR}.${Python3_VERSION_MINOR}/dist-packages
          FILES_MATCHING PATTERN "*.py")
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Terrace)
install(EXPORT TerraceTargets NAMESPACE Terrace:: DESTINATION ${package_folder})
configure_package_config_file(cmake/TerraceConfig.cmake.in generated/TerraceConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(generated/TerraceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/TerraceConfig.cmake
              ${CMAKE_BINARY_DIR}/generated/TerraceConfigVersion.cmake
        DESTINATION ${package_folder})

# What a program must link beside a static library, it need not beside a shared one.
set(terrace_pc_libs "-lfmt -lz -lsqlite3")
if(URING_FOUND)
  string(APPEND terrace_pc_libs " -luring")
endif()
if(NUMA_LIBRARY)
  string(APPEND terrace_pc_libs " -lnuma")
endif()
if(TERRACE_USE_LZ4)
  string(APPEND terrace_pc_libs " -llz4")
endif()
if(CBC_LIBRARY AND CBC_INCLUDE_FOLDER)
  string(APPEND terrace_pc_libs " -lCbcSolver")
endif()
if(TERRACE_CPU_KERNELS)
  string(APPEND terrace_pc_libs " -ldnnl")
endif()
if(OpenMP_CXX_FOUND)
  string(APPEND terrace_pc_libs " -lgomp")
endif()
string(APPEND terrace_pc_libs " -pthread")
get_target_property(terrace_type terrace TYPE)
if(terrace_type STREQUAL "STATIC_LIBRARY")
  set(terrace_pc_public_libs ${terrace_pc_libs})
else()
  set(terrace_pc_private_libs ${terrace_pc_libs})
endif()
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH terrace_pc_prefix /prefix/${pkgconfig_folder} /prefix)
configure_file(cmake/terrace.pc.in generated/terrace.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/terrace.pc DESTINATION ${pkgconfig_folder})
