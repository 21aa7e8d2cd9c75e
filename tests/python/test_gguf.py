# SPDX-License-Identifier: MIT
"""Tests the command on GGUF files: the small files that are the seeds of the fuzz test."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from command import save, says

TOLD = '{"model_type": "llama", "head_dim": 32, "rope_theta": 1e4, "rope_interleaved": true}'
ROTATE = "rotate --q q.npy --out-q y.npy --verify"
CHECK = "check --q q.npy --actual y.npy"


@pytest.fixture
def vkrope(vkrope, models):
    """The command, with the files in the folder gguf."""
    Path("gguf").symlink_to(models.parent / "corpus/gguf")
    return vkrope


def test_what_a_file_says(vkrope):
    shutil.copy("gguf/llama3.gguf", "config.json")  # recognised by its first bytes
    found = vkrope.report("frequencies --model config.json")
    assert (found["pairing"], found["rope_type"]) == ("interleaved", "rope_freqs")
    found = vkrope.report("frequencies --model gguf/deepseek2.gguf")
    assert (found["q_rotary_offset"], found["k_rotary_offset"]) == (128, 512)
    found = vkrope.report("explain --model gguf/qwen2vl.gguf")
    assert np.bincount([pair["axis"] for pair in found["pairs"]]).tolist() == [4, 6, 6]


def test_damaged_files(vkrope):
    Path("cut.gguf").write_bytes(Path("gguf/llama3.gguf").read_bytes()[:100])
    Path("text.gguf").write_text(TOLD)  # a GGUF file only by name
    for file in "cut.gguf", "text.gguf":
        for line in "frequencies", CHECK:
            vkrope.refuse(5, f"--model:*'{file}'", f"{line} --model {file}")


def test_half_a_tib_after_a_file_changes_nothing(vkrope):
    shutil.copy("gguf/llama3.gguf", "hole.gguf")
    try:
        os.truncate("hole.gguf", 1 << 39)
    except OSError as error:
        pytest.skip(f"this file system has no files of half a TiB: {error}")
    limit = 60 * float(os.environ.get("VKROPE_TIME_FACTOR", "1"))  # against hangs
    vkrope.works("frequencies --model hole.gguf", timeout=limit)


def test_the_option_that_an_error_asks_for(vkrope, lavapipe, tensor):
    llama = Path("gguf/llama3.gguf").read_bytes()
    Path("unknown.gguf").write_bytes(llama.replace(b"llama", b"nauti"))
    Path("told.json").write_text(TOLD)
    save(q=tensor(1, 5, 4, 32))
    for file in "unknown.gguf", "told.json":
        told = f"--model {file} --pairing interleaved"
        for line in "frequencies", "explain":
            vkrope.refuse(5, f"--model:*'{file}'*give a pairing*", f"{line} --model {file}")
            assert vkrope.report(f"{line} {told}")["pairing"] == "interleaved"
        vkrope.refuse(5, f"--model:*'{file}'*give a pairing*", f"{CHECK} --model {file}")
        vkrope.works(f"{ROTATE} {told} --model-ops")
        vkrope.works(f"{ROTATE} {told}")
        vkrope.works(f"{CHECK} {told}")


@pytest.mark.parametrize("rotated, judged, said", [
    ("llama3.gguf", "llama3.gguf", "pass"),
    ("llama3.gguf", "llama3.gguf --pairing half_split", "mistake: swapped_pairing"),
    ("lfm2.gguf", "linear.gguf", "mistake: scaling_ignored"),
    ("gemma3.gguf", "gemma3.gguf --layer-type sliding_attention", "mistake: other_layer_type"),
    ("qwen2vl.gguf --positions axes.npy", "qwen3vl.gguf --positions axes.npy", "mistake: "),
])
def test_rotations(vkrope, lavapipe, tensor, rotated, judged, said):
    save(q=tensor(1, 3, 4, 32), axes=np.array([0, 1, 2, 5, 6, 70, 3, 1000, 9]).reshape(3, 1, 3))
    vkrope.works(f"{ROTATE} --model gguf/{rotated}")
    out = vkrope.expect(int(said != "pass"), "", f"{CHECK} --model gguf/{judged}")
    assert says(f"Q  {said}", out)


def test_latent_attention(vkrope, lavapipe, tensor):
    save(q=tensor(1, 5, 4, 192), k=tensor(1, 5, 1, 64))
    vkrope.works(f"{ROTATE} --model gguf/deepseek2.gguf --k k.npy --out-k y_k.npy")
