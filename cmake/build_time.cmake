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

# Behind precompiled headers GCC 12 no longer knows that string_view is the system's, and warns of a loop inside of it.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-stringop-overread)
endif()

# Thirty programs are linked, so a quick linker is used where there is one (`apt install mold`).
find_program(MOLD_LINKER mold)
if(MOLD_LINKER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-fuse-ld")
  add_link_options(-fuse-ld=mold)
endif()
