# SPDX-License-Identifier: MIT
"""An engine in numpy that rotates Q and K as a model says, and can be told to make mistakes.

It shares no code with the program: frequencies, pairs, positions and norms are computed here from
the published formulas. A mistake changes a field of Engine; rotate() then does what the fields say.
"""

import copy
import dataclasses
import math
import re

import numpy as np

from definition import rounded, widened

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}


def in_type(values, name):
    """Returns float64 values rounded to an element type, as float64."""
    return widened(rounded(np.asarray(values, np.float64), np.dtype(DTYPES[name])))


@dataclasses.dataclass
class Engine:
    head_dim: int
    rotary_dim: int
    base: float
    scaling: dict = None  # "type" and its numbers; None: unscaled
    factor: float = 1.0  # the attention factor
    offset: int = 0  # first rotated channel
    interleaved: bool = False
    exponent_dim: int = None  # None: rotary_dim
    turning: int = None  # proportional scaling: number of pairs that turn
    sections: tuple = None  # ("sequential" or "interleaved", sizes)
    positions: np.ndarray = None  # [axes, batch, tokens]
    norm: dict = None  # weight, plus (0 or 1), eps, after, sum, all_heads, channels
    scale: float = 1.0  # of Q
    other: dict = None  # fields of the other kind of layers
    # The rest is set by mistakes only.
    interleaved_out: bool = None
    distance: int = None  # between the channels of a pair
    window: str = None
    inclusive: bool = False
    times_scaled: int = 1  # how often the frequencies are scaled
    in_power: bool = False
    inverse: bool = False
    exchanged: bool = False
    axes: dict = dataclasses.field(default_factory=dict)  # axis of each pair
    frequency_type: str = None
    table_type: str = None
    float32: bool = False


def magnitude(factor, mscale=1.0):
    return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1


def attention_factor(scaling):
    """Returns the factor that belongs to a scaling."""
    kind, factor = (scaling["type"], scaling["factor"]) if scaling else ("", 1)
    if kind == "longrope":
        return math.sqrt(1 + math.log(factor) / math.log(scaling["original"]))
    if kind != "yarn":
        return 1.0
    mscales = magnitude(factor, scaling.get("mscale", 1)), scaling.get("mscale_all_dim", 0)
    return scaling.get("attention_factor") or mscales[0] / magnitude(factor, mscales[1])


def ramp(scaling, base, dim, pairs):
    """Returns the share of each pair that YaRN interpolates (arXiv:2309.00071)."""
    low, high = (dim * math.log(scaling["original"] / (turns * 2 * math.pi)) / (2 * math.log(base))
                 for turns in (32, 1))
    if not scaling.get("unrounded"):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    return np.clip((np.arange(pairs) - low) / (high - low or 0.001), 0, 1)


def scaled(f, base, dim, scaling, in_power):
    """Returns scaled frequencies."""
    kind, factor, j = scaling["type"], scaling["factor"], np.arange(len(f))
    slow = (factor * base) ** (-2 * j / dim) if in_power else f / factor
    if kind == "linear":
        return slow
    if kind == "yarn":
        share = ramp(scaling, base, dim, len(f))
        return share * slow + (1 - share) * f
    if kind == "llama3":  # between 1 and 4 turns within the original length
        share = np.clip((scaling["original"] * f / (2 * math.pi) - 1) / 3, 0, 1)
        return share * f + (1 - share) * slow
    if kind == "longrope":
        return f / scaling["long_factor"]
    stretch = factor * scaling["seq_len"] / scaling["original"] - (factor - 1)  # dynamic
    return (base * stretch ** (dim / (dim - 2))) ** (-2 * j / dim)


def frequencies(e):
    """Returns inv_freq of each pair."""
    if e.rotary_dim == 0:  # a layer without RoPE
        return np.zeros(0)
    pairs, dim = e.rotary_dim // 2, e.exponent_dim or e.rotary_dim
    j = np.arange(pairs)
    if e.sections and e.sections[0] == "vision":  # each axis has all frequencies
        dim, j = e.rotary_dim // 2, j % (pairs // 2)
    f = e.base ** -(j / (pairs - 1) if e.inclusive else 2 * j / dim)
    plain = f
    for _ in range(e.times_scaled if e.scaling else 0):
        f = f * scaled(plain, e.base, dim, e.scaling, e.in_power) / plain
    return np.where(j < (e.turning or pairs), f, 0)


