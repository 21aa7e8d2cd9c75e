# SPDX-License-Identifier: MIT
"""Makes the files of a case, with expected values from the definition. Nothing here comes from the
library or from the reader of cases."""

import itertools
import json
import math

import numpy as np

from stored_codes import BLOCK_BYTES, LARGEST, hadamard, stored_rows

U = 2.0**-24
HALF_ULP = {"f32": 0.0, "f16": 2.0**-11, "bf16": 2.0**-8}


def inputs(count, seed):
    """Multiples of 1/8 in [-2, 2], which every element type holds."""
    numbers = []
    for _ in range(count):
        seed = (seed * 1103515245 + 12345) % 2**31
        numbers.append((seed >> 16) % 33 / 8 - 2)
    return np.array(numbers)


def stored(kind, numbers):
    """Returns an array in the element type of a file; bf16 is uint16."""
    if kind != "bf16":
        return np.asarray(numbers).astype({"f32": "<f4", "f16": "<f2", "u8": "|u1"}[kind])
    bits = np.asarray(numbers).astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def values(array):
    if array.dtype == np.uint16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


# Positions: the key of the document, an array [axes, batch, tokens] or one that broadcasts to it,
# or a function of the number of tokens, and files.


def at_offset(value):
    return {"kind": "offset", "value": value}, lambda tokens: value + np.arange(tokens), {}


def ids_of(axes, ids):
    shape = [ids.shape[axes.index(c)] if c in axes else 1 for c in ("A", "B", axes[-1])]
    document = {"kind": "explicit", "file": "positions.npy", "axes": axes}
    return document, ids.reshape(shape), {"positions.npy": ids}


# Angles: the key of the document, a function that returns cos and sin for positions [..., pairs],
# the pairs of a window and the columns of a table, and files.


def base(base_, n, scaling=None, frequencies=None, exponents=range(64), **files):
    """frequencies: those of the scaling; else the powers of the base"""
    found = np.array([base_ ** (-2.0 * e / n) for e in exponents]
                     if frequencies is None else frequencies)

    def turn(position, pair, column):
        angle = position * found[pair]
        return np.vectorize(math.cos)(angle), np.vectorize(math.sin)(angle)

    document = {"kind": "base", "base": base_, "exponent_dim": n, "scaling": scaling}
    return document, turn, {f"{name}.npy": array for name, array in files.items()}


def cache(cos, sin, kind="f32", rows="indexed", width="half", shape=None, columns=None):
    """cos, sin: [positions, columns]; columns: those of the file, if not all"""
    def look_up(position, pair, column):
        return cos[position, column], sin[position, column]

    document = {"kind": "cache", "cos": "cos.npy", "sin": "sin.npy", "rows": rows, "width": width}
    files = {f"{name}.npy": stored(kind, (table if columns is None else table[:, columns]).reshape(
        shape or (len(table), -1))) for name, table in (("cos", cos), ("sin", sin))}
    return document, look_up, files


def axis_of(sections, pair):
    if not sections:
        return 0
    sizes = sections["sizes"]
    m = pair % sum(sizes)
    if sections["mode"] == "interleaved":
        return m % 3 if m < 3 * sizes[m % 3] else sections["leftover_axis"]
    return next(i for i, end in enumerate(itertools.accumulate(sizes)) if m < end)


