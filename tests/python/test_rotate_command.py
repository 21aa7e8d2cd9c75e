# SPDX-License-Identifier: MIT
"""Tests `vkrope rotate` on lavapipe: each layout, element type, pairing and source of angles, V,
forms of positions, and the choice of a device, verified against the definition. The random
operations of vkrope-conformance combine these."""

import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal as assert_same

from command import bits, save, says, write_model

BOUNDS = {"factored_texture": 6.0, "computed": 4.5, "direct_texture": 2.5, "direct_buffer": 2.5}
ROTATE = "rotate --model model.json --verify"
Q = f"{ROTATE} --q q.npy --out-q q_out.npy"
K = "--k k.npy --out-k k_out.npy"
V = "--v v.npy --out-v v_out.npy"


@pytest.fixture
def correct(vkrope, lavapipe, tensor):
    """A function that saves arrays, rotates Q and K within the contract, and returns the bits."""
    write_model()
    save(q=tensor(2, 5, 4, 64), k=tensor(2, 5, 2, 64))

    def run(options="", **arrays):
        save(**arrays)
        report = vkrope.report(f"{Q} {K} {options}")
        source = report["angles"]["source"]
        assert report["verified"] and report["bound_u"] == BOUNDS[source]
        for name in "qk":
            before, after = bits(name), bits(f"{name}_out")
            assert (after.shape, after.dtype) == (before.shape, before.dtype)
            assert (after != before).any() and report[name]["max_error_u"] <= BOUNDS[source]
        return SimpleNamespace(q=bits("q_out"), k=bits("k_out"), source=source, report=report)

    return run


@pytest.mark.parametrize("layout, dtype, shapes", [
    ("bshd", "f32", [(2, 37, 4, 64), (2, 37, 3, 64), (2, 37, 3, 64)]),
    ("bhsd", "f16", [(2, 4, 37, 64), (2, 3, 37, 64), (2, 5, 37, 64)]),
    ("sbhd", "bf16", [(37, 2, 4, 64), (37, 2, 3, 64), (37, 2, 3, 31)]),
    ("thd", "f32", [(37, 4, 64), (37, 3, 64), (37, 1, 96)]),
])  # fmt: skip
def test_layouts(correct, tensor, layout, dtype, shapes):
    """No size is a multiple of another. V has the layout of K, and keeps its bits."""
    code = {"f32": "f4", "f16": "f2", "bf16": "u2"}[dtype]
    save(**{name: tensor(*shape, dtype=code) for name, shape in zip("qkv", shapes)})
    options = f"--layout {layout} --dtype {dtype} --pairing interleaved --first-position 70"
    alone, with_v = correct(options), correct(f"{options} {V}")
    assert alone.report["q"]["dtype"] == dtype and with_v.report["v"]["unchanged"] is True
    assert_same(with_v.q, alone.q)
    assert_same(with_v.k, alone.k)
    assert_same(bits("v_out"), bits("v"))


def test_sources_of_angles(correct):
    """Direct tables give the same bits, whatever else differs. Angles as float32 products are
    verified as such, and differ from exact ones at far positions."""
    found = {source: correct(f"--angles {source}") for source in BOUNDS}
    assert all(of.source == source for source, of in found.items())
    assert_same(found["direct_texture"].q, found["direct_buffer"].q)
    default = correct()
    assert default.source == "factored_texture"
    assert_same(found["factored_texture"].q, default.q)
    assert_same(correct("--gain divide_out").q, default.q)  # without an attention factor
    exact = correct("--first-position 131068 --angles direct_texture").q
    products = correct("--first-position 131068 --float32-angles")
    assert products.source == "direct_texture" and (products.q != exact).any()


def test_the_inverse_gives_the_input_back(correct):
    """Each rotation changes a pair, as a vector, by at most the bound times 2^-23 of its norm."""
    before = np.load("q.npy")
    correct("--first-position 70")
    correct("--first-position 70 --inverse", q=np.load("q_out.npy"))
    norm = np.hypot(before[..., :32], before[..., 32:])
    error = np.abs(np.load("q_out.npy") - before) / np.concatenate([norm, norm], -1)
    assert error.max() <= 2 * BOUNDS["factored_texture"] * 2**-23


