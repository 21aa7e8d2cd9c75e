# SPDX-License-Identifier: MIT
"""Fixtures that the tests share: devices, model files, tensors."""

import contextlib
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from command import Command
from definition import rounded

# The tests of the command run it without the package.
with contextlib.suppress(ImportError):
    import vkrope as package


def pytest_addoption(parser):
    parser.addoption("--vkrope", help="the command; without it its tests are left out")
    parser.addoption("--lavapipe", default="", help="driver manifest of lavapipe")
    parser.addoption("--swiftshader", default="", help="driver manifest of SwiftShader")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("vkrope"):
        items[:] = [item for item in items if "vkrope" not in item.fixturenames]


def pytest_sessionfinish(session, exitstatus):
    if exitstatus == 0 and hasattr(session, "lacks_a_device"):
        session.exitstatus = 77  # for CTest, skipped


@pytest.fixture
def vkrope(request, monkeypatch):
    """The command, in a new folder and without a driver."""
    for name in "VKROPE_DEVICE", "NO_COLOR":
        monkeypatch.delenv(name, raising=False)
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.chdir(folder)
        yield Command(request.config.getoption("vkrope"), monkeypatch.setenv)


def driver(request, device):
    if not request.config.getoption(device):
        request.session.lacks_a_device = True
        pytest.skip(f"--{device} names no driver")
    return request.config.getoption(device)


@pytest.fixture
def lavapipe(request, vkrope):
    """The driver of lavapipe, which the command uses from here on."""
    manifest = driver(request, "lavapipe")
    vkrope.use(manifest)
    return manifest


@pytest.fixture
def swiftshader(request):
    """The driver of SwiftShader, the second device."""
    return driver(request, "swiftshader")


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
    with package.Device(
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
    return package.frequencies(models / "llama-3.1-8b.json")


@pytest.fixture
def tensor():
    """A function that makes a random tensor of a shape; uint16 contains bfloat16."""
    random = np.random.default_rng(20240917)

    def make(*shape, dtype=np.float32):
        return rounded(random.standard_normal(shape), np.dtype(dtype))

    return make
