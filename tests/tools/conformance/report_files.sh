#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks report files: one report of a machine with a driver that crashes, one that hangs and one
# that works; then waivers, comparison and one page of many reports. Further arguments: the folder
# of the bad drivers, the folder for pages that a browser test opens, the tool with seeded faults.
. "$(dirname "$0")/tool.sh"
drivers=$4
pages=$5
seeded=$6
wait=$((2 * ${VKROPE_TIME_FACTOR:-1})) # seconds
ASAN_OPTIONS=$ASAN_OPTIONS:handle_segv=0
VKROPE_REAL_DRIVER=$(sed -n 's/.*"library_path": *"\([^"]*\)".*/\1/p' "$lavapipe")
export ASAN_OPTIONS VKROPE_REAL_DRIVER
# shellcheck disable=SC3045 # every sh of Debian has it
ulimit -c 0
id=chains/f16_half_split_in_place

# driver NAME...: selects these drivers and no others.
driver() {
    list=
    for name; do
        {
            echo '{"file_format_version": "1.0.0", "ICD": {"api_version": "1.3.0",'
            echo "\"library_path\": \"$drivers/libvkrope_icd_$name.so\"}}"
        } >"$name.json"
        list=$list${list:+:}$PWD/$name.json
    done
    use_driver "$list"
}
# contains FILE TEXT and lacks FILE TEXT: expect the text to be in FILE, or not to be.
contains() {
    checks=$((checks + 1))
    grep -qF -e "$2" "$1" || wrong "no '$2' in $1"
}
lacks() {
    checks=$((checks + 1))
    ! grep -qF -e "$2" "$1" || wrong "'$2' is in $1"
}

# said CODE TEXT COMMAND...: is like expect, but writes the command's stdout to the file lines.
said() {
    said_code=$1
    said_text=$2
    shift 2
    # shellcheck disable=SC2016 # an expression for the inner shell
    expect "$said_code" "$said_text" sh -c '"$@" >lines' sh "$@"
}

# One of three devices works.
mkdir out
HOME=$PWD/home
export HOME
driver crash hang right
said 4 'took more than' "$tool" --device all --check-timeout "$wait" \
    --filter 'chains/f16_half_split*' --json out
report=$(echo out/vkrope-report-3_devices-20??-??-??.json)
holds 'the report is named after devices and day' [ -s "$report" ]
for text in '"format": "vkrope-report/2"' "took more than $wait seconds, before the first check" \
    'signal 11 (SIGSEGV), before the first check of group chained calls' \
    "vkrope-conformance --filter chains/f16_half_split_out_of_place"; do
    contains "$report" "$text"
done
lacks "$report" "$PWD"
lacks "$report" '"uuid"'
[ "$(id -u)" = 0 ] || lacks "$report" "$(id -un)"
# A driver that keeps the loader from listing any device.
driver load right
said 4 'SIGSEGV*VK_DRIVER_FILES' "$tool" --device all --filter $id

driver right
works "$tool" --filter 'chains/f16_half_split_*' --json good.json
driver crash
said 4 '' "$tool" --filter $id --json bad.json
expect 5 '--json:*none/j.json' "$tool" --filter $id --json none/j.json

# Waivers of a failed check, of a passing check and of an unknown check, and malformed waivers.
waiver() {
    echo "{\"waivers\": [{\"check\": \"$1\", \"reason\": \"known\"," >waivers.json
    echo '"link": "https://example.org/1"}]}' >>waivers.json
}
waiver seeded/fault
driver right
said 0 '' "$seeded" --waive waivers.json --json waived.json
contains waived.json '"status": "waived"'
contains waived.json 'known, https://example.org/1'
waiver $id
said 1 "waiver*'$id'" "$tool" --filter $id --waive waivers.json
waiver chains/none
said 1 "waiver*'chains/none'" "$tool" \
    --filter $id --waive waivers.json --json rest.json
contains rest.json '"status": "pass"'
for text in '[]' '{"waivers": 1}' '{"waivers": [{"check": "a", "reason": "b"}]}' \
    '{"waivers": [1]}'; do
    printf '%s' "$text" >waivers.json
    expect 5 "--waive: 'waivers.json'" "$tool" --filter $id --waive waivers.json
done

