# SPDX-License-Identifier: MIT
"""Tests rotate(): values against the definition, layouts, and arrays that share memory."""

import numpy as np
import pytest
import vkrope

from definition import assert_right, rotated

BOUND = 6  # the error bound in u of the factored texture, which is the default


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint16])
@pytest.mark.parametrize("pairing", ["half_split", "interleaved"])
def test_values(device, llama, tensor, dtype, pairing):
    q, k, v = (tensor(2, 7, heads, 128, dtype=dtype) for heads in (4, 2, 2))
    result = vkrope.rotate(
        q, k, v, rotation=llama, first_position=100, pairing=pairing, device=device
    )
    positions = np.arange(100, 107)
    assert_right(result.q, rotated(q, llama, positions, pairing=pairing), BOUND)
    assert_right(result.k, rotated(k, llama, positions, pairing=pairing), BOUND)
    np.testing.assert_array_equal(result.v, v)
    assert result.q.dtype == dtype


def of_model(name, **query):
    return lambda models: vkrope.frequencies(models / f"{name}.json", **query)


def of_numbers(inv_freq, **numbers):
    return lambda models: vkrope.RopeParams(inv_freq, pairing="half_split", **numbers)


LLAMA, YARN = of_model("llama-3.1-8b"), of_model("qwen2.5-7b.yarn")
PHASES = of_numbers([1.0, 0.1, -0.01, 0.5], phase=[0.25, -3, 100, 0], attention_factor=1.25)
SUMS = of_numbers(
    np.linspace(-2, 2, 2 * 3 * 4).reshape(2, 3, 4), sections=vkrope.Sections("sum", (0, 0, 0)),
    head_groups=2, phase=np.linspace(0, 1, 8).reshape(2, 4),
)  # fmt: skip
AXES = np.arange(3 * 2 * 3).reshape(3, 2, 3) * 7
# Maps a name to (the rotation, arguments of rotate()); q is [2, 3, 4, head_dim].
ROTATIONS = {
    **{f"{angles} angles": (LLAMA, dict(first_position=1000, angles=angles))
       for angles in ("computed", "direct_texture", "direct_buffer")},
    "the end of int32": (LLAMA, dict(positions=[-(2**31) + 1, 2**31 - 1, 12345678])),
    "int32 for all sequences": (LLAMA, dict(positions=np.array([9, 0, 200], np.int32))),
    "uint8 for all sequences": (LLAMA, dict(positions=np.array([9, 0, 200], np.uint8))),
    "int64 of each": (LLAMA, dict(positions=np.array([[9, 0, 200], [5, 5, 7]], np.int64))),
    **{f"phases, {angles}": (PHASES, dict(positions=[-1, 2047, -2048], angles=angles))
       for angles in ("factored_texture", "direct_texture", "computed")},
    "sums in head groups": (SUMS, dict(positions=AXES * 11 - 90)),
    "windows with a gap": (
        of_numbers([1.0, 0.5, 0.25], head_dim=10, windows=[(0, 4), (6, 2)]), dict()
    ),
    "axes, sequential": (of_model("qwen2-vl-2b"), dict(positions=AXES)),
    "axes, interleaved": (of_model("qwen3-vl-4b"), dict(positions=AXES)),
    "axes of text": (of_model("qwen3-vl-4b"), dict(first_position=3)),
    **{f"inverse {inverse}, {gain}": (YARN, dict(first_position=50, inverse=inverse, gain=gain))
       for inverse in (False, True) for gain in ("apply", "omit", "divide_out")},
    "a part of each row": (of_model("stablelm-3b"), dict(first_position=5)),
}  # fmt: skip


@pytest.mark.parametrize("name", ROTATIONS)
def test_rotations(device, models, tensor, name):
    make, arguments = ROTATIONS[name]
    rotation = make(models)
    q = tensor(2, 3, 4, rotation.head_dim)
    result = vkrope.rotate(q, rotation=rotation, device=device, **arguments)
    positions = arguments.get("positions", arguments.get("first_position", 0) + np.arange(3))
    ways = {way: arguments[way] for way in ("inverse", "gain") if way in arguments}
    beyond_tables = make is SUMS or name == "the end of int32"
    angles = "computed" if beyond_tables else arguments.get("angles", "factored_texture")
    factor = rotation.attention_factor if make is PHASES else 1
    bound = vkrope.error_bound(angles, factor)
    assert_right(result.q, rotated(q, rotation, positions, **ways), bound)


def test_a_model_instead_of_a_rotation(device, models, llama, tensor):
    q = tensor(1, 3, 2, 128)
    of_model = vkrope.rotate(q, model=models / "llama-3.1-8b.json", device=device)
    of_rotation = vkrope.rotate(q, rotation=llama, device=device)
    np.testing.assert_array_equal(of_model.q, of_rotation.q)


