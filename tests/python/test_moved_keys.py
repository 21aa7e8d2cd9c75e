# SPDX-License-Identifier: MIT
"""Tests kernels that read caches: keys that move, and conversions of each type. Without a rotation
all bytes are those of stored_codes.py; after one, few codes are one step from them, because the
rows before the store have rounding errors."""

import numpy as np
import pytest
import vkrope
from numpy.testing import assert_array_equal as assert_same

from case_comparison import compare_codes
from definition import assert_right, rotated
from stored_codes import BLOCK_BYTES, LARGEST, hadamard, read_rows, stored_rows

BOUND = 6
OFF_BY_ONE = 0.0025  # of the codes
HEADS, WIDTH = 2, 128
SCALES = [{"floor": 0.0}, {"floor": 0.0, "group": 32},
          {"floor": 1e-6, "group": 64, "power_of_two": True}]  # fmt: skip
FORMS = [(kind, scale) for kind in [*BLOCK_BYTES, *LARGEST]
         for scale in ([None] if kind in BLOCK_BYTES else SCALES)]  # fmt: skip


def scale_ops(scale):
    """Returns the fields of vkrope_ops that make such scales."""
    if scale is None:
        return {}
    two = scale.get("power_of_two", False)
    return {"store_scale": "made_power_of_two" if two else "made", "scale_floor": scale["floor"],
            "store_scale_group": scale.get("group", 0), "scale_type": "ue8m0" if two else "f32"}


def scales_there(device, scales, scale):
    """Copies scales to the device, as exponents if they are powers of two."""
    if scales is None:
        return None
    if scale.get("power_of_two"):
        return device.array((np.frexp(scales)[1] - 1 + 127).astype(np.uint8))
    return device.array(scales.astype(np.float32))


def as_floats(scales):
    there = scales.numpy()
    return np.ldexp(1.0, there.astype(int) - 127) if there.dtype == np.uint8 else there


def moving(device, rotation, dtype, dtype_out=None, *, ops=None, v=False, **options):
    """A kernel for K, and V without ops of its own but those of its type, that come from slots."""
    of = vkrope.HeadFormat(dtype, dtype_out, head_dim=WIDTH, heads=HEADS, ops=ops or {})
    if rotation.rotates:
        options = {"max_position": 2048, "position_ids": True, **options}
    return vkrope.Kernel(device, rotation, k=of, v=of if v else None, **{
        "gather_kv": True, "scatter_kv": True, **options})


def rows_with_edges(tensor, kind, count):
    """Rows of normal numbers, of zeros, and in blocks of numbers beyond f16 and NaNs."""
    x = tensor(count, HEADS, WIDTH)
    x[0, 0], x[1, 0, :32] = 0, 1e-30
    if kind == "iq4_nl":
        x[2, 0, 5], x[3, 0, 40], x[4, 0, 7] = np.inf, np.nan, 1e14
    return x


@pytest.mark.parametrize("kind, scale", FORMS)
def test_stores(device, tensor, kind, scale):
    """V is not rotated: each byte and each scale is known."""
    x = rows_with_edges(tensor, kind, 7)
    stored, scales = stored_rows(kind, x, scale)
    kernel = vkrope.Kernel(device, vkrope.RopeParams.without_rope(WIDTH), k=vkrope.HeadFormat(
        np.float32, kind, heads=HEADS, ops=scale_ops(scale)))
    codes, made = device.empty(stored.shape, np.uint8), scales_there(device, scales, scale)
    kernel.run(k=device.array(x), out_k=codes, k_scales=made)
    assert_same(codes.numpy(), stored)
    if scale:
        assert_same(as_floats(made), scales)


