#!/bin/sh
# SPDX-License-Identifier: MIT
# A case is somebody else's file: whatever is wrong with it becomes a status and a reason, never a
# crash, a pass, or a file outside the folder of outputs. Each one here is a good case with one
# thing changed.
# shellcheck disable=SC2016 # sed expressions
. "$(dirname "$0")/cases.sh"

# As it is it passes, so that each change is what is refused.
own_case half_f32_bshd case
runs 0 --cases case --write-outputs "$logs/outputs"
reports pass '"reason": ""'

# Paths.
for id in ../../escaped "$logs/escaped" a/../b a//b ./a a/ .. '' 'a\\\\..\\\\b' 'a\\nb' \
    'a\\u009b31mb'; do
    refused 'id ' 's|"id": "[^"]*"|"id": "'"$id"'"|'
done
[ -z "$(find "$logs/.." -maxdepth 2 -name escaped 2>"$logs/find")" ] || wrong 'an id led outside'
refused 'id ' 's|"id": "[^"]*"|"id": "'"$(printf '%0600d' 0)"'"|'
refused 'id is missing' '/"id"/d'
for file in ../q.npy /etc/hostname a/../../q.npy; do
    refused 'tensors.q.file' 's|"q.npy"|"'"$file"'"|'
    refused 'expected.k' 's|"expected_k.npy"|"'"$file"'"|'
done
refused 'missing.npy: cannot be read' 's|"q.npy"|"missing.npy"|'
own_case half_f32_bshd case
cp "$own/half_f32_bshd/q.npy" outside.npy
ln -sf ../outside.npy case/q.npy
runs 5 --cases case
reports error 'q.npy: a symbolic link leads out'
own_case half_f32_bshd case
mkdir -p "$logs/linked" "$logs/elsewhere"
ln -s "$logs/elsewhere" "$logs/linked/own"
runs 5 --cases case --write-outputs "$logs/linked"
reports error 'a symbolic link leads out'
[ -z "$(ls -A "$logs/elsewhere")" ] || wrong 'an output went through a symbolic link'

# Documents that are none.
for text in '' '{' '[]' '3' 'null' '{"id": "a", "id": "b"}' '{"id": 5}' '{"id": "a\u0000b"}'; do
    own_case half_f32_bshd case
    printf '%s' "$text" >case/case.json
    runs 5 --cases case
    reports error '"reason": "'
done
own_case half_f32_bshd case
printf '{"id": "\377\376"}' >case/case.json
runs 5 --cases case
reports error 'not valid JSON'
{ printf '{"id": '; printf '[%.0s' $(seq 100000); } >case/case.json
runs 5 --cases case
reports error 'nested more than'
{ printf '{"id": "x", "notes": "' && zeros 5000000 | tr '\0' a && printf '"}'; } >case/case.json
runs 1 --cases case
reports unsupported 'bytes, more than'
rm case/case.json && mkfifo case/case.json
runs 5 --cases case
reports error 'is not a regular file'
rm case/case.json && ln -s /etc/hostname case/case.json
runs 5 --cases case
reports error 'a symbolic link leads out of the cases folder'

# Keys and words that the format has not.
unsupported 'unknown key phase' 's|"pairing"|"phase": 0, "pairing"|'
unsupported 'unknown key angles.phase' 's|"exponent_dim"|"phase": 0, "exponent_dim"|'
unsupported 'unknown key tensors.v' 's|"tensors": {|"tensors": {"v": 1, |'
unsupported 'unknown key tolerance.ulp' 's|"tolerance": {|"tolerance": {"ulp": 1, |'
unsupported "schema is 'rope-case/3'; this version reads 'rope-case/1' and 'rope-case/2'" \
    's|rope-case/1|rope-case/3|'
