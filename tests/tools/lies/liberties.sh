#!/bin/sh
# SPDX-License-Identifier: MIT
# All checks pass on a driver that does nothing wrong: with each liberty that Vulkan gives, and, of
# the checks of a filter, through the layer that tells no lie. Several liberties are taken at once:
# to see which of a set fails, run the tool with VKROPE_LIE=NAME. Arguments: the tool, the folder of
# the layer's manifest, the program that lists the lies, a page that is not read, and a filter;
# without: all checks.
set -u
tool=$1 VK_LAYER_PATH=$2 list=$3 filter=${5:-}
VK_INSTANCE_LAYERS=VK_LAYER_VKROPE_lies
export VK_LAYER_PATH VK_INSTANCE_LAYERS VKROPE_LIE
# Liberties that would hide what another one reaches are in different sets: four storage buffers
# part Q from K, and without float controls the modules declare no modes.
sets='fresh_memory_is_garbage,small_storage_range,coarse_offsets,is_a_gpu,one_nan
out_of_bounds_reads_0,no_float_controls
subnormals_flushed,four_storage_buffers'
out=$(mktemp)
trap 'rm -f "$out"' EXIT
trap 'exit 1' HUP INT TERM
failures=0
wrong() {
    failures=$((failures + 1))
    echo "FAILED: $*"
}

names=$("$list" | sed -n 's/^liberty\t\([^\t]*\)\t.*/\1/p')
[ "$(echo "$names" | sort)" = "$(echo "$sets" | tr , '\n' | sort)" ] ||
    wrong 'the sets are not the liberties of the layer, each once'
# All checks run without the layer, too.
for VKROPE_LIE in ${filter:+none} $sets; do
    if "$tool" ${filter:+--filter "$filter"} >"$out" 2>&1 </dev/null; then
        unsupported=$(grep -c '^unsupported' "$out")
        echo "$VKROPE_LIE: $(grep -c '^pass' "$out") checks pass, $unsupported are unsupported"
    else
        wrong "a driver that takes the liberties $VKROPE_LIE"
        grep -E '^(fail|error|unstable)' "$out"
    fi
done
[ "$failures" = 0 ]
