#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the page of `vkrope-bench --html` in a browser at phone and desktop width, light and dark.
# Arguments: headless Chromium, which may be empty; the folder of bench.sh with page.html and the
# run.json of the same run; whether a missing tool is a failure.
# shellcheck disable=SC2034 # page.sh reads these variables
set -u
name=bench_page
chromium=$1
kept=$2
complete=$3
rules=$(dirname "$0")/page.awk
# shellcheck source=tests/tools/page.sh
. "$(dirname "$0")/../page.sh"
needs "$chromium" 'there is no headless Chromium'
needs "$kept/page.html" "there is no $kept/page.html, which the test bench makes"

# The required content of the page, one line each: section, row, kind of bar, share of the roof.
awk 'BEGIN {
        at["rope"] = "vkrope and the roof"; at["rival"] = "Rivals"; at["cpu"] = "Without a GPU"
        at["growth"] = "How cost grows"; at["copy"] = "The roof"
        at["copy_buffer"] = "vkCmdCopyBuffer"; at["host"] = "On the host"
        at["empty"] = "An empty dispatch"
    }
    /"run_name":/ { name = $2; gsub(/"|\/manual_time|,/, "", name); roof = speedup = 0 }
    /"roof":/ { roof = $2 + 0 }
    /"vkrope_speedup":/ { speedup = $2 + 0 }
    /"aggregate_name":/ { print "the run has repetitions" }
    /^ *}/ && name != "" {
        kind = row = name
        sub(/\/.*/, "", kind)
        sub(/^[^\/]*\//, "", row)
        print at[kind] "\t" (kind == "growth" ? "-" : row) \
            "\t" (kind == "rival" ? "other" : "fill") "\t" roof
        if (kind == "rival") print at[kind] "\t" row "\tfill\t" roof * speedup
        name = ""
    }' "$kept/run.json" >"$work/expected"
for section in 'vkrope and the roof' Rivals 'Without a GPU' 'How cost grows' 'The roof' \
    vkCmdCopyBuffer 'An empty dispatch' 'On the host'; do
    grep -q "^$section	" "$work/expected" || wrong "run.json has nothing for the section $section"
done

page=$kept/page.html
extra=$work/expected
for width in 360 1200; do
    for scheme in light dark; do
        judge "$page" $width $scheme
        echo "$width pixels, $scheme: $(grep -c '^bar' "$work/facts") bars," \
            "$(grep -c '^section' "$work/facts") sections," \
            "$(wc -l <"$work/problems") problems"
        [ ! -s "$work/problems" ] || { wrong "$width pixels, $scheme:" && cat "$work/problems"; }
    done
done

seeded 'no section Rivals' 's|<h2>Rivals</h2>|<h2>Others</h2>|'
seeded '^bar .*, not ' \
    's|<rect class="fill" y="0" width="[0-9.]*"|<rect class="fill" y="0" width="33"|'
seeded 'no row' 's|<tr><td>decode_b1/|<tr><td>decode_b2/|'
exit $failed
