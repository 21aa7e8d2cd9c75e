# SPDX-License-Identifier: MIT
"""Tests `vkrope check` on the outputs of an engine in numpy, and of `vkrope rotate` where they are
codes: every option and file affects the verdict. test_mistakes_page.py and, without files,
judge_*_test.cpp test which mistakes are named."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

import engine
from command import rows, same, save, says, write_model
from engine import Engine

OF_Q = "check --model model.json --q q.npy --actual y.npy"
OF_K = "check --model model.json --k k.npy --actual-k y_k.npy"
OF_BOTH = f"{OF_Q} --k k.npy --actual-k y_k.npy"
ROTATE = "rotate --model model.json --q q.npy --out-q y.npy"
WEIGHTS = "--q-norm w.npy --k-norm w.npy"
W = np.linspace(0.5, 2, 64, dtype="f4")


def made(first=0, tokens=9, **fields):
    """Returns an engine with 64 channels and positions from the first one."""
    positions = np.arange(first, first + tokens).reshape(1, 1, -1)
    return Engine(**{"head_dim": 64, "rotary_dim": 64, "base": 1e4, "positions": positions,
                     **fields})


def rotate(e, x):
    return engine.rotate(e, x.astype(float)).astype(x.dtype)


YARN = {"rope_theta": 5e5, "rope_scaling": {"rope_type": "yarn", "factor": 8.0,
                                            "original_max_position_embeddings": 256}}
OF_YARN = made(7, base=5e5, scaling={"type": "yarn", "factor": 8.0, "original": 256},
               factor=engine.magnitude(8.0))
SMOLLM3 = {"model_type": "smollm3", "rope_theta": 2e6, "num_hidden_layers": 4,
           "no_rope_layers": [1, 1, 1, 0]}
QWEN3 = {"model_type": "qwen3", "head_dim": 64, "rms_norm_eps": 0.01}


def normed(weight=W, eps=0.01, **fields):
    return made(norm={"weight": weight, "plus": 0, "eps": eps, **fields})


@pytest.fixture
def q(vkrope, tensor):
    """Q, in a file."""
    save(q=(x := tensor(2, 9, 4, 64)), w=W)
    return x


@pytest.fixture
def k(vkrope, tensor):
    """K, in a file."""
    save(k=(x := tensor(2, 9, 2, 64)))
    return x


def judged(vkrope, line, said, words="--actual"):
    """Checks the verdict for each tensor or, if there are mistakes, the first match for each.
    Returns the report."""
    code, words = (0, "") if said == "pass" else (1, words)
    report = json.loads(vkrope.expect(code, words, f"{line} --json"))
    for found in filter(None, (report, *(report[name] for name in "qkv"))):
        assert said == (found["matches"][0]["mistake"] if found["verdict"] == "mistake"
                        else found["verdict"])
    return report


REFUSED = """
2 | --q*--k                               | check
2 | --actual*--q                          | check --q q.npy
2 | --k*--actual-k                        | of_q --actual-k k.npy
2 | --model                               | alone --q q.npy --actual q.npy
2 | --positions                           | of_q --positions ids.npy --first-position 3
2 | --tolerance                           | of_q --tolerance '{}' | 0 1 nan x
2 | --tolerance                           | of_q --tolerance ''
2 | --actual-k-scales:                    | scales
5 | --model:*missing.json                 | alone --q q.npy --actual q.npy --model missing.json
5 | --actual:*missing.npy                 | check --q q.npy --actual missing.npy
5 | --actual:*k.npy*(2, 9, 2, 64)*q.npy*(2, 9, 4, 64) | check --q q.npy --actual k.npy
5 | --actual:*ids.npy*<i4                 | check --q q.npy --actual ids.npy
5 | --positions:*ids.npy*(4,)*(9,)*(2, 9) | of_q --positions ids.npy
5 | --positions:*(3, 2, 9)*3              | of_q --positions axes.npy
5 | --dtype*f16                           | of_q --dtype f16
5 | --k:*narrow.npy*(2, 9, 1, 100)*576*192*64 | \
alone --model deepseek.json --k narrow.npy --actual-k narrow.npy
5 | --actual-k:*y_k.npy*q8_0              | of_k --store q8_0
5 | --actual-k:*'k.npy'*f32*f16           | check --k k.npy --actual-k k.npy --store f16
5 | --actual-k-scales:*k.npy*(2, 9, 2, 64)*(2, 9, 2) | scales --actual-k-scales k.npy
"""
STARTS = {"alone": "check", "check": "check --model model.json", "of_q": OF_Q, "of_k": OF_K,
          "scales": f"{OF_K} --store int8 --store-scale row"}


@pytest.mark.parametrize("code, words, line", rows(REFUSED, **STARTS))
def test_refused(vkrope, models, q, k, code, words, line):
    write_model()
    shutil.copy(models / "deepseek-v2-lite.json", "deepseek.json")
    save(y=q, y_k=np.zeros((2, 9, 2, 64), "u1"), narrow=np.zeros((2, 9, 1, 100), "f4"),
         ids=np.zeros(4, "i4"), axes=np.zeros((3, 2, 9), "i4"))
    vkrope.refuse(code, words, line)


# A model, an engine, and what `check` says with options: pass, or a mistake.
@pytest.mark.parametrize("model, e, saying", [
    (YARN, OF_YARN, {
        "--first-position 7": "pass",
        "--first-position 7 --pairing interleaved": "swapped_pairing",
        "--first-position 7 --gain omit": "attention_factor_applied"}),
    (YARN, dataclasses.replace(OF_YARN, factor=1.0, inverse=True, interleaved=True), {
        "--first-position 7 --inverse --pairing interleaved --gain omit": "pass",
        "--first-position 2007": "swapped_pairing + attention_factor_missing + "
                                 "inverse_direction + position_offset"}),
    # The layers of another type, which only a number selects.
    ({"model_type": "deepseek_v4", "head_dim": 64, "qk_rope_head_dim": 16, "num_hidden_layers": 4,
      "compress_ratios": [0, 0, 4, 128], "compress_rope_theta": 160000},
     made(base=160000, rotary_dim=16, offset=48, interleaved=True),
     {"--layer 1": "other_layer_type", "--layer 2": "pass"}),
    # A rotated layer without RoPE, with the base of the model and with the usual one.
    (SMOLLM3, made(7, base=2e6), {"--first-position 7 --layer 3": "rotated_without_rope"}),
    (SMOLLM3, made(7), {"--first-position 7 --layer 3": "rotated_without_rope"}),
    (QWEN3, normed(), {WEIGHTS: "pass"}),
    (QWEN3, normed(after=True), {f"{WEIGHTS} --norm-place after": "pass"}),
    (QWEN3, normed(eps=1e-20), {f"{WEIGHTS} --norm-eps 1e-20": "pass"}),
])  # fmt: skip
def test_verdicts(vkrope, q, k, model, e, saying):
    write_model(**model)
    save(y=rotate(e, q), y_k=rotate(e, k))
    for options, said in saying.items():
        judged(vkrope, f"{OF_BOTH} {options}", said)


def test_outputs_without_a_rotation(vkrope, tensor, q, k):
    write_model(**YARN)
    save(y=q, empty=q[:, :0])
    judged(vkrope, f"{OF_Q} --first-position 7", "not_rotated")
    judged(vkrope, "check --model model.json --q empty.npy --actual empty.npy", "pass")
    # Nothing explains random outputs: the report has what was measured of each tensor.
    save(y=tensor(2, 9, 4, 64), y_k=tensor(2, 9, 2, 64))
    report = judged(vkrope, f"{OF_BOTH} --first-position 7", "unexplained")
    assert all(report[name]["findings"] and not report[name]["matches"] for name in "qk")


def test_layers_without_rope(vkrope, lavapipe, q):
    write_model(**SMOLLM3)
    vkrope.refuse(2, "--inverse: *no rotary", f"{ROTATE} --layer 3 --inverse")
    vkrope.works(f"{ROTATE} --layer 3 --first-position 7 --verify")
    assert same("q.npy", "y.npy")
    judged(vkrope, f"{OF_Q} --layer 3 --first-position 7", "pass")
    judged(vkrope, f"{OF_Q} --layer 2 --first-position 7", "positions_zero")
    # With a norm and a scale.
    ops = "--layer 3 --q-norm w.npy --norm-eps 0.01 --q-scale 0.5 --first-position 9000"
    vkrope.works(f"{ROTATE} --verify {ops}")
    judged(vkrope, f"{OF_Q} {ops}", "pass")
    save(y=rotate(made(9000, base=2e6, norm=normed().norm, scale=0.5), q))
    judged(vkrope, f"{OF_Q} {ops}", "rotated_without_rope")
    # Llama 4 scales by position in layers that it does not rotate.
    write_model(**{**SMOLLM3, "model_type": "llama4_text", "head_dim": 64})
    ops = "--layer 3 --clip 100 --first-position 9000"
    vkrope.works(f"{ROTATE} --verify {ops}")
    judged(vkrope, f"{OF_Q} {ops}", "pass")
    save(y=q)
    judged(vkrope, f"{OF_Q} {ops}", "scale_missing")


def test_latent_attention(vkrope, models, tensor):
    """Q and K each have the head_dim of their file."""
    shutil.copy(models / "deepseek-v2-lite.json", "model.json")
    yarn = {"type": "yarn", "factor": 40, "original": 4096}
    for name, head_dim, actual in ("q", 192, "y"), ("k", 576, "y_k"):
        e = made(head_dim=head_dim, offset=head_dim - 64, interleaved=True, scaling=yarn)
        x = tensor(2, 9, 2, head_dim)
        save(**{name: x, actual: rotate(e, x)})
    judged(vkrope, OF_BOTH, "pass")


def test_the_norm_of_a_latent_row(vkrope, models, tensor):
    """The model says which channels it takes; options say it for any row."""
    shutil.copy(models / "deepseek-v2-lite.json", "model.json")
    x, w = tensor(2, 9, 1, 576), np.linspace(0.5, 2, 512, dtype="f4")
    norm = {"weight": w, "plus": 0, "eps": 1e-6, "channels": 512}
    e = made(7, head_dim=576, offset=512, interleaved=True, norm=norm,
             scaling={"type": "yarn", "factor": 40, "original": 4096})
    line = f"{OF_K} --first-position 7 --k-norm w.npy"
    save(k=x, w=w, y_k=rotate(e, x))
    judged(vkrope, line, "pass")
    judged(vkrope, f"{line} --k-norm-channels 0:512", "pass")
    save(y_k=rotate(dataclasses.replace(e, norm=None), x))
    judged(vkrope, line, "norm_missing")
    save(y_k=rotate(dataclasses.replace(e, interleaved=False, norm={**norm, "eps": 0.1}), x))
    judged(vkrope, f"{line} --norm-eps 0.1", "swapped_pairing")
    # The rotated channels alone, and an assembled key, have no such norm.
    for head_dim in 64, 192:
        part = tensor(2, 9, 1, head_dim)
        e = dataclasses.replace(e, head_dim=head_dim, offset=head_dim - 64, norm=None)
        save(k=part, y_k=rotate(e, part))
        judged(vkrope, f"{OF_K} --first-position 7 --model-ops", "pass")
    # After the rotation, of other channels, by heads.
    write_model()
    x, w = tensor(2, 9, 2, 64), np.linspace(0.5, 2, 2 * 24, dtype="f4").reshape(2, 24)
    e = made(7, interleaved=True,
             norm={"weight": w, "plus": 0, "eps": 1e-3, "channels": 24, "after": True})
    options = "--pairing interleaved --norm-eps 1e-3 --norm-place after --k-norm-channels 0:24"
    save(k=x, w=w, y_k=rotate(e, x))
    judged(vkrope, f"{line} {options}", "pass")
    save(y_k=rotate(dataclasses.replace(e, norm={**e.norm, "weight": w[0]}), x))
    judged(vkrope, f"{line} {options}", "weight_of_first_head")


def test_positions_on_three_axes(vkrope, q, k):
    write_model(model_type="qwen2_vl", rope_scaling={"rope_type": "default",
                                                     "mrope_section": [8, 12, 12]})
    frame = 30 + np.arange(18).reshape(2, 9)
    axes = np.array([frame, frame[::-1] * 7 % 100, frame * 9999 % 131071])
    e = made(positions=axes, sections=("sequential", [8, 12, 12]))
    save(axes=axes, frame=frame, y=rotate(e, q), y_k=rotate(e, k))
    report = judged(vkrope, f"{OF_BOTH} --positions axes.npy", "pass")
    assert report["matches"] == [] and 0 < report["max_error_u"] <= 6
    save(y=rotate(made(positions=frame[None]), q))
    judged(vkrope, f"{OF_Q} --positions axes.npy", "sections_ignored")
    out = vkrope.works(f"{OF_Q} --positions frame.npy")
    assert says("sections_ignored*height_and_width_exchanged", out), "what they cannot show"


def test_windows_and_v_of_a_vision_tower(vkrope, q, k):
    """The axes of Gemma 4 have separate windows; V has the model's norm but is not rotated."""
    write_model(model_type="gemma4", vision_config={
        "rope_theta": 10000, "embed_dim": 256, "num_heads": 4, "hidden_size": 256})
    image = np.arange(7, 43).reshape(2, 1, 2, 9)

    def rotated(x):
        for axis, positions in enumerate(image):
            x = rotate(made(rotary_dim=32, offset=32 * axis, positions=positions), x)
        return x
    save(image=image[:, 0], ones=np.ones(64, "f4"), y=rotated(q), y_k=rotated(k))
    of_image = "--tower vision --positions image.npy"
    judged(vkrope, f"{OF_BOTH} {of_image}", "pass")
    v = rotate(dataclasses.replace(normed(weight=1, eps=1e-6), rotary_dim=0), k)
    save(y_k=rotated(v), v=v)
    of_v = f"{OF_K} {of_image} --v k.npy --k-norm ones.npy --actual-v"
    assert says("V  pass", vkrope.works(f"{of_v} v.npy"))
    assert says("V  mistake: v_rotated: ", vkrope.expect(1, "--actual-v: ", f"{of_v} y_k.npy"))


