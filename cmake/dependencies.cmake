# What Terrace stands on. A missing optional part turns its feature off; `terrace doctor` says so.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(URING IMPORTED_TARGET liburing)
find_library(NUMA_LIBRARY numa)

# The library's own dependencies are private: no third-party type stands in a public header. An installed
# static library names them plainly, so that its users need no more than the linker's search path.
function(terrace_link_dependencies target)
  target_link_libraries(${target} PUBLIC Threads::Threads PRIVATE fmt::fmt)
  if(URING_FOUND)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:PkgConfig::URING> $<INSTALL_INTERFACE:uring>)
    target_compile_definitions(${target} PRIVATE TERRACE_HAS_URING=1)
  endif()
  if(NUMA_LIBRARY)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${NUMA_LIBRARY}> $<INSTALL_INTERFACE:numa>)
    target_compile_definitions(${target} PRIVATE TERRACE_HAS_NUMA=1)
  endif()
endfunction()
