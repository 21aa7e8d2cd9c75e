# SPDX-License-Identifier: MIT
"""Tests the reader of conformance cases (cases.py): our own cases pass, and one change makes each
of them an error, a failure or unsupported, with a reason."""

import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest

import cases
import own_cases
from case_comparison import compare_codes
from case_device import Tensor
from case_document import BLOCKS, Folder, Refusal, describe

GONE = object()  # a key or file that is removed


@pytest.fixture(scope="session")
def own(tmp_path_factory):
    """The folder with all own cases."""
    folder = tmp_path_factory.mktemp("own")
    own_cases.write_all(folder)
    return folder


@pytest.fixture
def changed(own, tmp_path):
    """A function that copies an own case with changes: of keys of its document, "angles.base", and
    of files: arrays, bytes, functions of the old array, or functions of the path."""
    def copy(name, changes=(), to="case"):
        folder = tmp_path / to
        folder.mkdir(parents=True)
        for file in (own / name).iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        before = (folder / "case.json").read_text()
        document = json.loads(before)
        for key, value in dict(changes).items():
            if key.endswith((".npy", ".json")):
                change_file(folder / key, value)
                continue
            of, *path = document, *key.split(".")
            for part in path[:-1]:
                of = of.setdefault(part, {})
            of.pop(path[-1], None)
            if value is not GONE:
                of[path[-1]] = value
        if "case.json" not in dict(changes):
            (folder / "case.json").write_text(json.dumps(document))
        files = [key for key in changes if key.endswith((".npy", ".json"))]
        assert files or not changes or document != json.loads(before)
        return folder
    return copy


def change_file(path, value):
    if isinstance(value, np.ndarray):
        np.save(path, value)
    elif isinstance(value, bytes):
        path.write_bytes(value)
    elif value is GONE:
        path.unlink()
    else:
        value(path)


def in_order(words, text):
    at = 0
    for word in words.split("*"):
        assert word in text[at:], (words, text)
        at = text.index(word, at) + len(word)
    return True


# Rows: status, words of the reason in order, changes, name of the case (half_f32_bshd).


def at(key, value):
    return {key: value}


def zeros(dtype, *shape):
    return np.zeros(shape, dtype)


def header_of(dtype, shape, data=b""):
    """Bytes of an array of any shape, whose data are these."""
    def write(path):
        with open(path, "wb") as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": dtype, "fortran_order": False, "shape": shape})
            file.write(data)
    return write


def header(text):
    """Bytes of an array with this text as its header."""
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text.encode() + bytes(768)


def twice(path):
    path.write_bytes(2 * path.read_bytes())


def cut(size):
    return lambda path: path.write_bytes(path.read_bytes()[:size])


def linked(to):
    def link(path):
        path.unlink()
        path.symlink_to(to)
    return link


def fifo(path):
    path.unlink()
    os.mkfifo(path)


def flip(byte, *masks):
    """Flips bits of bytes of the data."""
    def change(path):
        array = np.load(path)
        flat = array.reshape(-1).view(np.uint8)
        for place, mask in enumerate(masks, byte):
            flat[place] ^= mask
        np.save(path, array)
    return change


def view(shape, offset, strides):
    return {"tensors.q.shape": shape, "tensors.q.view": {"offset": offset, "strides": strides}}


WINDOW = {"offset": 0, "rotary_dim": 6}
VIEWS, RAGGED = "views_transposed_and_broadcast", "ragged_in_the_document"
ORDERED, PLANES, SECTIONS = "windows_in_order", "planes_of_packed_qkv", "sections_sequential"
SHAPE = [2, 3, 2, 8]