def test_the_tolerance(vkrope, q):
    """Angles in float32 at far positions are wrong by more than the bound, and close enough if the
    user accepts that. So is a single wrong value."""
    write_model(**YARN)
    far = dataclasses.replace(OF_YARN, positions=30000 + OF_YARN.positions)
    line = f"{OF_Q} --first-position 30007"
    save(y=rotate(dataclasses.replace(far, float32=True), q))
    out = vkrope.expect(1, "--actual: ", line)
    assert says("Q  mistake: float32_angles: ", out)
    assert says("   error *, * of 4608 values within 6 u", out)
    assert says("Q  close: ", vkrope.works(f"{line} --tolerance 0.01"))
    vkrope.expect(1, "--actual: ", f"{line} --tolerance 1e-6")
    y = rotate(far, q)
    y[1, 7, 3, 0] *= 1.004
    save(y=y)
    assert judged(vkrope, line, "close")["q"]["only_wrong"]["region"] == "element"
    vkrope.works(f"{line} --tolerance 0.1")


def test_layouts(vkrope, tensor):
    write_model()
    x = tensor(2, 37, 4, 64, dtype=np.float16)
    save(q=x, y=rotate(made(7, tokens=4), x.swapaxes(1, 2)).swapaxes(1, 2))
    judged(vkrope, f"{OF_Q} --first-position 7 --layout bhsd", "pass")
    judged(vkrope, f"{OF_Q} --first-position 7", "positions_along_heads")


