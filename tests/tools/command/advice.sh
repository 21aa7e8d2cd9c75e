#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests that the advice of an error works: the command changed as the message says gets further, to
# its end or until it looks for a device.
# shellcheck disable=SC2317 # functions called indirectly
. "$(dirname "$0")/check.sh"
no_driver

# advises CODE PATTERN COMMAND...: the command fails, and its message contains PATTERN, the advice.
# The commands up to the next call of advises follow this advice.
advises() {
    advice=$2
    refuse "$@"
}
# done_by COMMAND...: the command succeeds. reached_by COMMAND...: only the device is missing.
done_by() { followed 0 "$@"; }
reached_by() { followed 3 "$@"; }
followed() {
    checks=$((checks + 1))
    wanted=$1
    shift
    code=0
    "$@" >"$logs/out" 2>"$logs/err" || code=$?
    [ "$code" = "$wanted" ] || {
        wrong "the advice '$advice' gives exit code $code, not $wanted: $*"
        cat "$logs/err"
    }
}

model_with '"rope_theta": 10000.0, "num_hidden_layers": 2' >plain.json # 4 and 2 heads of 64
sed 's/"llama"/"qwen3"/; s/"hidden_size"/"head_dim": 64, &/' plain.json >qwen3.json
sed 's/"llama"/"chameleon"/' plain.json >chameleon.json
works "$vkrope" make-input --shape 1,5,4,64 --out q.npy
works "$vkrope" make-input --shape 1,5,2,64 --out k.npy
works "$vkrope" make-input --shape 1,5,4,32 --out narrow.npy
works "$vkrope" make-input --shape 1,5,4,96 --out wide.npy
zeros 256 | npy '<f4' '(64,)' >w.npy
zeros 512 | npy '<f4' '(2, 64)' >w_k.npy
zeros 1024 | npy '<f4' '(4, 64)' >w_q.npy
zeros 20 | npy '<f4' '(5,)' >five.npy
int32 0 1 2 | npy '<i4' '(3,)' >three_ids.npy
int32 0 1 2 3 4 | npy '<i4' '(5,)' >ids.npy

# Norms that the options do not specify completely.
given() { "$vkrope" rotate --model "$@" --q q.npy --k k.npy --out-q oq.npy --out-k ok.npy; }
plain() { given plain.json "$@"; }
advises 2 '--norm-eps: missing' plain --q-norm w.npy
reached_by plain --q-norm w.npy --norm-eps 1e-6
advises 3 '--model:*--model-ops takes them' given qwen3.json
advises 2 '--q-norm: missing*weight' given qwen3.json --model-ops
advises 2 '--k-norm: missing*weight' given qwen3.json --q-norm w.npy
reached_by given qwen3.json --q-norm w.npy --k-norm w.npy
advises 2 '--q-norm-bias: missing*bias' given chameleon.json --q-norm w_q.npy
advises 2 '--k-norm: missing' given chameleon.json --q-norm w_q.npy --q-norm-bias w_q.npy
advises 2 '--k-norm-bias: missing' given chameleon.json --q-norm w_q.npy --q-norm-bias w_q.npy \
    --k-norm w_k.npy
reached_by given chameleon.json --q-norm w_q.npy --q-norm-bias w_q.npy --k-norm w_k.npy \
    --k-norm-bias w_k.npy
advises 2 '--q-norm-bias:*--q-norm gives it one' plain --q-norm-bias w.npy
advises 2 '--q-norm-bias:*only a layer norm' plain --q-norm-bias w.npy --q-norm w.npy \
    --norm-eps 1e-6
reached_by plain --q-norm-bias w.npy --q-norm w.npy --norm-eps 1e-6 --norm-kind layer
for option in '--norm-place after' '--norm-span token' '--norm-kind layer' '--norm-eps 1e-6' \
    '--norm-offset 1'; do
    # shellcheck disable=SC2086 # an option and its value
    advises 2 "${option% *}:*--q-norm, --k-norm or --v-norm gives one" plain $option
    case $option in --norm-eps*) eps='' ;; *) eps='--norm-eps 1e-6' ;; esac
    # shellcheck disable=SC2086
    reached_by plain $option $eps --q-norm w.npy
done
advises 2 '--v-norm: --v is missing' plain --v-norm --norm-eps 1e-6
reached_by plain --v-norm --norm-eps 1e-6 --v k.npy --out-v ov.npy
advises 2 '--v-bias: --v is missing' plain --v-bias w.npy
reached_by plain --v-bias w.npy --v k.npy --out-v ov.npy
advises 5 "--q-norm:*'w_k.npy'*(2, 64)*needs (64,), (4, 64)*(256,)" \
    plain --q-norm w_k.npy --norm-eps 1e-6
for shape in w.npy w_q.npy; do reached_by plain --q-norm $shape --norm-eps 1e-6; done
advises 5 "--q-scale-tokens:*'w.npy'*(64,)*needs (5,)*(1, 5)" plain --q-scale-tokens w.npy
reached_by plain --q-scale-tokens five.npy

