#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that four ranks compute the bits of the whole. The arguments are mpirun and the program.
set -u
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
mpirun=$1
program=$2
devices=$VKROPE_SHARDING_DEVICES
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT TERM
oversubscribe=
# Only Open MPI needs an option to start more ranks than there are cores.
! "$mpirun" --version | grep -qE 'Open ?(MPI|RTE)' || oversubscribe=--oversubscribe
status=0
# shellcheck disable=SC2086 # an option or none
"$mpirun" $oversubscribe -n 4 "$program" >"$log" 2>&1 || status=$?
cat "$log"
[ "$status" = 0 ] || { echo "FAILED: exit status $status" && exit 1; }
grep -qx '0 of 4 differ from the whole' "$log" || { echo 'FAILED: not 0 of 4' && exit 1; }
# The ranks take the devices in turn, so that two or more devices must share the ranks.
[ "$devices" = 1 ] || [ "$(sed -n 's/^rank [0-9]*: //p' "$log" | sort -u | wc -l)" = "$devices" ] ||
    { echo "FAILED: the ranks are not on $devices devices" && exit 1; }
