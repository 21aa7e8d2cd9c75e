# SPDX-License-Identifier: MIT
"""Runs the Python blocks of the guide, one after the other."""

import os
import re
import shutil
from pathlib import Path

import numpy as np
import vkrope


def test_the_blocks_of_the_guide(models, llama, tensor, tmp_path, monkeypatch, capsys):
    page = Path(os.environ["VKROPE_PYTHON"]).parent / "guide" / "languages.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    shutil.copy(models / "llama-3.1-8b.json", tmp_path / "config.json")
    monkeypatch.chdir(tmp_path)
    q, k = tensor(1, 5, 4, 128), tensor(1, 5, 2, 128)
    names = {"q": q, "k": k, "packed_qkv": tensor(1, 3, 48, 128, dtype=np.float16)}
    names["q_of_the_engine"] = vkrope.rotate(
        q, rotation=llama, first_position=100, pairing="interleaved"
    ).q
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    assert names["q_rotated"].shape == q.shape and names["k_rotated"].shape == k.shape
    assert (names["rotated"][:, :, 40:] == names["packed_qkv"][:, :, 40:]).all()
    assert names["verdict"]["verdict"] == "mistake"
    assert "interleaved" in capsys.readouterr().out
