#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that time limits exist only for hangs: no test has its own limit, which a slow machine
# could exceed and ./dev test could not scale. Arguments: the program that says how slow the machine
# is, ctest, the build folder.
set -u
pace=$("$1") || exit 1
echo "$pace" | grep -qx '[0-9][0-9]*\.[0-9]' || { echo "FAILED: vkrope_pace prints '$pace'" &&
    exit 1; }
tests=$("$2" --test-dir "$3" -C prove --show-only=json-v1) || exit 1
echo "$tests" | grep -q '"name" : "bounds_floats"' ||
    { echo 'FAILED: ctest does not list the tests' && exit 1; }
if echo "$tests" | grep '"name" : "TIMEOUT"'; then
    echo 'FAILED: a test has a time limit of its own' && exit 1; fi
# A script detects a hang by a limit that grows with VKROPE_TIME_FACTOR.
if grep -rnE --include='*.sh' '(^|[^-[:alnum:]_])timeout [0-9]' "$(dirname "$0")/.."; then
    echo 'FAILED: a script has a time limit that does not grow with VKROPE_TIME_FACTOR' && exit 1
fi
