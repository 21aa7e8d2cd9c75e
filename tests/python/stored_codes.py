# SPDX-License-Identifier: MIT
"""Bytes of quantised rows, from the definitions of the types. Each f32 operation rounds once: a
double holds enough digits that rounding its result again changes nothing."""

import numpy as np

LARGEST = {"int8": 127.0, "e4m3fn": 448.0, "e5m2": 57344.0}
BLOCK_BYTES = {"q8_0": 34, "q4_0": 18, "q4_1": 20, "q5_0": 22, "q5_1": 24}


def f32(values):
    return np.asarray(values, np.float32).astype(np.float64)


def half_away(values):
    return np.copysign(np.floor(abs(values) + 0.5), values)


def float8_values(fraction_bits, bias, largest):
    """The values of the codes from 0 to `largest`."""
    exponent, fraction = np.divmod(np.arange(largest + 1), 2**fraction_bits)
    significand = fraction + np.where(exponent == 0, 0, 2**fraction_bits)
    return significand * 2.0 ** (np.maximum(exponent, 1) - bias - fraction_bits)


FLOAT8 = {"e4m3fn": float8_values(3, 7, 0x7E), "e5m2": float8_values(2, 15, 0x7B)}


def codes_of(kind, values):
    if kind == "int8":
        return np.clip(half_away(values), -127, 127).astype(np.int8).view(np.uint8)
    # Of two codes that are equally near the even one.
    distance = abs(abs(values)[..., None] - FLOAT8[kind])
    odd = np.arange(len(FLOAT8[kind])) % 2
    best = np.argmin(2 * distance + odd * 2.0**-40 * (distance > 0), axis=-1)
    return (best + np.where(np.signbit(values), 0x80, 0)).astype(np.uint8)


def blocks_of(kind, x):
    """ggml's quantize_row_*_ref of x [..., 32]."""
    amax = abs(x).max(-1, keepdims=True)
    peak = np.take_along_axis(x, abs(x).argmax(-1)[..., None], -1)
    lowest, bits = x.min(-1, keepdims=True), 4 if kind.startswith("q4") else 5
    if kind == "q8_0":
        d, shift = f32(amax / 127), 0.0
    elif kind.endswith("_0"):
        d, shift = f32(peak / -(2 ** (bits - 1))), 2.0 ** (bits - 1) + 0.5
    else:
        d, shift = f32(f32(x.max(-1, keepdims=True) - lowest) / (2**bits - 1)), 0.5
        x = f32(x - lowest)
    inverse = np.where(d == 0, 0, f32(1 / np.where(d == 0, 1, d)))
    heads = [d, lowest] if kind.endswith("_1") else [d]
    parts = [part.astype("<f2").view(np.uint8) for part in heads]
    if kind == "q8_0":
        return np.concatenate([*parts, half_away(f32(x * inverse)).astype(np.int8).view(np.uint8)],
                              -1)
    n = np.minimum(2**bits - 1, f32(f32(x * inverse) + shift).astype(int)).astype(np.uint8)
    if bits == 5:
        parts.append(np.packbits(n >> 4, axis=-1, bitorder="little"))
    return np.concatenate([*parts, n[..., :16] & 15 | (n[..., 16:] & 15) << 4], -1)


def stored_rows(kind, x, scale):
    """Returns the bytes of rows [..., heads, channels] and the scales that were made, or None.
    scale: a step of store_scale, or None."""
    x = f32(x)
    if kind in BLOCK_BYTES:
        blocks = blocks_of(kind, x.reshape(*x.shape[:-1], -1, 32))
        return blocks.reshape(*x.shape[:-1], -1), None
    if not scale:
        return codes_of(kind, x), None
    if "given" in scale:  # for all, or one for each head
        return codes_of(kind, f32(x * f32(scale["given"]).reshape(-1, 1))), None
    made = np.maximum(f32(abs(x).max(-1) / LARGEST[kind]), f32(scale["floor"]))
    if scale.get("power_of_two"):
        fraction, exponent = np.frexp(np.maximum(made, 2.0**-126))
        made = np.ldexp(1.0, exponent - (fraction == 0.5))
    quotient = f32(x / np.where(made == 0, 1, made)[..., None])
    return codes_of(kind, np.where(made[..., None] == 0, 0, quotient)), made


def hadamard(x, n):
    """Blocks of n channels times the matrix in Sylvester's order, over its root."""
    matrix = np.ones((1, 1))
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return (x.reshape(*x.shape[:-1], -1, n) @ matrix.T / np.sqrt(n)).reshape(x.shape)
