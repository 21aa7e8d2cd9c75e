#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that a malformed case, which is a file of somebody else, gives a status and a reason, never
# a crash, a pass, or a file outside the folder of outputs. Each test makes one change to a good
# case.
# shellcheck disable=SC2016 # sed expressions
. "$(dirname "$0")/cases.sh"

# The unchanged case passes, so that the change must be the reason for each refusal.
own_case half_f32_bshd case
runs 0 --cases case --write-outputs "$logs/outputs"
reports pass ''
rm -r "$logs/outputs"
sed -i 's|"half"|"quarter"|' case/case.json
runs 1 --cases case
reports unsupported quarter

# Paths.
for id in ../../escaped "$logs/escaped" a/../b a//b ./a a/ .. '' 'a\\\\..\\\\b' 'a\\nb' \
    'a\\u009b31mb' "$(printf '%0600d' 0)"; do
    refused 'id ' 's|"id": "[^"]*"|"id": "'"$id"'"|'
done
refused id '/"id"/d'
for file in ../q.npy /etc/hostname a/../../q.npy; do
    refused tensors.q.file 's|"q.npy"|"'"$file"'"|'
    refused expected.k 's|"expected_k.npy"|"'"$file"'"|'
done
refused missing.npy 's|"q.npy"|"missing.npy"|'
cp "$own/half_f32_bshd/q.npy" outside.npy
tries error 'q.npy*link'
ln -sf ../../outside.npy $folder/q.npy

# Text that is not a valid document.
for text in '' '{' '[]' '3' 'null' '{"id": "a", "id": "b"}' '{"id": 5}' '{"id": "a\u0000b"}'; do
    tries error ''
    printf '%s' "$text" >$folder/case.json
done
tries error JSON
printf '{"id": "\377\376"}' >$folder/case.json
tries error nested
{ printf '{"id": '; printf '[%.0s' $(seq 100000); } >$folder/case.json
tries unsupported bytes
{ printf '{"id": "x", "notes": "' && zeros 5000000 | tr '\0' a && printf '"}'; } >$folder/case.json
tries error regular
rm $folder/case.json && mkfifo $folder/case.json
tries error link
rm $folder/case.json && ln -s /etc/hostname $folder/case.json

# Keys and words that the format does not define.
unsupported phase 's|"pairing"|"phase": 0, "pairing"|'
unsupported angles.phase 's|"exponent_dim"|"phase": 0, "exponent_dim"|'
unsupported tensors.v 's|"tensors": {|"tensors": {"v": 1, |'
unsupported tolerance.ulp 's|"tolerance": {|"tolerance": {"ulp": 1, |'
unsupported 'schema*rope-case/3' 's|rope-case/1|rope-case/3|'
unsupported "direction*'sideways'" 's|"forward"|"sideways"|'
unsupported "dtype*'f64'" 's|"f32"|"f64"|'
for layout in BSHX BSHH BSDH; do unsupported $layout 's|"BSHD"|"'$layout'"|'; done
unsupported "positions.kind*'alibi'" 's|"kind": "offset"|"kind": "alibi"|'
unsupported "angles.kind*'spline'" 's|"kind": "base"|"kind": "spline"|'
unsupported "scaling*'spiral'" 's|"scaling": null|"scaling": {"type": "spiral"}|'
unsupported "angles.rows*'diagonal'" 's|"indexed"|"diagonal"|' table_f32
unsupported "sections.mode*'random'" 's|"sequential"|"random"|' sections_sequential
unsupported rotary_dim 's|"rotary_dim": 8|"rotary_dim": 7|'
unsupported attention_factor 's|"attention_factor": 1.0|"attention_factor": -1.0|'
unsupported int32 's|"value": 5|"value": 2147483648|'
unsupported int32 's|"value": 5|"value": 9000000000000|'
unsupported sections 's|"sections": {.*}|"sections": null|' sections_sequential

# Values.
for value in 5.5 1e300 18446744073709551615; do
    refused 'value' 's|"value": 5|"value": '$value'|'
done
refused base 's|"base": 10000.0|"base": "large"|'
refused 'base*NaN' 's|"base": 10000.0|"base": NaN|'
refused angles 's|"angles": {.*}|"angles": []|'
refused rotary_dim '/"rotary_dim"/d'
refused tolerance '/"tolerance/d'
refused tolerance.atol 's|"atol": 0.001|"atol": -1|'
refused 'head_dim*9' 's|"head_dim": 8|"head_dim": 9|'
refused planes_rotated 's|"layout"|"planes_rotated": [0], "layout"|'
refused 'planes_rotated*7' 's|"planes_rotated": \[0, 1\]|"planes_rotated": [0, 7]|' \
    planes_of_packed_qkv
