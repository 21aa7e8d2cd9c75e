# SPDX-License-Identifier: MIT
"""Tests rotations that are read from model files, made of numbers, and changed."""

import json

import numpy as np
import pytest
import vkrope

@pytest.mark.parametrize("name", ["llama-3.1-8b", "phi-3.5-mini", "qwen2-vl-2b"])
def test_agrees_with_the_reference_implementation(models, name):
    expected = json.loads((models / "expected" / f"{name}.json").read_text())
    for variant in expected["variants"]:
        rotation = vkrope.frequencies(models / f"{name}.json", seq_len=variant["seq_len"] or 0)
        assert rotation.head_dim == expected["head_dim"]
        assert rotation.rotary_dim == expected["rotary_dim"]
        assert rotation.rope_type == expected["rope_type"]
        assert rotation.pairing == expected["pairing"]
        np.testing.assert_allclose(rotation.inv_freq, variant["inv_freq"], rtol=1e-12)
        np.testing.assert_allclose(rotation.attention_factor, variant["attention_factor"], 1e-12)


def test_a_dict_means_what_its_file_means(models):
    path = models / "phi-3.5-mini.json"
    of_file = vkrope.frequencies(path, seq_len=5000)
    of_dict = vkrope.frequencies(json.loads(path.read_text()), seq_len=5000)
    np.testing.assert_array_equal(of_file.inv_freq, of_dict.inv_freq)
    assert of_file.attention_factor == of_dict.attention_factor
    short = vkrope.frequencies(path, seq_len=100)
    assert short.longest_seq_len == 4096 and (of_file.inv_freq < short.inv_freq).any()


def test_layer_types(models):
    path = models / "gemma-3-4b.full.json"
    full = vkrope.frequencies(path, layer_type="full_attention")
    sliding = vkrope.frequencies(path, layer_type="sliding_attention")
    assert (full.base, sliding.base) == (1_000_000, 10_000)
    first = vkrope.frequencies(path, layer=0)
    np.testing.assert_array_equal(first.inv_freq, sliding.inv_freq)


def test_sections(models):
    assert vkrope.frequencies(models / "qwen2-vl-2b.json").sections == vkrope.Sections(
        "sequential", (16, 24, 24)
    )
    assert vkrope.frequencies(models / "qwen3-vl-4b.json").sections.order == "interleaved"
    assert vkrope.frequencies(models / "llama-3.1-8b.json").sections is None


def test_numbers_come_back():
    inv_freq = [1.0, 0.1, 0.01]
    sections = vkrope.Sections("interleaved", (1, 1, 1), leftover_axis=2)
    rotation = vkrope.RopeParams(
        inv_freq, head_dim=10, pairing="interleaved", attention_factor=1.25, q_rotary_offset=4,
        k_rotary_offset=2, sections=sections, base=10_000,
    )  # fmt: skip
    np.testing.assert_array_equal(rotation.inv_freq, inv_freq)
    assert (rotation.warnings, rotation.rope_type) == ([], "default")
    assert (rotation.head_dim, rotation.rotary_dim) == (10, 6)
    assert (rotation.q_rotary_offset, rotation.k_rotary_offset) == (4, 2)
    assert (rotation.pairing, rotation.precision) == ("interleaved", "exact")
    assert (rotation.attention_factor, rotation.base) == (1.25, 10_000)
    assert rotation.sections == sections and rotation.rotates
    summed, phase = np.linspace(-2, 2, 24).reshape(2, 3, 4), np.linspace(0, 1, 8).reshape(2, 4)
    sections = vkrope.Sections("sum", (0, 0, 0))
    rotation = vkrope.RopeParams(
        summed, pairing="half_split", sections=sections, head_groups=2, phase=phase
    )
    np.testing.assert_array_equal(rotation.inv_freq, summed)
    np.testing.assert_array_equal(rotation.phase, phase)
    assert rotation.sections == sections and rotation.head_groups == 2
    windows = vkrope.RopeParams(
        [1.0, 0.5, 0.25], pairing="half_split", head_dim=10, windows=[(0, 4), (6, 2)]
    )
    assert windows.windows == ((0, 4), (6, 2)) and windows.replace(windows=()).windows == ()


def test_replace_changes_what_is_named_and_nothing_else(llama):
    changed = llama.replace(pairing="interleaved", attention_factor=2.0, head_dim=192)
    assert (changed.pairing, changed.attention_factor) == ("interleaved", 2.0)
    assert (changed.head_dim, changed.rotary_dim) == (192, 128)
    np.testing.assert_array_equal(changed.inv_freq, llama.inv_freq)
    assert (llama.pairing, llama.attention_factor, llama.head_dim) == ("half_split", 1.0, 128)


