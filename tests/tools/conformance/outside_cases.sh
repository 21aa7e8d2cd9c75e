#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs cases that are not part of this repository if VKROPE_CASES names a folder of such cases. The
# cases must pass on lavapipe and on SwiftShader, and both devices must write the same bytes.
# Arguments: the command vkrope-conformance, the driver manifests of the two devices, and the folder
# that the build was configured with.
set -u
LC_ALL=C
export LC_ALL
tool=$1
lavapipe=$2
swiftshader=$3
cases=${VKROPE_CASES:-${4:-}}
skip() {
    echo "conformance_outside: skipped: $*"
    exit 77
}
[ -n "$cases" ] || skip 'VKROPE_CASES names no folder of cases'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
VKROPE_TIMEOUT=86400 # CTest ends a hang
export VKROPE_TIMEOUT
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # drivers leak
export ASAN_OPTIONS

# on DEVICE MANIFEST: writes the outputs to $work/DEVICE; returns the code of the worst verdict.
on() {
    VKROPE_DEVICE=$1 VK_DRIVER_FILES=$2 VK_ICD_FILENAMES=$2 "$tool" --validation --no-builtin \
        --cases "$cases" --write-outputs "$work/$1"
}
[ -n "$lavapipe" ] || skip 'VKROPE_LAVAPIPE_ICD is empty: no device'
on llvmpipe "$lavapipe" || exit
[ -n "$swiftshader" ] || skip 'VKROPE_SWIFTSHADER_ICD is empty: no second device'
on SwiftShader "$swiftshader" || exit
if ! diff -rq "$work/llvmpipe" "$work/SwiftShader"; then
    echo 'conformance_outside: the devices differ'
    exit 1
fi
files=$(find "$work/llvmpipe" -name '*.npy' | wc -l)
echo "conformance_outside: $files files have the same bytes on both devices"
[ "$files" -gt 0 ]
