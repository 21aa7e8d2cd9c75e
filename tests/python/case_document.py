# SPDX-License-Identifier: MIT
"""The format of case.json, "rope-case/1" and "rope-case/2", and its files, which are untrusted: a
value of the wrong kind is an error, and a key that the format does not have is unsupported."""

import json
import os
import re
import sys
from types import SimpleNamespace

import numpy as np

DTYPES = {"f32": "<f4", "f16": "<f2", "bf16": "<u2"}
# Channels and bytes of a block of each quantised type.
BLOCKS = {"e4m3fn": (1, 1), "e5m2": (1, 1), "int8": (1, 1), "q8_0": (32, 34), "q4_0": (32, 18),
          "q4_1": (32, 20), "q5_0": (32, 22), "q5_1": (32, 24)}
PAIRINGS = {"half": "half_split", "interleaved": "interleaved"}


class Refusal(Exception):
    """Ends a case before it has a result; `code` is the exit code for an error."""

    def __init__(self, status, reason, code=0):
        super().__init__(reason)
        self.status, self.code = status, code


def wrong(reason):
    raise Refusal("error", reason, 5)


def unsupported(reason):
    raise Refusal("unsupported", reason)


def printable(text):
    cut = text if len(text) <= 40 else text[:40] + "..."
    return "".join(c if " " <= c <= "~" else "?" for c in cut)


def shown(value):
    containers = {dict: "an object", list: "an array"}
    return containers.get(type(value)) or printable(json.dumps(value))


# Readers get a value, or None if the key is absent or null, and its name. They return the value.


def reader(accepts, rule):
    def read(value, name):
        if value is not None and not accepts(value):
            wrong(f"{name} is {shown(value)}: it must be {rule}")
        return value
    return read


def integer(low, high, rule="", accepts=lambda value: True):
    return reader(lambda value: type(value) is int and low <= value <= high and accepts(value),
                  rule or f"an integer from {low} to {high}")


def number_from(low, high=sys.float_info.max, rule="a finite number"):
    return reader(lambda value: type(value) in (int, float) and low <= value <= high, rule)


text = reader(lambda value: isinstance(value, str), "a string")
truth = reader(lambda value: isinstance(value, bool), "true or false")
number = number_from(-sys.float_info.max)
at_least_0 = number_from(0, rule="a number of at least 0")
path = reader(lambda value: (
    isinstance(value, str) and len(value) <= 512 and re.fullmatch(r"[ -\[\]-~]+", value)
    and not {"", ".", ".."} & set(value.split("/"))),
    "a relative path of 1 to 512 printable ASCII characters, without '.', '..' and a backslash")
channels, axis, steps = integer(0, 65534), integer(0, 255), integer(0, 1 << 31)
any_integer, position = integer(-(1 << 63), (1 << 63) - 1), integer(-(1 << 53), 1 << 53)
power_of_two = integer(1, 1 << 31, "a power of two", lambda value: value & (value - 1) == 0)


def need(read, default=None):
    """A value that must be there, unless there is a default."""
    def read_needed(value, name):
        if value is None and default is None:
            wrong(f"{name} is missing")
        return default if value is None else read(value, name)
    return read_needed


def many(read, most=None):
    def read_all(value, name):
        if value is not None and not isinstance(value, list):
            wrong(f"{name} is {shown(value)}: it must be an array")
        if most and value and len(value) > most:
            unsupported(f"{name} has {len(value)} entries, more than {most}")
        return value and [need(read)(entry, f"{name}[{i}]") for i, entry in enumerate(value)]
    return read_all


def either(kind, read, read_other):
    """One reader for values of a type of Python, and another for the rest."""
    return lambda value, name: (read if isinstance(value, kind) else read_other)(value, name)


def word(words):
    def read(value, name):
        if text(value, name) is not None and value not in words:
            unsupported(f"{name} '{printable(value)}'")
        return words[value] if value and isinstance(words, dict) else value
    return read


