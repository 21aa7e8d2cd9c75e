# SPDX-License-Identifier: MIT
"""Tests `vkrope frequencies --matrix`: sines and then cosines of consecutive positions."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal as assert_same

from command import rows, write_model

MATRIX = "frequencies --model model.json --matrix"


def matrix(vkrope, positions):
    assert not vkrope.works(f"{MATRIX} {positions} --out matrix.npy")
    return np.load("matrix.npy")


def test_sines_and_cosines(vkrope):
    """As GPT-J's create_sinusoidal_positions: sin and then cos of position * 10000^(-2j / 64)."""
    write_model()
    found = matrix(vkrope, "-3:40")
    assert found.dtype == np.float32 and found.flags.c_contiguous
    angles = np.outer(np.arange(-3, 40), 10000.0 ** (-np.arange(32) / 32))
    np.testing.assert_allclose(found, np.hstack([np.sin(angles), np.cos(angles)]), 0, 1e-7)
    assert_same(matrix(vkrope, "0:40"), found[3:])


def test_far_positions_are_as_exact_as_near_ones(vkrope):
    """Checks the last digits of sin and cos of 10^6, and that cos is even and sin is odd."""
    write_model()
    sine, cosine = matrix(vkrope, "1000000:1000001")[0, [0, 32]].astype(float)
    assert abs(sine + 0.34999350217129294) < 3e-8 and abs(cosine - 0.93675212753314474) < 6e-8
    lowest = matrix(vkrope, "-2147483648:-2147483646")[-1]
    highest = matrix(vkrope, "2147483647:2147483648")[0]
    assert_same(highest, np.hstack([-lowest[:32], lowest[32:]]))


def test_the_matrix_contains_the_attention_factor(vkrope):
    """The JSON of the frequencies does not change."""
    write_model(rope_scaling={"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.5})
    assert_same(matrix(vkrope, "0:1"), [[0.0] * 32 + [1.5] * 32])
    alone = vkrope.works("frequencies --model model.json --json")
    assert vkrope.works(f"{MATRIX} 0:1 --out factor.npy --json") == alone


@pytest.mark.parametrize("code, words, line", rows("""
2 | --matrix        | matrix {} --out none.npy | 3 3: :3 3:3 4:3 1:2:3 0x1:0x2 1.5:2 \
-2147483649:0 0:2147483649 ''
2 | --matrix:*2147483648*64*549755813888*17179869184 | matrix 0:2147483648 --out none.npy
2 | --out           | matrix 0:3
2 | --matrix        | frequencies --model model.json --out none.npy
2 | --out:*--model  | matrix 0:3 --out model.json
5 | --out:*missing/m.npy | matrix 0:3 --out missing/m.npy
2 | --matrix:       | frequencies --model without.json --layer 3 --matrix 0:3 --out none.npy
""", matrix=MATRIX, frequencies="frequencies"))  # fmt: skip
def test_refused(vkrope, code, words, line):
    write_model()
    write_model("without.json", model_type="cohere2", num_hidden_layers=4,
                sliding_window_pattern=4)  # fmt: skip
    vkrope.refuse(code, words, line)
