#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks pass on a driver that does nothing wrong, with each liberty that Vulkan gives. Several
# liberties are taken at once: to see which of a set fails, run the tool with VKROPE_LIE=NAME.
# Arguments: the tool, the folder of the layer's manifest, the program that lists the lies, and
# "all": all quick checks; without: those that a liberty is for.
set -u
tool=$1 VK_LAYER_PATH=$2 list=$3 which=${4:-some}
VK_INSTANCE_LAYERS=VK_LAYER_VKROPE_lies
export VK_LAYER_PATH VK_INSTANCE_LAYERS VKROPE_LIE
# The sets, and the checks that each is for. Liberties that would hide what another one reaches are
# in different sets: four storage buffers part Q from K, and without float controls the modules
# declare no modes. The last set is part of the one before it, on a device that keeps subnormals.
memory=fresh_memory_is_garbage,out_of_bounds_reads_0,small_storage_range
sets="
$memory,coarse_offsets,is_a_gpu,one_nan limits/r*,finish/all_steps
subnormals_flushed,four_storage_buffers arithmetic/subnormals_*,values/pages_whole*
no_float_controls arithmetic/float_controls,arithmetic/subnormals_f32,elements/f32_to_f16
"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
trap 'exit 1' HUP INT TERM
failures=0
wrong() {
    failures=$((failures + 1))
    echo "FAILED: $*"
}

names=$("$list" | sed -n 's/^liberty\t\([^\t]*\)\t.*/\1/p')
[ "$(echo "$names" | sort)" = "$(echo "$sets" | cut -d ' ' -f 1 | tr , '\n' | grep . | sort)" ] ||
    wrong 'the sets are not the liberties of the layer, each once'
while read -r VKROPE_LIE filter; do
    [ -n "$VKROPE_LIE" ] || continue
    # shellcheck disable=SC2154 # read sets it
    case $which,$VKROPE_LIE in all,*,*) filter='*' ;; esac
    if "$tool" --filter "$filter" >"$out" 2>&1 </dev/null; then
        unsupported=$(grep -c '^unsupported' "$out")
        echo "$VKROPE_LIE: $(grep -c '^pass' "$out") checks pass, $unsupported are unsupported"
    else
        wrong "a driver that takes the liberties $VKROPE_LIE"
        grep -E '^(fail|error|unstable)' "$out"
    fi
done <<EOF
$sets
EOF
[ "$failures" = 0 ]