def rotated(x, d, windows, position, angle, multiplier):
    """Returns rows [batch, tokens, planes, heads, channels], and |x0| + |x1| and the bound of each
    element. The bound is the accuracy contract for direct tables, with what a gain adds to it."""
    y, sizes, bounds, first_pair = x.copy(), np.zeros(x.shape), np.zeros(x.shape), 0
    for window in windows:
        half = window["rotary_dim"] // 2
        if half == 0:
            continue
        pair = np.arange(half)
        axes = [axis_of(d["sections"], j) if window["axis"] is None else window["axis"]
                for j in pair]
        at = np.moveaxis(position[axes], 0, -1)
        places = {"half": (pair, pair + half), "interleaved": (2 * pair, 2 * pair + 1)}
        # The columns of the two channels: those of the pair, or of each channel.
        columns = places[d["pairing"]] if d["angles"].get("width") == "full" else (
            first_pair + pair,) * 2
        (c0, s0), (c1, s1) = ([multiplier * of[:, :, None, None] for of in angle(at, pair, column)]
                              for column in columns)
        matrix = ((c0, -s0), (s1, c1))
        if d["direction"] == "inverse":
            matrix = tuple(zip(*matrix))
        x0, x1 = (x[..., window["offset"] + place] for place in places[d["pairing"]])
        largest = np.max([abs(of) for row in matrix for of in row] + [0 * c0 + multiplier], axis=0)
        for row, place in zip(matrix, places[d.get("pairing_out", d["pairing"])]):
            y[..., window["offset"] + place] = row[0] * x0 + row[1] * x1
            sizes[..., window["offset"] + place] = abs(x0) + abs(x1)
            bounds[..., window["offset"] + place] = 5 * U * largest * (abs(x0) + abs(x1)) + 1e-30
        first_pair += half
    return y, sizes, bounds


def normed(x, norm, weight, bias):
    """Returns normalised rows and sizes that bound their errors."""
    axes, head_dim = (-2, -1) if norm["span"] == "token" else -1, x.shape[-1]
    mean = x.mean(axes, keepdims=True) if norm["kind"] == "layer" else 0.0
    root = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + norm["eps"])
    w = 1.0 if weight is None else weight.reshape(-1, head_dim) + norm["weight_offset"]
    b = 0.0 if bias is None else bias.reshape(-1, head_dim)
    return (x - mean) * root * w + b, (abs(x) + abs(mean)) * root * abs(w)


def with_steps(x, of, d, parameters, turn):
    """Returns rows after all steps but the store, and the largest size on the way."""
    sizes, norm = [], d.get("norm", {}).get(of["name"])
    if "bias" in of:
        x = x + parameters["bias"].reshape(-1, x.shape[-1])
    sizes += [abs(x)] if not norm else []
    for place in ("before", "after"):
        if norm and norm["place"] == place:
            x, size = normed(x, norm, parameters["weight"], parameters["norm_bias"])
            sizes.append(size)
        if place == "before":
            x = np.clip(x, -d.get("clip", np.inf), d.get("clip", np.inf))
            if of["name"] != "v":
                x, size, _ = turn(x)
                sizes.append(size)
    size = np.max([part.max((2, 3, 4), keepdims=True) for part in (*sizes, abs(x))], axis=0)
    factor = of.get("scale", 1.0) * np.reshape(of.get("scale_tokens", 1.0), (
        *(x.shape[:2] if "scale_tokens" in of else (1, 1)), 1, 1, 1))
    blocks = of.get("hadamard", 1)
    largest = np.maximum(size, size * abs(factor) * math.sqrt(blocks)).max()
    x = x * factor
    return (hadamard(x, blocks) if blocks > 1 else x), largest