# Stores and their scales.
advises 2 '--store-scale:*--store gives no tensor' plain --store-scale 2
reached_by plain --store-scale 2 --store int8
advises 2 '--out-q-scales: missing' plain --store int8 --store-scale row
reached_by plain --store int8 --store-scale row --out-q-scales s.npy --out-k-scales t.npy
advises 2 '--out-q-scales:*--store-scale row makes them' plain --out-q-scales s.npy
reached_by plain --out-q-scales s.npy --out-k-scales t.npy --store-scale row --store int8
advises 2 '--scale-floor:*--store-scale row makes them' plain --scale-floor 1
reached_by plain --scale-floor 1 --store-scale row --store int8 --out-q-scales s.npy \
    --out-k-scales t.npy
advises 2 '--store-scale:*Q*q8_0*e4m3fn, e5m2 and int8' \
    plain --store q=q8_0,k=int8 --store-scale q=2
for type in e4m3fn e5m2 int8; do reached_by plain --store $type --store-scale q=2; done
alone() { "$vkrope" rotate --model plain.json --q q.npy --out-q oq.npy "$@"; }
advises 2 '--hadamard:*--k is missing' alone --hadamard llama.cpp
reached_by alone --hadamard llama.cpp --k k.npy --out-k ok.npy
advises 2 "--hadamard:*128*'k.npy'*head_dim 64*multiple" plain --hadamard k=128
reached_by plain --hadamard k=64

# Tensors and positions.
rotate() { "$vkrope" rotate --model plain.json "$@"; }
advises 2 '--q and --k are missing' rotate
reached_by rotate --q q.npy --out-q oq.npy
reached_by rotate --k k.npy --out-k ok.npy
advises 2 '--out-q is missing; --q needs it' rotate --q q.npy
advises 2 '--k is missing; --out-k needs it' rotate --q q.npy --out-q oq.npy --out-k ok.npy
reached_by rotate --q q.npy --out-q oq.npy --out-k ok.npy --k k.npy
advises 5 '--q:*head_dim 96*head_dim is 64; --head-dim' rotate --q wide.npy --out-q oq.npy
reached_by rotate --q wide.npy --out-q oq.npy --head-dim 96
refuse 5 '--q:*head_dim 32*head_dim is 64' rotate --q narrow.npy --out-q oq.npy
holds 'no advice for rows that are too narrow' sh -c "! grep -q -e --head-dim '$logs/err'"
advises 2 '--float32-angles:*direct_texture or direct_buffer' \
    rotate --q q.npy --out-q oq.npy --float32-angles --angles computed
for angles in direct_texture direct_buffer; do
    reached_by rotate --q q.npy --out-q oq.npy --float32-angles --angles $angles
done
advises 2 '--first-position:*2^31*have 5' \
    rotate --q q.npy --out-q oq.npy --first-position 2147483644
reached_by rotate --q q.npy --out-q oq.npy --first-position 2147483643
advises 5 '--positions:*need (5,)' rotate --q q.npy --out-q oq.npy --positions three_ids.npy
reached_by rotate --q q.npy --out-q oq.npy --positions ids.npy
advises 2 '--out-k:*each output must be a separate file' \
    rotate --q q.npy --k k.npy --out-q o.npy --out-k o.npy
reached_by rotate --q q.npy --k k.npy --out-q o.npy --out-k o2.npy
tail -c 5120 q.npy | tensors a:F32:1,5,2,64:2560 b:F32:1,5,2,64:2560 >two.safetensors
advises 5 '--k:*name one of them: FILE.safetensors:NAME' \
    rotate --k two.safetensors --out-k ok.npy
reached_by rotate --k two.safetensors:b --out-k ok.npy

# Model files.
advises 5 '--model:*name the config.json in it' "$vkrope" frequencies --model .
cp plain.json config.json
done_by "$vkrope" frequencies --model ./config.json
gguf=$models/../corpus/gguf/llama3.gguf
advises 5 '--model:*give its name' sh -c "$vkrope frequencies --model - <'$gguf'"
done_by "$vkrope" frequencies --model "$gguf"
echo '{"model_type": "llama", "head_dim": 64, "rope_theta": 1e4, "rope_interleaved": true}' >told.json
advises 5 'give a pairing' "$vkrope" frequencies --model told.json
done_by "$vkrope" frequencies --model told.json --pairing interleaved
echo '{"model_type": "granite_swa", "head_dim": 64, "num_hidden_layers": 4,
    "layer_rope_theta": [1e4, 2e4, 1e4, 1e4]}' >bases.json
advises 2 'ask for a single layer' "$vkrope" frequencies --model bases.json \
    --layer-type sliding_attention
advises 2 '--layer-type excludes --layer' "$vkrope" frequencies --model bases.json --layer 1 \
    --layer-type sliding_attention
done_by "$vkrope" frequencies --model bases.json --layer 1
advises 2 'layer_type*full_attention, sliding_attention' "$vkrope" frequencies --model bases.json \
    --layer-type chunked
done_by "$vkrope" frequencies --model bases.json --layer-type full_attention
finish
