# SPDX-License-Identifier: MIT
"""Writes the cases "finish_...": the keys that "rope-case/2" adds, with expected values from the
definition in double. Nothing here comes from the library."""
import itertools
import math

from case_files import HALF_ULP, U, Case, base, bf16_bits, inputs, product
from store_codes import BLOCK_BYTES, LARGEST, hadamard, row_bytes, stored_row

BASE = 10000.0


def widened_bf16(value):
    """The value that is stored for `value` as bf16: parameters must be what the file holds."""
    bits = bf16_bits(value) << 16
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    return (-1) ** sign * (1 + fraction / 2**23) * 2.0 ** (exponent - 127) if bits else 0.0


def parameter(shape, seed):
    """Multiples of 1/16 in (0, 2], which every element type holds."""
    return [abs(value) / 2 + 1 / 16 for value in inputs(product(shape), seed)]


def normed(rows, norm, weight, norm_bias, sizes):
    """Normalises [heads][head_dim] of one token in place. Adds sizes that bound its errors."""
    span = [rows] if norm["span"] == "token" else [[row] for row in rows]
    head_dim = len(rows[0])
    for index, group in enumerate(span):
        values = [x for row in group for x in row]
        mean = math.fsum(values) / len(values) if norm["kind"] == "layer" else 0.0
        root = 1 / math.sqrt(math.fsum((x - mean) ** 2 for x in values) / len(values) + norm["eps"])
        for row_index, row in enumerate(group):
            head = row_index if norm["span"] == "token" else index
            for c, x in enumerate(row):
                place = head * head_dim + c
                w = weight[place % len(weight)] + norm["weight_offset"] if weight else 1.0
                sizes.append((abs(x) + abs(mean)) * root * abs(w))
                added = norm_bias[place % len(norm_bias)] if norm_bias else 0
                row[c] = (x - mean) * root * w + added


def steps_of(token, tensor, positions, window):
    """Takes all steps of one token, [heads][head_dim]. Returns the largest size on the way."""
    rows, sizes = token, []
    if "bias" in tensor:
        for head, row in enumerate(rows):
            for c in range(len(row)):
                row[c] += tensor["bias"][1][(head * len(row) + c) % len(tensor["bias"][1])]
    sizes += [abs(x) for row in rows for x in row] if "norm" not in tensor else []
    norm = tensor.get("norm")
    weight, norm_bias = tensor.get("weight", [0, None])[1], tensor.get("norm_bias", [0, None])[1]
    if norm and norm["place"] == "before":
        normed(rows, norm, weight, norm_bias, sizes)
    if window["clip"]:
        rows[:] = [[min(max(x, -window["clip"]), window["clip"]) for x in row] for row in rows]
    if tensor["name"] != "v":
        half, offset = window["rotary_dim"] // 2, window["rotary_offset"]
        for row in rows:
            before = list(row)
            for j in range(half):
                angle = positions * BASE ** (-2.0 * j / window["rotary_dim"])
                a, b = offset + 2 * j, offset + 2 * j + 1
                if window["pairing"] == "half":
                    a, b = offset + j, offset + j + half
                row[a] = before[a] * math.cos(angle) - before[b] * math.sin(angle)
                row[b] = before[a] * math.sin(angle) + before[b] * math.cos(angle)
                sizes.append(abs(before[a]) + abs(before[b]))
    if norm and norm["place"] == "after":
        normed(rows, norm, weight, norm_bias, sizes)
    sizes += [abs(x) for row in rows for x in row]
    return max(sizes)


def bytes_like(count, seed):
    """Bytes of a cache before the call."""
    return [int(8 * value) & 0xFF for value in inputs(count, seed)]


def described_scale(case, which, scale):
    """A store_scale as the document has it: a list of scales, one for each head, is a file."""
    if isinstance(scale.get("given"), list):
        return {"given": case.array(f"store_scale_{which}.npy", "f32", [len(scale["given"])],
                                    scale["given"])}
    return scale