class Struct(SimpleNamespace):
    """An object of the document; an absent field is None."""

    def __getattr__(self, name):
        return None


def struct(**readers):
    def read(value, name):
        if value is None:
            return None
        if not isinstance(value, dict):
            wrong(f"{name} is {shown(value)}: it must be an object")
        prefix = "" if name == "document" else f"{name}."
        for key in sorted(value.keys() - readers.keys()):
            unsupported(f"unknown key {prefix}{printable(key)}")
        return Struct(**{key: of(value.get(key), prefix + key) for key, of in readers.items()})
    return read


def variant(key, kinds, **common):
    """Reads an object whose other keys depend on one key."""
    def read(value, name):
        if not isinstance(value, dict):
            return struct()(value, name)
        need(word(kinds))(value.get(key), f"{name}.{key}")
        return struct(**{key: text}, **kinds[value[key]], **common)(value, name)
    return read


def each(read, names="qkv", more=()):
    return struct(**dict.fromkeys([*names, *more], read))


integers = either(str, path, many(any_integer))
TENSOR = struct(file=need(path), shape=need(many(steps)), layout=text,
                num_heads=integer(1, 1 << 31),
                view=struct(offset=need(any_integer, 0), strides=need(many(any_integer))))
WINDOW = struct(offset=need(channels), rotary_dim=need(channels), axis=need(axis, 0))
POSITIONS = variant("kind", {
    "none": {}, "offset": {"value": need(position)}, "per_batch_offset": {"file": need(integers)},
    "explicit": {"file": need(integers), "axes": need(text)},
    "varlen": {"cu_seqlens": need(integers),
               "seqlen_offsets": either((int, float), position, integers)},
    "context_parallel": {"cp_size": need(integer(1, 1 << 20)), "cp_rank": need(steps),
                         "start_positions": integers, "cu_seqlens": integers},
}, resolved=path)
BETAS = {"beta_fast": need(number, 32), "beta_slow": need(number, 1)}
LENGTH = {"original_max_position_embeddings": need(number)}
SCALING = variant("type", {
    "default": {}, "none": {}, "linear": {"factor": need(number)},
    "dynamic": {"factor": need(number), "max_position_embeddings": need(number),
                "seq_len": need(number_from(0, 2**53, "a number from 0 to 2^53"), 0)},
    "yarn": {"factor": need(number), **LENGTH, **BETAS, "truncate": need(truth, True)},
    "longrope": {"factors": need(many(number))},
    "llama3": {"factor": need(number), "low_freq_factor": need(number),
               "high_freq_factor": need(number), **LENGTH},
    "proportional": {"factor": need(number, 1), "partial_rotary_factor": need(number)},
    "ggml": {"freq_scale": need(number), "ext_factor": need(number, 0), **BETAS,
             "n_ctx_orig": need(number, 0), "freq_factors": path},
    "te_interp": {"seq_scale": need(number)},
})
ANGLES = variant("kind", {
    "base": {"base": need(number), "exponent_dim": integer(1, 1 << 31), "scaling": SCALING},
    "cache": {"cos": need(path), "sin": need(path), "rows": need(word(["indexed", "direct"])),
              "width": need(word(["half", "full_first_half", "full"])), "dtype": word(DTYPES)},
})
ATOL_FILES = each(path, more=["q_scales", "k_scales", "v_scales"])
TOLERANCE = struct(atol=at_least_0, rtol=need(at_least_0, 0), atol_files=ATOL_FILES,
                   codes=struct(off_by_one=need(number_from(0, 1, "a share, 0 to 1"))))
