#!/bin/sh
# SPDX-License-Identifier: MIT
# The page of `vkrope-bench --html` in a browser: on a phone and on a desk, in light and in dark.
# Arguments: headless Chromium, which may be empty; the folder with page.html and the run.json of
# the same run, which tests/tools/bench/bench.sh leaves; whether a missing tool is a failure.
set -u
LC_ALL=C
export LC_ALL
chromium=$1
kept=$2
complete=$3
probe=$(dirname "$0")/../page_probe.html
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
wrong() { echo "FAILED: $*" && failed=1; }

if [ ! -x "$chromium" ]; then
    [ "$complete" != ON ] || { wrong 'there is no headless Chromium' && exit 1; }
    echo 'bench_page: skipped: there is no headless Chromium' && exit 77
fi
if [ ! -e "$kept/page.html" ]; then
    [ "$complete" != ON ] || { wrong "there is no $kept/page.html" && exit 1; }
    echo 'bench_page: skipped: the test bench made no page' && exit 77
fi
sandbox=
[ "$(id -u)" != 0 ] || sandbox=--no-sandbox # Chromium refuses to have one as root

# What the page must show, a line each: section, row, kind of bar, share of the roof.
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

# judge PAGE WIDTH SCHEME: $work/problems has a line for each thing that is wrong with it;
# $work/facts what was measured.
judge() {
    rm -rf "$work/site" && mkdir "$work/site" && cp "$probe" "$work/site" &&
        cp "$1" "$work/site/page.html"
    preferred=1
    [ "$3" = light ] || preferred=0
    "$chromium" $sandbox --disable-gpu --user-data-dir="$work/profile" \
        --allow-file-access-from-files --hide-scrollbars \
        --blink-settings=preferredColorScheme=$preferred --enable-logging=stderr \
        --window-size=1600,1200 \
        --dump-dom "file://$work/site/page_probe.html?$2" >"$work/dom" 2>"$work/log"
    sed -n 's/^<pre id="measured">//; /^inner_width/,/^end$/p' "$work/dom" |
        sed 's/&amp;/\&/g; s/&lt;/</g; s/&gt;/>/g' >"$work/facts"
    {
        grep -q '^end$' "$work/facts" || echo 'nothing was measured'
        grep CONSOLE "$work/log"
        awk -F '\t' -v width="$2" -v scheme="$3" '
            # of two colours, as WCAG has it: "rgb(r, g, b)"
            function light(colour,   part, i, c, sum) {
                gsub(/[^0-9,]/, "", colour)
                split(colour, part, ",")
                for (i = 1; i <= 3; i++) {
                    c = part[i] / 255
                    weight = i == 1 ? 0.2126 : i == 2 ? 0.7152 : 0.0722
                    sum += (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ^ 2.4) * weight
                }
                return sum
            }
            function contrast(a, b) {
                a = light(a) + 0.05; b = light(b) + 0.05
                return a > b ? a / b : b / a
            }
            FILENAME == ARGV[1] {
                sections[$1]
                if ($2 != "-") rows[$2]
                if ($4 > 0) share[$1, $2, $3] = $4
                next
            }
            $1 == "inner_width" && $2 != width { print "the frame is " $2 " wide" }
            $1 == "scroll_width" { scrolls = $2; if ($2 > width) print "the page is " $2 " wide" }
            $1 == "scripts" && $2 != 0 { print $2 " scripts" }
            $1 == "requests" && $2 != 0 { print $2 " requests" }
            $1 == "title" && $2 !~ /20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]/ {
                print "no date in the title: " $2
            }
            $1 == "background" {
                background = $2
                if ((light($2) < 0.2) != (scheme == "dark"))
                    print "the background is not " scheme ": " $2
            }
            ($1 == "ink" || $1 == "quiet") && contrast($2, background) < 4.5 {
                print $1 " is hard to read: " $2 " on " background
            }
            $1 == "section" {
                seen[$2]
                if ($3 < width / 2 || $4 < 50) print "section " $2 ": " $3 " x " $4
            }
            $1 == "row" { seen_row[$2]; if ($3 + 0 > 2) print "row " $2 ": its name has " $3 }
            $1 == "bar" {
                bars++
                key = $2 SUBSEP $3 SUBSEP $4
                if (!(key in share)) print "bar " $3 " " $4 ": not in the results"
                else if (($5 - share[key] * $6) ^ 2 > 1)
                    print "bar " $3 " " $4 ": " $5 " of " $6 " wide, not " share[key]
                if ($5 > $7 + 0.5) print "bar " $3 ": wider than its box"
                drawn[key]
            }
            $1 == "smallest_text" { figures++; if ($2 < 9) print "text in a figure is " $2 " high" }
            END {
                for (s in sections) if (!(s in seen)) print "no section " s
                for (r in rows) if (!(r in seen_row)) print "no row " r
                for (k in share)
                    if (k ~ /^(vkrope and|Rivals|vkCmd)/ && !(k in drawn)) print "no bar " k
                if (!bars) print "no bars"
                if (!figures) print "no figures"
                if (!scrolls) print "no width"
            }' "$work/expected" "$work/facts"
    } >"$work/problems"
}

for width in 360 1200; do
    for scheme in light dark; do
        judge "$kept/page.html" $width $scheme
        echo "$width pixels, $scheme: $(grep -c '^bar' "$work/facts") bars," \
            "$(grep -c '^section' "$work/facts") sections," \
            "$(wc -l <"$work/problems") problems"
        [ ! -s "$work/problems" ] || { wrong "$width pixels, $scheme:" && cat "$work/problems"; }
    done
done

# seeded TEXT EXPRESSION [SCHEME]: the page, changed by sed, has a problem with TEXT in it.
seeded() {
    sed "$2" "$kept/page.html" >"$work/seeded.html"
    cmp -s "$work/seeded.html" "$kept/page.html" && wrong "nothing was seeded by $2"
    judge "$work/seeded.html" 360 "${3:-light}"
    grep -q "$1" "$work/problems" || { wrong "it is not seen: $2" && cat "$work/problems"; }
}
seeded 'the page is .* wide' 's|<h1>|<div style="width:500px">wide</div><h1>|'
seeded 'the page is .* wide' 's|(max-width:50rem)|(max-width:5rem)|'
seeded '^1 scripts' 's|<h1>|<script>console.error("seeded")</script><h1>|'
seeded 'CONSOLE.*seeded' 's|<h1>|<script>console.error("seeded")</script><h1>|'
seeded '^1 requests' 's|<h1>|<img alt="" src="http://127.0.0.1:9/seeded.png"/><h1>|'
seeded 'no section Rivals' 's|<h2>Rivals</h2>|<h2>Others</h2>|'
seeded '^bar .*, not ' \
    's|<rect class="fill" y="0" width="[0-9.]*"|<rect class="fill" y="0" width="33"|'
seeded '^the background is not dark' 's|prefers-color-scheme:dark|prefers-color-scheme:none|' dark
seeded 'its name has' 's|</style>|td:first-child{max-width:3rem}</style>|'
seeded 'no row' 's|<tr><td>decode_b1/|<tr><td>decode_b2/|'
exit $failed
