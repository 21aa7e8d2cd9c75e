# SPDX-License-Identifier: MIT
# Turns the SPIR-V file INPUT into OUTPUT, its words as a comma-separated list for a C array.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1,\n" words "${hex}")
file(WRITE ${OUTPUT} "${words}")
