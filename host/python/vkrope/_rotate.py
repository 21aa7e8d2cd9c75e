# SPDX-License-Identifier: MIT
"""Rotates numpy arrays in one call."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import numpy as np

from . import _arrays
from ._arrays import Layout
from ._declarations import ffi
from ._device import Device, default_device
from ._errors import InvalidArgumentError
from ._library import call, create, lib, new_struct
from ._rotation import Model, RopeParams, frequencies
from ._words import angle_sources, gains, layouts


class Rotated(NamedTuple):
    """Result of rotate(); None for a tensor that was not passed."""

    q: Optional[np.ndarray]
    k: Optional[np.ndarray]
    v: Optional[np.ndarray]


class _Tensor:
    """One tensor of a call: its rows as [batch, tokens, heads, head_dim], and their destination."""

    def __init__(self, name: str, array: Any, out: Any, layout: Layout) -> None:
        self.name = name
        self.rows = _arrays.as_rows(name, array, layout)
        self.element = _arrays.element_of(name, array.dtype)
        self.out_rows = None
        if out is not None:
            self.out_rows = _arrays.as_rows(f"out_{name}", out, layout)
            if out.shape != array.shape or out.dtype != array.dtype:
                raise InvalidArgumentError(
                    f"out_{name} is {out.dtype} of the shape {out.shape}: it must be "
                    f"{array.dtype} of the shape {array.shape}, as {name} is"
                )
            if not out.flags.writeable:
                raise InvalidArgumentError(f"out_{name} is read-only: the result is stored there")

    def target(self, order: str) -> np.ndarray:
        """Returns memory in this order for the result: the caller's memory if it has this order."""
        if self.out_rows is not None and _arrays.is_in_order(self.out_rows, order):
            return self.out_rows
        return _arrays.empty_rows(self.rows, order)

    def finish(self, result: np.ndarray, layout: Layout) -> np.ndarray:
        """Returns the result as the caller's array."""
        if self.out_rows is None:
            return _arrays.from_rows(result, layout)
        if result is not self.out_rows:
            self.out_rows[...] = result
        return _arrays.from_rows(self.out_rows, layout)


def _check_alike(tensors: list[_Tensor]) -> None:
    first = tensors[0]
    for other in tensors[1:]:
        if other.element != first.element:
            raise InvalidArgumentError(
                f"{other.name} has the dtype {other.rows.dtype}: it must be {first.rows.dtype}, "
                f"as {first.name} has"
            )
        if other.rows.shape[:2] != first.rows.shape[:2]:
            raise InvalidArgumentError(
                f"{other.name} has {other.rows.shape[0]} sequences of {other.rows.shape[1]} "
                f"tokens: {first.name} has {first.rows.shape[0]} of {first.rows.shape[1]}"
            )


def _rotation_of(
    model: Model | None, rotation: RopeParams | None, pairing: str | None
) -> RopeParams:
    if (model is None) == (rotation is None):
        raise InvalidArgumentError(
            "model and rotation are both given: one of them must be"
            if rotation
            else "model and rotation are both missing: one of them must be given"
        )
    if rotation is None:
        return frequencies(model, pairing=pairing)
    return rotation if pairing is None else rotation.replace(pairing=pairing)


def _with_gain(rotation: RopeParams, gain: str) -> RopeParams:
    """Returns the rotation with the gain applied to its factor, which adds no rounding."""
    number = gains.number("gain", gain)
    factor = rotation.attention_factor
    if number == lib.VKROPE_GAIN_APPLY or factor == 1:
        return rotation
    return rotation.replace(
        attention_factor=1.0 if number == lib.VKROPE_GAIN_OMIT else 1.0 / factor
    )


def _set_positions(shape: Any, positions: np.ndarray) -> None:
    """Sets the positions of the shape: [tokens], [batch, tokens] or [axes, batch, tokens]."""
    batch, tokens = shape.batch, shape.tokens
    fits = {1: (tokens,), 2: (batch, tokens), 3: (*positions.shape[:1], batch, tokens)}
    if fits.get(positions.ndim) != positions.shape:
        raise InvalidArgumentError(
            f"positions have the shape {positions.shape}: it must be [tokens], [batch, tokens] or "
            f"[axes, batch, tokens] with batch {batch} and tokens {tokens}"
        )
    shape.positions = ffi.from_buffer("int32_t[]", positions)
    shape.position_count = positions.size
    shape.axes = positions.shape[0] if positions.ndim == 3 else 0


def _run(device: Device, rotation: RopeParams, shape: Any, inverse: bool, pointers: Any) -> None:
    """Uploads, rotates and downloads: `pointers` are the inputs and outputs of Q, K and V."""
    inputs, outputs = pointers
    parent = device._open()
    with parent.lock:
        handle = create(
            lib.vkrope_host_rotation_create, lib.vkrope_host_rotation_destroy,
            "vkrope_host_rotation", parent.pointer, rotation._params, shape, parent=parent,
        )  # fmt: skip
        try:
            call(lib.vkrope_host_rotation_upload, handle.pointer, *inputs)
            direction = lib.VKROPE_INVERSE if inverse else lib.VKROPE_FORWARD
            run = new_struct("vkrope_host_run", direction=direction)
            call(lib.vkrope_host_rotation_run, handle.pointer, run, ffi.NULL)
            call(lib.vkrope_host_rotation_download, handle.pointer, *outputs)
        finally:
            handle.release()


