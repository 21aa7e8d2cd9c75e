#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times RoPE in PyTorch with the shapes of vkrope-bench: the formula of Hugging
Face transformers, eager and compiled, a Triton kernel, and a copy of the same bytes.

    bench/pytorch.py [--vkrope build/bench/DEVICE.json] [--json FILE]

Runs on the first CUDA device or else on the processor; the output names it. With --vkrope, each
row also has the time of the same row of vkrope-bench and the ratio of both. Every variant is
checked against float64 before it is timed. A variant that cannot run is named and skipped. Exit
code 77: PyTorch is missing."""
import argparse
import json
import statistics
import sys
import time

try:
    import torch
except ImportError:
    print("bench/pytorch.py: skipped: PyTorch is not installed")
    sys.exit(77)
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# name: sequences, tokens, query heads, key heads. All have 128 channels (bench/shapes.cpp).
SHAPES = {
    "prefill_llama3_8b": (1, 4096, 32, 8),
    "prefill_llama3_70b": (1, 4096, 64, 8),
    "decode_b64": (64, 1, 32, 8),
    "decode_b256": (256, 1, 32, 8),
}
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
CHANNELS = 128
BASE = 500000.0
REPETITIONS = 15


def angles(tokens, device):
    """Returns cos and sin in float64, [tokens, channels / 2]."""
    pair = torch.arange(CHANNELS // 2, dtype=torch.float64, device=device)
    position = torch.arange(tokens, dtype=torch.float64, device=device)
    angle = position[:, None] * BASE ** (-2 * pair / CHANNELS)
    return angle.cos(), angle.sin()


def rotate_half(x, cos, sin):
    """x [sequences, heads, tokens, channels]; cos and sin [tokens, channels]."""
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


def formula(q, k, cos, sin):
    return rotate_half(q, cos, sin), rotate_half(k, cos, sin)


if triton is not None:

    @triton.jit
    def rotate_row(source, target, cos, sin, tokens, HALF: tl.constexpr):
        """Rotates one row: loads both halves, rotates them in float32 and stores them."""
        row = tl.program_id(0)
        token = row % tokens
        pair = tl.arange(0, HALF)
        c = tl.load(cos + token * HALF + pair)
        s = tl.load(sin + token * HALF + pair)
        first = source + row.to(tl.int64) * 2 * HALF + pair
        low = tl.load(first).to(tl.float32)
        high = tl.load(first + HALF).to(tl.float32)
        out = target + row.to(tl.int64) * 2 * HALF + pair
        tl.store(out, (low * c - high * s).to(out.dtype.element_ty))
        tl.store(out + HALF, (low * s + high * c).to(out.dtype.element_ty))


def triton_rotation(q, k, cos, sin):
    """cos and sin [tokens, channels / 2] in float32."""
    results = []
    for x in (q, k):
        result = torch.empty_like(x)
        rows = x.numel() // CHANNELS
        rotate_row[(rows,)](x, result, cos, sin, x.shape[2], HALF=CHANNELS // 2)
        results.append(result)
    return tuple(results)


def copy(q, k):
    return q.clone(), k.clone()


def median_ns(call, device):
    """Returns the median of several repetitions, each of which is long enough to measure."""
    call()
    times = []
    for _ in range(REPETITIONS):
        if device.type == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e6)
        else:
            begin = time.perf_counter_ns()
            call()
            times.append(time.perf_counter_ns() - begin)
    return statistics.median(times), statistics.stdev(times) / statistics.mean(times)


def largest_error(results, inputs, cos, sin):
    """Returns the largest error against float64, divided by |x0| + |x1|."""
    worst = 0.0
    for result, x in zip(results, inputs):
        low, high = x.double().chunk(2, dim=-1)
        exact = torch.cat((low * cos - high * sin, low * sin + high * cos), dim=-1)
        size = (low.abs() + high.abs()).repeat(1, 1, 1, 2).clamp_min(1e-30)
        worst = max(worst, ((result.double() - exact).abs() / size).max().item())
    return worst


def ways(q, k, cos, sin, device):
    """Returns (name, call) of each variant, with None as the call of a skipped variant."""
    dtype = q.dtype
    wide = torch.cat((cos, cos), -1).to(dtype), torch.cat((sin, sin), -1).to(dtype)
    yield "copy", lambda: copy(q, k)
    yield "eager", lambda: formula(q, k, *wide)
    compiled = torch.compile(formula)
    yield "compiled", lambda: compiled(q, k, *wide)
    if triton is None or device.type != "cuda":
        yield "triton", None
    else:
        narrow = cos.float().contiguous(), sin.float().contiguous()
        yield "triton", lambda: triton_rotation(q, k, *narrow)


def vkrope_times(path):
    """Returns ns by row name, "rope/SHAPE/DTYPE"; prefers default angles, out of place."""
    times = {}
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["benchmarks"]
    for row in rows:
        parts = row["run_name"].split("/")
        if parts[0] == "rope" and parts[3] == "factored_texture":
            if row.get("aggregate_name", "median") == "median":
                times.setdefault("/".join(parts[1:3]), row["real_time"])
    return times


def measure(name, shape, type_name, device, ours):
    sequences, tokens, q_heads, k_heads = shape
    torch.manual_seed(1)
    q, k = (
        torch.randn(sequences, heads, tokens, CHANNELS, device=device).to(TYPES[type_name])
        for heads in (q_heads, k_heads)
    )
    cos, sin = angles(tokens, device)
    # The formula rounds cos, sin, both products and the sum to the type of the tensors.
    allowed = 4 * torch.finfo(TYPES[type_name]).eps
    for way, call in ways(q, k, cos, sin, device):
        row = {"way": way, "shape": name, "type": type_name}
        if call is None:
            print(f"{name:20} {type_name:5} {way:9} skipped: needs Triton and a CUDA device")
            continue
        try:
            results = call()
        except Exception as problem:  # a missing compiler is not a failure of this program
            print(f"{name:20} {type_name:5} {way:9} skipped: {type(problem).__name__}")
            continue
        if way != "copy":
            row["error"] = largest_error(results, (q, k), cos, sin)
            if not row["error"] <= allowed:
                raise SystemExit(f"{way} is wrong on {name} {type_name}: {row['error']}")
        row["ns"], row["spread"] = median_ns(call, device)
        moved = 2 * (q.numel() + k.numel()) * q.element_size()
        row["bytes_per_second"] = moved / row["ns"] * 1e9
        text = f"{row['ns'] / 1e3:10.1f} us {row['bytes_per_second'] / 1e9:8.1f} GB/s"
        other = ours.get(f"{name}/{type_name}")
        if other:
            row["vkrope_speedup"] = row["ns"] / other
            text += f"  vkrope is {row['vkrope_speedup']:.2f} x as fast"
        print(f"{name:20} {type_name:5} {way:9} {text}")
        yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vkrope", help="the JSON file of vkrope-bench on the same device")
    parser.add_argument("--json", help="write all figures to this file")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "the processor"
    print(f"PyTorch {torch.__version__} on {name}")
    ours = vkrope_times(options.vkrope) if options.vkrope else {}
    rows = [
        row
        for shape in SHAPES
        for type_name in TYPES
        for row in measure(shape, SHAPES[shape], type_name, device, ours)
    ]
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"pytorch": torch.__version__, "device": name, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
