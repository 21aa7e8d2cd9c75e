# SPDX-License-Identifier: MIT
# Finds the Python of a test. Scripts source this file.
# shellcheck shell=sh

# left_out WORD...: ends the script as skipped or, if COMPLETE is ON, as failed.
left_out() {
    echo "skipped: $*"
    [ "${COMPLETE:-}" != ON ] || exit 1
    exit 77
}

# find_python MODULES: sets `python` to a program that can import them.
find_python() {
    for python in python3 /usr/bin/python3; do
        ! $python -c "import $1" 2>/dev/null || return 0
    done
    left_out "no python3 has all of $1 (./dev test --thorough installs them)"
}