@pytest.mark.parametrize("kind, scale", FORMS)
def test_reads(device, tensor, kind, scale):
    """From slots of pages to rows: each number is the type's."""
    stored, scales = stored_rows(kind, tensor(12, HEADS, WIDTH), scale)
    slots = np.array([[3, 11, 0], [7, -1, 5]])
    ops = {**scale_ops(scale), "store_scale": "none", "scale_floor": 0, "scales_in": bool(scale)}
    kernel = moving(device, vkrope.RopeParams.without_rope(WIDTH), kind, np.float32, ops=ops,
                    scatter_kv=False)
    out = device.array(np.full((2, 3, HEADS, WIDTH), 7, np.float32))
    run = kernel.run(
        k=device.array(stored.reshape(3, 4, HEADS, -1)), out_k=out,
        k_scales_in=scales_there(device, scales, scale), source_mapping=device.array(slots),
    )  # fmt: skip
    assert run.out_of_range == 0
    numbers = read_rows(kind, stored, scales)[slots]
    numbers[1, 1] = 7  # its slot is -1
    assert_same(out.numpy(), numbers.astype(np.float32))


def assert_near(kind, actual, expected, written):
    """Checks rows [slots, heads, bytes]: of those `written`, few codes are one step off."""
    if kind == "int4":
        kind = "int8"
        actual, expected = (read_rows("int4", of).astype(np.int8).view(np.uint8)
                            for of in (actual, expected))
    kind = {"iq4_nl": "q4_0"}.get(kind, kind)  # with the same bytes
    rows = [of.reshape(-1, of.shape[-1]) for of in (actual, expected)]
    assert compare_codes(kind, *rows, np.repeat(written, HEADS), OFF_BY_ONE)[::2] == (0, "")


def assert_moved(kind, actual, before, expected, deltas):
    """Checks rows that stay in place: those without a delta have the same bytes."""
    assert_same(actual[deltas == 0], before[deltas == 0])
    assert (actual[deltas != 0] != before[deltas != 0]).any()
    assert_near(kind, actual, expected, deltas != 0)


DELTAS = np.array([0, 0, -1000, 0, -1000, -1000, -1000, 0, -1000, 3, 0, -1000])


def shifted(cache, kind, llama, deltas=DELTAS, *, blocks=0, scales=None, scale=SCALES[0]):
    """Returns the bytes and the scales of a cache after a shift, and without a transform of
    `blocks` in between."""
    row = read_rows(kind, cache, scales)
    row = hadamard(row, blocks) if blocks else row
    row, _ = rotated(row[None].astype(np.float32), llama, deltas, gain="omit")
    found, made = stored_rows(kind, hadamard(row[0], blocks) if blocks else row[0],
                              None if scales is None else scale)
    found[deltas == 0] = cache[deltas == 0]
    return found, made


@pytest.mark.parametrize("name", ["device", "device_with_sets"])
@pytest.mark.parametrize("blocks", [0, 64])
def test_context_shift_of_q8_0(request, name, llama, tensor, blocks):
    """In place, in any order of the slots, with the transform of llama.cpp and without. V, whose
    rows nothing changes, keeps its bytes."""
    device = request.getfixturevalue(name)
    ops = {"hadamard": blocks, "hadamard_of_input": blocks}
    kernel = moving(device, llama, "q8_0", ops=ops, v=True)
    cache, values = (stored_rows("q8_0", tensor(12, HEADS, WIDTH), None)[0] for _ in range(2))
    order = np.array([4, 2, 0, 9, 1, 11, 5, 8, 3, 10, 6, 7], np.int32)
    k, v = (device.array(of.reshape(3, 4, HEADS, -1)) for of in (cache, values))
    run = kernel.run(k=k, v=v, positions=device.array(DELTAS[order].astype(np.int32)), gain="omit",
                     slot_mapping=device.array(order))
    assert run.out_of_range == 0
    expected, _ = shifted(cache, "q8_0", llama, blocks=blocks)
    assert_moved("q8_0", k.numpy().reshape(cache.shape), cache, expected, DELTAS)
    assert_same(v.numpy().reshape(values.shape), values)


@pytest.mark.parametrize("kind", ["e4m3fn", "int8"])
def test_context_shift_with_scales_of_rows(device, llama, tensor, kind):
    cache, scales = stored_rows(kind, tensor(12, HEADS, WIDTH), {"floor": 0.0})
    ops = {"store_scale": "made", "scales_in": True}
    kernel = moving(device, llama, kind, ops=ops)
    k, there = device.array(cache), device.array(scales.astype(np.float32))
    kernel.run(k=k, positions=device.array(DELTAS.astype(np.int32)), gain="omit",
               slot_mapping=device.array(np.arange(12)), k_scales=there, k_scales_in=there)
    expected, made = shifted(cache, kind, llama, scales=scales)
    assert_moved(kind, k.numpy(), cache, expected, DELTAS)
    assert_same(there.numpy()[DELTAS == 0], scales[DELTAS == 0].astype(np.float32))
    np.testing.assert_allclose(there.numpy()[DELTAS != 0], made[DELTAS != 0], rtol=2e-6)