@pytest.mark.parametrize("layout", ["bshd", "bhsd", "sbhd"])
def test_layouts(device, llama, tensor, layout):
    q, k = tensor(2, 5, 4, 128), tensor(2, 5, 2, 128)
    axes = {"bshd": (0, 1, 2, 3), "bhsd": (0, 2, 1, 3), "sbhd": (1, 0, 2, 3)}[layout]
    expected = vkrope.rotate(q, k, rotation=llama, device=device)
    as_view = q.transpose(axes), k.transpose(axes)
    as_copy = q.transpose(axes).copy(), k.transpose(axes).copy()
    mixed = q.transpose(axes), k.transpose(axes).copy()
    for given in (as_view, as_copy, mixed):
        result = vkrope.rotate(*given, rotation=llama, layout=layout, device=device)
        np.testing.assert_array_equal(result.q, expected.q.transpose(axes))
        np.testing.assert_array_equal(result.k, expected.k.transpose(axes))
        if given is not mixed:  # the results have the memory layout of the inputs
            assert [array.strides for array in result[:2]] == [array.strides for array in given]


def test_packed_tokens(device, llama, tensor):
    q = tensor(6, 2, 128)
    positions = [0, 1, 2, 0, 1, 0]
    result = vkrope.rotate(q, rotation=llama, positions=positions, layout="thd", device=device)
    assert result.q.shape == q.shape
    assert_right(result.q[None], rotated(q[None], llama, positions), BOUND)


def test_arrays_with_gaps_are_copied(device, llama, tensor):
    qkv = tensor(1, 5, 8, 128, dtype=np.float16)
    before = qkv.copy()
    result = vkrope.rotate(qkv[:, :, :4], qkv[:, :, 4:6], qkv[:, :, 6:], rotation=llama,
                           device=device)  # fmt: skip
    assert_right(result.q, rotated(qkv[:, :, :4], llama, np.arange(5)), BOUND)
    assert_right(result.k, rotated(qkv[:, :, 4:6], llama, np.arange(5)), BOUND)
    np.testing.assert_array_equal(result.v, qkv[:, :, 6:])
    np.testing.assert_array_equal(qkv, before)


def test_results_go_where_the_caller_says(device, llama, tensor):
    q = tensor(2, 5, 4, 128)
    expected = vkrope.rotate(q, rotation=llama, device=device).q
    out = np.zeros_like(q)
    assert np.shares_memory(vkrope.rotate(q, rotation=llama, out_q=out, device=device).q, out)
    np.testing.assert_array_equal(out, expected)
    # The output is a part of another array, so it has gaps.
    whole = np.zeros((2, 5, 6, 128), np.float32)
    vkrope.rotate(q, rotation=llama, out_q=whole[:, :, 1:5], device=device)
    np.testing.assert_array_equal(whole[:, :, 1:5], expected)
    assert not whole[:, :, 0].any() and not whole[:, :, 5].any()
    # The rotation is in place.
    vkrope.rotate(q, rotation=llama, out_q=q, device=device)
    np.testing.assert_array_equal(q, expected)


def test_no_copy_is_made_of_memory_in_order(device, llama, tensor, monkeypatch):
    from vkrope import _rotate

    seen = []

    def note(array):
        seen.append(array)
        return pointer(array)

    pointer = _rotate._pointer
    monkeypatch.setattr(_rotate, "_pointer", note)
    q = tensor(2, 5, 4, 128)
    out = np.empty_like(q)
    for view, target, layout in (
        (q, out, "bshd"),
        (q.transpose(0, 2, 1, 3), out.transpose(0, 2, 1, 3), "bhsd"),
    ):
        seen.clear()
        vkrope.rotate(view, rotation=llama, layout=layout, out_q=target, device=device)
        given = [array for array in seen if array is not None]
        assert [array.ctypes.data for array in given] == [q.ctypes.data, out.ctypes.data]


def test_arrays_without_elements(device, llama):
    empty = np.empty((2, 0, 4, 128), np.float32)
    assert vkrope.rotate(empty, rotation=llama, device=device).q.shape == empty.shape
    no_heads = np.empty((1, 3, 0, 128), np.float32)
    some = np.ones((1, 3, 1, 128), np.float32)
    result = vkrope.rotate(no_heads, some, rotation=llama, device=device)
    assert result.q.shape == no_heads.shape
    assert_right(result.k, rotated(some, llama, np.arange(3)), BOUND)


def test_ml_dtypes(device, llama, tensor):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="no ml_dtypes: it is not a Debian package")
    bits = tensor(1, 3, 2, 128, dtype=np.uint16)
    result = vkrope.rotate(bits.view(ml_dtypes.bfloat16), rotation=llama, device=device)
    assert result.q.dtype == ml_dtypes.bfloat16
    expected = vkrope.rotate(bits, rotation=llama, device=device)
    np.testing.assert_array_equal(result.q.view(np.uint16), expected.q)
