# SPDX-License-Identifier: MIT
"""Tests that the table of mistakes in the guide is that of `vkrope check --list`, and that a report
has the sentence of each example in it. The other mistakes are made in judge_*_test.cpp.

    python3 test_mistakes_page.py VKROPE    writes the table
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from command import save, write_model
from engine import Engine, rotate

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "host/guide/mistakes.md"


def meaning(mistake):
    """Returns the meaning of a mistake, and its example, as the table states them."""
    text = mistake["meaning"].removeprefix("the engine ")
    return text + (f", for instance: {mistake['example']}" if mistake["example"] else "")


def with_table(page, mistakes):
    """Returns the page with a row for each mistake; the last column, the links, stays."""
    start = page.index("<!-- table mistakes")
    end = page.index("\n\n", start)
    head, rows = page[start:end].split("|---|\n")
    links = dict(re.findall(r"^\| `(\w+)` \|.* \|(.*)\|$", rows, re.MULTILINE))
    rows = [f"| `{m['mistake']}` | {meaning(m)} |{links.get(m['mistake'], ' ')}|" for m in mistakes]
    return page[:start] + head + "|---|\n" + "\n".join(rows) + page[end:]


def test_the_table(vkrope):
    mistakes = vkrope.report("check --list")
    lines = [f"{m['mistake']}: the engine {meaning(m)}" for m in mistakes]
    assert vkrope.works("check --list").splitlines() == lines
    assert len({m["mistake"] for m in mistakes}) == len(mistakes), "a name has two meanings"
    page = PAGE.read_text()
    assert with_table(page, mistakes) == page, (
        f"this writes the table: python3 {__file__} {vkrope.program}")


TOKENS = np.arange(9)
LONG = np.linspace(1, 9, 16).tolist()
# What an engine does in its own way. All else it does as a Llama with the base 500000, and its
# first token is at 4000.
EXAMPLES = {
    "swapped_pairing": {"interleaved": True},
    "other_layer_type": {},
    "rotated_without_rope": {},
    "another_base": {"base": 2e4},
    "another_scaling": {"scaling": {"type": "linear", "factor": 3.0}},
    "another_factor": {"scaling": {"type": "yarn", "factor": 16.0, "original": 8192},
                       "factor": 1.5},
    "long_sequence": {"scaling": {"type": "longrope", "factor": 16.0, "long_factor": LONG}},
    "another_eps": {"norm": {"weight": 0.5, "plus": 0, "eps": 1e-5}},
    "position_offset": {"positions": 9588 + TOKENS},
    "one_position": {"positions": 37},
    "positions_clamped": {"positions": np.minimum(4000 + TOKENS, 4003)},
    "positions_in_another_order": {"positions": 4000 + np.array([3, 0, 6, 1, 8, 2, 7, 5, 4])},
    "other_positions": {"positions": 4000 + np.array([7, 1, 90, 17, 300, 42, 5, 555, 100])},
    "pairs_on_other_axes": {"sections": ("interleaved", (26, 19, 19)), "head_dim": 128,
                            "rotary_dim": 128},
    "rows_of_other_tokens": {},
    "rows_of_other_heads": {},
}  # fmt: skip
MOVED = {"rows_of_other_tokens": ((0, 0), (0, 1)), "rows_of_other_heads": ((0, 0, 0), (0, 0, 1))}
# The model where it is another one, and options of `check`.
MODELS = {
    "other_layer_type": {"model_type": "gemma3_text", "num_hidden_layers": 6,
                         "sliding_window_pattern": 6, "rope_local_base_freq": 10000.0},
    "rotated_without_rope": {"model_type": "smollm3", "num_hidden_layers": 8},
    "another_scaling": {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    "another_factor": {"rope_scaling": {"rope_type": "yarn", "factor": 16.0,
                                        "original_max_position_embeddings": 8192}},
    "long_sequence": {"original_max_position_embeddings": 8192, "rope_scaling": {
        "rope_type": "longrope", "attention_factor": 1.0, "short_factor": [1.0] * 16,
        "long_factor": LONG}},
    "another_eps": {"model_type": "qwen3", "rms_norm_eps": 1e-6},
    "pairs_on_other_axes": {"model_type": "qwen3_vl_text", "rope_scaling": {
        "mrope_section": [24, 20, 20], "mrope_interleaved": True}},
}  # fmt: skip
OPTIONS = {"other_layer_type": "--layer 0", "rotated_without_rope": "--layer 3",
           "long_sequence": "--seq-len 1", "another_eps": "--q-norm w.npy"}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_report_has_the_sentence_of_the_example(vkrope, tensor, name):
    right = 4000 + np.array([TOKENS, TOKENS])
    if name == "one_position":
        right = np.array([[7], [900]]) + TOKENS
    elif name == "pairs_on_other_axes":  # with height and width in rows of three
        right = np.array([right, [TOKENS // 3] * 2, [500 + TOKENS % 3, 501 + TOKENS % 3]])
    e = Engine(**{"head_dim": 32, "rotary_dim": 32, "base": 5e5, "positions": right,
                  **EXAMPLES[name]})
    e.positions = np.broadcast_to(e.positions, right.shape).reshape((-1, 2, 9))
    x = tensor(2, 9, 2, e.head_dim)
    y = rotate(e, x.astype(float)).astype("f4")
    if name in MOVED:
        to, of = MOVED[name]
        y[to] = y[of]
    save(q=x, y=y, positions=right, w=np.full(e.head_dim, 0.5, "f4"))
    write_model(**{"head_dim": e.head_dim, "rope_theta": 5e5, "max_position_embeddings": 131072,
                   **MODELS.get(name, {})})
    out = vkrope.expect(1, "", "check --model model.json --q q.npy --actual y.npy "
                               f"--positions positions.npy {OPTIONS.get(name, '')}")
    mistake = next(m for m in vkrope.report("check --list") if m["mistake"] == name)
    assert f"Q  mistake: {name}: {mistake['meaning']}: {mistake['example']}" in out


def test_each_mistake_is_made(vkrope):
    files = [*(TESTS / "tools/command").glob("judge*_test.cpp"), TESTS / "python/engine.py"]
    tests = "".join(file.read_text() for file in files)
    for mistake in vkrope.report("check --list"):
        name = mistake["mistake"]
        block = re.sub("^hadamard_of_.*", "hadamard_of_16", name)  # one block stands for all
        assert (name in EXAMPLES) == bool(mistake["example"])
        assert name in EXAMPLES or f'"{block}"' in tests, f"no test makes {name}"


if __name__ == "__main__":
    program = [sys.argv[1], "check", "--list", "--json"]
    listed = json.loads(subprocess.run(program, capture_output=True, check=True).stdout)
    PAGE.write_text(with_table(PAGE.read_text(), listed))
