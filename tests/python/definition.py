# SPDX-License-Identifier: MIT
"""The definition of the rotation in numpy, for arrays [batch, tokens, heads, head_dim]."""

import numpy as np

UNIT = 2.0**-24


def widened(array):
    """Returns the values of an array as float64; uint16 contains bfloat16."""
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def rounded(values, dtype):
    """Returns float64 values rounded once to nearest even."""
    if dtype != np.uint16:
        return values.astype(dtype)
    # A conversion through float32 would round twice. So this rounds to 8 bits of mantissa in
    # float64 (a power of two times an integer), which float32 represents exactly.
    mantissa, exponent = np.frexp(values)
    short = np.ldexp(np.rint(np.ldexp(mantissa, 8)), exponent - 8).astype(np.float32)
    return (short.view(np.uint32) >> 16).astype(np.uint16)


def pairs_of(windows, pairing, offset=0):
    """Returns the two channels of each pair, window after window."""
    first, second = [], []
    for start, rotary_dim in windows:
        j = np.arange(rotary_dim // 2)
        half_split = pairing == "half_split"
        first.append(offset + start + (j if half_split else 2 * j))
        second.append(first[-1] + (rotary_dim // 2 if half_split else 1))
    return np.concatenate(first), np.concatenate(second)


def axes_of(sections, pairs):
    """Returns the axis that rotates each pair, as vkrope_section_order specifies."""
    if sections is None:
        return np.zeros(pairs, int)
    if sections.order == "sequential":
        return np.resize(np.repeat(np.arange(len(sections.pairs)), sections.pairs), pairs)
    m = np.arange(pairs) % sum(sections.pairs)
    chosen = m % 3
    return np.where(m < 3 * np.array(sections.pairs)[chosen], chosen, sections.leftover_axis)


def rotated(values, rotation, positions, *, pairing=None, pairing_out=None, offset=0, inverse=False,
            gain="apply"):
    """Returns the exact result in float64, and the size |x0| + |x1| that scales the error bound.

    positions: [tokens], [batch, tokens] or [axes, batch, tokens]
    """
    x = widened(values)
    batch, tokens = x.shape[:2]
    groups, pairs = rotation.head_groups, rotation.rotary_dim // 2
    # The shape is [head_groups, axes whose angles are added, pairs].
    inv_freq = rotation.inv_freq.astype(np.longdouble).reshape(groups, -1, pairs)
    positions = np.asarray(positions).astype(np.longdouble)
    if inv_freq.shape[1] > 1:
        angle = np.einsum("abt,gap->btgp", positions, inv_freq)
    else:
        if positions.ndim < 3:
            by_pair = np.broadcast_to(positions, (batch, tokens))[:, :, None]
        else:
            by_pair = np.moveaxis(positions[axes_of(rotation.sections, pairs)], 0, -1)
        angle = by_pair[:, :, None, :] * inv_freq[:, 0, :]
    if rotation.phase is not None:
        angle = angle + rotation.phase.reshape(groups, pairs)
    angle = np.repeat(angle, x.shape[2] // groups, axis=2)
    factor = {"apply": rotation.attention_factor, "omit": 1.0}.get(
        gain, 1 / rotation.attention_factor
    )
    cos = factor * np.cos(angle).astype(np.float64)
    sin = factor * np.sin(angle).astype(np.float64) * (-1 if inverse else 1)
    windows = rotation.windows or ((0, rotation.rotary_dim),)
    first, second = pairs_of(windows, pairing or rotation.pairing, offset)
    x0, x1 = x[..., first], x[..., second]
    to_first, to_second = pairs_of(windows, pairing_out or pairing or rotation.pairing, offset)
    y, size = x.copy(), np.zeros_like(x)
    y[..., to_first], y[..., to_second] = x0 * cos - x1 * sin, x0 * sin + x1 * cos
    size[..., to_first] = size[..., to_second] = factor * (np.abs(x0) + np.abs(x1))
    return y, size


def rms_normed(values, weight=1.0, eps=1e-6):
    """Returns rows in float64 after an RMS norm over their last axis."""
    x = widened(values)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def assert_right(actual, expected, bound):
    """Checks every value against the contract: an error of B u of the size, then one rounding.

    expected: the result of rotated()
    bound:    B
    """
    exact, size = expected
    tolerance = bound * UNIT * size + 2.0**-123 * (size > 0)
    lowest = widened(rounded(exact - tolerance, actual.dtype))
    highest = widened(rounded(exact + tolerance, actual.dtype))
    values = widened(actual)
    wrong = ~((lowest <= values) & (values <= highest))
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise AssertionError(
            f"{wrong.sum()} of {wrong.size} values are wrong; at {at}: {values[at]!r}, but "
            f"{lowest[at]!r} to {highest[at]!r} are allowed"
        )
