#!/bin/sh
# SPDX-License-Identifier: MIT
# `vkrope positions`: the ids of grids, videos and ragged batches as the models count them, as
# text, JSON and .npy; and inputs that are refused.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
no_driver
positions() { "$vkrope" positions "$@"; }
# says TEXT: on the last command's stdout.
says() { holds "it says '$1'" grep -qF -e "$1" "$logs/out"; }
# row TOKEN ID...: the line of a token.
row() {
    pattern="^ *$1"
    shift
    for id in "$@"; do pattern="$pattern  *$id"; done
    holds "the row $pattern" grep -qE -e "$pattern\$" "$logs/out"
}

works positions --grid 2,3
says '6 tokens, 2 ids each'
row 0 0 0
row 2 0 2
row 3 1 0
row 5 1 2
works positions --grid 2,3 --first 1,-4
row 5 2 -2

# DINOv3: 14 patches on a side, at odd ids; an odd number has even ids around 0.
works positions --grid 14,3 --centred
row 0 -13 -2
says 'its id is 2i + 1 - 14; multiply its frequencies by 0.071428571428571425'
works positions --grid 32 --reference 16
says '32 elements, counted from 0; multiply its frequencies by 0.5; 0 to 31'

# Frames by index, in frames of another rate, and by time: 25 ids a second of half a second each.
works positions --video 3,1,2
row 4 2 0 0
works positions --video 3,1,2 --fps 30 --base-fps 24
says 'multiply its frequencies by 0.80000000000000004'
works positions --video 3,1,2 --seconds 0.5 --ids-per-second 25
row 2 12 0 0
row 5 25 0 1
says 'in float32, rounded down; 0 to 25'

works positions --cu-seqlens 0,3,3,5
row 2 2
row 3 0
says 'sequence 1 is empty'
says 'sequence 2 is tokens 3 to 4: ids 0 to 1'
works positions --cu-seqlens 0,2,3 --offsets 100,7
row 1 101
row 2 7

# Long tables are cut, unless --all.
works positions --grid 100
says '68 more; --all prints them'
row 99 99
works positions --grid 100 --all
holds 'a line for each token' [ "$(grep -cE '^ +[0-9]+ +[0-9]+$' "$logs/out")" = 100 ]

works positions --grid 1,2 --json --out ids.npy
holds 'the ids in JSON' sh -c 'tr -d " \n" <"$1" | grep -qF "\"ids\":[0,1]"' sh "$logs/out"
holds 'shape and type' sh -c 'head -c 128 ids.npy | grep -aqF "<i4" && head -c 128 ids.npy |
    grep -aqF "(2, 1, 2)"'
holds 'the ids as int32' [ "$(tail -c 16 ids.npy | od -An -td4 | tr -s ' ')" = ' 0 0 0 1' ]

refuse 2 '--grid, --video and --cu-seqlens: 0 of them are given; it must be 1' positions
refuse 2 '2 of them are given' positions --grid 2 --cu-seqlens 0,1
for grid in '' ',' '2,' 0 -1 1x2 '1,2,3,4,5,6,7,8,9' 4294967296; do
    refuse 2 '--grid:' positions --grid "$grid"
done
refuse 2 'more than 8 numbers' positions --grid 1,2,3,4,5,6,7,8,9
refuse 2 '--first: it has 1 numbers; --grid has 2 axes' positions --grid 2,2 --first 1
refuse 2 'axes[0].ids reaches 2147483648: an id must fit in int32' positions --grid 2 \
    --first 2147483647
refuse 2 'at most 67108864 ids are made' positions --grid 4294967295,4294967295
refuse 2 'it has 2^64 tokens or more' positions --grid 4294967295,4294967295,4294967295
refuse 2 '--centred' positions --grid 2 --centred --first 1
refuse 2 '--reference' positions --grid 2 --reference 0
refuse 2 'it must have 3: frames, rows, columns' positions --video 2,3
refuse 2 '--ids-per-second' positions --video 2,3,4 --seconds 1
refuse 2 '--base-fps' positions --video 2,3,4 --fps 30
refuse 2 '--fps' positions --video 2,3,4 --fps nan --base-fps 24
refuse 2 'ids[2] would be 4000000000' positions --video 3,1,1 --seconds 2e9 --ids-per-second 1 \
    --out no.npy
refuse 2 'at most 67108864 ids are made' positions --video 4294967295,1,1
refuse 2 'cu_seqlens[0] is 1: it must be 0' positions --cu-seqlens 1,2
refuse 2 'cu_seqlens[2] is 3: it must be at least the one before, 4' positions --cu-seqlens 0,4,3,5
refuse 2 'its last number is -1' positions --cu-seqlens 0,-1
refuse 2 '--offsets: it has 1 numbers; --cu-seqlens has 2 sequences' positions \
    --cu-seqlens 0,1,2 --offsets 1
refuse 2 '--offsets' positions --grid 2 --offsets 1
refuse 5 '--out' positions --grid 2 --out missing/ids.npy
holds 'no file is left behind' [ ! -e no.npy ]
finish
