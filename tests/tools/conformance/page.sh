#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the pages of reports in a browser: at phone and desktop width, in light and in dark, with
# hostile device names. Arguments: headless Chromium, which may be empty; the folder in which
# report_files.sh leaves report.html and many.html; whether a missing tool is a failure.
# shellcheck disable=SC2034 # page.sh reads these variables
set -u
name=conformance_page
chromium=$1
pages=$2
complete=$3
rules=$(dirname "$0")/page.awk
# shellcheck source=tests/tools/page.sh
. "$(dirname "$0")/../page.sh"
needs "$chromium" 'there is no headless Chromium'
needs "$pages/report.html" "there is no $pages/report.html, which conformance_report_files makes"

for named in report:4 many:7; do
    for width in 360 1200; do
        for scheme in light dark; do
            extra=least=${named#*:}
            judge "$pages/${named%:*}.html" $width $scheme
            echo "${named%:*}, $width pixels, $scheme: $(grep -c '^row' "$work/facts") rows," \
                "$(wc -l <"$work/problems") problems"
            [ -s "$work/problems" ] || continue
            wrong "$named, $width pixels, $scheme:"
            cat "$work/problems"
        done
    done
done

page=$pages/report.html
extra=least=4
seeded 'the page is .* wide' 's|</h1>|</h1><div style="width:500px">wide</div>|'
seeded '^1 scripts' 's|</h1>|</h1><script></script>|'
seeded '^1 requests' 's|</h1>|</h1><img alt="" src="http://127.0.0.1:9/seeded.png"/>|'
seeded 'the background is not dark' 's|prefers-color-scheme:dark|prefers-color-scheme:none|' dark
seeded 'quiet is hard to read' 's|--quiet:#555555|--quiet:#cccccc|'
exit $failed
