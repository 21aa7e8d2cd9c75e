# SPDX-License-Identifier: MIT
# Turns the SPIR-V file INPUT into OUTPUT, bytes for a C array: each 32-bit word as a little-endian base-128 number, 7 bits a byte, the top
# bit set on all but its last. Most words of SPIR-V are small, so this is less than half as long; host/kernel/spirv.cpp reads it.
file(READ ${INPUT} hex HEX)
string(REGEX MATCHALL "........" words "${hex}")
set(bytes "")
foreach(word IN LISTS words)
    string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1" word ${word})
    math(EXPR rest "${word}")
    while(rest GREATER 127)
        math(EXPR low "(${rest} & 127) | 128")
        math(EXPR rest "${rest} >> 7")
        string(APPEND bytes "${low},")
    endwhile()
    string(APPEND bytes "${rest},\n")
endforeach()
list(LENGTH words count)
file(WRITE ${OUTPUT} "// ${count} words\n${bytes}")
