# SPDX-License-Identifier: Apache-2.0
# What makes a build quick. Nothing here changes what is built.

# Headers that most sources read and that never change. `target_precompile_headers` reads them once for each target.
set(terrace_common_headers
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <cstdint> <cstring> <deque> <filesystem> <fstream>
  <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <stdexcept> <string>
  <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

# A compiler cache recognises a source by all of its text, which precompiled headers hide from it. A build through a
# cache therefore goes without them, and so it also finds a source that forgot to include what it uses.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

# Sources of one folder are compiled in groups, which read their headers and make their templates once. Builds that
# want each source as it stands go without: those through a cache, and clang-tidy's.
if(CMAKE_DISABLE_PRECOMPILE_HEADERS)
  set(terrace_unity_default OFF)
else()
  set(terrace_unity_default ON)
endif()
option(TERRACE_UNITY "Compile the sources of a folder in groups" ${terrace_unity_default})
find_package(Python3 QUIET COMPONENTS Interpreter)

# Leaves alone the sources that scripts/unity-groups does not name, and those with options of their own. Where a target shares
# sources with an earlier one, whose groups they keep, its other sources follow its name.
function(terrace_compile_in_groups target)
  if(NOT TERRACE_UNITY OR NOT Python3_Interpreter_FOUND)
    return()
  endif()
  set(sources ${ARGN})
  if(NOT sources)
    get_target_property(sources ${target} SOURCES)
  endif()
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/unity-groups ${sources}
                  OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "\n" ";" lines "${lines}")
  foreach(line ${lines})
    string(REGEX MATCH "^(.*) ([^ ]+)$" matched "${line}")
    set_source_files_properties(${CMAKE_MATCH_1} PROPERTIES UNITY_GROUP ${CMAKE_MATCH_2})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # In a group a name may hide one of another source, and every source looks like a header to the compiler.
  target_compile_options(${target} PRIVATE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# GCC looks for memory that it no longer needs each time its heap has doubled, and a source ends before that pays.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("SHELL:--param ggc-min-heapsize=1048576")
endif()

# Behind precompiled headers GCC 12 no longer knows that string_view is the system's, and warns of a loop inside of it.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-stringop-overread)
endif()

# Thirty programs are linked, so a quick linker is used where there is one (`scripts/install-packages build` brings mold).
find_program(MOLD_LINKER mold)
if(MOLD_LINKER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-fuse-ld")
  add_link_options(-fuse-ld=mold)
endif()
