# SPDX-License-Identifier: MIT
"""Prints a program in C or in Rust that prints size and alignment of every struct of a header,
offset and size of every field, and the value of every constant.

    layouts.py c|rust HEADER
"""

import sys
from pathlib import Path

from rust import Header

C = """#include <stdalign.h>
#include <stdio.h>
#include "vkrope/vkrope.h"
#define OF(what) printf(#what " %zu %zu\\n", sizeof(what), alignof(what));
#define FIELD(of, field, name) \\
    printf(#of ".%s %zu %zu\\n", name, offsetof(of, field), sizeof(((of*)0)->field));
#define CONSTANT(name) printf(#name " %lld\\n", (long long)name);
int main(void) {"""
RUST = """use std::mem::{align_of, size_of, MaybeUninit};
use vkrope::sys::*;
macro_rules! OF {
    ($what:ident) => {
        println!("{} {} {}", stringify!($what), size_of::<$what>(), align_of::<$what>());
    };
}
fn size<T>(_: *const T) -> usize {
    size_of::<T>()
}
macro_rules! FIELD {
    ($of:ident, $field:ident, $name:expr) => {
        let of = MaybeUninit::<$of>::uninit();
        let at = unsafe { std::ptr::addr_of!((*of.as_ptr()).$field) };
        let offset = at as usize - of.as_ptr() as usize;
        println!("{}.{} {} {}", stringify!($of), $name, offset, size(at));
    };
}
macro_rules! CONSTANT {
    ($name:ident) => {
        println!("{} {}", stringify!($name), $name as i64);
    };
}
fn main() {"""

in_c = sys.argv[1] == "c"
header = Header(Path(sys.argv[2]))
mark = "" if in_c else "!"
print(C if in_c else RUST)
for struct in header.structs:
    print(f"OF{mark}({struct});")
    for field in header.fields(struct):
        plain = field.replace("r#", "")
        print(f'FIELD{mark}({struct}, {plain if in_c else field}, "{plain}");')
for enum in sorted(header.ours):
    print(f"OF{mark}({enum});")
    for constant in header.enums[enum]:
        print(f"CONSTANT{mark}({constant});")
for constant, _, _ in header.constants():
    print(f"CONSTANT{mark}({constant});")
print("}")
