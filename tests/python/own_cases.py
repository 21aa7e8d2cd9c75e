# SPDX-License-Identifier: MIT
"""Our own conformance cases: one or a few for each key of the formats."""

import functools
import math

import numpy as np

import case_maker
from case_maker import at_offset, base, cache, ids_of, inputs

i32, i64 = np.int32, np.int64


def t(*shape, **more):
    return {"shape": list(shape), **more}


def write_all(folder):
    """Writes all cases into a folder."""
    make = functools.partial(case_maker.make, folder)
    for write in (pair_layouts, views, tokens, axes, tables, scalings, norms, factors, caches,
                  packed_stores, paged_stores):
        write(make)


def pair_layouts(make):
    """Every layout and element type, pairing and direction; windows narrower than the head."""
    make("half_f32_bshd", at_offset(5), base(10000.0, 8), q=t(2, 3, 4, 8), k=t(2, 3, 2, 8),
         exact=True, extra={"notes": "free text", "quirk": "free text",
                            "live": {"q": "live_q.npy", "max_abs_difference": 0.0}})
    make("interleaved_f16_bhsd_inverse", at_offset(100), base(500.0, 6), q=t(2, 3, 4, 12),
         layout="BHSD", dtype="f16", pairing="interleaved", direction="inverse", factor=1.25,
         rotary_dim=6, offset=2, atol_files=True)
    make("read_interleaved_write_half_bf16_sbhd", at_offset(-3), base(10000.0, 8),
         q=t(4, 2, 3, 10), k=t(4, 2, 1, 10), layout="SBHD", dtype="bf16", pairing="interleaved",
         pairing_out="half", rotary_dim=8, offset=1, atol_files=True)
    make("exponent_dim_wider_than_window", at_offset(1000), base(1e6, 32), q=t(1, 5, 2, 16),
         rotary_dim=8)
    make("exponent_dim_narrower_than_window", at_offset(7), base(100.0, 10), q=t(1, 5, 2, 16))
    make("flattened_heads", at_offset(2), base(10000.0, 6), layout="BSE", dtype="f16",
         q=t(2, 3, 24, num_heads=4), k=t(2, 2, 3, 6, layout="BHSD"))
    offsets = np.array([70, 0, 33], i64)
    make("decode_without_sequence_axis", per_sequence(offsets, 1), base(10000.0, 8), layout="BHD",
         q=t(3, 4, 8), k=t(3, 8, layout="BD"))
    make("different_tokens_k_only_views", at_offset(9), base(10000.0, 4), q=t(1, 3, 1, 4),
         k=t(1, 2, 2, 4, view={"offset": 3, "strides": [0, 8, 4, 1]}, parent=[20]))
    odd = np.inf
    make("infinities_outside_the_window", at_offset(1), base(10.0, 4), rotary_dim=4, offset=1,
         q=t(1, 2, 1, 6, values=np.array([odd, 1.0, 2.0, 1.0, -1.0, -odd] * 2)), atol_files=True)
    make("nothing_expected", at_offset(1), base(10.0, 4), q=t(1, 2, 2, 4), expected=False)
    for gain in ("omit", "divide_out"):
        make(f"gain_{gain}", at_offset(4), base(10.0, 4), q=t(1, 3, 2, 4), direction="inverse",
             factor=1.5, gain=gain)


def per_sequence(offsets, tokens):
    return ({"kind": "per_batch_offset", "file": "offsets.npy"},
            (offsets[:, None] + np.arange(tokens)).astype(i64), {"offsets.npy": offsets})


def views(make):
    angles = base(10000.0, 8)
    make("views_transposed_and_broadcast", at_offset(11), angles, dtype="f16",
         q=t(2, 3, 2, 8, parent=[2, 2, 3, 9], view={"offset": 1, "strides": [54, 9, 27, 1]}),
         k=t(2, 3, 4, 8, parent=[2, 3, 8], view={"offset": 0, "strides": [24, 8, 0, 1]}))
    make("view_repeats_the_batch", per_sequence(np.array([5, 50, 500], i32), 2), angles,
         q=t(3, 2, 2, 8, parent=[2, 2, 8], view={"offset": 0, "strides": [0, 16, 8, 1]}))
    make("planes_of_packed_qkv", at_offset(0), angles, layout="BSPHD", q=t(2, 3, 3, 2, 8),
         planes_rotated=[0, 1], atol_files=True)
    make("planes_beside_the_channels_bf16", at_offset(3), base(10000.0, 4), layout="SBHPD",
         dtype="bf16", q=t(3, 2, 2, 4, 6), planes_rotated=[0, 2, 3], rotary_dim=4, atol_files=True)
    make("planes_of_a_view", at_offset(3), base(10.0, 4), layout="TPHD", planes_rotated=[1],
         q=t(4, 2, 2, 4, parent=[4, 2, 3, 5], view={"offset": 0, "strides": [30, 15, 5, 1]}))


