# SPDX-License-Identifier: MIT
"""Exceptions: one class for each error code of vkrope_result."""

from __future__ import annotations


class VkropeError(Exception):
    """A call failed. The text is one sentence that names the field, its value and the rule.

    Attributes:
        code:       the vkrope_result, below 0
        vk_result:  the VkResult that caused the error, or 0
    """

    code = 0

    def __init__(self, what: str, vk_result: int = 0) -> None:
        super().__init__(what)
        self.vk_result = vk_result


class InvalidArgumentError(VkropeError, ValueError):
    """A field has an invalid value; nothing was created or changed."""

    code = -1


class NotSupportedError(VkropeError):
    """The call is valid, but this version or this device does not support it."""

    code = -2


class LimitExceededError(VkropeError):
    """A number exceeds a limit of the device or the format; the text gives both numbers."""

    code = -3


class InvalidDataError(VkropeError, ValueError):
    """The model file cannot be read or contradicts itself."""

    code = -4


class NoDeviceError(VkropeError):
    """There is no Vulkan loader or no suitable device."""

    code = -5


class OutOfHostMemoryError(VkropeError, MemoryError):
    """A host allocation of the library, Vulkan or a callback failed."""

    code = -6


class OutOfDeviceMemoryError(VkropeError, MemoryError):
    """Vulkan could not allocate device memory."""

    code = -7


class DeviceLostError(VkropeError):
    """The device was lost; every later call with this device fails in the same way."""

    code = -8


class WaitTimeoutError(VkropeError, TimeoutError):
    """A wait reached its time limit; the work may still be running."""

    code = -9


class VulkanError(VkropeError):
    """Vulkan returned another error; see `vk_result`."""

    code = -10


class InternalError(VkropeError):
    """A bug in the library; please report it."""

    code = -11


_by_code = {error.code: error for error in VkropeError.__subclasses__()}


def error_of(code: int, what: str, vk_result: int) -> VkropeError:
    """Returns the exception for a result other than VKROPE_SUCCESS."""
    if code in _by_code:
        return _by_code[code](what, vk_result)
    error = VkropeError(what, vk_result)  # a code of a later version
    error.code = code
    return error
