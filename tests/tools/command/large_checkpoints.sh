#!/bin/sh
# SPDX-License-Identifier: MIT
# Checkpoints that are larger than the memory, or made to look so: what `vkrope permute` takes does
# not grow with the file. Nearly all of each file is a hole. The time limit is there for hangs.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
no_driver
hang=$((60 * ${VKROPE_TIME_FACTOR:-1})) # seconds

model_with '"rope_theta": 10000.0' >model.json # 4 and 2 heads of 64
permute() {
    timeout "$hang" "$vkrope" permute --model model.json --pairing-to interleaved \
        --in in.safetensors "$@"
}
l=model.layers.0.self_attn
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
    # Heads of 64 rows of 8 GiB, and what lies behind them.
    with_hole "{$(tensor "$l.k_proj.weight" 128,2147483648 0 $((tib / 2))),$(tensor other \
        $((tib / 4)) $((tib / 2)) $tib)}" $tib
    works permute --dry-run
    holds 'K is found' grep -q '2 x 64 rows' "$logs/out"
    with_hole "{$(tensor "$l.q_proj.weight" 256,2 0 $tib)}" $tib
    refuse 5 "data_offsets*$tib*1024" permute --dry-run
    { int64 100000000 && printf '{'; } >in.safetensors
    truncate -s 1T in.safetensors
    refuse 5 '--in:*0 at 1' permute --dry-run
    { int64 100000001 && printf '{'; } >in.safetensors
    truncate -s 1T in.safetensors
    refuse 5 '100000001*100000000' permute --dry-run
    : >in.safetensors
    truncate -s 1T in.safetensors
    refuse 5 '--in:' permute --dry-run
    refuse 5 '--q:' "$vkrope" check --model model.json --q in.safetensors \
        --actual in.safetensors
else
    echo 'this file system has no files of 1 TiB: those with holes were left out'
fi

# Headers that are as long as they may be, of nothing but an opening, or of tensors.
{ int64 100000000 && printf '{"' && head -c 99999998 /dev/zero | tr '\0' '{'; } >in.safetensors
refuse 5 '--in:*JSON' permute --dry-run
head_of_many() { seq 400000 | sed 's/.*/"&":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},/' |
    tr -d '\n'; }
{ printf '{' && head_of_many && printf '"x":{}}'; } >header
{ int64 "$(wc -c <header)" && cat header; } >in.safetensors
refuse 5 262144 permute --dry-run
rm header in.safetensors

# A file of 1 GiB; half of it is Q: rows of 2 MiB, so that a head is not held either. The
# command may use 400 MB of addresses, most of them code.
gib=$((1 << 30))
if sh -c 'ulimit -v 400000 && exec "$@"' sh "$vkrope" --version >/dev/null 2>&1; then
    with_hole "{$(tensor "$l.q_proj.weight" 256,1048576 0 $((gib / 2))),$(tensor other \
        $((gib / 4)) $((gib / 2)) $gib)}" $gib
    offset=$(($(wc -c <in.safetensors) - gib))
    # Channel 32 of head 3 has another first byte; it becomes channel 1.
    row() { echo $((offset + (3 * 64 + $1) * 2097152)); }
    printf X | dd of=in.safetensors bs=1 seek="$(row 32)" conv=notrunc 2>/dev/null
    works sh -c 'ulimit -v 400000; exec "$@"' sh "$vkrope" permute --model model.json \
        --pairing-to interleaved --in in.safetensors --out out.safetensors
    at_byte() { dd if=out.safetensors bs=1 skip="$1" count=1 2>/dev/null | od -An -c | tr -d ' '; }
    holds 'the row is where it belongs' [ "$(at_byte "$(row 1)")" = X ]
    holds 'and not where it was' [ "$(at_byte "$(row 32)")" = '\0' ]
    holds 'the size stays' [ "$(wc -c <in.safetensors)" = "$(wc -c <out.safetensors)" ]
    rm out.safetensors

    # An interrupt on the way, and a full disk, leave nothing.
    "$vkrope" permute --model model.json --pairing-to interleaved --in in.safetensors \
        --out out.safetensors >"$logs/out" 2>"$logs/err" &
    victim=$!
    waited=0
    until ls .vkrope-* >/dev/null 2>&1 || [ $waited = 500 ]; do
        waited=$((waited + 1))
        sleep 0.01
    done
    kill -TERM $victim
    wait $victim
    holds 'ended by the signal' [ $? = 143 ]
    holds 'nothing is left' [ -z "$(find . -name '.vkrope-*' -o -name out.safetensors)" ]
    refuse 5 '--out:*out.safetensors' sh -c \
        'ulimit -f 100000; exec "$@"' sh "$vkrope" permute --model model.json \
        --pairing-to interleaved --in in.safetensors --out out.safetensors
else # an address sanitizer takes terabytes of addresses
    echo 'the command does not start within 400 MB of addresses: what a file of 1 GiB takes was left out'
fi
finish
