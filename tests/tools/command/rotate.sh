#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests `vkrope rotate` on lavapipe: each layout, element type, pairing and source of angles, V,
# forms of positions, and the choice of a device, verified against the definition. The random
# operations of vkrope-conformance combine these.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions called indirectly
. "$(dirname "$0")/check.sh"
need_lavapipe

model_with '"rope_theta": 10000.0' >model.json
rotate() { "$vkrope" rotate --model model.json --verify --json "$@"; }

# Print the source of angles that was used, and the contract's bound for it with an attention factor
# of 1.
source_taken() { sed -n 's/.*"source": "\([a-z_]*\)".*/\1/p' "$logs/out"; }
bound() {
    case $(source_taken) in
        factored_texture) echo 6 ;;
        computed) echo 4.5 ;;
        direct_texture | direct_buffer) echo 2.5 ;;
    esac
}
# took SOURCE BOUND: the last report has this source and bound.
took() {
    holds "the source is $1" [ "$(source_taken)" = "$1" ]
    # shellcheck disable=SC2046 # one number for each tensor, or one for both
    holds "the bound is $2" [ "$(number bound_u | sort -u)" = "$2" ]
}

# correct ARGUMENT...: rotates q.npy and k.npy to q_out.npy and k_out.npy, within the contract.
correct() {
    works rotate --q q.npy --k k.npy --out-q q_out.npy --out-k k_out.npy "$@"
    holds "verified: $*" grep -q '"verified": true' "$logs/out"
    # shellcheck disable=SC2046 # two numbers
    holds "max_error_u <= $(bound): $*" below "$(bound)" $(number max_error_u)
    holds 'the output has the size of the input' [ "$(wc -c <q_out.npy)" = "$(wc -c <q.npy)" ]
    holds 'something was rotated' sh -c '! cmp -s q.npy q_out.npy'
}
# inputs Q_SHAPE K_SHAPE DTYPE: makes q.npy and k.npy.
inputs() {
    works "$vkrope" make-input --shape "$1" --dtype "$3" --seed 1 --out q.npy
    works "$vkrope" make-input --shape "$2" --dtype "$3" --seed 2 --out k.npy
}

