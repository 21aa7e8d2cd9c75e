#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests tensors that commands read from .safetensors files: a tensor gives the same result as in a
# .npy file, also from a file that is larger than the memory, and errors in a file or a name are
# reported. The time limit detects hangs.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions called indirectly
. "$(dirname "$0")/check.sh"
no_driver

model_with '"rope_theta": 10000.0' >model.json # 4 and 2 heads of 64
works "$vkrope" make-input --shape 1,3,4,64 --dtype bf16 --out q.npy
tail -c 1536 q.npy >q.bytes
{ zeros 4 && cat q.bytes; } | tensors a:F32:1:4 b:BF16:1,3,4,64:1536 >t.safetensors
check_q() { "$vkrope" check --model model.json --q "$1" --actual "$2" --json; }
expect 1 '' check_q q.npy q.npy
cp "$logs/out" npy.json
expect 1 '' check_q t.safetensors:b t.safetensors:b
holds 'check reads both alike' cmp npy.json "$logs/out"
refuse 5 '--q:*t.safetensors*2' check_q t.safetensors q.npy
refuse 5 '--q:*t.safetensors:c' check_q t.safetensors:c q.npy
refuse 5 '--q:*t.safetensors:a*(1,)*bshd' check_q t.safetensors:a q.npy
refuse 5 '--actual:*t.safetensors:a*(1,)' check_q q.npy t.safetensors:a
refuse 2 '--out-q:*out.safetensors' "$vkrope" rotate --model model.json --q t.safetensors:b \
    --out-q out.safetensors
refuse 3 '' "$vkrope" rotate --model model.json --q t.safetensors:b --out-q out.npy
ln t.safetensors t.npy
refuse 2 '--out-q:*t.npy*--q' "$vkrope" rotate --model model.json --q t.safetensors:b --out-q t.npy
zeros 256 | tensors w:F32:64:256 >w.safetensors
refuse 5 '--q-norm:*t.safetensors:a*(1,)*(64,)' "$vkrope" rotate --model model.json --q q.npy \
    --out-q out.npy --q-norm t.safetensors:a --norm-eps 1e-6
refuse 3 '' "$vkrope" rotate --model model.json --q q.npy --out-q out.npy --q-norm w.safetensors \
    --norm-eps 1e-6
int32 0 1 2 | tensors p:I32:3:12 >p.safetensors
refuse 3 '' "$vkrope" rotate --model model.json --q q.npy --out-q out.npy --positions p.safetensors
refuse 5 '--positions:*w.safetensors*<f4' "$vkrope" rotate --model model.json --q q.npy \
    --out-q out.npy --positions w.safetensors

zeros 768 | tensors c:U8:1,3,4,64:768 >c.safetensors
zeros 768 | npy '|u1' '(1, 3, 4, 64)' >c.npy
check_codes() {
    "$vkrope" check --model model.json --q q.npy --store q=int8 --actual "$1" --json
}
expect 1 '' check_codes c.npy
cp "$logs/out" npy.json
expect 1 '' check_codes c.safetensors:c
holds 'check reads codes of both alike' cmp npy.json "$logs/out"
refuse 5 '--q:*c.safetensors*|u1' check_q c.safetensors q.npy

# Q after half a TiB of another tensor. The memory that a command needs for a tensor does not grow
# with the file.
half=$((1 << 39))
tensor() { # NAME SHAPE BEGIN END
    printf '"%s":{"dtype":"BF16","shape":[%s],"data_offsets":[%s,%s]}' "$@"
}
# check_in KIB TENSOR: checks with at most KIB of address space.
check_in() {
    timeout $((60 * ${VKROPE_TIME_FACTOR:-1})) sh -c 'ulimit -v "$1"; shift; exec "$@"' sh "$1" \
        "$vkrope" check --model model.json --q "in.safetensors:$2" --actual "in.safetensors:$2" \
        --json
}
header="{$(tensor other $((half / 2)) 0 $half),$(tensor q 1,3,4,64 $half $((half + 1536)))}"
safetensors "$header" </dev/null >in.safetensors
if truncate -s $((8 + ${#header} + half)) in.safetensors 2>/dev/null; then
    cat q.bytes >>in.safetensors
    expect 1 '' check_q q.npy q.npy
    cp "$logs/out" npy.json
    expect 1 '' check_in unlimited q
    holds 'Q is read from behind the hole' cmp npy.json "$logs/out"
    if sh -c 'ulimit -v 400000; exec "$0" --version' "$vkrope" >/dev/null 2>&1; then
        expect 1 '' check_in 400000 q
        holds 'Q is read in 400 MB of addresses' cmp npy.json "$logs/out"
        refuse 6 'memory' check_in 400000 other
    else # an address sanitizer reserves terabytes of addresses
        echo 'the command does not start within 400 MB of addresses: that limit was left out'
    fi
else
    echo 'this file system has no files of half a TiB: one with a hole was left out'
fi
rm in.safetensors

need_lavapipe
works "$vkrope" rotate --model model.json --q q.npy --out-q one.npy --verify
works "$vkrope" rotate --model model.json --q t.safetensors:b --out-q two.npy --verify
holds 'rotate reads both alike' cmp one.npy two.npy
finish