def test_wrong_values_outside_the_window_have_no_error_in_u(vkrope, q):
    write_model(partial_rotary_factor=0.5)
    save(y=rotate(made(7, rotary_dim=32, offset=16), q))
    out = vkrope.expect(1, "", f"{OF_Q} --first-position 7")
    assert says("   error outside window, ", out)
    judged(vkrope, f"{OF_Q} --first-position 7 --rotary-offset 16", "pass")


WRONG_SCALES = "--actual-k: 0 of 2304 codes and 36 of 36 scales*: batch 0 token 0 head 0 scale: "


@pytest.mark.parametrize("store, wrong, said, words", [
    ("--store q4_0 --hadamard 64", "--store q4_0", "hadamard_of_64", "--actual-k: "),
    ("--store int8 --store-scale row", "--store int8 --store-scale row_power_of_two",
     "unexplained", WRONG_SCALES),
    ("--store e4m3fn --store-scale row_power_of_two", "--store e4m3fn --store-scale row",
     "unexplained", WRONG_SCALES),
    ("--store iq4_nl --hadamard 64", "--store iq4_nl", "hadamard_of_64", "--actual-k: "),
    *((f"{store} --hadamard 64", store, "hadamard_of_64", "--actual-k: ") for store in (
        "--store int4 --store-scale row --store-scale-group 32",
        "--store e4m3fn --store-scale row_power_of_two --store-scale-group 64 --scale-type ue8m0")),
])  # fmt: skip
def test_codes(vkrope, lavapipe, k, store, wrong, said, words):
    write_model()
    scales = "--layout bhsd --{}-k-scales s.npy" if "row" in store else ""
    vkrope.works(f"rotate --model model.json --k k.npy --out-k y_k.npy {store} "
                 + scales.format("out"))
    scales = scales.format("actual")
    judged(vkrope, f"{OF_K} {store} {scales}", "pass")
    judged(vkrope, f"{OF_K} {wrong} {scales}", said, words)
