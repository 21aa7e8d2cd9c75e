# SPDX-License-Identifier: MIT
"""Fixtures that the tests share: devices, model files, tensors."""

import contextlib
import os
from pathlib import Path

import numpy as np
import pytest
import vkrope

from definition import rounded


# The layer warns that debugging is enabled; tests/device/main.cpp has the same list.
EXPECTED_MESSAGES = {
    "UNASSIGNED-BestPractices-vkCreateInstance-specialuse-extension-debugging",
    "BestPractices-specialuse-extension",
    "BestPractices-deprecated-extension",
}


@contextlib.contextmanager
def checked_device(**options):
    """Opens a device with the validation layer, which must report nothing unexpected."""
    messages = []
    with vkrope.Device(
        os.environ.get("VKROPE_DEVICE", ""),
        validation=True,
        on_message=lambda is_error, identifier, text: messages.append((identifier, text)),
        **options,
    ) as opened:
        yield opened
    assert [message for message in messages if message[0] not in EXPECTED_MESSAGES] == []


@pytest.fixture(scope="session")
def device():
    """The device of nearly all tests."""
    with checked_device() as opened:
        yield opened


@pytest.fixture
def device_with_sets():
    """A device that binds descriptor sets, as if push descriptors were missing."""
    with checked_device(push_descriptors=False) as opened:
        yield opened


@pytest.fixture(scope="session")
def models():
    """The folder of model files."""
    return Path(os.environ["VKROPE_TEST_MODELS"])


@pytest.fixture(scope="session")
def llama(models):
    """The rotation of Llama 3.1, with 64 pairs, half_split, and scaling."""
    return vkrope.frequencies(models / "llama-3.1-8b.json")


@pytest.fixture
def tensor():
    """A function that makes a random tensor of a shape; uint16 contains bfloat16."""
    random = np.random.default_rng(20240917)

    def make(*shape, dtype=np.float32):
        return rounded(random.standard_normal(shape), np.dtype(dtype))

    return make
