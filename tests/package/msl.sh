#!/bin/sh
# SPDX-License-Identifier: MIT
# SPIRV-Cross, which MoltenVK translates shaders with, turns the modules of kernels of every kind
# into Metal's language, version 2.1, for macOS and for iOS; and the products and sums that must not
# be contracted stay marked. No Metal compiler sees the result. The argument says which kernels:
# `every`, or `some`: each source of angles with each pairing, each step and each store once, with
# the element types in turn, and each module for one of the systems.
set -eu
command -v spirv-cross >/dev/null || {
    echo 'skipped: there is no spirv-cross (./dev test --thorough installs it)'
    [ "${COMPLETE:-}" != ON ] || exit 1
    exit 77
}
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
cd "$SCRATCH"
vkrope=$BUILD/bin/vkrope
which=$1

# kernel NAME FIELDS: one of the kernels, for 128 channels.
kernels=0
kernel() {
    kernels=$((kernels + 1)) # 20 of each type: each third is of all kinds
    [ "$which" = every ] || [ $((kernels % 3)) = 0 ] || return 0
    printf '%s{"name": "%s", "rotary_dim": 128, %s}' "$comma" "$1" "$2"
    comma=', '
}
comma=
{
    printf '['
    for element in f32 f16 bf16; do
        row="{\"head_dim\": 128, \"in\": \"$element\"}"
        q_and_k="\"q\": $row, \"k\": $row"
        for angles in factored_texture computed direct_texture direct_buffer cos_sin_cache; do
            for pairing in half_split interleaved; do
                kernel "$element.$angles.$pairing" \
                    "$q_and_k, \"angles\": \"$angles\", \"pairing\": \"$pairing\""
            done
        done
        v="\"v\": $row"
        kernel "$element.scatter" "$q_and_k, $v, \"positions\": \"ids\", \"scatter_k\": true"
        norm='{"norm": {"kind": "rms", "weight": "channel", "eps": 1e-6}}'
        kernel "$element.norms" "$q_and_k, $v, \"q_finish\": $norm, \"k_finish\": $norm"
        for type in q8_0 q4_0 q4_1 q5_0 q5_1 e4m3fn e5m2 int8; do
            kernel "$element.$type" "\"k\": {\"head_dim\": 128, \"in\": \"$element\",
                \"out\": \"$type\"}, \"k_finish\": {\"hadamard\": 128}"
        done
    done
    printf ']'
} >kernels.json
"$vkrope" spirv --info kernels.json --out modules
count=0 failed=0
# translate MODULE [OPTION]
translate() {
    count=$((count + 1))
    spirv-cross --msl --msl-version 20100 ${2:+"$2"} --output out.metal "$1" >log 2>&1 ||
        { echo "FAILED: $*" && cat log && failed=1; }
    # NoContraction becomes functions that are compiled without optimisation. V is copied.
    case $1 in *.v.spv) return 0 ;; esac
    grep -q 'spvFMul(' out.metal ||
        { echo "FAILED: $*: nothing is marked against contraction" && failed=1; }
}
for module in modules/*.spv; do
    case $which$((count % 2)) in
        some0) translate "$module" ;;
        some1) translate "$module" --msl-ios ;;
        *) translate "$module" && translate "$module" --msl-ios ;;
    esac
done
[ "$count" -gt 0 ] || { echo 'FAILED: there are no modules'; failed=1; }
echo "$count translations to MSL 2.1"
exit $failed
