# SPDX-License-Identifier: Apache-2.0
# libterrace-run.so, which `terrace run` loads into programs. It brings what it needs along, hides all of it, and lives
# in memory of its own: no library of the program is shared but the C library. A sanitizer would need the program's help.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  return()
endif()
file(GLOB preload_sources CONFIGURE_DEPENDS src/pages/preload/*.cpp)
add_library(terrace_run SHARED ${preload_sources}
  src/pages/compressed_store.cpp src/pages/encrypted_store.cpp src/pages/file_store.cpp src/pages/group_room.cpp src/pages/pager.cpp src/pages/pager_evict.cpp src/pages/pager_fault.cpp
  src/pages/pager_layout.cpp src/pages/part_table.cpp src/pages/read_ring.cpp src/pages/service.cpp src/pages/service_evict.cpp
  src/pages/service_fault.cpp src/pages/service_flight.cpp src/pages/service_fork.cpp src/pages/service_sample.cpp
  src/pages/keeper/stretches.cpp src/pages/slots.cpp src/pages/userfault.cpp
  src/pages/victims.cpp
  src/base/bytes.cpp src/base/scratch_file.cpp src/tiers/direct_io.cpp)
set_target_properties(terrace_run PROPERTIES OUTPUT_NAME terrace-run LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                      CXX_VISIBILITY_PRESET hidden)
target_include_directories(terrace_run PRIVATE src include ${CMAKE_BINARY_DIR}/generated)
target_compile_definitions(terrace_run PRIVATE FMT_HEADER_ONLY)
# Thread-local memory that is not in place from the start would be taken from the program's heap.
target_compile_options(terrace_run PRIVATE -ftls-model=initial-exec -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc)
target_precompile_headers(terrace_run PRIVATE ${terrace_common_headers})
terrace_compile_in_groups(terrace_run ${preload_sources})
target_link_options(terrace_run PRIVATE -static-libstdc++ -static-libgcc -Wl,-Bsymbolic
  -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/src/pages/preload/exports.map)
target_link_libraries(terrace_run PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
if(TERRACE_USE_LZ4)
  target_link_libraries(terrace_run PRIVATE ${LZ4_STATIC_LIBRARY})
  target_compile_definitions(terrace_run PRIVATE TERRACE_HAS_LZ4=1)
endif()
set_target_properties(terrace_run PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/pages/preload/exports.map)
if(TARGET terrace_program)
  add_dependencies(terrace_program terrace_run)
endif()