# 37 tokens and 3 key heads: no size is a multiple of another. V has the layout of K, with a
# different number of heads and head_dim, and keeps its bits.
# same_data FILE FILE: two .npy files have the same data, whatever the padding of their headers.
same_data() {
    for array; do
        tail -c +$(($(od -An -t u2 -j 8 -N 2 "$array") + 11)) "$array" >"$array.data"
    done
    cmp "$1.data" "$2.data"
}
# taken_along ARGUMENT...: like `correct`, and also copies v.npy to v_out.npy.
taken_along() {
    zeros 64 >v_out.npy # overwrites the last output
    correct --v v.npy --out-v v_out.npy "$@"
    holds "V keeps its bits: $*" same_data v.npy v_out.npy
    holds "V is reported: $*" says '"unchanged": true'
}
for each in bshd:f32:2,37,4,64:2,37,3,64:2,37,3,64 bhsd:f16:2,4,37,64:2,3,37,64:2,5,37,64 \
    sbhd:bf16:37,2,4,64:37,2,3,64:37,2,3,31 thd:f32:37,4,64:37,3,64:37,1,96; do
    layout=${each%%:*} && shapes=${each#*:}
    dtype=${shapes%%:*} && shapes=${shapes#*:}
    q_shape=${shapes%%:*} && shapes=${shapes#*:}
    inputs "$q_shape" "${shapes%:*}" "$dtype"
    correct --layout "$layout" --dtype "$dtype" --pairing interleaved --first-position 70
    holds 'the report names the type' says "\"dtype\": \"$dtype\""
    cp q_out.npy q_alone.npy && cp k_out.npy k_alone.npy
    works "$vkrope" make-input --shape "${shapes#*:}" --dtype "$dtype" --seed 3 --out v.npy
    taken_along --layout "$layout" --dtype "$dtype" --pairing interleaved --first-position 70
    holds "Q with a V: $layout" cmp q_alone.npy q_out.npy
    holds "K with a V: $layout" cmp k_alone.npy k_out.npy
done

# Direct tables give the same bits, whatever else differs.
correct --layout thd --angles direct_texture && cp q_out.npy texture.npy
took direct_texture 2.5
correct --layout thd --angles direct_buffer
took direct_buffer 2.5
holds 'texture and buffer give the same bits' cmp -s texture.npy q_out.npy
correct --layout thd --angles factored_texture && cp q_out.npy factored.npy
took factored_texture 6.0
correct --layout thd
took factored_texture 6.0
holds 'the default is the factored table' cmp -s factored.npy q_out.npy

# Positions: all forms of the same ids give the same bits as implicit ones; other ids are verified.
inputs 2,5,4,64 2,5,2,64 f32
correct --first-position 7 && cp q_out.npy implicit.npy
int32 7 8 9 10 11 | npy '<i4' '(5,)' >shared.npy
int64 7 8 9 10 11 7 8 9 10 11 | npy '<i8' '(1, 2, 5)' >axes.npy
for form in shared axes; do
    correct --positions $form.npy
    holds "positions $form are the implicit ones" cmp -s implicit.npy q_out.npy
done
int32 -3 900 0 2 -1 4 4 4 2047 1 | npy '<i4' '(2, 5)' >mixed.npy
correct --positions mixed.npy
holds 'lowest position' [ "$(number lowest)" = -3 ]

# Far positions: the factored table covers positions up to 2^22 - 1; computed angles have no limit.
int32 4194303 -4194303 0 2048 -2049 2047 -1 1 131072 4194303 | npy '<i4' '(2, 5)' >edge.npy
correct --positions edge.npy
took factored_texture 6.0
int32 2147483647 -2147483648 -2147483647 4194304 -4194304 4194303 -4194303 0 1 -1 |
    npy '<i4' '(2, 5)' >far.npy
correct --positions far.npy && cp q_out.npy far_q.npy
took computed 4.5
holds 'lowest position' [ "$(number lowest)" = -2147483648 ]
holds 'highest position' [ "$(number highest)" = 2147483647 ]
correct --positions far.npy --angles computed
holds 'beyond the factored table angles are computed' cmp -s far_q.npy q_out.npy
refuse 2 '--angles:*factored_texture*-2147483648*2147483647' \
    rotate --q q.npy --out-q beyond.npy --positions far.npy --angles factored_texture
refuse 2 '--angles:*factored_texture*4194300*4194304' \
    rotate --q q.npy --out-q beyond.npy --first-position 4194300 --angles factored_texture
correct --first-position 4194299 --angles factored_texture
for angles in direct_texture direct_buffer; do
    refuse 2 "--angles:*$angles*2147483000" \
        rotate --q q.npy --out-q beyond.npy --first-position 2147483000 --angles $angles
done

# Angles as float32 products are verified as such, and differ from exact ones at far positions.
correct --first-position 131068 --angles direct_texture && cp q_out.npy exact.npy
correct --first-position 131068 --float32-angles
took direct_texture 2.5
holds 'float32 angles are others' sh -c '! cmp -s exact.npy q_out.npy'

# --inverse undoes the forward rotation, up to rounding.
correct --first-position 1500 && mv q_out.npy forward.npy
works rotate --q forward.npy --out-q back.npy --first-position 1500 --inverse
float_values() { tail -c +129 "$1" | od -An -v -t f4 -w4; }
float_values q.npy >"$logs/q" && float_values back.npy >"$logs/back"
holds 'inverse undoes forward' awk -v other="$logs/back" '
    {
        getline back <other
        d = $1 - back
        if (d > worst) worst = d
        if (-d > worst) worst = -d
        n++
    }
    END { exit !(n == 2560 && worst < 1e-5) }' "$logs/q"

# A window inside wider rows, and the error if the window ends after the row.
inputs 1,9,4,96 1,9,2,96 f16
correct --head-dim 96 --rotary-offset 32
refuse 2 'head_dim' rotate --q q.npy --out-q q_out.npy --head-dim 96 --rotary-offset 34

# Latent attention: a window for each tensor, as wide as its file. K's rotary part alone and in a
# row of the cache give the same rotation, and the channels before it pass through.
cp model.json plain_model.json
cp "$models/deepseek-v2-lite.json" model.json
inputs 1,1,16,192 1,1,1,64 f32
correct --first-position 7
tail -c 256 k.npy >part
tail -c 256 k_out.npy >part_out
works "$vkrope" make-input --shape 1,1,1,576 --seed 3 --out row.npy
size=$(($(wc -c <row.npy) - 256))
{ head -c $size row.npy && cat part; } >k.npy
correct --first-position 7
{ head -c $size row.npy && cat part_out; } >expected.npy
holds 'a row of the cache' cmp -s expected.npy k_out.npy
works rotate --k k.npy --out-k alone.npy --first-position 7
holds 'a row without Q' cmp -s expected.npy alone.npy
zeros 1536 | npy '<f4' '(1, 3, 1, 128)' >beyond.npy
refuse 5 '--q:*128*192*64' rotate --q beyond.npy --out-q q_out.npy
refuse 5 '--k:*128*576*192*64' rotate --k beyond.npy --out-k k_out.npy
works rotate --q beyond.npy --out-q q_out.npy --head-dim 128 --rotary-offset 32
mv plain_model.json model.json

# One tensor alone; other head counts than the model's give a note; V with one tensor; no tokens
# give an empty output, and so do no heads of V.
inputs 1,9,4,64 1,9,3,64 f32
works "$vkrope" make-input --shape 1,9,2,32 --seed 3 --out v.npy
works rotate --k k.npy --out-k k_only.npy
holds 'a note on the head count' says "note: --k:*'k.npy'*3*2" "$logs/err"
holds 'there is no q in the report' says '"q": null'
holds 'there is no v in the report' says '"v": null'
bytes_without=$(number bytes | tail -n 1)
works rotate --k k.npy --out-k k_out.npy --v v.npy --out-v v_out.npy --roof --repeat 2
holds 'V beside K alone' cmp v.npy v_out.npy
holds 'the bytes of V count' \
    [ "$(number bytes | tail -n 1)" = $((bytes_without + 2 * 9 * 2 * 32 * 4)) ]
for key in gpu_ns bytes bytes_per_second ns share; do
    # shellcheck disable=SC2046
    holds "$key is a number" below 1e18 $(number $key)
done
npy '<f4' '(1, 9, 0, 32)' </dev/null >v.npy
taken_along
holds 'K alone and with Q' cmp -s k_only.npy k_out.npy
inputs 1,0,4,64 1,0,2,64 f32
works "$vkrope" make-input --shape 1,0,2,32 --seed 3 --out v.npy
int32 | npy '<i4' '(0,)' >none.npy
works rotate --q q.npy --k k.npy --v v.npy --out-q q_out.npy --out-k k_out.npy --out-v v_out.npy \
    --positions none.npy
holds 'no tokens in, none out' cmp -s q.npy q_out.npy
holds 'no tokens of V in, none out' cmp v.npy v_out.npy

# --gain has no effect if the model has no attention factor.
inputs 1,9,4,64 1,9,2,64 f32
correct && cp q_out.npy plain.npy
correct --gain divide_out
holds 'no gain' cmp -s plain.npy q_out.npy

# Positions on three axes, for a model with sections. Equal positions on all axes act as one axis.
cp model.json plain_model.json
cp "$models/qwen2-vl-2b.json" model.json
inputs 2,3,12,128 2,3,2,128 f32
int32 0 1 2 7 8 9 0 5 6 70 4 40 3 0 1000 2 131071 6 | npy '<i4' '(3, 2, 3)' >axes.npy
correct --positions axes.npy
cp q_out.npy axes_out.npy
int32 0 1 2 7 8 9 | npy '<i4' '(2, 3)' >one_axis.npy
correct --positions one_axis.npy
holds 'the other axes count' sh -c '! cmp -s axes_out.npy q_out.npy'
cp q_out.npy axes_out.npy
int32 0 1 2 7 8 9 0 1 2 7 8 9 0 1 2 7 8 9 | npy '<i4' '(3, 2, 3)' >equal.npy
correct --positions equal.npy
holds 'equal positions on all axes' cmp -s axes_out.npy q_out.npy
zeros 48 | npy '<i4' '(2, 2, 3)' >two.npy
refuse 5 '--positions:*(2, 2, 3)*2*3' rotate --q q.npy --out-q beyond.npy --positions two.npy
# The same for pairs that turn by a sum over the axes.
echo '{"model_type": "ernie4_5_vl", "head_dim": 128, "rope_theta": 5e5}' >model.json
correct --positions axes.npy
cp q_out.npy axes_out.npy
correct --positions one_axis.npy
holds 'the other axes of a sum count' sh -c '! cmp -s axes_out.npy q_out.npy'
cp q_out.npy axes_out.npy
correct --positions equal.npy
holds 'equal positions on all axes of a sum' cmp -s axes_out.npy q_out.npy
correct
mv plain_model.json model.json
inputs 1,9,4,64 1,9,2,64 f32

# The device, by index, by part of its name in any case, by UUID and from the environment.
works "$vkrope" devices --json
uuid=$(sed -n 's/.*"uuid": "\([0-9a-f]*\)".*/\1/p' "$logs/out" | head -n 1)
alone() { rotate --q q.npy --out-q none_out.npy "$@"; }
for device in 0 LLVMpipe "$uuid"; do
    works alone --device "$device"
    holds "device $device" says '"name": "llvmpipe'
done
rm none_out.npy
refuse 3 'no_such_device' alone --device no_such_device
refuse 2 '99' alone --device 99
export VKROPE_DEVICE=no_such_device
refuse 3 'no_such_device' alone
works alone --device 0
VKROPE_DEVICE=LLVMpipe
works alone
unset VKROPE_DEVICE
if [ -n "$swiftshader" ]; then
    # A name that fits two devices gives an error with the list, and each can be chosen.
    rm none_out.npy
    use_driver "$lavapipe:$swiftshader"
    refuse 2 'llvmpipe' alone --device e
    holds 'both are named' says 'SwiftShader' "$logs/err"
    works alone --device SwiftShader
    holds 'the device is SwiftShader' says '"name": "SwiftShader'
    holds 'both have the same bits' cmp none_out.npy plain.npy
    use_driver "$lavapipe"
fi

# Pipelines on disk: a missing folder is no error, and an empty folder is valid.
mkdir pipelines
works alone --pipeline-cache pipelines
works alone --pipeline-cache missing
VKROPE_PIPELINE_CACHE=pipelines works alone

# The text report has a verdict only with --verify.
works "$vkrope" rotate --model model.json --q q.npy --out-q q_out.npy --repeat 3 --roof --verify
holds 'the verdict' says 'verdict *correct'
works "$vkrope" rotate --model model.json --q q.npy --out-q q_out.npy
holds 'not verified' says 'verdict *--verify'
finish
