#!/bin/sh
# SPDX-License-Identifier: MIT
# Counts the lines of each part of the tree, including comments, and prints them with their limit
# and with the number to which the limit should fall (aim). A part over its limit is an error. To
# meet a limit, remove a concept; do not join lines, shorten names or delete a comment that says
# why. A commit that raises a limit says why; a commit that removes lines lowers the limit.
# Argument: the tree. Its files are those that git tracks, or else all of them.
set -eu
cd "$1"
# A file belongs to the first part whose expression matches its path.
parts='part         limit    aim  files
data             -      -  ^tests/data/
results        550    400  ^[a-z]+/results/|\.svg$
shaders       6440   4400  ^shaders/
interface     3490   3400  ^host/include/
frequencies   2710   2300  ^host/frequencies/
kernel        8440   5200  ^host/(kernel|base)/
runtime       2560   2000  ^host/runtime/
model         8870   6000  ^host/model/
verify        7910   6500  ^host/verify/
tools        20370   9000  ^host/tools/
python        3210   2000  ^host/python/
bench         4710   3000  ^bench/
tests        51550  28000  ^tests/
pages         3870   2500  ^host/guide/|^[^/]*\.md$|^host/README\.md$
packaging     3240   1500  .'
{
    git ls-files 2>/dev/null ||
        find . '(' -path ./build -o -path ./.git ')' -prune -o -type f -print | sed 's|^\./||'
} | xargs wc -l 2>/dev/null | awk -v parts="$parts" '
    BEGIN {
        count = split(parts, rows, "\n")
        for (i = 2; i <= count; ++i) {
            split(rows[i], row, " +")
            name[i] = row[1]; limit[i] = row[2]; aim[i] = row[3]; files[i] = row[4]
        }
    }
    $2 != "total" {
        for (i = 2; i < count && $2 !~ files[i]; ++i) {}
        lines[i] += $1
    }
    END {
        printf "%-12s %7s %7s %7s\n", "part", "lines", "limit", "aim"
        for (i = 2; i <= count; ++i)
            printf "%-12s %7d %7s %7s\n", name[i], lines[i], limit[i], aim[i]
        for (i = 2; i <= count; ++i) {
            if (limit[i] == "-" || lines[i] <= limit[i]) continue
            print "FAILED: " name[i] " has " lines[i] " lines: " limit[i] " at most"
            over = 1
        }
        exit over
    }'
