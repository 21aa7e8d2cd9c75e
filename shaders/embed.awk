# SPDX-License-Identifier: MIT
# Packs the words of a SPIR-V file, read as decimal numbers, in the format of embed.cmake, which
# runs this program.

# Returns the operand of an opcode that is its result id, in SPIR-V's numbers. A wrong operand only
# costs bytes.
function result_operand(opcode) {
    if (opcode ~ /^(11|19|2[0-9]|3[0-3]|248)$/) return 1
    if (opcode ~ /^([3-6]|1[04567]|56|6[23]|7[12]|22[458]|24[679]|25[0-5])$/) return 0
    return 2 # operand 1 is its type
}

function difference(d) { return d < 0 ? -2 * d - 1 : 2 * d }

function put_byte(byte) {
    printf "%d,", byte
    if (++in_line % 24 == 0) printf "\n"
}

function put(number,   digit) {
    do {
        digit = number % 8
        number = int(number / 8)
        if (number > 0) digit += 8
        if (low < 0) {
            low = digit
        } else {
            put_byte(low + 16 * digit)
            low = -1
        }
    } while (number > 0)
}

{ for (i = 1; i <= NF; i++) word[++count] = $i }

END {
    # Splits instructions into their first words and operands, each operand as both differences.
    for (at = 6; at <= count; at = end) {
        first = word[at]
        end = at + int(first / 65536)
        if (end <= at) exit 1
        if (!(first in uses)) {
            found[++kinds] = first
            result[first] = result_operand(first % 65536)
        }
        uses[first]++
        for (operand = 1; at + operand < end; operand++) {
            value = word[at + operand]
            same[at + operand] = difference(value - latest_of[first, operand])
            near[at + operand] = difference(value - latest)
            if (near[at + operand] < same[at + operand]) votes[first, operand]++
            if (near[at + operand] > same[at + operand]) votes[first, operand]--
            latest_of[first, operand] = value
            if (operand == result[first]) latest = value
        }
    }
    # Sorts the first words, most frequent first.
    for (i = 2; i <= kinds; i++) {
        first = found[i]
        for (j = i - 1; j > 0; j--) {
            if (uses[found[j]] > uses[first]) break
            if (uses[found[j]] == uses[first] && found[j] > first) break
            found[j + 1] = found[j]
        }
        found[j + 1] = first
    }

    printf "// %d words, %d first words\n", count, kinds
    low = -1 # the digit that waits for the other half of its byte
    put(count)
    for (i = 1; i <= 5; i++) put(word[i])
    put(kinds)
    for (i = 1; i <= kinds; i++) {
        first = found[i]
        place[first] = i - 1
        mask = 0
        for (operand = 1; operand <= 30; operand++)
            if (votes[first, operand] > 0) mask += 2 ^ operand
        put(first)
        put(result[first])
        put(mask)
    }
    for (at = 6; at <= count; at = end) {
        first = word[at]
        end = at + int(first / 65536)
        put(place[first])
        for (operand = 1; at + operand < end; operand++)
            put(operand < 31 && votes[first, operand] > 0 ? near[at + operand] : same[at + operand])
    }
    if (low >= 0) put_byte(low)
    printf "\n"
}
