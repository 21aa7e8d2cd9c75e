#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that the programs for arm64, on arm64's lavapipe under qemu, rotate with the bits of this
# machine's programs, and pass conformance checks of pairings, angles and turns.
#
# ARM64   folder with the files of Debian's arm64 packages, from ./dev; if empty, the test skips
set -eu
left_out() {
    echo "skipped: $*"
    exit 77
}
compiler=aarch64-linux-gnu-g++
emulator=qemu-aarch64-static
[ -n "${ARM64:-}" ] || left_out "no arm64 lavapipe (VKROPE_ARM64_ROOT is empty)"
[ -n "${VK_DRIVER_FILES:-}" ] || left_out 'no lavapipe (VKROPE_LAVAPIPE_ICD is empty)'
command -v $compiler >/dev/null || left_out "no $compiler (Debian: g++-aarch64-linux-gnu)"
command -v $emulator >/dev/null || left_out "no $emulator (Debian: qemu-user-static)"
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH/include"
cached() { sed -n "s/^$1:[A-Z]*=//p" "$BUILD/CMakeCache.txt" | head -n 1; }
# The headers are the same for every machine.
include=$(cached Vulkan_INCLUDE_DIR)
for folder in vulkan vk_video nlohmann CLI fmt; do
    for parent in "${include:-/usr/include}" /usr/include; do
        [ -e "$SCRATCH/include/$folder" ] || [ ! -d "$parent/$folder" ] ||
            ln -s "$parent/$folder" "$SCRATCH/include/$folder"
    done
done
"$CMAKE" -S "$SOURCE" -B "$SCRATCH/build" -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=$compiler \
    -DCMAKE_C_COMPILER="${compiler%g++}gcc" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG' -DVulkan_INCLUDE_DIR="$SCRATCH/include" \
    -DCMAKE_DISABLE_FIND_PACKAGE_VulkanHeaders=ON \
    -DVulkan_LIBRARY="$ARM64/usr/lib/aarch64-linux-gnu/libvulkan.so.1" \
    -DVKROPE_SPIRV_HPP="$(cached VKROPE_SPIRV_HPP)" \
    -DCMAKE_PREFIX_PATH="$(cached CMAKE_PREFIX_PATH)" -Dfmt_DIR="$(cached fmt_DIR)" \
    -DCLI11_DIR="$(cached CLI11_DIR)" -DVKROPE_STANDALONE=ON -DVKROPE_C=OFF \
    -DVKROPE_TESTS=OFF -DVKROPE_BENCH=OFF >"$SCRATCH/build.log" 2>&1 &&
    "$CMAKE" --build "$SCRATCH/build" --target vkrope_tool vkrope_conformance -j 2 \
        >>"$SCRATCH/build.log" 2>&1 ||
    { tail -n 40 "$SCRATCH/build.log" && exit 1; }

# on_arm64 PROGRAM ARGUMENT...
on_arm64() {
    program=$1
    shift
    driver=$(echo "$ARM64"/usr/share/vulkan/icd.d/lvp_icd*.json)
    # The emulator is slow, so the time limit of the device must be long.
    set -- "$SCRATCH/build/bin/$program" "$@"
    VKROPE_TIMEOUT=86400 VKROPE_SELF="$emulator -L $ARM64 $1" VK_DRIVER_FILES=$driver \
        VK_ICD_FILENAMES=$driver $emulator -L "$ARM64" "$@"
}
cd "$SCRATCH"
failed=0
wrong() { echo "FAILED: $*"; failed=1; }
vkrope=$BUILD/bin/vkrope
model=$SOURCE/tests/data/models/qwen2.5-7b.yarn.json
on_arm64 vkrope devices
for dtype in f32 f16 bf16; do
    "$vkrope" make-input --shape 2,37,4,128 --dtype $dtype --seed 1 --out q.npy
    "$vkrope" make-input --shape 2,37,2,128 --dtype $dtype --seed 2 --out k.npy
    for angles in factored_texture computed direct_texture direct_buffer; do
        for pairing in half_split interleaved; do
            set -- --model "$model" --pairing $pairing --angles $angles --q q.npy --k k.npy \
                --first-position 3000
            "$vkrope" rotate "$@" --out-q q_here.npy --out-k k_here.npy >here.log 2>&1 ||
                wrong "vkrope rotate $* fails here"
            on_arm64 vkrope rotate "$@" --out-q q_arm64.npy --out-k k_arm64.npy --verify \
                >arm64.log 2>&1 || { wrong "rotate $*" && cat arm64.log; }
            if cmp q_here.npy q_arm64.npy && cmp k_here.npy k_arm64.npy; then
                echo "rotate $dtype $angles $pairing: the same bits"
            else
                wrong "rotate $*: other bits"
            fi
        done
    done
    for type in q8_0 q4_0 e4m3fn; do
        set -- --model "$model" --k k.npy --store k=$type --hadamard k=64
        [ $type != e4m3fn ] || set -- "$@" --store-scale k=0.5
        "$vkrope" rotate "$@" --out-k here.npy >here.log 2>&1 || wrong "rotate $* fails here"
        on_arm64 vkrope rotate "$@" --out-k arm64.npy --verify >arm64.log 2>&1 ||
            { wrong "rotate $*" && cat arm64.log; }
        if cmp here.npy arm64.npy; then
            echo "rotate $dtype $type: the same bytes"
        else
            wrong "rotate $*: other bytes"
        fi
    done
done
for filter in 'angles/*' 'operations/*pair*' 'operations/*phases*'; do
    on_arm64 vkrope-conformance --filter "$filter" >out 2>&1 ||
        { wrong "vkrope-conformance --filter '$filter'" && grep -v '^pass' out; }
    echo "$filter: $(grep -c '^pass' out) checks pass"
done
exit $failed
