#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that the libraries for Windows work under Wine, on this machine's lavapipe: a program of
# ours rotates with the bits of `vkrope rotate`.
set -eu
left_out() {
    echo "skipped: $*"
    exit 77
}
compiler=x86_64-w64-mingw32-g++-posix
wine=$(command -v wine64 || echo /usr/lib/wine/wine64)
[ -n "${VK_DRIVER_FILES:-}" ] || left_out 'no lavapipe (VKROPE_LAVAPIPE_ICD is empty)'
command -v $compiler >/dev/null || left_out "no $compiler (Debian: g++-mingw-w64-x86-64)"
[ -x "$wine" ] || left_out 'no Wine (Debian: wine64)'
command -v xvfb-run >/dev/null ||
    left_out "no xvfb-run (Debian: xvfb, xauth): Wine's Vulkan wants a display"
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH/include" "$SCRATCH/json"
cached() { sed -n "s/^$1:[A-Z]*=//p" "$BUILD/CMakeCache.txt" | head -n 1; }
# The headers are the same for every machine.
include=$(cached Vulkan_INCLUDE_DIR)
for folder in vulkan vk_video; do
    [ ! -d "${include:-/usr/include}/$folder" ] ||
        ln -s "${include:-/usr/include}/$folder" "$SCRATCH/include/$folder"
done
ln -s /usr/include/nlohmann "$SCRATCH/include/nlohmann"
# Replaces the CMake package of Debian's nlohmann_json, which adds /usr/include: other headers there
# are not for Windows.
cat >"$SCRATCH/json/nlohmann_jsonConfig.cmake" <<END
add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
target_include_directories(nlohmann_json::nlohmann_json INTERFACE "$SCRATCH/include")
END
echo 'set(PACKAGE_VERSION_COMPATIBLE TRUE)' >"$SCRATCH/json/nlohmann_jsonConfigVersion.cmake"
"$CMAKE" -S "$SOURCE/tests/package/windows" -B "$SCRATCH/build" -DVKROPE_SOURCE="$SOURCE" \
    -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_SYSTEM_PROCESSOR=x86_64 -DCMAKE_CXX_COMPILER=$compiler \
    -DCMAKE_C_COMPILER="${compiler%g++-posix}gcc-posix" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG' -DVKROPE_WERROR=ON \
    -DVulkan_INCLUDE_DIR="$SCRATCH/include" -DVulkan_LIBRARY=not-linked \
    -DCMAKE_DISABLE_FIND_PACKAGE_VulkanHeaders=ON \
    -Dnlohmann_json_DIR="$SCRATCH/json" \
    -DVKROPE_SPIRV_HPP="$(cached VKROPE_SPIRV_HPP)" \
    -DCMAKE_PREFIX_PATH="$(cached CMAKE_PREFIX_PATH)" >"$SCRATCH/build.log" 2>&1 &&
    "$CMAKE" --build "$SCRATCH/build" --target rotate -j 2 >>"$SCRATCH/build.log" 2>&1 ||
    { tail -n 40 "$SCRATCH/build.log" && exit 1; }

cd "$SCRATCH"
export WINEPREFIX="$SCRATCH/wine" WINEDEBUG=-all
failed=0
wrong() { echo "FAILED: $*"; failed=1; }
vkrope=$BUILD/bin/vkrope
cp "$SOURCE/tests/data/models/qwen2.5-7b.yarn.json" model.json
tokens=37 q_heads=4 k_heads=2
for dtype in f32 f16 bf16; do
    "$vkrope" make-input --shape 1,$tokens,$q_heads,128 --dtype $dtype --seed 1 --out q.npy
    "$vkrope" make-input --shape 1,$tokens,$k_heads,128 --dtype $dtype --seed 2 --out k.npy
    bytes=$((tokens * 128 * 2))
    [ $dtype != f32 ] || bytes=$((2 * bytes))
    tail -c $((bytes * q_heads)) q.npy >q.raw
    tail -c $((bytes * k_heads)) k.npy >k.raw
    "$vkrope" rotate --model model.json --first-position 3000 --q q.npy --k k.npy \
        --out-q q_here.npy --out-k k_here.npy >here.log 2>&1 ||
        { wrong "vkrope rotate of $dtype" && cat here.log; }
    xvfb-run -a "$wine" build/rotate.exe model.json $dtype $tokens $q_heads q.raw $k_heads k.raw \
        3000 >wine.log 2>&1 || { wrong "rotate.exe of $dtype" && cat wine.log; }
    if tail -c $((bytes * q_heads)) q_here.npy | cmp - q.raw &&
        tail -c $((bytes * k_heads)) k_here.npy | cmp - k.raw; then
        echo "$dtype: the bits of vkrope rotate"
    else
        wrong "$dtype: other bits"
    fi
done
exit $failed