unsupported "pairing 'quarter'" 's|"half"|"quarter"|'
unsupported "direction 'sideways'" 's|"forward"|"sideways"|'
unsupported "dtype 'f64'" 's|"f32"|"f64"|'
unsupported "layout 'BSHX'" 's|"BSHD"|"BSHX"|'
unsupported "layout 'BSHH'" 's|"BSHD"|"BSHH"|'
unsupported "channels must come last" 's|"BSHD"|"BSDH"|'
unsupported "positions.kind 'alibi'" 's|"kind": "offset"|"kind": "alibi"|'
unsupported "angles.kind 'spline'" 's|"kind": "base"|"kind": "spline"|'
unsupported "scaling type 'spiral'" 's|"scaling": null|"scaling": {"type": "spiral"}|'
unsupported "angles.rows 'diagonal'" 's|"indexed"|"diagonal"|' table_f32
unsupported "sections.mode 'random'" 's|"sequential"|"random"|' sections_sequential
unsupported 'rotary_dim' 's|"rotary_dim": 8|"rotary_dim": 7|'
unsupported 'attention_factor' 's|"attention_factor": 1.0|"attention_factor": -1.0|'
unsupported 'must be int32' 's|"value": 5|"value": 2147483648|'
unsupported 'must be int32' 's|"value": 5|"value": 9000000000000|'
unsupported 'without sections' 's|"sections": {.*}|"sections": null|' sections_sequential

# Values.
refused 'must be an integer' 's|"value": 5|"value": 5.5|'
refused 'must be an integer' 's|"value": 5|"value": 1e300|'
refused 'must be an integer' 's|"value": 5|"value": 18446744073709551615|'
refused 'must be a finite number' 's|"base": 10000.0|"base": "large"|'
refused 'base is NaN' 's|"base": 10000.0|"base": NaN|'
refused 'must be an object' 's|"angles": {.*}|"angles": []|'
refused 'rotary_dim is missing' '/"rotary_dim"/d'
refused 'tolerance is missing' '/"tolerance/d'
refused 'is below 0' 's|"atol": 0.001|"atol": -1|'
refused 'head_dim is 9' 's|"head_dim": 8|"head_dim": 9|'
refused 'planes_rotated' 's|"layout"|"planes_rotated": [0], "layout"|'
refused 'planes_rotated names plane 7' 's|"planes_rotated": \[0, 1\]|"planes_rotated": [0, 7]|' \
    planes_of_packed_qkv
refused 'names a plane twice' 's|"planes_rotated": \[0, 1\]|"planes_rotated": [1, 1]|' \
    planes_of_packed_qkv
refused 'a window of axis 9' 's|"axis": 1|"axis": 9|' windows_in_order
refused 'num_heads that divides them' 's|"num_heads": 4|"num_heads": 5|' flattened_heads
refused 'the positions have 3' 's|"sizes": \[2, 3, 3\]|"sizes": [2, 3, 2, 1]|' sections_sequential
refused 'has no pair' 's|"sizes": \[2, 3, 3\]|"sizes": []|' sections_sequential
refused 'cp_rank' 's|"cp_rank": 1|"cp_rank": 3|' zig_zag_shard

# Sizes that the files do not have.
refused 'tensors.q.shape is' 's|"q.npy", "shape": \[2, 3, 4, 8\]|"q.npy", "shape": [2, 3, 8, 4]|'
refused 'names 4 axes' 's|"q.npy", "shape": \[2, 3, 4, 8\]|"q.npy", "shape": [2, 3, 32]|'
refused 'a dimension above 2^31' \
    's|"q.npy", "shape": \[2, 3, 4, 8\]|"q.npy", "shape": [9223372036854775807, 3, 4, 8]|'
unsupported 'elements' \
    's|"q.npy", "shape": \[2, 3, 4, 8\]|"q.npy", "shape": [1000000, 1000000, 4, 8]|'
refused 'must be an integer' 's|"q.npy", "shape": \[2, 3, 4, 8\]|"q.npy", "shape": [-2, 3, 4, 8]|'
# a_view STATUS TEXT SHAPE VIEW: the tensor Q is this part of its 2 * 2 * 3 * 9 elements.
a_view() {
    "$1" "$2" 's|"shape": \[2, 3, 2, 8\], "view": {[^}]*}|"shape": ['"$3"'], "view": {'"$4"'}|' \
        views_transposed_and_broadcast
}
for outside in '"offset": 2, "strides": [54, 9, 27, 1]' '"offset": -1, "strides": [54, 9, 27, 1]' \
    '"offset": 1, "strides": [55, 9, 27, 1]' \
    '"offset": 1, "strides": [9223372036854775807, 9, 27, 1]' \
    '"offset": 9223372036854775807, "strides": [54, 9, 27, 1]' \
    '"offset": 0, "strides": [-54, 9, 27, 1]'; do
    a_view refused 'view reaches outside' '2, 3, 2, 8' "$outside"
