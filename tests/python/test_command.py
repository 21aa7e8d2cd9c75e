# SPDX-License-Identifier: MIT
"""Tests explain() and check(), which run the command; compares rotate() with `vkrope rotate`."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import vkrope
from vkrope import _command


def test_the_command_of_the_wheel_is_used():
    assert Path(_command._program()).parent == Path(vkrope.__file__).parent


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint16])
def test_same_bits_as_the_command(device, models, tensor, tmp_path, dtype):
    model = models / "llama-3.1-8b.json"
    q, k = tensor(2, 5, 4, 128, dtype=dtype), tensor(2, 5, 2, 128, dtype=dtype)
    np.save(tmp_path / "q.npy", q)
    np.save(tmp_path / "k.npy", k)
    subprocess.run(
        [
            _command._program(), "rotate", "--model", model, "--q", "q.npy", "--k", "k.npy",
            "--out-q", "out_q.npy", "--out-k", "out_k.npy", "--first-position", "77", "--verify",
        ],
        check=True, cwd=tmp_path, capture_output=True,
        env={**os.environ, "VKROPE_DEVICE": device.info.uuid},
    )  # fmt: skip
    result = vkrope.rotate(q, k, model=model, first_position=77, device=device)
    np.testing.assert_array_equal(result.q, np.load(tmp_path / "out_q.npy"))
    np.testing.assert_array_equal(result.k, np.load(tmp_path / "out_k.npy"))


def test_explain(models, llama, tmp_path):
    model = models / "llama-3.1-8b.json"
    picture = tmp_path / "rope.svg"
    found = vkrope.explain(model, svg=picture)
    assert (found["rope_type"], found["head_dim"]) == ("llama3", 128)
    frequencies = [pair["inv_freq"] for pair in found["pairs"]]
    np.testing.assert_allclose(frequencies, llama.inv_freq, rtol=1e-6)
    assert "<svg" in picture.read_text()
    with pytest.raises(vkrope.InvalidDataError, match="/nowhere"):
        vkrope.explain("/nowhere/config.json")
    with pytest.raises(vkrope.InvalidArgumentError, match="layer"):
        vkrope.explain(model, layer=-1)


def test_check_names_the_mistake(models, llama, device, tensor):
    model = models / "llama-3.1-8b.json"
    q, k = tensor(1, 9, 4, 128), tensor(1, 9, 2, 128)
    right = vkrope.rotate(q, k, rotation=llama, first_position=30, device=device)
    wrong = vkrope.rotate(q, rotation=llama, pairing="interleaved", first_position=30,
                          device=device)  # fmt: skip
    found = vkrope.check(
        model, q=q, actual=right.q, k=k, actual_k=right.k, first_position=30
    )
    assert found["verdict"] == "pass" and found["k"]["verdict"] == "pass"
    assert found["matches"] == found["q"]["matches"] == found["k"]["matches"] == []
    found = vkrope.check(model, q=q, actual=wrong.q, positions=np.arange(30, 39))
    assert found["verdict"] == "mistake"
    assert "interleaved" in found["matches"][0]["meaning"]
    assert len(found["matches"]) <= 3
    found = vkrope.check(model, q=q, actual=right.q, first_position=5000)
    assert found["verdict"] == "mistake" and "4970" in found["matches"][0]["meaning"]
    with pytest.raises(vkrope.InvalidArgumentError, match="--actual"):
        vkrope.check(model, q=q)
    with pytest.raises(vkrope.InvalidDataError, match="shape"):
        vkrope.check(model, q=q, actual=k)


def test_a_model_may_be_a_dict(models, device, tensor):
    config = json.loads((models / "llama-3.1-8b.json").read_text())
    assert vkrope.explain(config)["rope_type"] == "llama3"
    q = tensor(1, 3, 2, 128)
    rotated = vkrope.rotate(q, model=config, device=device)
    assert vkrope.check(config, q=q, actual=rotated.q)["verdict"] == "pass"


def test_without_a_command(monkeypatch, models):
    monkeypatch.setattr(_command, "__file__", "/nowhere/_command.py")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match="neither in this package nor on the PATH"):
        vkrope.explain(models / "llama-3.1-8b.json")