def test_positions(correct):
    """All forms of the same ids give the same bits as implicit ones; other ids are verified."""
    implicit, ids = correct("--first-position 7").q, np.arange(7, 12)
    assert_same(correct("--positions ids.npy", ids=ids.astype("i4")).q, implicit)
    assert_same(correct("--positions ids.npy", ids=np.tile(ids, (1, 2, 1))).q, implicit)
    mixed = np.array([[-3, 900, 0, 2, -1], [4, 4, 4, 2047, 1]], "i4")
    found = correct("--positions ids.npy", ids=mixed)
    assert found.report["positions"] == {"lowest": -3, "highest": 2047}


def test_far_positions(correct, vkrope):
    """The factored table covers positions up to 2^22 - 1; computed angles have no limit."""
    last = 2**22 - 1
    edge = np.array([[last, -last, 0, 2048, -2049], [2047, -1, 1, 131072, last]], "i4")
    assert correct("--positions ids.npy", ids=edge).source == "factored_texture"
    far = np.array([[2**31 - 1, -(2**31), 1 - 2**31, last + 1, -last - 1],
                    [last, -last, 0, 1, -1]], "i4")  # fmt: skip
    found = correct("--positions ids.npy", ids=far)
    assert found.source == "computed"
    assert found.report["positions"] == {"lowest": -(2**31), "highest": 2**31 - 1}
    assert_same(correct("--positions ids.npy --angles computed").q, found.q)
    correct("--first-position 4194299 --angles factored_texture")
    os.remove("q_out.npy")
    for angles, options, words in [
        ("factored_texture", "--positions ids.npy", "-2147483648*2147483647"),
        ("factored_texture", "--first-position 4194300", "4194300*4194304"),
        ("direct_texture", "--first-position 2147483000", "2147483000"),
        ("direct_buffer", "--first-position 2147483000", "2147483000"),
    ]:
        vkrope.refuse(2, f"--angles:*{angles}*{words}", f"{Q} --angles {angles} {options}")


def test_a_window_inside_wider_rows(correct, vkrope, tensor):
    """A window that ends after the row is an error."""
    q, k = tensor(1, 9, 4, 96, dtype="f2"), tensor(1, 9, 2, 96, dtype="f2")
    correct("--head-dim 96 --rotary-offset 32", q=q, k=k)
    vkrope.refuse(2, "head_dim", f"{Q} --head-dim 96 --rotary-offset 34")


def test_latent_attention(correct, vkrope, tensor, models):
    """The width of a tensor's file determines where its window is. K's rotary part alone and in a
    row of the cache give the same rotation, and the channels before it pass through."""
    shutil.copy(models / "deepseek-v2-lite.json", "model.json")
    part, row = tensor(1, 1, 1, 64), tensor(1, 1, 1, 576)
    alone = correct("--first-position 7", q=tensor(1, 1, 16, 192), k=part).k
    row[..., 512:] = part
    in_row = correct("--first-position 7", k=row).k
    expected = np.concatenate([bits("k")[..., :512], alone], -1)
    assert_same(in_row, expected)
    vkrope.works(f"{ROTATE} {K} --first-position 7")
    assert_same(bits("k_out"), expected)
    save(q=np.zeros((1, 3, 1, 128), "f4"), k=np.zeros((1, 3, 1, 128), "f4"))
    vkrope.refuse(5, "--q:*128*192*64", Q)
    vkrope.refuse(5, "--k:*128*576*192*64", f"{ROTATE} {K}")
    vkrope.works(f"{Q} --head-dim 128 --rotary-offset 32")


def test_one_tensor_alone(correct, vkrope, tensor):
    """K alone and K with V; head counts other than the model's give a note."""
    save(k=tensor(2, 5, 3, 64), v=tensor(2, 5, 2, 32))
    vkrope.expect(0, "note: --k:*'k.npy'*3*2", f"{ROTATE} {K}")
    alone, report = bits("k_out"), vkrope.report(f"{ROTATE} {K}")
    assert report["q"] is None and report["v"] is None
    timed = vkrope.report(f"{ROTATE} {K} {V} --roof --repeat 2")
    assert_same(bits("v_out"), bits("v"))
    assert timed["bytes"] == report["bytes"] + 2 * (2 * 5 * 2 * 32 * 4)
    figures = timed["gpu_ns"], timed["bytes_per_second"], timed["roof"]["ns"]
    assert all(0 < figure < 1e18 for figure in (*figures, timed["roof"]["share"]))
    no_heads = correct(V, v=np.zeros((2, 5, 0, 32), "f4"))
    assert_same(no_heads.k, alone)
    assert no_heads.report["v"]["unchanged"] is True
    assert_same(bits("v_out"), bits("v"))


