# SPDX-License-Identifier: MIT
"""Tests tensors that commands read from .safetensors files: a tensor gives the same result as in a
.npy file, also from a file that is larger than the memory, and errors in a file or a name are
reported. The time limit detects hangs."""

import json
import os

import numpy as np
import pytest

from command import limited, rows, same, save, write_model

DTYPES = {"f4": "F32", "u2": "BF16", "i4": "I32", "u1": "U8"}
ROTATE = "rotate --model model.json --q q.npy --out-q out.npy"
CHECK = "check --model model.json"


def write_tensors(name, **arrays):
    """Writes the arrays one after the other. A broadcast scalar is a hole, which takes no space."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for key, array in arrays.items():
        header[key] = {"dtype": DTYPES[array.dtype.str[1:]], "shape": array.shape,
                       "data_offsets": [end, end := end + array.nbytes]}
    text = json.dumps(header).encode()
    with open(name, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.seek(array.nbytes, os.SEEK_CUR) if array.strides == (0,) else file.write(array)


@pytest.fixture
def inputs(vkrope, tensor):
    write_model()
    q, row = tensor(1, 3, 4, 64, dtype="u2"), np.rint(30 * tensor(1, 1, 1, 64))
    codes = row.astype("i1").view("u1")  # at position 0, where rows stay as they are
    save(q=q, row=row, c=codes)
    write_tensors("t.safetensors", a=np.zeros(1, "f4"), b=q)
    write_tensors("w.safetensors", w=np.zeros(64, "f4"))
    write_tensors("p.safetensors", p=np.arange(3, dtype="i4"))
    write_tensors("c.safetensors", c=codes)
    os.link("t.safetensors", "t.npy")
    return vkrope


@pytest.mark.parametrize("code, words, line", rows("""
5 | --q:*t.safetensors*2            | check --q t.safetensors --actual q.npy
5 | --q:*t.safetensors:c            | check --q t.safetensors:c --actual q.npy
5 | --q:*t.safetensors:a*(1,)*bshd  | check --q t.safetensors:a --actual q.npy
5 | --actual:*t.safetensors:a*(1,)  | check --q q.npy --actual t.safetensors:a
5 | --q:*c.safetensors*|u1          | check --q c.safetensors --actual q.npy
2 | --out-q:*out.safetensors        | q t.safetensors:b --out-q out.safetensors
2 | --out-q:*t.npy*--q              | q t.safetensors:b --out-q t.npy
5 | --q-norm:*t.safetensors:a*(1,)*(64,) | rotate --q-norm t.safetensors:a --norm-eps 1e-6
5 | --positions:*w.safetensors*<f4  | rotate --positions w.safetensors
3 |                                 | q t.safetensors:b --out-q out.npy
3 |                                 | rotate --q-norm w.safetensors --norm-eps 1e-6
3 |                                 | rotate --positions p.safetensors
""", check=CHECK, rotate=ROTATE, q="rotate --model model.json --q"))  # fmt: skip
def test_refused(inputs, code, words, line):
    inputs.refuse(code, words, line)


def test_check_reads_both_alike(inputs):
    for code, line, npy, tensor in [
        (1, f"{CHECK} --q {{0}} --actual {{0}} --json", "q.npy", "t.safetensors:b"),
        (0, f"{CHECK} --q row.npy --store q=int8 --actual {{}} --json", "c.npy", "c.safetensors:c"),
    ]:
        expected = inputs.expect(code, "", line.format(npy))
        assert inputs.expect(code, "", line.format(tensor)) == expected


def test_rotate_reads_both_alike(inputs, lavapipe):
    inputs.works(f"{ROTATE} --verify")
    inputs.works("rotate --model model.json --q t.safetensors:b --out-q two.npy --verify")
    assert same("out.npy", "two.npy")


def test_a_file_that_is_larger_than_the_memory(inputs):
    """Q is behind half a TiB of another tensor. The memory that a command needs for a tensor does
    not grow with the file."""
    try:
        hole = np.broadcast_to(np.uint8(0), 1 << 39)
        write_tensors("in.safetensors", hole=hole, q=np.load("q.npy"))
    except OSError:
        pytest.skip("this file system has no files of half a TiB")
    line = f"{CHECK} --q in.safetensors:{{0}} --actual in.safetensors:{{0}} --json"
    timeout = {"timeout": 60 * int(os.environ.get("VKROPE_TIME_FACTOR", 1))}
    expected = inputs.expect(1, "", f"{CHECK} --q q.npy --actual q.npy --json")
    assert inputs.expect(1, "", line.format("q"), **timeout) == expected
    limit = limited("AS", 400_000 << 10)
    if inputs("--version", **limit)[0]:
        pytest.skip("the command does not start within 400 MB: a sanitizer reserves terabytes")
    assert inputs.expect(1, "", line.format("q"), **limit, **timeout) == expected
    inputs.refuse(6, "memory", line.format("hole"), **limit, **timeout)