def scale_of_head(scale, head):
    if scale and isinstance(scale.get("given"), list):
        return {"given": scale["given"][head]}
    return scale


def make(name, tensors, *, layout="BSHD", dtype="f32", pairing="half", rotary_dim=None,
         rotary_offset=0, clip=None,
         positions=("offset", 3), files=(), prefix="finish_", off_by_one=None):
    """tensors: name -> shape and steps. Each parameter is [shape, values] or [shape, values,
    kind]."""
    case = Case(prefix + name)
    d = case.document
    d["schema"] = "rope-case/2"
    first = next(iter(tensors.values()))
    head_dim = first["shape"][-1]
    rotary_dim = rotary_dim or head_dim
    d.update(pairing=pairing, direction="forward", dtype=dtype, layout=layout, head_dim=head_dim,
             rotary_dim=rotary_dim,
             rotary_offset=rotary_offset, tensors={}, expected={}, angles=base(BASE, rotary_dim),
             attention_factor=1.0)
    if positions[0] == "offset":
        d["positions"] = {"kind": "offset", "value": positions[1]}
    else:
        axes, shape, values = positions[1:]
        d["positions"] = {"kind": "explicit", "axes": axes,
                          "file": case.array("positions.npy", "i64", shape, values)}
    if clip:
        d["clip"] = clip
    for file in files:
        case.array(*file)
    largest, scale_kinds = 0.0, {}
    for which, tensor in tensors.items():
        tensor["name"] = which
        shape = tensor["shape"]
        parent_shape = tensor.get("parent", shape)
        file = tensor.get("file", f"{which}.npy")
        parent = inputs(product(parent_shape), len(name) + ord(file[0]))
        d["tensors"][which] = {"file": case.array(file, dtype, parent_shape, parent),
                               "shape": shape}
        strides = [product(shape[i + 1:]) for i in range(len(shape))]
        view = tensor.get("view", {"offset": 0, "strides": strides})
        if "view" in tensor:
            d["tensors"][which]["view"] = view
        for key, into in (("bias", "bias"), ("weight", None), ("norm_bias", None)):
            if key in tensor:
                kind = tensor[key][2] if len(tensor[key]) > 2 else dtype
                tensor[key + "_file"] = case.array(f"{key}_{which}.npy", kind, tensor[key][0],
                                                   tensor[key][1])
                if into:
                    d.setdefault(into, {})[which] = tensor[key + "_file"]
        if "norm" in tensor:
            norm = dict(tensor["norm"], weight=tensor.get("weight_file"),
                        bias=tensor.get("norm_bias_file"))
            if "weight" in tensor and len(tensor["weight"]) > 2:
                norm["weight_dtype"] = tensor["weight"][2]
            d.setdefault("norm", {})[which] = norm
        for key in ("scale", "out", "hadamard"):
            if key in tensor:
                d.setdefault({"out": "out_dtype"}.get(key, key), {})[which] = tensor[key]
        store_scale = tensor.get("store_scale")
        if store_scale:
            d.setdefault("store_scale", {})[which] = described_scale(case, which, store_scale)
        if "scale_tokens" in tensor:
            scale_file = case.array(f"scale_tokens_{which}.npy", "f32", *tensor["scale_tokens"])
            d.setdefault("scale_tokens", {})[which] = scale_file
        out = tensor.get("out", dtype)
        quantised = out in LARGEST or out in BLOCK_BYTES
        last = row_bytes(out, shape[-1]) if quantised else shape[-1]
        kind = "u8" if quantised else out
        cache = tensor.get("cache")
        out_shape = shape[:-1] + [last]
        if cache:
            out_shape = [last if letter == "D" else length
                         for letter, length in zip(cache["layout"], cache["shape"])]
            initial = (bytes_like if quantised else inputs)(product(out_shape), 99)
            result = list(initial)
            d.setdefault("cache", {})[which] = {
                "slots": cache["slots_file"], "shape": out_shape, "layout": cache["layout"],
                "page_size": cache["page_size"], "initial": case.array(f"{which}_cache.npy", kind,
                                                                       out_shape, initial)}
        else:
            result = [0] * product(out_shape)
        made = []
        heads = shape[layout.index("H")]
        tokens = [1, shape[0]]
        if "S" in layout:
            tokens = [shape[layout.index(letter)] if letter in layout else 1 for letter in "BS"]
        for b, t in itertools.product(*map(range, tokens)):
            at = {"B": b, "S": t, "T": t}

            def index_of(head, steps, origin=0):
                index = dict(at, H=head, D=0)
                return origin + sum(s * index[letter] for letter, s in zip(layout, steps))

            token = [[parent[index_of(head, view["strides"], view["offset"]) + c]
                      for c in range(shape[-1])] for head in range(heads)]
            place = b * tokens[1] + t
            if positions[0] == "offset":
                position = positions[1] + t
            else:
                position = positions[3][place % len(positions[3])]
            size = steps_of(token, tensor, position, {"clip": clip, "rotary_dim": rotary_dim,
                                                      "rotary_offset": rotary_offset,
                                                      "pairing": pairing})
            scales = tensor.get("scale_tokens", [0, [1.0]])[1]
            factor = tensor.get("scale", 1.0) * scales[place % len(scales)]
            blocks = tensor.get("hadamard", 1)
            largest = max(largest, size, size * abs(factor) * math.sqrt(blocks))
            for head, row in enumerate(token):
                row = [x * factor for x in row]
                row = hadamard(row, blocks) if blocks > 1 else row
                if quantised:
                    row, scale = stored_row(out, row, scale_of_head(store_scale, head))
                    no_slot = cache and cache["slots"][place % len(cache["slots"])] < 0
                    made.append(math.nan if no_slot or scale is None else scale)
                if cache:
                    slot = cache["slots"][place % len(cache["slots"])]
                    if slot < 0:
                        continue
                    where = {"N": slot // cache["page_size"], "P": slot % cache["page_size"],
                             "H": head, "D": 0}
                    first_channel = 0
                    for letter, length in zip(cache["layout"], out_shape):
                        first_channel = first_channel * length + where[letter]
                else:
                    first_channel = index_of(head, strides) // shape[-1] * last
                result[first_channel:first_channel + len(row)] = row
        d["expected"][which] = case.array(f"expected_{which}.npy", kind, out_shape, result)
        if store_scale and "made" in store_scale:
            scales_shape = (tokens if "B" in layout else tokens[1:]) + [heads]
            case.array(f"expected_{which}_scales.npy", "f32", scales_shape, made)
            scale_kinds[which] = scales_shape, LARGEST[out]
    kinds = [tensor.get("out", dtype) for tensor in tensors.values()]
    # A norm over up to 64 channels, a rotation and three products: below 30 u of the largest size.
    # A Hadamard transform of up to 64 channels adds 8 u.
    atol = (38 if "hadamard" in d else 30) * U * largest
    d["tolerance"] = {"atol": atol, "rtol": max(HALF_ULP.get(kind, 0.0) for kind in kinds)}
    if off_by_one is not None:
        d["tolerance"]["codes"] = {"off_by_one": off_by_one}
    for which, (scales_shape, most) in scale_kinds.items():
        scale_file = case.array(f"atol_{which}_scales.npy", "f32", scales_shape,
                                [atol / most] * product(scales_shape))
        d["tolerance"].setdefault("atol_files", {})[which + "_scales"] = scale_file
    case.close()


