# SPDX-License-Identifier: MIT
"""Element types of numpy arrays, and the order of their axes in memory."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ._errors import InvalidArgumentError
from ._words import elements, layouts

Layout = Literal["bshd", "bhsd", "sbhd", "thd"]
"""Order of an array's axes: batch, sequence, heads, head_dim; "thd": packed tokens."""

# Order in memory of the axes of [batch, tokens, heads, head_dim], slowest first.
_orders = {"bshd": (0, 1, 2, 3), "bhsd": (0, 2, 1, 3), "sbhd": (1, 0, 2, 3)}

_element_of_dtype = {"float32": "f32", "float16": "f16", "uint16": "bf16", "bfloat16": "bf16"}


def element_of(field: str, dtype: Any) -> int:
    """Returns the vkrope_element of a dtype; bfloat16 is uint16 (bits) or ml_dtypes.bfloat16."""
    dtype = np.dtype(dtype)
    if dtype.name not in _element_of_dtype or not dtype.isnative:
        raise InvalidArgumentError(
            f"{field} has the dtype {dtype.str if not dtype.isnative else dtype.name}: it must be "
            "float32, float16, uint16 (the bits of bfloat16) or ml_dtypes.bfloat16"
        )
    return elements.number(field, _element_of_dtype[dtype.name])


def as_rows(field: str, array: np.ndarray, layout: Layout) -> np.ndarray:
    """Returns a view of the array as [batch, tokens, heads, head_dim]."""
    layouts.number("layout", layout)
    if not isinstance(array, np.ndarray):
        raise InvalidArgumentError(f"{field} is a {type(array).__name__}: it must be a numpy array")
    axes = 3 if layout == "thd" else 4
    if array.ndim != axes:
        raise InvalidArgumentError(
            f"{field} has the shape {array.shape}: the layout {layout} has {axes} axes"
        )
    if layout == "thd":
        return array[np.newaxis]
    return array.transpose(np.argsort(_orders[layout]))


def from_rows(rows: np.ndarray, layout: Layout) -> np.ndarray:
    """Returns a view of [batch, tokens, heads, head_dim] in the caller's order of axes."""
    return rows[0] if layout == "thd" else rows.transpose(_orders[layout])


def is_in_order(rows: np.ndarray, order: str) -> bool:
    """Returns whether the rows are in memory in this order, without gaps."""
    return rows.transpose(_orders[order]).flags.c_contiguous


def memory_order(tensors: list[np.ndarray], preferred: Layout) -> str:
    """Returns the layout of most of the tensors in memory; the other tensors must be copied."""
    candidates = sorted(_orders, key=lambda order: order != preferred)
    return max(candidates, key=lambda order: sum(is_in_order(rows, order) for rows in tensors))


def in_order(rows: np.ndarray, order: str) -> np.ndarray:
    """Returns the array in memory order, without a copy if its rows are in this order."""
    return np.ascontiguousarray(rows.transpose(_orders[order]))


def empty_rows(like: np.ndarray, order: str) -> np.ndarray:
    """Returns new memory for rows in this order, as [batch, tokens, heads, head_dim]."""
    shape = [like.shape[axis] for axis in _orders[order]]
    return np.empty(shape, like.dtype).transpose(np.argsort(_orders[order]))


def positions_of(positions: Any) -> np.ndarray:
    """Returns integers as int32, without a copy if they are contiguous int32 already."""
    ids = np.asarray(positions)
    if ids.dtype.kind not in "iu":
        raise InvalidArgumentError(f"positions have the dtype {ids.dtype}: they must be integers")
    if ids.size:
        lowest, highest = int(ids.min()), int(ids.max())
        for value in (lowest, highest):
            if not -(2**31) <= value < 2**31:
                raise InvalidArgumentError(f"positions hold {value}: they must fit in int32")
    return np.ascontiguousarray(ids, np.int32)