def axis_of_pairs(e, pairs):
    """Returns the axis of positions that rotates each pair."""
    j = np.arange(pairs)
    if e.sections is None:
        axis = 0 * j
    elif e.sections[0] == "interleaved":
        sizes = np.array(e.sections[1])
        axis = np.where((j % 3 > 0) & (j < 3 * sizes[j % 3]), j % 3, 0)
    else:
        axis = np.repeat(np.arange(len(e.sections[1])), e.sections[1])
    for pair, other in e.axes.items():
        axis[pair] = other
    return axis


def windowed(e, f):
    """Returns the frequencies and the offset of the window that the engine rotates."""
    half, offset = len(f) // 2, e.offset
    if e.window in ("half_of_window", "second_half_of_window"):
        f = f[: 2 * half : 2]
        offset += 2 * half if e.window == "second_half_of_window" else 0
    elif e.window == "half_of_window_and_frequencies":
        f = f[:half]
    elif e.window == "half_of_pairs":
        f = np.where(np.arange(len(f)) < half, f, 0)
    elif e.window == "second_half_of_pairs":
        f = np.where(np.arange(len(f)) < half, 0, f)
    return f, offset


def channels(e, pairs, offset, interleaved):
    j = np.arange(pairs)
    if interleaved:
        return offset + 2 * j, offset + 2 * j + 1
    return offset + j, offset + j + (e.distance or pairs)


def normed(e, x, rnd):
    n, x = e.norm, x.copy()
    axes, part = (2, 3) if n.get("all_heads") else 3, x[..., :n.get("channels")]
    square = (np.sum if n.get("sum") else np.mean)(part * part, axis=axes, keepdims=True)
    part[...] = rnd(rnd(part / np.sqrt(square + n["eps"])) * (n["weight"] + n["plus"]))
    return x


def rotate(e, x, arithmetic=None):
    """Returns float64 values of the engine, for x [batch, tokens, heads, head_dim].

    arithmetic: "f16" or "bf16" if every step is rounded to it
    """
    rnd = (lambda v: in_type(v, arithmetic)) if arithmetic else (lambda v: v)
    if e.norm and not e.norm.get("after"):
        x = normed(e, x, rnd)
    f, offset = windowed(e, frequencies(e))
    if e.frequency_type:
        f = in_type(f, e.frequency_type)
    positions = np.moveaxis(e.positions[axis_of_pairs(e, len(f))], 0, -1)  # [batch, tokens, pairs]
    if e.float32:
        angle = (positions.astype(np.float32) * f.astype(np.float32)).astype(np.float64)
    else:
        angle = positions * f
    c, s = e.factor * np.cos(angle), e.factor * np.sin(angle)
    if e.table_type:
        c, s = in_type(c, e.table_type), in_type(s, e.table_type)
    c, s = (s, c) if e.exchanged else (c, s)
    c, s = rnd(c)[:, :, None], rnd(-s if e.inverse else s)[:, :, None]
    first, second = channels(e, len(f), offset, e.interleaved)
    out = e.interleaved if e.interleaved_out is None else e.interleaved_out
    to_first, to_second = channels(e, len(f), offset, out)
    y, x0, x1 = x.copy(), x[..., first], x[..., second]
    y[..., to_first] = rnd(rnd(x0 * c) - rnd(x1 * s))
    y[..., to_second] = rnd(rnd(x0 * s) + rnd(x1 * c))
    if e.norm and e.norm.get("after"):
        y = normed(e, y, rnd)
    return rnd(y * e.scale) if e.scale != 1 else y


# Mistakes. Each returns False where it does not apply. `v` is the number that it needs.

def put(condition=lambda e: True, **fields):
    """Makes a mistake that sets fields, each a value or a function of the engine."""
    def change(e, v):
        if not condition(e):
            return False
        values = {k: f(e) if callable(f) else f for k, f in fields.items()}
        e.__dict__.update(values)
        return True
    return change


