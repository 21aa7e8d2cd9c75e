#!/bin/sh
# SPDX-License-Identifier: MIT
# With runtime, model, tools, tests and bench off, the headers of Vulkan and SPIR-V, and glslang
# are all that the project needs. weight.sh measures what this builds, each library as one unit.
set -eu
rm -rf "$SCRATCH"
# CMake cannot find the packages that must not be needed.
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
# No symbol of Vulkan is needed at link time: all go through the caller's vkGetInstanceProcAddr.
if nm -C "$SCRATCH"/host/kernel/libvkrope_kernel.a | grep -E ' U vk[A-Z]'; then
    echo "the kernel tier links against Vulkan"
    exit 1
fi
