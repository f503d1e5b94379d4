# SPDX-License-Identifier: Apache-2.0
# Writes a file's bytes as an array of a C++ source: cmake -DFILE=.. -DNAME=.. -DSOURCE=.. -P embed.cmake
file(READ ${FILE} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x..,){20})" "\\1\n" bytes "${bytes}")
file(WRITE ${SOURCE} "extern \"C\" const unsigned char ${NAME}[];\nalignas(16) const unsigned char ${NAME}[] = {\n${bytes}};\n")
