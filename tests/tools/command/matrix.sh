#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests `vkrope frequencies --matrix`: sines and then cosines of consecutive positions.
# shellcheck disable=SC2016,SC2317 # expressions for another shell; functions called indirectly
. "$(dirname "$0")/check.sh"
no_driver
model_with '"rope_theta": 10000.0' >model.json
matrix() { "$vkrope" frequencies --model model.json --matrix "$@"; }
values() { tail -c +129 "$1" | od -An -v -t f4 -w256; } # one row of 64 floats per line

# GPT-J's create_sinusoidal_positions: sin and cos of position * 10000^(-2j / 64), sines first.
works matrix -3:40 --out some.npy
holds 'nothing on stdout' [ ! -s "$logs/out" ]
holds 'the shape' sh -c \
    'head -c 128 some.npy | grep -qaF "'"'<f4', 'fortran_order': False, 'shape': (43, 64)"'"'
holds 'the size' [ "$(wc -c <some.npy)" = $((128 + 43 * 256)) ]
values some.npy >some.txt
holds 'sines and cosines' awk '
    NF != 64 { exit 1 }
    { for (j = 0; j < 32; j++) {
        angle = (NR - 4) * exp(-2 * j / 64 * log(10000))
        for (part = 0; part < 2; part++) {
            d = $(1 + j + 32 * part) - (part ? cos(angle) : sin(angle))
            if (!(d < 1e-7 && d > -1e-7)) { print "row", NR, "column", 1 + j + 32 * part; exit 1 }
        } } }
    END { exit !(NR == 43) }' some.txt
works matrix 0:40 --out later.npy
values later.npy >later.txt
holds 'rows do not depend on where the matrix begins' \
    sh -c 'tail -n 40 some.txt | cmp -s - later.txt'

# Far positions are as exact as near ones: checks the last float32 digits of sin and cos of 10^6.
works matrix 1000000:1000001 --out far.npy
values far.npy >far.txt
holds 'a far position' awk '{ s = $1 + 0.34999350217129294; c = $33 - 0.93675212753314474
    exit !(s < 3e-8 && s > -3e-8 && c < 6e-8 && c > -6e-8) }' far.txt
works matrix -2147483648:-2147483646 --out lowest.npy
works matrix 2147483647:2147483648 --out highest.npy
values lowest.npy | tail -n 1 >lowest.txt
values highest.npy >highest.txt
holds 'cos is even, sin is odd' awk 'NR == 1 { split($0, a); next }
    { for (j = 1; j <= 64; j++) if ($j != (j > 32 ? a[j] : -a[j])) exit 1 }' lowest.txt highest.txt

# The matrix contains the attention factor. The JSON does not change.
model_with '"rope_theta": 10000.0, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.5}' >yarn.json
works "$vkrope" frequencies --model yarn.json --json
cp "$logs/out" alone.json
works "$vkrope" frequencies --model yarn.json --matrix 0:1 --out factor.npy --json
holds 'the JSON of frequencies' cmp -s alone.json "$logs/out"
values factor.npy >factor.txt
holds 'position 0: no sine, cosines of the factor' awk \
    '{ for (j = 1; j <= 64; j++) if ($j != (j > 32 ? 1.5 : 0)) exit 1 } END { exit NR != 1 }' \
    factor.txt

for range in 3 3: :3 3:3 4:3 1:2:3 0x1:0x2 1.5:2 -2147483649:0 0:2147483649 ''; do
    refuse 2 '--matrix' matrix "$range" --out none.npy
done
refuse 2 '--matrix:*2147483648*64*549755813888*17179869184' matrix 0:2147483648 --out none.npy
refuse 2 '--out' "$vkrope" frequencies --model model.json --matrix 0:3
refuse 2 '--matrix' "$vkrope" frequencies --model model.json --out none.npy
refuse 2 '--out:*--model' matrix 0:3 --out model.json
refuse 5 '--out:*missing/m.npy' matrix 0:3 --out missing/m.npy
refuse 5 '--out:*none.npy' sh -c 'ulimit -f 100; exec "$@"' sh \
    "$vkrope" frequencies --model model.json --matrix 0:1000 --out none.npy
printf '{"model_type": "cohere2", "hidden_size": 256, "num_attention_heads": 4,
 "num_hidden_layers": 4, "sliding_window_pattern": 4,
 "rope_theta": 50000}' >without.json
refuse 2 '--matrix:' \
    "$vkrope" frequencies --model without.json --layer 3 --matrix 0:3 --out none.npy
finish
