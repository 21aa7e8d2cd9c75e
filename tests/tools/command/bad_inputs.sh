#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests that `vkrope rotate` rejects every wrong input before it looks for a device, with an error
# that names the input, and that no file is left behind. This test has no device; only the last
# checks look for one. (Headers of .npy and .safetensors files: npy_test.cpp, safetensors_test.cpp.)
# shellcheck disable=SC2317 # functions called indirectly
. "$(dirname "$0")/check.sh"
no_driver

model_with '"rope_theta": 10000.0' >model.json # 4 and 2 heads of 64
sed 's/"llama"/"qwen3"/; s/"hidden_size"/"head_dim": 64, &/' model.json >qwen3.json
works "$vkrope" make-input --shape 1,5,4,64 --out q.npy
works "$vkrope" make-input --shape 1,5,2,64 --out k.npy
works "$vkrope" make-input --shape 1,5,4,64 --dtype f16 --out q16.npy
works "$vkrope" make-input --shape 1,5,2,64 --dtype bf16 --out kb16.npy
rotate() { "$vkrope" rotate --model model.json "$@"; }
rotate_q() { rotate --out-q out.npy --q "$@"; }
# with ARGUMENT...: rotates valid tensors with additional arguments.
with() { rotate --q q.npy --k k.npy --out-q out_q.npy --out-k out_k.npy "$@"; }
with_v() { with --v "$1" --out-v out_v.npy; }
# refuse_zeros COMMAND PATTERN BYTES TYPE SHAPE: like refuse 5, with a file that has BYTES zero
# bytes after a header with TYPE and SHAPE.
refuse_zeros() {
    zeros "$3" | npy "$4" "$5" >bad.npy
    refuse 5 "$2" "$1" bad.npy
}

# The command line. (The advice of errors: advice.sh.)
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
for file in missing.npy . /dev/null pipe model.json; do
    refuse 5 "--q:*'$file'" rotate_q $file
done
refuse_zeros rotate_q '--q:*bad.npy*<f8' 10240 '<f8' '(1, 5, 4, 64)'

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

# The ops around the rotation: options that need each other.
zeros 256 | npy '<f4' '(64,)' >w.npy
zeros 512 | npy '<f4' '(2, 64)' >w_k.npy
zeros 512 | npy '<f8' '(64,)' >w_f8.npy
zeros 20 | npy '<f4' '(5,)' >scales.npy
k_alone() { rotate --k k.npy --out-k out_k.npy "$@"; }
refuse 2 '--q-norm:' k_alone --q-norm w.npy --norm-eps 1e-6
refuse 2 '--q-scale:' k_alone --q-scale 2
refuse 2 '--q-scale-tokens:' k_alone --q-scale-tokens scales.npy

