#!/bin/sh
# SPDX-License-Identifier: MIT
# Cases with quantised outputs, with one thing changed: a code, a scale or a byte that is not
# what the device stores is a failure, unless the case allows it; a contradiction is an error; what
# the library does not do is unsupported.
# shellcheck disable=SC2016 # sed expressions
. "$(dirname "$0")/cases.sh"

# header_bytes FILE: of an array.
header_bytes() { echo $((10 + $(od -An -tu2 -j8 -N2 "$1"))); }
# flip FILE BYTE MASK...: the bits of the masks in bytes of the data, from BYTE on.
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
# flipped STATUS CODE TEXT NAME FILE BYTE MASK...: what becomes of a case with these bits changed.
flipped() {
    status=$1 code=$2 text=$3
    own_case "$4" case
    shift 4
    flip "case/$1" "$2" "$3" ${4:+"$4"}
    runs "$code" --cases case
    reports "$status" "$text"
}
failed() { flipped fail 1 "$@"; }
passes() { flipped pass 0 '"reason": ""' "$@"; }
# same_data A B: two arrays with the same numbers.
same_data() {
    checks=$((checks + 1))
    tail -c +$(($(header_bytes "$1") + 1)) "$1" >"$logs/a"
    tail -c +$(($(header_bytes "$2") + 1)) "$2" >"$logs/b"
    cmp -s "$logs/a" "$logs/b" || wrong "$1 and $2 differ"
}

# As they are they pass, and what the device has stored is written.
for name in store_blocks store_pages_nhpd_made; do
    own_case "$name" case
    runs 0 --cases case --write-outputs "$logs/outputs"
    reports pass '"reason": ""'
    same_data "$logs/outputs/own/$name/actual_v.npy" case/expected_v.npy
done
# V has exact values, and K has the slots of V.
made=$logs/outputs/own/store_pages_nhpd_made
same_data "$made/actual_v_scales.npy" case/expected_v_scales.npy
[ "$(wc -c <"$made/actual_k_scales.npy")" = "$(wc -c <"$made/actual_v_scales.npy")" ] ||
    wrong 'the scales of K are not like those of V'
[ ! -e "$made/actual_q_scales.npy" ] || wrong 'there are scales that nobody has made'

# Codes. Without a tolerance none may differ; with one, as many as it says, by one.
exact=store_exact_without_tolerance
failed 'v[0, 0, 6]: code ' $exact expected_v.npy 6 1
failed ' of 768 codes differ by one, and 0 may (1 such findings' $exact expected_v.npy 6 1
failed 'v[0, 1, 15]: code 9 of the block is ' $exact expected_v.npy 47 2  # its fifth bit
failed 'v[3, 2, 22]: the scale of the block is ' $exact expected_v.npy 506 0 1
passes store_blocks expected_v.npy 4 1
failed 'v[0, 0, 4]: code 0 of the block is ' store_blocks expected_v.npy 4 1 1
failed ': 2 of 640 codes differ by one, and 1 may (2 such' store_blocks expected_v.npy 4 1 1
failed 'v[0, 0, 4]: code 0 of the block is ' store_blocks expected_v.npy 4 4
failed 'v[0, 0, 0]: the scale of the block is ' store_blocks expected_v.npy 0 1
failed ': 1 of 20 blocks have a scale that differs by one unit, and 0 may' store_blocks \
    expected_v.npy 0 1
failed 'v[0, 0, 2]: the minimum of the block is ' store_blocks expected_v.npy 2 0 1
failed 'v[0, 0, 0, 0]: the code is ' store_scales_given_bf16 expected_v.npy 0 16
failed 'k[0, 0, 0, 0]: the code is 0x' store_scales_given_bf16 expected_k.npy 0 16
failed 'q[0, 0, 0, 0]: the code is 0x' store_scales_made expected_q.npy 0 16

# Rows that no slot names: of six slots in pages of four rows the rows 1, 3 and 5 are none.
failed 'k[0, 0, 1, 2]: the byte is 0x' store_pages_nhpd_made expected_k.npy 22 1
failed 'and no slot names its row' store_pages_nphd_made expected_v.npy 60 1