ROWS = [
    ("unsupported", "pairing*quarter", at("pairing", "quarter")),
    # Paths.
    *(("error", "id is", at("id", name)) for name in (
        "../../escaped", "/escaped", "a/../b", "a//b", "./a", "a/", "..", "", "a\\..\\b", "a\nb",
        "a\x9b31mb", "a\0b", 600 * "0", 5)),
    ("error", "id is missing", at("id", GONE)),
    *(("error", key, at(key, file)) for key in ("tensors.q.file", "expected.k")
      for file in ("../q.npy", "/etc/hostname", "a/../../q.npy")),
    ("error", "missing.npy", at("tensors.q.file", "missing.npy")),
    ("error", "q.npy*link", at("q.npy", linked("/etc/hostname"))),
    # Text that is not a valid document.
    *(("error", "", at("case.json", text)) for text in (
        b"", b"{", b"[]", b"3", b"null", b'{"id": "a", "id": "b"}')),
    ("error", "JSON", at("case.json", b'{"id": "\377\376"}')),
    ("error", "nested", at("case.json", b'{"id": ' + 100000 * b"[")),
    ("unsupported", "5000000*bytes", at("case.json", b'{"id": "x", "notes": "'.ljust(5000000))),
    ("error", "regular", at("case.json", fifo)),
    ("error", "link", at("case.json", linked("/etc/hostname"))),
    # Keys and words that the format does not define.
    *(("unsupported", f"unknown key {key}", at(key, 1))
      for key in ("phase", "angles.phase", "tensors.v", "tolerance.ulp", "positions.axes")),
    *(("unsupported", f"{key}*'{word}'", at(key, word)) for key, word in (
        ("schema", "rope-case/3"), ("direction", "sideways"), ("dtype", "f64"), ("layout", "BSHX"),
        ("layout", "BSHH"), ("layout", "BSDH"), ("layout", ""), ("positions.kind", "alibi"),
        ("angles.kind", "spline"))),
    ("unsupported", "scaling.type*'spiral'", at("angles.scaling", {"type": "spiral"})),
    ("unsupported", "angles.rows*'diagonal'", at("angles.rows", "diagonal"), "table_f32"),
    ("unsupported", "sections.mode*'random'", at("sections.mode", "random"), SECTIONS),
    ("unsupported", "rotary_dim is 7*even", at("rotary_dim", 7)),
    ("unsupported", "attention_factor is -1", at("attention_factor", -1.0)),
    *(("unsupported", f"{value}*int32", at("positions.value", value))
      for value in (2147483648, 9000000000000)),
    ("unsupported", "3 axes without sections", at("sections", None), SECTIONS),
    ("unsupported", "unknown key x0", {f"x{i}": 1 for i in range(8)}),
    # Values.
    *(("error", "positions.value is", at("positions.value", value))
      for value in (5.5, 1e300, 18446744073709551615, True, "5")),
    ("error", "angles.base*large", at("angles.base", "large")),
    ("error", "angles.base is NaN*finite", at("angles.base", float("nan"))),
    ("error", "angles is an array*object", at("angles", [])),
    ("error", "rotary_dim is missing", at("rotary_dim", GONE)),
    ("error", "tolerance is missing", {"tolerance": GONE, "tolerance_exact_angles": GONE}),
    ("error", "tolerance.atol is -1", at("tolerance.atol", -1)),
    ("error", "tolerance.atol is missing", at("tolerance.atol", GONE)),
    ("error", "head_dim is 9*8", at("head_dim", 9)),
    ("error", "planes_rotated", at("planes_rotated", [0])),
    ("error", "planes_rotated is []*P", at("planes_rotated", GONE), PLANES),
    ("error", "planes_rotated*7*3", at("planes_rotated", [0, 7]), PLANES),
    ("error", "planes_rotated*twice", at("planes_rotated", [1, 1]), PLANES),
    ("error", "axis 9*2", at("windows", [WINDOW, {"offset": 8, "rotary_dim": 6, "axis": 9}]),
     ORDERED),
    ("error", "num_heads", at("tensors.q.num_heads", 5), "flattened_heads"),
    ("error", "sections over 4 axes*3", at("sections.sizes", [2, 3, 2, 1]), SECTIONS),
    ("error", "sections.sizes", at("sections.sizes", []), SECTIONS),
    ("error", "cp_rank is 3", at("positions.cp_rank", 3), "zig_zag_shard"),
    # Sizes that do not match the files.
    ("error", "(2, 3, 4, 8)*tensors.q.shape*(2, 3, 8, 4)", at("tensors.q.shape", [2, 3, 8, 4])),
    ("error", "layout*4*3", at("tensors.q.shape", [2, 3, 32])),
    ("error", "tensors.q.shape[0]", at("tensors.q.shape", [2**63 - 1, 3, 4, 8])),
    ("unsupported", "tensors.q*16789504", at("tensors.q.shape", [1000000, 1000000, 4, 8])),
    ("error", "tensors.q.shape[0] is -2", at("tensors.q.shape", [-2, 3, 4, 8])),
    *(("error", "view reaches outside the 108", view(SHAPE, *of), VIEWS) for of in (
        (2, [54, 9, 27, 1]), (-1, [54, 9, 27, 1]), (1, [55, 9, 27, 1]),
        (1, [2**63 - 1, 9, 27, 1]), (2**63 - 1, [54, 9, 27, 1]), (0, [-54, 9, 27, 1]))),
    ("error", "view.strides*3*4", view(SHAPE, 1, [54, 9, 27]), VIEWS),
    ("unsupported", "channels", view(SHAPE, 0, [54, 9, 4, 2]), VIEWS),
    ("unsupported", "negative", view(SHAPE, 55, [-54, 9, 27, 1]), VIEWS),
    ("unsupported", "row", view(SHAPE, 0, [54, 0, 27, 1]), VIEWS),
    # A view may repeat at most 64 n + 2^24 elements of a file with n elements; here n is 108.
    ("unsupported", "108*16784128", view([1000000, 1000000, 2, 8], 0, [0, 0, 0, 1]), VIEWS),
    ("unsupported", "19200000*108*16784128", view([1, 12, 200000, 8], 0, [0, 9, 0, 1]), VIEWS),
    *(("unsupported", f"{2**size}*0 counts as 1*108*16784128", view(shape, 0, [0, 0, 0, 1]), VIEWS)
      for size, shape in ((27, [1, 2**24, 0, 8]), (62, [0, 2**31, 2**31, 1]))),
    ("unsupported", "32212254720*0 counts as 1", {  # 15 * 2^31
        "tensors.q.shape": [3, 5, 0], "tensors.q.num_heads": 2**31, "q.npy": zeros("<f2", 3, 5, 0)},
     "flattened_heads"),
    *(("error", "q.npy", at("q.npy", change)) for change in (
        cut(0), cut(9), cut(127), cut(-1), twice, header_of("<f4", (10**9, 10**9), bytes(16)),
        header_of("<f4", (2**62, 2**62), bytes(16)),
        # Texts at which numpy and the parser of Python raise errors of many types.
        header("{'descr': '<f4'"), header("{1: 2, 'a': 3}"), header(5000 * "-" + "1"),
        header("{'descr': ',(', 'fortran_order': False, 'shape': (2,)}"),
        header("{'descr': [('a', 5)], 'fortran_order': False, 'shape': (2,)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"))),
    ("error", "q.npy*<f2*<f4", at("q.npy", zeros("<f2", 2, 3, 4, 8))),
    ("error", "q.npy*fortran", at("q.npy", np.asfortranarray(zeros("<f4", 2, 3, 4, 8)))),
    ("unsupported", ">f4", at("q.npy", zeros(">f4", 2, 3, 4, 8))),
    ("unsupported", "<c8", at("q.npy", zeros("<c8", 2, 3, 4, 8))),
    ("error", "expected_q.npy*(1, 1, 2, 2)", at("expected_q.npy", zeros("<f4", 1, 1, 2, 2))),
    ("error", "expected_q.npy*<i4", at("expected_q.npy", zeros("<i4", 2, 3, 4, 8))),
    ("error", "sin.npy*(6, 6)*(6, 3)", at("sin.npy", zeros("<f4", 6, 6)), "table_f32"),
    ("unsupported", "cos.npy*<f8*<f4", {"cos.npy": zeros("<f8", 6, 3),
                                        "sin.npy": zeros("<f8", 6, 3)}, "table_f32"),
    ("error", "cos and sin*(6, 2)*3", {"cos.npy": zeros("<f4", 6, 2),
                                       "sin.npy": zeros("<f4", 6, 2)}, "table_f32"),
    ("error", "positions*(3, 1, 5)*4", at("positions.npy", zeros("<i8", 3, 1, 5)), SECTIONS),
    ("unsupported", "<f4*<i4", at("positions.npy", zeros("<f4", 3, 2, 4)), SECTIONS),
    ("error", "cu_seqlens is [0]", at("cu_seqlens.npy", zeros("<i4", 1)), "ragged_with_offsets"),
    ("error", "2 offsets for 3", at("offsets.npy", zeros("<i4", 2)), "ragged_with_offsets"),
    ("error", "3 offsets for 2", at("start.npy", zeros("<i4", 3)), "zig_zag_shard"),
    # Starts of sequences that contradict each other or the tensors.
    *(("error", "cu_seqlens is*0 to 7", at("positions.cu_seqlens", starts), RAGGED) for starts in (
        [1, 3, 3, 7], [-3, 3, 3, 7], [0, 3, 2, 7], [0, 3, 3, 6], [0, 3, 3, 8],
        [0, 3, 3, 2**63 - 1])),
    *(("error", f"cu_seqlens is*{last}*24*4", at("positions.cu_seqlens", starts),
       "zig_zag_shard_of_ragged_sequences") for last, starts in ((24, [0, 6, 24]),
                                                                  (12, [0, 8, 12]))),
    # Counts of entries that each cost a pass over the tensors or a comparison for each pair.
    ("unsupported", "windows*65*64", at("windows", 65 * [WINDOW]), ORDERED),
    ("unsupported", "windows*100000*64", at("windows", 100000 * [WINDOW]), ORDERED),
    ("fail", "q[0, 0, 0, 1]", at("windows", 64 * [WINDOW]), ORDERED),
    ("unsupported", "71680000*64*112*16784384", {
        "windows": 64 * [WINDOW], **view([1, 4, 20000, 14], 0, [0, 28, 0, 1])}, ORDERED),
    ("unsupported", "planes_rotated*257*256", at("planes_rotated", 257 * [1]), PLANES),
    ("unsupported", "sections.sizes*257*256", at("sections.sizes", 257 * [1]), SECTIONS),
    ("unsupported", "1048576", at("freq_factors.npy", zeros("<f4", 500000)),
     "scaling_ggml_linear_with_divisors"),
    ("computed", "no expected output", at("positions.value", 2000000000), "nothing_expected"),
    ("computed", "no expected output", view([20000, 1, 1, 4], 0, [0, 4, 4, 1]), "nothing_expected"),
    ("unsupported", "1073741824", at("q.npy", lambda path: os.truncate(path, 3 << 30))),
    # Expected values that the device does not compute.
    ("fail", "q[0, 0, 0, 0] is*within 1.19e-06", at("expected_q.npy", flip(1, 64))),
    ("fail", "k[1, 2, 1, 7]", at("expected_k.npy", flip(4 * 95 + 2, 128))),
    ("fail", "q[0, 0, 0, 0] is inf, expected*bit for bit", at("expected_q.npy", flip(0, 1)),
     "infinities_outside_the_window"),
]

