#!/bin/sh
# SPDX-License-Identifier: MIT
# The pages of reports in a browser: on a phone and on a desk, in light and in dark, with devices
# whose names are hostile. Arguments: headless Chromium, which may be empty; the folder with
# report.html and matrix.html, which archives.sh leaves; whether a missing tool is a failure.
set -u
LC_ALL=C
export LC_ALL
chromium=$1
pages=$2
complete=$3
probe=$(dirname "$0")/../page_probe.html
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
wrong() { echo "FAILED: $*" && failed=1; }
if [ ! -x "$chromium" ] || [ ! -e "$pages/report.html" ]; then
    [ "$complete" != ON ] || { wrong 'there is no headless Chromium, or no page' && exit 1; }
    echo 'conformance_page: skipped: there is no headless Chromium, or no page' && exit 77
fi
sandbox=
[ "$(id -u)" != 0 ] || sandbox=--no-sandbox # Chromium refuses to have one as root

# judge PAGE WIDTH SCHEME SECTIONS: $work/problems has a line for each thing that is wrong.
judge() {
    rm -rf "$work/site" && mkdir "$work/site" && cp "$probe" "$work/site"
    cp "$1" "$work/site/page.html"
    preferred=1
    [ "$3" = light ] || preferred=0
    "$chromium" $sandbox --disable-gpu --user-data-dir="$work/profile" --hide-scrollbars \
        --allow-file-access-from-files --blink-settings=preferredColorScheme=$preferred \
        --enable-logging=stderr --window-size=1600,1200 \
        --dump-dom "file://$work/site/page_probe.html?$2" >"$work/dom" 2>"$work/log"
    sed -n 's/^<pre id="measured">//; /^inner_width/,/^end$/p' "$work/dom" >"$work/facts"
    {
        grep -q '^end$' "$work/facts" || echo 'nothing was measured'
        grep CONSOLE "$work/log"
        awk -F '\t' -v width="$2" -v scheme="$3" -v least="$4" '
            # of two colours, as WCAG has it: "rgb(r, g, b)"
            function light(colour,   part, i, c, sum) {
                gsub(/[^0-9,]/, "", colour)
                split(colour, part, ",")
                for (i = 1; i <= 3; i++) {
                    c = part[i] / 255
                    c = c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ^ 2.4
                    sum += c * (i == 1 ? 0.2126 : i == 2 ? 0.7152 : 0.0722)
                }
                return sum
            }
            function contrast(a, b) {
                a = light(a) + 0.05
                b = light(b) + 0.05
                return a > b ? a / b : b / a
            }
            $1 == "inner_width" && $2 != width { print "the frame is " $2 " wide" }
            $1 == "scroll_width" && $2 > width { print "the page is " $2 " wide" }
            $1 == "scripts" && $2 != 0 { print $2 " scripts" }
            $1 == "requests" && $2 != 0 { print $2 " requests" }
            $1 == "title" && $2 !~ /^vkrope: / { print "the title is " $2 }
            $1 == "background" {
                background = $2
                if ((light($2) < 0.2) != (scheme == "dark")) print "no " scheme " background: " $2
            }
            ($1 == "ink" || $1 == "quiet") && contrast($2, background) < 4.5 {
                print $1 " is hard to read: " $2 " on " background
            }
            $1 == "section" {
                sections++
                if ($3 < width / 2 || $4 < 20) print "section " $2 ": " $3 " x " $4
            }
            $1 == "row" { rows++ }
            $1 == "smallest_text" && $2 < 9 { print "text in a figure is " $2 " high" }
            END { if (sections < least) print sections " sections"; if (!rows) print "no rows" }
        ' "$work/facts"
    } >"$work/problems"
}

for page in report:5 matrix:2; do
    for width in 360 1200; do
        for scheme in light dark; do
            judge "$pages/${page%:*}.html" $width $scheme "${page#*:}"
            echo "${page%:*}, $width pixels, $scheme: $(grep -c '^row' "$work/facts") rows," \
                "$(wc -l <"$work/problems") problems"
            [ -s "$work/problems" ] || continue
            wrong "$page, $width pixels, $scheme:"
            cat "$work/problems"
        done
    done
done

# seeded TEXT EXPRESSION [SCHEME]: the report, changed by sed, has a problem with TEXT in it.
seeded() {
    sed "$2" "$pages/report.html" >"$work/seeded.html"
    cmp -s "$work/seeded.html" "$pages/report.html" && wrong "nothing was seeded by $2"
    judge "$work/seeded.html" 360 "${3:-light}" 5
    grep -q "$1" "$work/problems" || { wrong "it is not seen: $2" && cat "$work/problems"; }
}
seeded 'the page is .* wide' 's|</h1>|</h1><div style="width:500px">wide</div>|'
seeded '^1 scripts' 's|</h1>|</h1><script></script>|'
seeded '^1 requests' 's|</h1>|</h1><img alt="" src="http://127.0.0.1:9/seeded.png"/>|'
seeded 'no dark background' 's|prefers-color-scheme:dark|prefers-color-scheme:none|' dark
seeded 'quiet is hard to read' 's|--quiet:#555555|--quiet:#cccccc|'
exit $failed
