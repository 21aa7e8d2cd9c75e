#!/bin/sh
# SPDX-License-Identifier: MIT
# Every input of `vkrope rotate` that is wrong is refused before a device is looked for, by an
# error that names it, and no file is left behind. There is no device in this test: only the last
# checks look for one.
# shellcheck disable=SC2317 # functions that others call
. "$(dirname "$0")/check.sh"
no_driver

model_with '"rope_theta": 10000.0' >model.json
q='1,5,4,64'
works "$vkrope" make-input --shape $q --out q.npy
works "$vkrope" make-input --shape 1,5,2,64 --out k.npy
works "$vkrope" make-input --shape $q --dtype f16 --out q16.npy
works "$vkrope" make-input --shape 1,5,2,64 --dtype bf16 --out kb16.npy
rotate() { "$vkrope" rotate --model model.json "$@"; }
rotate_q() { rotate --out-q out.npy --q "$@"; }
# with ARGUMENT...: rotates good tensors, with more arguments.
with() { rotate --q q.npy --k k.npy --out-q out_q.npy --out-k out_k.npy "$@"; }
with_v() { with --v "$1" --out-v out_v.npy; }
# refuse_zeros COMMAND PATTERN BYTES TYPE SHAPE: refuse 5, of a file with this many zero bytes
# behind a header that says the rest.
refuse_zeros() {
    zeros "$3" | npy "$4" "$5" >bad.npy
    refuse 5 "$2" "$1" bad.npy
}

# The command line. (What an error advises: advice.sh.)
refuse 2 '--q*--k' rotate --v k.npy --out-v out_v.npy
refuse 2 '--out-v*--v' with --v k.npy
refuse 2 '--v*--out-v' with --out-v out_v.npy
for wrong_value in layout:hdsb dtype:f64 gain:double angles:cos_sin_cache pairing:odd_even \
    repeat:0 repeat:1001 first-position:2147483648; do
    refuse 2 "--${wrong_value%:*}:*${wrong_value#*:}" with "--${wrong_value%:*}" "${wrong_value#*:}"
done
refuse 2 'layer_type*full_attention' with --layer-type full_attention
refuse 2 '--rotary-offset:*64*2*64' with --rotary-offset 2
refuse 2 'head_dim 32' with --head-dim 32
refuse 5 '--head-dim' with --head-dim 128

# The model.
model_with '"rope_theta": -10000.0' >bad.json
refuse 5 "--model:*bad.json*rope_theta" "$vkrope" rotate --model bad.json --q q.npy --out-q out.npy
refuse 5 "--model:*missing.json" "$vkrope" rotate --model missing.json --q q.npy --out-q out.npy

# Files that are not tensors.
mkfifo pipe
: >empty.npy
head -c 50 q.npy >cut.npy
{ cat q.npy && printf x; } >extra.npy
for file in missing.npy . /dev/null pipe empty.npy model.json cut.npy extra.npy; do
    refuse 5 "--q:*'$file'" rotate_q $file
done
refuse_zeros rotate_q '--q:*bad.npy*>f4' 5120 '>f4' '(1, 5, 4, 64)'
refuse_zeros rotate_q '--q:*bad.npy*<f8' 10240 '<f8' '(1, 5, 4, 64)'
refuse_zeros rotate_q '--q:*bad.npy' 5120 '<f4' '(4294967296, 4294967296)'

# Tensors that do not fit the command line, the model or each other.
refuse 5 '--q:*q16.npy*f16*f32' rotate_q q16.npy --dtype f32
refuse 5 '--k:*kb16.npy*bf16*q16.npy*f16' rotate --q q16.npy --out-q out.npy --k kb16.npy \
    --out-k out_k.npy