def rotate(
    q: np.ndarray | None = None,
    k: np.ndarray | None = None,
    v: np.ndarray | None = None,
    *,
    model: Model | None = None,
    rotation: RopeParams | None = None,
    positions: Any = None,
    first_position: int = 0,
    pairing: str | None = None,
    layout: Layout = "bshd",
    inverse: bool = False,
    gain: str = "apply",
    angles: str = "automatic",
    out_q: np.ndarray | None = None,
    out_k: np.ndarray | None = None,
    out_v: np.ndarray | None = None,
    device: Device | None = None,
) -> Rotated:
    """Rotates query and key tensors on a device, and copies the value tensor bit for bit.

    Arrays go to the device and back without a copy on the host if their memory is in the order
    bshd, bhsd or sbhd without gaps. The order of their axes does not matter, so a transposed view
    of such memory needs no copy. Results have the memory order of most of the inputs.

    Args:
        q, k, v:         [batch, tokens, heads, head_dim], or as `layout` says; float32, float16,
                         or bfloat16 as uint16 or ml_dtypes.bfloat16; all of one dtype. Heads and
                         head_dim may differ between them
        model:           as in frequencies()
        rotation:        instead of `model`
        positions:       integers [tokens], [batch, tokens] or, for a rotation with sections,
                         [axes, batch, tokens]; each must fit in int32. None: consecutive
        first_position:  position of token 0 of every sequence if there are no `positions`
        pairing:         "half_split" or "interleaved"; replaces that of the rotation
        layout:          order of the axes: "bshd", "bhsd", "sbhd" or "thd" (packed tokens)
        inverse:         rotate back (the gradient)
        gain:            treatment of the attention factor: "apply", "omit" or "divide_out"
        angles:          "automatic", "factored_texture", "computed", "direct_texture" or
                         "direct_buffer"
        out_q, ...:      arrays for the results, which may be the inputs
        device:          None: the best device

    Raises:
        InvalidArgumentError:  a value or shape that breaks a rule
        LimitExceededError:    tensors or a table that are too large for the device
        NotSupportedError:     this version or the device does not support the operation
        NoDeviceError:         there is no suitable device
    """
    given = {"q": (q, out_q), "k": (k, out_k), "v": (v, out_v)}
    for name, (array, out) in given.items():
        if array is None and out is not None:
            raise InvalidArgumentError(f"out_{name} is given without {name}")
    if q is None and k is None:
        raise InvalidArgumentError("q and k are both missing: one of them must be given")
    tensors = {
        name: _Tensor(name, array, out, layout)
        for name, (array, out) in given.items()
        if array is not None
    }
    _check_alike(list(tensors.values()))
    if positions is not None and first_position != 0:
        raise InvalidArgumentError(
            f"first_position is {first_position}: with positions it must be 0"
        )
    chosen = _with_gain(_rotation_of(model, rotation, pairing), gain)
    some = next(iter(tensors.values()))
    memory = _arrays.memory_order([tensor.rows for tensor in tensors.values()], layout)
    shape = new_struct(
        "vkrope_host_shape",
        batch=some.rows.shape[0],
        tokens=some.rows.shape[1],
        element=some.element,
        layout=layouts.number("layout", memory),
        first_position=first_position,
        angles=angle_sources.number("angles", angles),
        in_place=True,
    )
    if positions is not None:
        ids = _arrays.positions_of(positions)
        _set_positions(shape, ids)
    sources, targets = {}, {}
    for name, tensor in tensors.items():
        sources[name] = _arrays.in_order(tensor.rows, memory)
        targets[name] = tensor.target(memory)
        # An array without elements is absent, because there is nothing to bind.
        index = list(given).index(name)
        if tensor.rows.size:
            shape.heads[index], shape.head_dim[index] = tensor.rows.shape[2:]
    if any(tensor.rows.size for tensor in tensors.values()):
        inputs = [_pointer(sources.get(name)) for name in given]
        outputs = [_pointer(_memory_of(targets.get(name), memory)) for name in given]
        _run(device or default_device(), chosen, shape, inverse, (inputs, outputs))
    results = {name: tensor.finish(targets[name], layout) for name, tensor in tensors.items()}
    return Rotated(results.get("q"), results.get("k"), results.get("v"))


def _memory_of(rows: np.ndarray | None, order: str) -> np.ndarray | None:
    """Returns a contiguous view of rows in memory order."""
    return None if rows is None else rows.transpose(_arrays._orders[order])


def _pointer(array: np.ndarray | None) -> Any:
    """Returns the address of a contiguous array, whatever its type."""
    if array is None or array.size == 0:
        return ffi.NULL
    return ffi.from_buffer(array.view(np.uint8))
