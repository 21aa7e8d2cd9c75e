#!/bin/sh
# SPDX-License-Identifier: MIT
# Reports as files: a machine with a driver that crashes, one that hangs, one that crashes when it
# is loaded and one that is right makes one archive; then waivers, JUnit, comparison and the matrix
# of many reports. Further arguments: the folder of the bad drivers, vkrope-bench or nothing, the
# folder for pages that a browser will look at, the tool with seeded faults.
. "$(dirname "$0")/cases.sh"
drivers=$5
bench=$6
pages=$7
seeded=$8
wait=$((2 * ${VKROPE_TIME_FACTOR:-1})) # seconds
ASAN_OPTIONS=$ASAN_OPTIONS:handle_segv=0
VKROPE_REAL_DRIVER=$(sed -n 's/.*"library_path": *"\([^"]*\)".*/\1/p' "$lavapipe")
export ASAN_OPTIONS VKROPE_REAL_DRIVER
# shellcheck disable=SC3045 # every sh of Debian has it
ulimit -c 0
id=algebra/norm_half_split_computed

# driver NAME...: these drivers, and no other.
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
# contains FILE TEXT; an archive of ours holds its files as they are.
contains() {
    checks=$((checks + 1))
    tr -d '\0' <"$1" | grep -qaF -e "$2" || wrong "no '$2' in $1"
}
lacks() {
    checks=$((checks + 1))
    ! tr -d '\0' <"$1" | grep -qaF -e "$2" || wrong "'$2' is in $1"
}

# said CODE TEXT COMMAND...: as expect, for a command that also prints to stdout, which is in lines.
said() {
    said_code=$1
    said_text=$2
    shift 2
    # shellcheck disable=SC2016 # an expression for another shell
    expect "$said_code" "$said_text" sh -c '"$@" >lines' sh "$@"
}

# Three devices; one of them works. The fourth driver keeps the loader from listing any.
mkdir out
HOME=$PWD/home
export HOME
driver crash hang right
said 4 vkQueueSubmit "$tool" --device all --timeout "$wait" \
    --filter 'algebra/*half_split*' --report out
report=$(echo out/vkrope-report-3_devices-20??-??-??.zip)
holds 'the archive is named after devices and day' [ -s "$report" ]
for text in index.html report.json log.txt '"format": "vkrope-report/1"' \
    'vkQueueSubmit' 'SIGSEGV' '"vendor": "Mesa"' \
    "vkrope-conformance --filter algebra/composition_half_split_factored_texture"; do
    contains "$report" "$text"
done
lacks "$report" "$PWD"
lacks "$report" '"uuid"'
[ "$(id -u)" = 0 ] || lacks "$report" "$(id -un)"
driver load right
said 4 load.json "$tool" --device all --filter $id --json loaded.json
grep -qF "pass         $id" lines ||
    wrong 'the right driver was not tested beside one that cannot be loaded'
said 0 load.json "$tool" --device right --filter $id

# The benchmark, in a process of its own; one row of it.
driver right
if [ -n "$bench" ]; then
    printf '#!/bin/sh\nexec "%s" "$@" --benchmark_filter=rope/decode_b1/f16/computed/in_place\n' \
        "$bench" >one_row
    chmod +x one_row
    works "$tool" --filter $id --report timed.zip --bench "$PWD/one_row"
    contains timed.zip bench-0.json
    tr -d '\0' <timed.zip >timed.txt
    ! grep -qaw -e "$(hostname)" timed.txt || wrong 'the archive names the host'
    lacks timed.zip "$(dirname "$bench")"
fi
said 0 '--bench:*./none' "$tool" --filter $id --report none.zip --bench ./none
expect 2 '--bench' "$tool" --filter $id --bench ./none

# JUnit.
works "$tool" --filter 'algebra/norm_*_computed' --json good.json --junit junit.xml
contains junit.xml 'tests="2" failures="0" errors="0" skipped="0"'
contains junit.xml '&lt;script&gt;'
driver crash
said 4 '' "$tool" --filter $id --json bad.json --junit junit.xml
contains junit.xml '<error message="'
! command -v xmllint >/dev/null || holds 'JUnit is well-formed' xmllint --noout junit.xml
expect 5 '--junit:*none/j.xml' "$tool" --filter $id --junit none/j.xml

