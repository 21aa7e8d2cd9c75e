#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope positions`: the ids of grids, videos and ragged batches as the models count them, as
# text, JSON and .npy; and inputs that are refused.
# shellcheck disable=SC2317 # functions that others call
. "$(dirname "$0")/check.sh"
no_driver
positions() { "$vkrope" positions "$@"; }
# ids: of the JSON on the last command's stdout, a list for each axis.
ids() { tr -d ' \n' <"$logs/out" | grep -oE '"ids":\[[-0-9,]*\]' | tr -dc '0-9,\n-'; }
# gives 'AXIS...' ARGUMENT...: the ids on each axis, with commas between.
gives() {
    wanted=$1
    shift
    works positions "$@" --json
    found=$(ids | paste -sd ' ' -)
    holds "$* gives $found, not $wanted" [ "$found" = "$wanted" ]
}
# factor NUMBER: what the frequencies of the last command have to be multiplied by.
factor() { holds "a factor of $1" says "$1"; }

gives '0,0,0,1,1,1 0,1,2,0,1,2' --grid 2,3
gives '1,1,1,2,2,2 -4,-3,-2,-4,-3,-2' --grid 2,3 --first 1,-4
# DINOv3: 4 patches on a side, at odd ids; an odd number has even ids around 0.
gives '-3,-3,-3,-1,-1,-1,1,1,1,3,3,3 -2,0,2,-2,0,2,-2,0,2,-2,0,2' --grid 4,3 --centred
factor 0.25
gives '0,1,2,3' --grid 4 --reference 2
factor 0.5
# Frames by index, in frames of another rate, and by time: 25 ids a second of half a second each.
gives '0,0,1,1,2,2 0,0,0,0,0,0 0,1,0,1,0,1' --video 3,1,2
gives '0,1 0,0 0,0' --video 2,1,1 --fps 30 --base-fps 24
factor 0.80000000000000004
gives '0,12,25 0,0,0 0,0,0' --video 3,1,1 --seconds 0.5 --ids-per-second 25
gives '0,1,2,0,1' --cu-seqlens 0,3,3,5
gives '100,101,7' --cu-seqlens 0,2,3 --offsets 100,7

# As text, and as a file.
works positions --grid 2,3
holds 'the row of a token' grep -qE '^ *5  *1  *2$' "$logs/out"
works positions --grid 100 --all
holds 'the row of each token' grep -qE '^ *50  *50$' "$logs/out"
works positions --grid 1,2 --json --out ids.npy
holds 'shape and type' sh -c 'head -c 128 ids.npy | grep -a "<i4" | grep -aqF "(2, 1, 2)"'
holds 'the ids as int32' [ "$(tail -c 16 ids.npy | od -An -td4 | tr -s ' ')" = ' 0 0 0 1' ]

refuse 2 '--grid*--video*--cu-seqlens' positions
refuse 2 '--grid*--cu-seqlens' positions --grid 2 --cu-seqlens 0,1
for grid in '' '2,' 0 -1 1x2 '1,2,3,4,5,6,7,8,9' 4294967296; do
    refuse 2 '--grid:' positions --grid "$grid"
done
refuse 2 '--first:*1*2' positions --grid 2,2 --first 1
refuse 2 'axes?0?.ids*2147483648' positions --grid 2 --first 2147483647
refuse 2 '67108864' positions --grid 4294967295,4294967295
refuse 2 '2^64' positions --grid 4294967295,4294967295,4294967295
refuse 2 '--centred' positions --grid 2 --centred --first 1
refuse 2 '--reference' positions --grid 2 --reference 0
refuse 2 '--video:*3' positions --video 2,3
refuse 2 '--ids-per-second' positions --video 2,3,4 --seconds 1
refuse 2 '--base-fps' positions --video 2,3,4 --fps 30
refuse 2 '--fps' positions --video 2,3,4 --fps nan --base-fps 24
refuse 2 'ids?2?*4000000000' positions --video 3,1,1 --seconds 2e9 --ids-per-second 1 --out no.npy
refuse 2 'cu_seqlens?0?*1' positions --cu-seqlens 1,2
refuse 2 'cu_seqlens?2?*3*4' positions --cu-seqlens 0,4,3,5
refuse 2 '-1' positions --cu-seqlens 0,-1
refuse 2 '--offsets:*1*2' positions --cu-seqlens 0,1,2 --offsets 1
refuse 2 '--offsets' positions --grid 2 --offsets 1
refuse 5 '--out:*missing/ids.npy' positions --grid 2 --out missing/ids.npy
finish
