#!/bin/sh
# SPDX-License-Identifier: MIT
# clang-tidy with .clang-tidy. Prints a line for each finding. Arguments: a folder that is
# configured for clang++ and has the generated files, then C++ sources; without any, all that git
# knows but those of consumers, which are built elsewhere.
set -u
command -v clang-tidy >/dev/null || { echo "FAILED: there is no clang-tidy" && exit 1; }
folder=$1
shift
[ $# != 0 ] || {
    # shellcheck disable=SC2046 # a word for each file
    set -- $(git ls-files '*.cpp' | grep -v '^tests/package/consumers/')
}
found=$(printf '%s\n' "$@" | xargs -P "$(nproc)" -n 4 clang-tidy -p "$folder" --quiet 2>/dev/null |
    grep -E '^/.*: (warning|error): ' | grep -v "$PWD/build/" | sort -u | sed "s|^$PWD/||")
[ -z "$found" ] || { echo "$found" | sed 's/^/FAILED: /' && exit 1; }
