# SPDX-License-Identifier: Apache-2.0
# What Terrace stands on. A missing optional part turns its feature off; `terrace doctor` says so.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(URING IMPORTED_TARGET liburing)
find_library(NUMA_LIBRARY numa)
# Compressed memory as a tier. The static library is for what is loaded into other programs.
find_library(LZ4_LIBRARY lz4)
find_library(LZ4_STATIC_LIBRARY liblz4.a)
find_path(LZ4_INCLUDE_FOLDER lz4.h)
# Integer programs of planners.
find_library(CBC_LIBRARY CbcSolver)
find_path(CBC_INCLUDE_FOLDER Cbc_C_Interface.h PATH_SUFFIXES coin)
# Its own CMake package asks for OpenCL's headers, which processor kernels do not need.
find_library(DNNL_LIBRARY dnnl)
find_path(DNNL_INCLUDE_FOLDER oneapi/dnnl/dnnl.hpp)
find_package(OpenMP)

# Tiers on NVIDIA GPUs need one header of the toolkit: the driver's library is loaded by the program itself, so that one
# program runs with a GPU and without. The benchmark compares with the toolkit's own library.
set(TERRACE_CUDA AUTO CACHE STRING "Tiers on NVIDIA GPUs: AUTO (where the CUDA toolkit is), ON or OFF")
set_property(CACHE TERRACE_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT TERRACE_CUDA STREQUAL "OFF")
  set(cuda_folders $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda)
  find_path(CUDA_INCLUDE_FOLDER cuda.h HINTS ${cuda_folders} PATH_SUFFIXES include)
  find_library(CUDART_LIBRARY cudart_static HINTS ${cuda_folders} PATH_SUFFIXES lib64 lib)
  if(NOT CUDA_INCLUDE_FOLDER AND NOT TERRACE_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "TERRACE_CUDA=${TERRACE_CUDA}, but cuda.h is nowhere: set CUDA_HOME to the toolkit's folder, or use TERRACE_CUDA=OFF")
  endif()
endif()
if(CUDA_INCLUDE_FOLDER AND NOT TERRACE_CUDA STREQUAL "OFF")
  set(TERRACE_USE_CUDA ON)
  message(STATUS "GPU tiers: built, with ${CUDA_INCLUDE_FOLDER}/cuda.h")
else()
  message(STATUS "GPU tiers: not built, no CUDA toolkit or TERRACE_CUDA=OFF")
endif()

# Kernels of neural networks for this computer's processor need oneDNN with OpenMP's threads. Without them all the
# rest is there: plans for other machines, and the execution of kernels that are given as callbacks.
set(TERRACE_ONEDNN AUTO CACHE STRING "Kernels by oneDNN: AUTO, where it is installed, or OFF")
set_property(CACHE TERRACE_ONEDNN PROPERTY STRINGS AUTO OFF)
if(TERRACE_ONEDNN STREQUAL "AUTO" AND DNNL_LIBRARY AND DNNL_INCLUDE_FOLDER AND OpenMP_CXX_FOUND)
  set(TERRACE_CPU_KERNELS ON)
endif()
# Loops are written for vectors whether or not there is a team of threads for them.
if(NOT OpenMP_CXX_FOUND)
  add_compile_options(-fopenmp-simd)
endif()

# What `terrace --version` names.
set(terrace_features)
if(TERRACE_CPU_KERNELS)
  list(APPEND terrace_features oneDNN)
endif()
if(URING_FOUND)
  list(APPEND terrace_features io_uring)
endif()
if(NUMA_LIBRARY)
  list(APPEND terrace_features NUMA)
endif()
if(LZ4_LIBRARY AND LZ4_STATIC_LIBRARY AND LZ4_INCLUDE_FOLDER)
  set(TERRACE_USE_LZ4 ON)
  list(APPEND terrace_features LZ4)
endif()
if(CBC_LIBRARY AND CBC_INCLUDE_FOLDER)
  list(APPEND terrace_features CBC)