# Numbers: OPTION:VALUE.
for wrong_value in clip:0 clip:-2 clip:NaN clip:1e39 q-scale:0 q-scale:inf q-scale:2x \
    scale-floor:-1 scale-floor:1e39 norm-kind:group norm-span:row norm-place:between \
    hadamard:96 hadamard:q=1 hadamard:q=513 hadamard:q=x store:q6_k store:q=f16,k=q6_k; do
    value=${wrong_value#*:}
    refuse 2 "--${wrong_value%:*}:*${value##*=}" with "--${wrong_value%:*}" "$value"
done
for eps in 0 1e-21 1.5 NaN none; do
    refuse 2 "--norm-eps:*'$eps'" with --q-norm w.npy --norm-eps $eps
done
refuse 2 '--norm-offset' with --q-norm w.npy --norm-offset 2

# Quantised outputs, their scales and Hadamard transforms.
for parts in x=f16 q=f16,q=f32 q=f16,k 'q=f16,' =f16 q=f16,,k=f16; do
    refuse 2 "--store:*'$parts'" with --store $parts
done
refuse 2 '--store:*--v' with --store v=q8_0
refuse 2 '--roof:*Q*q8_0' with --store q=q8_0 --roof
refuse 2 '--hadamard:*--v' with --hadamard q=64,v=64
refuse 2 '--store-scale:*--v' with --store int8 --store-scale v=2
refuse 2 '--out-v-scales:*--v' with --store int8 --out-v-scales s.npy
zeros 1600 | npy '<f4' '(1, 5, 2, 40)' >narrow.npy
refuse 2 "--store:*q5_1*'narrow.npy'*40" with --v narrow.npy --out-v ov.npy --store v=q5_1
for scale in 0 inf 1e-50 2x rows; do
    refuse 2 "--store-scale:*'$scale'" with --store int8 --store-scale $scale
done
int32 1 2 3 | npy '<f4' '(3,)' >three.npy
refuse 5 "--store-scale:*'three.npy'*(3,)*(2,)" with --store k=int8 --store-scale k=three.npy
int32 $((0x3f800000)) 0 | npy '<f4' '(2,)' >zero.npy
refuse 5 "--store-scale:*'zero.npy'*0*1" with --store k=int8 --store-scale k=zero.npy
refuse 5 "--store-scale:*'absent.npy'" with --store k=int8 --store-scale k=absent.npy
refuse 2 '--scale-floor:*2^127' with --store int8 --store-scale k=row_power_of_two \
    --scale-floor 3e38 --out-k-scales s.npy
rows() { with --store int8 --store-scale row "$@"; }
refuse 2 's.npy*--out-q-scales' rows --out-q-scales s.npy --out-k-scales s.npy
refuse 2 'out_k.npy*--out-k' rows --out-q-scales s.npy --out-k-scales out_k.npy
refuse 2 "--out-q-scales:*'scales.npy'" \
    rows --q-scale-tokens scales.npy --out-q-scales scales.npy --out-k-scales s.npy
refuse 2 "--out-q-scales:*'s.safetensors'" \
    rows --out-q-scales s.safetensors --out-k-scales s.npy

# Parameters.
refuse 5 "--q-norm:*'missing.npy'" with --q-norm missing.npy --norm-eps 1e-6
refuse 5 "--q-norm:*'w_f8.npy'*<f8" with --q-norm w_f8.npy --norm-eps 1e-6
refuse 5 "--q-bias:*'model.json'" with --q-bias model.json

# An output that is also an input.
refuse 2 "--out-q:*w.npy'" rotate --q q.npy --out-q ./w.npy --q-norm w.npy --norm-eps 1e-6

# A tensor too large for the memory: its file has a hole of 8 GiB, which takes no space on the disk.
if sh -c 'ulimit -v 2000000 && exec "$@"' sh "$vkrope" --version >/dev/null 2>&1; then
    npy '<f4' '(1, 8388608, 4, 64)' </dev/null >huge.npy
    dd if=/dev/null of=huge.npy bs=1 seek=$(($(wc -c <huge.npy) + 8589934592)) 2>/dev/null
    refuse 6 'memory' sh -c 'ulimit -v 2000000; exec "$@"' sh \
        "$vkrope" rotate --model model.json --q huge.npy --out-q out.npy
    rm huge.npy
else # an address sanitizer reserves terabytes of addresses
    echo 'the command does not start within 2 GB of addresses:' \
        'what it says of a memory that is full was left out'
fi

# All these errors were found without a device. Valid inputs get as far as looking for a device.
refuse 3 '' with --positions five.npy
refuse 3 '' with --v k.npy --out-v out_v.npy --angles computed
refuse 3 '' with --float32-angles --angles direct_buffer
refuse 3 '' with --store q=f16,k=e4m3fn --hadamard llama.cpp --store-scale k=2
refuse 3 '' rows --out-q-scales s.npy --out-k-scales t.npy --scale-floor 1e-6
# Without an option for an op only the rotation runs, and a note lists the model's other ops.
qwen3() {
    "$vkrope" rotate --model qwen3.json --q q.npy --k k.npy --out-q oq.npy --out-k ok.npy "$@"
}
expect 3 'note: --model:*rms norm*--model-ops' qwen3
refuse 3 '' qwen3 --q-norm w.npy --k-norm w_k.npy
expect 3 '' with
holds 'no note where the model has no more' sh -c "! grep -q note: '$logs/err'"
finish