def rms(place="before", span="head", eps=1e-6, offset=0):
    return {"kind": "rms", "span": span, "place": place, "eps": eps, "weight_offset": offset}


def layer(eps=1e-5):
    return {"kind": "layer", "span": "head", "place": "before", "eps": eps, "weight_offset": 0}


def norms():
    make("rms_of_heads_partial", {
        "q": {"shape": [2, 3, 4, 10], "norm": rms(), "weight": [[10], parameter([10], 1)]},
        "k": {"shape": [2, 3, 2, 10], "norm": rms(eps=1e-3),
              "weight": [[2, 10], parameter([20], 2)]}}, rotary_dim=6, rotary_offset=2)
    make("rms_of_tokens_clipped", {
        "q": {"shape": [1, 4, 3, 8], "norm": rms(span="token", eps=1e-5),
              "weight": [[24], parameter([24], 3)]},
        "k": {"shape": [1, 4, 2, 8], "norm": rms(span="token", eps=1e-5),
              "weight": [[16], parameter([16], 4)]},
        "v": {"shape": [1, 4, 2, 8]}}, clip=1.125)
    one_and = [[12], [widened_bf16(w) for w in parameter([12], 5)], "bf16"]
    make("rms_after_one_plus_weight_bf16", {
        "q": {"shape": [5, 2, 12], "norm": rms("after", offset=1), "weight": one_and},
        "k": {"shape": [5, 1, 12], "norm": rms("after", offset=1), "weight": one_and}},
         layout="THD", dtype="bf16",
        pairing="interleaved", positions=("explicit", "T", [5], [0, 7, 100, 3, 2000]))
    make("layer_norm_with_bias", {
        "q": {"shape": [1, 3, 2, 16], "norm": layer(), "weight": [[2, 16], parameter([32], 6)],
              "norm_bias": [[2, 16], inputs(32, 7)]},
        "k": {"shape": [1, 3, 1, 16], "norm": layer(), "weight": [[16], parameter([16], 8)]}})
    make("norm_of_v_f16", {
        "q": {"shape": [2, 2, 3, 8], "norm": rms()}, "k": {"shape": [2, 1, 3, 8], "norm": rms()},
        "v": {"shape": [2, 1, 3, 8], "norm": rms()}}, layout="BHSD", dtype="f16")
    make("v_alone", {"v": {"shape": [1, 4, 2, 6], "norm": rms(), "weight": [[6], parameter([6], 9)],
                           "scale": 0.5}}, rotary_dim=4)