endif()
if(TERRACE_USE_CUDA)
  list(APPEND terrace_features CUDA)
endif()
list(JOIN terrace_features ", " terrace_features)
if(NOT terrace_features)
  set(terrace_features "nothing optional")
endif()

# Without oneDNN, leaves out of a list of sources its backend and what trains networks with it. The loops of
# cpu/math need no library.
function(terrace_leave_out_kernels name_of_list)
  set(kept ${${name_of_list}})
  if(NOT TERRACE_CPU_KERNELS)
    list(FILTER kept EXCLUDE REGEX "/src/backends/cpu/[a-z_]+\\.cpp$")
    list(FILTER kept EXCLUDE REGEX "/tests/(agreement|exec)/|/tests/(profile/(measure[a-z_]*|kernel_key)|split/budget)_test|/tests/cli/(advise|calibrate|compare|fashion_mnist|fast_budget|plan|profile|train[a-z_]*)_test")
    list(FILTER kept EXCLUDE REGEX "/examples/(train_network|new_path|two_engines)|/bench/(autotm|budget|engine|prediction|sentinel)|/demo/")
  endif()
  set(${name_of_list} ${kept} PARENT_SCOPE)
endfunction()

# The library's own dependencies are private: no third-party type stands in a public header. An installed
# static library names them plainly, so that its users need no more than the linker's search path.
function(terrace_link_dependencies target)
  target_link_libraries(${target} PUBLIC Threads::Threads PRIVATE fmt::fmt $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>
                                                                 $<BUILD_INTERFACE:ZLIB::ZLIB> $<INSTALL_INTERFACE:z>
                                                                 $<BUILD_INTERFACE:SQLite::SQLite3> $<INSTALL_INTERFACE:sqlite3>)
  if(URING_FOUND)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:PkgConfig::URING> $<INSTALL_INTERFACE:uring>)
    target_compile_definitions(${target} PRIVATE TERRACE_HAS_URING=1)
  endif()
  if(NUMA_LIBRARY)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${NUMA_LIBRARY}> $<INSTALL_INTERFACE:numa>)
    target_compile_definitions(${target} PRIVATE TERRACE_HAS_NUMA=1)
  endif()
  if(TERRACE_USE_LZ4)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${LZ4_LIBRARY}> $<INSTALL_INTERFACE:lz4>)
    target_compile_definitions(${target} PRIVATE TERRACE_HAS_LZ4=1)
  endif()
  if(CBC_LIBRARY AND CBC_INCLUDE_FOLDER)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${CBC_LIBRARY}> $<INSTALL_INTERFACE:CbcSolver>)
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/optim/cbc.cpp PROPERTIES
                                COMPILE_DEFINITIONS TERRACE_HAS_CBC=1 COMPILE_OPTIONS "-isystem;${CBC_INCLUDE_FOLDER}")
  endif()
  if(TERRACE_USE_CUDA)
    target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/base/cuda_driver.cpp ${CMAKE_SOURCE_DIR}/src/tiers/cuda.cpp
                                ${CMAKE_SOURCE_DIR}/src/backends/synthetic/cuda_kernels.cpp PROPERTIES
                                COMPILE_DEFINITIONS TERRACE_HAS_CUDA=1 COMPILE_OPTIONS "-isystem;${CUDA_INCLUDE_FOLDER}")
  endif()
  # The threads of oneDNN are OpenMP's, and our own kernels use the same ones.
  if(OpenMP_CXX_FOUND)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:OpenMP::OpenMP_CXX> $<INSTALL_INTERFACE:gomp>)
  endif()
  if(TERRACE_CPU_KERNELS)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${DNNL_LIBRARY}> $<INSTALL_INTERFACE:dnnl>)
    target_compile_definitions(${target} PRIVATE TERRACE_HAS_CPU_KERNELS=1)
  endif()
endfunction()