FIELDS = dict(
    schema=need(word(["rope-case/1", "rope-case/2"])), id=need(path),
    pairing=need(word(PAIRINGS)), pairing_out=word(PAIRINGS),
    direction=need(word(["forward", "inverse"])),
    gain=need(word(["apply", "omit", "divide_out"]), "apply"), dtype=need(word([*DTYPES])),
    head_dim=integer(1, 65534), layout=text, num_heads=integer(1, 1 << 31), tensors=need(each(
        TENSOR, "qk")), expected=need(each(path, "qk"), Struct()), rotary_dim=channels,
    rotary_offset=channels, windows=many(WINDOW, 64),
    planes_rotated=need(many(steps, 256), []), positions=need(POSITIONS), angles=need(ANGLES),
    attention_factor=need(number, 1),
    sections=struct(sizes=need(many(channels, 256)), leftover_axis=need(axis, 0),
                    mode=need(word(["sequential", "interleaved", "independent"]))),
    tolerance=TOLERANCE, tolerance_exact_angles=TOLERANCE, atol_files=ATOL_FILES,
    **dict.fromkeys(["source", "notes", "live"], lambda value, name: None),
    quirk=lambda value, name: value if isinstance(value, str) else "")
NORM = struct(kind=need(word(["none", "rms", "layer"])), span=need(word(["head", "token"])),
              place=need(word(["before", "after"])), eps=need(number), weight=path, bias=path,
              weight_dtype=word(DTYPES), weight_offset=need(integer(0, 1), 0))
STORE_SCALE = struct(given=either(str, path, number), made=word(["row"]), floor=at_least_0,
                     power_of_two=truth)
CACHE = struct(slots=need(integers), shape=need(many(steps)), layout=need(text),
               page_size=need(integer(1, 1 << 31)), initial=need(path))
FIELDS_2 = dict(
    tensors=need(each(TENSOR)), expected=need(each(path), Struct()),
    clip=number_from(5e-324, rule="a number above 0"), hadamard=each(power_of_two),
    out_dtype=each(word([*DTYPES, *BLOCKS])), store_scale=each(STORE_SCALE), bias=each(path),
    norm=each(NORM), scale=each(number), scale_tokens=each(path), cache=each(CACHE, "kv"))


def describe(document):
    """Reads the whole document, and checks what its fields say together; arrays are read later."""
    has_steps = isinstance(document, dict) and document.get("schema") == "rope-case/2"
    case = need(struct(**FIELDS | (FIELDS_2 if has_steps else {})))(document, "document")
    case.has_steps, case.expected = has_steps, vars(case.expected)
    case.tensors = {name: of for name, of in vars(case.tensors).items() if of}
    if not case.tensors:
        wrong("tensors has neither q nor k")
    steps = {key: vars(getattr(case, key) or Struct()) for key in FIELDS_2
             if key not in ("tensors", "expected", "clip")}
    for key, named in [("expected", case.expected), *steps.items()]:
        for name in named.keys() - case.tensors:
            if named[name] is not None:
                wrong(f"{key}.{name} has no tensor of that name")
    for name, tensor in case.tensors.items():
        tensor.layout, tensor.num_heads = (tensor.layout or case.layout,
                                           tensor.num_heads or case.num_heads)
        need(text)(tensor.layout, f"tensors.{name}.layout")
        tensor.steps = Struct(**{key: named.get(name) for key, named in steps.items()})
        scale, out = tensor.steps.store_scale or Struct(given=1.0), tensor.steps.out_dtype
        if tensor.steps.store_scale and BLOCKS.get(out, (0,))[0] != 1:
            wrong(f"store_scale.{name}: only e4m3fn, e5m2 and int8 have a scale, and "
                  f"out_dtype.{name} is {out or 'not given'}")
        if (scale.given is None) == (scale.made is None):
            wrong(f"store_scale.{name}.given and store_scale.{name}.made: one of them must be "
                  "there, not both")
        if scale.given is not None and (scale.floor, scale.power_of_two) != (None, None):
            unsupported(f"store_scale.{name}.floor or power_of_two beside a given scale")
    if case.windows is None:
        need(channels)(case.rotary_dim, "rotary_dim")
        case.windows = [Struct(offset=case.rotary_offset or 0, rotary_dim=case.rotary_dim)]
    elif not case.windows or (case.rotary_dim, case.rotary_offset) != (None, None):
        wrong("windows must have a window, and rotary_dim and rotary_offset must be null beside it")
    if len(set(case.planes_rotated)) < len(case.planes_rotated):
        wrong(f"planes_rotated is {case.planes_rotated}: it names a plane twice")
    if case.positions.kind == "context_parallel":
        integer(0, case.positions.cp_size - 1)(case.positions.cp_rank, "positions.cp_rank")
    if case.attention_factor <= 0:
        unsupported(f"attention_factor is {case.attention_factor}: it must be above 0")
    if case.sections and not any(case.sections.sizes):
        wrong("sections.sizes has no pair")
    loose, exact = case.tolerance, case.tolerance_exact_angles
    for name, of in (("tolerance", loose), ("tolerance_exact_angles", exact)):
        if of:
            of.atol_files = of.atol_files or (case.atol_files if of is loose else None)
            if not (of.atol_files or of.codes):
                need(number)(of.atol, f"{name}.atol")
    case.tolerances = [of for of in (case.angles.kind == "base" and exact, loose) if of]
    return case


