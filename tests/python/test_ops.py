# SPDX-License-Identifier: MIT
"""Tests `vkrope rotate` with norms, bias, clip and scale, from the model and from options, and with
quantised outputs: outputs are within the definition's bound, nothing else changes, and SwiftShader
gives the same bits. (The cases of own_cases.py have the bytes of each type.)"""

import json
import shutil

import numpy as np
import pytest
from numpy.testing import assert_array_equal as assert_same

from command import bits, save, says, write_model

ROTATE = "rotate --model model.json --q q.npy --out-q q_out.npy"
K = "--k k.npy --out-k k_out.npy"
V = "--v v.npy --out-v v_out.npy"
NORMS = "--q-norm w.npy --k-norm w.npy"
FIELDS = {"olmoe": {"clip_qkv": 0.5}, "ministral3": {"rope_parameters": {
    "rope_type": "default", "rope_theta": 10000.0, "llama_4_scaling_beta": 0.1,
    "original_max_position_embeddings": 8}}}


@pytest.fixture
def inputs(vkrope, lavapipe, tensor):
    """Makes the parameters, and returns a function that makes a model and tensors."""
    save(w=tensor(64), w_q=tensor(4, 64), w_k=tensor(128), scales=tensor(2, 7))

    def make(model, dtype="f4"):
        write_model(model_type=model, head_dim=64, **FIELDS.get(model, {}))
        for name, heads in ("q", 4), ("k", 2), ("v", 2):
            save(**{name: tensor(2, 7, heads, 64, dtype=dtype)})

    return make


@pytest.mark.parametrize("model, dtype, options, said", [
    ("llama", "f4", "", ""),
    ("hunyuan_v1_dense", "f4", f"{NORMS} --store f16", '"place": "after"'),
    ("ministral3", "f4", "--model-ops", '"scale_tokens": true'),
    ("qwen3", "f2", NORMS, '"eps": 9.999999974752427e-07'),
    ("qwen3", "u2", f"{NORMS} --inverse", '"direction": "inverse"'),  # of the rotation only
    ("olmoe", "f2", "--q-norm w_q.npy --k-norm w_k.npy", '"span": "token"*"clip": 0.5'),
    ("gemma3n_text", "f2", NORMS, ""),
    ("gemma3_text", "u2", "--q-norm w.npy --k-norm w_k.npy", '"weight_offset": 1'),
    ("chameleon", "u2",
     "--q-norm w_q.npy --k-norm w_k.npy --q-norm-bias w_q.npy --k-norm-bias w.npy", ""),
    ("llama", "u2", "--q-bias w_q.npy --k-bias w.npy --v-bias w_k.npy --clip 1 --q-scale 0.125"
     " --q-scale-tokens scales.npy --store f32", ""),
])  # fmt: skip
def test_ops(inputs, vkrope, model, dtype, options, said):
    inputs(model, dtype)
    report = vkrope.report(f"{ROTATE} {K} {V} --verify {options}")
    assert report["verified"] and says(said, json.dumps(report))
    assert all(report[name]["share_of_bound"] <= 1 for name in "qkv")
    if "--store" not in options:  # clip and a norm change V
        assert (bits("v") != bits("v_out")).any() == (model in ("olmoe", "gemma3n_text"))


def test_a_tensor_without_ops_is_rotated_with_the_same_bits(inputs, vkrope):
    """Only V has a norm, without a weight."""
    inputs("llama", "u2")
    options = "--pairing interleaved --first-position 100"
    report = vkrope.report(f"{ROTATE} {K} {V} --v-norm --norm-eps 1e-5 --verify {options}")
    assert report["verified"]
    assert all(report[name]["share_of_bound"] <= 1 for name in "qkv")
    beside_v = bits("q_out")
    vkrope.works(f"{ROTATE} {options}")
    assert_same(bits("q_out"), beside_v)


def test_the_text_report_and_the_bits_of_two_devices(inputs, vkrope, swiftshader):
    inputs("qwen3", "u2")
    out = vkrope.works(f"{ROTATE} {K} {V} {NORMS} --verify")
    assert says("ops *Q to bf16: rms norm*rotation", out) and says("verdict *correct", out)
    assert says("error *Q * of what the contract allows", out)
    first = [bits(f"{name}_out") for name in "qkv"]
    vkrope.use(swiftshader)
    vkrope.works(f"{ROTATE} {K} {V} {NORMS}")
    for name, expected in zip("qkv", first):
        assert_same(bits(f"{name}_out"), expected)


def test_codes_after_norms_and_transforms(inputs, vkrope, tensor):
    """Most codes have one possible value."""
    inputs("qwen3")
    save(q=tensor(1, 1, 4, 64), k=tensor(1, 1, 2, 64))
    report = vkrope.report(f"{ROTATE} {K} {NORMS} --first-position 5 --hadamard q=64,k=32 --verify"
                           " --store q=q5_1,k=int8 --store-scale k=row --out-k-scales scales.npy")
    assert report["verified"] and np.load("scales.npy").shape == (1, 1, 2)
    for name, count in ("q", 256), ("k", 128):
        codes = report[name]["codes"]
        assert (codes["compared"], codes["wrong"]) == (count, 0)
        assert codes["with_one_possible_value"] >= 100


