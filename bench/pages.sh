#!/bin/sh
# SPDX-License-Identifier: MIT
# Writes the tables of README.md and of the guide from bench/results. With --check, changes nothing
# and fails if a page would change.
set -eu
cd "$(dirname "$0")/.."
status=0
new=$(mktemp)
trap 'rm -f "$new"' EXIT
make_page() { # PAGE PATH: PATH leads from the page to the root
    # GPUs come before software devices.
    # shellcheck disable=SC2046 # a word for each file
    awk -v up="$2" -f bench/pages.awk $(grep -L '^type *cpu$' bench/results/*.txt || :) \
        $(grep -l '^type *cpu$' bench/results/*.txt || :) "$1" >"$new"
    cmp -s "$new" "$1" && return
    [ "$check" ] || { cat "$new" >"$1" && return; }
    echo "FAILED: $1: its tables are not those of bench/results; ./dev bench --pages writes them"
    status=1
}
[ "${1:-}" = --check ] && check=1 || check=
make_page README.md ''
make_page host/guide/performance.md ../../
exit $status
