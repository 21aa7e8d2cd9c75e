#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes one change to cases with quantised outputs. A code, a scale or a byte that differs from the
# stored one is a failure unless the case allows it; a contradiction is an error; an operation that
# the library does not support is unsupported.
# shellcheck disable=SC2016 # sed expressions
. "$(dirname "$0")/cases.sh"

# header_bytes FILE: prints the size of the header of an array, in bytes.
header_bytes() { echo $((10 + $(od -An -tu2 -j8 -N2 "$1"))); }
# flip FILE BYTE MASK...: flips the bits of each MASK in consecutive data bytes from BYTE.
flip() {
    file=$1
    at=$(($(header_bytes "$1") + $2))
    shift 2
    for mask; do
        old=$(od -An -tu1 -j"$at" -N1 "$file")
        byte $((old ^ mask)) | dd of="$file" bs=1 seek="$at" conv=notrunc 2>"$logs/dd"
        at=$((at + 1))
    done
}
# flipped STATUS PATTERN NAME FILE BYTE MASK...: expects this status with these bits flipped.
flipped() {
    tries "$1" "$2" "$3"
    flip "$folder/$4" "$5" "$6" ${7:+"$7"}
}
failed() { flipped fail "$@"; }
passes() { flipped pass '' "$@"; }
# same_data A B: compares the data of two arrays.
same_data() {
    checks=$((checks + 1))
    tail -c +$(($(header_bytes "$1") + 1)) "$1" >"$logs/a"
    tail -c +$(($(header_bytes "$2") + 1)) "$2" >"$logs/b"
    cmp -s "$logs/a" "$logs/b" || wrong "$1 and $2 differ"
}

# Unchanged, the cases pass, and --write-outputs writes what the device stored.
for name in store_blocks store_pages_nhpd_made; do own_case $name case/$name; done
runs 0 --cases case --write-outputs "$logs/outputs"
for name in store_blocks store_pages_nhpd_made; do
    same_data "$logs/outputs/own/$name/actual_v.npy" case/$name/expected_v.npy
done
# V has exact values, and K uses the slots of V.
made=$logs/outputs/own/store_pages_nhpd_made
same_data "$made/actual_v_scales.npy" case/store_pages_nhpd_made/expected_v_scales.npy
[ "$(wc -c <"$made/actual_k_scales.npy")" = "$(wc -c <"$made/actual_v_scales.npy")" ] ||
    wrong 'the scales of K are not like those of V'
[ ! -e "$made/actual_q_scales.npy" ] || wrong 'there are scales that nobody has made'
rm -r "$logs/outputs" case

# Codes. Without a tolerance no code may differ; with a tolerance, some may differ by one step.
exact=store_exact_without_tolerance
failed 'v?0, 0, 6?*code*768*0' $exact expected_v.npy 6 1
failed 'v?0, 1, 15?*code 9' $exact expected_v.npy 47 2 # the fifth bit of code 9
failed 'v?3, 2, 22?*scale' $exact expected_v.npy 506 0 1
passes store_blocks expected_v.npy 4 1
failed 'v?0, 0, 4?*code 0*2 of 640*1' store_blocks expected_v.npy 4 1 1
failed 'v?0, 0, 4?*code 0' store_blocks expected_v.npy 4 4
failed 'v?0, 0, 0?*scale*1 of 20*0' store_blocks expected_v.npy 0 1
failed 'v?0, 0, 2?*minimum' store_blocks expected_v.npy 2 0 1
failed 'v?0, 0, 0, 0?*code' store_scales_given_bf16 expected_v.npy 0 16
failed 'k?0, 0, 0, 0?*code' store_scales_given_bf16 expected_k.npy 0 16
failed 'q?0, 0, 0, 0?*code' store_scales_made expected_q.npy 0 16

# Rows without a slot: of the six slots in pages of four rows, rows 1, 3 and 5 have none.
failed 'k?0, 0, 1, 2?*byte' store_pages_nhpd_made expected_k.npy 22 1
failed 'no slot' store_pages_nphd_made expected_v.npy 60 1

# Scales, in the order of tokens; token 2 has no slot.
failed 'k_scales?0, 0, 1?' store_pages_nhpd_made expected_k_scales.npy 7 1
failed 'v_scales?1, 2, 0?' store_pages_nphd_made expected_v_scales.npy 62 1
failed 'q_scales?0, 0, 0?' store_scales_made expected_q_scales.npy 2 2
failed 'k_scales?0, 2, 0?*nan' store_pages_nhpd_made expected_k_scales.npy 27 64
failed 'v_scales?0, 1?' store_pages_of_v_alone_made expected_v_scales.npy 7 1
tries error expected_k_scales.npy store_pages_nhpd_made
rm $folder/expected_k_scales.npy
with_file error 'expected_k_scales.npy*(2, 3, 2)*(2, 3, 3)' store_pages_nhpd_made \
    expected_k_scales.npy array 48 '<f4' '(2, 3, 2)'
with_file error 'expected_k_scales.npy*<i4' store_pages_nhpd_made expected_k_scales.npy \
    array 72 '<i4' '(2, 3, 3)'