def test_scales_are_in_the_order_of_the_file(inputs, vkrope, tensor):
    """Here [batch, heads, tokens]. The largest numbers of two heads and two tokens are 127 times 1,
    2, 4 and 8, which are the scales unless a floor is above them. Then each head has a scale, 0.5
    or 0.125: 63.5 is a tie, which rounds away from zero."""
    inputs("llama")
    first = np.zeros((1, 2, 2, 32), "f4")
    first[..., 0] = np.array([[1, 2], [4, 8]])
    save(q=tensor(1, 4, 2, 64), v=127 * first, heads=np.array([0.5, 0.125], "f4"))
    layout = "--layout bhsd --v v.npy --store v=int8 --store-scale"
    for scale, options in [(2, "row_power_of_two --scale-floor 1.5"),
                           (1.5, "row --scale-floor 1.5"), (1, "row")]:  # fmt: skip
        vkrope.works(f"{ROTATE} {layout} {options} --out-v v_out.npy"
                     " --out-v-scales v_scales.npy --verify")
        assert_same(np.load("v_scales.npy"), [[[scale, 2], [4, 8]]])
    assert_same(np.load("v_out.npy"), 127 * (first != 0))
    vkrope.works(f"{ROTATE} {layout} v=heads.npy --out-v v_out.npy --verify")
    assert_same(np.load("v_out.npy"), (first != 0) * [[64], [127]])
    vkrope.works(f"check --model model.json --q q.npy --actual q_out.npy --actual-v v_out.npy"
                 f" {layout} v=heads.npy")


@pytest.mark.parametrize("layout, axes", [("bshd", (0, 1, 2, 3)), ("bhsd", (0, 2, 1, 3))])
def test_second_destinations(inputs, vkrope, layout, axes):
    """K's rows in f16 beside blocks of them, and V as it was read, in the order of the files."""
    inputs("qwen3", "f2")
    for name in "qkv":
        save(**{name: np.ascontiguousarray(np.load(f"{name}.npy").transpose(axes))})
    run = f"{ROTATE} {K} {V} {NORMS} --layout {layout} --verify"
    line = (f"{run} --store k=q8_0 --second k=f16,v=f32 --second-of v=input"
            " --out-k-second k2.npy --out-v-second v2.npy --clip 0.75")
    report = vkrope.report(line)
    assert report["verified"] and report["q"]["second"] is None
    for name, of, dtype in ("k", "result", "f16"), ("v", "input", "f32"):
        second = report[name]["second"]
        assert (second["of"], second["type"]) == (of, dtype) and second["share_of_bound"] <= 1
    out = vkrope.works(line)
    assert says("ops *K to q8_0, and also to f16:", out) and says("V to f16, and its input to", out)
    assert says("error *K *second destination: *of what the contract allows", out)
    assert says("correct: 10 752 values", out)  # K and V count twice
    assert np.load("k_out.npy").shape[-1] == 68
    assert_same(np.load("v2.npy"), np.load("v.npy").astype("f4"))
    vkrope.works(f"{run} --clip 0.75")  # the same rows, stored once
    assert_same(bits("k2"), bits("k_out"))
    assert (bits("v_out") != bits("v")).any()


def test_a_norm_of_a_part(inputs, vkrope, tensor):
    """Channels outside the part have the bits of a rotation alone, and those in it the bits of rows
    that are as long as the part and not rotated."""
    inputs("llama")
    save(part=tensor(2, 24), k=tensor(2, 7, 2, 64))
    run = f"rotate --model model.json {K} --verify"
    norm = "--norm-eps 1e-5 --k-norm part.npy"
    report = vkrope.report(f"{run} {norm} --k-norm-channels 40:24 --norm-place after")
    found = report["k"]["norm"]
    assert report["verified"] and (found["first_channel"], found["channels"]) == (40, 24)
    normed = bits("k_out")
    vkrope.works(run)
    assert_same(normed[..., :40], bits("k_out")[..., :40])
    save(k=np.ascontiguousarray(np.load("k_out.npy")[..., 40:]))
    write_model(model_type="smollm3", head_dim=24, num_hidden_layers=4, no_rope_layers=[1, 1, 1, 0])
    vkrope.works(f"{run} --layer 3 {norm}")
    assert_same(normed[..., 40:], bits("k_out"))


def test_the_transforms_and_types_of_llama_cpp(inputs, vkrope, models):
    inputs("llama", "f2")
    report = vkrope.report(f"{ROTATE} {K} {V} --store q=f32,k=q8_0,v=q4_0 --hadamard llama.cpp"
                           " --verify")  # fmt: skip
    assert [report[name]["hadamard"] for name in "qkv"] == [64, 64, 64]
    assert np.load("k_out.npy").shape == (2, 7, 2, 68)  # the bytes of two blocks a row
    without_v = f"{ROTATE} {K} --store q=f32,k=q8_0 --hadamard llama.cpp"
    assert vkrope.report(without_v)["k"]["hadamard"] == 64
    shutil.copy(models / "deepseek-v2-lite.json", "model.json")
    save(k=np.zeros((2, 7, 1, 576), "f2"), w=np.ones(512, "f4"))
    latent = f"rotate --model model.json {K} --k-norm w.npy --store k=q8_0 --hadamard llama.cpp"
    assert vkrope.report(latent)["k"]["hadamard"] == 0