EXACT, GIVEN, MADE = "store_exact_without_tolerance", "store_scales_given_bf16", "store_scales_made"
PAGES, BLOCKS_NHPD = "store_pages_nhpd_made", "store_pages_nhpd_blocks"
NONE_OF_Q = zeros("<f4", 2, 0, 4, 16)
STORES = [
    # Codes. Without a tolerance no code may differ; with a tolerance, some may differ by one step.
    ("fail", "v[0, 0, 6]*code*768*0", at("expected_v.npy", flip(6, 1)), EXACT),
    ("fail", "v[0, 1, 15]*code 9", at("expected_v.npy", flip(47, 2)), EXACT),
    ("fail", "v[3, 2, 22]*scale", at("expected_v.npy", flip(506, 0, 1)), EXACT),
    ("pass", "", at("expected_v.npy", flip(4, 1)), "store_blocks"),
    ("fail", "v[0, 0, 4]*code 0*2 of 640*1", at("expected_v.npy", flip(4, 1, 1)), "store_blocks"),
    ("fail", "v[0, 0, 4]*code 0", at("expected_v.npy", flip(4, 4)), "store_blocks"),
    ("fail", "v[0, 0, 0]*scale*1 of 20*0", at("expected_v.npy", flip(0, 1)), "store_blocks"),
    ("fail", "v[0, 0, 2]*minimum", at("expected_v.npy", flip(2, 0, 1)), "store_blocks"),
    *(("fail", f"{name}[0, 0, 0, 0]*code", at(f"expected_{name}.npy", flip(0, 16)), case)
      for name, case in (("v", GIVEN), ("k", GIVEN), ("q", MADE))),
    # Rows without a slot: of the six slots in pages of four rows, rows 1, 3 and 5 have none.
    ("fail", "k[0, 0, 1, 2]*byte*no slot", at("expected_k.npy", flip(22, 1)), PAGES),
    ("fail", "no slot", at("expected_v.npy", flip(60, 1)), "store_pages_nphd_made"),
    # Scales, in the order of tokens; token 2 has no slot.
    ("fail", "k_scales[0, 0, 1]", at("expected_k_scales.npy", flip(7, 1)), PAGES),
    ("fail", "v_scales[1, 2, 0]", at("expected_v_scales.npy", flip(62, 1)),
     "store_pages_nphd_made"),
    ("fail", "q_scales[0, 0, 0]", at("expected_q_scales.npy", flip(2, 2)), MADE),
    ("fail", "k_scales[0, 2, 0]*nan", at("expected_k_scales.npy", flip(27, 64)), PAGES),
    ("fail", "v_scales[0, 1]", at("expected_v_scales.npy", flip(7, 1)),
     "store_pages_of_v_alone_made"),
    ("error", "expected_k_scales.npy", at("expected_k_scales.npy", GONE), PAGES),
    ("error", "expected_k_scales.npy*(2, 3, 2)*(2, 3, 3)",
     at("expected_k_scales.npy", zeros("<f4", 2, 3, 2)), PAGES),
    ("error", "expected_k_scales.npy*<i4", at("expected_k_scales.npy", zeros("<i4", 2, 3, 3)),
     PAGES),
    # Steps.
    *(("error", f"hadamard.v is {block}*power of two", at("hadamard.v", block), PAGES)
      for block in (3, 0, 4.5)),
    ("error", "hadamard.v is 8*20", at("hadamard.v", 8), PAGES),
    ("unsupported", "hadamard.o", at("hadamard.o", 4), PAGES),
    ("unsupported", "hadamard.v*1024*512", {
        "tensors.v.shape": [1, 1, 1024], "head_dim": 1024, "rotary_dim": 1024, "hadamard.v": 1024,
        "v.npy": zeros("<f4", 1, 1, 1024)}, EXACT),
    ("error", "clip is 0", at("clip", 0), PAGES),
    ("fail", "v[*1, expected*1.125", {"clip": 1, "expected.q": GONE, "expected.k": GONE},
     "finish_rms_of_tokens_clipped"),
    ("error", "bias.k has no tensor", at("bias.k", "v.npy"), EXACT),
    ("unsupported", "cache.q", at("cache.q", {}), PAGES),
    # Types and their scales.
    ("unsupported", "out_dtype.q*'q6_K'", at("out_dtype.q", "q6_K"), "store_blocks"),
    ("error", "out_dtype.v*32*24", {"out_dtype.v": "q8_0", "store_scale": GONE},
     "store_pages_of_v_alone_made"),
    ("error", "out_dtype.k*1*0", {
        "tensors.k.shape": [1, 3, 2, 0], "k.npy": zeros("<u2", 1, 3, 2, 0), "head_dim": GONE,
        "expected.k": GONE}, GIVEN),
    ("error", "store_scale.k*q4_0", at("store_scale.k", {"given": 2.0}), "store_blocks"),
    ("error", "store_scale.k*out_dtype.k", at("out_dtype.k", GONE), GIVEN),
    ("error", "store_scale.q", at("store_scale.q", {"given": 2.0}), "store_pages_of_v_alone_made"),
    *((status, words, at("store_scale.k", scale), GIVEN) for status, words, scale in (
        ("error", "store_scale.k.given*store_scale.k.made", {}),
        ("error", "store_scale.k.given*store_scale.k.made", {"floor": 0.5}),
        ("error", "store_scale.k.given*store_scale.k.made", {"given": 2.0, "made": "row"}),
        ("error", "store_scale.k is 2.0", 2.0),
        ("error", "store_scale.k.given is true", {"given": True}),
        ("error", "store_scale.k.given is NaN", {"given": float("nan")}),
        ("unsupported", "store_scale*0", {"given": 0}),
        ("unsupported", "store_scale.k.floor", {"given": 2.0, "floor": 0.5}),
        ("unsupported", "store_scale.k.made*'tensor'", {"made": "tensor"}),
        ("error", "store_scale.k.made is 1", {"made": 1}),
        ("error", "store_scale.k.floor is -0.5", {"made": "row", "floor": -0.5}),
        ("error", "missing.npy", {"given": "missing.npy"}),
        ("error", "store_scale.k.given", {"given": "../scale.npy"}))),
    ("error", "store_scale_v.npy*(1,)*(2,)", at("store_scale_v.npy", zeros("<f4", 1)), GIVEN),
    ("error", "store_scale_v.npy*<i4", at("store_scale_v.npy", zeros("<i4", 2)), GIVEN),
    ("unsupported", "store_scale*0", at("store_scale_v.npy", zeros("<f4", 2)), GIVEN),
    # No tokens, and so no call: the scales are empty, the caches unchanged.
    ("computed", "empty", {
        "tensors": {"q": {"file": "q.npy", "shape": [2, 0, 4, 16]}}, "q.npy": NONE_OF_Q,
        "store_scale": {"q": {"made": "row"}}, "out_dtype": {"q": "int8"},
        "expected": {"q": "expected_q.npy"}, "expected_q.npy": NONE_OF_Q.astype(np.uint8),
        **dict.fromkeys(["expected_q_scales.npy", "atol_q_scales.npy"], zeros("<f4", 2, 0, 4))},
     MADE),
    ("pass", "", {
        "tensors.k.shape": [0, 2, 32], "tensors.v.shape": [0, 2, 24],
        "k.npy": zeros("<f4", 0, 2, 32), "v.npy": zeros("<f4", 0, 2, 24),
        "slots.npy": zeros("<i8", 0), "v_slots.npy": zeros("<i4", 0),
        "expected.k": "k_cache.npy", "expected.v": "v_cache.npy",
        **dict.fromkeys(["expected_v_scales.npy", "atol_v_scales.npy"], zeros("<f4", 0, 2))},
     "store_pages_of_v_alone_made"),
    # Caches and expected outputs of bytes.
    ("error", "cache.k.shape (3, 2, 2, 32)*NHPD*20", at("cache.k.shape", [3, 2, 2, 32]),
     BLOCKS_NHPD),
    ("error", "cache.k.slots has 5*4", at("cache.k.shape", [2, 2, 2, 20]), BLOCKS_NHPD),
    ("error", "k_cache.npy*<f2*|u1", at("k_cache.npy", zeros("<f2", 3, 2, 2, 20)), BLOCKS_NHPD),
    ("error", "expected_k.npy*<f2*|u1", at("expected_k.npy", zeros("<f2", 3, 2, 2, 20)),
     BLOCKS_NHPD),
    ("error", "expected_v.npy*(5, 2, 64)*(5, 2, 40)", at("expected_v.npy", zeros("|u1", 5, 2, 64)),
     "store_blocks"),
    # Tolerances.
    *((status, f"tolerance.codes{words}", at("tolerance.codes", codes), "store_blocks")
      for status, words, codes in (
          ("error", ".off_by_one is -0.5", {"off_by_one": -0.5}),
          ("error", ".off_by_one is 2", {"off_by_one": 2}), ("error", ".off_by_one", {}),
          ("error", " is 0.5", 0.5),
          ("unsupported", ".off_by_two", {"off_by_one": 0, "off_by_two": 0}))),
    ("pass", "", {"tolerance.atol": GONE, "tolerance.rtol": GONE}, "store_blocks"),
    ("pass", "", at("tolerance", GONE), EXACT),
]