@pytest.mark.parametrize("kind, scale", [("iq4_nl", None), ("int4", SCALES[1]), ("q5_1", None)])
def test_moves_to_other_slots(device, llama, tensor, kind, scale):
    """A prefix goes to other slots of its cache: V, and K where its positions stay, verbatim. A
    slot outside the cache is counted once, and -1 not at all. One key turns on its way."""
    ops = {**scale_ops(scale), "scales_in": bool(scale)}
    kernel = moving(device, llama, kind, ops=ops, v=True)
    both = [stored_rows(kind, tensor(12, HEADS, WIDTH), scale) for _ in range(2)]
    source, target = np.array([2, 3, 0, 12, -1, 5]), np.array([7, 6, 11, 8, 9, 13])
    k, v = (device.array(cache) for cache, _ in both)
    k_scales, v_scales = (scales_there(device, scales, scale) for _, scales in both)
    deltas = np.array([0, 40, 0, 40, 40, 40], np.int32)
    run = kernel.run(
        k=k, v=v, positions=device.array(deltas), gain="omit", slot_mapping=device.array(target),
        source_mapping=device.array(source), k_scales=k_scales, k_scales_in=k_scales,
        v_scales=v_scales, v_scales_in=v_scales,
    )  # fmt: skip
    assert run.out_of_range == 2
    (keys, scales), turned = both[0], target == 6
    found, made = shifted(keys[source[turned]], kind, llama, deltas[turned], scale=scale,
                          scales=None if scale is None else scales[source[turned]])
    assert_near(kind, k.numpy()[target[turned]], found, np.array([True]))
    if scale:
        np.testing.assert_allclose(as_floats(k_scales)[target[turned]], made, rtol=2e-6)
    for of, made, (cache, scales), moved in ((v, v_scales, both[1], slice(3)),
                                             (k, k_scales, both[0], [0, 2])):  # fmt: skip
        kept = np.arange(12) != (6 if of is k else -1)  # the slot of the key that turns
        expected = cache.copy()
        expected[target[moved]] = cache[source[moved]]
        assert_same(of.numpy()[kept], expected[kept])
        if scale:
            expected = scales.copy()
            expected[target[moved]] = scales[source[moved]]
            assert_same(as_floats(made)[kept], expected[kept].astype(np.float32))


V_SLOTS, V_SOURCES = np.array([17, 1, -1, 20]), np.array([4, 19, 3, 16])


@pytest.mark.parametrize("given", [{"v_slot_mapping": V_SLOTS}, {"v_source_mapping": V_SOURCES},
                                   {"v_slot_mapping": V_SLOTS, "v_source_mapping": V_SOURCES}])
def test_v_moves_between_slots_of_its_own(device, llama, tensor, given):
    """The mapping of V that is missing is K's. V has more pages than K; its slot outside counts
    beside that of K."""
    kernel = moving(device, llama, "q8_0", v=True)
    k_cache, v_cache = (stored_rows("q8_0", tensor(n, HEADS, WIDTH), None)[0] for n in (12, 20))
    source, target = np.array([2, 5, 0, 12]), np.array([7, 6, 11, 8])
    k, v = (device.array(of.reshape(-1, 4, HEADS, of.shape[-1])) for of in (k_cache, v_cache))
    run = kernel.run(
        k=k, v=v, positions=device.array(np.zeros(4, np.int32)), gain="omit",
        slot_mapping=device.array(target), source_mapping=device.array(source),
        **{name: device.array(slots) for name, slots in given.items()},
    )  # fmt: skip
    assert run.out_of_range == 1 + ("v_slot_mapping" in given)
    of_v = given.get("v_source_mapping", source), given.get("v_slot_mapping", target)
    for there, cache, from_, to in ((k, k_cache, source, target), (v, v_cache, *of_v)):
        moved = (from_ < len(cache)) & (to >= 0) & (to < len(cache))
        expected = cache.copy()
        expected[to[moved]] = cache[from_[moved]]
        assert_same(there.numpy().reshape(cache.shape), expected)


