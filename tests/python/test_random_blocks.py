# SPDX-License-Identifier: MIT
"""Tests 10^7 random blocks of each ggml type, and as many codes of the other types, on lavapipe. V
without ops is exact, so --verify knows every byte. SwiftShader gives the same bytes. Nine of ten
parts are normal numbers in f32. The last part is bf16 with random bits in every other channel, so
that scales overflow and infinities and NaNs occur. From the environment:

VKROPE_RANDOM_PARTS=10   number of parts of 10^6 blocks; the last part is bf16
"""

import os

import numpy as np
import pytest
from numpy.testing import assert_array_equal as assert_same

from command import bits, save, write_model

PARTS = int(os.environ.get("VKROPE_RANDOM_PARTS", 10))


@pytest.mark.parametrize("part", range(PARTS))
def test_random_blocks(vkrope, lavapipe, request, part):
    swiftshader = request.config.getoption("swiftshader")
    random = np.random.default_rng(part)
    bf16 = part == PARTS - 1

    def values(heads):
        """For bf16, the high halves of f32 numbers are normal, and the low halves random bits."""
        made = random.standard_normal((1, 1000, heads, 640 if bf16 else 1280), np.float32)
        return made.view("u2" if bf16 else "f4")

    write_model(head_dim=64)
    # The reference takes ten times as long for a single float as for a float in a block.
    save(k=np.ones((1, 1000, 1, 64), "u2" if bf16 else "f4"), blocks=values(25), codes=values(1))
    for kind, v, options in [
        *((f"q{name}", "blocks", "") for name in ("8_0", "4_0", "4_1", "5_0", "5_1")),
        ("e4m3fn", "codes", "--store-scale v=1.5"),
        ("e5m2", "codes", "--store-scale v=0.7"),
        ("int8", "codes", "--store-scale v=row --out-v-scales scales.npy"),
    ]:
        line = ("rotate --model model.json --k k.npy --out-k k_out.npy --out-v v_out.npy"
                f" --v {v}.npy --store v={kind} {options}")  # fmt: skip
        report = vkrope.report(f"{line} --verify")
        assert report["verified"]
        assert report["v"]["codes"]["compared"] == bits(v).size
        outputs = ["v_out"] + ["scales"] * ("scales" in options)
        first = [bits(name) for name in outputs]
        if swiftshader:
            vkrope.use(swiftshader)
            vkrope.works(line)
            vkrope.use(lavapipe)
            for name, expected in zip(outputs, first):
                assert_same(bits(name), expected)
