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
    """Returns what the table says of a mistake."""
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
AT_4000 = 4000 + np.array([TOKENS, TOKENS])
TWO_STARTS = np.array([[7], [900]]) + TOKENS
# Time from 4000, and height and width in rows of three.
THREE_AXES = np.array([AT_4000, [100 + TOKENS // 3] * 2,
                       [500 + TOKENS % 3, 501 + TOKENS % 3]])
LONG = np.linspace(1, 9, 16).tolist()
YARN = {"type": "yarn", "factor": 16.0, "original": 8192}
LINEAR = {"type": "linear", "factor": 4.0}
QWEN3 = {"model_type": "qwen3", "rms_norm_eps": 1e-6}


def scaled_by(kind, **fields):
    return {"rope_scaling": {"rope_type": kind, **fields}}


def rows_moved(y):
    y[0, 0] = y[0, 1]


def heads_moved(y):
    y[0, 0, 0] = y[0, 0, 1]


# name: positions; fields of the model, whose base is 500000; options; fields of the engine, whose
# are those of that model's but for these; or a function that changes what it stores
EXAMPLES = {
    "swapped_pairing": (AT_4000, {}, "", {"interleaved": True}),
    "other_layer_type": (
        AT_4000, {"model_type": "gemma3_text", "num_hidden_layers": 6, "sliding_window_pattern": 6,
                  "rope_local_base_freq": 10000.0}, "--layer 0", {}),
    "rotated_without_rope": (
        AT_4000, {"model_type": "smollm3", "num_hidden_layers": 8, "hidden_size": 512,
                  "num_attention_heads": 4}, "--layer 3", {}),
    "another_base": (AT_4000, {}, "", {"base": 2e4}),
    "another_scaling": (AT_4000, scaled_by("linear", factor=4.0), "",
                        {"scaling": {"type": "linear", "factor": 3.0}}),
    "another_factor": (
        AT_4000, scaled_by("yarn", factor=16.0, original_max_position_embeddings=8192), "",
        {"scaling": YARN, "factor": 1.5}),
    "long_sequence": (
        AT_4000, scaled_by("longrope", original_max_position_embeddings=8192, attention_factor=1.0,
                           short_factor=[1.0] * 16, long_factor=LONG), "--seq-len 1",
        {"scaling": {"type": "longrope", "factor": 16.0, "long_factor": LONG}}),
    "another_eps": (AT_4000, QWEN3, "--q-norm w.npy",
                    {"norm": {"weight": 0.5, "plus": 0, "eps": 1e-5}}),
    "position_offset": (AT_4000, {}, "", {"positions": 9588 + TOKENS}),
    "one_position": (TWO_STARTS, {}, "", {"positions": 37}),
    "positions_clamped": (AT_4000, {}, "", {"positions": np.minimum(AT_4000, 4003)}),
    "positions_in_another_order": (
        AT_4000, {}, "", {"positions": 4000 + np.array([3, 0, 6, 1, 8, 2, 7, 5, 4])}),
    "other_positions": (
        AT_4000, {}, "", {"positions": 4000 + np.array([7, 1, 90, 17, 300, 42, 5, 555, 100])}),
    "pairs_on_other_axes": (
        THREE_AXES, {"model_type": "qwen3_vl_text", "rope_scaling": {
            "mrope_section": [24, 20, 20], "mrope_interleaved": True}}, "",
        {"sections": ("interleaved", (26, 19, 19))}),
    "rows_of_other_tokens": (AT_4000, {}, "", rows_moved),
    "rows_of_other_heads": (AT_4000, {}, "", heads_moved),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_report_has_the_sentence_of_the_example(vkrope, tensor, name):
    positions, fields, options, wrong = EXAMPLES[name]
    changed = wrong if isinstance(wrong, dict) else {}
    head_dim = 2 * sum(changed["sections"][1]) if "sections" in changed else 32
    x = tensor(2, 9, 2, head_dim)
    engine = Engine(head_dim, head_dim, **{"base": 5e5, "positions": positions, **changed})
    engine.positions = np.broadcast_to(engine.positions, positions.shape).reshape((-1, 2, 9))
    y = rotate(engine, x.astype(float)).astype("f4")
    if callable(wrong):
        wrong(y)
    save(q=x, y=y, positions=positions, w=np.full(head_dim, 0.5, "f4"))
    write_model(**{"head_dim": head_dim, "rope_theta": 5e5, "max_position_embeddings": 131072,
                   **fields})
    out = vkrope.expect(1, "", f"check --model model.json --q q.npy --actual y.npy "
                               f"--positions positions.npy {options}")
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
