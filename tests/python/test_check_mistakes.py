# SPDX-License-Identifier: MIT
"""Draws models, tensors and mistakes, and tests that `vkrope check` names the mistakes.

    python3 test_check_mistakes.py --vkrope PROGRAM --seed 1 --number 200 [--only K] [--keep DIR]
"""

import argparse
import collections
import copy
import dataclasses
import json
import multiprocessing
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

import engine
from definition import rounded, widened
from engine import DTYPES, MISTAKES, PRECISION, SAID, Engine

LENGTH = 131072  # max_position_embeddings
PATIENCE = 120  # seconds for one check


def scaling_of(family, factor, d, rng):
    """Returns the numbers of a scaling; KEYS has the names in config.json that differ."""
    if family in ("linear", "llama3", "gemma3"):
        return {"type": "llama3" if family == "llama3" else "linear", "factor": factor,
                **({"original": 8192} if family == "llama3" else {})}
    if family == "dynamic":
        return {"type": family, "factor": factor, "original": 4096,
                "seq_len": int(rng.choice([8192, 20000]))}
    if family == "longrope":
        short, long = (np.sort(rng.uniform(1, most, d // 2)).tolist() for most in (2, 60))
        return {"type": family, "factor": LENGTH / 4096, "original": 4096, "short_factor": short,
                "long_factor": long}
    of_yarn = {"type": "yarn", "factor": factor, "original": int(LENGTH / factor)}
    if family == "deepseek":
        return {**of_yarn, "mscale": 1.0, "mscale_all_dim": float(rng.choice([0.5, 1.0]))}
    return {**of_yarn, **rng.choice([{}, {"attention_factor": 1.25}, {"attention_factor": 0.9}])}


KEYS = {
    "linear": {"factor": "factor"},
    "dynamic": {"factor": "factor"},
    "llama3": {"factor": "factor", "original": "original_max_position_embeddings"},
    "yarn": {"factor": "factor", "original": "original_max_position_embeddings",
             "attention_factor": "attention_factor", "mscale": "mscale",
             "mscale_all_dim": "mscale_all_dim"},
    "longrope": {"short_factor": "short_factor", "long_factor": "long_factor"},
}


def model(family, rng):
    """Returns config.json, the options of the command, and the engine that is right."""
    def pick(*values):
        return values[int(rng.integers(len(values)))]
    d = 128 if family in ("qwen2_vl", "qwen3_vl") else pick(32, 64, 96, 128, 256)
    heads, factor, options = 4, pick(2.0, 4.0, 8.0), []
    right = Engine(d, d, pick(1e6, 5e6) if family == "gemma3" else pick(1e4, 1e5, 5e5, 1e6, 5e6))
    config = {"model_type": MODEL_TYPES.get(family, "llama"), "head_dim": d, "rms_norm_eps": 1e-6,
              "rope_theta": right.base, "num_attention_heads": heads, "hidden_size": heads * d,
              "max_position_embeddings": 4096 if family == "dynamic" else LENGTH}
    if family in ("linear", "llama3", "yarn", "dynamic", "longrope", "deepseek", "gemma3") or (
            family == "partial" and rng.random() < 0.25):
        right.scaling = scaling_of("linear" if family == "partial" else family, factor, d, rng)
        kind = right.scaling["type"]
        config["rope_scaling"] = {"type": kind, **{
            key: right.scaling[k] for k, key in KEYS[kind].items() if k in right.scaling}}
    if family == "llama3":
        config["rope_scaling"].update({"low_freq_factor": 1.0, "high_freq_factor": 4.0})
    elif family == "dynamic":
        options = ["--seq-len", str(right.scaling["seq_len"])]
    elif family == "longrope":
        config["original_max_position_embeddings"] = 4096
        options = ["--seq-len", str(LENGTH)]
    elif family == "deepseek":
        rope, nope = pick(32, 64), pick(32, 64, 128)
        config.update({"qk_rope_head_dim": rope, "qk_nope_head_dim": nope, "kv_lora_rank": 128,
                       "v_head_dim": 64})
        del config["head_dim"]
        right = dataclasses.replace(right, head_dim=rope + nope, rotary_dim=rope, offset=nope,
                                    interleaved=True)
    elif family == "partial":
        config["partial_rotary_factor"] = pick(0.25, 0.5)
        right.rotary_dim = int(d * config["partial_rotary_factor"])
    elif family == "proportional":
        kinds = ["sliding_attention", "full_attention"]
        config.update({"head_dim": 64, "global_head_dim": d, "num_hidden_layers": 6,
                       "layer_types": kinds * 3, "rope_parameters": {
                           kinds[0]: {"rope_type": "default", "rope_theta": 10000.0},
                           kinds[1]: {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                                      "rope_theta": config.pop("rope_theta")}}})
        right.turning, options = d // 8, ["--layer-type", kinds[1]]
    elif family == "gemma3":
        config.update({"rope_local_base_freq": 10000.0, "sliding_window_pattern": 6,
                       "num_hidden_layers": 12})
        full = {"base": right.base, "scaling": right.scaling}
        sliding = {"base": 10000.0, "scaling": None}
        kind = pick("full_attention", "sliding_attention")
        mine, right.other = (full, sliding) if kind == "full_attention" else (sliding, full)
        right, options = dataclasses.replace(right, **mine), ["--layer-type", kind]
    elif family == "qwen2_vl":
        config["rope_scaling"] = {"mrope_section": [16, 24, 24], "type": "mrope"}
        right.sections = ("sequential", [16, 24, 24])
    elif family == "qwen3_vl":
        config["rope_scaling"] = {"mrope_section": [24, 20, 20], "rope_type": "default",
                                  "mrope_interleaved": True}
        right.sections = ("interleaved", [24, 20, 20])
    elif family == "vision":
        config["vision_config"] = {"model_type": "qwen2_vl", "embed_dim": heads * d,
                                   "num_heads": heads, "depth": 2, "hidden_size": 256}
        right.base, right.sections = 1e4, ("vision", [d // 4, d // 4])
        options = ["--tower", "vision"]
    elif family == "smollm3":
        config.update({"num_hidden_layers": 8, "no_rope_layer_interval": 4})
        right.other, right.rotary_dim, options = {"rotary_dim": d}, 0, ["--layer", "3"]
    right.factor = engine.attention_factor(right.scaling)
    return config, options, right


MODEL_TYPES = {"longrope": "phi3", "partial": "stablelm", "proportional": "gemma4_text",
               "gemma3": "gemma3_text", "qwen3": "qwen3", "qwen2_vl": "qwen2_vl",
               "qwen3_vl": "qwen3_vl_text", "vision": "qwen2_vl", "smollm3": "smollm3",
               "deepseek": "deepseek_v2"}
FAMILIES = ["llama", "linear", "llama3", "yarn", "dynamic", "longrope", "partial", "proportional",
            "gemma3", "qwen3", "qwen2_vl", "qwen3_vl", "smollm3", "deepseek", "vision"]


def draw_positions(right, batch, tokens, limit, rng):
    """Returns [axes, batch, tokens] and the number of dimensions that the command needs."""
    axes = 1 if right.sections is None else 2 if right.sections[0] == "vision" else 3
    start = int(rng.choice([0, rng.integers(1, 300), rng.integers(300, limit - tokens)]))
    token = np.arange(tokens)
    if axes == 2:
        width = int(rng.integers(2, 9))
        return np.array([token // width, token % width])[:, None] + 0 * np.zeros(
            (1, batch, 1), np.int64), 3
    starts = np.full(batch, start)
    kind = str(rng.choice(["consecutive", "ragged", "sorted"]))
    if kind == "ragged":
        starts = rng.integers(0, limit - tokens, batch)
    rows = starts[:, None] + token
    if kind == "sorted":
        rows = np.sort(rng.choice(limit, (batch, tokens), replace=False), axis=1)
    if axes == 1:
        return rows[None], 2 if batch > 1 else 1
    # Text, an image of `width` columns, and text.
    width, before, after = int(rng.integers(2, 6)), tokens // 4, tokens - tokens // 4
    patch = np.arange(after - before)
    t, h, w = token.copy(), token.copy(), token.copy()
    t[before:after], h[before:after] = before, before + patch // width
    w[before:after] = before + patch % width
    t[after:] = h[after:] = w[after:] = h[before:after].max() + 1 + np.arange(tokens - after)
    return starts[None, :, None] + np.array([t, h, w])[:, None], 3


@dataclasses.dataclass
class Draw:
    config: dict
    options: list
    right: Engine
    wrong: Engine
    inputs: dict  # name of the tensor: float64 values
    names: list
    values: dict
    dtype: str
    arithmetic: str
    region: np.ndarray  # [batch, tokens, heads]: the rows with the mistakes; None: all
    position_axes: int
    tensors: tuple  # the tensors that have the mistakes
    v_rotated: bool = False

    def output(self, name, wrong=True, arithmetic=None):
        """Returns what an engine writes, as float64."""
        x = self.inputs[name]
        if name == "v":
            return engine.rotate(self.wrong, x, arithmetic) if wrong and self.v_rotated else x
        y = engine.rotate(self.right, x, arithmetic)
        if wrong and name in self.tensors:
            y = self.where(name, engine.rotate(self.wrong, x, arithmetic), y)
        return y

    def where(self, name, wrong, right):
        if self.region is None:
            return wrong
        return np.where(self.region[:, :, : right.shape[2], None], wrong, right)

    def stored(self, name, values):
        return rounded(values, np.dtype(DTYPES[self.dtype]))

    def visible(self, name, arithmetic=None, without=None):
        """Returns whether the mistakes change a value by more than a right engine may.

        without: an engine that lacks one of the mistakes; the right one if it is None
        """
        right = self.output(name, wrong=False)
        if without is not None:
            right = self.where(name, engine.rotate(without, self.inputs[name]), right)
        size = np.abs(right).max(axis=3, keepdims=True) * (80 if self.right.norm else 20) * 2.0**-24
        actual = widened(self.stored(name, self.output(name, True, arithmetic)))
        low, high = (widened(self.stored(name, right + s * size)) for s in (-1, 1))
        return bool(((actual < low) | (actual > high)).any())

    def shows_all(self):
        """Returns whether each of the mistakes changes a tensor."""
        if self.v_rotated:
            return self.visible("v")
        rest = [[n for n in self.names if n != name] for name in self.names]
        fewer = [engine.changed(self.right, names, self.values) for names in rest]
        return all(e is None or any(self.visible(t, None, e) for t in self.tensors) for e in fewer)


DRAWN = [n for n in MISTAKES if n not in engine.NOT_DRAWN]


def draw(rng, wanted=None, family=None, count=0, plain=False):
    """Draws a model, tensors and mistakes; None if they do not fit or show nothing.

    wanted: names of the first mistakes; others follow up to the count
    plain:  f32 and exact
    """
    family = family or FAMILIES[int(rng.integers(len(FAMILIES)))]
    config, options, right = model(family, rng)
    batch, tokens = int(rng.integers(1, 4)), int(rng.integers(8, 65))
    heads = int(rng.integers(1, 9))
    tokens = min(tokens, max(8, 2**16 // (batch * heads * right.head_dim)))
    if rng.random() < 0.1 and right.sections is None:
        tokens = 1  # a decoding step
    limit = right.scaling["seq_len"] if family == "dynamic" else 100000
    right.positions, axes = draw_positions(right, batch, tokens, limit, rng)
    dtype = str(rng.choice(["f32", "f16", "bf16"]))
    arithmetic = dtype if dtype != "f32" and rng.random() < 0.6 else None
    dtype, arithmetic = ("f32", None) if plain else (dtype, arithmetic)
    names = wanted or ()
    with_norm = family in ("qwen3", "gemma3") and rng.random() < 0.7
    with_scale = family in ("llama", "qwen3") and rng.random() < 0.3
    # A V makes the command take all norms of the model.
    with_only_v = names == ("v_rotated",)
    with_v = with_only_v or rng.random() < 0.1
    if with_scale and family == "qwen3" and not with_norm:
        return None  # a scale makes it take them, too
    if with_v and family in ("qwen3", "gemma3", "proportional", "qwen3_vl"):
        return None
    if with_norm:
        weight = engine.in_type(rng.uniform(0.3, 1.7, right.head_dim), "f32")
        right.norm = {"weight": weight, "plus": int(family == "gemma3"), "eps": 1e-6}
    right.scale = 0.125 if with_scale else 1.0
    shape = (batch, tokens, heads, right.head_dim)
    size = float(rng.choice([1, 1, 0.03, 0.005])) if with_norm else 1.0
    inputs = {"q": size * rng.standard_normal(shape)}
    if with_v or rng.random() < 0.3 and not (with_norm or with_scale or family == "deepseek"):
        k_heads = int(rng.integers(1, heads + 1))
        if not (with_norm or with_scale or family == "deepseek"):
            inputs["k"] = rng.standard_normal((batch, tokens, k_heads, right.head_dim))
        if with_v:
            inputs["v"] = rng.standard_normal((batch, tokens, k_heads, right.head_dim))
    inputs = {name: engine.in_type(x, dtype) for name, x in inputs.items()}
    used, values, wrong, chosen = set(), {}, right, []
    for name in [*names, *map(str, rng.permutation([n for n in DRAWN if n not in names]))]:
        if len(chosen) == count or name == "v_rotated":
            break
        parts = set(MISTAKES[name][0].split())
        values[name] = engine.draw_value(name, right, rng)
        e = None if parts & used else engine.changed(right, [*chosen, name], values)
        if e is not None and (e.positions >= 0).all():
            wrong, chosen, used = e, [*chosen, name], used | parts
        elif name in names:
            return None
    if len(chosen) < count and not with_only_v:
        return None
    region = None
    if rng.random() < 0.2 and count and not plain:
        region = np.zeros(shape[:3], bool)
        axis = int(rng.integers(3))
        some = rng.permutation(shape[axis])[: max(1, shape[axis] // 2)]
        region[(slice(None),) * axis + (some,)] = True
        region = None if region.all() else region
    both = ("q", "k") if "k" in inputs else ("q",)
    both = both if rng.random() < 0.8 else both[-1:]
    d = Draw(config, options, right, wrong, inputs, chosen or list(names), values, dtype,
             arithmetic, region, axes, () if with_only_v else both, with_only_v)
    return d if d.shows_all() else None


def write(d, folder):
    """Writes the files of a draw and returns the arguments of the command."""
    folder = Path(folder)
    (folder / "config.json").write_text(json.dumps(d.config))
    arguments = ["check", "--json", "--model", str(folder / "config.json"), *d.options]
    for name, x in d.inputs.items():
        np.save(folder / f"{name}.npy", d.stored(name, x))
        out = d.output(name, True, d.arithmetic)
        np.save(folder / f"{name}_out.npy", d.stored(name, out))
        actual = "--actual" if name == "q" else f"--actual-{name}"
        arguments += [f"--{name}", str(folder / f"{name}.npy"), actual,
                      str(folder / f"{name}_out.npy")]
    p = d.right.positions
    np.save(folder / "positions.npy", p[0, 0] if d.position_axes == 1 else
            p[0] if d.position_axes == 2 else p)
    arguments += ["--positions", str(folder / "positions.npy")]
    if d.right.norm:
        np.save(folder / "weight.npy", d.right.norm["weight"].astype(np.float32))
        arguments += ["--q-norm", str(folder / "weight.npy")]
    return arguments + (["--q-scale", str(d.right.scale)] if d.right.scale != 1 else [])


def rms(values):
    return float(np.sqrt(np.mean(values**2)))


def same_output(d, name, match, also=()):
    """Returns "equal" if the named mistakes give the engine's output as well as the drawn ones do,
    "hidden" if the mistakes that are not named are within the tolerance of computing in 16 bits.

    also: mistakes that count as named
    """
    named = engine.named_by(match["mistake"]) + list(also)
    known = [n for n in named if n in MISTAKES]
    if [n for n in named if n not in MISTAKES and n not in PRECISION]:
        return "wrong"
    values = {n: engine.said_value(n, match["meaning"], d.right) for n in known}
    values.update({n: d.values[n] for n in also})
    e = engine.changed(d.right, known, values)
    if e is None:
        return "wrong"
    if alone := re.search("their base " + engine.NUMBER + " alone", match["meaning"]):
        e = dataclasses.replace(e, base=float(alone[1]), scaling=None)
    e.factor = values.get("another_factor") or e.factor
    if (d.arithmetic or also) and abs(e.factor / d.wrong.factor - 1) < 0.005:
        e.factor = d.wrong.factor  # the program measured it with rounding to 16 bits
    right, drawn = d.output(name, False), d.output(name)
    actual = widened(d.stored(name, d.output(name, True, d.arithmetic)))
    floor = 2.0**-21 * rms(actual)
    rows = (np.abs(right - actual) > 2.0**-7 * np.abs(right).max()).any(axis=3, keepdims=True)
    tried = [engine.rotate(e, d.inputs[name])]
    if "another_scaling" in known:  # the engine need not use its factor
        kept = dataclasses.replace(e, factor=values.get("another_factor") or d.right.factor)
        tried.append(engine.rotate(kept, d.inputs[name]))
    candidates = [c for t in tried for c in (t, d.where(name, t, right), np.where(rows, t, right))]
    if any(rms(c - actual) <= 1.1 * rms(drawn - actual) + floor for c in candidates):
        return "equal"
    tolerance = 0.01 * np.abs(right).max(axis=3, keepdims=True)
    some = d.arithmetic and set(known) <= {SAID.get(n, n) for n in d.names}
    near = any((np.abs(c - drawn) <= tolerance).all() for c in candidates)
    return "hidden" if some and near else "wrong"


def numbers_are_said(d, meaning):
    """Returns whether the sentence has the numbers of the mistakes that have numbers."""
    said = [float(n.rstrip(".")) for n in re.findall(engine.NUMBER, meaning)]
    numbers = {
        "another_base": (d.values.get("another_base"), d.right.base),
        "another_factor": (d.values.get("another_factor"),),
        "another_scaling": (d.values.get("another_scaling"), (d.right.scaling or {}).get("factor")),
        "position_offset": (abs(d.values.get("position_offset") or 0),),
    }
    return all(
        any(abs(said_one - number) <= (0.03 if d.arithmetic else 0.01) * abs(number)
            for said_one in said)
        for n in d.names for number in numbers.get(n, ()))


def classify_tensor(d, name, found):
    """Returns the class of what the program said, one of WORST."""
    expected = {SAID.get(n, n) for n in d.names}
    if name == "v":
        expected = {"v_rotated"} if d.v_rotated else set()
    elif name not in d.tensors:
        expected = set()
    if found["verdict"] == "pass":
        return "exact" if not expected or not d.visible(name, d.arithmetic) else "wrong"
    right, noisy = d.output(name, False), d.output(name, True, d.arithmetic)
    effect, noise = rms(d.output(name) - right), rms(noisy - d.output(name))
    if not expected:
        rounding = found["verdict"] == "close" or all(
            n in PRECISION for n in engine.named_by(found["matches"][0]["mistake"]))
        return "exact" if rounding and d.arithmetic else "wrong"
    matches = found["matches"]
    extra = PRECISION if d.arithmetic else set()
    for i, m in enumerate(matches if found["verdict"] == "mistake" else []):
        names = set(engine.named_by(m["mistake"]))
        if expected <= names and names - expected <= extra and (
                name == "v" or numbers_are_said(d, m["meaning"])):
            return "exact" if m["explains"] or i == 0 else "equal"
    if found["verdict"] == "close":
        # The mistakes change no more than rounding does, or they are themselves rounding.
        return "hidden" if effect < 3 * noise or expected <= PRECISION else "close"
    if found["verdict"] == "unexplained":
        return "unexplained"
    names = set(engine.named_by(matches[0]["mistake"]))
    precise = expected - names <= PRECISION and names - expected <= PRECISION
    if precise and numbers_are_said(d, matches[0]["meaning"]):
        return "rounding"  # only mistakes of rounding differ
    if name == "v":
        return "wrong"
    result = same_output(d, name, matches[0])
    rest = [n for n in d.names if n in PRECISION and n not in names]
    if result == "wrong" and rest and same_output(d, name, matches[0], rest) == "equal":
        result = "rounding"
    return result


# From the worst to the best. In `hidden`, the mistakes that are not named are as small as the
# rounding of 16 bits; in `rounding`, the program named all but the mistakes of rounding.
WORST = ["wrong", "unexplained", "close", "hidden", "rounding", "equal", "exact"]
GOOD = WORST[3:]


def judge(program, d, folder):
    """Returns the class of a draw, and a line about it."""
    arguments = [program, *write(d, folder)]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return "wrong", f"no answer in {PATIENCE} s", arguments
    if done.returncode > 1:
        return "wrong", f"exit code {done.returncode}: {done.stderr.strip()}", arguments
    report = json.loads(done.stdout)
    worst, line = "exact", ""
    for name in d.inputs:
        found = report[name]
        of_tensor = classify_tensor(d, name, found)
        first = (found["matches"] or [{"mistake": "-", "meaning": "", "where": None}])[0]
        if not line or WORST.index(of_tensor) < WORST.index(worst):
            worst = of_tensor
            line = f"{name}: {found['verdict']}, {first['mistake']}: {first['meaning']}" + (
                f" [{first['where']}]" if first["where"] else "")
    return worst, line, arguments


def described(d, family=""):
    values = {n: v for n, v in d.values.items() if n in d.names and v is not None}
    shape = "x".join(map(str, d.inputs["q"].shape))
    names = " + ".join(d.names)
    kind = (d.right.scaling or {}).get("type", "")
    return (f"{names} {values or ''} | {d.config['model_type']} {kind} {shape} {''.join(d.inputs)} "
            f"{d.dtype} {'computed in ' + d.arithmetic if d.arithmetic else 'exact'}"
            f"{'' if d.region is None else ' in some rows'}"
            f"{'' if 'q' in d.tensors else ' K only'}")


def nth(seed, number, **options):
    """Returns a draw; draws that show nothing are replaced by others of the same seed."""
    if not options:  # random mistakes; each comes first equally often
        first = DRAWN[int(np.random.default_rng([seed, number]).integers(len(DRAWN)))]
        options = {"wanted": (first,), "count": 1 + number % 3}
    for attempt in range(5000):
        found = draw(np.random.default_rng([seed, number, attempt]), **options)
        if found:
            return found
    raise AssertionError(f"{options} never fits")


def run_one(task):
    program, seed, number, keep, options = task
    d = nth(seed, number, **options)
    if keep:
        folder = Path(keep) / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        result, line, arguments = judge(program, d, folder)
        (folder / "command.txt").write_text(f"{described(d)}\n{shlex.join(arguments)}\n")
    else:
        with tempfile.TemporaryDirectory() as scratch:
            result, line, arguments = judge(program, d, scratch)
    key = (len(d.names), d.arithmetic or "exact")
    return number, result, f"{described(d)}\n      {line}", key


def single_tasks(program, seed, keep):
    return [(program, seed, i, keep, {"wanted": (n,), "plain": True, "count": 1})
            for i, n in enumerate([*DRAWN, "v_rotated"])]


def run_all(tasks, show=True):
    counts = collections.Counter()
    with multiprocessing.Pool(2) as pool:
        for number, result, line, key in pool.imap(run_one, tasks):
            counts[key, result] += 1
            if show and result != "exact":
                print(f"{number:4d} {result}: {line}", flush=True)
    return counts


def summary(counts):
    for title, group in (("mistakes", 0), ("arithmetic", 1), ("all", None)):
        kinds = {k[group] if group is not None else "" for k, _ in counts}
        for kind in sorted(kinds):
            of_kind = collections.Counter()
            for (key, result), n in counts.items():
                if group is None or key[group] == kind:
                    of_kind[result] += n
            total = sum(of_kind.values())
            print(f"{title} {kind}: {total} draws: " + ", ".join(
                f"{c} {of_kind[c]} ({of_kind[c] / total:.0%})" for c in WORST[::-1] if of_kind[c]))


def program_of_tests():
    """Returns the command of the wheel, or the one that the environment names."""
    if "VKROPE_PROGRAM" in os.environ:
        return os.environ["VKROPE_PROGRAM"]
    from vkrope import _command

    return str(_command._program())


@pytest.mark.parametrize("family", FAMILIES)
def test_frequencies_and_right_outputs(family, tmp_path):
    program = program_of_tests()
    d = nth(1, FAMILIES.index(family), family=family, count=0, plain=True)
    arguments = write(d, tmp_path)
    asked = [program, "frequencies", "--json", "--model", str(tmp_path / "config.json"), *d.options]
    said = json.loads(subprocess.run(asked, capture_output=True, check=True).stdout)
    np.testing.assert_allclose(engine.frequencies(d.right), said["inv_freq"], rtol=1e-12)
    assert abs(d.right.factor - said["attention_factor"]) < 1e-12
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout, done.stderr
    assert json.loads(done.stdout)["verdict"] == "pass"


def test_each_mistake_is_named():
    tasks = single_tasks(program_of_tests(), 7, None)
    counts = run_all(tasks)
    good = sum(n for (_, result), n in counts.items() if result in GOOD)
    assert good == len(tasks)


def test_random_mistakes_are_named():
    number = 60
    counts = run_all([(program_of_tests(), 20, i, None, {}) for i in range(number)])
    results = collections.Counter()
    for (_, result), n in counts.items():
        results[result] += n
    # Over 550 draws, 98 % were named and 2 got another name that explains them about as well.
    assert results["wrong"] <= 1
    assert sum(results[r] for r in GOOD) >= 0.93 * number


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--vkrope", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--only", type=int, help="run this draw alone")
    parser.add_argument("--keep", help="write the files and the command of each draw here")
    parser.add_argument("--singles", action="store_true", help="each mistake alone, in f32")
    given = parser.parse_args()
    if given.singles:
        todo = single_tasks(given.vkrope, given.seed, given.keep)
    else:
        todo = [(given.vkrope, given.seed, i, given.keep, {}) for i in range(given.number)]
    if given.only is not None:
        todo = [(given.vkrope, given.seed, given.only, given.keep,
                 todo[given.only][4] if given.singles else {})]
    summary(run_all(todo))
