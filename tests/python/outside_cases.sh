#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs cases that are not part of this repository if VKROPE_CASES names a folder of such cases. The
# cases must pass on lavapipe and on SwiftShader, and both devices must write the same bytes.
# Arguments: the driver manifests of the two devices, the folder that the build was configured with,
# and the command that starts Python.
set -u
LC_ALL=C
export LC_ALL
lavapipe=$1
swiftshader=$2
cases=${VKROPE_CASES:-${3:-}}
shift 3
skip() {
    echo "conformance_outside: skipped: $*"
    exit 77
}
[ -n "$cases" ] || skip 'VKROPE_CASES names no folder of cases'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# on DEVICE MANIFEST COMMAND...: writes the outputs to $work/DEVICE; returns the exit code.
on() {
    device=$1
    manifest=$2
    shift 2
    VK_DRIVER_FILES=$manifest VK_ICD_FILENAMES=$manifest "$@" "$(dirname "$0")/cases.py" \
        --device "$device" "$cases" --write-outputs "$work/$device"
}
[ -n "$lavapipe" ] || skip 'VKROPE_LAVAPIPE_ICD is empty: no device'
on llvmpipe "$lavapipe" "$@" || exit
[ -n "$swiftshader" ] || skip 'VKROPE_SWIFTSHADER_ICD is empty: no second device'
on SwiftShader "$swiftshader" "$@" || exit
if ! diff -rq "$work/llvmpipe" "$work/SwiftShader"; then
    echo 'conformance_outside: the devices differ'
    exit 1
fi
files=$(find "$work/llvmpipe" -name '*.npy' | wc -l)
echo "conformance_outside: $files files have the same bytes on both devices"
[ "$files" -gt 0 ]
