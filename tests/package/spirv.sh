#!/bin/sh
# SPDX-License-Identifier: MIT
# The installed modules serve a host that knows nothing but Vulkan and their manifest: all files are
# there, and spirv_host rotates with the bits of `vkrope rotate`, from modules that `vkrope spirv`
# makes of the same list of kernels, with angle tables.
set -eu
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
"$CMAKE" --install "$BUILD" --prefix "$SCRATCH/installed" >"$SCRATCH/install.log"
installed=$SCRATCH/installed/share/vkrope/spirv
vkrope=$SCRATCH/installed/bin/vkrope
cd "$SCRATCH"
failed=0
wrong() { echo "$*"; failed=1; }

sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$installed/manifest.json" | sort >named
find "$installed" -name '*.spv' -printf '%f\n' | sort >present
cmp -s named present || wrong 'the manifest does not name the modules that are installed'
[ -s named ] || wrong 'no modules are installed'
"$CXX" -std=c++20 -O0 -Wall -Wextra -Werror -o host "$SOURCE/tests/package/spirv_host/main.cpp" \
    -lvulkan || { echo 'spirv_host does not compile'; exit 1; }
! grep -q vkrope/ "$SOURCE/tests/package/spirv_host/main.cpp" || wrong 'spirv_host includes ours'

tokens=37 q_heads=9 k_heads=3
model=$SOURCE/tests/data/models/llama-3.1-8b.json
"$vkrope" spirv --info "$SOURCE/host/tools/spirv/kernels.json" --out modules --model "$model" \
    --max-position 64
for module in "$installed"/*.spv; do
    cmp -s "$module" "modules/$(basename "$module")" || wrong "$module differs from a new one"
done

# A driver compiles each module; of each type, each access and load is run.
for element in f32 f16 bf16; do
    "$vkrope" make-input --shape 1,$tokens,$q_heads,128 --dtype $element --out q.npy
    "$vkrope" make-input --shape 1,$tokens,$k_heads,128 --dtype $element --seed 2 --out k.npy
    bytes=$((tokens * 128 * 2))
    [ $element != f32 ] || bytes=$((2 * bytes))
    for kernel in ${element}_half_split_128_computed ${element}_interleaved_128_direct_buffer; do
        pairing=half_split angles=computed
        case $kernel in *interleaved*) pairing=interleaved angles=direct_buffer ;; esac
        "$vkrope" rotate --model "$model" --pairing $pairing --angles $angles --q q.npy --k k.npy \
            --out-q q_out.npy --out-k k_out.npy >rotate.log 2>&1 ||
            { wrong "vkrope rotate: $kernel" && cat rotate.log; }
        for module in modules/"$kernel".*.spv; do
            module=$(basename "$module")
            tail -c $((bytes * q_heads)) q.npy >q
            tail -c $((bytes * k_heads)) k.npy >k
            ./host modules "$module" "$kernel.angles.bin" $tokens $q_heads $k_heads 128 q k ||
                wrong "spirv_host fails with $module"
            ! tail -c $((bytes * q_heads)) q.npy | cmp -s - q || wrong "$module rotates nothing"
            if tail -c $((bytes * q_heads)) q_out.npy | cmp -s - q &&
                tail -c $((bytes * k_heads)) k_out.npy | cmp -s - k; then
                echo "$module: the bits of vkrope rotate"
            else
                wrong "$module: other values than vkrope rotate"
            fi
        done
    done
done >log
ran=$(grep -c "bits of vkrope rotate" log || true)
[ "$ran" -gt 0 ] || wrong 'no modules were run'
cat log
exit $failed
