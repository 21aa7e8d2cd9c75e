#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that host/guide/accuracy.svg, the picture of errors against position, is the figure of a
# report's page, or draws a missing picture. Bits, and so errors, are the same on any device.
#
#     accuracy_picture.sh CONFORMANCE PICTURE LAVAPIPE
set -eu
[ -n "$3" ] || { echo 'skipped: VKROPE_LAVAPIPE_ICD is empty'; exit 77; }
export LC_ALL=C VK_DRIVER_FILES="$3" VK_ICD_FILENAMES="$3"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" --filter angles/error_by_position --json "$work/report.json" >"$work/log" 2>&1 &&
    "$1" --page "$work/page.html" "$work/report.json" >>"$work/log" 2>&1 ||
    { cat "$work/log" && exit 1; }
sed -n '/^<?xml/,/^<\/svg>/p' "$work/page.html" >"$work/drawn.svg"
[ -s "$work/drawn.svg" ] || { echo 'the page has no figure'; exit 1; }
[ -e "$2" ] || cp "$work/drawn.svg" "$2"
cmp "$work/drawn.svg" "$2" || { echo "remove $2 and run this again, if errors changed"; exit 1; }
