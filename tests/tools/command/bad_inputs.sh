#!/bin/sh
# SPDX-License-Identifier: MIT
# Every input of `vkrope rotate` that is wrong is refused before a device is looked for, by an
# error that names it, and no file is left behind. There is no device in this test: only the last
# check looks for one.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
no_driver

model_with '"rope_theta": 10000.0' >model.json
q='1,5,4,64'
works "$vkrope" make-input --shape $q --out q.npy
works "$vkrope" make-input --shape 1,5,2,64 --out k.npy
works "$vkrope" make-input --shape $q --dtype f16 --out q16.npy
works "$vkrope" make-input --shape 1,5,2,64 --dtype bf16 --out kb16.npy
rotate() { "$vkrope" rotate --model model.json "$@"; }
rotate_q() { rotate --q "$1" --out-q out.npy; }
# with ARGUMENT...: rotates good tensors, with more arguments.
with() { rotate --q q.npy --k k.npy --out-q out_q.npy --out-k out_k.npy "$@"; }
with_v() { with --v "$1" --out-v out_v.npy; }
# refuse_zeros COMMAND TEXT BYTES TYPE SHAPE [FORTRAN_ORDER]: refuse 5, of a file with this many
# zero bytes behind a header that says the rest.
refuse_zeros() {
    command=$1
    text_of_error=$2
    bytes=$3
    shift 3
    zeros "$bytes" | npy "$@" >bad.npy
    refuse 5 "$text_of_error" "$command" bad.npy
}

# The command line.
refuse 2 '--q and --k are missing' rotate
refuse 2 '--q and --k are missing' rotate --out-q out.npy
refuse 2 '--out-q is missing; --q needs it' rotate --q q.npy
refuse 2 '--out-k is missing; --k needs it' rotate --q q.npy --out-q out.npy --k k.npy
refuse 2 '--k is missing; --out-k needs it' rotate --q q.npy --out-q out.npy --out-k out_k.npy
refuse 2 '--q and --k are missing; give at least one of them' rotate --v k.npy --out-v out_v.npy
refuse 2 '--out-v is missing; --v needs it' with --v k.npy
refuse 2 '--v is missing; --out-v needs it' with --out-v out_v.npy
refuse 2 '--layout' with --layout hdsb
refuse 2 '--dtype' with --dtype f64
refuse 2 '--gain' with --gain double
refuse 2 "--angles: 'table' is not valid; the values are factored_texture|computed|direct_texture|direct_buffer" \
    with --angles table
refuse 2 "--angles: 'cos_sin_cache' is not valid; the values are" with --angles cos_sin_cache
for angles in factored_texture computed; do
    refuse 2 "--float32-angles: --angles is $angles; it must be direct_texture or direct_buffer" \
        with --float32-angles --angles $angles
done
refuse 2 '--pairing' with --pairing odd_even
refuse 2 '--repeat' with --repeat 0
refuse 2 '--repeat' with --repeat 1001
refuse 2 '--first-position' with --first-position 2147483648
refuse 2 '--first-position: 2147483644 leaves room for 4 tokens below 2^31; the tensors have 5' \
    with --first-position 2147483644
refuse 2 'the model has no layer types' with --layer-type full_attention
refuse 2 '--rotary-offset: Q: rotary_dim 64 of the model from channel 2 ends past head_dim 64' \
    with --rotary-offset 2
refuse 2 'ends past head_dim 32' with --head-dim 32
refuse 5 "by --head-dim" with --head-dim 128

# The model.
for field in '"rope_theta": 0' '"rope_theta": -10000.0' '"rope_theta": NaN' \
    '"rope_theta": "large"' '"rope_theta": null, "head_dim": 7' \
    '"head_dim": 7, "rope_theta": 10000.0' \
    '"rope_theta": 10000.0, "rope_scaling": {"rope_type": "spiral"}'; do
    model_with "$field" >bad.json
    refuse 5 "--model: 'bad.json': " "$vkrope" rotate --model bad.json --q q.npy --out-q out.npy