@pytest.mark.parametrize("row", ROWS + STORES, ids=lambda row: row[1][:40].replace("/", ".") or "-")
def test_one_change(device, changed, tmp_path, row):
    status, words, changes, *name = row
    folder = changed(*(name or ["half_f32_bshd"]), changes)
    before = sorted(tmp_path.rglob("*"))
    result = cases.run(device, Folder(str(folder), str(folder)))
    assert result["status"] == status and in_order(words, result["reason"])
    assert result["code"] == (5 if status == "error" else 0)
    assert sorted(tmp_path.rglob("*")) == before


def test_any_other_exception_is_an_error(changed, monkeypatch):
    folder = str(changed("half_f32_bshd"))
    monkeypatch.setattr(cases, "describe", lambda document: {}["gone"])
    result = cases.run(None, Folder(folder, folder))
    assert [result[key] for key in ("status", "reason", "code")] == ["error", "KeyError: 'gone'", 5]


def test_own_cases(device, own, tmp_path):
    """Unchanged they pass, so that a change is the reason for each refusal above."""
    results = [cases.run(device, folder, tmp_path) for folder in cases.find(str(own))]
    others = {of["id"]: of["status"] for of in results if of["status"] != "pass"}
    assert others == {"own/nothing_expected": "computed"} and len(results) == 83
    for name in ("store_blocks", PAGES):  # V has exact values
        np.testing.assert_array_equal(np.load(tmp_path / "own" / name / "actual_v.npy"),
                                      np.load(own / name / "expected_v.npy"))
    made = tmp_path / "own" / PAGES
    np.testing.assert_array_equal(np.load(made / "actual_v_scales.npy"),
                                  np.load(own / PAGES / "expected_v_scales.npy"))
    assert np.load(made / "actual_k_scales.npy").shape == (2, 3, 3)
    assert not (made / "actual_q_scales.npy").exists()