def tokens(make):
    angles, one_row = base(10000.0, 8), [3, 1, 4, 1, 5]
    for name, axes_, ids in (("S_i64_5", "S", np.array(one_row, i64)),
                             ("BS_i32_10", "BS", np.array([one_row, [9, 2, 6, 5, 35]], i32)),
                             ("BS_i64_5", "BS", np.array([one_row], i64))):
        make(f"ids_{name}", ids_of(axes_, ids), angles, q=t(2, 5, 2, 8))
    make("ids_T_negative", ids_of("T", np.array([-1, 0, -700, 3, 12], i64)), angles, layout="THD",
         q=t(5, 2, 8))
    starts, offsets = np.array([0, 3, 3, 7], i32), np.array([10, 0, 200], i32)
    token, sequence = np.arange(7), np.array([0, 0, 0, 2, 2, 2, 2])
    ragged = token - starts[sequence]
    make("ragged_with_offsets", (
        {"kind": "varlen", "cu_seqlens": "cu_seqlens.npy", "seqlen_offsets": "offsets.npy",
         "resolved": "resolved.npy"}, ragged + offsets[sequence],
        {"cu_seqlens.npy": starts, "offsets.npy": offsets,
         "resolved.npy": (ragged + offsets[sequence]).astype(i64)}), angles, layout="THD",
         dtype="f16", q=t(7, 2, 8), k=t(7, 1, 8))
    make("ragged_in_the_document", (
        {"kind": "varlen", "cu_seqlens": starts.tolist(), "seqlen_offsets": 4}, ragged + 4, {}),
        angles, layout="THD", q=t(7, 2, 8))

    def shard(length, size, rank):
        """Positions of `length` local tokens: chunk `rank`, then chunk 2 size - 1 - rank."""
        chunks = np.arange(length * size).reshape(2 * size, -1)
        return chunks[[rank, 2 * size - 1 - rank]].ravel()

    start = np.array([7, 90], i32)
    make("zig_zag_shard", (
        {"kind": "context_parallel", "cp_size": 3, "cp_rank": 1, "start_positions": "start.npy"},
        start[:, None] + shard(4, 3, 1), {"start.npy": start}), angles, layout="SBHD",
        q=t(4, 2, 2, 8))
    ids = np.concatenate([shard(4, 2, 0), shard(8, 2, 0)])  # of whole sequences of 8 and 16 tokens
    make("zig_zag_shard_of_ragged_sequences", (
        {"kind": "context_parallel", "cp_size": 2, "cp_rank": 0, "start_positions": None,
         "cu_seqlens": "cu_seqlens.npy", "resolved": "resolved.npy"}, ids,
        {"cu_seqlens.npy": np.array([0, 8, 24], i32), "resolved.npy": ids.astype(i32)}), angles,
        layout="THD", q=t(12, 2, 8))
    # One rank has nothing to cut: lengths of 3 and 4.
    make("one_shard_of_odd_ragged_sequences", (
        {"kind": "context_parallel", "cp_size": 1, "cp_rank": 0, "cu_seqlens": [0, 3, 7]},
        np.array([0, 1, 2, 0, 1, 2, 3]), {}), angles, layout="THD", q=t(7, 2, 8))


def sections(mode, *sizes, **more):
    return {"mode": mode, "sizes": list(sizes), **more}


