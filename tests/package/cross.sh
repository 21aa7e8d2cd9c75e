#!/bin/sh
# SPDX-License-Identifier: MIT
# Compiles kernel, frequencies and the C interface for another system, with the project's warnings
# as errors. Nothing is run. Each library is one unit without optimisation, because this takes a
# quarter of the time and still finds whatever the system lacks. The argument is the compiler,
# x86_64-w64-mingw32-g++ or aarch64-linux-gnu-g++.
#
# COMPLETE  if ON, a missing compiler fails the test
set -eu
compiler=$1
command -v "$compiler" >/dev/null || {
    echo "skipped: $compiler is not installed (Debian: g++-aarch64-linux-gnu, g++-mingw-w64-x86-64)"
    [ "${COMPLETE:-}" != ON ] || exit 1
    exit 77
}
headers=$(sed -n 's/^Vulkan_INCLUDE_DIR:[A-Z]*=//p;s/^VulkanHeaders_INCLUDE_DIRS*:[A-Z]*=//p' \
    "$BUILD/CMakeCache.txt" | head -n 1)
headers=${headers:-/usr/include}
[ -f "$headers/vulkan/vulkan_core.h" ] || { echo "skipped: no Vulkan headers in $headers";
    exit 77; }

rm -rf "$SCRATCH"
# Vulkan's headers are the same for every machine; other headers in their folder are for this one.
mkdir -p "$SCRATCH/include"
for folder in vulkan vk_video; do
    [ ! -d "$headers/$folder" ] || ln -s "$headers/$folder" "$SCRATCH/include/$folder"
done
spirv_header=$(sed -n 's/^VKROPE_SPIRV_HPP:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
case $compiler in
    aarch64*) system=Linux processor=aarch64 format=aarch64 ;;
    *) system=Windows processor=x86_64 format=x86-64 ;;
esac
target=$SCRATCH/build
# The libraries need only headers, so find_package(Vulkan) gets a loader that is never linked.
"$CMAKE" -S "$SOURCE" -B "$target" -DCMAKE_SYSTEM_NAME=$system \
    -DCMAKE_SYSTEM_PROCESSOR=$processor -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_C_COMPILER="${compiler%g++}gcc" -DCMAKE_DISABLE_FIND_PACKAGE_VulkanHeaders=ON \
    -DVulkan_INCLUDE_DIR="$SCRATCH/include" \
    -DVulkan_LIBRARY=not-linked \
    -DVKROPE_SPIRV_HPP="$spirv_header" -DVKROPE_WERROR=ON \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE='-O0 -DNDEBUG' \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 \
    -DVKROPE_RUNTIME=OFF -DVKROPE_MODEL=OFF -DVKROPE_TOOLS=OFF -DVKROPE_TESTS=OFF \
    -DVKROPE_BENCH=OFF >"$target.log" 2>&1 ||
    { cat "$target.log"; exit 1; }
"$CMAKE" --build "$target" -j 2 >>"$target.log" 2>&1 || { cat "$target.log"; exit 1; }
for library in kernel frequencies; do
    file=$(find "$target/host" -name "libvkrope_$library.a")
    [ -n "$file" ] || { echo "$compiler: libvkrope_$library.a was not built"; exit 1; }
    "${compiler%g++}objdump" -f "$file" | grep -q "file format .*$format" ||
        { echo "$file is for another machine"; exit 1; }
done
# Compiles the sources of the runtime that need only Vulkan's headers.
for part in angle_table buffer device device_list host_rotation; do
    "$compiler" -std=c++20 -Wall -Wextra -Wconversion -Wshadow -Werror -DVKROPE_C_EXPORTS \
        -I"$SOURCE/host" -I"$SOURCE/host/include" \
        -isystem "$SCRATCH/include" -c "$SOURCE/host/runtime/$part.cpp" -o "$target/$part.o"
    "${compiler%g++}objdump" -f "$target/$part.o" | grep -q "file format .*$format" ||
        { echo "$part.o is for another machine"; exit 1; }
done
echo "$compiler: compiled"