def program(*arguments, **environment):
    """Runs the program. Returns its exit code, its lines and its one line of error, if any."""
    done = subprocess.run([sys.executable, cases.__file__, *map(str, arguments)], text=True,
                          capture_output=True, env={**os.environ, **environment})
    assert done.stderr == "" or done.stderr.count("\n") == 1 or done.returncode == 2, done.stderr
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_program(changed, tmp_path):
    good = changed("half_f32_bshd", to="good/a")
    report = tmp_path / "report.json"
    assert program(good, "--write-outputs", tmp_path / "out", "--json", report) == (
        0, ["pass         own/half_f32_bshd  2.38e-07"], "")
    assert (tmp_path / "out/own/half_f32_bshd/actual_k.npy").exists()
    (result,) = json.loads(report.read_text())["cases"]
    assert result["id"] == "own/half_f32_bshd" and result["max_error"] == 2.0**-22
    # Another case with the same id, cases that fail, err, are unsupported or have no result.
    changed("half_f32_bshd", to="good/b")
    code, lines, error = program(tmp_path / "good")
    assert code == 5 and [line.split()[0] for line in lines] == ["pass", "error"]
    assert "same id" in lines[1] and "of 2 checks, 1 pass, 1 error" in error
    changed("nothing_expected", to="nothing")
    assert program(tmp_path / "nothing")[0] == 0
    changed("table_f32", {"pairing": "quarter"}, to="unsupported")
    assert program(tmp_path / "unsupported")[0] == 1
    changed("table_f32", {"expected_q.npy": flip(3, 1)}, to="fail")
    assert program(tmp_path / "nothing", tmp_path / "fail", tmp_path / "good")[0] == 1
    (tmp_path / "empty").mkdir()
    for arguments, code, words in (
            (["missing"], 5, "missing"), ([tmp_path / "empty"], 5, "empty' has no case.json"),
            ([], 2, "DIR"), ([good, "--device", "no such device"], 3, "no such device"),
            ([good, "--write-outputs", report], 5, "--write-outputs"),
            ([good, "--json", tmp_path], 5, "--json"),
            ([good, "--json", tmp_path / "missing/report"], 5, "--json")):
        got, _, error = program(*arguments)
        assert got == code and words in error
    # Outputs do not follow a symbolic link.
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/own").symlink_to(tmp_path / "empty")
    code, lines, _ = program(good, "--write-outputs", tmp_path / "linked")
    assert code == 5 and "link" in lines[0] and not list((tmp_path / "empty").iterdir())


