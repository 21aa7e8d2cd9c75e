#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope rotate` on lavapipe: every layout, element type, pairing and source of angles, verified
# against the definition.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
need_lavapipe

model_with '"rope_theta": 10000.0' >model.json
rotate() { "$vkrope" rotate --model model.json --verify --json "$@"; }

# The source of angles that was taken, and the contract's bound for it where the attention factor
# is 1.
source_taken() { sed -n 's/.*"source": "\([a-z_]*\)".*/\1/p' "$logs/out"; }
bound() {
    case $(source_taken) in
        factored_texture) echo 6 ;;
        computed) echo 4.5 ;;
        direct_texture | direct_buffer) echo 2.5 ;;
    esac
}
# took SOURCE BOUND: the last report says so.
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
# inputs Q_SHAPE K_SHAPE DTYPE
inputs() {
    works "$vkrope" make-input --shape "$1" --dtype "$3" --seed 1 --out q.npy
    works "$vkrope" make-input --shape "$2" --dtype "$3" --seed 2 --out k.npy
}

# 37 tokens and 3 key heads: nothing is a multiple of anything.
for dtype in f32 f16 bf16; do
    for layout in bshd:2,37,4,64:2,37,3,64 bhsd:2,4,37,64:2,3,37,64 sbhd:37,2,4,64:37,2,3,64 \
        thd:37,4,64:37,3,64; do
        shapes=${layout#*:}
        inputs "${shapes%:*}" "${shapes#*:}" $dtype
        correct --layout "${layout%%:*}" --dtype $dtype
        holds 'the report names the type' grep -q "\"dtype\": \"$dtype\"" "$logs/out"
        correct --layout "${layout%%:*}" --pairing interleaved --angles direct_buffer \
            --first-position 1000
    done
done

# Direct tables give the same bits, whatever else they differ in.
correct --layout thd --angles direct_texture && cp q_out.npy texture.npy
took direct_texture 2.5
correct --layout thd --angles direct_buffer
took direct_buffer 2.5
holds 'texture and buffer give the same bits' cmp -s texture.npy q_out.npy
correct --layout thd --angles computed
took computed 4.5
correct --layout thd --angles factored_texture && cp q_out.npy factored.npy
took factored_texture 6.0
correct --layout thd
took factored_texture 6.0
holds 'the default is the factored table' cmp -s factored.npy q_out.npy

# Positions: all forms of the same ids give the same bits as the implicit ones; others are verified.
inputs 2,5,4,64 2,5,2,64 f32
correct --first-position 7 && cp q_out.npy implicit.npy
int32 7 8 9 10 11 | npy '<i4' '(5,)' >shared.npy
int64 7 8 9 10 11 7 8 9 10 11 | npy '<i8' '(2, 5)' >each.npy
int64 7 8 9 10 11 7 8 9 10 11 | npy '<i8' '(1, 2, 5)' >axes.npy
for form in shared each axes; do
    correct --positions $form.npy
    holds "positions $form are the implicit ones" cmp -s implicit.npy q_out.npy
done
int32 -3 900 0 2 -1 4 4 4 2047 1 | npy '<i4' '(2, 5)' >mixed.npy
correct --positions mixed.npy
holds 'lowest position' [ "$(number lowest)" = -3 ]
correct --first-position -4

# Far positions: the factored table ends at 2^22 - 1, computed angles nowhere.
int32 4194303 -4194303 0 2048 -2049 2047 -1 1 131072 4194303 | npy '<i4' '(2, 5)' >edge.npy
correct --positions edge.npy
took factored_texture 6.0
holds 'the table has the most positions that it may' \
    [ "$(sed -n 's/.*"positions": \([0-9]*\),*$/\1/p' "$logs/out")" = 4194304 ]
correct --positions edge.npy --angles computed
int32 2147483647 -2147483648 -2147483647 4194304 -4194304 4194303 -4194303 0 1 -1 |
    npy '<i4' '(2, 5)' >far.npy
correct --positions far.npy && cp q_out.npy far_q.npy
took computed 4.5
holds 'lowest position' [ "$(number lowest)" = -2147483648 ]
holds 'highest position' [ "$(number highest)" = 2147483647 ]
correct --positions far.npy --angles computed
took computed 4.5
holds 'beyond the factored table angles are computed' cmp -s far_q.npy q_out.npy
correct --positions far.npy --angles computed --inverse --pairing interleaved
refuse 2 '--angles: factored_texture does not reach from position -2147483648 to 2147483647; without --angles there is one that does' \
    rotate --q q.npy --out-q beyond.npy --positions far.npy --angles factored_texture
refuse 2 '--angles: factored_texture does not reach from position 4194300 to 4194304' \
    rotate --q q.npy --out-q beyond.npy --first-position 4194300 --angles factored_texture
correct --first-position 4194299 --angles factored_texture

# Angles as float32 products: what they are is verified, and far from the beginning they are others.
for angles in direct_texture direct_buffer; do
    correct --first-position 131068 --angles $angles && cp q_out.npy exact.npy
    correct --first-position 131068 --angles $angles --float32-angles && cp q_out.npy float32.npy
    took $angles 2.5
    holds 'float32 angles are others' sh -c '! cmp -s exact.npy float32.npy'
done
correct --first-position 131068 --float32-angles
took direct_texture 2.5
holds 'by default they take a direct texture' cmp -s float32.npy q_out.npy
refuse 2 '--angles: direct_texture does not reach from position 2147483000 to ' \
    rotate --q q.npy --out-q beyond.npy --first-position 2147483000 --float32-angles

# Back again: what forward did, --inverse undoes, up to rounding.
correct --first-position 1500 && mv q_out.npy forward.npy
works rotate --q forward.npy --out-q back.npy --first-position 1500 --inverse
holds 'inverse is verified' grep -q '"verified": true' "$logs/out"
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

# A window inside wider rows, and its refusal where it ends past them.
inputs 1,9,4,96 1,9,2,96 f16
correct --head-dim 96 --rotary-offset 32
correct --head-dim 96 --rotary-offset 8 --pairing interleaved
refuse 2 'ends past head_dim' rotate --q q.npy --out-q q_out.npy --head-dim 96 --rotary-offset 34

# Latent attention: a window for each tensor, as wide as its file says. K's rotary part alone,
# behind what does not turn in a row of its own, and in a row of the cache is the same rotation,
# and what stands before it passes through.
cp model.json plain_model.json
cp "$models/deepseek-v2-lite.json" model.json
inputs 1,1,16,192 1,1,1,64 f32
correct --first-position 7
cp k_out.npy part_out.npy
tail -c 256 k.npy >part
tail -c 256 k_out.npy >part_out
for row in 192 576; do
    works "$vkrope" make-input --shape 1,1,1,$row --seed 3 --out row.npy
    size=$(($(wc -c <row.npy) - 256))
    { head -c $size row.npy && cat part; } >k.npy
    correct --first-position 7
    { head -c $size row.npy && cat part_out; } >expected.npy
    holds "a row of $row" cmp -s expected.npy k_out.npy
    works rotate --k k.npy --out-k alone.npy --first-position 7
    holds "a row of $row without Q" cmp -s expected.npy alone.npy
done
works "$vkrope" rotate --model model.json --q q.npy --k k.npy --out-q q_out.npy --out-k k_out.npy
holds 'the widths of both' grep -q 'interleaved, 64 of 192 channels of Q and of 576 of K rotated' \
    "$logs/out"
inputs 1,3,16,64 1,3,16,192 f16
correct
correct --rotary-offset 0
works "$vkrope" make-input --shape 1,3,1,128 --seed 1 --out beyond.npy
refuse 5 'head_dim 128; the model'"'"'s head_dim is 192 (a whole head) or 64 (the rotary part alone); --head-dim overrides it' \
    rotate --q beyond.npy --out-q q_out.npy
refuse 5 'head_dim is 576 (a row of the latent cache) or 192 (a whole head) or 64 (the rotary part alone)' \
    rotate --k beyond.npy --out-k k_out.npy
works rotate --q beyond.npy --out-q q_out.npy --head-dim 128 --rotary-offset 32
mv plain_model.json model.json

# V goes along, bit for bit: where it lies as K does, with heads and with a head_dim of its own. Q
# and K are what they are without it.
# same_data FILE FILE: of two .npy files, whatever padding their headers have
same_data() {
    for array; do
        tail -c +$(($(od -An -t u2 -j 8 -N 2 "$array") + 11)) "$array" >"$array.data"
    done
    cmp "$1.data" "$2.data"
}
# taken_along ARGUMENT...: as `correct`, with v.npy to v_out.npy
taken_along() {
    zeros 64 >v_out.npy # that nothing is left of the last one
    correct --v v.npy --out-v v_out.npy "$@"
    holds "V keeps its bits: $*" same_data v.npy v_out.npy
}
for dtype in f32 f16 bf16; do
    for layout in bshd:2,37,4,64:2,37,3,64:2,37,3,64:2,37,5,64:2,37,3,31 \
        bhsd:2,4,37,64:2,3,37,64:2,3,37,64:2,5,37,64:2,3,37,31 \
        sbhd:37,2,4,64:37,2,3,64:37,2,3,64:37,2,5,64:37,2,3,31 \
        thd:37,4,64:37,3,64:37,3,64:37,1,96:37,3,31; do
        word=${layout%%:*}
        shapes=${layout#*:}
        v_shapes=${shapes#*:*:}
        shapes=${shapes%":$v_shapes"}
        inputs "${shapes%:*}" "${shapes#*:}" $dtype
        correct --layout "$word" --first-position 70
        cp q_out.npy q_alone.npy && cp k_out.npy k_alone.npy
        for v_shape in $(echo "$v_shapes" | tr : ' '); do
            works "$vkrope" make-input --shape "$v_shape" --dtype $dtype --seed 3 --out v.npy
            taken_along --layout "$word" --first-position 70 --dtype $dtype
            holds "V is reported: $word $v_shape" grep -q '"unchanged": true' "$logs/out"
            holds "Q with a V of $v_shape" cmp q_alone.npy q_out.npy
            holds "K with a V of $v_shape" cmp k_alone.npy k_out.npy
        done
    done
done
# All patterns of 16 bits, NaNs and subnormals among them, in K's dispatch and in one of their own.
# shellcheck disable=SC2059 # octal escapes of the bytes
patterns=$(awk 'BEGIN { for (i = 0; i < 65536; i++) printf "\\%03o\\%03o", i % 256, i / 256 }')
printf "$patterns" >patterns
holds 'there are 65536 patterns' [ "$(wc -c <patterns)" = 131072 ]
for form in 'f16 <f2 64' 'bf16 <u2 64' 'f32 <f4 32'; do
    # shellcheck disable=SC2086 # three words
    set -- $form
    npy "$2" "(1, 16, $3, 64)" <patterns >v.npy
    for k_heads in 2 "$3"; do
        inputs 1,16,4,64 1,16,"$k_heads",64 "$1"
        taken_along --angles direct_buffer
        taken_along --inverse --gain divide_out --pairing interleaved --first-position -9
    done
done
# Beside one tensor alone, and in the text.
inputs 1,9,4,64 1,9,2,64 f32
works "$vkrope" make-input --shape 1,9,2,32 --seed 3 --out v.npy
for name in q k; do
    zeros 64 >v_out.npy
    works "$vkrope" rotate --model model.json --verify --$name $name.npy \
        --out-$name ${name}_out.npy \
        --v v.npy --out-v v_out.npy
    holds "V beside $name alone" cmp v.npy v_out.npy
    holds 'V among the tensors' grep -q '^tensors .*, V (1, 9, 2, 32); f32' "$logs/out"
    holds 'V among the errors' grep -q '^error .* u, V unchanged; the contract allows' "$logs/out"
done
holds 'V among the values' grep -q '^verdict .*correct: 1 728 values within the contract' \
    "$logs/out"
works rotate --q q.npy --out-q q_out.npy
holds 'there is no v in the report' grep -q '"v": null' "$logs/out"
bytes_without=$(number bytes | tail -n 1)
works rotate --q q.npy --out-q q_out.npy --v v.npy --out-v v_out.npy --roof --repeat 2
holds 'the bytes of V count' [ "$(number bytes | tail -n 1)" = $((bytes_without + 2 * 9 * 2 * 32 * \
    4)) ]
# No heads of V, and no tokens.
npy '<f4' '(1, 9, 0, 32)' </dev/null >v.npy
taken_along
works "$vkrope" make-input --shape 1,0,2,32 --seed 3 --out v.npy
inputs 1,0,4,64 1,0,2,64 f32
works rotate --q q.npy --k k.npy --v v.npy --out-q q_out.npy --out-k k_out.npy --out-v v_out.npy
holds 'no tokens of V in, none out' cmp v.npy v_out.npy

# One tensor alone; other head counts than the model's get a note; no tokens are an empty output.
inputs 1,9,4,64 1,9,3,64 f32
works rotate --k k.npy --out-k k_only.npy
holds 'a note on the head count' grep -q "vkrope: note: --k: 'k.npy' has 3 heads; the model has 2" \
    "$logs/err"
holds 'there is no q in the report' grep -q '"q": null' "$logs/out"
correct
holds 'K alone and with Q' cmp -s k_only.npy k_out.npy
inputs 1,0,4,64 1,0,2,64 f32
works rotate --q q.npy --k k.npy --out-q q_out.npy --out-k k_out.npy
holds 'no tokens in, none out' cmp -s q.npy q_out.npy
int32 | npy '<i4' '(0,)' >none.npy
works rotate --q q.npy --out-q q_out.npy --positions none.npy

# All gains are one where the model has no attention factor.
inputs 1,9,4,64 1,9,2,64 f32
correct && cp q_out.npy plain.npy
for gain in apply omit divide_out; do
    correct --gain $gain
    holds "gain $gain" cmp -s plain.npy q_out.npy
done

# Positions on three axes, for a model with sections; equal ones on all axes act as one axis.
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
int32 0 1 2 7 8 9 0 1 2 7 8 9 | npy '<i4' '(2, 2, 3)' >two.npy
refuse 5 'has shape (2, 2, 3), 2 position axes; the model has 3' rotate --q q.npy \
    --out-q beyond.npy --positions two.npy
mv plain_model.json model.json
inputs 1,9,4,64 1,9,2,64 f32

# Positions that no table reaches.
for angles in direct_texture direct_buffer; do
    for first in 2147483000 -2147483648; do
        refuse 2 "--angles: $angles does not reach from position $first to " \
            rotate --q q.npy --out-q beyond.npy --first-position $first --angles $angles
    done
done

# The device, by index, part of its name in any case, UUID and environment.
works "$vkrope" devices --json
uuid=$(sed -n 's/.*"uuid": "\([0-9a-f]*\)".*/\1/p' "$logs/out" | head -n 1)
for device in 0 llvmpipe LLVMPIPE "$uuid"; do
    correct --device "$device"
    holds "device $device" grep -q '"name": "llvmpipe' "$logs/out"
done
refuse 3 'no_such_device' rotate --q q.npy --out-q none_out.npy --device no_such_device
export VKROPE_DEVICE=no_such_device
refuse 3 'no_such_device' rotate --q q.npy --out-q none_out.npy
correct --device 0
VKROPE_DEVICE=LLVMpipe
correct
unset VKROPE_DEVICE
refuse 2 '' rotate --q q.npy --out-q none_out.npy --device 99

# Pipelines on disk: lavapipe has none to keep, so nothing is written, and no folder is missed.
mkdir pipelines
correct --pipeline-cache pipelines
correct --pipeline-cache missing
export VKROPE_PIPELINE_CACHE=pipelines
correct
unset VKROPE_PIPELINE_CACHE
rmdir pipelines

# The report.
works "$vkrope" rotate --model model.json --q q.npy --out-q q_out.npy --repeat 3 --roof --verify
holds 'at most ten lines' [ "$(wc -l <"$logs/out")" -le 10 ]
for key in device tensors model angles positions error time throughput 'copy roof' verdict; do
    holds "a line of $key" grep -q "^$key  *[^ ]" "$logs/out"
done
holds 'the verdict' \
    grep -q '^verdict .*correct: 2 304 values within the contract, at [0-9]* % of the speed of a plain copy' "$logs/out"
holds 'the line of angles' grep -q '^angles  *factored_texture, 9 positions, ' "$logs/out"
holds 'no colour in a file' sh -c '! grep -q "$(printf "\\033")" "$1"' sh "$logs/out"
works "$vkrope" rotate --model model.json --q q.npy --out-q q_out.npy
holds 'not verified' grep -q '^verdict .*not verified (add --verify)' "$logs/out"
correct --repeat 5 --roof
for key in gpu_ns bytes bytes_per_second ns share; do
    # shellcheck disable=SC2046
    holds "$key is a number" below 1e18 $(number $key)
done
finish