class Folder:
    """The folder of a case. Not even a symbolic link may lead out of `root`, which was given."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder

    def checked(self, file, most):
        """Returns the path of a file and its size."""
        try:
            place = os.path.realpath(os.path.join(self.folder, file), strict=True)
            if os.path.commonpath([self.root, place]) != self.root:
                wrong(f"{file}: a symbolic link leads out of the cases folder")
            if not os.path.isfile(place):
                wrong(f"{file}: is not a regular file")
            size = os.path.getsize(place)
        except OSError as error:
            wrong(f"{file}: cannot be read: {error.strerror}")
        if size > most:
            unsupported(f"{file}: has {size} bytes, more than {most}")
        return place, size

    def document(self):
        """Returns the document and its id."""
        def once(pairs):
            if len(dict(pairs)) < len(pairs):
                wrong("not usable JSON: a key is given twice in one object")
            return dict(pairs)
        try:
            with open(self.checked("case.json", 4 << 20)[0], encoding="utf-8") as file:
                document = json.load(file, object_pairs_hook=once)
        except RecursionError:
            wrong("not usable JSON: it is nested too deep")
        except (OSError, ValueError) as error:
            wrong(f"not valid JSON: {error}")
        named = document if isinstance(document, dict) else {}
        return document, need(path)(named.get("id"), "id")

    def array(self, file, dtypes=None, shapes=None, refuse=wrong, most=1 << 30):
        """Reads .npy, of which nothing may be missing or left. `refuse` is for another dtype."""
        place, size = self.checked(file, most)
        try:
            array = np.lib.format.open_memmap(place, "r")
        except Exception as error:  # of the parser of Python, which numpy gives the header to
            wrong(f"{file}: {str(error) or type(error).__name__}")
        what = f"{file}: has shape {array.shape} of {array.dtype.str}"
        if array.dtype.str not in ("<f4", "<f2", "<u2", "<i4", "<i8", "<f8", "|u1"):
            unsupported(f"{what}: it must be <f4, <f2, <u2, <i4, <i8, <f8 or |u1")
        if array.offset + array.nbytes != size or not array.flags.c_contiguous:
            wrong(f"{what}: it must have {array.nbytes} bytes of data and no fortran_order")
        if dtypes and array.dtype.str not in dtypes:
            refuse(f"{what}: it must be {' or '.join(dtypes)}")
        if shapes and array.shape not in shapes:
            wrong(f"{what}: its shape must be {' or '.join(map(str, shapes))}")
        return np.array(array)

    def integers(self, of, shapes=None):
        if isinstance(of, str):
            return self.array(of, ["<i4", "<i8"], shapes, unsupported)
        if shapes and (len(of),) not in shapes:
            wrong(f"slots has {len(of)} numbers: it must be {' or '.join(map(str, shapes))}")
        return np.array(of, np.int64)


def values(array):
    """The numbers of a file as float64; <u2 is bf16."""
    if array.dtype == np.uint16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):  # of a NaN
        return array.astype(np.float64)
