# SPDX-License-Identifier: MIT
"""The files of a case: its document, its arrays, and the numbers that fill them."""
import json
import math
import os
import struct

U = 2.0**-24
HALF_ULP = {"f32": 0.0, "f16": 2.0**-11, "bf16": 2.0**-8}
DESCR = {"f32": "<f4", "f16": "<f2", "bf16": "<u2", "i32": "<i4", "i64": "<i8",
         "u8": "|u1"}
PACK = {"f32": "f", "f16": "e", "i32": "i", "i64": "q", "u8": "B"}


def bf16_bits(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    if math.isnan(value):
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def stored(kind, values):
    if kind == "bf16":
        return struct.pack(f"<{len(values)}H", *(bf16_bits(v) for v in values))
    return struct.pack(f"<{len(values)}{PACK[kind]}", *values)


def product(shape):
    return math.prod(shape)


class Case:
    """Files of a folder below `root`, and its document."""

    root = None

    def __init__(self, name):
        self.folder = os.path.join(Case.root, name)
        os.makedirs(self.folder)
        self.document = {"schema": "rope-case/1", "id": "own/" + name,
                         "source": {"project": "vkrope", "kind": "oracle"}}

    def array(self, name, kind, shape, values):
        assert len(values) == product(shape), (self.folder, name, len(values), shape)
        sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        text = f"{{'descr': '{DESCR[kind]}', 'fortran_order': False, 'shape': ({sizes}), }}"
        text += " " * (-(10 + len(text) + 1) % 64) + "\n"
        with open(f"{self.folder}/{name}", "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()
                       + stored(kind, values))
        return name

    def close(self):
        with open(f"{self.folder}/case.json", "w", encoding="utf-8") as file:
            lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}"
                               for key, value in self.document.items())
            file.write("{\n" + lines + "\n}\n")


def inputs(count, seed):
    """Multiples of 1/8 in [-2, 2], which every element type holds."""
    values = []
    for _ in range(count):
        seed = (seed * 1103515245 + 12345) % 2**31
        values.append((seed >> 16) % 33 / 8 - 2)
    return values


def base(base_, n, scaling=None):
    return {"kind": "base", "base": base_, "exponent_dim": n, "scaling": scaling}
