# SPDX-License-Identifier: MIT
"""Bytes of quantised rows, and the numbers that they stand for, from the definitions of the types.
Each f32 operation rounds once: a double holds enough digits that rounding its result again changes
nothing."""

import numpy as np

LARGEST = {"int8": 127.0, "int4": 7.0, "e4m3fn": 448.0, "e5m2": 57344.0}
BLOCK_BYTES = {"q8_0": 34, "q4_0": 18, "q4_1": 20, "q5_0": 22, "q5_1": 24, "iq4_nl": 18}
IQ4_NL = np.float32([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])


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
    if kind in ("int8", "int4"):
        whole = np.clip(half_away(values), -LARGEST[kind], LARGEST[kind])
        codes = whole.astype(np.int8).view(np.uint8)
        return codes if kind == "int8" else codes[..., ::2] & 15 | codes[..., 1::2] << 4
    # Of two codes that are equally near the even one.
    distance = abs(abs(values)[..., None] - FLOAT8[kind])
    odd = np.arange(len(FLOAT8[kind])) % 2
    best = np.argmin(2 * distance + odd * 2.0**-40 * (distance > 0), axis=-1)
    return (best + np.where(np.signbit(values), 0x80, 0)).astype(np.uint8)


def iq4_nl_blocks(x):
    """ggml's quantize_row_iq4_nl_ref of x [..., 32], with zeros in a block without a scale, and
    with the codes and scales of vkrope.h for infinities, NaNs and sums that overflow."""
    nan = np.isnan(x)
    x = np.where(nan, 0, x).astype(np.float32)
    peak = np.take_along_axis(x, abs(x).argmax(-1)[..., None], -1)
    first = peak / np.float32(-127)
    scaled = 1 / np.where(first == 0, 1, first) * x
    above = np.clip(np.searchsorted(IQ4_NL, scaled), 1, 15)
    codes = above - (scaled - IQ4_NL[above - 1] < IQ4_NL[above] - scaled)
    codes = np.where(nan | np.isinf(peak), 8, codes)
    weighted, q = x * x * IQ4_NL[codes], IQ4_NL[codes]
    sums = [np.cumsum(weighted * of, -1, np.float32)[..., -1:] for of in (x, q)]
    d = np.where(np.isinf(peak), first, sums[0] / np.where(sums[1] == 0, 1, sums[1]))
    empty = abs(peak) < np.float32(1e-15)
    d = np.where(empty, 0, np.where(np.isnan(d), np.nan, d)).astype("<f2").view(np.uint8)
    codes = np.where(empty, 0, codes).astype(np.uint8)
    return np.concatenate([d, codes[..., :16] | codes[..., 16:] << 4], -1)


@np.errstate(all="ignore")
def blocks_of(kind, x):
    """ggml's quantize_row_*_ref of x [..., 32]."""
    if kind == "iq4_nl":
        return iq4_nl_blocks(x)
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
    scale: a step of store_scale, or None; with `group` a scale has as many channels."""
    x = f32(x)
    if kind in BLOCK_BYTES:
        blocks = blocks_of(kind, x.reshape(*x.shape[:-1], -1, 32))
        return blocks.reshape(*x.shape[:-1], -1), None
    if not scale:
        return codes_of(kind, x), None
    if "given" in scale:  # for all, or one for each head
        return codes_of(kind, f32(x * f32(scale["given"]).reshape(-1, 1))), None
    shape, group = x.shape, scale.get("group", 0)
    if group:
        x = x.reshape(*shape[:-1], -1, group)
    made = np.maximum(f32(abs(x).max(-1) / LARGEST[kind]), f32(scale["floor"]))
    if scale.get("power_of_two"):
        fraction, exponent = np.frexp(np.maximum(made, 2.0**-126))
        made = np.ldexp(1.0, exponent - (fraction == 0.5))
    quotient = f32(x / np.where(made == 0, 1, made)[..., None])
    codes = codes_of(kind, np.where(made[..., None] == 0, 0, quotient))
    return codes.reshape(*shape[:-1], -1), made


def block_numbers(kind, blocks):
    """The f32 numbers of blocks [..., bytes]."""
    halves = np.ascontiguousarray(blocks[..., :4]).view("<f2").astype(np.float64)
    if kind == "q8_0":
        return f32(halves[..., :1] * blocks[..., 2:].view(np.int8))
    low = blocks[..., -16:]
    codes = np.concatenate([low & 15, low >> 4], -1).astype(int)
    if kind == "iq4_nl":
        return f32(halves[..., :1] * IQ4_NL.astype(np.float64)[codes])
    if kind[1] == "5":
        codes += 16 * np.unpackbits(blocks[..., -20:-16], axis=-1, bitorder="little")
    if kind.endswith("_1"):
        return f32(halves[..., :1] * codes + halves[..., 1:])
    return f32(halves[..., :1] * (codes - (8 if kind[1] == "4" else 16)))


def read_rows(kind, stored, scales=None):
    """The f32 numbers of rows [..., heads, bytes] with scales [..., heads] or
    [..., heads, groups], or None."""
    if kind in BLOCK_BYTES:
        blocks = stored.reshape(*stored.shape[:-1], -1, BLOCK_BYTES[kind])
        return block_numbers(kind, blocks).reshape(*stored.shape[:-1], -1)
    if kind == "int8":
        numbers = stored.view(np.int8).astype(np.float64)
    elif kind == "int4":
        halves = np.stack([stored << 4, stored], -1).view(np.int8) >> 4
        numbers = halves.reshape(*stored.shape[:-1], -1).astype(np.float64)
    else:
        numbers = FLOAT8[kind][np.minimum(stored & 0x7F, len(FLOAT8[kind]) - 1)]
        numbers = np.where(stored & 0x80, -numbers, numbers)
    if scales is None:
        return numbers
    scales = f32(scales).reshape(*stored.shape[:-1], -1)
    return f32(numbers * np.repeat(scales, numbers.shape[-1] // scales.shape[-1], -1))


def hadamard(x, n):
    """Blocks of n channels times the matrix in Sylvester's order, over its root."""
    matrix = np.ones((1, 1))
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return (x.reshape(*x.shape[:-1], -1, n) @ matrix.T / np.sqrt(n)).reshape(x.shape)
