# SPDX-License-Identifier: MIT
"""Writes cases: one or a few for each key of the format "rope-case/1", with expected values from
the definition.

A token is looked up in its own way for each kind of positions, a channel by the letters of the
layout, and an angle is one product in double. Nothing here comes from the library.
"""
import itertools
import math

import own_finish_cases
import own_store_cases
from case_files import HALF_ULP, U, Case, base, inputs, product


def base_angles(base, n, exponents=None):
    return lambda pair: base ** (-2.0 * (exponents[pair] if exponents else pair) / n)


def axis_of(sections, pair):
    if not sections:
        return 0
    sizes = sections["sizes"]
    m = pair % sum(sizes)
    if sections["mode"] == "interleaved":
        return m % 3 if m < 3 * sizes[m % 3] else sections["leftover_axis"]
    return next(i for i, end in enumerate(itertools.accumulate(sizes)) if m < end)


def make(name, *, position, angles, cos_sin, q=None, k=None, layout="BSHD", dtype="f32",
         pairing="half", pairing_out=None,
         direction="forward", factor=1.0, gain=None, rotary_dim=None, offset=0, windows=None,
         planes=None, sections=None, files=(),
         atol_files=False, exact=False, expected=True, largest_factor=None, extra=None):
    """position(b, t, axis) -> integer; cos_sin(b, t, position, pair, window) -> (cos, sin) without
    the factor."""
    case = Case(name)
    d = case.document
    d.update(pairing=pairing, direction=direction, dtype=dtype, layout=layout, tensors={},
             attention_factor=factor)
    if pairing_out:
        d["pairing_out"] = pairing_out
    if gain:
        d["gain"] = gain
    if planes is not None:
        d["planes_rotated"] = planes
    for file in files:
        case.array(*file)
    d.update(positions=position[0], angles=angles, sections=sections)
    factor = largest_factor or factor
    multiplier = {None: factor, "apply": factor, "omit": 1.0, "divide_out": 1 / factor}[gain]
    allowance = {}
    for tensor_name, tensor in (("q", q), ("k", k)):
        if tensor is None:
            continue
        letters, shape = tensor.get("layout", layout), tensor["shape"]
        entry = {"file": f"{tensor_name}.npy", "shape": shape}
        for key in ("layout", "num_heads", "view"):
            if key in tensor:
                entry[key] = tensor[key]
        d["tensors"][tensor_name] = entry
        parent_shape = tensor.get("parent", shape)
        parent = tensor.get("values") or inputs(product(parent_shape), len(name) + ord(tensor_name))
        case.array(f"{tensor_name}.npy", dtype, parent_shape, parent)
        strides = [product(shape[i + 1:]) for i in range(len(shape))]
        view = tensor.get("view", {"offset": 0, "strides": strides})
        logical = [parent[view["offset"] + sum(i * s for i, s in zip(at, view["strides"]))]
                   for at in itertools.product(*map(range, shape))]
        head_dim = shape[-1] // (tensor["num_heads"] if letters[-1] == "E" else 1)
        rows = windows or [{"offset": offset, "rotary_dim": rotary_dim or head_dim, "axis": None}]
        result, bounds = list(logical), [0.0] * len(logical)
        for at in itertools.product(*(range(n) for n in shape[:-1])):
            where = dict(zip(letters, at))
            b, t = where.get("B", 0), where.get("T", where.get("S", 0))
            if planes is not None and where["P"] not in planes:
                continue
            start = sum(i * s for i, s in zip(at, strides))
            for head in range(shape[-1] // head_dim):
                first_pair = 0
                for window in rows:
                    first = start + head * head_dim + window["offset"]
                    half = window["rotary_dim"] // 2
                    x = logical[first:first + 2 * half]
                    for pair in range(half):
                        axis = axis_of(sections, pair) if window["axis"] is None else window["axis"]
                        places = {"half": (pair, pair + half),
                                  "interleaved": (2 * pair, 2 * pair + 1)}
                        # The columns of the two channels: those of the pair, or of each channel.
                        columns = (first_pair + pair,) * 2
                        if angles.get("width") == "full":
                            columns = places[pairing]
                        at = position[1](b, t, axis)
                        (c0, s0), (c1, s1) = ((c * multiplier, s * multiplier) for c, s in
                                              (cos_sin(b, t, at, pair, column)
                                               for column in columns))
                        matrix = ((c0, -s0), (s1, c1))
                        if direction == "inverse":
                            matrix = tuple(zip(*matrix))
                        x0, x1 = (x[i] for i in places[pairing])
                        y0, y1 = (first + i for i in places[pairing_out or pairing])
                        result[y0], result[y1] = (row[0] * x0 + row[1] * x1 for row in matrix)
                        # The accuracy contract for direct tables, with what a gain adds to it.
                        largest = max(abs(of) for row in matrix for of in row)
                        size = abs(x0) + abs(x1)
                        bounds[y0] = bounds[y1] = 5 * U * max(largest, multiplier) * size + 1e-30
                    first_pair += half
        if "head_dim" not in d:
            d["head_dim"] = head_dim
            d["rotary_dim"] = None if windows else rotary_dim or head_dim
            d["rotary_offset"] = None if windows else offset
        if expected:
            d.setdefault("expected", {})[tensor_name] = case.array(f"expected_{tensor_name}.npy",
                                                                   dtype, shape, result)
        if atol_files:
            allowance[tensor_name] = case.array(f"atol_{tensor_name}.npy", "f32", shape, bounds)
    if windows:
        d["windows"] = windows
    # Inputs are at most 2, so that a pair is at most 4.
    d["tolerance"] = {"atol": 5 * U * 4 * max(multiplier, 1), "rtol": HALF_ULP[dtype]}
    if exact:  # the looser one is for angles in float32
        d["tolerance_exact_angles"] = dict(d["tolerance"])
        d["tolerance"]["atol"] = 1e-3
    if atol_files:
        d["tolerance"]["atol_files"] = allowance
    d.update(extra or {})
    case.close()


def turn(frequency):
    return lambda b, t, position, pair, column: (math.cos(position * frequency(pair)),
                                                 math.sin(position * frequency(pair)))


def at_offset(value):
    return {"kind": "offset", "value": value}, lambda b, t, axis: value + t


def ids_of(axes, shape, values):
    strides = [product(shape[i + 1:]) for i in range(len(shape))]

    def position(b, t, axis):
        index = {"A": axis, "B": b, "S": t, "T": t}
        return values[sum(strides[i] * (index[letter] if shape[i] > 1 else 0)
                          for i, letter in enumerate(axes))]

    return {"kind": "explicit", "file": "positions.npy", "axes": axes}, position


def pair_layouts():
    """Every layout and element type, pairing and direction; windows narrower than the head."""
    make("half_f32_bshd", q={"shape": [2, 3, 4, 8]}, k={"shape": [2, 3, 2, 8]},
         position=at_offset(5), angles=base(10000.0, 8),
         cos_sin=turn(base_angles(10000.0, 8)), exact=True,
         extra={"notes": "free text", "quirk": "free text",
                "live": {"q": "live_q.npy", "max_abs_difference": 0.0}})
    make("interleaved_f16_bhsd_inverse", layout="BHSD", dtype="f16", pairing="interleaved",
         direction="inverse", factor=1.25,
         q={"shape": [2, 3, 4, 12]}, rotary_dim=6, offset=2, position=at_offset(100),
         angles=base(500.0, 6),
         cos_sin=turn(base_angles(500.0, 6)), atol_files=True)
    make("read_interleaved_write_half_bf16_sbhd", layout="SBHD", dtype="bf16",
         pairing="interleaved", pairing_out="half",
         q={"shape": [4, 2, 3, 10]}, k={"shape": [4, 2, 1, 10]}, rotary_dim=8, offset=1,
         position=at_offset(-3),
         angles=base(10000.0, 8), cos_sin=turn(base_angles(10000.0, 8)), atol_files=True)
    make("exponent_dim_wider_than_window", q={"shape": [1, 5, 2, 16]}, rotary_dim=8,
         position=at_offset(1000), angles=base(1e6, 32),
         cos_sin=turn(base_angles(1e6, 32)))
    make("exponent_dim_narrower_than_window", q={"shape": [1, 5, 2, 16]}, position=at_offset(7),
         angles=base(100.0, 10),
         cos_sin=turn(base_angles(100.0, 10)))
    make("flattened_heads", layout="BSE", dtype="f16", q={"shape": [2, 3, 24], "num_heads": 4},
         k={"shape": [2, 2, 3, 6], "layout": "BHSD"}, position=at_offset(2),
         angles=base(10000.0, 6),
         cos_sin=turn(base_angles(10000.0, 6)))
    make("decode_without_sequence_axis", layout="BHD", q={"shape": [3, 4, 8]},
         k={"shape": [3, 8], "layout": "BD"},
         position=({"kind": "per_batch_offset", "file": "offsets.npy"},
                   lambda b, t, axis: [70, 0, 33][b] + t),
         files=[("offsets.npy", "i64", [3], [70, 0, 33])], angles=base(10000.0, 8),
         cos_sin=turn(base_angles(10000.0, 8)))
    make("different_tokens_k_only_views", k={"shape": [1, 2, 2, 4],
                                             "view": {"offset": 3, "strides": [0, 8, 4, 1]},
                                             "parent": [20]},
         q={"shape": [1, 3, 1, 4]}, position=at_offset(9), angles=base(10000.0, 4),
         cos_sin=turn(base_angles(10000.0, 4)))
    odd = float("inf")
    make("infinities_outside_the_window", q={"shape": [1, 2, 1, 6],
                                             "values": [odd, 1.0, 2.0, 1.0, -1.0, -odd] * 2},
         rotary_dim=4,
         offset=1, position=at_offset(1), angles=base(10.0, 4), cos_sin=turn(base_angles(10.0, 4)),
         atol_files=True)
    make("nothing_expected", q={"shape": [1, 2, 2, 4]}, position=at_offset(1), angles=base(10.0, 4),
         cos_sin=turn(base_angles(10.0, 4)),
         expected=False)
    for gain in ("omit", "divide_out"):
        make(f"gain_{gain}", dtype="f32", q={"shape": [1, 3, 2, 4]}, position=at_offset(4),
             angles=base(10.0, 4), direction="inverse",
             factor=1.5, gain=gain, cos_sin=turn(base_angles(10.0, 4)))


def views():
    frequency = base_angles(10000.0, 8)
    make("views_transposed_and_broadcast", dtype="f16",
         q={"shape": [2, 3, 2, 8], "parent": [2, 2, 3, 9],
            "view": {"offset": 1, "strides": [54, 9, 27, 1]}},
         k={"shape": [2, 3, 4, 8], "parent": [2, 3, 8],
            "view": {"offset": 0, "strides": [24, 8, 0, 1]}}, position=at_offset(11),
         angles=base(10000.0, 8), cos_sin=turn(frequency))
    make("view_repeats_the_batch", q={"shape": [3, 2, 2, 8], "parent": [2, 2, 8],
                                      "view": {"offset": 0, "strides": [0, 16, 8, 1]}},
         position=({"kind": "per_batch_offset", "file": "offsets.npy"},
                   lambda b, t, axis: [5, 50, 500][b] + t),
         files=[("offsets.npy", "i32", [3], [5, 50, 500])], angles=base(10000.0, 8),
         cos_sin=turn(frequency))
    make("planes_of_packed_qkv", layout="BSPHD", q={"shape": [2, 3, 3, 2, 8]}, planes=[0, 1],
         position=at_offset(0),
         angles=base(10000.0, 8), cos_sin=turn(frequency), atol_files=True)
    make("planes_beside_the_channels_bf16", layout="SBHPD", dtype="bf16",
         q={"shape": [3, 2, 2, 4, 6]}, planes=[0, 2, 3], rotary_dim=4,
         position=at_offset(3), angles=base(10000.0, 4), cos_sin=turn(base_angles(10000.0, 4)),
         atol_files=True)
    make("planes_of_a_view", layout="TPHD", q={"shape": [4, 2, 2, 4], "parent": [4, 2, 3, 5],
                                               "view": {"offset": 0, "strides": [30, 15, 5, 1]}},
         planes=[1], position=at_offset(3), angles=base(10.0, 4),
         cos_sin=turn(base_angles(10.0, 4)))


def tokens():
    frequency = base_angles(10000.0, 8)
    common = {"angles": base(10000.0, 8), "cos_sin": turn(frequency)}
    one_row = [3, 1, 4, 1, 5]
    for axes, shape, kind, values in (("S", [5], "i64", one_row),
                                      ("BS", [2, 5], "i32", one_row + [9, 2, 6, 5, 35]),
                                      ("BS", [1, 5], "i64", one_row)):
        make(f"ids_{axes}_{kind}_{len(values)}", q={"shape": [2, 5, 2, 8]},
             position=ids_of(axes, shape, values),
             files=[("positions.npy", kind, shape, values)], **common)
    make("ids_T_negative", layout="THD", q={"shape": [5, 2, 8]},
         position=ids_of("T", [5], [-1, 0, -700, 3, 12]),
         files=[("positions.npy", "i64", [5], [-1, 0, -700, 3, 12])], **common)
    cu, offsets = [0, 3, 3, 7], [10, 0, 200]

    def ragged(b, t, axis, start=tuple(offsets)):
        i = next(i for i in range(3) if cu[i] <= t < cu[i + 1])
        return t - cu[i] + start[i]

    resolved = [ragged(0, t, 0) for t in range(7)]
    make("ragged_with_offsets", layout="THD", dtype="f16", q={"shape": [7, 2, 8]},
         k={"shape": [7, 1, 8]},
         position=({"kind": "varlen", "cu_seqlens": "cu_seqlens.npy",
                    "seqlen_offsets": "offsets.npy", "resolved": "resolved.npy"}, ragged),
         files=[("cu_seqlens.npy", "i32", [4], cu), ("offsets.npy", "i32", [3], offsets),
                ("resolved.npy", "i64", [7], resolved)], **common)
    make("ragged_in_the_document", layout="THD", q={"shape": [7, 2, 8]},
         position=({"kind": "varlen", "cu_seqlens": cu, "seqlen_offsets": 4},
                   lambda b, t, axis: ragged(b, t, axis, (4, 4, 4))), **common)

    def chunk(t, length, size, rank):
        """Position of local token t, of `length` local ones: chunk `rank`, then chunk 2 size - 1 -
        rank."""
        width = length // 2
        return rank * width + t if t < width else (2 * size - 1 - rank) * width + t - width

    start = [7, 90]
    make("zig_zag_shard", layout="SBHD", q={"shape": [4, 2, 2, 8]},
         position=({"kind": "context_parallel", "cp_size": 3, "cp_rank": 1,
                    "start_positions": "start.npy"},
                   lambda b, t, axis: start[b] + chunk(t, 4, 3, 1)),
         files=[("start.npy", "i32", [2], start)], **common)
    full = [0, 8, 24]  # of the whole sequences: 4 and 8 tokens of each shard of 2

    def ragged_shard(b, t, axis):
        return chunk(t, 4, 2, 0) if t < 4 else chunk(t - 4, 8, 2, 0)

    make("zig_zag_shard_of_ragged_sequences", layout="THD", q={"shape": [12, 2, 8]},
         position=({"kind": "context_parallel", "cp_size": 2, "cp_rank": 0, "start_positions": None,
                    "cu_seqlens": "cu_seqlens.npy",
                    "resolved": "resolved.npy"}, ragged_shard),
         files=[("cu_seqlens.npy", "i32", [3], full), ("resolved.npy", "i32", [12],
                                                       [ragged_shard(0, t, 0) for t in range(12)])],
         **common)
    # One rank has nothing to cut: lengths of 3 and 4.
    make("one_shard_of_odd_ragged_sequences", layout="THD", q={"shape": [7, 2, 8]},
         position=({"kind": "context_parallel", "cp_size": 1, "cp_rank": 0,
                    "cu_seqlens": [0, 3, 7]}, lambda b, t, axis: t if t < 3 else t - 3), **common)


def axes():
    ids = [t * 3 + a * 50 + b * 7 for a in range(3) for b in range(2) for t in range(4)]
    abs_ids, files = ids_of("ABS", [3, 2, 4], ids), [("positions.npy", "i64", [3, 2, 4], ids)]
    for name, sections in (("sequential", {"mode": "sequential", "sizes": [2, 3, 3],
                                           "leftover_axis": 0}),
                           ("interleaved", {"mode": "interleaved", "sizes": [4, 2, 2],
                                            "leftover_axis": 0}),
                           ("repeated", {"mode": "sequential", "sizes": [1, 1, 1]})):
        make(f"sections_{name}", q={"shape": [2, 4, 2, 16]}, k={"shape": [2, 4, 1, 16]},
             position=abs_ids, files=files,
             sections=sections, angles=base(10000.0, 16), cos_sin=turn(base_angles(10000.0, 16)))
    four = [a * 11 + t for a in range(4) for t in range(3)]
    make("sections_interleaved_leftover_axis_3", layout="THD", dtype="f16", q={"shape": [3, 2, 16]},
         position=ids_of("AT", [4, 3], four),
         files=[("positions.npy", "i32", [4, 3], four)],
         sections={"mode": "interleaved", "sizes": [2, 1, 1, 4], "leftover_axis": 3},
         angles=base(10000.0, 16), cos_sin=turn(base_angles(10000.0, 16)))
    two = [t // 2 for t in range(4)] + [t % 2 for t in range(4)]
    make("sections_independent", layout="BHSD", q={"shape": [2, 2, 4, 16]},
         position=ids_of("AS", [2, 4], two),
         files=[("positions.npy", "i64", [2, 4], two)],
         sections={"mode": "independent", "sizes": [4, 4], "leftover_axis": 0},
         angles=base(10000.0, 8), cos_sin=turn(base_angles(10000.0, 8, [0, 1, 2, 3] * 2)))
    sections_of_ggml = {"mode": "independent", "sizes": [4, 4, 0, 0], "leftover_axis": 0}
    divisors, grid = [1.0, 2.0, 1.5, 4.0, 3.0, 1.25, 8.0, 1.0], two + [0] * 8
    spacing = base_angles(10000.0, 8, [0, 1, 2, 3] * 2)
    make("sections_independent_with_divisors_of_pairs", q={"shape": [1, 4, 2, 16]},
         position=ids_of("AS", [4, 4], grid),
         files=[("positions.npy", "i32", [4, 4], grid), ("freq_factors.npy", "f32", [8], divisors)],
         sections=sections_of_ggml,
         angles=base(10000.0, 8, {"type": "ggml", "freq_scale": 0.5, "ext_factor": 0.0,
                                  "freq_factors": "freq_factors.npy"}),
         cos_sin=turn(lambda pair: spacing(pair) / divisors[pair] * 0.5))
    for name, order in (("in_order", (0, 1)), ("crossed", (1, 0)), ("of_one_axis", (1, 1))):
        windows = [{"offset": 6 * i, "rotary_dim": 6, "axis": axis} for i, axis in enumerate(order)]
        make(f"windows_{name}", q={"shape": [1, 4, 2, 14]}, position=ids_of("AS", [2, 4], two),
             files=[("positions.npy", "i64", [2, 4], two)],
             windows=windows, angles=base(100.0, 6), cos_sin=turn(base_angles(100.0, 6)),
             pairing_out="interleaved")
    windows = [{"offset": 4 * i, "rotary_dim": 4, "axis": 0} for i in range(5)]
    make("windows_more_than_one_kernel_takes", q={"shape": [1, 4, 2, 22]},
         position=ids_of("AS", [2, 4], two),
         files=[("positions.npy", "i64", [2, 4], two)], windows=windows, angles=base(100.0, 4),
         cos_sin=turn(base_angles(100.0, 4)),
         pairing_out="interleaved")


def tables():
    rows, width = 6, 3
    cos, sin = inputs(rows * width, 77), inputs(rows * width, 78)

    def indexed(b, t, position, pair, column):
        return cos[position * width + column], sin[position * width + column]

    cache = {"kind": "cache", "cos": "cos.npy", "sin": "sin.npy", "rows": "indexed",
             "width": "half"}
    for kind in ("f32", "f16", "bf16"):
        make(f"table_{kind}", dtype="f16", q={"shape": [2, 3, 2, 8]}, rotary_dim=6,
             position=at_offset(2), angles=cache, cos_sin=indexed,
             files=[("cos.npy", kind, [rows, width], cos), ("sin.npy", kind, [rows, width], sin)],
             factor=2.0, largest_factor=2.0)
    full_cos = [v for r in range(rows) for v in cos[r * 3:r * 3 + 3] * 2]
    full_sin = [v for r in range(rows) for v in sin[r * 3:r * 3 + 3] * 2]
    make("table_for_each_token_of_full_width", dtype="bf16", layout="BHSD",
         q={"shape": [2, 2, 3, 6]},
         position=({"kind": "none"}, lambda b, t, axis: b * 3 + t), cos_sin=indexed,
         angles=dict(cache, rows="direct", width="full_first_half"),
         files=[("cos.npy", "f32", [2, 3, 6], full_cos), ("sin.npy", "f32", [2, 3, 6], full_sin)])
    # Two rows after another are one with columns for six channels.
    for name, pairing, direction in (("half_split", "half", "forward"),
                                     ("interleaved_inverse", "interleaved", "inverse")):
        make(f"table_of_channels_{name}", dtype="f16" if pairing == "half" else "f32",
             q={"shape": [1, 2, 2, 8]}, k={"shape": [1, 2, 1, 8]}, rotary_dim=6, offset=2,
             pairing=pairing, direction=direction, position=at_offset(1),
             angles=dict(cache, width="full"), factor=0.5,
             cos_sin=lambda b, t, position, pair, column: (cos[position * 6 + column],
                                                           sin[position * 6 + column]),
             files=[("cos.npy", "f32", [3, 6], cos), ("sin.npy", "f32", [3, 6], sin)])
    make("table_for_each_token_of_all_sequences", layout="BSHD", q={"shape": [2, 6, 2, 6]},
         pairing="interleaved",
         position=({"kind": "none"}, lambda b, t, axis: t), cos_sin=indexed,
         angles=dict(cache, rows="direct"), gain="divide_out",
         factor=4.0, files=[("cos.npy", "f16", [6, 3], cos), ("sin.npy", "f16", [6, 3], sin)])
    make("table_for_each_packed_token", layout="THD", q={"shape": [6, 2, 6]},
         position=({"kind": "none"}, lambda b, t, axis: t),
         cos_sin=indexed, angles=dict(cache, rows="direct"), factor=0.5,
         files=[("cos.npy", "f32", [6, 3], cos), ("sin.npy", "f32", [6, 3], sin)])
    make("table_for_k_alone_bf16_inverse", dtype="bf16", k={"shape": [2, 3, 2, 10]}, rotary_dim=6,
         offset=3, direction="inverse",
         position=at_offset(1), angles=cache, cos_sin=indexed, factor=0.75, atol_files=True,
         files=[("cos.npy", "bf16", [rows, width], cos), ("sin.npy", "bf16", [rows, width], sin)])
    two_axes = [0, 1, 2, 5, 4, 3]
    make("table_with_windows", dtype="f16", q={"shape": [1, 3, 2, 8]},
         position=ids_of("AS", [2, 3], two_axes), angles=cache,
         windows=[{"offset": 0, "rotary_dim": 4, "axis": 0},
                  {"offset": 5, "rotary_dim": 2, "axis": 1}], cos_sin=indexed,
         files=[("positions.npy", "i32", [2, 3], two_axes), ("cos.npy", "f32", [rows, width], cos),
                ("sin.npy", "f32", [rows, width], sin)])
    ids = [0, 1, 2, 3, 4, 5, 5, 4, 3]
    make("table_with_sections", q={"shape": [1, 3, 2, 6]}, position=ids_of("ABS", [3, 1, 3], ids),
         cos_sin=indexed, angles=cache,
         sections={"mode": "sequential", "sizes": [1, 1, 1], "leftover_axis": 0},
         files=[("positions.npy", "i64", [3, 1, 3], ids), ("cos.npy", "f32", [rows, width], cos),
                ("sin.npy", "f32", [rows, width], sin)])


def scalings():
    """The formulas as the papers and the reference implementations state them, for 16 channels and
    base 10000."""
    n, b = 16, 10000.0
    plain = [b ** (-2.0 * j / n) for j in range(n // 2)]

    def turns(j, length):
        return length * plain[j] / (2 * math.pi)

    def pair_with(turns_, length):
        return n * math.log(length / (turns_ * 2 * math.pi)) / (2 * math.log(b))

    def yarn(factor, length, fast, slow, truncate):
        low, high = pair_with(fast, length), pair_with(slow, length)
        if truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, n - 1)
        ramp = [min(max((j - low) / (high - low), 0), 1) for j in range(n // 2)]
        return [f / factor * r + f * (1 - r) for f, r in zip(plain, ramp)]

    def llama3(factor, low, high, length):
        scaled = []
        for j, f in enumerate(plain):
            wave = turns(j, length)  # original length in wavelengths
            smooth = (wave - low) / (high - low)
            scaled.append(f / factor if wave < low else f if wave > high
                          else (1 - smooth) * f / factor + smooth * f)
        return scaled

    def dynamic(factor, trained, length):
        return [(b * (factor * length / trained - (factor - 1)) ** (n / (n - 2))) ** (-2.0 * j / n)
                for j in range(n // 2)]

    divisors = [1.0 + j for j in range(n // 2)]
    attention = 0.1 * math.log(4) + 1
    cases = {
        "linear": ({"type": "linear", "factor": 4.0}, [f / 4 for f in plain], 1.0, None),
        "dynamic": ({"type": "dynamic", "factor": 2.0, "max_position_embeddings": 64,
                     "seq_len": 256}, dynamic(2.0, 64, 256), 1.0, None),
        "yarn": ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096,
                  "beta_fast": 32.0, "beta_slow": 1.0,
                  "truncate": True}, yarn(4.0, 4096, 32.0, 1.0, True), attention, None),
        "yarn_not_truncated": ({"type": "yarn", "factor": 4.0,
                                "original_max_position_embeddings": 4096, "beta_fast": 32.0,
                                "beta_slow": 1.0, "truncate": False},
                               yarn(4.0, 4096, 32.0, 1.0, False), attention, None),
        "longrope": ({"type": "longrope", "factors": divisors},
                     [f / d for f, d in zip(plain, divisors)], 1.125, None),
        "llama3": ({"type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                    "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 512}, llama3(8.0, 1.0, 4.0, 512), 1.0,
                   None),
        "proportional": ({"type": "proportional", "factor": 2.0, "partial_rotary_factor": 0.25},
                         [f / 2 if j < 2 else 0.0 for j, f in enumerate(plain)], 1.0, None),
        "ggml_linear_with_divisors": ({"type": "ggml", "freq_scale": 0.25, "ext_factor": 0.0,
                                       "beta_fast": 32.0, "beta_slow": 1.0,
                                       "n_ctx_orig": 4096, "freq_factors": "freq_factors.npy"},
                                      [f / d * 0.25 for f, d in zip(plain, divisors)], 1.0, None),
        "ggml_yarn": ({"type": "ggml", "freq_scale": 0.25, "ext_factor": 1.0, "beta_fast": 32.0,
                       "beta_slow": 1.0, "n_ctx_orig": 4096,
                       "freq_factors": None}, yarn(4.0, 4096, 32.0, 1.0, True), 1.0, attention),
        "te_interpolation": ({"type": "te_interp", "seq_scale": 0.125}, [f * 0.125 for f in plain],
                             1.0, None),
    }
    for name, (scaling, frequencies, factor, result) in cases.items():
        files = [("freq_factors.npy", "f32", [8], divisors)] if scaling.get("freq_factors") else []
        make(f"scaling_{name}", q={"shape": [1, 5, 2, n]}, position=at_offset(300),
             angles=base(b, n, scaling),
             cos_sin=turn(lambda pair, f=frequencies: f[pair]), factor=factor,
             largest_factor=result, files=files, exact=True)


def write_all(folder):
    """Writes all cases, also those of the other keys, into an empty folder."""
    Case.root = folder
    pair_layouts()
    views()
    tokens()
    axes()
    tables()
    scalings()
    own_finish_cases.write()
    own_store_cases.write()
