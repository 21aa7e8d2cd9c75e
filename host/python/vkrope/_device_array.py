# SPDX-License-Identifier: MIT
"""Arrays in device memory, with shapes, strides and slices as in numpy."""

from __future__ import annotations

import math
from typing import Any, Mapping

import numpy as np

from ._device import Buffer, Device
from ._errors import InvalidArgumentError


def packed_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides of an array without gaps, the last axis fastest."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


class DeviceArray:
    """An array in device memory, or a view of part of such an array.

    Attributes:
        device:   the Device
        dtype:    the dtype of numpy
        shape:    number of elements on each axis
        strides:  distance of successive indices on each axis, in elements (not bytes)
        offset:   position of the first element in the buffer, in elements
    """

    def __init__(
        self,
        device: Device,
        buffer: Buffer,
        dtype: np.dtype,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int,
    ) -> None:
        self.device = device
        self.buffer = buffer
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.offset = offset

    @classmethod
    def empty(cls, device: Device, shape: tuple[int, ...], dtype: np.dtype) -> DeviceArray:
        """Does the same as Device.empty."""
        if dtype.hasobject or not dtype.isnative:
            raise InvalidArgumentError(f"dtype is {dtype}: it must be of this machine's numbers")
        shape = tuple(int(count) for count in shape)
        if not all(count > 0 for count in shape):
            raise InvalidArgumentError(f"shape is {shape}: every axis must have an element")
        strides = packed_strides(shape)
        buffer = Buffer(device, math.prod(shape) * dtype.itemsize)
        return cls(device, buffer, dtype, shape, strides, 0)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def span(self) -> int:
        """Number of elements from the first to the last, including both."""
        return 1 + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides))

    def __getitem__(self, index: Any) -> DeviceArray:
        """Returns a view, as in numpy, by integers, slices with positive steps, and an ellipsis."""
        parts = list(index) if isinstance(index, tuple) else [index]
        if Ellipsis in parts:
            at = parts.index(Ellipsis)
            parts[at : at + 1] = [slice(None)] * (self.ndim - len(parts) + 1)
        if len(parts) > self.ndim:
            raise IndexError(f"{len(parts)} indices: the array has {self.ndim} axes")
        parts += [slice(None)] * (self.ndim - len(parts))
        offset, shape, strides = self.offset, [], []
        for part, count, stride in zip(parts, self.shape, self.strides):
            if isinstance(part, slice):
                chosen = range(count)[part]
                if not chosen or chosen.step < 0:
                    raise IndexError(f"{part}: it must choose elements of {count} in their order")
                offset += chosen.start * stride
                shape.append(len(chosen))
                strides.append(chosen.step * stride)
            else:
                offset += range(count)[part] * stride
        return DeviceArray(
            self.device, self.buffer, self.dtype, tuple(shape), tuple(strides), offset
        )

    def transpose(self, *axes: int) -> DeviceArray:
        """Returns a view with its axes in another order."""
        if sorted(axes) != list(range(self.ndim)):
            raise InvalidArgumentError(f"axes is {axes}: each of {self.ndim} axes must occur once")
        shape = tuple(self.shape[axis] for axis in axes)
        strides = tuple(self.strides[axis] for axis in axes)
        return DeviceArray(self.device, self.buffer, self.dtype, shape, strides, self.offset)

    def _in_span(self, memory: np.ndarray) -> np.ndarray:
        """Returns this array's elements in a copy of its span on the host."""
        strides = [stride * self.dtype.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(memory, self.shape, strides)

    def _is_packed(self) -> bool:
        return self.span == math.prod(self.shape)

    def write(self, values: np.ndarray) -> None:
        """Copies an array of the same shape and dtype into this array, and waits for the device."""
        values = np.asarray(values)
        if values.shape != self.shape or values.dtype != self.dtype:
            raise InvalidArgumentError(
                f"values are {values.dtype} of the shape {values.shape}: they must be {self.dtype} "
                f"of the shape {self.shape}"
            )
        memory = np.empty(self.span, self.dtype)
        if not self._is_packed():  # the bytes between the elements must not change
            self.buffer.download(memory, self.offset * self.dtype.itemsize)
        view = self._in_span(memory)
        if self._is_packed() and values.flags.c_contiguous and view.flags.c_contiguous:
            memory = values
        else:
            view[...] = values
        self.buffer.upload(memory, self.offset * self.dtype.itemsize)

    def numpy(self) -> np.ndarray:
        """Waits for all work on the device, and copies the array into host memory."""
        memory = np.empty(self.span, self.dtype)
        self.buffer.download(memory, self.offset * self.dtype.itemsize)
        return self._in_span(memory)

    def __repr__(self) -> str:
        return f"<vkrope.DeviceArray {self.dtype} {self.shape}>"


def check_arrays(device: Device, arrays: Mapping[str, Any], required: bool = False) -> None:
    """Checks that all arrays are in memory of this device; None is no array."""
    for name, array in arrays.items():
        if array is None and not required:
            continue
        if not isinstance(array, DeviceArray):
            raise InvalidArgumentError(
                f"{name} is of the type {type(array).__name__}: it must be a DeviceArray"
            )
        if array.device is not device:
            raise InvalidArgumentError(f"{name} is on another Device than the kernel")
