# SPDX-License-Identifier: MIT
"""Tests positions, slots, factors and the number of tokens that a step makes on the device."""

import numpy as np
import pytest
import vkrope
from numpy.testing import assert_array_equal as assert_same

PAGE, PAGES, CACHE = 4, 6, 40


@pytest.fixture
def kernel(device):
    with vkrope.PositionKernel(device) as made:
        yield made


def test_a_step_with_slots_factors_and_the_number_of_tokens(device, kernel):
    rng = np.random.default_rng(3)
    lengths, ends = np.array([1, 5, 0, 3], np.int32), np.array([9, 5, 12, 22], np.int32)
    shifts = np.array([0, 0, 0, -10])
    table = rng.permutation(CACHE)[: 4 * PAGES].reshape(4, PAGES).astype(np.int32)
    table[3, 4] = -1
    scales = vkrope.QueryScales(device, "ministral3", length=8, beta=0.25, max_position=64)
    step = kernel.run(
        tokens=12, query_lens=device.array(lengths), seq_lens=device.array(ends),
        offsets=device.array(shifts), block_table=device.array(table), page_size=PAGE,
        cache_pages=CACHE, query_scales=scales, token_count=True,
    )  # fmt: skip
    sequence = np.repeat(np.arange(4), lengths)
    place = np.concatenate([np.arange(end - n, end) for n, end in zip(lengths, ends)])
    position, page = place + shifts[sequence], table[sequence, place // PAGE]
    slot = np.where(page == -1, -1, page * PAGE + place % PAGE)
    factor = (1 + 0.25 * np.log1p(position // 8)).astype(np.float32)
    assert_same(step.positions.numpy(), [[*position, 0, 0, 0]])
    assert_same(step.slot_mapping.numpy(), [[*slot, -1, -1, -1]])
    np.testing.assert_allclose(step.scale_tokens.numpy(), [[*factor, 1, 1, 1]], rtol=2**-23)
    assert step.token_count.numpy()[0] == 9
    assert step.out_of_range == 0
    assert (slot == -1).sum() == 1  # place 19 of the last sequence is in page 4


def test_ids_of_other_types_and_shards(device, kernel):
    wide = np.array([[0, 2**31 - 1], [2**31, -5]])
    step = kernel.run(batch=2, tokens=2, ids=device.array(wide))
    assert_same(step.positions.numpy(), [[0, 2**31 - 1], [-(2**31), -5]])
    assert step.out_of_range == 1
    assert step.slot_mapping is step.scale_tokens is step.token_count is None
    halves = device.array(np.array([[0.5, -1.25]], np.float32))
    step = kernel.run(tokens=2, ids=halves, fraction_bits=1)
    assert_same(step.positions.numpy(), [[1, -(2**31)]])
    sums = device.array(np.array([0, 8, 24]))
    step = kernel.run(tokens=12, cu_seqlens=sums, cp_size=2, cp_rank=1)
    assert_same(step.positions.numpy(), [[2, 3, 4, 5, *range(4, 12)]])


def test_a_device_that_binds_descriptor_sets(device_with_sets):
    device = device_with_sets
    with vkrope.PositionKernel(device) as kernel:
        for count in (3, 1):
            step = kernel.run(tokens=4, query_lens=device.array(np.array([count], np.int32)),
                              token_count=True)  # fmt: skip
            assert_same(step.positions.numpy(), [[*range(count), *[0] * (4 - count)]])
            assert step.token_count.numpy()[0] == count


def test_the_kernels_of_the_layers_take_what_a_step_made(device, kernel):
    rotation = vkrope.RopeParams(vkrope.default_inv_freq(10000.0, 8), pairing="half_split")
    keys = np.arange(3 * 8, dtype=np.float32).reshape(1, 3, 1, 8)
    step = kernel.run(
        tokens=3, query_lens=device.array(np.array([3], np.int32)),
        seq_lens=device.array(np.array([5], np.int32)),
        block_table=device.array(np.array([[7, 2]], np.int32)), page_size=PAGE, cache_pages=8,
    )  # fmt: skip
    cache = device.array(np.zeros((8, PAGE, 1, 8), np.float32))
    with vkrope.Kernel(
        device, rotation, k=np.float32, max_position=64, position_ids=True, scatter_kv=True
    ) as of_layer:
        of_layer.run(k=device.array(keys), out_k=cache, positions=step.positions,
                     slot_mapping=step.slot_mapping)  # fmt: skip
    with vkrope.Kernel(device, rotation, k=np.float32, max_position=64) as plain:
        right = device.empty(keys.shape, np.float32)
        plain.run(k=device.array(keys), out_k=right, positions=2)
    stored = cache.numpy()
    assert_same(np.stack([stored[7, 2], stored[7, 3], stored[2, 0]]), right.numpy()[0])
    assert np.count_nonzero(stored.any(axis=(2, 3))) == 3


def test_errors_name_the_argument(device, kernel):
    lengths = device.array(np.array([1, 2], np.int32))
    table = device.array(np.zeros((3, 4), np.int32))
    floats = device.array(np.zeros(2, np.float32))
    square = device.array(np.zeros((2, 2), np.int64))
    for words, arguments in (
        ("tokens is 0", {"tokens": 0}),
        ("query_lens is float32", {"query_lens": floats}),
        ("seq_lens is int32", {"query_lens": lengths, "seq_lens": lengths[:1]}),
        ("offsets is float32", {"query_lens": lengths, "offsets": floats}),
        ("query_lens has the shape", {"query_lens": table}),
        ("ids is int64", {"batch": 2, "tokens": 2, "ids": square.transpose(1, 0)}),
        ("block_table has 3 rows", {"query_lens": lengths, "block_table": table}),
        ("block_table is float32", {"query_lens": lengths, "block_table": floats}),
        ("cache_pages is 0", {"batch": 3, "block_table": table}),
        ("page_size is set", {"page_size": 4}),
        ("token_count is set", {"token_count": True}),
        ("cp_rank is 2", {"cp_size": 2, "cp_rank": 2}),
    ):
        with pytest.raises(vkrope.InvalidArgumentError, match=words):
            kernel.run(**{"tokens": 4, **arguments})
    for words, arguments in (
        ("kind is 'yarn'", {"kind": "yarn"}),
        ("scale.kind is none", {"kind": "none", "length": 0}),
        ("scale.length is 0", {"length": 0}),
        ("max_position is 0", {"max_position": 0}),
    ):
        with pytest.raises(vkrope.InvalidArgumentError, match=words):
            vkrope.QueryScales(
                device, **{"kind": "llama4", "length": 8, "max_position": 9, **arguments}
            )