def given(field):
    """Makes a mistake that sets a field to v, and does not apply without v."""
    return lambda e, v: bool(v) and put(**{field: v})(e, v)


def move(of):
    """Makes a mistake that replaces positions by of(positions, v)."""
    def change(e, v):
        before = e.positions
        e.positions = np.broadcast_to(of(before, v), before.shape).copy()
        return bool((e.positions != before).any())
    return change


def of_norm(**fields):
    def change(e, v):
        if not e.norm:
            return False
        e.norm = {**e.norm, **{k: f(e, v) if callable(f) else f for k, f in fields.items()}}
        return True
    return change


def another_scaling(e, v):
    if not e.scaling or e.scaling["type"] == "longrope" or v is None:
        return False
    before = attention_factor(e.scaling)
    e.scaling = {**e.scaling, "factor": v}
    e.factor *= attention_factor(e.scaling) / before
    return True


def offset_of_one_axis(e, v):
    if len(e.positions) < 2:
        return False
    e.positions = e.positions.copy()
    e.positions[-1] += 5
    return True


def exchange_axes(e, v):
    axes = len(e.positions)
    e.positions = e.positions[{1: [0], 2: [1, 0], 3: [0, 2, 1]}[axes]]
    return axes > 1


def other_order(e, v):
    if not e.sections or e.sections[0] == "vision":
        return False
    other = "sequential" if e.sections[0] == "interleaved" else "interleaved"
    e.sections = (other, e.sections[1])
    return True


def other_layers(e, v):
    e.__dict__.update(e.other or {})
    return bool(e.other)


def partial(e):
    return 0 < e.rotary_dim < e.head_dim and e.turning is None


def one_axis(e):
    return len(e.positions) == 1 and e.rotary_dim > 4


def scales(*kinds):
    return lambda e: bool(e.scaling) and (not kinds or e.scaling["type"] in kinds)


def has_factor(e):
    return attention_factor(e.scaling) != 1


def window(name, condition=one_axis):
    return put(lambda e: condition(e) and e.turning is None, window=name)


def half_split(e):
    return one_axis(e) and not e.interleaved


