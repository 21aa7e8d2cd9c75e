# SPDX-License-Identifier: MIT
"""What the tests share: a device, model files, tensors."""

import os
from pathlib import Path

import numpy as np
import pytest
import vkrope

from definition import rounded


# That debugging is on: as in tests/device/main.cpp.
EXPECTED_MESSAGES = {
    "UNASSIGNED-BestPractices-vkCreateInstance-specialuse-extension-debugging",
    "BestPractices-specialuse-extension",
    "BestPractices-deprecated-extension",
}


@pytest.fixture(scope="session", params=[True, False], ids=["push", "sets"])
def device(request):
    """With and without push descriptors, under the validation layer, which must say nothing."""
    messages = []
    with vkrope.Device(
        os.environ.get("VKROPE_DEVICE", ""),
        validation=True,
        push_descriptors=request.param,
        on_message=lambda is_error, identifier, text: messages.append((identifier, text)),
    ) as opened:
        yield opened
    assert [message for message in messages if message[0] not in EXPECTED_MESSAGES] == []


@pytest.fixture(scope="session")
def models():
    """The folder of model files."""
    return Path(os.environ["VKROPE_TEST_MODELS"])


@pytest.fixture(scope="session")
def llama(models):
    """Llama 3.1: 64 pairs, half_split, scaled."""
    return vkrope.frequencies(models / "llama-3.1-8b.json")


@pytest.fixture
def tensor():
    """Makes a tensor of a shape; uint16 holds bfloat16."""
    random = np.random.default_rng(20240917)

    def make(*shape, dtype=np.float32):
        return rounded(random.standard_normal(shape), np.dtype(dtype))

    return make
