#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/results/devices.svg is what vkrope-conformance draws of the reports beside it and of the
# figures in bench/results. Arguments: the tool, tests/results, bench/results. To draw it anew:
# ... picture.sh TOOL tests/results bench/results draw
set -eu
tool=$1
results=$2
figures=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/all" "$work/all/tests" "$work/all/bench"
cp "$results"/*.json "$work/all/tests"
cp "$figures"/*.json "$work/all/bench"
"$tool" --matrix "$work/all" --picture "$work/devices.svg"
[ "${4:-}" != draw ] || exec cp "$work/devices.svg" "$results/devices.svg"
cmp "$work/devices.svg" "$results/devices.svg" ||
    { echo "FAILED: draw $results/devices.svg anew: see $0" && exit 1; }