done
refuse 5 "--model: 'missing.json'" "$vkrope" rotate --model missing.json --q q.npy --out-q out.npy

# Files that are not tensors.
refuse 5 "--q: 'missing.npy': cannot be read: No such file" rotate_q missing.npy
refuse 5 "--q: '.': is a directory" rotate_q .
refuse 5 'is not a regular file' rotate_q /dev/null
mkfifo pipe
refuse 5 'is not a regular file' rotate_q pipe
: >empty.npy
refuse 5 "--q: 'empty.npy': not a .npy file" rotate_q empty.npy
refuse 5 "--q: 'model.json': not a .npy file" rotate_q model.json
size=$(wc -c <q.npy)
for cut in 1 7 9 11 50 127 128 129 $((size - 1)); do
    head -c "$cut" q.npy >cut.npy
    refuse 5 "--q: 'cut.npy': " rotate_q cut.npy
done
{ cat q.npy && printf x; } >extra.npy
refuse 5 '1 extra bytes after the data' rotate_q extra.npy
{ printf '\223NUMPY\004\000' && tail -c +9 q.npy; } >version.npy
refuse 5 '.npy format version 4.0' rotate_q version.npy
refuse_zeros rotate_q 'fortran_order is True' 5120 '<f4' '(1, 5, 4, 64)' True
refuse_zeros rotate_q 'big-endian' 5120 '>f4' '(1, 5, 4, 64)'
refuse_zeros rotate_q 'has data of type <f8' 10240 '<f8' '(1, 5, 4, 64)'
refuse_zeros rotate_q 'has data of type <i4' 5120 '<i4' '(1, 5, 4, 64)'
refuse_zeros rotate_q '2^63 bytes or more' 5120 '<f4' '(4294967296, 4294967296)'
npy '<f4' "(0,), 'shape': (0,)" </dev/null >bad.npy
refuse 5 'has the key shape twice' rotate_q bad.npy

# Tensors that do not fit the command line, the model or each other.
refuse 5 "--q: 'q16.npy' has type <f2 (f16), and --dtype says f32" rotate --q q16.npy \
    --out-q out.npy --dtype f32
refuse 5 "--k: 'kb16.npy' has type <u2 (bf16), and --dtype says f16" rotate --k kb16.npy \
    --out-k out.npy --dtype f16
refuse 5 "--k: 'kb16.npy' has type bf16, --q 'q16.npy' has f16" rotate --q q16.npy --out-q out.npy \
    --k kb16.npy --out-k out_k.npy
refuse 5 "has shape (1, 5, 4, 64); layout thd has 3 dimensions" with --layout thd
refuse_zeros rotate_q "has shape (4, 64); layout bshd has 4 dimensions" 1024 '<f4' '(4, 64)'
npy '<f4' '(4294967296, 0, 4, 64)' </dev/null >bad.npy
refuse 5 'it must be below 2^32' rotate_q bad.npy
works "$vkrope" make-input --shape 1,5,4,63 --out narrow.npy
refuse 5 "--q: 'narrow.npy' has shape (1, 5, 4, 63), head_dim 63; the model's head_dim is 64" \
    rotate_q narrow.npy
works "$vkrope" make-input --shape 1,6,2,64 --out longer.npy
refuse 5 "--k: 'longer.npy' has batch 1 and 6 tokens, --q 'q.npy' has batch 1 and 5 tokens" \
    rotate --q q.npy --out-q out.npy --k longer.npy --out-k out_k.npy
works "$vkrope" make-input --shape 2,5,2,64 --out wider.npy
refuse 5 'has batch 2 and 5 tokens' rotate --q q.npy --out-q out.npy --k wider.npy --out-k out_k.npy

refuse 5 "--v: 'missing.npy': cannot be read: No such file" with_v missing.npy
refuse 5 "--v: 'q16.npy' has type f16, --q 'q.npy' has f32; they must be the same" with_v q16.npy
refuse 5 "--v: 'q.npy' has type f32, --k 'kb16.npy' has bf16" \
    rotate --k kb16.npy --out-k out.npy --v q.npy --out-v out_v.npy
