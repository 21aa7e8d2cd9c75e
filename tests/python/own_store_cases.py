# SPDX-License-Identifier: MIT
"""Writes the cases "store_...": quantised outputs, their scales and Hadamard steps, with expected
bytes from the definitions of the types. Nothing here comes from the library.

V is not rotated: its inputs are multiples of 1/8, so that its codes meet ties, and no code may
differ. The codes of Q and K come from values with rounding errors: of each tensor one may be off.
"""
from case_files import inputs
from own_finish_cases import make, parameter, rms

ONE_OF_400 = 0.0025


def store(name, tensors, **options):
    make(name, tensors, prefix="store_", **options)


def packed():
    store("blocks", {
        "q": {"shape": [5, 2, 64], "out": "q8_0"}, "k": {"shape": [5, 2, 64], "out": "q4_0"},
        "v": {"shape": [5, 2, 64], "out": "q4_1"}}, layout="THD", off_by_one=ONE_OF_400)
    store("blocks_bhsd_f16", {
        "q": {"shape": [2, 3, 3, 32], "out": "q5_0", "norm": rms(),
              "weight": [[32], parameter([32], 1)]},
        "k": {"shape": [2, 2, 3, 32], "out": "q5_1", "scale": 0.5},
        "v": {"shape": [2, 1, 3, 64], "out": "q8_0"}}, layout="BHSD", dtype="f16", off_by_one=0.004,
          rotary_dim=16)
    store("scales_given_bf16", {
        "q": {"shape": [2, 3, 4, 10], "out": "e4m3fn"},
        "k": {"shape": [2, 3, 2, 10], "out": "e5m2", "store_scale": {"given": 0.75}},
        "v": {"shape": [2, 3, 2, 10], "out": "int8", "store_scale": {"given": [4.0, 100.5]}}},
        dtype="bf16", rotary_dim=6, rotary_offset=2, off_by_one=0.01)
    store("scales_made", {
        "q": {"shape": [2, 3, 4, 16], "out": "e4m3fn", "store_scale": {"made": "row",
                                                                       "floor": 1e-6}},
        "k": {"shape": [2, 3, 1, 16], "out": "int8", "store_scale": {"made": "row", "floor": 0.0}},
        "v": {"shape": [2, 3, 2, 16], "out": "e5m2", "store_scale": {"made": "row",
                                                                     "floor": 0.01}}},
        pairing="interleaved", off_by_one=0.0105)
    store("scales_made_powers_of_two", {
        "q": {"shape": [2, 3, 4, 16], "out": "int8",
              "store_scale": {"made": "row", "floor": 0.0, "power_of_two": True}},
        "k": {"shape": [2, 3, 1, 16], "out": "e4m3fn",
              "store_scale": {"made": "row", "floor": 1e-4, "power_of_two": True}},
        "v": {"shape": [2, 3, 2, 16], "out": "e4m3fn",
              "store_scale": {"made": "row", "floor": 0.0, "power_of_two": True}}},
        off_by_one=0.0105)
    store("exact_without_tolerance", {
        "v": {"shape": [4, 3, 64], "out": "q5_0", "scale": 0.375}}, layout="THD")


def pages():
    slots = [5, -1, 0, 3]
    one_row = {"slots": slots, "slots_file": "slots.npy", "page_size": 2}
    of_rows = [("slots.npy", "i64", [4], slots)]
    store("pages_nphd_blocks_hadamard", {
        "q": {"shape": [4, 2, 64], "norm": rms(), "weight": [[64], parameter([64], 13)],
              "hadamard": 64},
        "k": {"shape": [4, 2, 64], "norm": rms(), "out": "q5_1", "hadamard": 64,
              "cache": dict(one_row, shape=[3, 2, 2, 64], layout="NPHD")},
        "v": {"shape": [4, 2, 64], "out": "q4_0", "hadamard": 4,
              "cache": dict(one_row, shape=[3, 2, 2, 64], layout="NPHD")}},
        layout="THD", files=of_rows, off_by_one=ONE_OF_400)
    store("pages_nhpd_blocks", {
        "k": {"shape": [4, 2, 32], "out": "q4_1", "bias": [[2, 32], inputs(64, 10)],
              "cache": dict(one_row, shape=[3, 2, 2, 32], layout="NHPD")},
        "v": {"shape": [4, 2, 32], "out": "q5_0", "cache": dict(one_row, shape=[3, 2, 2, 32],
                                                                layout="NHPD")}},
        layout="THD", files=of_rows, off_by_one=0.0055)
    store("pages_nphd_given", {
        "q": {"shape": [4, 2, 18], "out": "f16"},
        "k": {"shape": [4, 1, 18], "out": "e4m3fn", "store_scale": {"given": 3.0},
              "cache": dict(one_row, shape=[3, 2, 1, 18], layout="NPHD")},
        "v": {"shape": [4, 1, 18], "out": "int8", "store_scale": {"given": [31.0]},
              "cache": dict(one_row, shape=[3, 2, 1, 18], layout="NPHD")}}, layout="THD",
          files=of_rows, off_by_one=0.02)
    slots = [7, 2, -1, 4, 0, 6]
    of_both = [("slots.npy", "i64", [2, 3], slots)]
    rows = {"slots": slots, "slots_file": "slots.npy", "page_size": 4}
    for layout in ("NPHD", "NHPD"):
        shape = [2, 4, 3, 20] if layout == "NPHD" else [2, 3, 4, 20]
        store(f"pages_{layout.lower()}_made", {
            "q": {"shape": [2, 3, 3, 20]},
            "k": {"shape": [2, 3, 3, 20], "out": "int8",
                  "store_scale": {"made": "row", "floor": 1e-6},
                  "cache": dict(rows, shape=shape, layout=layout)},
            "v": {"shape": [2, 3, 3, 20], "out": "e4m3fn", "hadamard": 4,
                  "store_scale": {"made": "row", "floor": 1e-6},
                  "cache": dict(rows, shape=shape, layout=layout)}}, dtype="f16", files=of_both,
              off_by_one=0.0035)
    # K and V go to slots of their own.
    others = [1, 4, 0, -1]
    store("pages_of_v_alone_made", {
        "k": {"shape": [4, 2, 32], "out": "q8_0", "cache": dict(one_row, shape=[3, 2, 2, 32],
                                                                layout="NPHD")},
        "v": {"shape": [4, 2, 24], "out": "e5m2", "store_scale": {"made": "row", "floor": 0.0},
              "cache": {"slots": others, "slots_file": "v_slots.npy", "page_size": 1,
                        "shape": [5, 2, 1, 24], "layout": "NHPD"}}},
        layout="THD", files=of_rows + [("v_slots.npy", "i32", [4], others)], rotary_dim=16,
          off_by_one=0.0055)


def write():
    packed()
    pages()
