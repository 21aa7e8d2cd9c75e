#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks what a reader sees: the format of C++ and GLSL, scripts (with shellcheck), lines of at most
# 100 columns, links in Markdown, and a commit subject of at most 72 characters. Prints a line for
# each violation.
# Argument: the tree. Its files are those that git tracks, or else all of them.
set -u
LC_ALL=C.UTF-8
export LC_ALL
cd "$1" || exit 2
failed=0
wrong() { echo "FAILED: $*" && failed=1; }
list=$(mktemp)
trap 'rm -f "$list" "$list.format" "$list.links"' EXIT
git ls-files >"$list" 2>/dev/null ||
    find . '(' -path ./build -o -path ./.git ')' -prune -o -type f -print |
    sed 's|^\./||' >"$list"
# files REGEX: prints the files of the tree whose names end in REGEX.
files() {
    grep -E "($1)\$" "$list" | while read -r file; do
        [ ! -f "$file" ] || echo "$file"
    done
}

# Other versions format differently.
formatter=
for program in clang-format-14 clang-format; do
    [ -n "$formatter" ] || ! $program --version 2>/dev/null | grep -q 'version 14\.' ||
        formatter=$program
done
if [ -z "$formatter" ]; then
    echo 'check: the format was left out: there is no clang-format 14, which Debian 12 has'
else
    # interface.h is one table for GLSL and C++, whose columns are aligned by hand.
    files '\.(cpp|hpp|c|h|glsl|comp)' | grep -vx shaders/interface.h |
        xargs -P "$(nproc)" -n 40 "$formatter" --dry-run 2>&1 |
        sed -n 's/^\([^: ]*:[0-9]*\):.* code should be clang-formatted .*/\1/p' |
        sort -u -t : -k 1,1 >"$list.format"
    sed 's/.*/FAILED: &: not as clang-format has it/' "$list.format"
    [ ! -s "$list.format" ] || failed=1
fi
# A line that quotes more than 60 characters is exempt, so that texts which a test expects or
# another program reads stay in one piece. UTF-8 continuation bytes are not columns.
files '\.(cpp|hpp|c|h|glsl|comp|py|sh|cmake|awk)|CMakeLists\.txt|^dev|^\.ci/run' |
    LC_ALL=C xargs awk '
    length > 100 {
        gsub(/[\200-\277]/, "")
        columns = length
        while (FILENAME !~ /\.(cpp|hpp|c|h|glsl|comp)$/ && match($0, /\047[^\047]*\047|"[^"]*"/)) {
            if (RLENGTH > 62) next
            $0 = substr($0, RSTART + RLENGTH)
        }
        if (columns <= 100) next
        print "FAILED: " FILENAME ":" FNR ": " columns " columns: 100 at most"
        bad = 1
    }
    END { exit bad }' || failed=1

if ! command -v shellcheck >/dev/null; then
    echo 'check: the scripts were left out: there is no shellcheck'
else
    files '\.sh|^dev|^\.ci/run' | xargs shellcheck -S warning -f gcc ||
        wrong 'shellcheck: see above'
fi

# git and its front ends cut off a longer subject.
subject=$(git log -1 --format=%s 2>/dev/null | awk '{ print length }')
[ "${subject:-0}" -le 72 ] ||
    wrong "the subject of the last commit has $subject characters: 72 at most"

# Tables, pictures and code may be wider.
files '\.md' | xargs awk 'FNR == 1 { code = 0 } /^```/ { code = !code }
    code || /^(    |\||!\[)/ { next }
    length > 100 {
        print "FAILED: " FILENAME ":" FNR ": " length " columns: 100 at most"
        bad = 1
    }
    END { exit bad }' || failed=1
# Coding agents read this page as a whole, each time.
[ "$(wc -l <AGENTS.md)" -le 80 ] || wrong 'AGENTS.md has more than 80 lines'
files '\.md' | while read -r file; do
    awk '/^```/ { code = !code; print ""; next } { print code || /^    / ? "" : $0 }' "$file" |
        grep -noE '\]\([^)]+\)' | sed 's/^\([0-9]*\):\](\(.*\))$/\1 \2/' |
        while read -r line link; do
            case $link in http://* | https://* | '#'*) continue ;; esac
            [ -e "$(dirname "$file")/${link%%#*}" ] ||
                echo "FAILED: $file:$line: '$link' does not exist"
        done
done >"$list.links"
cat "$list.links"
[ ! -s "$list.links" ] || failed=1
exit $failed
