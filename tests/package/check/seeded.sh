#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that check.sh and tidy.sh accept a clean tree and report each violation added to it.
# Arguments: the checkout, a folder to work in.
set -u
source=$1 work=$2
failed=0
tree() {
    rm -rf "$work" && mkdir -p "$work/shaders" && cp "$source/.clang-format" "$work" &&
        cp "$source/shaders/.clang-format" "$work/shaders" || exit 1
    cd "$work" || exit 1
    printf 'int one() {\n    return 1;\n}\n' >one.cpp
    printf 'uint one() {\n    return 1;\n}\n' >shaders/one.glsl
    # A text that a script expects of another program may be long.
    printf '#!/bin/sh\necho "$1" "%0120d"\n' 0 >one.sh
    printf 'set(one 1)\n' >CMakeLists.txt
    printf '# One\n\nA [link](one.cpp), and code:\n\n    %0120d\n\n```\n[x](nowhere)\n```\n' \
        0 >one.md
}
# Uses a folder outside the checkout, because git would treat one inside as part of it.
case $work in "$source"/*) work=$(mktemp -d)/tree && trap 'rm -rf "$(dirname "$work")"' EXIT ;; esac
tree
sh "$source/tests/package/check/check.sh" "$work" >"$work.log" 2>&1 || {
    echo 'FAILED: a clean tree is refused:' && cat "$work.log"
    failed=1
}
if grep -q 'left out' "$work.log"; then
    cat "$work.log" && echo 'check_seeded: skipped: the tools above are not there'
    exit 77
fi
# seeded TEXT: checks that check.sh refuses the tree as it is now, with TEXT in its output.
seeded() {
    if sh "$source/tests/package/check/check.sh" "$work" >"$work.log" 2>&1; then
        echo "FAILED: not noticed: $1" && failed=1
    fi
    grep -qF -e "$1" "$work.log" || { echo "FAILED: no '$1' in" && cat "$work.log" && failed=1; }
    tree
}
printf 'int one()\n{\n  return 1;\n}\n' >one.cpp
seeded 'one.cpp:1: not as clang-format has it'
printf 'uint one() { return 1; }\n' >shaders/one.glsl
seeded 'shaders/one.glsl:1: not as clang-format has it'
printf '#define LONG %0120d\n' 0 >shaders/one.glsl
seeded 'shaders/one.glsl:1: 133 columns'
printf '#!/bin/sh\nread line\nrm -rf $1/*\ncd x\n' >one.sh
seeded 'one.sh:'
printf '#!/bin/sh\necho "$1" # %0110d\n' 0 >one.sh
seeded 'one.sh:2: 122 columns'
printf '#!/bin/sh\necho "%050d" "%050d"\n' 0 0 >one.sh
seeded 'one.sh:2: 110 columns'
printf 'one = 1  # %0110d\n' 0 >one.py
seeded 'one.py:1: 121 columns'
printf '# %0110d\n' 0 >CMakeLists.txt
seeded 'CMakeLists.txt:1: 112 columns'
printf 'const char* const one = R"(%0110d)";\n' 0 >one.cpp
seeded 'one.cpp:1: 140 columns'
printf 'A line of %0110d.\n' 0 >one.md
seeded 'one.md:1: 121 columns'
printf 'A [link](nowhere.md).\n' >one.md
seeded "one.md:1: 'nowhere.md' does not exist"
if command -v git >/dev/null; then
    git init -q . && git add . && git -c user.name=one -c user.email=one@example.com \
        commit -q -m "$(printf '%073d' 0)"
    seeded 'the subject of the last commit has 73 characters'
fi

# Checks the budgets: a part must not have too many lines.
yes 'a line' | head -n 9999 >shaders/long.glsl
if sh "$source/tests/package/check/budgets.sh" "$work" >"$work.log" 2>&1 ||
    ! grep -qE '^FAILED: shaders has [0-9]{5} lines: [0-9]+ at most$' "$work.log"; then
    echo 'FAILED: not noticed: a part with too many lines' && cat "$work.log" && failed=1
fi
tree
sh "$source/tests/package/check/budgets.sh" "$work" >"$work.log" 2>&1 ||
    { echo 'FAILED: a small tree is over its budgets:' && cat "$work.log" && failed=1; }

# tidy SOURCE...: runs tidy.sh on the tree.
tidy() {
    printf '[{\n"directory": "%s",\n"command": "c++ -std=c++20 -c one.cpp",\n"file": "%s"\n}]\n' \
        "$work" "$work/one.cpp" >compile_commands.json
    cp "$source/.clang-tidy" . && sh "$source/tests/package/check/tidy.sh" . "$@" \
        >"$work.log" 2>&1
}
if ! command -v clang-tidy >/dev/null; then
    echo 'check_seeded: skipped: there is no clang-tidy'
    [ $failed = 0 ] || exit 1
    exit 77
fi
tidy one.cpp || { echo 'FAILED: a clean file is refused:' && cat "$work.log" && failed=1; }
printf 'const char* one() {\n    return 0;\n}\n' >one.cpp
if tidy one.cpp || ! grep -q '^FAILED: one.cpp:2:12: .*nullptr' "$work.log"; then
    echo 'FAILED: not noticed: 0 for nullptr' && cat "$work.log" && failed=1
fi
tree
printf '#include "nowhere.hpp"\n' >one.cpp
if tidy one.cpp || ! grep -q '^FAILED: one.cpp:1:10: .*nowhere.hpp' "$work.log"; then
    echo 'FAILED: not noticed: a header that is not there' && cat "$work.log" && failed=1
fi
tree
printf '#!/bin/sh\nexit 127\n' >clang-tidy && chmod +x clang-tidy
if PATH=$work:$PATH tidy one.cpp || ! grep -q 'clang-tidy ended with' "$work.log"; then
    echo 'FAILED: not noticed: clang-tidy cannot start' && cat "$work.log" && failed=1
fi
# A source that is not compiled is named, and the others are checked.
cp one.cpp two.cpp
if ! tidy one.cpp two.cpp || ! grep -q 'skips .*: two.cpp$' "$work.log"; then
    echo 'FAILED: not named: a source that is not compiled' && cat "$work.log" && failed=1
fi
exit $failed