refuse 5 "--v: 'kb16.npy' has type <u2 (bf16), and --dtype says f32" with --v kb16.npy \
    --out-v out_v.npy --dtype f32
refuse 5 "--v: 'longer.npy' has batch 1 and 6 tokens, --q 'q.npy' has batch 1 and 5 tokens; they must be the same" \
    with_v longer.npy
refuse 5 "--v: 'wider.npy' has batch 2 and 5 tokens, --q 'q.npy' has batch 1 and 5 tokens" with_v \
    wider.npy
refuse_zeros with_v "--v: 'bad.npy' has shape (5, 2, 1); layout bshd has 4 dimensions" 40 '<f4' \
    '(5, 2, 1)'
refuse_zeros with_v "--v: 'bad.npy' has shape (1, 5, 2, 1), head_dim 1; it must be 2 to 65534" 40 \
    '<f4' '(1, 5, 2, 1)'
refuse_zeros with_v 'head_dim 65535; it must be 2 to 65534' 1310700 '<f4' '(1, 5, 1, 65535)'
npy '<f4' '(1, 5, 0, 64)' </dev/null >none.npy
refuse 5 "--v: 'k.npy' has 2 heads, but there is no Q or K; V is copied along with heads that are rotated" \
    rotate --q none.npy --out-q out.npy --v k.npy --out-v out_v.npy

# Positions.
refuse 5 "--positions: 'missing.npy': cannot be read" with --positions missing.npy
refuse 5 "--positions: 'q.npy' has type <f4; it must be <i4 or <i8" with --positions q.npy
int32 0 1 2 3 4 | npy '<i4' '(5,)' >five.npy
refuse 2 'excludes' with --positions five.npy --first-position 7
int32 0 1 2 3 | npy '<i4' '(4,)' >bad.npy
refuse 5 "--positions: 'bad.npy' has shape (4,); the tensors need (5,) or (1, 5)" with \
    --positions bad.npy
int32 0 1 2 3 4 0 1 2 3 4 | npy '<i4' '(2, 5)' >bad.npy
refuse 5 'has shape (2, 5); the tensors need (5,) or (1, 5)' with --positions bad.npy
int32 0 1 2 3 4 0 1 2 3 4 | npy '<i4' '(2, 1, 5)' >bad.npy
refuse 5 'the model has one position axis' with --positions bad.npy
int64 0 1 2 2147483648 4 | npy '<i8' '(5,)' >bad.npy
refuse 5 'has 2147483648 at index 3; it must fit in 32 bits' with --positions bad.npy
int64 0 -2147483649 2 3 4 | npy '<i8' '(1, 5)' >bad.npy
refuse 5 'has -2147483649 at index 1' with --positions bad.npy

# A tensor that memory cannot hold: its file has a hole of 8 GiB, which takes no space on the disk.
if sh -c 'ulimit -v 2000000 && exec "$@"' sh "$vkrope" --version >/dev/null 2>&1; then
    npy '<f4' '(1, 8388608, 4, 64)' </dev/null >huge.npy
    dd if=/dev/null of=huge.npy bs=1 seek=$(($(wc -c <huge.npy) + 8589934592)) 2>/dev/null
    refuse 6 'out of memory' sh -c 'ulimit -v 2000000; exec "$@"' sh \
        "$vkrope" rotate --model model.json --q huge.npy --out-q out.npy
    rm huge.npy
else # an address sanitizer takes terabytes of addresses
    echo 'the command does not start within 2 GB of addresses: what it says of a memory that is full was left out'
fi

# All of that was found without a device. Good inputs get as far as looking for one.
refuse 3 '' with
refuse 3 '' with --positions five.npy
refuse 3 '' with_v narrow.npy
for angles in factored_texture computed direct_texture direct_buffer; do
    refuse 3 '' with --angles $angles; done
refuse 3 '' with --float32-angles
refuse 3 '' with --float32-angles --angles direct_buffer
refuse 3 '' "$vkrope" devices
finish