done
a_view refused 'view.strides has 3 numbers' '2, 3, 2, 8' '"offset": 1, "strides": [54, 9, 27]'
a_view unsupported 'channels are 2 elements apart' '2, 3, 2, 8' \
    '"offset": 0, "strides": [54, 9, 4, 2]'
a_view unsupported 'must not be negative' '2, 3, 2, 8' '"offset": 55, "strides": [-54, 9, 27, 1]'
a_view unsupported 'more than 536870912 elements' '1000000, 1000000, 2, 8' \
    '"offset": 0, "strides": [0, 0, 0, 1]'
# What a view repeats is bounded by the file, 64 times over and 2^24: here 108 elements.
a_view unsupported \
    'tensors.q: shape (1, 12, 200000, 8) is 19200000 elements to write; a file of 108 elements allows 16784128, 64 times' \
    '1, 12, 200000, 8' '"offset": 0, "strides": [0, 9, 0, 1]'
a_view unsupported 'has 20000000 tokens; a file of 108 elements allows 16784128' \
    '1, 20000000, 0, 8' '"offset": 0, "strides": [0, 0, 0, 1]'
a_view unsupported 'all tokens are one row' '2, 3, 2, 8' '"offset": 0, "strides": [54, 0, 27, 1]'

q=$own/half_f32_bshd/q.npy
for cut in 0 1 7 9 50 127 128 $(($(wc -c <"$q") - 1)); do
    with_file error 5 'q.npy: ' half_f32_bshd q.npy head -c "$cut" "$q"
done
with_file error 5 'extra bytes' half_f32_bshd q.npy sh -c 'cat "$1" "$1"' sh "$q"
with_file error 5 'has data of type <f2; dtype needs <f4' half_f32_bshd q.npy array 384 '<f2' \
    '(2, 3, 4, 8)'
with_file unsupported 1 "descr '<c8'" half_f32_bshd q.npy array 1536 '<c8' '(2, 3, 4, 8)'
with_file error 5 'cut off' half_f32_bshd q.npy array 16 '<f4' '(1000000000, 1000000000)'
with_file error 5 '2^63 bytes' half_f32_bshd q.npy array 16 '<f4' \
    '(4611686018427387904, 4611686018427387904)'
with_file error 5 'expected_q.npy: has shape' half_f32_bshd expected_q.npy array 16 '<f4' \
    '(1, 1, 2, 2)'
with_file error 5 'expected_q.npy: has data of type <i4' half_f32_bshd expected_q.npy array 768 \
    '<i4' '(2, 3, 4, 8)'
with_file error 5 'they must be alike' table_f32 sin.npy array 72 '<f2' '(6, 6)'
own_case table_f32 case
array 144 '<f8' '(6, 3)' >case/cos.npy
cp case/cos.npy case/sin.npy
runs 1 --cases case
reports unsupported 'tables are f32, f16 or bf16'
with_file error 5 'the tensors have 4' sections_sequential positions.npy array 120 '<i8' '(3, 1, 5)'
with_file unsupported 1 'positions must be <i4 or <i8' sections_sequential positions.npy array 96 \
    '<f4' '(3, 2, 4)'
with_file error 5 'one more than there are sequences' ragged_with_offsets cu_seqlens.npy array 4 \
    '<i4' '(1,)'
with_file error 5 'offsets for 3 sequences' ragged_with_offsets offsets.npy array 8 '<i4' '(2,)'
with_file error 5 '3 offsets for 2 sequences' zig_zag_shard start.npy array 12 '<i4' '(3,)'