def test_no_tokens(vkrope, lavapipe):
    write_model()
    save(q=np.zeros((1, 0, 4, 64), "f4"), k=np.zeros((1, 0, 2, 64), "f4"),
         v=np.zeros((1, 0, 2, 32), "f4"), none=np.zeros(0, "i4"))  # fmt: skip
    vkrope.works(f"{Q} {K} {V} --positions none.npy")
    for name in "qkv":
        assert_same(bits(f"{name}_out"), bits(name))


@pytest.mark.parametrize("of_sums", [False, True])
def test_positions_on_three_axes(correct, vkrope, tensor, models, of_sums):
    """Tests a model with sections, and one whose pairs turn by a sum over the axes. Equal positions
    on all axes act as one axis."""
    shutil.copy(models / "qwen2-vl-2b.json", "model.json")
    if of_sums:
        write_model(model_type="ernie4_5_vl", head_dim=128, rope_theta=5e5)
    ids = np.array([[[0, 1, 2], [7, 8, 9]], [[0, 5, 6], [70, 4, 40]],
                    [[3, 0, 1000], [2, 131071, 6]]], "i4")  # fmt: skip
    save(q=tensor(2, 3, 12, 128), k=tensor(2, 3, 2, 128))
    correct()
    one_axis = correct("--positions ids.npy", ids=ids[0]).q
    assert (correct("--positions ids.npy", ids=ids).q != one_axis).any()
    assert_same(correct("--positions ids.npy", ids=ids[[0, 0, 0]]).q, one_axis)
    save(ids=ids[:2])
    os.remove("q_out.npy")
    vkrope.refuse(5, "--positions:*(2, 2, 3)*2*3", f"{Q} --positions ids.npy")


def test_devices(correct, vkrope, lavapipe, monkeypatch):
    """Selects by index, by part of the name in any case, by UUID and by the environment."""
    uuid = vkrope.report("devices")["devices"][0]["uuid"]
    for device in "0", "LLVMpipe", uuid:
        assert "llvmpipe" in vkrope.report(f"{Q} --device {device}")["device"]["name"]
    os.remove("q_out.npy")
    vkrope.refuse(3, "no_such_device", f"{Q} --device no_such_device")
    vkrope.refuse(2, "99", f"{Q} --device 99")
    monkeypatch.setenv("VKROPE_DEVICE", "no_such_device")
    vkrope.refuse(3, "no_such_device", Q)
    vkrope.works(f"{Q} --device 0")
    monkeypatch.setenv("VKROPE_DEVICE", "LLVMpipe")
    vkrope.works(Q)


def test_two_devices(correct, vkrope, lavapipe, swiftshader):
    """A name that fits both is an error that lists them, and each can be selected."""
    first = correct().q
    os.remove("q_out.npy")
    vkrope.use(lavapipe, swiftshader)
    for name in "llvmpipe", "SwiftShader":
        vkrope.refuse(2, name, f"{Q} --device e")
    assert "SwiftShader" in vkrope.report(f"{Q} --device SwiftShader")["device"]["name"]
    assert_same(bits("q_out"), first)


def test_pipelines_on_disk(correct, vkrope, monkeypatch):
    """A missing folder is no error, and an empty folder is valid."""
    os.mkdir("pipelines")
    vkrope.works(f"{Q} --pipeline-cache pipelines")
    vkrope.works(f"{Q} --pipeline-cache missing")
    monkeypatch.setenv("VKROPE_PIPELINE_CACHE", "pipelines")
    vkrope.works(Q)


def test_the_text_report_has_a_verdict_only_with_verify(correct, vkrope):
    assert says("verdict *correct", vkrope.works(f"{Q} --repeat 3 --roof"))
    assert says("verdict *--verify", vkrope.works(Q.replace("--verify", "")))
