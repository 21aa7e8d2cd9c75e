#!/bin/sh
# SPDX-License-Identifier: MIT
# Shaders with one line changed: quick checks notice every one of them. Only those run that are
# meant to, since drivers compile each shader anew.
# Arguments: the checkout, a folder to work in, a driver manifest, then what cmake is to be told.
set -eu
source=$1 work=$2 driver=$3
shift 3
if [ -z "$driver" ]; then
    echo 'conformance_mutations: skipped: there is no lavapipe'
    exit 77
fi
export VK_DRIVER_FILES="$driver" VK_ICD_FILENAMES="$driver" VKROPE_DEVICE=llvmpipe
rm -rf "$work/checkout"
mkdir -p "$work/checkout"
for entry in "$source"/*; do
    [ "$entry" = "$source/build" ] || cp -R "$entry" "$work/checkout"
done
cd "$work/checkout"
cmake -B build/mutated -DVKROPE_TESTS=OFF -DVKROPE_BENCH=OFF "$@" >"$work/log" || {
    cat "$work/log"
    exit 1
}
missed=0

# checks FILTER: runs these of the quick checks.
checks() {
    cmake --build build/mutated --target vkrope_conformance >"$work/log" 2>&1 || {
        tail -n 30 "$work/log"
        exit 1
    }
    build/mutated/bin/vkrope-conformance --filter "$1" >"$work/out" 2>"$work/err"
}

# mutated FILTER NAME FILE SED_EXPRESSION: fails one of these checks.
mutated() {
    cp "$source/shaders/$3" "$work/original"
    sed "$4" "$work/original" >"shaders/$3"
    changed=$(diff "$work/original" "shaders/$3" | grep -c '^>') || true
    [ "$changed" = 1 ] || {
        echo "$2: the expression changes $changed lines, not one"
        exit 1
    }
    if checks "$1"; then
        echo "missed    $2"
        missed=$((missed + 1))
    else
        echo "noticed   $2: by $(grep -c '^fail' "$work/out") of $(grep -c . "$work/out") checks $1"
        grep -q '^fail' "$work/out" || {
            cat "$work/err"
            exit 1
        }
    fi
    cp "$work/original" "shaders/$3"
}

checks 'variants/*' || {
    echo 'the shader as it is fails'
    cat "$work/err"
    exit 1
}
mutated 'variants/angles_of_pairs_*f16*' 'angles_of: one pair short' rope.comp 's/for (uint i = 0; i < 8; ++i) {/for (uint i = 0; i < 7; ++i) {/'
mutated 'variants/angles_of_pairs_64_un*' 'axis_of: the end of the second section' rope.comp 's/if (m >= end) axis = 2;/if (m > end) axis = 2;/'
mutated 'axes/interleaved_leftover_*' 'axis_of: the leftover axis' rope.comp 's/if (m >= 3 \* size) axis/if (m > 3 * size) axis/'
mutated 'variants/angles_of_pairs_128_*' 'channels_of: the fourth window' rope.comp 's/inside = pair - (window_dim_0 + window_dim_1 + window_dim_2)/inside = pair - (window_dim_0 + window_dim_1)/'
mutated 'variants/angles_of_pairs_128_*' 'around_windows: the third window' rope.comp 's/at >= start + window_at_2) at += window_dim_2/at >= start + window_at_2) at += window_dim_1/'
mutated 'variants/angles_of_units_*' 'load: the upper half of a word' rope.comp 's/(load_shared(second, at \/ 2) >> (16 \* (at \& 1u)))/load_shared(second, at \/ 2)/'
mutated 'variants/mixed_*' 'load: the second 16 bytes of a unit' rope.comp 's/w.b = load_wide(second, at \/ 4 + 1)/w.b = load_wide(second, at \/ 4)/'
mutated 'variants/mapping_cpu_two_words' 'load: the second word of a unit of 4' rope.comp 's/w.a.y = load_word(second, at \/ 2 + 1)/w.a.y = load_word(second, at \/ 2)/'
mutated 'variants/mixed_*' 'store: the second 16 bytes of a unit' rope.comp 's/store_wide(second, at \/ 4 + 1, w.b)/store_wide(second, at \/ 4 + 1, w.a)/'
mutated 'variants/angles_of_units_*' 'store: the mask of a half word' rope.comp 's/merge_word(second, at \/ 2, 0xffffu << shift,/merge_word(second, at \/ 2, 0xffffffffu,/'
mutated 'variants/four_heads_*' 'rotate_heads: the second of four heads' rope.comp 's/finish(second, step, rows.to + (first + h) \* to_head, A\[h\], B\[h\])/finish(second, step, rows.to + (first + h) * to_head, A[h], B[0])/'
mutated 'variants/pages_f16' 'scatter_token: the row of a page' rope.comp 's/token.line = slot % push.page_size/token.line = slot % (push.page_size - 1)/'
mutated 'variants/one_tensor_*' 'one tensor: the store of a word' rope.comp 's/if (tensors == 1) first_out_word\[at\] = value;/if (tensors == 1) first_out_word[at] = value + 1;/'
mutated 'variants/callers_table_*_of_f16' "angle_apart: the upper half of a word of the caller's" angles.glsl 's/vkrope_widen(element, (bits >> (16 \* (at \& 1u))) \& 0xffffu)/vkrope_widen(element, bits \& 0xffffu)/'
mutated 'variants/angles_of_pairs_64_*' 'from_pairs: units of 8' pairing.glsl 's/B = Unit(vec4(y0.b.x, y1.b.x, y0.b.y, y1.b.y)/B = Unit(vec4(y0.b.x, y1.b.x, y0.b.y, y1.a.y)/'
mutated 'offsets/beyond_4_*_16_bytes' 'load: offsets of 22 bits, 16 bytes at a time' rope.comp 's/^uvec4 load_wide(bool second, uint at) {/uvec4 load_wide(bool second, uint uncut) { uint at = uncut \& 0x3ffffu;/'
mutated 'offsets/beyond_4_*_words' 'store: offsets of 22 bits, a word at a time' rope.comp 's/^void store_word(bool second, uint at, uint value) {/void store_word(bool second, uint uncut, uint value) { uint at = uncut \& 0xfffffu;/'
echo "$missed missed"
[ "$missed" = 0 ]