def test_v_stays_in_slots_of_its_own(device, tensor):
    """Without sources the rows of K and V stay, each in its own slots."""
    kernel = moving(device, vkrope.RopeParams.without_rope(WIDTH), np.float32, v=True,
                    ops={"scale": 2.0})
    caches = tensor(9, HEADS, WIDTH), tensor(5, HEADS, WIDTH)
    slots = np.array([8, 1, -1], np.int32), np.array([3, -1, 0], np.int32)
    k, v = map(device.array, caches)
    k_slots, v_slots = map(device.array, slots)
    assert kernel.run(k=k, v=v, slot_mapping=k_slots, v_slot_mapping=v_slots).out_of_range == 0
    for there, cache, of in zip((k, v), caches, slots):
        cache[of[of >= 0]] *= 2
        assert_same(there.numpy(), cache)


def test_new_frequencies(device, llama, tensor):
    """Cached keys turn by the difference of two sets of frequencies. They are then as raw keys that
    turn by the new ones, to the rounding of the cache."""
    factor, ids = 1.25, np.arange(900, 912)
    new = vkrope.RopeParams(llama.inv_freq / 4, pairing="half_split", attention_factor=factor)
    difference = vkrope.RopeParams(new.inv_freq - llama.inv_freq, pairing="half_split",
                                   attention_factor=factor)
    raw = tensor(1, 12, HEADS, WIDTH)
    cached = rotated(raw, llama, ids)[0].astype(np.float32)
    kernel = moving(device, difference, np.float32)
    k = device.array(cached[0])
    kernel.run(k=k, positions=device.array(ids.astype(np.int32)),
               slot_mapping=device.array(np.arange(12)))
    assert_right(k.numpy()[None], rotated(raw, new, ids), BOUND + 1)


def test_refused(device, llama, tensor):
    def refused(sentence, kernel, **given):
        with pytest.raises(vkrope.InvalidArgumentError, match=sentence):
            kernel.run(**given)

    with pytest.raises(vkrope.InvalidArgumentError, match="scale_type is 'f16'"):
        moving(device, llama, "int4", ops={"scale_type": "f16"})
    with pytest.raises(vkrope.VkropeError, match=r"tensor\[1\].in is q8_0.*\bout\b"):
        vkrope.Kernel(device, llama, q=np.float32, k="q8_0", max_position=8)
    kernel = moving(device, llama, np.float32)
    k, slots = device.array(tensor(3, 4, HEADS, WIDTH)), device.array(np.arange(3))
    ids = device.array(np.zeros(3, np.int32))
    common = {"k": k, "positions": ids, "slot_mapping": slots}
    refused("source_mapping is int64 of the shape .2,.*alike", kernel, source_mapping=slots[:2],
            **common)
    refused("source_mapping is int32.*alike", kernel, source_mapping=ids, **common)
    refused(r"out_k has Pages\(page_size=2.*k has Pages\(page_size=4", kernel,
            out_k=device.array(tensor(6, 2, HEADS, WIDTH)), source_mapping=slots, **common)
    kernel = moving(device, llama, np.float32, v=True)
    of_k, of_v = {"k": k, "positions": ids}, {"v": k, "v_slot_mapping": slots}
    refused(r"\.slot_mapping.buffer is null", kernel, **of_k, **of_v)
    refused("v_slot_mapping", kernel, **common, v_slot_mapping=slots)
    refused("v_source_mapping", kernel, **common, v=k, v_source_mapping=slots)
    refused("v_slot_mapping", moving(device, llama, np.float32, v=True, scatter_kv=False), out_k=k,
            out_v=k, source_mapping=slots, **of_k, **of_v)
    kernel = moving(device, llama, "int8", ops={"scales_in": True, "store_scale": "made"})
    codes = device.array(np.zeros((3, HEADS, WIDTH), np.uint8))
    refused("k_scales_in has the dtype uint8", kernel, k_scales_in=codes[..., 0],
            **{**common, "k": codes})
