#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the console blocks of README.md and of the guide as they are printed: the commands of a page
# one after the other, in a folder that is empty before. Where output follows a command, the command
# prints exactly that to stdout.
root=$(cd "$(dirname "$0")/../../.." && pwd)
. "$(dirname "$0")/check.sh"
need_lavapipe
PATH=$(dirname "$vkrope"):$PATH
export PATH

# run_printed: runs $command, and compares its output with $logs/printed unless that is empty.
run_printed() {
    [ -n "$command" ] || return 0
    works sh -c "$command"
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
    cd .. && rm -r page
done
pages=$(grep -l '^```console$' "$root"/*.md "$root"/host/guide/*.md | wc -l)
holds 'no page with commands is left out' [ "$pages" = 4 ]
finish
