# SPDX-License-Identifier: MIT
# Turns the SPIR-V file INPUT into OUTPUT, bytes for a C array, which host/kernel/spirv/spirv.cpp
# reads. Every number is little-endian base-128: 7 bits a byte, the top bit set on all but its last.
# The five words of the header come first, then the number of distinct first words (a first word is
# the opcode and length of an instruction), then these words. Each instruction follows: the index of
# its first word, from 0 on, and its operands, each as its difference d from the same operand of the
# previous instruction with this first word, 2 d or -2 d - 1. OUTPUT has three tenths of the bytes
# of INPUT.
file(READ ${INPUT} hex HEX)
string(REGEX MATCHALL "........" words "${hex}")
list(TRANSFORM words REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1")

set(header "")
set(firsts "")  # in the order of appearance
set(numbers "")
set(left 5)  # words of the header, then of the instruction
set(first 0)
set(operand 0)
foreach(word IN LISTS words)
    if(left EQUAL 0)
        math(EXPR first "${word}")
        math(EXPR left "${first} >> 16")
        if(NOT DEFINED index_of_${first})
            list(LENGTH firsts index_of_${first})
            list(APPEND firsts ${first})
        endif()
        list(APPEND numbers ${index_of_${first}})
        set(operand 0)
    elseif(first EQUAL 0)
        math(EXPR word "${word}")
        list(APPEND header ${word})
    else()
        math(EXPR operand "${operand} + 1")
        set(previous operand_${operand}_of_${first})
        if(NOT DEFINED ${previous})
            set(${previous} 0)
        endif()
        math(EXPR number "2 * (${word} - ${${previous}})")
        if(number LESS 0)
            math(EXPR number "-1 - ${number}")
        endif()
        list(APPEND numbers ${number})
        set(${previous} ${word})
    endif()
    math(EXPR left "${left} - 1")
endforeach()

list(LENGTH firsts first_count)
set(bytes "")
set(in_line 0)
foreach(number IN LISTS header first_count firsts numbers)
    while(number GREATER 127)
        math(EXPR low "(${number} & 127) | 128")
        math(EXPR number "${number} >> 7")
        string(APPEND bytes "${low},")
    endwhile()
    string(APPEND bytes "${number},")
    math(EXPR in_line "(${in_line} + 1) % 24")
    if(in_line EQUAL 0)
        string(APPEND bytes "\n")
    endif()
endforeach()
list(LENGTH words count)
file(WRITE ${OUTPUT} "// ${count} words, ${first_count} first words\n${bytes}\n")
