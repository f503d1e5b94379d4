# SPDX-License-Identifier: Apache-2.0
# libterrace-c.so: the C interface (include/terrace/terrace.h) as a shared library for programs in any language.
#
# It takes what it needs out of the static library, so nothing is compiled twice. src/capi holds replacements for the
# few parts that would pull in oneDNN, OpenMP or CBC, and the linker leaves out libraries that nothing then uses: a
# framework beside it keeps the only team of threads. tests/capi checks that.
file(GLOB capi_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/capi/*.cpp)
add_library(terrace_c SHARED ${capi_sources})
set_target_properties(terrace_c PROPERTIES OUTPUT_NAME terrace-c VERSION ${PROJECT_VERSION} SOVERSION 0
                      BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN"  # a wheel has what it needs beside it
                      CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                      LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/terrace-c.map)
target_include_directories(terrace_c PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(terrace_c PRIVATE terrace fmt::fmt nlohmann_json::nlohmann_json)
target_link_options(terrace_c PRIVATE -Wl,--as-needed -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/terrace-c.map)
target_precompile_headers(terrace_c PRIVATE ${terrace_common_headers} <nlohmann/json.hpp>)
terrace_compile_in_groups(terrace_c)
target_compile_options(terrace_c PRIVATE "$<$<CONFIG:RelWithDebInfo>:-O1;-g0>")
# What src/capi replaces must be a member of the archive by itself, or its neighbours would bring it along.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/backends/processor.cpp ${CMAKE_SOURCE_DIR}/src/optim/cbc.cpp
                            ${CMAKE_SOURCE_DIR}/src/math/team.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