refused planes_rotated 's|"planes_rotated": \[0, 1\]|"planes_rotated": [1, 1]|' planes_of_packed_qkv
refused 'axis 9' 's|"axis": 1|"axis": 9|' windows_in_order
refused num_heads 's|"num_heads": 4|"num_heads": 5|' flattened_heads
refused 'sections*4*3' 's|"sizes": \[2, 3, 3\]|"sizes": [2, 3, 2, 1]|' sections_sequential
refused sections.sizes 's|"sizes": \[2, 3, 3\]|"sizes": []|' sections_sequential
refused cp_rank 's|"cp_rank": 1|"cp_rank": 3|' zig_zag_shard

# Sizes that do not match the files.
# shaped STATUS PATTERN SHAPE
shaped() { "$1" "$2" 's|"q.npy", "shape": \[2, 3, 4, 8\]|"q.npy", "shape": ['"$3"']|'; }
shaped refused tensors.q.shape '2, 3, 8, 4'
shaped refused 'layout*4*3' '2, 3, 32'
shaped refused tensors.q '9223372036854775807, 3, 4, 8'
shaped unsupported tensors.q '1000000, 1000000, 4, 8'
shaped refused tensors.q '-2, 3, 4, 8'
# a_view STATUS PATTERN SHAPE VIEW: makes Q this view of its 2 * 2 * 3 * 9 elements.
a_view() {
    "$1" "$2" 's|"shape": \[2, 3, 2, 8\], "view": {[^}]*}|"shape": ['"$3"'], "view": {'"$4"'}|' \
        views_transposed_and_broadcast
}
for outside in '"offset": 2, "strides": [54, 9, 27, 1]' '"offset": -1, "strides": [54, 9, 27, 1]' \
    '"offset": 1, "strides": [55, 9, 27, 1]' \
    '"offset": 1, "strides": [9223372036854775807, 9, 27, 1]' \
    '"offset": 9223372036854775807, "strides": [54, 9, 27, 1]' \
    '"offset": 0, "strides": [-54, 9, 27, 1]'; do
    a_view refused view '2, 3, 2, 8' "$outside"
done
a_view refused view.strides '2, 3, 2, 8' '"offset": 1, "strides": [54, 9, 27]'
a_view unsupported channels '2, 3, 2, 8' '"offset": 0, "strides": [54, 9, 4, 2]'
a_view unsupported negative '2, 3, 2, 8' '"offset": 55, "strides": [-54, 9, 27, 1]'
a_view unsupported 536870912 '1000000, 1000000, 2, 8' '"offset": 0, "strides": [0, 0, 0, 1]'
# A view may repeat at most 64 n + 2^24 elements of a file with n elements; here n is 108.
a_view unsupported '19200000*108*16784128' '1, 12, 200000, 8' '"offset": 0, "strides": [0, 9, 0, 1]'
a_view unsupported '20000000*108*16784128' '1, 20000000, 0, 8' \
    '"offset": 0, "strides": [0, 0, 0, 1]'
a_view unsupported row '2, 3, 2, 8' '"offset": 0, "strides": [54, 0, 27, 1]'

q=$own/half_f32_bshd/q.npy
for cut in 0 9 127 $(($(wc -c <"$q") - 1)); do
    with_file error q.npy half_f32_bshd q.npy head -c "$cut" "$q"
done
with_file error q.npy half_f32_bshd q.npy cat "$q" "$q"
with_file error 'q.npy*<f2*<f4' half_f32_bshd q.npy array 384 '<f2' '(2, 3, 4, 8)'
with_file unsupported '<c8' half_f32_bshd q.npy array 1536 '<c8' '(2, 3, 4, 8)'
with_file error q.npy half_f32_bshd q.npy array 16 '<f4' '(1000000000, 1000000000)'
with_file error q.npy half_f32_bshd q.npy array 16 '<f4' \
    '(4611686018427387904, 4611686018427387904)'
with_file error expected_q.npy half_f32_bshd expected_q.npy array 16 '<f4' '(1, 1, 2, 2)'
with_file error 'expected_q.npy*<i4' half_f32_bshd expected_q.npy array 768 '<i4' '(2, 3, 4, 8)'
with_file error 'cos*(6, 3)*(6, 6)' table_f32 sin.npy array 72 '<f2' '(6, 6)'
with_file unsupported f32 table_f32 cos.npy array 144 '<f8' '(6, 3)'
cp $folder/cos.npy $folder/sin.npy
with_file error positions sections_sequential positions.npy array 120 '<i8' '(3, 1, 5)'
with_file unsupported '<i4' sections_sequential positions.npy array 96 '<f4' '(3, 2, 4)'
with_file error cu_seqlens ragged_with_offsets cu_seqlens.npy array 4 '<i4' '(1,)'
with_file error 'offsets*3' ragged_with_offsets offsets.npy array 8 '<i4' '(2,)'
with_file error '3*2' zig_zag_shard start.npy array 12 '<i4' '(3,)'

