# SPDX-License-Identifier: MIT
"""Tests the example that checks a PyTorch model."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="no PyTorch (Debian: python3-torch)")


@pytest.fixture
def example():
    path = Path(os.environ["VKROPE_PYTHON"]) / "examples" / "check_transformers.py"
    specification = importlib.util.spec_from_file_location("check_transformers", path)
    module = importlib.util.module_from_spec(specification)
    # The example finds its own module by this name.
    sys.modules["check_transformers"] = module
    specification.loader.exec_module(module)
    yield module
    del sys.modules["check_transformers"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_that_is_right(example, models, capsys, dtype):
    model = str(models / "llama-3.1-8b.json")
    assert example.main([model, "--engine", "torch", "--dtype", dtype, "--tokens", "16"]) == 0
    verdict = {"float32": "pass", "bfloat16": "close"}[dtype]
    assert f"rotation 0: {verdict}" in capsys.readouterr().out


def test_a_model_that_is_wrong(example, models, capsys, monkeypatch):
    def rotate_to_the_other_side(x):
        first, second = x.chunk(2, dim=-1)
        return example.torch.cat((second, -first), dim=-1)

    monkeypatch.setattr(example, "rotate_half", rotate_to_the_other_side)
    model = str(models / "llama-3.1-8b.json")
    assert example.main([model, "--engine", "torch", "--tokens", "16"]) == 1
    assert "rotation 0: mistake" in capsys.readouterr().out


def test_a_model_of_transformers(example, models, capsys):
    pytest.importorskip("transformers", reason="no transformers: it is not a Debian package")
    assert example.main([str(models / "llama-3.2-1b.json"), "--tokens", "16"]) == 0
    assert "rotation 1: " in capsys.readouterr().out
