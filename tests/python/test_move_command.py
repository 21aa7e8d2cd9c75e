# SPDX-License-Identifier: MIT
"""Tests `vkrope rotate` with keys of a cache: rows that nothing changes keep their bytes, others
are verified, and numbers that are read without a rotation are those of stored_codes.py."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal as assert_same

from command import bits, save, says, write_model
from stored_codes import read_rows, stored_rows

SHIFT = "rotate --model model.json --k k.npy --out-k k_out.npy --positions deltas.npy --gain omit"
DELTAS = np.array([0, -1000, 0, 0, -1000, 3, 0])
SAME = DELTAS == 0
MADE = {"floor": 0.0}


@pytest.fixture
def cache(vkrope, lavapipe, tensor):
    """Returns a function that saves keys of a cache [1, 7, 2, bytes], and their scales; and returns
    both."""
    write_model()
    save(deltas=DELTAS)

    def make(kind, scale=None, name="k"):
        stored, scales = stored_rows(kind, tensor(1, 7, 2, 64), scale)
        save(**{name: stored})
        if scale:
            two = scale.get("power_of_two")
            there = (np.frexp(scales)[1] + 126).astype("u1") if two else scales.astype("f4")
            save(**{f"{name}_scales": there})
        return stored, scales

    return make


@pytest.mark.parametrize("kind", ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl"])
@pytest.mark.parametrize("blocks", ["", "--hadamard llama.cpp --hadamard-of-input llama.cpp"])
def test_a_shift_of_blocks(cache, vkrope, kind, blocks):
    before, _ = cache(kind)
    report = vkrope.report(f"{SHIFT} --dtype {kind} {blocks} --verify")
    found = report["k"]
    assert report["verified"] and (found["dtype"], found["store"]) == (kind, kind)
    assert found["hadamard"] == found["hadamard_of_input"] == (64 if blocks else 0)
    assert found["codes"]["compared"] == np.sum(~SAME) * 2 * 64  # the others are bytes
    after = np.load("k_out.npy")
    assert_same(after[:, SAME], before[:, SAME])
    assert (after[:, ~SAME] != before[:, ~SAME]).any()


@pytest.mark.parametrize("kind", ["e4m3fn", "e5m2", "int8", "int4"])
@pytest.mark.parametrize("scale, options", [
    (MADE, "--store-scale row"),
    ({**MADE, "group": 32}, "--store-scale row --store-scale-group 32"),
    ({**MADE, "group": 64, "power_of_two": True},
     "--store-scale row_power_of_two --store-scale-group 64 --scale-type ue8m0")])  # fmt: skip
def test_a_shift_with_scales(cache, vkrope, kind, scale, options):
    before, _ = cache(kind, scale)
    report = vkrope.report(f"{SHIFT} --dtype {kind} --k-scales k_scales.npy --out-k-scales new.npy"
                           f" {options} --verify")  # fmt: skip
    found = report["k"]
    assert report["verified"] and found["scales_in"]
    assert found["store_scale_group"] == scale.get("group", 0)
    assert found["scale_type"] == ("ue8m0" if scale.get("power_of_two") else "f32")
    after = np.load("k_out.npy")
    for now, of in (after, before), (bits("new"), bits("k_scales")):
        assert now.dtype == of.dtype and now.shape == of.shape
        assert_same(now[:, SAME], of[:, SAME])
    assert (after[:, ~SAME] != before[:, ~SAME]).any()


def test_scales_are_in_the_order_of_the_file(cache, vkrope):
    """Here [batch, heads, tokens, groups]: each row is read with its own scales, and a row that
    stays keeps them."""
    before, scales = cache("int8", {**MADE, "group": 32})
    save(k=before.transpose(0, 2, 1, 3), k_scales=scales.transpose(0, 2, 1, 3).astype("f4"))
    write_model(model_type="smollm3", head_dim=64, num_hidden_layers=4, no_rope_layers=[1, 1, 1, 0])
    line = ("rotate --model model.json --layer 3 --k k.npy --out-k k_out.npy --layout bhsd --verify"
            " --dtype int8 --k-scales k_scales.npy --store-scale-group 32")  # fmt: skip
    vkrope.works(f"{line} --store f32")
    numbers = read_rows("int8", before, scales).astype("f4")
    assert_same(np.load("k_out.npy"), numbers.transpose(0, 2, 1, 3))
    vkrope.works(f"{line} --store-scale row --out-k-scales new.npy")
    assert_same(bits("new"), bits("k_scales"))
    assert_same(np.load("k_out.npy"), np.load("k.npy"))


def test_keys_and_values_of_two_types(cache, vkrope):
    """The model's norm is not applied again. The report names what is read and stored."""
    cache("q8_0")
    values, _ = cache("q4_0", name="v")
    write_model(model_type="qwen3", head_dim=64)
    line = (f"{SHIFT} --v v.npy --out-v v_out.npy --dtype k=q8_0,v=q4_0 --store k=iq4_nl --verify"
            " --hadamard-of-input k=64,v=32 --hadamard v=32")  # fmt: skip
    report = vkrope.report(line)
    assert report["verified"] and report["k"]["norm"] is None
    assert [report[name]["dtype"] for name in "kv"] == ["q8_0", "q4_0"]
    assert [report[name]["store"] for name in "kv"] == ["iq4_nl", "q4_0"]
    assert_same(np.load("v_out.npy"), values)
    assert np.load("k_out.npy").shape == (1, 7, 2, 36)
    out = vkrope.works(line)
    assert says("ops *K from q8_0 to iq4_nl: undo the Hadamard transform of 64, rotation", out)
    assert says("tensors *K (1, 7, 2, 68) of q8_0, V (1, 7, 2, 36) of q4_0; layout bshd", out)


def test_keys_in_f16_with_a_transform(cache, vkrope, tensor):
    """A transform alone makes them keys of a cache. Zeros and NaNs keep their bits."""
    k = tensor(1, 7, 2, 64, dtype="f2")
    k[0, 0, 0, :3] = -0.0, np.nan, 6e-8
    k.view("u2")[0, 2, 1, 9] = 0xFE55
    save(k=k)
    report = vkrope.report(f"{SHIFT} --hadamard 64 --hadamard-of-input 64 --verify")
    assert report["verified"]
    assert_same(bits("k_out")[:, SAME], k.view("u2")[:, SAME])


def test_two_devices_give_the_same_bytes(cache, vkrope, swiftshader):
    cache("int4", {**MADE, "group": 32})
    line = (f"{SHIFT} --dtype int4 --k-scales k_scales.npy --out-k-scales new.npy --store-scale row"
            " --store-scale-group 32 --hadamard 16 --hadamard-of-input 32")  # fmt: skip
    vkrope.works(line)
    first = [bits(name) for name in ("k_out", "new")]
    vkrope.use(swiftshader)
    vkrope.works(line)
    for name, of in zip(("k_out", "new"), first):
        assert_same(bits(name), of)