# Starts of sequences that contradict each other or the tensors: no device must get the blame for
# the consequences.
starts() { refused "cu_seqlens*$1" 's|\[0, 3, 3, 7\]|'"$2"'|' ragged_in_the_document; }
starts 1 '[1, 3, 3, 7]'
starts -3 '[-3, 3, 3, 7]'
starts '?2?*2*3' '[0, 3, 2, 7]'
starts '6*7' '[0, 3, 3, 6]'
starts '8*7' '[0, 3, 3, 8]'
starts 9223372036854775807 '[0, 3, 3, 9223372036854775807]'
shards() { refused "$1" 's|"cu_seqlens.npy"|'"$2"'|' zig_zag_shard_of_ragged_sequences; }
shards 'cp_size*4' '[0, 6, 24]'
shards 'cu_seqlens*12*24' '[0, 8, 12]'

# Counts of entries that each cost a pass over the tensors or a comparison for each pair.
# many COUNT TEXT: prints TEXT COUNT times, separated by commas.
many() { awk -v count="$1" -v text="$2" \
    'BEGIN { for (i = 0; i < count; ++i) printf "%s%s", i ? ", " : "", text }'; }
# with_many STATUS PATTERN KEY COUNT ENTRY NAME: expects this status of a case in which the list
# KEY, which stands on one line, has COUNT entries.
with_many() {
    tries "$1" "$2" "$6"
    many "$4" "$5" >"$logs/entries"
    cp $folder/case.json "$logs/case.json"
    awk -v key="\"$3\": \\\\[" -v entries="$logs/entries" '
        !done && match($0, key) {
            rest = substr($0, RSTART + RLENGTH)
            sub(/^[^]]*/, "", rest)
            printf "%s", substr($0, 1, RSTART + RLENGTH - 1)
            while ((getline line <entries) > 0) printf "%s", line
            print rest
            done = 1
            next
        }
        { print }' "$logs/case.json" >$folder/case.json
}
window='{"offset": 0, "rotary_dim": 6}'
with_many unsupported 'windows*65*64' windows 65 "$window" windows_in_order
with_many unsupported 'windows*100000*64' windows 100000 "$window" windows_in_order
with_many fail 'q?0, 0, 0, 1?' windows 64 "$window" windows_in_order
# Each window writes all elements, and the size of the file limits the total.
wide='s|"shape": \[1, 4, 2, 14\]|"shape": [1, 4, 20000, 14], "view": {"offset": 0, "strides": [0, 28, 0, 1]}|'
unsupported '64*71680000*112*16784384' \
    "$wide; s|\"windows\": \[.*\]|\"windows\": [$(many 64 "$window")]|" windows_in_order
with_many unsupported 'planes_rotated*257*256' planes_rotated 257 1 planes_of_packed_qkv
with_many unsupported 'sections.sizes*257*256' sizes 257 1 sections_sequential
with_file unsupported 1048576 scaling_ggml_linear_with_divisors freq_factors.npy \
    array 2000000 '<f4' '(500000,)'
# One sequence that a view repeats, which takes one call for each repetition.
tries unsupported '20000*16384' nothing_expected
sed -i 's|"shape": \[[^]]*\]|"shape": [20000, 1, 1, 4], "view": {"offset": 0, "strides": [0, 4, 4, 1]}|' $folder/case.json
# A sparse file has a large size but no data, and must not be read.
tries unsupported 1073741824
truncate -s 3G $folder/q.npy
tried 1
[ -z "$(find "$logs/.." -maxdepth 2 -name escaped 2>"$logs/find")" ] || wrong 'an id led outside'

# Outputs do not follow a symbolic link; duplicate ids; folders that do not exist or have no case.
own_case half_f32_bshd case
mkdir -p "$logs/linked" "$logs/elsewhere"
ln -s "$logs/elsewhere" "$logs/linked/own"
runs 5 --cases case --write-outputs "$logs/linked"
reports error link
[ -z "$(ls -A "$logs/elsewhere")" ] || wrong 'an output went through a symbolic link'
own_case half_f32_bshd twice/a
own_case half_f32_bshd twice/b
runs 5 --cases twice
reports pass ''
reports error id
expect 5 missing "$tool" --cases missing
mkdir -p nothing
expect 5 'nothing*case.json' "$tool" --cases nothing
finish
