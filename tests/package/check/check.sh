#!/bin/sh
# SPDX-License-Identifier: MIT
# What a reader sees: the format of C++ and GLSL, scripts that shellcheck takes, Markdown that is
# wrapped at 100 columns and whose links lead somewhere. Prints a line for each violation.
# Argument: the tree. Its files are those that git knows, or else all of them.
set -u
LC_ALL=C.UTF-8
export LC_ALL
cd "$1" || exit 2
failed=0
wrong() { echo "FAILED: $*" && failed=1; }
list=$(mktemp)
trap 'rm -f "$list"' EXIT
git ls-files >"$list" 2>/dev/null || find . '(' -path ./build -o -path ./.git ')' -prune -o -type f -print | sed 's|^\./||' >"$list"
# files REGEX: of the tree, by the end of their names.
files() { grep -E "($1)\$" "$list" | while read -r file; do [ ! -f "$file" ] || echo "$file"; done; }

# Other versions format otherwise.
formatter=
for program in clang-format-14 clang-format; do
    if [ -z "$formatter" ] && $program --version 2>/dev/null | grep -q 'version 14\.'; then formatter=$program; fi
done
if [ -z "$formatter" ]; then
    echo 'check: the format was left out: there is no clang-format 14, which Debian 12 has'
else
    for file in $(files '\.(cpp|hpp|c|h|glsl|comp)'); do
        # One table for GLSL and C++, whose columns are by hand.
        [ "$file" != shaders/interface.h ] || continue
        case $file in *.glsl | *.comp) as=$(dirname "$file")/shader.cpp ;; *) as=$file ;; esac
        # shellcheck disable=SC2094 # both only read it
        line=$($formatter --assume-filename="$as" <"$file" | diff "$file" - | sed -n '1s/[acd,].*//p')
        [ -z "$line" ] || wrong "$file:$line: not as clang-format has it"
    done
fi
files '\.(glsl|comp)|interface\.h' | xargs awk \
    'length > 100 { print "FAILED: " FILENAME ":" FNR ": " length " columns: 100 at most"; bad = 1 } END { exit bad }' || failed=1

if ! command -v shellcheck >/dev/null; then
    echo 'check: the scripts were left out: there is no shellcheck'
else
    files '\.sh|^dev|^\.ci/run' | xargs shellcheck -S warning -f gcc || wrong 'shellcheck: see above'
fi

# Tables, pictures and code are as wide as they have to be.
files '\.md' | xargs awk 'FNR == 1 { code = 0 } /^```/ { code = !code }
    code || /^(    |\||!\[)/ { next }
    length > 100 { print "FAILED: " FILENAME ":" FNR ": " length " columns: 100 at most"; bad = 1 } END { exit bad }' || failed=1
files '\.md' | while read -r file; do
    awk '/^```/ { code = !code; print ""; next } { print code || /^    / ? "" : $0 }' "$file" |
        grep -noE '\]\([^)]+\)' | sed 's/^\([0-9]*\):\](\(.*\))$/\1 \2/' | while read -r line link; do
        case $link in http://* | https://* | '#'*) continue ;; esac
        [ -e "$(dirname "$file")/${link%%#*}" ] || echo "FAILED: $file:$line: '$link' is not there"
    done
done >"$list.links"
cat "$list.links"
[ ! -s "$list.links" ] || failed=1
rm -f "$list.links"
exit $failed
