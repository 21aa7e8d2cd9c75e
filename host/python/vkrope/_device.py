# SPDX-License-Identifier: MIT
"""Vulkan devices and their memory."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from ._declarations import ffi
from ._errors import InvalidArgumentError, WaitTimeoutError
from ._library import Handle, Owner, call, create, in_range, lib, new_struct, text

if TYPE_CHECKING:
    from ._device_array import DeviceArray

_types = {0: "other", 1: "integrated", 2: "discrete", 3: "virtual", 4: "cpu"}


@dataclass(frozen=True)
class DeviceInfo:
    """Properties of a physical device."""

    name: str
    """as the driver reports it"""
    driver: str
    """name and version of the driver"""
    uuid: str
    """32 hex digits"""
    type: str
    """discrete, integrated, virtual, cpu or other"""
    api_version: str
    """Vulkan version of the device, "major.minor.patch" """
    memory_bytes: int
    """size of the largest device-local heap, in bytes"""
    suitable: bool
    """False: see `reason`"""
    reason: str
    """requirements that the device lacks; empty if it is suitable"""


def _info(of: Any) -> DeviceInfo:
    api = of.api_version
    return DeviceInfo(
        name=text(of.name),
        driver=text(of.driver),
        uuid=text(of.uuid),
        type=_types.get(of.type, "other"),
        api_version=f"{api >> 22 & 0x7F}.{api >> 12 & 0x3FF}.{api & 0xFFF}",
        memory_bytes=of.memory_bytes,
        suitable=bool(of.suitable),
        reason=text(of.reason),
    )


def devices() -> list[DeviceInfo]:
    """Every Vulkan device of the machine, best first.

    Raises:
        NoDeviceError: there is no Vulkan loader
    """
    found = ffi.new("vkrope_device_list**")
    call(lib.vkrope_device_list_create, ffi.NULL, found)
    try:
        count = ffi.new("uint32_t*")
        infos = lib.vkrope_device_list_get(found[0], count)
        return [_info(infos[i]) for i in range(count[0])]
    finally:
        lib.vkrope_device_list_destroy(found[0])


Message = Callable[[bool, str, str], None]
"""Receives (is_error, identifier, text) from the loader, a layer or a driver"""


def _callback_of(on_message: Message) -> Any:
    def pass_on(user_data: Any, is_error: int, identifier: Any, message: Any) -> None:
        on_message(bool(is_error), text(identifier), text(message))

    return ffi.callback("vkrope_message_callback", pass_on)


class Device(Owner):
    """A Vulkan device with one queue. Any number of threads may use it; calls run one at a time.

    Args:
        select:            empty: the best device; digits: an index into devices(); 32 hex digits:
                           a UUID; otherwise part of a name, in any case
        validation:        enables VK_LAYER_KHRONOS_validation, which must be installed
        push_descriptors:  False: descriptor sets are used even if push descriptors are available
        on_message:        called with (is_error, identifier, text) for each message of the loader,
                           a layer or a driver
        timeout_ns:        longest wait for one submission, in nanoseconds; None: 30 s, or 300 s on
                           a CPU device, which compiles a pipeline in its first submission
        pipeline_cache_folder:  an existing folder that keeps compiled pipelines between processes;
                           only users whom you trust may write to it. Failures are messages
        pipeline_cache_bytes:  largest total size of the files in this folder; 0: 64 MiB

    Raises:
        NoDeviceError:         no suitable device matches
        InvalidArgumentError:  `select` matches several devices
        NotSupportedError:     the validation layer is not installed
    """

    def __init__(
        self,
        select: str = "",
        *,
        validation: bool = False,
        push_descriptors: bool = True,
        on_message: Message | None = None,
        timeout_ns: int | None = None,
        pipeline_cache_folder: str | os.PathLike[str] = "",
        pipeline_cache_bytes: int = 0,
    ) -> None:
        if not isinstance(select, str):
            raise InvalidArgumentError(f"select is {select!r}: it must be a string")
        name = ffi.new("char[]", select.encode())
        folder = ffi.new("char[]", os.fspath(pipeline_cache_folder).encode())
        options = new_struct(
            "vkrope_device_options", select=name, validation=validation,
            timeout_ns=0
            if timeout_ns is None
            else in_range("timeout_ns", timeout_ns, 2**64 - 1, 1),
            no_push_descriptors=not push_descriptors, pipeline_cache_folder=folder,
            pipeline_cache_bytes=in_range(
                "pipeline_cache_bytes", pipeline_cache_bytes, 2**64 - 1
            ),
        )  # fmt: skip
        message = ffi.NULL if on_message is None else _callback_of(on_message)
        options.on_message = message
        self._handle = create(
            lib.vkrope_device_open, lib.vkrope_device_destroy, "vkrope_device", options
        )
        self._handle.kept = message

    @property
    def info(self) -> DeviceInfo:
        """Returns the properties of the device."""
        handle = self._open()
        with handle.lock:
            return _info(lib.vkrope_device_get_info(handle.pointer))

    def array(self, values: np.ndarray) -> DeviceArray:
        """Copies an array of at least one element into new device memory.

        If the array has gaps, or an order of axes in memory other than that of C, it is first
        copied on the host.
        """
        from ._device_array import DeviceArray

        made = DeviceArray.empty(self, np.shape(values), np.asarray(values).dtype)
        made.write(values)
        return made

    def empty(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        """Returns uninitialised device memory for an array of at least one element."""
        from ._device_array import DeviceArray

        return DeviceArray.empty(self, shape, np.dtype(dtype))

    def __repr__(self) -> str:
        return f"<vkrope.Device {self.info.name!r}>" if self._handle else "<vkrope.Device, closed>"


class Buffer(Owner):
    """A number of bytes of device memory, which several DeviceArrays may share."""

    def __init__(self, device: Device, size: int) -> None:
        parent = device._open()
        self.size = size
        with parent.lock:
            self._handle = create(
                lib.vkrope_buffer_create, lib.vkrope_buffer_destroy, "vkrope_buffer",
                parent.pointer, size, parent=parent,
            )  # fmt: skip

    def upload(self, values: np.ndarray, offset: int) -> None:
        """Copies a contiguous array to `offset`, in bytes, and waits for the device."""
        handle = self._open()
        with handle.lock:
            call(
                lib.vkrope_buffer_upload, handle.pointer, ffi.from_buffer(values), values.nbytes,
                offset,
            )  # fmt: skip

    def download(self, values: np.ndarray, offset: int) -> None:
        """Fills a contiguous array from `offset`, in bytes, and waits for the device."""
        handle = self._open()
        with handle.lock:
            call(
                lib.vkrope_buffer_download, handle.pointer,
                ffi.from_buffer(values, require_writable=True), values.nbytes, offset,
            )  # fmt: skip

    def whole(self) -> Any:
        """Returns the VkDescriptorBufferInfo of the whole buffer."""
        return lib.vkrope_buffer_whole(self._open().pointer)


_default: Device | None = None
_default_lock = threading.Lock()


def submit(
    device: Handle, record: Callable[[Any, Any], int], in_use: tuple[Handle | None, ...]
) -> float:
    """Records and submits commands; returns the device time in nanoseconds, or -1.

    record:  takes the command buffer and a vkrope_error, and returns a vkrope_result
    in_use:  objects that the commands use
    """

    @ffi.callback("vkrope_record_callback", error=lib.VKROPE_ERROR_INTERNAL)
    def record_into(user_data: Any, commands: Any, error: Any) -> int:
        return record(commands, error)

    nanoseconds = ffi.new("double*")
    try:
        call(lib.vkrope_device_submit, device.pointer, record_into, ffi.NULL, nanoseconds)
    except WaitTimeoutError:
        # The device may still be using these objects, so they are never destroyed.
        for stuck in in_use:
            if stuck is not None:
                stuck._users += 1
        raise
    return nanoseconds[0]


def default_device() -> Device:
    """Returns the best device, opened on first use."""
    global _default
    with _default_lock:
        if _default is None or _default._handle is None:
            _default = Device()
        return _default
