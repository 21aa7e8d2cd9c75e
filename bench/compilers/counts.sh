#!/bin/sh
# SPDX-License-Identifier: MIT
# Counts what the compilers of GPUs make of vkrope's kernels: makes a Debian sid with Mesa's drivers
# and libraries that stand for the GPUs, compiles counts.cpp there, runs it for each chip, and
# writes bench/results/compilers.txt. Nothing runs on a GPU.
set -u
root=$SCRATCH/root
here=$SOURCE/bench/compilers
results=$SOURCE/bench/results/compilers.txt
# shellcheck source=tests/package/empty_debian.sh
. "$SOURCE/tests/package/empty_debian.sh"
enter_debian sid

# Columns: driver and chip; architecture for which Debian has the driver; the part of it that stands
# for the kernel's driver; its part for Vulkan; variables.
chips='
NVK_Ampere     x86_64  nouveau   nouveau   NOUVEAU_CHIPSET=0x172
NVK_Turing     x86_64  nouveau   nouveau   NOUVEAU_CHIPSET=0x162
NVK_Blackwell  x86_64  nouveau   nouveau   NOUVEAU_CHIPSET=0x1b2
RADV_Navi31    x86_64  amdgpu    radeon    AMDGPU_GPU_ID=navi31
RADV_gfx1201   x86_64  amdgpu    radeon    AMDGPU_GPU_ID=gfx1201
RADV_Vega20    x86_64  amdgpu    radeon    AMDGPU_GPU_ID=vega20
ANV_DG2        x86_64  intel     intel     PCI_ID=0x56a0
ANV_BMG        x86_64  intel     intel     PCI_ID=0xe20b
Turnip_A750    x86_64  freedreno freedreno FD_GPU_ID=750
Turnip_A830    x86_64  freedreno freedreno FD_GPU_ID=830
Honeykrisp_M1  x86_64  asahi     asahi
PanVK_G610     aarch64 panfrost  panfrost  PAN_GPU_ID=a867 PAN_I_WANT_A_BROKEN_VULKAN_DRIVER=1
V3DV_7.1       aarch64 v3d       broadcom  V3D_GPU_ID=71'

# The lists of a mirror may be old.
# shellcheck disable=SC2016 # the variable is the inner shell's
inside DEBIAN_FRONTEND=noninteractive sh -ec '
    dpkg --add-architecture arm64
    apt-get -o Acquire::Check-Valid-Until=false update
    apt-get install -y --no-install-recommends g++ g++-aarch64-linux-gnu qemu-user \
        $(for arch in amd64 arm64; do
            printf "%s:$arch " mesa-vulkan-drivers mesa-drm-shim libvulkan-dev
        done)' >"$SCRATCH/apt.log" 2>&1 ||
    skip "sid does not install Mesa: $(tail -n 1 "$SCRATCH/apt.log")"
work=$root/counts
sh "$SOURCE/host/packaging/amalgamate.sh" "$SOURCE" "$work/vkrope" || exit 1
cp "$here"/*.c* "$SOURCE"/tests/package/consumers/engine/gpu.?pp "$work/" || exit 1
inside sh -ec 'cd /counts
    cc -O1 -shared -fPIC intel.c -o /usr/lib/x86_64-linux-gnu/libintel_noop_drm_shim.so
    g++ -std=c++20 -O1 -I. ./*.cpp vkrope/*.cpp -o x86_64 -lvulkan &
    aarch64-linux-gnu-g++ -std=c++20 -O1 -I. ./*.cpp vkrope/*.cpp -o aarch64 -lvulkan
    wait $!' || exit 1

# What libdrm reads of a GPU by Intel; the other drivers bring their own.
gpu=$root/sys/devices/gpu
mkdir -p "$gpu/drm" "$root/sys/bus/pci" "$root/sys/dev/char/226:128" "$root/dev/dri" || exit 1
ln -s ../../bus/pci "$gpu/subsystem"
ln -s ../../../devices/gpu "$root/sys/dev/char/226:128/device"
mknod "$root/dev/dri/renderD128" c 226 128
echo PCI_SLOT_NAME=0000:00:03.0 >"$gpu/uevent"
echo 0x8086 | tee "$gpu/vendor" "$gpu/revision" "$gpu/subsystem_vendor" >"$gpu/subsystem_device"

failed=0 names=
while read -r chip arch kernel vulkan variables; do
    [ -n "$chip" ] || continue
    names="$names $chip"
    echo "${variables#*=}" >"$gpu/device"
    preload=LD_PRELOAD=/usr/lib/$arch-linux-gnu/lib${kernel}_noop_drm_shim.so
    case $arch in
        x86_64) set -- "$preload" "/counts/$arch" ;;
        *) set -- "qemu-$arch" -E "$preload" "/counts/$arch" ;;
    esac
    # shellcheck disable=SC2086 # a word for each variable
    inside MESA_SHADER_CACHE_DISABLE=true $variables \
        "VK_DRIVER_FILES=/usr/share/vulkan/icd.d/${vulkan}_icd.json" "$@" >"$work/$chip" \
        </dev/null || { echo "FAILED: $chip" && failed=1; }
done <<END
$chips
END
[ $failed = 0 ] || exit 1
# shellcheck disable=SC2016 # the variable is dpkg-query's
mesa=$(inside dpkg-query -W -f '${Version}' mesa-vulkan-drivers:amd64)
commit=$(git -C "$SOURCE" describe --always --dirty 2>/dev/null)
before=$(sed -n 's/^before *//p' "$results" 2>/dev/null)
# shellcheck disable=SC2086 # a word for each chip
(cd "$work" && awk -v old="$results" -v facts="mesa      $mesa
before    ${before:-$commit}
counted   $(date +%F), $commit
" -f "$here/counts.awk" $names) >"$SCRATCH/new"
failed=$?
cat "$SCRATCH/new"
[ $failed != 0 ] || mv "$SCRATCH/new" "$results"
exit $failed
