#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the kit for arm64, unpacked from its archive, in a system of Debian's arm64 packages: proot
# starts each program there under qemu. The kit must rotate with the bits of this machine's
# programs, pass conformance checks of pairings, angles and turns, and write a report that a page
# shows beside one of this machine. The argument is the archive.
#
# ARM64   folder with the files of Debian's arm64 packages, from ./dev; if empty, the test skips
set -eu
left_out() {
    echo "skipped: $*"
    exit 77
}
[ -n "${ARM64:-}" ] || left_out "no arm64 lavapipe (VKROPE_ARM64_ROOT is empty)"
[ -n "${VK_DRIVER_FILES:-}" ] || left_out 'no lavapipe (VKROPE_LAVAPIPE_ICD is empty)'
[ -e "$1" ] || left_out "there is no $1: ./dev bundle --for arm64 makes it"
for program in proot qemu-aarch64-static; do
    command -v $program >/dev/null || left_out "no $program (Debian: proot, qemu-user-static)"
done
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
cd "$SCRATCH"
tar -xzf "$1"
kit=$SCRATCH/$(basename "$1" .tar.gz)
[ "$(cat "$kit/lib/glibc")" = 2.35 ] || {
    echo "FAILED: the kit needs glibc $(cat "$kit/lib/glibc"); JetPack 6 and Ubuntu 22.04 have 2.35"
    exit 1
}
cp "$SOURCE/tests/data/models/qwen2.5-7b.yarn.json" model.json

# emulated COMMAND...: runs the command in the arm64 system, which lacks the file $hidden. The
# emulator is slow, so the time limit of the device must be long. The driver is named because
# proot 5.1 does not translate the paths of faccessat2, by which the loader looks for drivers.
hidden=
driver=/usr/share/vulkan/icd.d/lvp_icd.aarch64.json
emulated() {
    proot -q qemu-aarch64-static -r "$ARM64" -b /proc -b /dev -b "$SCRATCH" -w "$SCRATCH" \
        ${hidden:+-b /dev/null:$hidden} \
        /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ VKROPE_TIMEOUT=86400 \
        VK_DRIVER_FILES=$driver VK_ICD_FILENAMES=$driver "$@"
}
failed=0
wrong() { echo "FAILED: $*"; failed=1; }
vkrope=$BUILD/bin/vkrope

# Without a loader in the system, the kit must use its own.
rm -f "$ARM64/etc/ld.so.cache"
hidden=/usr/lib/aarch64-linux-gnu/libvulkan.so.1
emulated "$kit/vkrope" devices >listed 2>note || wrong 'without a loader nothing is found'
grep -q llvmpipe listed || wrong 'the loader of the kit finds no driver'
grep -q 'the one in the kit is used' note || wrong 'it is not said that the loader is ours'
hidden=
emulated ldconfig
emulated "$kit/vkrope" devices 2>note || wrong './vkrope devices'
! grep -q 'the one in the kit is used' note || wrong "the system's loader is not used"

for dtype in f32 f16 bf16; do
    "$vkrope" make-input --shape 2,37,4,128 --dtype $dtype --seed 1 --out q.npy
    "$vkrope" make-input --shape 2,37,2,128 --dtype $dtype --seed 2 --out k.npy
    for angles in factored_texture computed direct_texture direct_buffer; do
        for pairing in half_split interleaved; do
            set -- --model model.json --pairing $pairing --angles $angles --q q.npy --k k.npy \
                --first-position 3000
            "$vkrope" rotate "$@" --out-q q_here.npy --out-k k_here.npy >here.log 2>&1 ||
                wrong "vkrope rotate $* fails here"
            emulated "$kit/lib/bin/vkrope" rotate "$@" --out-q q_arm64.npy --out-k k_arm64.npy \
                --verify >arm64.log 2>&1 || { wrong "rotate $*" && cat arm64.log; }
            if cmp q_here.npy q_arm64.npy && cmp k_here.npy k_arm64.npy; then
                echo "rotate $dtype $angles $pairing: the same bits"
            else
                wrong "rotate $*: other bits"
            fi
        done
    done
    for type in q8_0 q4_0 e4m3fn; do
        set -- --model model.json --k k.npy --store k=$type --hadamard k=64
        [ $type != e4m3fn ] || set -- "$@" --store-scale k=0.5
        "$vkrope" rotate "$@" --out-k here.npy >here.log 2>&1 || wrong "rotate $* fails here"
        emulated "$kit/lib/bin/vkrope" rotate "$@" --out-k arm64.npy --verify >arm64.log 2>&1 ||
            { wrong "rotate $*" && cat arm64.log; }
        if cmp here.npy arm64.npy; then
            echo "rotate $dtype $type: the same bytes"
        else
            wrong "rotate $*: other bytes"
        fi
    done
done

set -- --filter 'angles/*,operations/*pair*,operations/*phases*'
emulated "$kit/report" "$@" >out 2>err || { wrong "./report $*" && cat err && grep -v '^pass' out; }
echo "./report: $(grep -c '^pass' out) checks pass"
"$BUILD/bin/vkrope-conformance" "$@" --json here.json >here.log 2>&1 ||
    wrong "vkrope-conformance $* fails here"
"$BUILD/bin/vkrope-conformance" --page page.html here.json vkrope-report-*.json ||
    wrong 'there is no page of the reports'
grep -qF '>Linux aarch64<' page.html || wrong 'the page does not name the system'
for report in here.json vkrope-report-*.json; do
    grep -qF ">$report<" page.html || wrong "the page does not show $report"
done
exit $failed
