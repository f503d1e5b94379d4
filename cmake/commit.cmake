# SPDX-License-Identifier: Apache-2.0
# Writes the commit that is built to a header, and only where it changed: cmake -DSOURCE=.. -DHEADER=.. -P commit.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=10 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define TERRACE_COMMIT \"@commit@\"\n" @ONLY)
