#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that every public C++ header compiles as the first of a file, as C++17 with the compiler of
# the build and as C++20 with clang++, and that the C header does so as C11 and as C++.
set -eu
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH"
failed=0

# compile COMPILER LANGUAGE STANDARD HEADER
compile() {
    # The file includes the header twice, since a header must also work if it is included again.
    printf '#include <vkrope/%s>\n#include <vkrope/%s>\nstruct alone;\n' "$4" "$4" >"$SCRATCH/alone"
    "$1" -x "$2" -std="$3" -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -fsyntax-only \
        -I"$SOURCE/host/include" "$SCRATCH/alone" || {
        echo "vkrope/$4 does not compile alone with $1 as $3"
        failed=1
    }
}

other=$CXX
if command -v clang++ >/dev/null; then other=clang++; else
    echo 'clang++: skipped: not installed'; fi
checked=0
for header in "$SOURCE"/host/include/vkrope/*; do
    name=$(basename "$header")
    case $name in
        *.h)
            for compiler in "$CXX" "$other"; do compile "$compiler" c c11 "$name"; done
            compile "$CXX" c++ c++11 "$name"
            ;;
        *) compile "$CXX" c++ c++17 "$name" ;;
    esac
    compile "$other" c++ c++20 "$name"
    checked=$((checked + 1))
done
# Compilers must warn of results that are ignored: in C++ of Status and Result, in C and C++ of the
# values that functions return.
# ignores COMPILER LANGUAGE STANDARD HEADER STATEMENT
ignores() {
    printf '#include <vkrope/%s>\nvoid ignores(void);\nvoid ignores(void) { %s }\n' "$4" \
        "$5" >"$SCRATCH/ignores"
    ! "$1" -x "$2" -std="$3" -Werror -c -o /dev/null \
        -I"$SOURCE/host/include" "$SCRATCH/ignores" >"$SCRATCH/ignored" 2>&1 &&
        grep -qE 'unused-result|unused-value' "$SCRATCH/ignored" && return
    echo "$1 as $3 does not warn of: $5"
    cat "$SCRATCH/ignored"
    failed=1
}
for compiler in "$CXX" "$other"; do
    ignores "$compiler" c++ c++17 vkrope.hpp 'vkrope::default_inv_freq(1, 2, nullptr);'
    ignores "$compiler" c++ c++17 vkrope.hpp 'vkrope::create({}, {});'
    ignores "$compiler" c++ c++20 vkrope.h 'vkrope_plan_parameters(nullptr, nullptr, nullptr);'
    ignores "$compiler" c c11 vkrope.h 'vkrope_plan_parameters(0, 0, 0);'
done
[ "$checked" -ge 3 ] || { echo "only $checked headers were found"; exit 1; }
exit $failed
