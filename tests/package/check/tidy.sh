#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs clang-tidy with .clang-tidy. Prints a line for each finding and for each source that
# clang-tidy could not check. Arguments: a folder configured for clang++ that has the generated
# files, then C++ sources; without sources, all that this folder compiles. Other sources (a
# consumer, or one for a library that is not installed) are skipped and named on standard error.
set -u
command -v clang-tidy >/dev/null || { echo "FAILED: there is no clang-tidy" && exit 1; }
folder=$1
shift
# shellcheck disable=SC2046 # a word for each file
[ $# != 0 ] || set -- $(git ls-files '*.cpp' | grep -vE '^tests/(package/consumers|engine)/')
compiled=$(sed -n "s|^ *\"file\": \"$PWD/\(.*\)\",*\$|\1|p" "$folder/compile_commands.json")
[ -n "$compiled" ] || { echo "FAILED: $folder is not configured" && exit 1; }
sources=$(printf '%s\n' "$@" | grep -Fx -e "$compiled")
skipped=$(printf '%s\n' "$@" | grep -Fxv -e "$compiled")
[ -z "$skipped" ] ||
    echo "clang-tidy skips what $folder does not compile:" "$skipped" >&2
[ -n "$sources" ] || exit 0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
printf '%s\n' "$sources" | xargs -P "$(nproc)" -n 4 clang-tidy -p "$folder" --quiet >"$log" 2>&1
ended=$?
found=$(grep -E '^[^ ]*: (warning|error|fatal error): ' "$log" | grep -vE "^($PWD/build|/usr)/" |
    sort -u | sed "s|^$PWD/||")
[ -z "$found" ] || { echo "$found" | sed 's/^/FAILED: /' && exit 1; }
# 123: one of the commands failed, as after a finding, but there was no finding.
[ "$ended" = 0 ] || { echo "FAILED: clang-tidy ended with $ended" && tail -n 5 "$log" && exit 1; }
