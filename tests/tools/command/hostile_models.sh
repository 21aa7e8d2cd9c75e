#!/bin/sh
# SPDX-License-Identifier: MIT
# Model files that are made to keep a command busy, or to fill the memory: each is accepted or
# refused in about a second. The time limit is there for hangs: a machine that is slow passes.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions that others call
. "$(dirname "$0")/check.sh"
no_driver
hang=$((60 * ${VKROPE_TIME_FACTOR:-1})) # seconds
files=$models/../corpus/gguf
works "$vkrope" make-input --shape 1,5,4,32 --seed 1 --out q.npy

# hostile PATTERN FILE: refused with what the pattern names.
hostile() { refuse 5 "--model: '$2'*$1" timeout "$hang" "$vkrope" frequencies --model "$2"; }

# GGUF files of 1 TiB, nearly all of it a hole: an archive of one has 300 bytes, and zeros
# are valid entries.
text() { int64 ${#1} && printf %s "$1"; }
# head TENSORS KEYS: of a file, with the one key that every file has; KEYS are further ones.
head_of() { printf GGUF && int32 3 && int64 "$1" $((1 + $2)) && text general.architecture &&
    int32 8 && text llama; }
# list TYPE COUNT
list() { text list && int32 9 "$1" && int64 "$2"; }
with_hole() { cat >hole.gguf && truncate -s 1T hole.gguf; }

if truncate -s 1T hole.gguf 2>/dev/null; then
    head_of 45000000000 0 | with_hole
    hostile '45000000000*131072' hole.gguf
    head_of 0 9000000000 | with_hole
    hostile '9000000001*16384' hole.gguf
    for type in 8 9; do # strings, lists
        { head_of 0 1 && list $type 90000000000; } | with_hole
        hostile 'list*90000000000*4194304' hole.gguf
    done
    { head_of 0 1 && list 0 1000000000000; } | with_hole
    hostile 268435456 hole.gguf
    # What is within the limits is read to its end, and found to lack what a model has.
    { head_of 131072 1 && list 8 4194304; } | with_hole
    hostile llama.embedding_length hole.gguf
    # And a right file with a long hole behind it is a right file.
    with_hole <"$files/llama3.gguf"
    works timeout "$hang" "$vkrope" frequencies --model hole.gguf
    rm hole.gguf
else
    echo 'this file system has no files of 1 TiB: GGUF files with holes were left out'
fi

# Documents, and streams without an end.
zeros_of() { yes '0,' | head -n "$1"; } # elements of a list
{ printf '{"x": [' && zeros_of 6000000 && printf '0]}'; } >config.json
hostile 16777216 config.json
{ printf '{"x": [' && zeros_of 5000000 && printf '0]}'; } >config.json
hostile 524288 config.json
model_with "\"layer_types\": [$(seq -s , 60000 | sed 's/[0-9][0-9]*/"t&"/g')]" >config.json
hostile 'layer_types*60000*64' config.json
model_with "\"rope_parameters\": {$(seq -s , 60000 | sed 's/[0-9][0-9]*/"t&": {}/g')}" >config.json
hostile 'rope_parameters*60000*64' config.json
refuse 5 'rope_parameters*60000*64' timeout "$hang" "$vkrope" check --model config.json \
    --q q.npy --actual q.npy
model_with "\"rope_theta\": 1e4, $(seq -s , 100000 | sed 's/[0-9][0-9]*/"rope&": 1/g')" >config.json
works timeout "$hang" "$vkrope" frequencies --model config.json
holds 'how many more warnings there are' says 99900 "$logs/err"
hostile 16777216 /dev/zero
refuse 5 "--model: '-'*16777216" \
    sh -c 'yes | timeout "$1" "$0" frequencies --model -' "$vkrope" "$hang"
finish