# Scales, in the order of tokens; token 2 has no slot.
failed 'k_scales[0, 0, 1] is ' store_pages_nhpd_made expected_k_scales.npy 7 1
failed 'v_scales[1, 2, 0] is ' store_pages_nphd_made expected_v_scales.npy 62 1
failed 'q_scales[0, 0, 0] is ' store_scales_made expected_q_scales.npy 2 2
failed 'k_scales[0, 2, 0] is nan, expected ' store_pages_nhpd_made expected_k_scales.npy 27 64
failed 'v_scales[0, 1] is ' store_pages_of_v_alone_made expected_v_scales.npy 7 1
own_case store_pages_nhpd_made case
rm case/expected_k_scales.npy
runs 5 --cases case
reports error 'expected_k_scales.npy: cannot be read'
with_file error 5 'expected_k_scales.npy: has shape (2, 3, 2); k_scales have (2, 3, 3)' \
    store_pages_nhpd_made expected_k_scales.npy array 48 '<f4' '(2, 3, 2)'
with_file error 5 'expected_k_scales.npy: has data of type <i4' store_pages_nhpd_made \
    expected_k_scales.npy array 72 '<i4' '(2, 3, 3)'

# Steps.
# hadamard refused|unsupported TEXT BLOCKS: what becomes of a case with these blocks.
hadamard() { "$1" "$2" 's|"hadamard": {"v": 4}|"hadamard": {'"$3"'}|' store_pages_nhpd_made; }
hadamard refused 'hadamard.v is 3: it must be a power of two' '"v": 3'
hadamard refused 'hadamard.v is 0: it must be an integer' '"v": 0'
hadamard refused 'hadamard.v is 4.5: it must be an integer' '"v": 4.5'
hadamard refused 'hadamard.v is 8: it must divide the 20 channels of a head' '"v": 8'
hadamard unsupported 'unknown key hadamard.o' '"o": 4'
own_case $exact case
sed -i 's|"shape": \[4, 3, 64\]|"shape": [1, 1, 1024]|; s|_dim": 64|_dim": 1024|g
        s|"out_dtype"|"hadamard": {"v": 1024}, "out_dtype"|' case/case.json
array 4096 '<f4' '(1, 1, 1024)' >case/v.npy
runs 1 --cases case
reports unsupported \
    'hadamard.v is 1024: the library transforms blocks of at most 512 channels'

# Types and their scales.
given=store_scales_given_bf16
unsupported "out_dtype.q 'q6_K'" 's|"q8_0"|"q6_K"|' store_blocks
refused 'out_dtype.v has blocks of 32 channels; tensors.v has 24 channels a head' \
    's|"v": "e5m2"|"v": "q8_0"|; s|"store_scale": {.*},|"store_scale": null,|' \
    store_pages_of_v_alone_made
refused 'store_scale.k: only e4m3fn, e5m2 and int8 have a scale, and out_dtype.k is q4_0' \
    's|"out_dtype"|"store_scale": {"k": {"given": 2.0}}, "out_dtype"|' store_blocks
refused 'store_scale.k: only e4m3fn, e5m2 and int8 have a scale, and out_dtype.k is not given' \
    's|"k": "e5m2", ||' $given
refused 'store_scale.q has no tensor of that name' \
    's|"store_scale": {|"store_scale": {"q": {"given": 2.0}, |' store_pages_of_v_alone_made
# scale_of_k refused|unsupported TEXT SCALE: what becomes of a case with this scale of K.
scale_of_k() { "$1" "$2" 's|"k": {"given": 0.75}|"k": '"$3"'|' $given; }
for both in '{}' '{"floor": 0.5}' '{"given": 2.0, "made": "row"}'; do
    scale_of_k refused \
        'store_scale.k.given and store_scale.k.made: one of them must be there, not both' "$both"
