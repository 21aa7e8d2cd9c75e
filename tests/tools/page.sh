# SPDX-License-Identifier: MIT
# The functions of the tests of HTML pages: they open a page in a headless browser, measure it, and
# apply the rules for every page. Scripts that source this file set `name`, `chromium`, `complete`
# (whether a missing tool is a failure), `rules` (an additional awk program) and `extra` (an
# argument of awk before the facts, a file or NAME=VALUE).
# shellcheck shell=sh disable=SC2034,SC2154 # those scripts set the variables and read `failed`
LC_ALL=C
export LC_ALL
here=$(dirname "$0")/..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
wrong() { echo "FAILED: $*" && failed=1; }

# needs FILE SENTENCE: without the file, skips the test, or fails if $complete is ON.
needs() {
    [ ! -e "$1" ] || return 0
    [ "$complete" != ON ] || { wrong "$2" && exit 1; }
    echo "$name: skipped: $2" && exit 77
}
sandbox=
[ "$(id -u)" != 0 ] || sandbox=--no-sandbox # Chromium refuses a sandbox as root

# judge PAGE WIDTH SCHEME: writes one line for each error of the page to $work/problems, and the
# measured facts to $work/facts.
judge() {
    width=$2
    scheme=$3
    rm -rf "$work/site" && mkdir "$work/site" && cp "$here/page_probe.html" "$work/site" &&
        cp "$1" "$work/site/page.html"
    preferred=1
    [ "$scheme" = light ] || preferred=0
    "$chromium" $sandbox --disable-gpu --user-data-dir="$work/profile" \
        --allow-file-access-from-files --hide-scrollbars \
        --blink-settings=preferredColorScheme=$preferred --enable-logging=stderr \
        --window-size=1600,1200 \
        --dump-dom "file://$work/site/page_probe.html?$width" >"$work/dom" 2>"$work/log"
    sed -n 's/^<pre id="measured">//; /^inner_width/,/^end$/p' "$work/dom" |
        sed 's/&amp;/\&/g; s/&lt;/</g; s/&gt;/>/g' >"$work/facts"
    {
        grep -q '^end$' "$work/facts" || echo 'nothing was measured'
        grep CONSOLE "$work/log"
        awk -F '\t' -v width="$width" -v scheme="$scheme" -f "$here/page.awk" -f "$rules" \
            "$extra" "$work/facts"
    } >"$work/problems"
}

# seeded TEXT EXPRESSION [SCHEME]: $page changed by the sed EXPRESSION has an error with TEXT in it.
seeded() {
    sed "$2" "$page" >"$work/seeded.html"
    cmp -s "$work/seeded.html" "$page" && wrong "nothing was seeded by $2"
    judge "$work/seeded.html" 360 "${3:-light}"
    grep -q "$1" "$work/problems" || { wrong "it is not seen: $2" && cat "$work/problems"; }
}
