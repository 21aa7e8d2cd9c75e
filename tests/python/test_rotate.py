# SPDX-License-Identifier: MIT
"""rotate(): values against the definition, layouts, and where memory is shared."""

import itertools

import numpy as np
import pytest
import vkrope

from definition import assert_right, rotated

BOUND = 6  # of the factored texture, the default


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


def test_the_definition_of_these_tests_notices_a_wrong_value(llama, tensor):
    q = tensor(1, 2, 1, 128)
    exact, size = rotated(q, llama, [5, 6])
    good = exact.astype(np.float32)
    assert_right(good, (exact, size), BOUND)
    bad = good.copy()
    bad[0, 1, 0, 3] += 16 * 2.0**-24 * size[0, 1, 0, 3]
    with pytest.raises(AssertionError, match=r"1 of 256 values are wrong; at \(0, 1, 0, 3\)"):
        assert_right(bad, (exact, size), BOUND)


@pytest.mark.parametrize("angles", ["computed", "direct_texture", "direct_buffer"])
def test_other_angle_sources(device, llama, tensor, angles):
    q = tensor(1, 9, 2, 128)
    result = vkrope.rotate(q, rotation=llama, first_position=1000, angles=angles, device=device)
    expected = rotated(q, llama, np.arange(1000, 1009))
    assert_right(result.q, expected, vkrope.error_bound(angles))


def test_positions_up_to_the_end_of_int32(device, llama, tensor):
    q = tensor(1, 4, 1, 128)
    positions = np.array([0, -(2**31) + 1, 2**31 - 1, 12345678])
    result = vkrope.rotate(q, rotation=llama, positions=positions, device=device)
    assert_right(result.q, rotated(q, llama, positions), vkrope.error_bound("computed"))


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
def test_positions_of_each_token(device, llama, tensor, kind):
    q = tensor(2, 3, 2, 128)
    shared = np.array([9, 0, 200], kind)
    result = vkrope.rotate(q, rotation=llama, positions=shared, device=device)
    assert_right(result.q, rotated(q, llama, shared), BOUND)
    own = np.array([[9, 0, 200], [5, 5, 7]], kind)
    result = vkrope.rotate(q, rotation=llama, positions=own, device=device)
    assert_right(result.q, rotated(q, llama, own), BOUND)


@pytest.mark.parametrize("angles", ["factored_texture", "direct_texture", "computed"])
def test_phases_at_positions_of_both_signs(device, tensor, angles):
    rotation = vkrope.RopeParams(
        [1.0, 0.1, -0.01, 0.5], phase=[0.25, -3, 100, 0], attention_factor=1.25
    )
    np.testing.assert_array_equal(rotation.phase, [0.25, -3, 100, 0])
    q = tensor(1, 5, 2, 8)
    positions = np.array([0, -1, 7, -2048, 2047])
    result = vkrope.rotate(q, rotation=rotation, positions=positions, angles=angles, device=device)
    bound = vkrope.error_bound(angles, 1.25)
    assert_right(result.q, rotated(q, rotation, positions), bound)


def test_sums_over_axes_in_head_groups(device, tensor):
    sections = vkrope.Sections("sum", (0, 0, 0))
    inv_freq = np.linspace(-2, 2, 2 * 3 * 4).reshape(2, 3, 4)
    rotation = vkrope.RopeParams(
        inv_freq, sections=sections, head_groups=2, phase=np.linspace(0, 1, 8).reshape(2, 4)
    )
    np.testing.assert_array_equal(rotation.inv_freq, inv_freq)
    assert rotation.sections == sections and rotation.head_groups == 2
    q, k = tensor(2, 3, 4, 8), tensor(2, 3, 2, 8)
    positions = np.arange(18).reshape(3, 2, 3) * 11 - 90
    result = vkrope.rotate(q, k, rotation=rotation, positions=positions, device=device)
    bound = vkrope.error_bound("computed")
    assert_right(result.q, rotated(q, rotation, positions), bound)
    assert_right(result.k, rotated(k, rotation, positions), bound)