done
scale_of_k refused 'store_scale.k is 2.0: it must be an object' 2.0
scale_of_k refused 'store_scale.k.given is true: it must be a finite number' '{"given": true}'
scale_of_k refused 'store_scale.k.given is NaN' '{"given": NaN}'
scale_of_k unsupported 'store_scale[0] is 0: a scale must be finite and not 0' '{"given": 0}'
scale_of_k unsupported 'unknown key store_scale.k.floor' '{"given": 2.0, "floor": 0.5}'
scale_of_k unsupported "store_scale.k.made 'tensor'" '{"made": "tensor"}'
scale_of_k refused 'store_scale.k.made is 1: it must be a string' '{"made": 1}'
scale_of_k refused 'store_scale.k.floor is -0.5: it must not be below 0' \
    '{"made": "row", "floor": -0.5}'
scale_of_k refused 'missing.npy: cannot be read' '{"given": "missing.npy"}'
scale_of_k refused 'store_scale.k.given' '{"given": "../scale.npy"}'
with_file error 5 'store_scale_v.npy: has shape (1,); tensors.v needs (2,), a scale for each head' \
    $given store_scale_v.npy array 4 '<f4' '(1,)'
with_file error 5 'store_scale_v.npy: has data of type <i4; scales are <f4' \
    $given store_scale_v.npy array 8 '<i4' '(2,)'
with_file unsupported 1 'a scale must be finite and not 0' \
    $given store_scale_v.npy array 8 '<f4' '(2,)'

# Caches and expected outputs of bytes.
refused 'cache.k.shape (3, 2, 2, 32) in layout NHPD is for pages of 2 rows, 2 heads and 32 bytes; page_size is 2, and tensors.k has 2 heads and 20 bytes of this type' \
    's|"k": {"slots": "slots.npy", "shape": \[3, 2, 2, 20\]|"k": {"slots": "slots.npy", "shape": [3, 2, 2, 32]|' \
    store_pages_nhpd_blocks
refused 'cache.k.slots has 5; the cache has 4 slots' \
    's|"shape": \[3, 2, 2, 20\]|"shape": [2, 2, 2, 20]|' store_pages_nhpd_blocks
with_file error 5 'k_cache.npy: has shape (3, 2, 2, 20) of <f2; the cache of k has (3, 2, 2, 20) of |u1' \
    store_pages_nhpd_blocks k_cache.npy array 480 '<f2' '(3, 2, 2, 20)'
with_file error 5 'expected_k.npy: has data of type <f2; the output of k has |u1' \
    store_pages_nhpd_blocks expected_k.npy array 480 '<f2' '(3, 2, 2, 20)'
with_file error 5 'expected_v.npy: has shape (5, 2, 64); the output of v has (5, 2, 40)' \
    store_blocks expected_v.npy array 640 '|u1' '(5, 2, 64)'

# Tolerances.
# codes refused|unsupported TEXT CODES: what becomes of a case with this tolerance of codes.
codes() { "$1" "$2" 's|"codes": {"off_by_one": 0.0025}|"codes": '"$3"'|' store_blocks; }
codes refused 'tolerance.codes.off_by_one is -0.5: it must be a share, 0 to 1' \
    '{"off_by_one": -0.5}'
codes refused 'tolerance.codes.off_by_one is 2: it must be a share, 0 to 1' '{"off_by_one": 2}'
codes refused 'tolerance.codes.off_by_one is missing' '{}'
codes refused 'tolerance.codes is 0.5: it must be an object' 0.5
codes unsupported 'unknown key tolerance.codes.off_by_two' '{"off_by_one": 0, "off_by_two": 0}'
own_case store_blocks case  # codes need no other tolerance
sed -i 's|"atol": [^,]*, "rtol": [^,]*, ||' case/case.json
runs 0 --cases case
reports pass '"reason": ""'
own_case $exact case
sed -i '/"tolerance/d; s|"v": "q5_0"},|"v": "q5_0"}|' case/case.json
runs 0 --cases case
reports pass '"reason": ""'
finish