def into_cache(of, rows, initial, slots):
    """Returns the whole cache."""
    cache_, size = initial.copy(), of["page_size"]
    pages = cache_.transpose([of["layout"].index(letter) for letter in "NPHD"])
    for slot, row in zip(slots.ravel(), rows.reshape(-1, *rows.shape[-2:])):
        if slot >= 0:
            pages[slot // size, slot % size] = row
    return cache_


def make(folder, name, position, angles, *, layout="BSHD", dtype="f32", factor=1.0, gain=None,
         rotary_dim=None, offset=0, windows=None, atol_files=False, exact=False, expected=True,
         largest_factor=None, off_by_one=None, extra=(), q=None, k=None, v=None, **keys):
    """Writes a case. q, k, v: shapes, other keys of the tensor, and its steps as arrays."""
    second = name.startswith(("finish_", "store_"))
    files = {**position[2], **angles[2]}
    d = {"schema": f"rope-case/{1 + second}", "id": f"own/{name}", "pairing": "half",
         "source": {"project": "vkrope", "kind": "oracle"}, "direction": "forward", "dtype": dtype,
         "layout": layout, "tensors": {}, "attention_factor": factor, "positions": position[0],
         "angles": angles[0], "sections": None, **keys}
    if gain:
        d["gain"] = gain
    factor = largest_factor or factor
    multiplier = {None: factor, "omit": 1.0, "divide_out": 1 / factor}[gain]
    allowance, largest, made_scales = {}, 0.0, {}
    for which, of in (("q", q), ("k", k), ("v", v)):
        if of is None:
            continue
        of, letters, shape = dict(of, name=which), of.get("layout", layout), of["shape"]
        file = of.get("file", f"{which}.npy")
        entry = {key: of[key] for key in ("shape", "layout", "num_heads", "view") if key in of}
        d["tensors"][which] = {"file": file, **entry}
        seed = len(name.split("_", 1)[1] if second else name) + ord(file[0])
        parent = of["values"] if "values" in of else inputs(
            math.prod(of.get("parent", shape)), seed)
        files[file] = stored(dtype, parent).reshape(of.get("parent", shape))
        view = of.get("view", {"offset": 0, "strides": [
            math.prod(shape[axis + 1:]) for axis in range(len(shape))]})
        logical = np.lib.stride_tricks.as_strided(
            parent[view["offset"]:], shape, [8 * step for step in view["strides"]])
        split = list(shape)
        if letters[-1] == "E":
            letters, split[-1:] = letters[:-1] + "HD", [of["num_heads"],
                                                        shape[-1] // of["num_heads"]]
        lengths = dict(zip(letters, split))
        full = [lengths.get("B", 1), lengths.get("S", lengths.get("T", 1)),
                *(lengths.get(letter, 1) for letter in "PHD")]
        order = [letters.index(letter) for letter in "BSTPHD" if letter in letters]
        x = logical.reshape(split).transpose(order).reshape(full)
        at = position[1](full[1]) if callable(position[1]) else position[1]
        at = np.broadcast_to(at, (len(at) if np.ndim(at) == 3 else 1, *full[:2]))
        width = full[4] if rotary_dim is None else rotary_dim
        window = [{"offset": offset, "rotary_dim": width, "axis": None}]
        if "head_dim" not in d:
            d.update(head_dim=full[4], rotary_dim=None if windows else width,
                     rotary_offset=None if windows else offset)

        def turn(rows):
            return rotated(rows, d, windows or window, at, angles[1], multiplier)

        def in_layout(rows):
            lengths_out = [lengths[letter] for letter in letters][:-1] + [rows.shape[-1]]
            ordered = rows.reshape([lengths_out[axis] for axis in order]).transpose(
                np.argsort(order))
            return ordered.reshape(*shape[:-1], -1)

        if second:
            rows, scales, largest = stepped(of, d, files, x, turn, dtype, largest)
            kind = of.get("out", dtype)
            if scales is not None:
                made_scales[which] = scales, LARGEST[kind]
            result = in_layout(rows) if "cache" not in of else rows
        else:
            y, _, bounds = turn(x)
            planes = [plane for plane in range(full[2]) if plane not in
                      d.get("planes_rotated", range(full[2]))]
            y[:, :, planes], bounds[:, :, planes] = x[:, :, planes], 0
            result = stored(dtype, in_layout(y))
            if atol_files:
                allowance[which] = f"atol_{which}.npy"
                files[allowance[which]] = stored("f32", in_layout(bounds))
        if expected:
            d.setdefault("expected", {})[which] = f"expected_{which}.npy"
            files[f"expected_{which}.npy"] = result
    if windows:
        d["windows"] = windows
    # Inputs are at most 2, so that a pair is at most 4. A norm over up to 64 channels, a rotation
    # and three products are below 30 u of the largest size; a Hadamard transform adds 8 u.
    atol = (38 if "hadamard" in d else 30) * U * largest if second else (
        5 * U * 4 * max(multiplier, 1))
    kinds = [of.get("out", dtype) for of in (q, k, v) if of]
    d["tolerance"] = {"atol": atol, "rtol": max(HALF_ULP.get(kind, 0.0) for kind in kinds)}
    if exact:  # the looser one is for angles in float32
        d["tolerance_exact_angles"] = dict(d["tolerance"])
        d["tolerance"]["atol"] = 1e-3
    if off_by_one is not None:
        d["tolerance"]["codes"] = {"off_by_one": off_by_one}
    for which, (scales, most) in made_scales.items():
        files[f"expected_{which}_scales.npy"] = stored("f32", scales)
        files[f"atol_{which}_scales.npy"] = stored("f32", np.full(scales.shape, atol / most))
        allowance[f"{which}_scales"] = f"atol_{which}_scales.npy"
    if allowance:
        d["tolerance"]["atol_files"] = allowance
    d.update(extra)
    place = folder / name
    place.mkdir(parents=True)
    for file, array in files.items():
        np.save(place / file, array)
    (place / "case.json").write_text(json.dumps(d, indent=1))


def stepped(of, d, files, x, turn, dtype, largest):
    """Adds the steps of a tensor to the document. Returns its output, with the rows of a cache or
    as [batch, tokens, planes, heads, channels], the scales that were made, or None, and the larger
    of `largest` and its own largest size."""
    which, parameters = of["name"], {"weight": None, "norm_bias": None}

    def add(key, value):
        d.setdefault(key, {})[which] = value

    for key in ("bias", "weight", "norm_bias"):
        if key in of:
            kind = of.get("weight_dtype", dtype) if key == "weight" else dtype
            files[f"{key}_{which}.npy"] = stored(kind, of[key])
            parameters[key] = values(files[f"{key}_{which}.npy"])
    if "bias" in of:
        add("bias", f"bias_{which}.npy")
    if "norm" in of:
        add("norm", {**of["norm"], **{name: f"{key}_{which}.npy" if key in of else None
                                      for name, key in (("weight", "weight"),
                                                        ("bias", "norm_bias"))}})
        if "weight_dtype" in of:
            d["norm"][which]["weight_dtype"] = of["weight_dtype"]
    for key, name in (("scale", "scale"), ("out", "out_dtype"), ("hadamard", "hadamard")):
        if key in of:
            add(name, of[key])
    if "scale_tokens" in of:
        add("scale_tokens", f"scale_tokens_{which}.npy")
        files[f"scale_tokens_{which}.npy"] = stored("f32", of["scale_tokens"])
    scale, kind = of.get("store_scale"), of.get("out", dtype)
    if scale:
        add("store_scale", scale)
        if np.ndim(scale.get("given")):
            files[f"store_scale_{which}.npy"] = stored("f32", scale["given"])
            add("store_scale", {"given": f"store_scale_{which}.npy"})
    rows, size = with_steps(x, of, d, parameters, turn)
    quantised, scales = kind in LARGEST or kind in BLOCK_BYTES, None
    if quantised:
        rows, scales = stored_rows(kind, rows, scale)
    else:
        rows = stored(kind, rows)
    slots = of["cache"]["slots"] if "cache" in of else None
    if scales is not None:
        scales = scales.reshape(*x.shape[:2] if "B" in d["layout"] else x.shape[1:2], -1)
        if slots is not None:
            scales = np.where(slots.reshape(*scales.shape[:-1], 1) < 0, np.nan, scales)
    if slots is not None:
        cache_ = of["cache"]
        shape = [rows.shape[-1] if letter == "D" else length
                 for letter, length in zip(cache_["layout"], cache_["shape"])]
        numbers = inputs(math.prod(shape), 99)
        initial = (8 * numbers).astype(int).astype(np.uint8) if quantised else stored(kind, numbers)
        files[f"{which}_cache.npy"] = initial.reshape(shape)
        files[cache_["file"]] = slots
        add("cache", {"slots": cache_["file"], "shape": shape, "layout": cache_["layout"],
                      "page_size": cache_["page_size"], "initial": f"{which}_cache.npy"})
        rows = into_cache(cache_, rows, initial.reshape(shape), slots)
    return rows, scales, max(largest, size)