# Waivers: of a failure, of none, of no check, and what is not a waiver.
waiver() {
    echo "{\"waivers\": [{\"check\": \"$1\", \"reason\": \"known\"," >waivers.json
    echo '"link": "https://example.org/1"}]}' >>waivers.json
}
waiver seeded/fault
driver right
said 0 '' "$seeded" --waive waivers.json --json waived.json --junit junit.xml
contains waived.json '"status": "waived"'
contains waived.json 'known, https://example.org/1'
works "$tool" --table waived.json
sed 's/"ends": \[\]/"ends": ["was lost"]/' waived.json >ended.json
said 1 'device 1' "$tool" --table ended.json
contains junit.xml 'skipped="1"'
waiver $id
said 1 "waiver*'$id'" "$tool" --filter $id --waive waivers.json
waiver algebra/none
said 1 "waiver*'algebra/none'" "$tool" \
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
sed 's|vkrope-report/1|vkrope-report/2|' good.json >other.json
expect 5 "other.json*'vkrope-report/2'*'vkrope-report/1'" \
    "$tool" --compare good.json other.json
bench_file() {
    printf '{"context": {"device": "a", "driver": "b", "date": "2026-01-0%s"}, "benchmarks": [' "$1"
    printf '{"run_name": "rope/prefill_x", "aggregate_name": "median", "real_time": %s, ' "$2"
    printf '"time_unit": "ns", "roof": 0.5}, {"run_name": "rope/prefill_x", '
    printf '"aggregate_name": "cv", "real_time": 0.03, "time_unit": "ns"}]}'
}
bench_file 1 200 >old_speed.json
bench_file 2 100 >new_speed.json
works "$tool" --compare old_speed.json new_speed.json
grep -qE 'rope/prefill_x.* 2\.000 .* 0\.085' "$logs/out" || wrong 'the ratio of speeds is wrong'

# The matrix: all reports, and each file that is none is named.
mkdir -p many/deeper
cp "$report" many/three.zip
cp good.json many/deeper/
sed 's|"date": "[^"]*"|"date": "2001-01-01"|' good.json >many/older.json
cp new_speed.json many/speed.json
cp other.json many/
echo 'not a report' >many/README
for part in 100 1000; do head -c $part "$report" >many/cut_$part.zip; done
works "$tool" --matrix many --page matrix.html --picture matrix.svg
for file in other.json README cut_100.zip cut_1000.zip; do
    holds "stderr names $file" grep -qF -e "'$file'" "$logs/err"
done
contains matrix.html 'README'
lacks matrix.html "$PWD"
lacks matrix.html '<script>'
contains matrix.svg '<title>'
! command -v xmllint >/dev/null || holds 'the picture is well-formed' xmllint --noout matrix.svg
# A benchmark in a file of its own goes to the row of its device and driver.
# value NAME: a string of good.json, for the right side of sed.
value() {
    sed -n "s/^      *\"$1\": \"\(.*\)\",*\$/\1/p" good.json | head -n 1 | sed 's/[&|\\]/\\&/g'
}
mkdir joined
cp good.json joined/
sed "s|\"a\", \"driver\": \"b\"|\"$(value name)\", \"driver\": \"$(value driver)\"|" \
    new_speed.json >joined/speed.json
works "$tool" --matrix joined --picture joined.svg
contains joined.svg ' 50 % '
holds 'one row' [ "$(grep -c '^<circle' joined.svg)" = 1 ]
tr '\n' ' ' <matrix.html | grep -q 'deeper/good.json.*older.json' ||
    wrong 'the newest report of a device is not the first'
mkdir empty
expect 5 empty "$tool" --matrix empty --page none.html
expect 5 nowhere "$tool" --matrix nowhere --page none.html
expect 2 '--page*--picture' "$tool" --matrix many
expect 2 '--matrix' "$tool" --picture matrix.svg
for changed in 60 2000; do
    cp "$report" changed.zip
    printf x | dd of=changed.zip bs=1 seek=$changed conv=notrunc 2>"$logs/dd"
    expect 5 changed.zip "$tool" --compare changed.zip "$report"
done

mkdir -p "$pages"
cp matrix.html "$pages/"
tr -d '\0' <"$report" | sed -n '/^.*<!DOCTYPE html>/,/^<\/html>/p' |
    sed '1s/.*<!DOCTYPE/<!DOCTYPE/; s/^<\/html>.*/<\/html>/' >"$pages/report.html"
lacks "$pages/report.html" '<script>'
contains "$pages/report.html" '&lt;script&gt;'
finish