# Starts of sequences that contradict themselves, or the tensors: no device is to blame for what
# comes of them.
starts() { refused "$1" 's|\[0, 3, 3, 7\]|'"$2"'|' ragged_in_the_document; }
starts 'positions.cu_seqlens begins with 1; it must begin with 0' '[1, 3, 3, 7]'
starts 'positions.cu_seqlens begins with -3; it must begin with 0' '[-3, 3, 3, 7]'
starts 'positions.cu_seqlens[2] is 2 after 3; it must ascend' '[0, 3, 2, 7]'
starts 'positions.cu_seqlens ends with 6; the tensors have 7 tokens' '[0, 3, 3, 6]'
starts 'positions.cu_seqlens ends with 8; the tensors have 7 tokens' '[0, 3, 3, 8]'
starts 'positions.cu_seqlens ends with 9223372036854775807' '[0, 3, 3, 9223372036854775807]'
shards() { refused "$1" 's|"cu_seqlens.npy"|'"$2"'|' zig_zag_shard_of_ragged_sequences; }
shards 'the length of a sequence must be a multiple of 2 cp_size, 4' '[0, 6, 24]'
shards 'positions.cu_seqlens ends with 12; the tensors have 24 tokens' '[0, 8, 12]'

# Counts that each cost a run over the tensors, or is looked at for each pair.
# many COUNT TEXT: COUNT times TEXT, with commas between.
many() { awk -v count="$1" -v text="$2" \
    'BEGIN { for (i = 0; i < count; ++i) printf "%s%s", i ? ", " : "", text }'; }
# with_many STATUS CODE TEXT KEY COUNT ENTRY NAME: what becomes of a case with COUNT entries of a
# list that stands in a line.
with_many() {
    own_case "$7" case
    many "$5" "$6" >"$logs/entries"
    awk -v key="\"$4\": \\\\[" -v entries="$logs/entries" '
        !done && match($0, key) {
            rest = substr($0, RSTART + RLENGTH)
            sub(/^[^]]*/, "", rest)
            printf "%s", substr($0, 1, RSTART + RLENGTH - 1)
            while ((getline line <entries) > 0) printf "%s", line
            print rest
            done = 1
            next
        }
        { print }' "$own/$7/case.json" >case/case.json
    runs "$2" --cases case
    reports "$1" "$3"
}
window='{"offset": 0, "rotary_dim": 6}'
with_many unsupported 1 'windows has 65 entries, more than 64' windows 65 "$window" windows_in_order
with_many unsupported 1 'windows has 100000 entries, more than 64' windows 100000 "$window" \
    windows_in_order
with_many fail 1 'q[0, 0, 0, 1] is ' windows 64 "$window" windows_in_order
# Each of them writes all elements: the file bounds their sum.
wide='s|"shape": \[1, 4, 2, 14\]|"shape": [1, 4, 20000, 14], "view": {"offset": 0, "strides": [0, 28, 0, 1]}|'
unsupported '(1, 4, 20000, 14), 64 windows one after another, is 71680000 elements to write; a file of 112 elements allows 16784384' \
    "$wide; s|\"windows\": \[.*\]|\"windows\": [$(many 64 "$window")]|" windows_in_order
with_many unsupported 1 'planes_rotated has 257 entries, more than 256' planes_rotated 257 1 \
    planes_of_packed_qkv
with_many unsupported 1 'sections.sizes has 257 entries, more than 256' sizes 257 1 \
    sections_sequential
with_file unsupported 1 'bytes, more than 1048576' scaling_ggml_linear_with_divisors \
    freq_factors.npy array 2000000 '<f4' '(500000,)'
# One sequence, repeated by a view: a call each.
own_case nothing_expected case
sed -i 's|"shape": \[[^]]*\]|"shape": [20000, 1, 1, 4], "view": {"offset": 0, "strides": [0, 4, 4, 1]}|' case/case.json
runs 1 --cases case
reports unsupported '20000 sequences that a view repeats take 20000 calls, more than 16384'

# A sparse file has no data to pay for, and is not read.
own_case half_f32_bshd case
truncate -s 3G case/q.npy
runs 1 --cases case
reports unsupported 'more than 1073741824'

# Ids twice, folders that are none.
own_case half_f32_bshd twice/a
own_case half_f32_bshd twice/b
runs 5 --cases twice
reports pass '"reason": ""'
reports error 'another case has the same id'
expect 5 'is not a folder' "$tool" --cases missing
mkdir -p nothing
expect 5 'has no case.json' "$tool" --cases nothing
finish
