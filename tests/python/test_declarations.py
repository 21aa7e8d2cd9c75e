# SPDX-License-Identifier: MIT
"""Checks that the package declares the contents of vkrope.h."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from vkrope._declarations import ffi
from vkrope._library import lib

HEADER = Path(os.environ["VKROPE_HEADER"])
STRUCTS = sorted(set(re.findall(r"^} (vkrope_\w+);", HEADER.read_text(), re.MULTILINE)))


def load(path):
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def maker():
    """The module that makes vkrope._declarations."""
    return load(Path(os.environ["VKROPE_PYTHON"]) / "declarations.py")


def test_every_function_of_the_header_is_there():
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    functions = re.findall(r"VKROPE_API [^;(]*?(vkrope_\w+)\(", text)
    assert len(functions) > 60
    for name in functions:
        assert callable(getattr(lib, name))


def test_sizes_are_those_of_the_compiler(tmp_path):
    """The package computes sizes and offsets of fields itself, and the library is compiled."""
    assert len(STRUCTS) > 30
    checks = []
    for name in STRUCTS:
        checks.append(f"sizeof({name}) == {ffi.sizeof(name)}")
        kind = ffi.typeof(name)
        if kind.kind == "struct":
            checks += [f"offsetof({name}, {field}) == {of.offset}" for field, of in kind.fields]
    assert len(checks) > 300
    lines = [f'_Static_assert({check}, "{check}");' for check in checks]
    source = tmp_path / "sizes.c"
    source.write_text("\n".join(["#include <vkrope/vkrope.h>", *lines, ""]))
    include = HEADER.parent.parent
    subprocess.run(["cc", "-std=c11", f"-I{include}", "-fsyntax-only", source], check=True)


def test_what_the_header_gains_the_package_gains(maker, tmp_path):
    (tmp_path / "vkrope").mkdir()
    header = tmp_path / "vkrope" / "vkrope.h"
    shutil.copy(HEADER.parent / "version.h", header.parent)
    text = HEADER.read_text()
    text = text.replace("} vkrope_call;", "    VkImageTiling gained;\n} vkrope_call;")
    end = "#ifdef __cplusplus\n}"
    text = text.replace(end, "VKROPE_API int vkrope_gained(void);\n" + end)
    header.write_text(text)
    target = tmp_path / "_declarations.py"
    maker.write_module(header, target)
    gained = load(target).ffi
    fields = dict(gained.typeof("vkrope_call").fields)
    assert "gained" in fields and "VkImageTiling" in fields["gained"].type.cname
    assert "gained" not in dict(ffi.typeof("vkrope_call").fields)
    assert "vkrope_gained" in maker.declarations(header)


def test_operations_have_the_fields_of_the_header(maker):
    made = Path(os.environ["VKROPE_PYTHON"]).parent / "verify" / "fields.inc"
    assert made.read_text() == maker.fields(HEADER), "declarations.py says how to make it again"


def test_a_header_that_cannot_be_read(maker, tmp_path):
    header = tmp_path / "vkrope" / "vkrope.h"
    header.parent.mkdir()
    header.write_text('#include "nowhere.h"\n')
    with pytest.raises(SystemExit, match="the C compiler cannot read it"):
        maker.declarations(header)
    with pytest.raises(SystemExit, match="the C compiler cannot read it"):
        maker.declarations(tmp_path / "missing.h")