def axes(make):
    a, b, s = np.ogrid[:3, :2, :4]
    ids, angles = ids_of("ABS", (s * 3 + a * 50 + b * 7).astype(i64)), base(10000.0, 16)
    for name, of in (("sequential", sections("sequential", 2, 3, 3, leftover_axis=0)),
                     ("interleaved", sections("interleaved", 4, 2, 2, leftover_axis=0)),
                     ("repeated", sections("sequential", 1, 1, 1))):
        make(f"sections_{name}", ids, angles, q=t(2, 4, 2, 16), k=t(2, 4, 1, 16), sections=of)
    four = (np.arange(4)[:, None] * 11 + np.arange(3)).astype(i32)
    make("sections_interleaved_leftover_axis_3", ids_of("AT", four), angles, layout="THD",
         dtype="f16", q=t(3, 2, 16), sections=sections("interleaved", 2, 1, 1, 4, leftover_axis=3))
    two, again = np.array([[0, 0, 1, 1], [0, 1, 0, 1]], i64), [0, 1, 2, 3] * 2
    make("sections_independent", ids_of("AS", two), base(10000.0, 8, exponents=again),
         layout="BHSD", q=t(2, 2, 4, 16), sections=sections("independent", 4, 4, leftover_axis=0))
    divisors = np.array([1.0, 2.0, 1.5, 4.0, 3.0, 1.25, 8.0, 1.0])
    scaling = {"type": "ggml", "freq_scale": 0.5, "ext_factor": 0.0,
               "freq_factors": "freq_factors.npy"}
    grid = np.concatenate([two, 0 * two]).astype(i32)
    frequencies = np.array([10000.0 ** (-2.0 * e / 8) for e in again]) / divisors * 0.5
    make("sections_independent_with_divisors_of_pairs", ids_of("AS", grid),
         base(10000.0, 8, scaling, frequencies, freq_factors=divisors.astype("<f4")),
         q=t(1, 4, 2, 16), sections=sections("independent", 4, 4, 0, 0, leftover_axis=0))
    for name, order in (("in_order", (0, 1)), ("crossed", (1, 0)), ("of_one_axis", (1, 1))):
        windows = [{"offset": 6 * i, "rotary_dim": 6, "axis": axis} for i, axis in enumerate(order)]
        make(f"windows_{name}", ids_of("AS", two), base(100.0, 6), q=t(1, 4, 2, 14),
             windows=windows, pairing_out="interleaved")
    windows = [{"offset": 4 * i, "rotary_dim": 4, "axis": 0} for i in range(5)]
    make("windows_more_than_one_kernel_takes", ids_of("AS", two), base(100.0, 4),
         q=t(1, 4, 2, 22), windows=windows, pairing_out="interleaved")


def tables(make):
    cos, sin = (inputs(18, seed).reshape(6, 3) for seed in (77, 78))
    table = functools.partial(cache, cos, sin)
    for kind in ("f32", "f16", "bf16"):
        make(f"table_{kind}", at_offset(2), table(kind), dtype="f16", q=t(2, 3, 2, 8),
             rotary_dim=6, factor=2.0)
    rows_of_tokens = {"kind": "none"}
    make("table_for_each_token_of_full_width", (rows_of_tokens, np.arange(6).reshape(1, 2, 3), {}),
         table(rows="direct", width="full_first_half", shape=(2, 3, 6), columns=[0, 1, 2] * 2),
         dtype="bf16", layout="BHSD", q=t(2, 2, 3, 6))
    # Two rows after another are one with columns for six channels.
    for name, pairing, direction in (("half_split", "half", "forward"),
                                     ("interleaved_inverse", "interleaved", "inverse")):
        make(f"table_of_channels_{name}", at_offset(1),
             cache(cos.reshape(3, 6), sin.reshape(3, 6), width="full"),
             dtype="f16" if pairing == "half" else "f32", q=t(1, 2, 2, 8), k=t(1, 2, 1, 8),
             rotary_dim=6, offset=2, pairing=pairing, direction=direction, factor=0.5)
    of_tokens = rows_of_tokens, np.arange(6), {}
    make("table_for_each_token_of_all_sequences", of_tokens, table("f16", rows="direct"),
         q=t(2, 6, 2, 6), pairing="interleaved", gain="divide_out", factor=4.0)
    make("table_for_each_packed_token", of_tokens, table(rows="direct"), layout="THD",
         q=t(6, 2, 6), factor=0.5)
    make("table_for_k_alone_bf16_inverse", at_offset(1), table("bf16"), dtype="bf16",
         k=t(2, 3, 2, 10), rotary_dim=6, offset=3, direction="inverse", factor=0.75,
         atol_files=True)
    make("table_with_windows", ids_of("AS", np.array([[0, 1, 2], [5, 4, 3]], i32)), table(),
         dtype="f16", q=t(1, 3, 2, 8), windows=[{"offset": 0, "rotary_dim": 4, "axis": 0},
                                                {"offset": 5, "rotary_dim": 2, "axis": 1}])
    ids = np.array([[[0, 1, 2]], [[3, 4, 5]], [[5, 4, 3]]], i64)
    make("table_with_sections", ids_of("ABS", ids), table(), q=t(1, 3, 2, 6),
         sections=sections("sequential", 1, 1, 1, leftover_axis=0))


