#!/bin/sh
# SPDX-License-Identifier: MIT
# Checkpoints that are larger than the memory, or made to look so: what a command takes for one
# tensor does not grow with the file. Nearly all of each file is a hole. The time limit is there for
# hangs.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
no_driver
hang=$((60 * ${VKROPE_TIME_FACTOR:-1})) # seconds

model_with '"rope_theta": 10000.0' >model.json # 4 and 2 heads of 64
works "$vkrope" make-input --shape 1,2,4,64 --dtype bf16 --out q.npy
tail -c 1024 q.npy >q.bytes
# check_q TENSOR [WORD...]: by a shell that may have limits of its own.
check_q() {
    tensor=$1
    shift
    timeout "$hang" "$@" "$vkrope" check --model model.json --q "$tensor" --actual "$tensor" --json
}
expect 1 '' check_q q.npy
cp "$logs/out" npy.json
# with_hole HEADER BYTES: in.safetensors of so much data, all of it zeros.
with_hole() {
    safetensors "$1" </dev/null >in.safetensors
    truncate -s $((8 + ${#1} + $2)) in.safetensors
}
tensor() { # NAME SHAPE BEGIN END
    printf '"%s":{"dtype":"BF16","shape":[%s],"data_offsets":[%s,%s]}' "$@"
}

tib=$((1 << 40))
if truncate -s 1T hole 2>/dev/null; then
    rm hole
    # Q behind half a TiB of another tensor.
    header="{$(tensor other $((tib / 4)) 0 $((tib / 2))),$(tensor q 1,2,4,64 \
        $((tib / 2)) $((tib / 2 + 1024)))}"
    with_hole "$header" $((tib / 2))
    cat q.bytes >>in.safetensors
    expect 1 '' check_q in.safetensors:q
    holds 'Q is read from behind the hole' cmp npy.json "$logs/out"
    if sh -c 'ulimit -v 400000 && exec "$@"' sh "$vkrope" --version >/dev/null 2>&1; then
        expect 1 '' check_q in.safetensors:q sh -c 'ulimit -v 400000; exec "$@"' sh
        holds 'Q is read in 400 MB of addresses' cmp npy.json "$logs/out"
        refuse 6 'memory' check_q in.safetensors:other sh -c 'ulimit -v 400000; exec "$@"' sh
    else # an address sanitizer takes terabytes of addresses
        echo 'the command does not start within 400 MB of addresses: those limits were left out'
    fi
    with_hole "{$(tensor q 256,2 0 $tib)}" $tib
    refuse 5 "data_offsets*$tib*1024" check_q in.safetensors
    { int64 16777216 && printf '{'; } >in.safetensors
    truncate -s 1T in.safetensors
    refuse 5 '--q:*0 at 1' check_q in.safetensors
    { int64 16777217 && printf '{'; } >in.safetensors
    truncate -s 1T in.safetensors
    refuse 5 '16777217*16777216' check_q in.safetensors
    : >in.safetensors
    truncate -s 1T in.safetensors
    refuse 5 '--q:' check_q in.safetensors
else
    echo 'this file system has no files of 1 TiB: those with holes were left out'
fi

# Headers that are as long as they may be, of nothing but an opening, or of tensors.
{ int64 16777216 && printf '{"' && head -c 16777214 /dev/zero | tr '\0' '{'; } >in.safetensors
refuse 5 '--q:*JSON' check_q in.safetensors
head_of_many() { seq 200000 | sed 's/.*/"&":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},/' |
    tr -d '\n'; }
{ printf '{' && head_of_many && printf '"x":{}}'; } >header
{ int64 "$(wc -c <header)" && cat header; } >in.safetensors
refuse 5 524288 check_q in.safetensors
finish