def test_windows_of_a_vision_tower(device, tensor):
    config = {"model_type": "gemma4", "vision_config": {"model_type": "gemma4_vision",
              "head_dim": 8, "rope_parameters": {"rope_theta": 100.0}}}  # fmt: skip
    rotation = vkrope.frequencies(config, tower="vision")
    assert rotation.windows == ((0, 4), (4, 4))
    q = tensor(2, 3, 2, 8)
    positions = np.arange(12).reshape(2, 2, 3) * 5
    result = vkrope.rotate(q, rotation=rotation, positions=positions, device=device)
    assert_right(result.q, rotated(q, rotation, positions), BOUND)
    other = vkrope.RopeParams([1.0, 0.5, 0.25], head_dim=10, windows=[(0, 4), (6, 2)])
    assert other.windows == ((0, 4), (6, 2)) and other.replace(windows=()).windows == ()
    q = tensor(1, 3, 2, 10)
    result = vkrope.rotate(q, rotation=other, device=device)
    assert_right(result.q, rotated(q, other, np.arange(3)), BOUND)
    with pytest.raises(vkrope.InvalidArgumentError, match="windows has 5 entries: 4 at most"):
        vkrope.RopeParams([1.0], windows=[(0, 2)] * 5)
    for wrong in [(-2, 2)], [(0, 2.5)], [(0,)], [(0, 2**32)], [3]:
        with pytest.raises(vkrope.InvalidArgumentError, match=r"windows\[0\] is"):
            vkrope.RopeParams([1.0], windows=wrong)
    overlapping = vkrope.RopeParams([1.0, 1.0], windows=[(0, 2), (1, 2)])
    with pytest.raises(vkrope.InvalidArgumentError, match=r"windows\[1\].offset is 1"):
        vkrope.rotate(tensor(1, 3, 2, 4), rotation=overlapping, device=device)


@pytest.mark.parametrize("model", ["qwen2-vl-2b", "qwen3-vl-4b"])
def test_positions_on_several_axes(device, models, tensor, model):
    rotation = vkrope.frequencies(models / f"{model}.json")
    q = tensor(2, 4, 2, 128)
    positions = np.arange(3 * 2 * 4).reshape(3, 2, 4) * 7
    result = vkrope.rotate(q, rotation=rotation, positions=positions, device=device)
    assert_right(result.q, rotated(q, rotation, positions), BOUND)
    # Text: one position for all axes.
    result = vkrope.rotate(q, rotation=rotation, first_position=3, device=device)
    assert_right(result.q, rotated(q, rotation, np.arange(3, 7)), BOUND)


def test_inverse_and_gain(device, models, tensor):
    rotation = vkrope.frequencies(models / "qwen2.5-7b.yarn.json")
    assert rotation.attention_factor != 1
    q = tensor(1, 5, 2, 128)
    for inverse, gain in itertools.product([False, True], ["apply", "omit", "divide_out"]):
        result = vkrope.rotate(
            q, rotation=rotation, first_position=50, inverse=inverse, gain=gain, device=device
        )
        expected = rotated(q, rotation, np.arange(50, 55), inverse=inverse, gain=gain)
        assert_right(result.q, expected, BOUND)


def test_partial_rotation_keeps_the_rest(device, models, tensor):
    rotation = vkrope.frequencies(models / "stablelm-3b.json")
    assert rotation.rotary_dim < rotation.head_dim
    q = tensor(1, 3, 2, rotation.head_dim)
    result = vkrope.rotate(q, rotation=rotation, first_position=5, device=device)
    assert_right(result.q, rotated(q, rotation, np.arange(5, 8)), BOUND)
    rest = slice(rotation.rotary_dim, None)
    np.testing.assert_array_equal(result.q[..., rest], q[..., rest])


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
        if given is not mixed:  # the results lie in memory as the inputs do
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
    # Into a part of another array, which has gaps.
    whole = np.zeros((2, 5, 6, 128), np.float32)
    vkrope.rotate(q, rotation=llama, out_q=whole[:, :, 1:5], device=device)
    np.testing.assert_array_equal(whole[:, :, 1:5], expected)
    assert not whole[:, :, 0].any() and not whole[:, :, 5].any()
    # In place.
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