# Comparison.
sed 's/libvkrope_icd_crash/libvkrope_icd_right/' bad.json >worse.json
expect 1 '' "$tool" --compare good.json worse.json
grep -qF "$id: pass -> error" "$logs/out" || wrong 'the changed check is not named'
works "$tool" --compare worse.json good.json
works "$tool" --compare good.json bad.json
[ -s "$logs/out" ] || wrong 'a device of one report is not named'
expect 2 '--compare' "$tool" --compare good.json
expect 5 none.json "$tool" --compare good.json none.json

# Files that are not reports, and reports of other formats, are refused by name.
sed 's|vkrope-report/2|vkrope-report/1|' good.json >other.json
expect 5 "other.json*'vkrope-report/1'*'vkrope-report/2'" \
    "$tool" --compare good.json other.json
printf 'PK\003\004' >other.zip
expect 5 "other.zip*'vkrope-report/1'*'vkrope-report/2'" \
    "$tool" --page page.html good.json other.zip
for text in '' '{' '[]' '{"format": "vkrope-report/2", "devices": 3}' \
    '{"format": "vkrope-report/2", "date": "", "devices": [{"name": "x"}]}'; do
    printf '%s' "$text" >broken.json
    expect 5 broken.json "$tool" --page page.html broken.json
done
brackets() { head -c 200000 /dev/zero | tr '\0' "$1"; }
{ printf '{"devices": ' && brackets '[' && brackets ']' && printf '}'; } >broken.json
expect 5 'broken.json*64' "$tool" --page page.html broken.json
sed 's/"status": "pass"/"status": "passed"/' good.json >broken.json
expect 5 "broken.json*'passed'" "$tool" --page page.html good.json broken.json
sed 's/"verdict": "not judged"/"verdict": "splendid"/' good.json >broken.json
expect 5 "broken.json*'splendid'" "$tool" --compare good.json broken.json
sed 's/"max_u": [0-9.]*/"max_u": "large"/' good.json >broken.json
expect 5 broken.json "$tool" --page page.html broken.json
mkfifo fifo
hang=$((60 * ${VKROPE_TIME_FACTOR:-1})) # seconds
expect 5 "'.'" "$tool" --page page.html .
expect 5 "'fifo'" timeout "$hang" "$tool" --page page.html fifo
expect 5 "'/dev/zero'" timeout "$hang" "$tool" --page page.html /dev/zero
# The parser has one limit for white space: a report padded up to the limit is accepted, and one
# byte more is refused.
head -c $((16777216 - $(wc -c <good.json))) /dev/zero | tr '\0' ' ' |
    cat good.json - >endless.json
works "$tool" --page page.html endless.json
printf ' ' >>endless.json
expect 5 'endless.json*16777216' "$tool" --page page.html endless.json
rm endless.json
# Reading about as many groups as fit in a report takes a second, not half a minute.
{
    sed '/"cases": \[/q' good.json
    awk 'BEGIN {
        for (i = 0; i < 60000; ++i) {
            printf "%s{\"id\": \"a\", \"group\": \"g%d\", \"status\": \"pass\", ", i ? "," : "", i
            print "\"reason\": \"\", \"repeat\": \"\", \"max_u\": null, \"seconds\": 0}"
        }
    }'
    sed '1,/"cases": \[/d' good.json | sed -n '/^ *]/,$p'
} >many_groups.json
works timeout "$hang" "$tool" --page page.html many_groups.json
contains page.html '>g59999<'
rm many_groups.json page.html

# The page has the newest report of a device first, and no path of this machine.
mkdir many
sed 's|"date": "[^"]*"|"date": "2001-01-01"|' good.json >many/older.json
works "$tool" --page many.html many/older.json "$report" good.json "$PWD/bad.json"
lacks many.html "$PWD"
lacks many.html '<script>'
contains many.html '&lt;script&gt;'
tr '\n' ' ' <many.html | grep -q 'good.json.*older.json' ||
    wrong 'the newest report of a device is not the first'
works "$tool" --page report.html "$report"
contains report.html 'took more than'
[ "$(id -u)" = 0 ] || lacks report.html "$(id -un)"
expect 2 '--page' "$tool" --page none.html
expect 2 '--page' "$tool" --page good.json bad.json
expect 5 nowhere "$tool" --page none.html nowhere
expect 5 nowhere "$tool" --page nowhere/none.html good.json
holds 'no page is left of what failed' [ ! -e none.html ]

mkdir -p "$pages"
cp many.html report.html "$pages"
finish
