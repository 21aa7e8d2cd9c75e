#!/bin/sh
# SPDX-License-Identifier: MIT
# SPIRV-Cross, which MoltenVK translates shaders with, turns the modules of kernels of every kind
# into Metal's language, version 2.1, for macOS and for iOS; and the products and sums that must not
# be contracted stay marked. No Metal compiler sees the result.
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

# kernel NAME FIELDS: one of the kernels, for 128 channels.
kernel() {
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
for module in modules/*.spv; do
    for system in '' --msl-ios; do
        count=$((count + 1))
        # shellcheck disable=SC2086 # an option, or none
        if ! spirv-cross --msl --msl-version 20100 $system --output out.metal "$module" \
            >log 2>&1; then
            echo "FAILED: $module $system" && cat log
            failed=1
        fi
        # NoContraction becomes functions that are compiled without optimisation. V is copied.
        case $module in *.v.spv) continue ;; esac
        grep -q 'spvFMul(' out.metal || {
            echo "FAILED: $module $system: nothing is marked against contraction"
            failed=1
        }
    done
done
[ "$count" -ge 300 ] || { echo "FAILED: only $count translations"; failed=1; }
echo "$count translations to MSL 2.1"
exit $failed
