# SPDX-License-Identifier: MIT
# Implements ./dev check: checks the format of the tree, its budgets of lines and the tables of its
# pages, and runs clang-tidy on the C++ sources that have changed. ./dev sources this file and
# provides its functions.
# shellcheck shell=sh

# source_with HEADER: prints one source that includes it as FOLDER/NAME or, in its folder, as NAME.
source_with() {
    name=$(printf '%s' "${1##*/}" | sed 's/\./\\./g')
    folder=${1%/*}
    { # without a match, git grep fails
        git grep --untracked -lE "include [\"<](.*/)?${folder##*/}/${name}[\">]" -- '*.cpp' || :
        git grep --untracked -lE "include \"$name\"" -- ":(glob)$folder/*.cpp" || :
    } | grep -vE '^tests/(package/consumers|engine)/' | head -n 1
}

# Prints the C++ sources that differ from the origin's main branch or, without an origin, from the
# last commit. For a changed header, prints one source that includes it.
changed_sources() {
    git rev-parse --is-inside-work-tree >/dev/null 2>&1 || return 0
    base=$(git merge-base HEAD origin/HEAD 2>/dev/null || echo HEAD)
    {
        git diff --name-only --diff-filter=d "$base"
        git ls-files --others --exclude-standard
    } | grep -E '\.(cpp|hpp)$' | grep -vE '^tests/(package/consumers|engine)/' |
        while read -r file; do
            case $file in
                *.hpp) source_with "$file" ;;
                *) echo "$file" ;;
            esac
        done | sort -u
}

check() {
    status=0
    sh tests/package/check/check.sh "$PWD" || status=1
    sh tests/package/check/budgets.sh "$PWD" || status=1
    sh bench/pages.sh --check || status=1
    changed=$(changed_sources)
    if [ -n "$changed" ]; then
        configure clang clang
        compile clang vkrope_generated
        # shellcheck disable=SC2086 # a word for each file
        sh tests/package/check/tidy.sh build/clang $changed || status=1
    fi
    exit $status
}
