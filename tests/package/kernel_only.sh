#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that with runtime, model, tools, tests and bench off, the project needs only glslang and
# the headers of Vulkan and SPIR-V. weight.sh measures these libraries, each built as one unit.
set -eu
rm -rf "$SCRATCH"
# CMake is told not to find the packages that the build must not need.
"$CMAKE" -S "$SOURCE" -B "$SCRATCH" -DCMAKE_CXX_COMPILER="$CXX" -DVKROPE_WERROR=ON \
    -DCMAKE_BUILD_TYPE=MinSizeRel -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
    -DVKROPE_RUNTIME=OFF -DVKROPE_MODEL=OFF -DVKROPE_TOOLS=OFF -DVKROPE_TESTS=OFF \
    -DVKROPE_BENCH=OFF -DVKROPE_INSTALL=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_VulkanMemoryAllocator=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_doctest=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON
"$CMAKE" --build "$SCRATCH" -j 2
"$CMAKE" --install "$SCRATCH" --prefix "$SCRATCH/installed"
for library in libvkrope_kernel.a libvkrope_frequencies.a; do
    [ -n "$(find "$SCRATCH/installed" -name $library)" ] ||
        { echo "$library was not installed"; exit 1; }
done
# The library must not link to Vulkan; it calls Vulkan through the caller's vkGetInstanceProcAddr.
if nm -C "$SCRATCH"/host/kernel/libvkrope_kernel.a | grep -E ' U vk[A-Z]'; then
    echo "the kernel tier links against Vulkan"
    exit 1
fi
