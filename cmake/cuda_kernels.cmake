# SPDX-License-Identifier: Apache-2.0
# Kernels for NVIDIA GPUs are compiled where the toolkit's compiler is, and lie in the library as plain bytes that the
# driver loads: nothing of CUDA is linked. Code for GPUs of compute capability 9.0, and text that newer and older ones
# compile for themselves.
function(terrace_add_cuda_kernels target)
  if(NOT TERRACE_USE_CUDA)
    return()
  endif()
  find_program(CUDA_COMPILER nvcc HINTS $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda PATH_SUFFIXES bin)
  if(NOT CUDA_COMPILER)
    message(STATUS "GPU kernels: not built, no nvcc")
    return()
  endif()
  message(STATUS "GPU kernels: built, by ${CUDA_COMPILER}")
  set(folder ${CMAKE_SOURCE_DIR}/src/backends/synthetic)
  set(code ${CMAKE_BINARY_DIR}/generated/cuda_kernels)
  add_custom_command(OUTPUT ${code}.cpp
    COMMAND ${CUDA_COMPILER} -std=c++17 -O3 --Werror all-warnings -fatbin -gencode arch=compute_75,code=compute_75
            -gencode arch=compute_90,code=sm_90 -o ${code}.fatbin ${folder}/kernels.cu
    COMMAND ${CMAKE_COMMAND} -DFILE=${code}.fatbin -DNAME=embedded_terrace_cuda_kernels -DSOURCE=${code}.cpp
            -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${folder}/kernels.cu ${folder}/formula.hpp ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Compiling kernels for GPUs" VERBATIM)
  target_sources(${target} PRIVATE ${code}.cpp)
  set_source_files_properties(${code}.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  # Of the target: properties of a source are set anew by whoever sets them last.
  target_compile_definitions(${target} PRIVATE TERRACE_HAS_CUDA_KERNELS=1)
endfunction()