refuse 5 '(1, 5, 4, 64)*thd' with --layout thd
refuse_zeros rotate_q '--q:*bad.npy*(4, 64)*bshd' 1024 '<f4' '(4, 64)'
refuse_zeros rotate_q '--q:*bad.npy*2^32' 0 '<f4' '(4294967296, 0, 4, 64)'
refuse_zeros rotate_q '--q:*bad.npy*63*64' 1260 '<f4' '(1, 5, 1, 63)'
zeros 3072 | npy '<f4' '(1, 6, 2, 64)' >longer.npy
zeros 5120 | npy '<f4' '(2, 5, 2, 64)' >wider.npy
refuse 5 '--k:*longer.npy*6*q.npy*5' rotate --q q.npy --out-q out.npy --k longer.npy \
    --out-k out_k.npy
refuse 5 '--k:*wider.npy*2*q.npy*1' rotate --q q.npy --out-q out.npy --k wider.npy --out-k out_k.npy
refuse 5 '--v:*missing.npy' with_v missing.npy
refuse 5 '--v:*q16.npy*f16*f32' with_v q16.npy
refuse 5 '--v:*longer.npy*6*5' with_v longer.npy
refuse 5 '--v:*wider.npy*2*1' with_v wider.npy
refuse_zeros with_v '--v:*bad.npy*(5, 2, 1)*bshd' 40 '<f4' '(5, 2, 1)'
refuse_zeros with_v '--v:*bad.npy*head_dim 1*65534' 40 '<f4' '(1, 5, 2, 1)'
refuse_zeros with_v '--v:*bad.npy*head_dim 65535*65534' 1310700 '<f4' '(1, 5, 1, 65535)'
npy '<f4' '(1, 5, 0, 64)' </dev/null >none.npy
refuse 5 '--v:*k.npy*2' rotate --q none.npy --out-q out.npy --v k.npy --out-v out_v.npy

# Positions.
int32 0 1 2 3 4 | npy '<i4' '(5,)' >five.npy
refuse 2 '--positions' with --positions five.npy --first-position 7
refuse 5 '--positions:*missing.npy' with --positions missing.npy
refuse 5 '--positions:*q.npy*<f4' with --positions q.npy
int32 0 1 2 3 4 0 1 2 3 4 | npy '<i4' '(2, 5)' >bad.npy
refuse 5 '--positions:*(2, 5)*(5,)*(1, 5)' with --positions bad.npy
int32 0 1 2 3 4 0 1 2 3 4 | npy '<i4' '(2, 1, 5)' >bad.npy
refuse 5 '--positions:*(2, 1, 5)' with --positions bad.npy
int64 0 1 2 2147483648 4 | npy '<i8' '(5,)' >bad.npy
refuse 5 '--positions:*2147483648*3' with --positions bad.npy
int64 0 -2147483649 2 3 4 | npy '<i8' '(1, 5)' >bad.npy
refuse 5 '--positions:*-2147483649*1' with --positions bad.npy

# A tensor that memory cannot hold: its file has a hole of 8 GiB, which takes no space on the disk.
if sh -c 'ulimit -v 2000000 && exec "$@"' sh "$vkrope" --version >/dev/null 2>&1; then
    npy '<f4' '(1, 8388608, 4, 64)' </dev/null >huge.npy
    dd if=/dev/null of=huge.npy bs=1 seek=$(($(wc -c <huge.npy) + 8589934592)) 2>/dev/null
    refuse 6 'memory' sh -c 'ulimit -v 2000000; exec "$@"' sh \
        "$vkrope" rotate --model model.json --q huge.npy --out-q out.npy
    rm huge.npy
else # an address sanitizer takes terabytes of addresses
    echo 'the command does not start within 2 GB of addresses:' \
        'what it says of a memory that is full was left out'
fi

# All of that was found without a device. Good inputs get as far as looking for one.
refuse 3 '' with --positions five.npy
refuse 3 '' with --v k.npy --out-v out_v.npy --angles computed
refuse 3 '' with --float32-angles --angles direct_buffer
finish
