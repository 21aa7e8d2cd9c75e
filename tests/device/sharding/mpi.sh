#!/bin/sh
# SPDX-License-Identifier: MIT
# Four ranks that hold the bits of the whole; and four ranks, one of which starts in the wrong
# place, which must be found: all four comparisons, by exit status 1. Arguments: mpirun, and the
# program beside this script.
set -u
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT TERM

# ranks STATUS DIFFERENT ARGUMENT...: what mpirun must return, and how many comparisons must fail.
ranks() {
    expected=$1
    different=$2
    shift 2
    status=0
    # shellcheck disable=SC2086 # an option or none
    "$mpirun" $oversubscribe -n 4 "$program" "$@" >"$log" 2>&1 || status=$?
    cat "$log"
    [ "$status" = "$expected" ] || { echo "FAILED: exit status $status, not $expected" && exit 1; }
    grep -qx "$different of 4 differ from the whole" "$log" ||
        { echo "FAILED: not $different of 4" && exit 1; }
    # A rank a device, in turn: with two or more devices no single one has all ranks.
    [ "$devices" = 1 ] || [ "$(sed -n 's/^rank [0-9]*: //p' "$log" | sort -u | wc -l)" = \
        "$devices" ] ||
        { echo "FAILED: the ranks are not on $devices devices" && exit 1; }
}
mpirun=$1
program=$2
devices=$VKROPE_SHARDING_DEVICES
oversubscribe=
# others do so unasked
! "$mpirun" --version | grep -qE 'Open ?(MPI|RTE)' || oversubscribe=--oversubscribe
ranks 0 0
ranks 1 4 wrong-start
