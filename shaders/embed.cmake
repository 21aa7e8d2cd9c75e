# SPDX-License-Identifier: MIT
# Turns the SPIR-V file INPUT into OUTPUT, bytes for a C array, which host/kernel/spirv/spirv.cpp
# reads: every number as little-endian base-128, 7 bits a byte, the top bit set on all but its
# last. The five words of the header as they are; how many different first words the instructions
# have, and these, each of which says an opcode and a length; then for each instruction the number
# of its first word among these, from 0 on, and its other words. Two fifths as long as the words.
file(READ ${INPUT} hex HEX)
string(REGEX MATCHALL "........" words "${hex}")
set(bytes "")

function(append_number number)
    while(number GREATER 127)
        math(EXPR low "(${number} & 127) | 128")
        math(EXPR number "${number} >> 7")
        string(APPEND bytes "${low},")
    endwhile()
    string(APPEND bytes "${number},")
    set(bytes "${bytes}" PARENT_SCOPE)
endfunction()

set(firsts "")  # in the order of appearance
set(numbers "")
set(left 5)  # words of the header, then of the instruction
foreach(word IN LISTS words)
    string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1" word ${word})
    math(EXPR word "${word}")
    if(left GREATER 0)
        list(APPEND numbers ${word})
    else()
        math(EXPR left "${word} >> 16")
        list(FIND firsts ${word} number)
        if(number EQUAL -1)
            list(LENGTH firsts number)
            list(APPEND firsts ${word})
        endif()
        list(APPEND numbers ${number})
    endif()
    math(EXPR left "${left} - 1")
endforeach()

list(SUBLIST numbers 0 5 header)
list(SUBLIST numbers 5 -1 instructions)
list(LENGTH firsts first_count)
foreach(number IN LISTS header first_count)
    append_number(${number})
endforeach()
foreach(number IN LISTS firsts)
    append_number(${number})
endforeach()
set(in_line 0)
foreach(number IN LISTS instructions)
    append_number(${number})
    math(EXPR in_line "(${in_line} + 1) % 24")
    if(in_line EQUAL 0)
        string(APPEND bytes "\n")
    endif()
endforeach()
list(LENGTH words count)
file(WRITE ${OUTPUT} "// ${count} words, ${first_count} first words\n${bytes}\n")
