#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the console blocks of README.md and of the guide as printed: the commands of a page in order,
# in one shell. If output follows a command, the command must print exactly that to stdout. README
# runs in a folder like a clone after ./dev run, without the tools in PATH; the guide, whose reader
# has installed them, in a folder that is empty at first. Commands in indented lines take too long;
# for these, checks that ./dev or vkrope-conformance has the command and its options.
root=$(cd "$(dirname "$0")/../../.." && pwd)
. "$(dirname "$0")/check.sh"
need_lavapipe
path=$PATH

# run_printed: runs $command and compares its output with $logs/printed, unless that file is empty.
run_printed() {
    [ -n "$command" ] || return 0
    works eval "$command"
    [ ! -s "$logs/printed" ] || cmp -s "$logs/printed" "$logs/out" || {
        wrong "$page does not show what this prints: $command"
        diff "$logs/printed" "$logs/out"
    }
}

for page in README.md host/guide/languages.md host/guide/mistakes.md host/guide/ops.md; do
    awk '/^```console$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$root/$page" \
        >"$logs/lines"
    holds "$page has commands" grep -q '^\$ vkrope ' "$logs/lines"
    mkdir page && cd page || exit 1
    if [ "$page" = README.md ]; then
        mkdir -p build/dev build/run && ln -s "$(dirname "$vkrope")" build/dev/bin
    else
        PATH=$(dirname "$vkrope"):$path
    fi
    command=
    while IFS= read -r line <&3; do
        case $line in
            '$ '*)
                run_printed
                command=${line#??}
                : >"$logs/printed"
                ;;
            *) printf '%s\n' "$line" >>"$logs/printed" ;;
        esac
    done 3<"$logs/lines"
    run_printed
    cd "$logs/work" && rm -r page
done

conformance=$(dirname "$vkrope")/vkrope-conformance
works "$root/dev" help
mv "$logs/out" "$logs/dev_help"
if [ -x "$conformance" ]; then
    works "$conformance" --help
    mv "$logs/out" "$logs/conformance_help"
else
    echo 'the options of vkrope-conformance are left out: it is not built'
fi
# has_options FILE LINE: the help in FILE lists each option of LINE.
has_options() {
    for word in $2; do
        case $word in
            --?*) holds "$1 has ${word%%=*}: $2" grep -qF -- "${word%%=*}" "$logs/$1" ;;
        esac
    done
}
cat "$root"/*.md "$root"/*/README.md "$root"/host/guide/*.md |
    grep -E '^    (\./dev |\./conform |(\./)?(lib/bin/)?vkrope-conformance )' |
    sed 's/^ *//; s/   .*//' | sort -u >"$logs/lines"
holds 'there are such commands' [ "$(wc -l <"$logs/lines")" -gt 10 ]
while IFS= read -r line <&3; do
    case $line in
        './dev '*)
            command=${line#./dev }
            holds "./dev has ${command%% *}" grep -qE "^  ${command%% *} " "$logs/dev_help"
            has_options dev_help "$line"
            ;;
        *) [ ! -x "$conformance" ] || has_options conformance_help "$line" ;;
    esac
done 3<"$logs/lines"

pages=$(grep -l '^```console$' "$root"/*.md "$root"/host/guide/*.md | wc -l)
holds 'no page with commands is left out' [ "$pages" = 4 ]
finish