# Steps.
# hadamard refused|unsupported PATTERN BLOCKS: expects this status of a case with these blocks.
hadamard() { "$1" "$2" 's|"hadamard": {"v": 4}|"hadamard": {'"$3"'}|' store_pages_nhpd_made; }
for block in 3 0 4.5; do hadamard refused "hadamard.v*$block" '"v": '$block; done
hadamard refused 'hadamard.v*8*20' '"v": 8'
hadamard unsupported hadamard.o '"o": 4'
tries unsupported 'hadamard.v*1024*512' $exact
sed -i 's|"shape": \[4, 3, 64\]|"shape": [1, 1, 1024]|; s|_dim": 64|_dim": 1024|g
        s|"out_dtype"|"hadamard": {"v": 1024}, "out_dtype"|' $folder/case.json
array 4096 '<f4' '(1, 1, 1024)' >$folder/v.npy

# Types and their scales.
given=store_scales_given_bf16
unsupported "out_dtype.q*'q6_K'" 's|"q8_0"|"q6_K"|' store_blocks
refused 'out_dtype.v*32*24' \
    's|"v": "e5m2"|"v": "q8_0"|; s|"store_scale": {.*},|"store_scale": null,|' \
    store_pages_of_v_alone_made
refused 'store_scale.k*q4_0' \
    's|"out_dtype"|"store_scale": {"k": {"given": 2.0}}, "out_dtype"|' store_blocks
refused 'store_scale.k*out_dtype.k' 's|"k": "e5m2", ||' $given
refused store_scale.q 's|"store_scale": {|"store_scale": {"q": {"given": 2.0}, |' \
    store_pages_of_v_alone_made
# scale_of_k refused|unsupported PATTERN SCALE: expects this status of a case with this scale of K.
scale_of_k() { "$1" "$2" 's|"k": {"given": 0.75}|"k": '"$3"'|' $given; }
for both in '{}' '{"floor": 0.5}' '{"given": 2.0, "made": "row"}'; do
    scale_of_k refused 'store_scale.k.given*store_scale.k.made' "$both"
done
scale_of_k refused 'store_scale.k*2.0' 2.0
scale_of_k refused 'store_scale.k.given*true' '{"given": true}'
scale_of_k refused 'store_scale.k.given*NaN' '{"given": NaN}'
scale_of_k unsupported 'store_scale*0' '{"given": 0}'
scale_of_k unsupported store_scale.k.floor '{"given": 2.0, "floor": 0.5}'
scale_of_k unsupported "store_scale.k.made*'tensor'" '{"made": "tensor"}'
scale_of_k refused 'store_scale.k.made*1' '{"made": 1}'
scale_of_k refused 'store_scale.k.floor*-0.5' '{"made": "row", "floor": -0.5}'
scale_of_k refused missing.npy '{"given": "missing.npy"}'
scale_of_k refused store_scale.k.given '{"given": "../scale.npy"}'
with_file error 'store_scale_v.npy*(1,)*(2,)' $given store_scale_v.npy array 4 '<f4' '(1,)'
with_file error 'store_scale_v.npy*<i4' $given store_scale_v.npy array 8 '<i4' '(2,)'
with_file unsupported 0 $given store_scale_v.npy array 8 '<f4' '(2,)'

# Caches and expected outputs of bytes.
refused 'cache.k.shape*(3, 2, 2, 32)*NHPD*20' \
    's|"k": {"slots": "slots.npy", "shape": \[3, 2, 2, 20\]|"k": {"slots": "slots.npy", "shape": [3, 2, 2, 32]|' \
    store_pages_nhpd_blocks
refused 'cache.k.slots*5*4' 's|"shape": \[3, 2, 2, 20\]|"shape": [2, 2, 2, 20]|' \
    store_pages_nhpd_blocks
with_file error 'k_cache.npy*<f2*|u1' store_pages_nhpd_blocks k_cache.npy \
    array 480 '<f2' '(3, 2, 2, 20)'
with_file error 'expected_k.npy*<f2*|u1' store_pages_nhpd_blocks expected_k.npy \
    array 480 '<f2' '(3, 2, 2, 20)'
with_file error 'expected_v.npy*(5, 2, 64)*(5, 2, 40)' store_blocks expected_v.npy \
    array 640 '|u1' '(5, 2, 64)'

# Tolerances.
# codes refused|unsupported PATTERN CODES: expects this status of a case with this tolerance.
codes() {
    "$1" "tolerance.codes$2" 's|"codes": {"off_by_one": 0.0025}|"codes": '"$3"'|' store_blocks
}
codes refused '.off_by_one*-0.5' '{"off_by_one": -0.5}'
codes refused '.off_by_one*2' '{"off_by_one": 2}'
codes refused .off_by_one '{}'
codes refused '*0.5' 0.5
codes unsupported .off_by_two '{"off_by_one": 0, "off_by_two": 0}'
changed pass '' 's|"atol": [^,]*, "rtol": [^,]*, ||' store_blocks # codes need neither atol nor rtol
changed pass '' '/"tolerance/d; s|"v": "q5_0"},|"v": "q5_0"}|' $exact
tried 1
finish
