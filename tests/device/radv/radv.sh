#!/bin/sh
# SPDX-License-Identifier: MIT
# radv.sh STATISTICS DRIVER RECORDS [--record]: what AMD's compiler in Mesa makes of the kernels,
# for four generations of GPUs and more, by the program STATISTICS; then held against the record
# of this very Mesa, line by line. Another Mesa has to keep the rules only. --record writes the
# record of this Mesa instead.
set -eu
statistics=$1 driver=$2 records=$3
if [ ! -e "$driver" ]; then
    echo 'radv: skipped: no driver manifest of RADV (VKROPE_RADV_ICD)'
    exit 77
fi
export VK_DRIVER_FILES="$driver" VK_ICD_FILENAMES="$driver"
found=$(mktemp)
trap 'rm -f "$found"' EXIT
compile_for() { RADV_FORCE_FAMILY=$1 "$statistics" >>"$found"; }
compile_for polaris10
mesa=$(sed -n '1s/.*, Mesa \([0-9.]*\).*/\1/p' "$found")
case $mesa in
    22.*) families='vega10 navi21 gfx1100' ;;
    # the name gfx1100 is gone, and there is a later family
    *) families='vega10 navi21 navi31 gfx1201' ;;
esac
for family in $families; do compile_for "$family"; done

record=$records/mesa-$mesa.txt
if [ "${4:-}" = --record ]; then
    cp "$found" "$record"
elif [ -e "$record" ]; then
    diff -U 1 "$record" "$found" || {
        echo "radv: that differs from $record. If it is meant: $0 $statistics $driver $records --record"
        exit 1
    }
    echo "radv: $(grep -c '^[bf]' "$found") lines as recorded for Mesa $mesa"
else
    echo "radv: no record for Mesa $mesa: no registers are spilled, no scratch memory is used, and wide accesses are wide"
fi
