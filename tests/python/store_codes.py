# SPDX-License-Identifier: MIT
"""Bytes of quantised rows, from the definitions of the types. Each f32 operation rounds once: a
double holds enough digits that rounding its result again changes nothing.
"""
import math
import struct


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def half_away(value):
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def float8_values(fraction_bits, bias, largest):
    """The values of the codes from 0 to `largest`."""
    values = []
    for code in range(largest + 1):
        exponent, fraction = divmod(code, 2**fraction_bits)
        significand = fraction if exponent == 0 else fraction + 2**fraction_bits
        values.append(significand * 2.0 ** (max(exponent, 1) - bias - fraction_bits))
    return values


FLOAT8 = {"e4m3fn": float8_values(3, 7, 0x7E), "e5m2": float8_values(2, 15, 0x7B)}
LARGEST = {"int8": 127.0, "e4m3fn": 448.0, "e5m2": 57344.0}
BLOCK_BYTES = {"q8_0": 34, "q4_0": 18, "q4_1": 20, "q5_0": 22, "q5_1": 24}


def row_bytes(kind, channels):
    return channels // 32 * BLOCK_BYTES[kind] if kind in BLOCK_BYTES else channels


def code(kind, value):
    if kind == "int8":
        return max(-127, min(127, half_away(value))) & 0xFF
    values, size = FLOAT8[kind], abs(value)
    # Of two codes that are equally near the even one.
    best = min(range(len(values)), key=lambda c: (abs(size - values[c]), c % 2))
    return best | (0x80 if math.copysign(1, value) < 0 else 0)


def codes(kind, row, scale):
    """Codes of a row and the scale that was made for it, or None. scale: a step of store_scale,
    with the number that the row takes."""
    row = [f32(x) for x in row]
    if scale is None:
        return [code(kind, x) for x in row], None
    if "given" in scale:
        return [code(kind, f32(x * f32(scale["given"]))) for x in row], None
    made = max(f32(max(map(abs, row)) / LARGEST[kind]), f32(scale["floor"]))
    if scale.get("power_of_two"):
        fraction, exponent = math.frexp(max(made, 2.0**-126))
        made = 2.0 ** (exponent - 1 if fraction == 0.5 else exponent)
    return [code(kind, f32(x / made) if made else 0.0) for x in row], made


def block(kind, row):
    """ggml's quantize_row_*_ref of 32 channels."""
    amax, peak = max(map(abs, row)), max(row, key=abs)
    if kind == "q8_0":
        d = f32(amax / 127)
        inverse = f32(1 / d) if d else 0.0
        return struct.pack("<e32b", d, *(half_away(f32(x * inverse)) for x in row))
    bits = 4 if kind.startswith("q4") else 5
    lowest, most = min(row), 2**bits - 1
    if kind.endswith("_0"):
        d = f32(peak / -(2 ** (bits - 1)))
        head, shift = struct.pack("<e", d), 2.0 ** (bits - 1) + 0.5
        row = list(row)
    else:
        d = f32(f32(max(row) - lowest) / most)
        head, shift = struct.pack("<ee", d, lowest), 0.5
        row = [f32(x - lowest) for x in row]
    inverse = f32(1 / d) if d else 0.0
    numbers = [min(most, int(f32(f32(x * inverse) + shift))) for x in row]
    upper = sum((n >> 4) << j for j, n in enumerate(numbers))
    fifth = struct.pack("<I", upper) if bits == 5 else b""
    return head + fifth + bytes(numbers[j] & 15 | (numbers[j + 16] & 15) << 4 for j in range(16))


def stored_row(kind, row, scale):
    """The bytes of a row, and the scale that was made for it, or None."""
    if kind not in BLOCK_BYTES:
        return codes(kind, row, scale)
    row = [f32(x) for x in row]
    return list(b"".join(block(kind, row[i:i + 32]) for i in range(0, len(row), 32))), None


def hadamard(row, n):
    """Blocks of n channels times the matrix in Sylvester's order, over its root."""
    result = []
    for first in range(0, len(row), n):
        for i in range(n):
            terms = [row[first + j] * (-1) ** bin(i & j).count("1") for j in range(n)]
            result.append(math.fsum(terms) / math.sqrt(n))
    return result
