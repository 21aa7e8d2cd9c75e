#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs a Python that can import the modules which the first argument names, with the others. If
# there is none, exits as a test that is skipped or, if COMPLETE is ON, that fails.
modules=$1
shift
for python in python3 /usr/bin/python3; do
    if $python -c "import $modules" 2>/dev/null; then exec $python "$@"; fi
done
echo "skipped: no python3 has all of $modules (./dev test --thorough installs them)"
[ "${COMPLETE:-}" != ON ] || exit 1
exit 77
