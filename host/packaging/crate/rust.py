# SPDX-License-Identifier: MIT
"""Prints the declarations of a C header as a module of Rust.

    PYTHONPATH=host/python python3 host/packaging/crate/rust.py FOLDER/vkrope/HEADER

It has all that the header declares and the types of Vulkan that this refers to. Enumerations are
integers with constants. A handle of Vulkan is what `ash` has: a pointer for an object that receives
commands, else a number of 64 bits. Vulkan's enumerations have constants with `--vulkan-constants`.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from declarations import declarations
from pycparser import c_ast, c_parser

_TYPES = {"void": "c_void", "char": "c_char", "float": "f32", "double": "f64", "size_t": "usize",
          "int8_t": "i8", "int16_t": "i16", "int32_t": "i32", "int64_t": "i64",
          "uint8_t": "u8", "uint16_t": "u16", "uint32_t": "u32", "uint64_t": "u64"}
_KEYWORDS = {"in", "loop", "match", "move", "ref", "type", "use", "where"}
# Macros with a value that C writes otherwise than Rust.
_MACROS = {r"\d+": ("u32", r"\g<0>"), r"INT64_MIN": ("i64", "i64::MIN"),
           r"\(UINT64_C\((\d+)\) << (\d+)\)": ("u64", r"\1 << \2")}


def _name(name: str) -> str:
    return f"r#{name}" if name in _KEYWORDS else name


class Header:
    """The declarations of a header."""

    def __init__(self, header: Path) -> None:
        # With this macro every handle that is not a pointer on all systems is an uint64_t.
        text = declarations(header, "-DVK_USE_64_BIT_PTR_DEFINES=0")
        text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
        known = "".join(f"typedef int {name};\n" for name in _TYPES if name.endswith("_t"))
        self.ours = set(re.findall(r"^typedef enum (\w+)", header.read_text(), flags=re.MULTILINE))
        self.macros = re.findall(r"^#define (VKROPE_\w+) (.*?)(?: /\*.*)?$", "".join(
            path.read_text() for path in sorted(header.parent.glob("*.h"))), flags=re.MULTILINE)
        self.values: dict[str, int] = {}  # of all enumerators
        self.enums: dict[str, dict[str, int]] = {}
        self.structs: dict[str, list[c_ast.Decl]] = {}
        self.opaque: list[str] = []
        self.aliases: dict[str, c_ast.Node] = {}
        self.functions: list[c_ast.Decl] = []
        for node in c_parser.CParser().parse(known + text).ext:
            self._add(node)

    def _add(self, node: c_ast.Node) -> None:
        if isinstance(node.type, c_ast.FuncDecl):
            self.functions.append(node)
            return
        of = node.type.type if isinstance(node.type, c_ast.TypeDecl) else node.type
        if isinstance(of, c_ast.Enum) and of.values:
            self.enums[of.name] = self._enumerators(of)
        elif isinstance(of, c_ast.Struct):
            if of.decls:
                self.structs[of.name] = of.decls
            else:
                self.opaque.append(of.name)
        elif node.name not in _TYPES:
            self.aliases[node.name] = node.type

    def _enumerators(self, of: c_ast.Enum) -> dict[str, int]:
        found, value = {}, -1
        for entry in of.values.enumerators:
            value = self._value(entry.value) if entry.value else value + 1
            found[entry.name] = self.values[entry.name] = value
        return found

    def _value(self, node: c_ast.Node) -> int:
        if isinstance(node, c_ast.ID):
            return self.values[node.name]
        if isinstance(node, c_ast.UnaryOp):
            assert node.op == "-", node
            return -self._value(node.expr)
        return int(node.value.rstrip("uU"), 0)

    def _type(self, node: c_ast.Node, parameter: bool = False) -> str:
        """Returns the type in Rust; the array of a parameter is a pointer, as in C."""
        if isinstance(node, c_ast.ArrayDecl):
            if parameter:
                return self._pointer(node.type)
            return f"[{self._type(node.type)}; {self._value(node.dim)}]"
        if isinstance(node, c_ast.PtrDecl):
            return self._pointer(node.type)
        if isinstance(node.type, c_ast.IdentifierType):
            name = " ".join(node.type.names)
            return _TYPES.get(name, name)
        return node.type.name  # a struct or an enum

    def _pointer(self, to: c_ast.Node) -> str:
        if isinstance(to, c_ast.FuncDecl):
            # Only Vulkan's, which have the calling convention VKAPI_PTR.
            return f'Option<unsafe extern "system" fn({self._parameters(to)}){self._returns(to)}>'
        name = self._type(to)
        if name.endswith("_T"):
            name = "c_void"  # what a handle of Vulkan points to
        return f"*{'const' if 'const' in to.quals else 'mut'} {name}"

    def _parameters(self, of: c_ast.FuncDecl) -> str:
        given = [node for node in of.args.params if self._type(node.type) != "c_void"]
        return ", ".join(f"{_name(node.name)}: {self._type(node.type, True)}" for node in given)

    def _returns(self, of: c_ast.FuncDecl) -> str:
        returns = self._type(of.type)
        return "" if returns == "c_void" else f" -> {returns}"

    def fields(self, struct: str) -> list[str]:
        """Returns the names of the fields as Rust has them."""
        return [_name(field.name) for field in self.structs[struct]]

    def constants(self) -> list[tuple[str, str, str]]:
        """Returns name, type and value of the macros that are numbers."""
        return [(name, kind, re.sub(form, value, text))
                for name, text in self.macros
                for form, (kind, value) in _MACROS.items() if re.fullmatch(form, text)]

    def rust(self, vulkan_constants: bool) -> str:
        lines = ["use std::os::raw::{c_char, c_void};", ""]
        lines += [f"pub const {name}: {kind} = {value};" for name, kind, value in self.constants()]
        for name, node in self.aliases.items():
            lines.append(f"pub type {name} = {self._type(node)};")
        for enum, values in self.enums.items():
            # As in ash: flags are unsigned, Vulkan's other enumerations signed.
            signed = (enum not in self.ours and "FlagBits" not in enum) or min(values.values()) < 0
            lines.append(f"pub type {enum} = {'i32' if signed else 'u32'};")
            if enum in self.ours or vulkan_constants:
                lines += [f"pub const {name}: {enum} = {value};" for name, value in values.items()]
        for name in self.opaque:
            if not name.endswith("_T"):
                lines += ["#[repr(C)]", f"pub struct {name}([u8; 0]);"]
        for name, fields in self.structs.items():
            types = [self._type(field.type) for field in fields]
            # Rust 1.63 prints no pointer to a function of Vulkan.
            debug = "" if any("PFN_" in kind for kind in types) else ", Debug"
            lines += ["#[repr(C)]", f"#[derive(Clone, Copy{debug})]", f"pub struct {name} {{"]
            lines += [f"    pub {field}: {kind}," for field, kind in zip(self.fields(name), types)]
            lines += ["}", f"impl Default for {name} {{", "    fn default() -> Self {",
                      "        unsafe { std::mem::zeroed() }", "    }", "}"]
        lines.append('extern "C" {')
        for node in self.functions:
            lines.append(f"    pub fn {node.name}({self._parameters(node.type)})"
                         f"{self._returns(node.type)};")
        lines.append("}")
        return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("header", type=Path)
    parser.add_argument("--vulkan-constants", action="store_true")
    arguments = parser.parse_args()
    print(Header(arguments.header).rust(arguments.vulkan_constants), end="")
