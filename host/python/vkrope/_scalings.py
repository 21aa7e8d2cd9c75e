# SPDX-License-Identifier: MIT
"""Frequencies from a base, and their scalings for long contexts, as in vkrope.h. Frequencies are
float64 radians per position; each function returns new ones."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ._declarations import ffi
from ._library import call, lib, new_struct

Numbers = "np.ndarray | Sequence[float]"


def _new(count: int, function: Any, *arguments: Any) -> np.ndarray:
    numbers = np.empty(count)
    call(function, *arguments, ffi.from_buffer("double[]", numbers))
    return numbers


def _changed(function: Any, inv_freq: Numbers, *arguments: Any) -> np.ndarray:
    numbers = np.array(inv_freq, np.float64)
    call(function, ffi.from_buffer("double[]", numbers), numbers.size, *arguments)
    return numbers


def default_inv_freq(base: float, rotary_dim: int) -> np.ndarray:
    """Returns base^(-2j / rotary_dim) for j below rotary_dim / 2."""
    return _new(rotary_dim // 2, lib.vkrope_default_inv_freq, base, rotary_dim)


def proportional_inv_freq(base: float, head_dim: int, **scaling: float) -> np.ndarray:
    """Partial rotation of a whole head; scaling: fields of vkrope_proportional_scaling."""
    struct = new_struct("vkrope_proportional_scaling", **scaling)
    return _new(head_dim // 2, lib.vkrope_proportional_inv_freq, base, head_dim, struct)


def scale_linear(inv_freq: Numbers, factor: float) -> np.ndarray:
    """Position interpolation: divides by `factor`."""
    return _changed(lib.vkrope_scale_linear, inv_freq, factor)


def scale_positions(inv_freq: Numbers, seq_scale: float) -> np.ndarray:
    """Multiplies by `seq_scale`, as if every position were multiplied by it."""
    return _changed(lib.vkrope_scale_positions, inv_freq, seq_scale)


def scale_divisors(inv_freq: Numbers, divisors: Numbers) -> np.ndarray:
    """Divides each frequency by its own divisor."""
    numbers = np.array(divisors, np.float64)
    of = ffi.from_buffer("double[]", numbers)
    return _changed(lib.vkrope_scale_divisors, inv_freq, of, numbers.size)


def scale_dynamic_ntk(inv_freq: Numbers, seq_len: int, **scaling: float) -> np.ndarray:
    """Dynamic NTK scaling; scaling: fields of vkrope_dynamic_ntk_scaling."""
    struct = new_struct("vkrope_dynamic_ntk_scaling", **scaling)
    return _changed(lib.vkrope_scale_dynamic_ntk, inv_freq, struct, seq_len)


def scale_llama3(inv_freq: Numbers, **scaling: float) -> np.ndarray:
    """Llama 3.1's scaling; scaling: fields of vkrope_llama3_scaling."""
    struct = new_struct("vkrope_llama3_scaling", **scaling)
    return _changed(lib.vkrope_scale_llama3, inv_freq, struct)


def scale_yarn(inv_freq: Numbers, base: float, **scaling: float) -> tuple[np.ndarray, float]:
    """YaRN, and its attention factor; scaling: fields of vkrope_yarn_scaling."""
    factor = ffi.new("double*")
    struct = new_struct("vkrope_yarn_scaling", **scaling)
    return _changed(lib.vkrope_scale_yarn, inv_freq, base, struct, factor), factor[0]


def scale_ggml(
    inv_freq: Numbers, base: float, freq_factors: Numbers = (), **scaling: float
) -> tuple[np.ndarray, float]:
    """ggml's scaling, and its attention factor; scaling: fields of vkrope_ggml_scaling."""
    factor, divisors = ffi.new("double*"), np.array(freq_factors, np.float64)
    struct = new_struct(
        "vkrope_ggml_scaling", freq_factors=ffi.from_buffer("double[]", divisors),
        freq_factor_count=divisors.size, **scaling,
    )  # fmt: skip
    return _changed(lib.vkrope_scale_ggml, inv_freq, base, struct, factor), factor[0]
