#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests `vkrope rotate` with quantised outputs on lavapipe: computed scales and codes in the order
# of the file, and --verify after norms and Hadamard transforms. The cases in tests/data/cases have
# the bytes of each type; random_blocks.sh tests those of SwiftShader.
# shellcheck disable=SC2317 # functions called indirectly
. "$(dirname "$0")/check.sh"
need_lavapipe

model() { model_with '"head_dim": 64, "rope_theta": 10000.0' | sed "s/\"llama\"/\"$1\"/"; }
model llama >llama.json
model qwen3 >qwen3.json
works "$vkrope" make-input --shape 1,1,1,64 --seed 3 --out made.npy
tail -c 256 made.npy | npy '<f4' '(64,)' >w.npy

# repeat COUNT BYTE: prints a byte COUNT times.
repeat() { for _ in $(seq "$1"); do byte "$2"; done; }
# values_of COUNT FILE: writes the last COUNT bytes of a file to `values`.
values_of() { tail -c "$1" "$2" >values; }

# Rows after norms and Hadamard transforms; most of their codes have one possible value.
works "$vkrope" make-input --shape 1,1,4,64 --seed 1 --out q.npy
works "$vkrope" make-input --shape 1,1,2,64 --seed 2 --out k.npy
works "$vkrope" rotate --model qwen3.json --q q.npy --k k.npy --out-q q_out.npy \
    --out-k k_out.npy --q-norm w.npy --k-norm w.npy --first-position 5 --hadamard q=64,k=32 \
    --store q=q5_1,k=int8 --store-scale k=row --out-k-scales k_scales.npy --verify --json
holds 'verified' says '"verified": true'
holds 'all codes' [ "$(number compared | tr '\n' ' ')" = '256 128 ' ]
# shellcheck disable=SC2046 # numbers
holds 'none is wrong' below 0 $(number wrong)
# shellcheck disable=SC2046 # numbers
holds 'most codes have one possible value' below -100 \
    $(number with_one_possible_value | sed 's/^/-/')
holds 'the shape of the scales' grep -qa "'shape': (1, 1, 2)" k_scales.npy

# Scales are in the order of the rows in the file, here [batch, heads, tokens]. The largest numbers
# of two tokens and two heads are 127 times 1, 2, 4 and 8, which are the scales unless a floor is
# above them.
for bits in 0x42fe0000 0x437e0000 0x43fe0000 0x447e0000; do int32 $((bits)) && zeros 124; done |
    npy '<f4' '(1, 2, 2, 32)' >v.npy
works "$vkrope" make-input --shape 1,4,2,64 --seed 4 --out q2.npy
# scaled FIRST SCALE [ARGUMENT...]: stores V with row scales and checks the bits of the first scale.
scaled() {
    first=$1
    how=$2
    shift 2
    works "$vkrope" rotate --model llama.json --layout bhsd --q q2.npy --v v.npy --out-q q_out.npy \
        --out-v v_out.npy --store v=int8 --store-scale "$how" --out-v-scales v_scales.npy \
        --verify "$@"
    int32 $((first)) $((0x40000000)) $((0x40800000)) $((0x41000000)) >expected
    values_of 16 v_scales.npy
    holds "scales in the order of the file: $how $*" cmp -s values expected
}
scaled 0x40000000 row_power_of_two --scale-floor 1.5
scaled 0x3fc00000 row --scale-floor 1.5
scaled 0x3f800000 row
for _ in 1 2 3 4; do byte 127 && repeat 31 0; done >expected
values_of 128 v_out.npy
holds 'each row by its own scale' cmp -s values expected

# A scale for each head, 0.5 and 0.125: 63.5 is a tie, which rounds away from zero.
int32 $((0x3f000000)) $((0x3e000000)) | npy '<f4' '(2,)' >heads.npy
works "$vkrope" rotate --model llama.json --layout bhsd --q q2.npy --v v.npy --out-q q_out.npy \
    --out-v v_out.npy --store v=int8 --store-scale v=heads.npy --verify
for code in 64 127 64 127; do byte $code && repeat 31 0; done >expected
values_of 128 v_out.npy
holds 'a scale of each head' cmp -s values expected
works "$vkrope" check --model llama.json --layout bhsd --q q2.npy --v v.npy --actual q_out.npy \
    --actual-v v_out.npy --store v=int8 --store-scale v=heads.npy

# The transforms and types of llama.cpp, from f16.
works "$vkrope" make-input --shape 2,7,4,64 --dtype f16 --seed 5 --out q.npy
works "$vkrope" make-input --shape 2,7,2,64 --dtype f16 --seed 6 --out k.npy
works "$vkrope" make-input --shape 2,7,2,64 --dtype f16 --seed 7 --out v.npy
works "$vkrope" rotate --model llama.json --q q.npy --k k.npy --v v.npy --out-q q_out.npy \
    --out-k k_out.npy --out-v v_out.npy --store q=f32,k=q8_0,v=q4_0 --hadamard llama.cpp \
    --verify --json
holds 'Q is transformed as K is, and V' [ "$(number hadamard | tr '\n' ' ')" = '64 64 64 ' ]
holds 'the bytes of K in two blocks a row' grep -qa "'shape': (2, 7, 2, 68)" k_out.npy
finish
