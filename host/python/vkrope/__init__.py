# SPDX-License-Identifier: MIT
"""Rotary position embedding (RoPE) on Vulkan, for numpy arrays.

    import vkrope

    rotation = vkrope.frequencies("config.json")
    q_rotated, k_rotated, _ = vkrope.rotate(q, k, rotation=rotation)

The library libvkrope does the work. Its C interface, vkrope.h, documents the meaning of each
setting; the names here are the same. Shapes are [batch, tokens, heads, head_dim] unless stated
otherwise. Inverse frequencies are in radians per position, times in nanoseconds. Element types are
float32, float16 and bfloat16. numpy has no bfloat16, so bfloat16 arrays have the type uint16, with
the bits of the elements, or ml_dtypes.bfloat16.
"""

from ._arrays import Layout
from ._command import check, explain
from ._device import Buffer, Device, DeviceInfo, devices
from ._device_array import DeviceArray
from ._errors import (
    DeviceLostError,
    InternalError,
    InvalidArgumentError,
    InvalidDataError,
    LimitExceededError,
    NoDeviceError,
    NotSupportedError,
    OutOfDeviceMemoryError,
    OutOfHostMemoryError,
    VkropeError,
    VulkanError,
    WaitTimeoutError,
)
from ._kernel import CosSinCache, HeadFormat, Kernel, Run
from ._library import version
from ._positions import PositionKernel, QueryScales, Step
from ._rotate import Rotated, rotate
from ._rotation import (
    Model,
    RopeParams,
    Sections,
    error_bound,
    frequencies,
    rope_params_from_ggml_op,
)
from ._scalings import (
    default_inv_freq,
    proportional_inv_freq,
    scale_divisors,
    scale_dynamic_ntk,
    scale_ggml,
    scale_linear,
    scale_llama3,
    scale_positions,
    scale_yarn,
)

__version__ = version()

__all__ = [
    "Buffer",
    "CosSinCache",
    "Device",
    "DeviceArray",
    "DeviceInfo",
    "DeviceLostError",
    "HeadFormat",
    "InternalError",
    "InvalidArgumentError",
    "InvalidDataError",
    "Kernel",
    "Layout",
    "LimitExceededError",
    "Model",
    "NoDeviceError",
    "NotSupportedError",
    "OutOfDeviceMemoryError",
    "OutOfHostMemoryError",
    "PositionKernel",
    "QueryScales",
    "Rotated",
    "RopeParams",
    "Run",
    "Sections",
    "Step",
    "VkropeError",
    "VulkanError",
    "WaitTimeoutError",
    "check",
    "default_inv_freq",
    "devices",
    "error_bound",
    "explain",
    "frequencies",
    "proportional_inv_freq",
    "rope_params_from_ggml_op",
    "rotate",
    "scale_divisors",
    "scale_dynamic_ntk",
    "scale_ggml",
    "scale_linear",
    "scale_llama3",
    "scale_positions",
    "scale_yarn",
]