def test_error_bounds():
    assert vkrope.error_bound("factored_texture") == 6
    assert vkrope.error_bound("computed") == 4.5
    assert vkrope.error_bound("direct_texture") == 2.5
    assert vkrope.error_bound("direct_buffer", 1.5) == 3


def test_a_rotation_keeps_numbers_of_its_own():
    numbers = np.array([1.0, 0.5])
    rotation = vkrope.RopeParams(numbers, pairing="half_split")
    numbers[0] = 7
    assert rotation.inv_freq[0] == 1
    with pytest.raises(vkrope.InvalidArgumentError, match="phase_count"):
        vkrope.RopeParams([1, 0.5], pairing="half_split", phase=[1, 2, 3])
    with pytest.raises(vkrope.InvalidArgumentError, match="inv_freq_count"):
        rotation.replace(sections=vkrope.Sections("sum", (0, 0)))


def test_scalings():
    """Each function in its simplest case; test_cases.py has the formulas."""
    plain = vkrope.default_inv_freq(10000, 8)
    np.testing.assert_allclose(plain, [1, 0.1, 0.01, 0.001], rtol=1e-15)
    np.testing.assert_array_equal(vkrope.scale_linear(plain, 4), plain / 4)
    np.testing.assert_array_equal(vkrope.scale_positions(plain, 0.5), plain / 2)
    np.testing.assert_array_equal(vkrope.scale_divisors(plain, [1, 2, 4, 8]), plain / [1, 2, 4, 8])
    np.testing.assert_array_equal(vkrope.proportional_inv_freq(10000, 8, partial_rotary_factor=0.5),
                                  [*plain[:2], 0, 0])
    _, factor = vkrope.scale_yarn(plain, 10000, factor=4, original_max_position_embeddings=512)
    np.testing.assert_allclose(factor, 0.1 * np.log(4) + 1)
    divided, factor = vkrope.scale_ggml(plain, 10000, [2] * 4, freq_scale=0.5)
    np.testing.assert_array_equal(divided, plain / 4)
    assert factor == 1
    with pytest.raises(vkrope.InvalidArgumentError, match="factor"):
        vkrope.scale_linear(plain, 0)
    with pytest.raises(vkrope.InvalidArgumentError, match="freq_factor"):
        vkrope.scale_ggml(plain, 10000, [2], freq_scale=0.5)


def test_a_node_of_ggml():
    """The words of a node, whose floats are bits; scale_ggml has the same arithmetic."""
    def words(**floats: float) -> list[int]:
        numbers = {"freq_base": 5e5, "freq_scale": 0.25, "ext_factor": 1, "attn_factor": 0.5,
                   "beta_fast": 32, "beta_slow": 1} | floats
        bits = np.array(list(numbers.values()), np.float32).view(np.int32)
        return [0, 64, 2, 0, 4096, *bits.tolist(), 0, 0, 0, 0, 32]

    factors = np.linspace(1, 2, 32, dtype=np.float32)
    rotation = vkrope.rope_params_from_ggml_op(words(), 128, factors)
    scaled, factor = vkrope.scale_ggml(
        vkrope.default_inv_freq(5e5, 64), 5e5, factors, freq_scale=0.25, ext_factor=1,
        attn_factor=0.5, n_ctx_orig=4096)
    np.testing.assert_array_equal(rotation.inv_freq, scaled)
    assert (rotation.attention_factor, rotation.pairing) == (factor, "half_split")
    assert (rotation.head_dim, rotation.rotary_dim) == (128, 64)
    assert (rotation.q_rotary_offset, rotation.k_rotary_offset) == (32, 32)
    plain = vkrope.rope_params_from_ggml_op(words(freq_scale=1, ext_factor=0), 128)
    np.testing.assert_array_equal(plain.inv_freq, vkrope.default_inv_freq(5e5, 64))
    for wrong, name in (
        (words(freq_base=0), "freq_base"), (words(attn_factor=np.nan), "attn_factor"),
        ([1, *words()[1:]], "n_past"), (words()[:15], "op_params"),
        ([2**31, *words()[1:]], "op_params"), ([0.5, *words()[1:]], "op_params"),
    ):  # fmt: skip
        with pytest.raises(vkrope.InvalidArgumentError, match=name):
            vkrope.rope_params_from_ggml_op(wrong, 128)
    with pytest.raises(vkrope.InvalidArgumentError, match="freq_factors"):
        vkrope.rope_params_from_ggml_op(words(), 128, factors[:31])
    with pytest.raises(vkrope.InvalidArgumentError, match="head_dim"):
        vkrope.rope_params_from_ggml_op(words(), -1)
