# SPDX-License-Identifier: MIT
"""Creates the module vkrope._declarations from vkrope.h.

The C compiler preprocesses the header. The module contains all declarations of vkrope's headers and
the types of Vulkan's headers that they refer to, so that the package always declares the same as
the header.

As a program, writes the module, or prints the fields of an operation for C++, which are committed:

    python3 host/python/declarations.py host/include/vkrope/vkrope.h vkrope/_declarations.py
    python3 host/python/declarations.py host/include/vkrope/vkrope.h > host/verify/fields.inc
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import cffi

_WORD = re.compile(r"[A-Za-z_]\w*")


def _preprocessed(header: Path, *macros: str) -> str:
    """Returns the header with line markers; the macros remove attributes."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    command = [*compiler, "-E", "-dD", "-std=c11", "-DVKROPE_STATIC", "-D__attribute__(x)="]
    try:
        return subprocess.run(
            [*command, *macros, f"-I{header.parent.parent}", str(header)],
            check=True, capture_output=True, text=True,
        ).stdout
    except FileNotFoundError:
        sys.exit(f"CC: '{compiler[0]}' is not there; a C compiler must read vkrope.h")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{header}: the C compiler cannot read it:\n{error.stderr}")


def _by_file(text: str) -> tuple[str, str]:
    """Returns the parts of the text that come from vkrope's and from Vulkan's headers."""
    parts = {"vkrope": [], "vulkan": []}
    part = None
    for line in text.splitlines():
        marker = re.match(r'# \d+ "(.*)"', line)
        if marker:
            path = Path(marker[1])
            part = parts.get(path.parent.name)
            if path.parent.name == "vk_video":
                part = None  # this package does not refer to video
        elif part is not None:
            part.append(line)
    return "\n".join(parts["vkrope"]), "\n".join(parts["vulkan"])


def _statements(text: str) -> list[str]:
    """Returns the declarations of a header, without directives and the braces of extern "C"."""
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    found, start, depth = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if character == ";" and depth == 0:
            found.append(" ".join(text[start : at + 1].split()))
            start = at + 1
    return found


def _declared_name(statement: str) -> str | None:
    """Returns the name that a typedef or struct of Vulkan declares."""
    pointer = re.match(r"typedef .*?\( ?\* ?(PFN_\w+) ?\)", statement)
    if pointer:
        return pointer[1]
    name = re.search(r"(\w+) ?;$", statement)
    return name[1] if name and statement.startswith(("typedef", "struct")) else None


def _referred_to(ours: str, vulkan: list[str]) -> list[str]:
    """Returns the declarations of Vulkan that `ours` needs, directly or not, in order."""
    by_name: dict[str, list[int]] = {}
    for index, statement in enumerate(vulkan):
        name = _declared_name(statement)
        if name:
            by_name.setdefault(name, []).append(index)
    needed: set[int] = set()
    unread = [ours]
    while unread:
        for word in set(_WORD.findall(unread.pop())):
            for index in by_name.pop(word, []):
                needed.add(index)
                unread.append(vulkan[index])
    return [vulkan[index] for index in sorted(needed)]


def _constants(text: str) -> list[str]:
    """Returns the macros of vkrope's headers that are plain integers."""
    found = re.findall(r"^#define (VKROPE_\w+) (\d+)$", text, flags=re.MULTILINE)
    return [f"#define {name} {value}" for name, value in found]


def declarations(header: Path, *macros: str) -> str:
    """Returns the C declarations of the header in the form that cffi reads."""
    ours, vulkan = _by_file(_preprocessed(header, *macros))
    statements = _statements(ours)
    needed = _referred_to("\n".join(statements), _statements(vulkan))
    return "\n".join([*_constants(ours), *needed, *statements]) + "\n"


def write_module(header: Path, target: Path) -> None:
    """Writes vkrope/_declarations.py, which needs no compiler and no parser when it is imported."""
    maker = cffi.FFI()
    maker.set_source("vkrope._declarations", None)
    maker.cdef(declarations(header))
    target.parent.mkdir(parents=True, exist_ok=True)
    maker.emit_python_code(str(target))


# The types of vkrope.h that an operation of host/verify contains.
_OF_AN_OPERATION = ["vkrope_angle_precision", "vkrope_kernel_info", "vkrope_call"]


def _words(enumeration: cffi.FFI.CType) -> str:
    """Returns the words of an enumeration in the order of their values, which start at 0."""
    words = [enumeration.elements[value] for value in range(len(enumeration.elements))]
    text = ", ".join([enumeration.cname, *(f'"{word}"' for word in words)])
    return textwrap.fill(f"VKROPE_WORDS({text})", 100, subsequent_indent="             ")


def _visits(struct: cffi.FFI.CType, names: list[str]) -> str:
    """Returns a C++ function that visits the fields of a struct."""
    head = f"void each_field({struct.cname}& of, const Visit& visit) {{"
    lines = [f'    visit("{name}", of.{name});' for name in names]
    return "\n".join(["template <class Visit>", head, *lines, "}"])


def fields(header: Path) -> str:
    """Returns functions of C++ that visit the fields of an operation, and words of enumerations.

    Pointers and handles of Vulkan are left out: an operation over host memory has none.
    """
    parsed = cffi.FFI()
    parsed.cdef(declarations(header))
    found: dict[str, str] = {}

    def add(of: cffi.FFI.CType) -> bool:
        """Adds what `of` refers to, then `of`. Returns false for a pointer."""
        while of.kind == "array":
            of = of.item
        if of.kind == "enum" and of.cname not in found:
            found[of.cname] = _words(of)
        if of.kind == "struct" and of.cname not in found:
            found[of.cname] = _visits(of, [name for name, field in of.fields if add(field.type)])
        return of.kind != "pointer"

    for name in _OF_AN_OPERATION:
        add(parsed.typeof(name))
    return "\n".join(["// SPDX-License-Identifier: MIT",
                      "// Made from vkrope.h by host/python/declarations.py, which says how.",
                      *found.values()]) + "\n"


if __name__ == "__main__":
    if len(sys.argv) == 3:
        write_module(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        print(fields(Path(sys.argv[1])), end="")
