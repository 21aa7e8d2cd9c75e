# SPDX-License-Identifier: MIT
"""Builds the wheel from the vkrope installed in VKROPE_PREFIX."""

import os
import re
import shutil
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

sys.path.insert(0, str(Path(__file__).parent))
from declarations import write_module  # noqa: E402


def _installed(*patterns: str) -> Path:
    """Returns the only installed file that matches a pattern."""
    prefix = os.environ.get("VKROPE_PREFIX")
    if not prefix:
        sys.exit("VKROPE_PREFIX: missing; it must be the folder that vkrope is installed in")
    for pattern in patterns:
        found = sorted(Path(prefix).glob(pattern))
        if found:
            return found[0]
    sys.exit(f"VKROPE_PREFIX: '{prefix}' has no {patterns[0]}; install vkrope there first")


def _header() -> Path:
    return _installed("include/vkrope/vkrope.h")


def _version() -> str:
    text = _installed("include/vkrope/version.h").read_text()
    parts = [re.search(rf"VKROPE_VERSION_{part} (\d+)", text)[1] for part in
             ("MAJOR", "MINOR", "PATCH")]
    return ".".join(parts)


class BuildWithLibrary(build_py):
    """Adds the declarations of the header, the library and the command."""

    def run(self) -> None:
        super().run()
        package = Path(self.build_lib) / "vkrope"
        write_module(_header(), package / "_declarations.py")
        library = _installed("lib*/libvkrope.so.*.*.*", "lib*/*/libvkrope.so.*.*.*")
        shutil.copy(library, package / "libvkrope.so")
        shutil.copy(_installed("bin/vkrope"), package / "vkrope")


class PlatformWheel(bdist_wheel):
    """Tags the wheel for any Python 3 on this platform, because no module is compiled."""

    def get_tag(self) -> tuple:
        return ("py3", "none", super().get_tag()[2])


class PlatformDistribution(Distribution):
    """Marks the files as specific to a platform, although setuptools compiles no file."""

    def has_ext_modules(self) -> bool:
        return True


setup(
    version=_version(),
    distclass=PlatformDistribution,
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel},
)