def scalings(make):
    """The formulas as the papers and the reference implementations state them, for 16 channels and
    base 10000."""
    n, b = 16, 10000.0
    plain = np.array([b ** (-2.0 * j / n) for j in range(n // 2)])

    def pair_with(turns, length):
        return n * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(b))

    def yarn(factor, length, fast, slow, truncate):
        low, high = pair_with(fast, length), pair_with(slow, length)
        if truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, n - 1)
        ramp = np.clip((np.arange(n // 2) - low) / (high - low), 0, 1)
        return plain / factor * ramp + plain * (1 - ramp)

    def llama3(factor, low, high, length):
        wave = length * plain / (2 * math.pi)  # original length in wavelengths
        smooth = np.clip((wave - low) / (high - low), 0, 1)
        return (1 - smooth) * plain / factor + smooth * plain

    def dynamic(factor, trained, length):
        scaled_base = b * (factor * length / trained - (factor - 1)) ** (n / (n - 2))
        return np.array([scaled_base ** (-2.0 * j / n) for j in range(n // 2)])

    divisors, attention = 1.0 + np.arange(n // 2), 0.1 * math.log(4) + 1
    original = {"factor": 4.0, "original_max_position_embeddings": 4096}
    betas = {"beta_fast": 32.0, "beta_slow": 1.0}
    ggml = {"freq_scale": 0.25, **betas, "n_ctx_orig": 4096}
    # name: the numbers of the scaling, the frequencies, the factor of the case, and the result's
    cases = {
        "linear": ({"factor": 4.0}, plain / 4, 1.0, None),
        "dynamic": ({"factor": 2.0, "max_position_embeddings": 64, "seq_len": 256},
                    dynamic(2.0, 64, 256), 1.0, None),
        "yarn": ({**original, **betas, "truncate": True}, yarn(4.0, 4096, 32.0, 1.0, True),
                 attention, None),
        "yarn_not_truncated": ({**original, **betas, "truncate": False},
                               yarn(4.0, 4096, 32.0, 1.0, False), attention, None),
        "longrope": ({"factors": divisors.tolist()}, plain / divisors, 1.125, None),
        "llama3": ({"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 512}, llama3(8.0, 1.0, 4.0, 512), 1.0,
                   None),
        "proportional": ({"factor": 2.0, "partial_rotary_factor": 0.25},
                         np.where(np.arange(n // 2) < 2, plain / 2, 0), 1.0, None),
        "ggml_linear_with_divisors": (
            {**ggml, "ext_factor": 0.0, "freq_factors": "freq_factors.npy"},
            plain / divisors * 0.25, 1.0, None),
        "ggml_yarn": ({**ggml, "ext_factor": 1.0, "freq_factors": None},
                      yarn(4.0, 4096, 32.0, 1.0, True), 1.0, attention),
        "te_interpolation": ({"type": "te_interp", "seq_scale": 0.125}, plain * 0.125, 1.0, None),
    }
    for name, (numbers, frequencies, factor, result) in cases.items():
        files = {"freq_factors": divisors.astype("<f4")} if numbers.get("freq_factors") else {}
        scaling = {"type": name.split("_")[0], **numbers}
        make(f"scaling_{name}", at_offset(300), base(b, n, scaling, frequencies, **files),
             q=t(1, 5, 2, n), factor=factor, largest_factor=result, exact=True)


# Steps around the rotation: "rope-case/2".


def parameter(shape, seed):
    """Multiples of 1/16 in (0, 2], which every element type holds."""
    return (abs(inputs(math.prod(shape), seed)) / 2 + 1 / 16).reshape(shape)


def rms(place="before", span="head", eps=1e-6, offset=0, kind="rms"):
    return {"kind": kind, "span": span, "place": place, "eps": eps, "weight_offset": offset}


def finish(make, name, rotary_dim=None, position=at_offset(3), **options):
    """A case of base 10000 whose window is as wide as the heads of its first tensor."""
    first = next(options[which] for which in "qkv" if which in options)
    make(name, position, base(10000.0, rotary_dim or first["shape"][-1]), rotary_dim=rotary_dim,
         **{"rotary_offset": 0, **options})


def norms(make):
    write = functools.partial(finish, make)
    write("finish_rms_of_heads_partial", rotary_dim=6, offset=2,
          q=t(2, 3, 4, 10, norm=rms(), weight=parameter([10], 1)),
          k=t(2, 3, 2, 10, norm=rms(eps=1e-3), weight=parameter([2, 10], 2)))
    write("finish_rms_of_tokens_clipped", clip=1.125,
          q=t(1, 4, 3, 8, norm=rms(span="token", eps=1e-5), weight=parameter([24], 3)),
          k=t(1, 4, 2, 8, norm=rms(span="token", eps=1e-5), weight=parameter([16], 4)),
          v=t(1, 4, 2, 8))
    one_and = {"norm": rms("after", offset=1), "weight": parameter([12], 5), "weight_dtype": "bf16"}
    write("finish_rms_after_one_plus_weight_bf16", layout="THD", dtype="bf16",
          pairing="interleaved", position=ids_of("T", np.array([0, 7, 100, 3, 2000], i64)),
          q=t(5, 2, 12, **one_and), k=t(5, 1, 12, **one_and))
    layer = rms(kind="layer", eps=1e-5)
    write("finish_layer_norm_with_bias", k=t(1, 3, 1, 16, norm=layer, weight=parameter([16], 8)),
          q=t(1, 3, 2, 16, norm=layer, weight=parameter([2, 16], 6),
              norm_bias=inputs(32, 7).reshape(2, 16)))
    write("finish_norm_of_v_f16", layout="BHSD", dtype="f16", q=t(2, 2, 3, 8, norm=rms()),
          k=t(2, 1, 3, 8, norm=rms()), v=t(2, 1, 3, 8, norm=rms()))
    write("finish_without_rotation", rotary_dim=0, dtype="f16", direction="inverse",
          q=t(2, 3, 4, 10, norm=rms(), weight=parameter([10], 1), scale_tokens=np.array(
              [[1.0, 1.5, 2.0], [0.5, 3.0, 1.25]])), k=t(2, 3, 2, 10, out="f32"))
    write("finish_v_alone", rotary_dim=4,
          v=t(1, 4, 2, 6, norm=rms(), weight=parameter([6], 9), scale=0.5))


def factors(make):
    finish(make, "finish_bias_and_scales",
           q=t(2, 3, 2, 8, bias=inputs(16, 10).reshape(2, 8), scale=0.125,
               scale_tokens=np.array([[1.0, 1.5, 2.0], [0.5, 3.0, 1.25]])),
           k=t(2, 3, 1, 8, bias=inputs(8, 11)), v=t(2, 3, 1, 8, bias=inputs(8, 12)))
    finish(make, "finish_other_types_from_one_buffer", layout="THD", **{
        name: t(3, heads, 8, file="qkv.npy", parent=[3, 32], out="f16",
                view={"offset": offset, "strides": [32, 8, 1]})
        for name, heads, offset in (("q", 2, 0), ("k", 1, 16), ("v", 1, 24))})


def pages(*shape, slots=(5, -1, 0, 3), layout="NPHD", size=2, file="slots.npy", dtype=i64):
    return {"slots": np.array(slots, dtype), "file": file, "page_size": size, "shape": shape,
            "layout": layout}


def caches(make):
    for layout in ("NPHD", "NHPD"):
        of = pages(3, 2, 2, 8, layout=layout)
        finish(make, f"finish_pages_{layout.lower()}", layout="THD",
               q=t(4, 2, 8, norm=rms(), weight=parameter([8], 13)),
               k=t(4, 2, 8, norm=rms(), out="f16", cache=of), v=t(4, 2, 8, out="f16", cache=of))
    finish(make, "finish_pages_of_v_alone", layout="THD", k=t(4, 2, 8, scale=2.0),
           v=t(4, 1, 8, cache=pages(3, 2, 1, 8)))


# Quantised outputs. V is not rotated: its inputs are multiples of 1/8, so that its codes meet ties,
# and no code may differ. The codes of Q and K come from values with rounding errors: of each tensor
# one may be off.
ONE_OF_400 = 0.0025


def made(floor, **more):
    return {"made": "row", "floor": floor, **more}


def packed_stores(make):
    write = functools.partial(finish, make)
    write("store_blocks", layout="THD", off_by_one=ONE_OF_400, q=t(5, 2, 64, out="q8_0"),
          k=t(5, 2, 64, out="q4_0"), v=t(5, 2, 64, out="q4_1"))
    write("store_blocks_bhsd_f16", layout="BHSD", dtype="f16", off_by_one=0.004, rotary_dim=16,
          q=t(2, 3, 3, 32, out="q5_0", norm=rms(), weight=parameter([32], 1)),
          k=t(2, 2, 3, 32, out="q5_1", scale=0.5), v=t(2, 1, 3, 64, out="q8_0"))
    write("store_scales_given_bf16", dtype="bf16", rotary_dim=6, offset=2, off_by_one=0.01,
          q=t(2, 3, 4, 10, out="e4m3fn"),
          k=t(2, 3, 2, 10, out="e5m2", store_scale={"given": 0.75}),
          v=t(2, 3, 2, 10, out="int8", store_scale={"given": [4.0, 100.5]}))
    write("store_scales_made", pairing="interleaved", off_by_one=0.0105,
          q=t(2, 3, 4, 16, out="e4m3fn", store_scale=made(1e-6)),
          k=t(2, 3, 1, 16, out="int8", store_scale=made(0.0)),
          v=t(2, 3, 2, 16, out="e5m2", store_scale=made(0.01)))
    write("store_scales_made_powers_of_two", off_by_one=0.0105,
          q=t(2, 3, 4, 16, out="int8", store_scale=made(0.0, power_of_two=True)),
          k=t(2, 3, 1, 16, out="e4m3fn", store_scale=made(1e-4, power_of_two=True)),
          v=t(2, 3, 2, 16, out="e4m3fn", store_scale=made(0.0, power_of_two=True)))
    write("store_exact_without_tolerance", layout="THD", v=t(4, 3, 64, out="q5_0", scale=0.375))


def paged_stores(make):
    write = functools.partial(finish, make)
    of = pages(3, 2, 2, 64)
    write("store_pages_nphd_blocks_hadamard", layout="THD", off_by_one=ONE_OF_400,
          q=t(4, 2, 64, norm=rms(), weight=parameter([64], 13), hadamard=64),
          k=t(4, 2, 64, norm=rms(), out="q5_1", hadamard=64, cache=of),
          v=t(4, 2, 64, out="q4_0", hadamard=4, cache=of))
    of = pages(3, 2, 2, 32, layout="NHPD")
    write("store_pages_nhpd_blocks", layout="THD", off_by_one=0.0055,
          k=t(4, 2, 32, out="q4_1", bias=inputs(64, 10).reshape(2, 32), cache=of),
          v=t(4, 2, 32, out="q5_0", cache=of))
    of = pages(3, 2, 1, 18)
    write("store_pages_nphd_given", layout="THD", off_by_one=0.02, q=t(4, 2, 18, out="f16"),
          k=t(4, 1, 18, out="e4m3fn", store_scale={"given": 3.0}, cache=of),
          v=t(4, 1, 18, out="int8", store_scale={"given": [31.0]}, cache=of))
    for layout in ("NPHD", "NHPD"):
        shape = [2, 4, 3, 20] if layout == "NPHD" else [2, 3, 4, 20]
        of = pages(*shape, slots=[[7, 2, -1], [4, 0, 6]], layout=layout, size=4)
        write(f"store_pages_{layout.lower()}_made", dtype="f16", off_by_one=0.0035,
              q=t(2, 3, 3, 20), k=t(2, 3, 3, 20, out="int8", store_scale=made(1e-6), cache=of),
              v=t(2, 3, 3, 20, out="e4m3fn", hadamard=4, store_scale=made(1e-6), cache=of))
    of = pages(3, 2, 2, 32)
    write("store_pages_without_rotation", layout="THD", rotary_dim=0, off_by_one=0.0055,
          k=t(4, 2, 32, out="q8_0", norm=rms(), weight=parameter([32], 14), cache=of),
          q=t(4, 2, 32), v=t(4, 2, 32, out="q8_0", cache=of))
    # K and V go to slots of their own, in one call and in two.
    write("store_pages_with_slots_of_v", layout="THD", off_by_one=0.0055,
          k=t(4, 2, 32, out="q8_0", cache=pages(3, 2, 2, 32)),
          v=t(4, 2, 32, out="q8_0", cache=pages(5, 2, 2, 32, slots=[9, 1, -1, 6],
                                                file="v_slots.npy")))
    write("store_pages_of_v_alone_made", layout="THD", rotary_dim=16, off_by_one=0.0055,
          k=t(4, 2, 32, out="q8_0", cache=pages(3, 2, 2, 32)),
          v=t(4, 2, 24, out="e5m2", store_scale=made(0.0), cache=pages(
              5, 2, 1, 24, slots=[1, 4, 0, -1], layout="NHPD", size=1, file="v_slots.npy",
              dtype=i32)))