# name: (the parts that it changes, the change), in the order in which they are made
MISTAKES = {
    "other_layer_type": ("frequencies", other_layers),
    "swapped_pairing": ("pairs", put(lambda e: e.rotary_dim > 2,
                                     interleaved=lambda e: not e.interleaved)),
    "reordered_pairs": ("pairs", put(lambda e: e.rotary_dim > 2 and e.distance is None,
                                     interleaved_out=lambda e: not e.interleaved)),
    "inverse_direction": ("direction", put(inverse=True)),
    "cos_and_sin_exchanged": ("arithmetic", put(exchanged=True)),
    "attention_factor_missing": ("factor", put(has_factor, factor=1.0)),
    "attention_factor_twice": ("factor", put(has_factor, factor=lambda e: e.factor**2)),
    "attention_factor_divided": ("factor", put(has_factor, factor=lambda e: 1 / e.factor)),
    "another_factor": ("factor", given("factor")),
    "scaling_ignored": ("frequencies factor", put(scales(), scaling=None, factor=1.0)),
    "frequencies_unscaled": ("frequencies", put(lambda e: bool(e.scaling) and has_factor(e),
                                                scaling=None)),
    "scaling_twice": ("frequencies", put(scales("linear", "yarn", "llama3"), times_scaled=2)),
    "factor_in_power": ("frequencies", put(scales("linear", "yarn"), in_power=True)),
    "yarn_range_unrounded": ("frequencies", put(
        scales("yarn"), scaling=lambda e: {**e.scaling, "unrounded": True})),
    "base_10000": ("frequencies factor", put(lambda e: e.base != 1e4, base=1e4, scaling=None,
                                             factor=1.0)),
    "base_10000_with_factor": ("frequencies", put(lambda e: e.base != 1e4 and has_factor(e),
                                                  base=1e4, scaling=None)),
    "another_base": ("frequencies", given("base")),
    "another_scaling": ("frequencies factor", another_scaling),
    "short_sequence": ("frequencies", put(
        scales("longrope", "dynamic"), scaling=lambda e: None if e.scaling["type"] == "dynamic"
        else {**e.scaling, "long_factor": e.scaling["short_factor"]})),
    "exponent_of_head_dim": ("frequencies", put(partial, exponent_dim=lambda e: e.head_dim)),
    "inclusive_spacing": ("frequencies", put(
        lambda e: one_axis(e) and e.turning is None and e.scaling is None, inclusive=True)),
    "exponent_of_partial": ("frequencies", put(
        lambda e: e.turning is not None, exponent_dim=lambda e: 2 * e.turning)),
    "whole_head": ("window frequencies", put(partial, rotary_dim=lambda e: e.head_dim, offset=0)),
    "pair_distance_of_head_dim": ("window pairs", put(
        lambda e: partial(e) and not e.interleaved, distance=lambda e: e.head_dim // 2)),
    "proportional_instead_of_partial": ("window frequencies pairs", put(
        lambda e: partial(e) and not e.interleaved, distance=lambda e: e.head_dim // 2,
        exponent_dim=lambda e: e.head_dim)),
    "partial_instead_of_proportional": ("window frequencies", put(
        lambda e: e.turning is not None, rotary_dim=lambda e: 2 * e.turning, exponent_dim=None,
        turning=None)),
    "pair_distance_of_partial": ("window frequencies", put(
        lambda e: e.turning is not None, exponent_dim=lambda e: e.head_dim,
        rotary_dim=lambda e: 2 * e.turning, turning=None)),
    "window_at_start": ("window", put(lambda e: e.offset > 0, offset=0)),
    "window_at_end": ("window", put(partial, offset=lambda e: e.head_dim - e.rotary_dim)),
    "half_of_window": ("window", window("half_of_window")),
    "half_of_window_and_frequencies": ("window", window("half_of_window_and_frequencies")),
    "second_half_of_window": ("window", window("second_half_of_window")),
    "half_of_pairs": ("window", window("half_of_pairs", half_split)),
    "second_half_of_pairs": ("window", window("second_half_of_pairs")),
    "position_plus_one": ("positions", move(lambda p, v: p + 1)),
    "position_minus_one": ("positions", move(lambda p, v: p - 1)),
    "position_offset": ("positions", lambda e, v: bool(v) and move(lambda p, v: p + v)(e, v)),
    "position_offset_of_one_axis": ("positions axes", offset_of_one_axis),
    "positions_from_zero": ("positions", move(lambda p, v: np.arange(p.shape[2]))),
    "positions_of_first_sequence": ("positions", move(lambda p, v: p[:, :1])),
    "positions_of_first_token": ("positions", move(lambda p, v: p[:, :, :1])),
    "one_position": ("positions", lambda e, v: v is not None and move(lambda p, v: v)(e, v)),
    "positions_zero": ("positions", move(lambda p, v: 0)),
    "positions_in_16_bits": ("positions", lambda e, v: bool(v) and e.positions.max() < 60000
                             and move(in_type)(e, v)),
    "rotated_twice": ("positions factor", put(positions=lambda e: 2 * e.positions,
                                              factor=lambda e: e.factor**2)),
    "sections_ignored": ("axes", put(lambda e: len(e.positions) > 1,
                                     positions=lambda e: 0 * e.positions + e.positions[:1])),
    "sections_in_the_other_order": ("axes", other_order),
    "height_and_width_exchanged": ("axes", exchange_axes),
    "pairs_on_other_axes": ("axes", given("axes")),
    "norm_missing": ("norm", put(lambda e: e.norm, norm=None)),
    "eps_missing": ("norm", of_norm(eps=0.0)),
    "another_eps": ("norm", lambda e, v: v is not None and of_norm(eps=v)(e, v)),
    "weight_missing": ("norm", of_norm(weight=1.0, plus=0)),
    "one_plus_weight": ("norm", lambda e, v: bool(e.norm) and e.norm["plus"] == 0
                        and of_norm(plus=1)(e, v)),
    "one_plus_weight_forgotten": ("norm", lambda e, v: bool(e.norm) and e.norm["plus"] == 1
                                  and of_norm(plus=0)(e, v)),
    "norm_after_rotation": ("norm", of_norm(after=True)),
    "sum_instead_of_mean": ("norm", of_norm(sum=True)),
    "norm_of_all_heads": ("norm", of_norm(all_heads=True)),
    "scale_missing": ("scale", put(lambda e: e.scale != 1, scale=1.0)),
    "scale_twice": ("scale", put(lambda e: e.scale != 1, scale=lambda e: e.scale**2)),
    "frequencies_in_16_bits": ("rounding", given("frequency_type")),
    "tables_in_16_bits": ("tables", given("table_type")),
    "float32_angles": ("angles", put(float32=True)),
    "not_rotated": ("positions factor", put(positions=lambda e: 0 * e.positions, factor=1.0)),
}

# Names that are drawn under another name, and names that the program uses for a drawn one.
SAID = {"position_offset_of_one_axis": "position_offset"}
ALSO = {"rotated_without_rope": "other_layer_type"}
NOT_DRAWN = {"not_rotated", "pairs_on_other_axes"}
PRECISION = {"frequencies_in_16_bits", "tables_in_16_bits", "float32_angles", "angles_in_16_bits",
             "float32_angles_by_running_product", "rounded_before_weight"}


def named_by(mistake):
    """Returns the names of a match of the program."""
    return [ALSO.get(n, n) for n in mistake.split(" + ")]


def changed(right, names, values):
    """Returns an engine with these mistakes, or None if one of them does not apply."""
    e = copy.copy(right)
    for name in sorted(names, key=list(MISTAKES).index):
        if not MISTAKES[name][1](e, values.get(name)):
            return None
    return e


def draw_value(name, e, rng):
    """Returns the number of a mistake that needs one."""
    if name == "another_factor":
        return e.factor * float(rng.choice([rng.uniform(0.3, 0.9), rng.uniform(1.1, 3)]))
    if name == "another_base":
        bases = [b for b in (1e5, 2.5e5, 5e5, 7e5, 1e6, 2e6, 5e6, 1e7) if b != e.base]
        return float(rng.choice(bases))
    if name == "another_scaling" and e.scaling:
        return float(rng.choice([f for f in (2, 3, 4, 6, 16, 32) if f != e.scaling["factor"]]))
    if name == "position_offset":
        least = int(e.positions.min())
        negative = -int(rng.integers(2, least + 1)) if least >= 2 else 7
        return int(rng.choice([negative, rng.integers(2, 60), rng.integers(60, 5000)]))
    if name == "one_position":
        return int(rng.integers(1, 5000))
    if name == "another_eps" and e.norm:
        return float(rng.choice([v for v in (1e-6, 1e-5, 1e-4, 1e-3) if v != e.norm["eps"]]))
    return str(rng.choice(["f16", "bf16"])) if name.endswith("16_bits") else None


NUMBER = r"(-?[0-9][0-9.]*(?:e[-+]?[0-9]+)?)"


def said_value(name, meaning, right):
    """Reads the number of a mistake from the sentence of the program."""
    def number(pattern):
        found = re.search(pattern, meaning)
        return float(found[1].rstrip(".")) if found else None
    if name == "position_offset":
        v, small = number(NUMBER + r" too (?:large|small)"), "too small" in meaning
        return v and int(-v if small else v)
    if name == "one_position":
        v = number(r"every token is at " + NUMBER)
        return None if v is None else int(v)
    if name == "another_factor":
        return number(r"another factor: " + NUMBER)
    if name == "another_base":
        return number(r"another base: " + NUMBER)
    if name == "another_scaling":
        return number(r"for the scaling:[^0-9]*" + NUMBER)
    if name == "another_eps":
        return number(r"eps[^0-9]*" + NUMBER)
    if name == "pairs_on_other_axes":
        axes, pairs = {}, axis_of_pairs(right, len(frequencies(right)))
        for those, axis in re.findall(r"(all|pairs? [0-9, -]+) on axis (\d)", meaning):
            for a, b in re.findall(r"(\d+)(?:-(\d+))?", those) or [(0, len(pairs) - 1)]:
                axes.update({j: int(axis) for j in range(int(a), int(b or a) + 1)})
        return axes
    return ("bf16" if "bf16" in meaning else "f16") if name.endswith("16_bits") else None
