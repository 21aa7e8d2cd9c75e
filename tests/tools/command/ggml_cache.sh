#!/bin/sh
# SPDX-License-Identifier: MIT
# Caches of ggml's types by `vkrope rotate` on lavapipe, beside caches of ggml's own CPU. The fifth
# argument is the program of ggml_cache.cpp; empty: ggml was not found.
. "$(dirname "$0")/check.sh"
need_lavapipe
ggml_cache=${5:-}
[ -n "$ggml_cache" ] ||
    skip 'ggml is not installed (Debian from 14 on: libggml-dev); its caches were not compared'

model_with '"head_dim": 128, "rope_theta": 10000.0' >llama.json
works "$vkrope" make-input --shape 1,64,8,128 --seed 5 --out k.npy
# raw BYTES FILE: what is behind the header.
raw() { tail -c "$1" "$2"; }
finished() { # FILE TYPE
    works "$vkrope" rotate --model llama.json --k k.npy --out-k "$1" --hadamard 128 --store "$2"
}
finished rows.npy f32
raw 262144 k.npy >in.f32
raw 262144 rows.npy >finished.f32
for format in q8_0:34 q4_0:18 q4_1:20 q5_0:22 q5_1:24; do
    type=${format%:*}
    finished codes.npy "$type"
    raw $((2048 * ${format#*:})) codes.npy >codes
    holds "$type: the caches" "$ggml_cache" "$type" 128 8 64 128 in.f32 finished.f32 codes
done
finish
