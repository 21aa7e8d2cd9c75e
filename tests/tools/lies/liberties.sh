#!/bin/sh
# SPDX-License-Identifier: MIT
# All checks pass on a driver that does nothing wrong: through the layer that tells no lie, and with
# each liberty that Vulkan gives. Arguments: the tool, the folder of the layer's manifest, the
# program that lists the lies, the page of the guide that names them, and a filter; without: all
# checks.
set -u
tool=$1 VK_LAYER_PATH=$2 list=$3 page=$4 filter=${5:-}
VK_INSTANCE_LAYERS=VK_LAYER_VKROPE_lies
export VK_LAYER_PATH VK_INSTANCE_LAYERS VKROPE_LIE
out=$(mktemp)
trap 'rm -f "$out"' EXIT
trap 'exit 1' HUP INT TERM
failures=0
{ printf 'liberty\tnone\tdoes nothing wrong\n' && "$list" | grep '^liberty'; } >"$out.names"
while IFS='	' read -r _ name what; do
    VKROPE_LIE=$name
    if "$tool" ${filter:+--filter "$filter"} >"$out" 2>&1 </dev/null; then
        unsupported=$(grep -c '^unsupported' "$out")
        echo "$name: $(grep -c '^pass' "$out") checks pass, $unsupported are unsupported"
    else
        failures=$((failures + 1))
        echo "FAILED: $name: a driver that $what"
        grep -E '^(fail|error|unstable)' "$out"
    fi
    [ "$name" = none ] || grep -qxF "| $what |" "$page" || {
        failures=$((failures + 1))
        echo "FAILED: the page does not name: $what"
    }
done <"$out.names"
rm -f "$out.names"
[ "$failures" = 0 ]
