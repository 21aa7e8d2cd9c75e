# SPDX-License-Identifier: MIT
"""Tests 10^7 random blocks of each ggml type, and as many codes of the other types, on lavapipe. V
without ops is exact, so --verify knows every byte. SwiftShader gives the same bytes. Nine of ten
parts are normal numbers in f32. The last part is bf16 with random bits in every other channel, so
that scales overflow and infinities and NaNs occur. VKROPE_RANDOM_PARTS is the number of parts."""

import os

import numpy as np
import pytest
from numpy.testing import assert_array_equal as assert_same

from command import bits, save, write_model
from stored_codes import BLOCK_BYTES

PARTS = int(os.environ.get("VKROPE_RANDOM_PARTS", 10))
MADE = "--store-scale v=row --out-v-scales scales.npy"
LINE = "rotate --model model.json --k k.npy --out-k k_out.npy --out-v v_out.npy --v"


@pytest.mark.parametrize("part", range(PARTS))
def test_random_blocks(vkrope, lavapipe, swiftshader, part):
    dtype, width = ("f4", 1280) if part < PARTS - 1 else ("u2", 640)
    write_model(head_dim=64)
    # The reference takes ten times as long for a single float as for a float in a block.
    for name, heads in ("blocks", 25), ("codes", 1):
        values = np.random.default_rng(part).standard_normal((1, 1000, heads, width), "f4")
        save(**{name: values.view(dtype)}, k=np.ones((1, 1000, 1, 64), dtype))
    for kind, v, options in [
        *((kind, "blocks", "") for kind in BLOCK_BYTES),
        ("e4m3fn", "codes", "--store-scale v=1.5"),
        ("e5m2", "codes", "--store-scale v=0.7"),
        ("int8", "codes", MADE),
        ("int4", "codes", f"{MADE} --store-scale-group 32"),
    ]:
        line = f"{LINE} {v}.npy --store v={kind} {options}"
        report = vkrope.report(f"{line} --verify")
        assert report["verified"] and report["v"]["codes"]["compared"] == bits(v).size
        outputs = ["v_out", "scales"] if MADE in options else ["v_out"]
        first = [bits(name) for name in outputs]
        vkrope.use(swiftshader)
        vkrope.works(line)
        vkrope.use(lavapipe)
        for name, expected in zip(outputs, first):
            assert_same(bits(name), expected)