def test_streams_and_full_disks(changed, tmp_path):
    good = changed("half_f32_bshd", to="good")

    def shell(script, *arguments):
        done = subprocess.run(["sh", "-c", script, "sh", sys.executable, cases.__file__, good,
                               *arguments], text=True, capture_output=True, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    code, text, lines = shell('"$@"', "--json", "-")
    assert code == 0 and json.loads(text)["cases"][0]["status"] == "pass"
    assert lines.startswith("pass ") and lines.count("\n") == 1
    # A stdout that is closed or full.
    code, _, error = shell('{ "$@"; echo $? >&2; } | true')
    assert error.endswith("Broken pipe\n5\n") and error.count("\n") == 2
    for arguments in ((), ("--json", "-")):
        code, _, error = shell('exec "$@" >/dev/full', *arguments)
        assert code == 5 and error.endswith("No space left on device\n")
    # Where files cannot grow, the old ones stay as they were.
    report = tmp_path / "report.json"
    outputs = tmp_path / "out/own/half_f32_bshd"
    outputs.mkdir(parents=True)
    for file in (report, outputs / "actual_q.npy"):
        file.write_text("old")
        code, text, error = shell('ulimit -f 0; exec "$@"', *(
            ("--json", report) if file == report else ("--write-outputs", "out")))
        assert code == 5 and "cannot be written: File too large" in text + error
        assert file.read_text() == "old" and list(file.parent.glob("*.part")) == []


def compared(kind, actual, expected, share=None, written=(True,)):
    rows = [np.array(of, np.uint8).reshape(len(written), -1) for of in (actual, expected)]
    return compare_codes(kind, *rows, np.array(written), share)


def block(kind, count=2):
    """Bytes of blocks whose codes are neither the lowest nor the highest."""
    return np.tile(np.arange(BLOCKS[kind][1], dtype=np.uint8) % 7 + 0x22, count)


KINDS = [kind for kind, (channels, _) in BLOCKS.items() if channels > 1]
FIRST_CODE = {"q8_0": 2, "q4_0": 2, "q4_1": 4, "q5_0": 6, "q5_1": 8}


@pytest.mark.parametrize("kind", BLOCKS)
def test_equal_bytes_are_right(kind):
    same = block(kind) if kind in KINDS else np.arange(256)
    assert compared(kind, same, same) == (0, 0, "")


# actual and expected codes: one step apart in the order of the values, or not
@pytest.mark.parametrize("kind, actual, expected, is_step", [
    ("int8", 0xFF, 0x00, True), ("int8", 0x80, 0x81, True), ("int8", 0x7F, 0x80, False),
    ("int8", 0x01, 0xFF, False), ("int8", 5, 7, False),
    *((kind, *row) for kind in ("e4m3fn", "e5m2") for row in (
        (0x31, 0x30, True), (0xB1, 0xB0, True), (0x80, 0x01, True), (0x81, 0x00, True),
        (0x81, 0x01, False), (0x32, 0x30, False), (0xB0, 0x30, False))),
    ("e4m3fn", 0x7E, 0x7D, True), ("e4m3fn", 0x7F, 0x7E, False),  # a NaN
    ("e5m2", 0x7C, 0x7B, True), ("e5m2", 0x7D, 0x7C, False)])  # infinity, a NaN
def test_a_step_is_in_the_order_of_values(kind, actual, expected, is_step):
    assert compared(kind, [actual], [expected])[0] == 1  # without a tolerance no byte may differ
    assert compared(kind, [actual], [expected], 1)[0] == 1 - is_step


@pytest.mark.parametrize("kind, actual, expected, share, count", [
    # Zeros of both signs are two codes, unless some may differ; any NaN is any other.
    *((kind, *row) for kind in ("e4m3fn", "e5m2")
      for row in ((0x80, 0, None, 1), (0x80, 0, 0.0, 0), (0x81, 0, 0.0, 1))),
    ("int8", 0x80, 0, 1, 1), ("e4m3fn", 0x7F, 0xFF, None, 0), ("e5m2", 0x7D, 0xFF, None, 0),
    ("e5m2", 0x7C, 0xFC, None, 1), ("int8", 0x7F, 0xFF, None, 1)])
def test_zeros_and_nans(kind, actual, expected, share, count):
    assert compared(kind, [actual], [expected], share)[0] == count


@pytest.mark.parametrize("kind", KINDS)
def test_codes_are_found_where_they_lie(kind):
    expected, (_, size) = block(kind), BLOCKS[kind]
    actual, at_code = expected.copy(), size + FIRST_CODE[kind]
    actual[at_code] ^= 1
    count, byte, text = compared(kind, actual, expected)
    assert (count, byte) == (1, at_code) and in_order("code 0*1 of 64*0", text)
    assert compared(kind, actual, expected, 1 / 64)[0] == 0
    assert compared(kind, actual, expected, 0.99 / 64)[0] == 1
    actual = expected.copy()
    actual[-1] ^= 0x40  # by four or more
    count, byte, text = compared(kind, actual, expected, 1)
    assert (count, byte) == (1, len(actual) - 1) and "code 31" in text


def changed_bytes(kind, *changes):
    actual = block(kind)
    for byte, mask in changes:
        actual[byte] ^= mask
    return actual


@pytest.mark.parametrize("kind, changes, share, count, words", [
    ("q5_0", [(6, 0x10)], None, 1, "code 16"), ("q5_0", [(6, 0x11)], None, 2, "code 0"),
    ("q5_0", [(6, 0x11)], 2 / 64, 0, ""), ("q5_0", [(3, 2)], 1, 1, "code 9"),
    # A scale or a minimum may be one unit off in the same share of blocks.
    ("q4_1", [(0, 1), (2, 1)], 0.5, 0, ""), ("q4_1", [(0, 1), (2, 1)], 0.49, 1, "scale*1 of 2*0"),
    ("q4_1", [(0, 1), (2, 1), (20, 1)], 0.5, 2, "scale"),
    ("q4_1", [(0, 1), (2, 1), (20, 1)], 1, 0, ""), ("q4_1", [(22, 4)], 1, 1, "minimum")])
def test_parts_of_blocks(kind, changes, share, count, words):
    got, _, text = compared(kind, changed_bytes(kind, *changes), block(kind), share)
    assert got == count and in_order(words, text)


def test_from_15_to_16_all_five_bits_change():
    actual, expected = block("q5_0"), block("q5_0")
    actual[[6, 2]] = actual[6] & 0xF0 | 0x0F, actual[2] & 0xFE
    expected[[6, 2]] = expected[6] & 0xF0, expected[2] | 1
    assert compared("q5_0", actual, expected, 1 / 64)[0] == 0


def test_a_share_allows_its_codes_rounded_down():
    zeros_, ones = np.zeros(100, np.uint8), np.repeat(np.uint8([1, 0]), [29, 71])
    assert compared("int8", ones, zeros_, 0.29)[0] == 0
    assert compared("int8", ones, zeros_, 0.2899)[0] == 29
    ones[50] = 2
    count, byte, text = compared("int8", ones, zeros_, 0.29)
    assert (count, byte) == (1, 50) and in_order("code*2*0", text)


def test_zeros_of_both_signs_are_one_scale():
    expected, positive = np.zeros(18, np.uint8), np.zeros(18, np.uint8)
    expected[1] = 0x80
    assert compared("q4_0", positive, expected)[0] == 0
    positive[0] = 1  # the smallest number
    assert compared("q4_0", positive, expected)[0] == 1
    assert compared("q4_0", positive, expected, 1)[0] == 0


def test_rows_that_no_slot_names():
    expected, written = np.full(12, 5), [True, False, True]
    actual = expected.copy()
    actual[3] = 6
    assert compared("int8", actual, expected, 0.125, written)[0] == 0  # one of 8 codes
    assert compared("int8", actual, expected, 0.124, written)[0] == 1
    actual[[3, 7]] = 5, 6
    count, byte, text = compared("int8", actual, expected, 1, written)
    assert (count, byte) == (1, 7) and in_order("0x06*0x05*slot", text)
    assert compared("e4m3fn", [0x7F], [0xFF], 1, [False])[0] == 1  # bytes, not codes


JUNK = [None, True, 0, -1, 1, 3, 2**31, 2**64, 0.5, 1e300, float("nan"), "", "S", "half", "q.npy",
        "../q.npy", "none", "explicit", [], [1], [[]], [None], ["a"], {}, {"kind": "base"}]


def mutated(value, chance):
    """Returns a document with junk in place of a value, or as another key."""
    if not isinstance(value, (dict, list)) or not value or chance.random() < 0.1:
        return chance.choice(JUNK)
    copy = value.copy()
    key = chance.choice(list(copy) if isinstance(copy, dict) else range(len(copy)))
    if isinstance(copy, dict) and chance.random() < 0.1:
        copy[chance.choice(["layout", "kind", "v", "junk"])] = chance.choice(JUNK)
    copy[key] = mutated(copy[key], chance)
    return copy


def with_other_axes(document, chance):
    name, tensor = chance.choice([*document["tensors"].items()])
    shape = [chance.choice([n, 0, 2**31, 2**31]) for n in tensor["shape"]]
    return {**document, "tensors": {**document["tensors"], name: {**tensor, "shape": shape}}}


def mutated_header(data, chance):
    """Returns an array with a few other characters in its header."""
    data = bytearray(data)
    junk = b"\0\1\n (){}[],:'\"\\#-019<|fuO\xff"
    for _ in range(chance.randint(1, 3)):
        data[chance.randrange(90)] = chance.choice(junk)
    return bytes(data)


def test_mutated_headers(own, tmp_path):
    chance, read = random.Random(7), 0
    for file in sorted(own.glob("*/*.npy")):
        for _ in range(10):
            (tmp_path / "a.npy").write_bytes(mutated_header(file.read_bytes(), chance))
            try:
                Folder(str(tmp_path), str(tmp_path)).array("a.npy")
                read += 1
            except Refusal:
                pass
    assert 20 < read < 1000


def test_mutated_documents(own):
    """Each is read, with its tensors, or refused, and ends in no other way."""
    chance, read = random.Random(7), 0
    documents = {path.parent: json.loads(path.read_text())
                 for path in sorted(own.glob("*/case.json"))}
    for _ in range(40):
        for folder, document in documents.items():
            try:
                change = chance.choice([mutated, with_other_axes])
                case = describe(change(document, chance))
                for name in case.tensors:
                    Tensor(Folder(str(folder), str(folder)), case, name)
                read += 1
            except Refusal:
                pass
    assert 50 < read < 3000