def factors():
    make("bias_and_scales", {
        "q": {"shape": [2, 3, 2, 8], "bias": [[2, 8], inputs(16, 10)], "scale": 0.125,
              "scale_tokens": [[2, 3], [1.0, 1.5, 2.0, 0.5, 3.0, 1.25]]},
        "k": {"shape": [2, 3, 1, 8], "bias": [[8], inputs(8, 11)]},
        "v": {"shape": [2, 3, 1, 8], "bias": [[8], inputs(8, 12)]}})
    make("other_types_from_one_buffer", {
        name: {"shape": [3, heads, 8], "file": "qkv.npy", "parent": [3, 32], "out": "f16",
               "view": {"offset": offset, "strides": [32, 8, 1]}}
        for name, heads, offset in (("q", 2, 0), ("k", 1, 16), ("v", 1, 24))}, layout="THD")


def caches():
    slots = [5, -1, 0, 3]
    file = [("slots.npy", "i64", [4], slots)]
    pages = {"slots": slots, "slots_file": "slots.npy", "page_size": 2}
    for layout, shape in (("NPHD", [3, 2, 2, 8]), ("NHPD", [3, 2, 2, 8])):
        make("pages_" + layout.lower(), {
            "q": {"shape": [4, 2, 8], "norm": rms(), "weight": [[8], parameter([8], 13)]},
            "k": {"shape": [4, 2, 8], "norm": rms(), "out": "f16",
                  "cache": dict(pages, shape=shape, layout=layout)},
            "v": {"shape": [4, 2, 8], "out": "f16", "cache": dict(pages, shape=shape,
                                                                  layout=layout)}}, layout="THD",
             files=file)
    make("pages_of_v_alone", {
        "k": {"shape": [4, 2, 8], "scale": 2.0},
        "v": {"shape": [4, 1, 8], "cache": dict(pages, shape=[3, 2, 1, 8], layout="NPHD")}},
         layout="THD", files=file)


def write():
    norms()
    factors()
    caches()
