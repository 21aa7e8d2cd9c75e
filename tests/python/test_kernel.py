# SPDX-License-Identifier: MIT
"""Tests kernels and arrays in device memory."""

import gc

import numpy as np
import pytest
import vkrope

from definition import assert_right, rms_normed, rotated, widened

BOUND = 6


def test_device_arrays_come_back(device, tensor):
    values = tensor(3, 4, 5)
    there = device.array(values)
    np.testing.assert_array_equal(there.numpy(), values)
    np.testing.assert_array_equal(there[1].numpy(), values[1])
    np.testing.assert_array_equal(there[..., 1:4:2].numpy(), values[..., 1:4:2])
    np.testing.assert_array_equal(there[:, 2].transpose(1, 0).numpy(), values[:, 2].T)
    np.testing.assert_array_equal(device.array(values.T).numpy(), values.T)
    there[:, 1:3, 2:].write(-values[:, 1:3, 2:])
    values[:, 1:3, 2:] *= -1
    np.testing.assert_array_equal(there.numpy(), values)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint16])
def test_out_of_place(device, llama, tensor, dtype):
    q, k, v = (tensor(2, 5, heads, 128, dtype=dtype) for heads in (4, 2, 2))
    kernel = vkrope.Kernel(device, llama, q=dtype, k=dtype, v=dtype, max_position=64)
    there = [device.array(array) for array in (q, k, v)]
    out = [device.empty(array.shape, dtype) for array in (q, k, v)]
    run = kernel.run(
        q=there[0], k=there[1], v=there[2], out_q=out[0], out_k=out[1], out_v=out[2], positions=9
    )
    assert run.out_of_range == 0 and (run.nanoseconds is None or run.nanoseconds > 0)
    for array, result in zip((q, k), out):
        assert_right(result.numpy(), rotated(array, llama, np.arange(9, 14)), BOUND)
    np.testing.assert_array_equal(out[2].numpy(), v)
    for array, unchanged in zip((q, k, v), there):
        np.testing.assert_array_equal(unchanged.numpy(), array)


@pytest.mark.parametrize("name", ["device", "device_with_sets"])
def test_in_place_there_and_back(request, name, llama, tensor):
    device = request.getfixturevalue(name)
    q = tensor(1, 6, 2, 128)
    kernel = vkrope.Kernel(device, llama, q=np.float32, max_position=64)
    there = device.array(q)
    kernel.run(q=there, positions=3)
    once = there.numpy()
    assert_right(once, rotated(q, llama, np.arange(3, 9)), BOUND)
    kernel.run(q=there, positions=3, direction="inverse")
    assert_right(there.numpy(), rotated(once, llama, np.arange(3, 9), inverse=True), BOUND)


def test_packed_qkv_needs_no_copy(device, llama, tensor):
    qkv = tensor(2, 5, 4 + 2 + 2, 128, dtype=np.float16)
    there = device.array(qkv)
    kernel = vkrope.Kernel(device, llama, q=np.float16, k=np.float16, max_position=64)
    kernel.run(q=there[:, :, :4], k=there[:, :, 4:6])
    result = there.numpy()
    assert_right(result[:, :, :6], rotated(qkv[:, :, :6], llama, np.arange(5)), BOUND)
    np.testing.assert_array_equal(result[:, :, 6:], qkv[:, :, 6:])


def test_heads_before_tokens(device, llama, tensor):
    q = tensor(2, 3, 5, 128)  # [batch, heads, tokens, head_dim]
    there = device.array(q)
    kernel = vkrope.Kernel(device, llama, q=np.float32, max_position=64)
    kernel.run(q=there.transpose(0, 2, 1, 3))
    expected = rotated(q.transpose(0, 2, 1, 3), llama, np.arange(5))
    assert_right(there.numpy().transpose(0, 2, 1, 3), expected, BOUND)


def test_types_and_pairings_may_change(device, llama, tensor):
    q = tensor(1, 4, 2, 128)
    kernel = vkrope.Kernel(
        device, llama, q=vkrope.HeadFormat(np.float32, np.float16), max_position=64,
        pairing_out="interleaved",
    )  # fmt: skip
    out = device.empty(q.shape, np.float16)
    kernel.run(q=device.array(q), out_q=out, positions=2)
    expected = rotated(q, llama, np.arange(2, 6), pairing_out="interleaved")
    assert_right(out.numpy(), expected, BOUND)


def test_a_window_within_wider_rows(device, tensor):
    rotation = vkrope.RopeParams([1.0, 0.3, 0.01], pairing="half_split")
    q = tensor(1, 4, 2, 16)
    kernel = vkrope.Kernel(
        device, rotation, q=vkrope.HeadFormat(np.float32, head_dim=16, rotary_offset=4),
        max_position=64,
    )  # fmt: skip
    there = device.array(q)
    kernel.run(q=there)
    assert_right(there.numpy(), rotated(q, rotation, np.arange(4), offset=4), BOUND)


AXES = np.arange(3 * 2 * 3).reshape(3, 2, 3) * 5


@pytest.mark.parametrize(
    "model, ids",
    [
        ("llama-3.1-8b", np.array([9, 0, 200], np.int32)),
        ("llama-3.1-8b", np.array([[9, 0, 200], [5, 5, 7]], np.int64)),
        ("qwen2-vl-2b", AXES.astype(np.int32)),
    ],
)
def test_ids_of_each_token(device, models, tensor, model, ids):
    rotation = vkrope.frequencies(models / f"{model}.json")
    q = tensor(2, 3, 2, 128)
    kernel = vkrope.Kernel(device, rotation, q=np.float32, max_position=256, position_ids=True)
    there = device.array(q)
    assert kernel.run(q=there, positions=device.array(ids)).out_of_range == 0
    assert_right(there.numpy(), rotated(q, rotation, ids), BOUND)


def test_positions_beyond_the_table_are_counted(device, llama, tensor):
    q = tensor(1, 3, 2, 128)
    kernel = vkrope.Kernel(
        device, llama, q=np.float32, max_position=16, angles="direct_buffer", position_ids=True
    )
    there = device.array(q)
    ids = np.array([3, 16, 1 << 20], np.int32)
    assert kernel.run(q=there, positions=device.array(ids)).out_of_range == 2
    result = there.numpy()
    assert_right(result[:, :1], rotated(q[:, :1], llama, ids[:1]), BOUND)
    np.testing.assert_array_equal(result[:, 1:], q[:, 1:])


@pytest.mark.parametrize("form", ["slots", "pages", "heads first"])
def test_paged_cache(device, llama, tensor, form):
    k, v = tensor(1, 4, 2, 128), tensor(1, 4, 2, 128)
    slots = np.array([5, -1, 2, 11])
    kernel = vkrope.Kernel(
        device, llama, k=np.float32, v=np.float32, max_position=64, scatter_kv=True
    )
    shape = {"slots": (12, 2, 128), "pages": (3, 4, 2, 128), "heads first": (3, 2, 4, 128)}[form]
    caches = [device.array(np.full(shape, 7, np.float32)) for _ in range(2)]
    views = caches
    if form == "heads first":
        views = [cache.transpose(0, 2, 1, 3) for cache in caches]
    run = kernel.run(
        k=device.array(k), v=device.array(v), out_k=views[0], out_v=views[1], positions=8,
        slot_mapping=device.array(slots),
    )  # fmt: skip
    assert run.out_of_range == 0
    keys, values = (view.numpy().reshape(12, 2, 128) for view in views)
    stored = slots[slots >= 0]
    expected = rotated(k, llama, np.arange(8, 12))
    kept = [part[:, slots >= 0] for part in expected]
    assert_right(keys[stored][None], kept, BOUND)
    np.testing.assert_array_equal(values[stored], v[0, slots >= 0])
    others = np.setdiff1d(np.arange(12), stored)
    assert (keys[others] == 7).all() and (values[others] == 7).all()


@pytest.mark.parametrize("name", ["device", "device_with_sets"])
def test_slots_of_v(request, name, llama, tensor):
    """V goes to slots of its own, of a cache with another number of pages. A slot outside the cache
    counts for K and for V."""
    device = request.getfixturevalue(name)
    k, v = tensor(1, 5, 2, 128), tensor(1, 5, 2, 128)
    k_slots, v_slots = np.array([5, -1, 2, 11, 12]), np.array([1, 20, -1, -2, 24])
    kernel = vkrope.Kernel(
        device, llama, k=np.float32, v=np.float32, max_position=64, scatter_kv=True
    )
    k_cache, v_cache = (
        device.array(np.full((pages, 4, 2, 128), 7, np.float32)) for pages in (3, 6)
    )
    run = kernel.run(
        k=device.array(k), v=device.array(v), out_k=k_cache, out_v=v_cache, positions=8,
        slot_mapping=device.array(k_slots), v_slot_mapping=device.array(v_slots),
    )  # fmt: skip
    assert run.out_of_range == 3
    keys, values = (cache.numpy().reshape(-1, 2, 128) for cache in (k_cache, v_cache))
    stored = [0, 2, 3]
    expected = [part[:, stored] for part in rotated(k, llama, np.arange(8, 13))]
    assert_right(keys[k_slots[stored]][None], expected, BOUND)
    np.testing.assert_array_equal(values[[1, 20]], v[0, :2])
    for of, slots in ((keys, k_slots[stored]), (values, [1, 20])):
        assert (np.delete(of, slots, axis=0) == 7).all()


def test_slots_outside_the_cache_are_counted(device, llama, tensor):
    k = tensor(1, 3, 1, 128)
    kernel = vkrope.Kernel(device, llama, k=np.float32, max_position=8, scatter_kv=True)
    cache = device.array(np.zeros((4, 1, 128), np.float32))
    slots = device.array(np.array([0, 4, -2], np.int32))
    assert kernel.run(k=device.array(k), out_k=cache, slot_mapping=slots).out_of_range == 2


@pytest.mark.parametrize("name", ["device", "device_with_sets"])
@pytest.mark.parametrize(
    "number, outside", [(0, 0), (1, 0), (4, 2), (5, 4), (6, 5), (2**32 - 1, 5)]
)
def test_token_count(request, name, llama, tensor, number, outside):
    device = request.getfixturevalue(name)
    arrays = q, k, v = [tensor(2, 5, heads, 128) for heads in (4, 2, 2)]
    kernel = vkrope.Kernel(
        device, llama, q=np.float32, k=np.float32, v=np.float32, max_position=12,
        angles="direct_buffer", token_count=True,
    )  # fmt: skip
    there = [device.array(array) for array in arrays]
    out = [device.array(np.full_like(array, 7)) for array in arrays]
    run = kernel.run(  # of the positions 9 to 13, two are not in the table
        q=there[0], k=there[1], v=there[2], out_q=out[0], out_k=out[1], out_v=out[2], positions=9,
        token_count=device.array(np.array([number], np.uint32)),
    )  # fmt: skip
    assert run.out_of_range == outside
    out = [array.numpy() for array in out]
    present, covered = min(number, 5), min(number, 3)
    for array, result in zip((q, k), out):
        if covered:
            expected = rotated(array[:, :covered], llama, np.arange(9, 9 + covered))
            assert_right(result[:, :covered], expected, BOUND)
        np.testing.assert_array_equal(result[:, covered:present], array[:, covered:present])
    np.testing.assert_array_equal(out[2][:, :present], v[:, :present])
    for result in out:
        np.testing.assert_array_equal(result[:, present:], 7)


def test_a_token_count_that_is_too_large_counts_without_a_table(device, llama, tensor):
    q = device.array(tensor(1, 3, 2, 128))
    kernel = vkrope.Kernel(device, llama, q=np.float32, max_position=64, angles="computed",
                           token_count=True)
    for number, counted in ((3, 0), (4, 1)):
        count = device.array(np.array([number], np.uint32))
        assert kernel.run(q=q, token_count=count).out_of_range == counted


def test_token_counts_that_are_refused(device, llama, tensor):
    q = device.array(tensor(1, 3, 2, 128))
    kernel = vkrope.Kernel(device, llama, q=np.float32, max_position=64, token_count=True)
    plain = vkrope.Kernel(device, llama, q=np.float32, max_position=64)
    numbers = device.array(np.arange(300, dtype=np.uint32))
    for message, of, count in (
        ("token_count", kernel, None),
        ("token_count", plain, numbers[:1]),
        ("token_count is uint32 of the shape .2,.: .* one uint32", kernel, numbers[:2]),
        ("token_count is int32 .* one uint32", kernel, device.array(np.zeros(1, np.int32))),
        ("token_count.*offset", kernel, numbers[1:2]),
    ):
        with pytest.raises(vkrope.InvalidArgumentError, match=message):
            of.run(q=q, token_count=count)


def test_arrays_that_are_refused(device, llama, tensor):
    q = device.array(tensor(1, 3, 2, 128))
    kernel = vkrope.Kernel(device, llama, q=np.float32, max_position=64, token_count=True)
    positions = vkrope.PositionKernel(device)
    elsewhere = vkrope.Device().array(np.ones(1, np.uint32))
    for message, run in (
        ("token_count is on another Device", lambda: kernel.run(q=q, token_count=elsewhere)),
        ("token_count is of the type int", lambda: kernel.run(q=q, token_count=3)),
        ("q is of the type ndarray", lambda: kernel.run(q=tensor(1, 3, 2, 128))),
        ("query_lens is of the type list", lambda: positions.run(tokens=4, query_lens=[4])),
        ("query_scales is 'logn'", lambda: positions.run(tokens=4, query_scales="logn")),
        ("cos is of the type NoneType", lambda: vkrope.Kernel(
            device, llama, q=np.float32, angles=vkrope.CosSinCache(None, None))),
    ):
        with pytest.raises(vkrope.InvalidArgumentError, match=message):
            run()


def test_norms_of_the_model(device, tensor):
    config = {"model_type": "qwen3", "hidden_size": 512, "num_attention_heads": 4,
              "num_key_value_heads": 2, "head_dim": 128, "rope_theta": 10000.0,
              "rms_norm_eps": 1e-6}  # fmt: skip
    rotation = vkrope.frequencies(config)
    q, k, weights = tensor(1, 4, 4, 128), tensor(1, 4, 2, 128), tensor(2, 128)
    kernel = vkrope.Kernel(device, rotation, q=np.float32, k=np.float32, max_position=64)
    there = [device.array(array) for array in (q, k)]
    with pytest.raises(vkrope.InvalidArgumentError, match="parameters"):
        kernel.run(q=there[0], k=there[1])
    parameters = kernel.parameters(q={"weight": weights[0]}, k={"weight": weights[1]})
    kernel.run(q=there[0], k=there[1], positions=3, parameters=parameters)
    for array, weight, result in zip((q, k), weights, there):
        expected = rotated(rms_normed(array, weight), rotation, np.arange(3, 7))
        assert_right(result.numpy(), expected, BOUND + 10.5)
    # The first token uses the first weight, the other tokens the second one.
    two = vkrope.Kernel(device, rotation, q=np.float32, max_position=64, two_parameter_sets=True)
    both = two.parameters(q={"weight": weights[0]}, second={"q": {"weight": weights[1]}})
    with pytest.raises(vkrope.InvalidArgumentError, match="second"):
        two.parameters(q={"weight": weights[0]})
    into = device.array(q)
    for count in (0, 4):
        with pytest.raises(vkrope.InvalidArgumentError, match="first_set_tokens"):
            two.run(q=into, positions=3, parameters=both, first_set_tokens=count)
    two.run(q=into, positions=3, parameters=both, first_set_tokens=1)
    by_token = np.where(np.arange(4)[:, None, None] < 1, *weights)
    normed = rms_normed(q, by_token)
    assert_right(into.numpy(), rotated(normed, rotation, np.arange(3, 7)), BOUND + 10.5)
    # With ops=False the kernel only rotates, and refuses weights because it would not use them.
    alone = vkrope.Kernel(device, rotation, q=np.float32, max_position=64, ops=False)
    there = device.array(tensor(1, 4, 3, 128))
    with pytest.raises(vkrope.InvalidArgumentError, match="parameters"):
        alone.run(q=there, parameters=parameters)
    before = there.numpy()
    alone.run(q=there, positions=3)
    assert_right(there.numpy(), rotated(before, rotation, np.arange(3, 7)), BOUND)


@pytest.mark.parametrize("name", ["device", "device_with_sets"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint16])
def test_norm_weights_of_the_engine(request, name, llama, tensor, dtype):
    """Weights in arrays of their own give the bits of weights in the parameters, which then have
    the bias of Q alone."""
    device = request.getfixturevalue(name)
    arrays = {"q": tensor(1, 4, 3, 128), "k": tensor(1, 4, 2, 128), "v": tensor(1, 4, 2, 128)}
    weights = {"q": tensor(128, dtype=dtype), "k": tensor(2, 128, dtype=dtype),
               "v": tensor(32, dtype=dtype)}
    norm, bias = {"kind": "rms", "eps": 1e-6, "weight": "channel"}, {"q": {"bias": tensor(128)}}
    ops = {"q": {"bias": "channel", "norm": {**norm, "weight_offset": 1}},
           "k": {"norm": {**norm, "weight": "head_channel"}},
           "v": {"norm": {**norm, "first_channel": 64, "channels": 32}}}
    results = []
    for bound in (False, True):
        formats = {of: vkrope.HeadFormat(np.float32, heads=array.shape[2], ops=ops[of],
                                         norm_weight=dtype if bound else None)
                   for of, array in arrays.items()}
        there = {of: device.array(array) for of, array in arrays.items()}
        with vkrope.Kernel(device, llama, **formats, max_position=64) as kernel:
            packed = bias if bound else {
                of: {"weight": weight, **bias.get(of, {})} for of, weight in weights.items()}
            given = {f"{of}_norm_weight": device.array(weight)
                     for of, weight in weights.items() if bound}
            kernel.run(**there, **given, parameters=kernel.parameters(**packed), positions=3)
        results.append([array.numpy() for array in there.values()])
    for in_parameters, of_engine in zip(*results):
        np.testing.assert_array_equal(of_engine, in_parameters)
    of_k = rotated(rms_normed(arrays["k"], widened(weights["k"])), llama, np.arange(3, 7))
    assert_right(results[1][1], of_k, BOUND + 10.5)
    part = rms_normed(arrays["v"][..., 64:96], widened(weights["v"]))
    assert_right(results[1][2][..., 64:96], (part, np.abs(part)), 9.5)


def test_norm_weights_that_are_refused(device, llama, tensor):
    def kernel_of(dtype, weight="channel", **options):
        norm = {"kind": "rms", "eps": 1e-6, "weight": weight}
        return vkrope.Kernel(device, llama, max_position=8, **options, q=vkrope.HeadFormat(
            np.float32, ops={"norm": norm}, norm_weight=dtype))

    for sentence, arguments in (
        ("q.norm_weight has the dtype int8", {"dtype": np.int8}),
        ("weight_bound", {"dtype": np.float16, "weight": "none"}),
        ("weight_bound", {"dtype": np.float16, "two_parameter_sets": True}),
    ):
        with pytest.raises(vkrope.InvalidArgumentError, match=sentence):
            kernel_of(**arguments)
    for norm in ({"weight_type": "f16"}, {"weight_bound": True, "weight_type": "e5m2"}):
        of = vkrope.HeadFormat(np.float32, ops={
            "norm": {"kind": "rms", "eps": 1e-6, "weight": "channel", **norm}})
        with pytest.raises(vkrope.InvalidArgumentError, match="weight_type"):
            vkrope.Kernel(device, llama, q=of, max_position=8)

    q, halves = device.array(tensor(1, 4, 2, 128)), device.array(tensor(300, dtype=np.float16))
    weight = halves[:128]
    floats = device.array(tensor(128))
    bound, packed = kernel_of(np.float16), kernel_of(None)
    for sentence, kernel, arguments in (
        (r"norm_weight\[0\]", bound, {}),
        (r"norm_weight\[0\]", packed, {"q_norm_weight": floats, "parameters": floats}),
        (r"norm_weight\[1\]", bound, {"q_norm_weight": weight, "k_norm_weight": floats}),
        (r"norm_weight\[0\]", bound, {"q_norm_weight": halves[1:129]}),  # its offset
        ("q_norm_weight has 126 numbers: .* 128", bound, {"q_norm_weight": weight[:126]}),
        ("q_norm_weight has 300 numbers: .* 128", bound, {"q_norm_weight": halves}),
        ("parameters", bound, {"q_norm_weight": weight, "parameters": floats}),
        ("q_norm_weight is float32 .* packed f16", bound, {"q_norm_weight": floats}),
        (r"strides \(2,\): must be packed", bound, {"q_norm_weight": halves[::2]}),
    ):
        with pytest.raises(vkrope.InvalidArgumentError, match=sentence):
            kernel.run(q=q, **arguments)
    with pytest.raises(vkrope.InvalidArgumentError, match="has no weights"):
        bound.parameters()
    there = device.empty((2, 4, 1, 128), np.float32)
    with pytest.raises(vkrope.InvalidArgumentError, match=r"norm_weight\[0\].*overlap"):
        kernel_of(np.float32).run(q=there[:1], q_norm_weight=there[0, 0])


def test_gain(device, models, tensor):
    rotation = vkrope.frequencies(models / "qwen2.5-7b.yarn.json")
    q = tensor(1, 4, 2, 128)
    kernel = vkrope.Kernel(device, rotation, q=np.float32, max_position=64)
    for gain in ("apply", "omit", "divide_out"):
        there = device.array(q)
        kernel.run(q=there, gain=gain)
        bound = BOUND if gain == "apply" else BOUND + 2  # see vkrope_error_bound
        assert_right(there.numpy(), rotated(q, rotation, np.arange(4), gain=gain), bound)


def test_objects_may_be_dropped_in_any_order(llama, tensor):
    """A device lives as long as all objects made with it, also within a cycle of references."""
    for _ in range(3):
        device = vkrope.Device("0")
        kernel = vkrope.Kernel(device, llama, q=np.float32, max_position=8)
        there = device.array(tensor(1, 2, 1, 128))
        device.close()
        np.testing.assert_array_equal(there.numpy(), there.numpy())
        cycle = [kernel, there, device]
        cycle.append(cycle)
        del device, kernel, there, cycle
        gc.collect()


def test_own_ops_and_quantised_outputs(device, tensor):
    """A norm, a weight and a scale of each row, as the definition has them."""
    rotation = vkrope.RopeParams([1.0, 0.1], pairing="half_split")
    ops = {"norm": {"kind": "rms", "eps": 1e-6, "weight": "channel"}, "store_scale": "made"}
    kernel = vkrope.Kernel(
        device, rotation, k=vkrope.HeadFormat(np.float32, "int8", heads=2, ops=ops),
        max_position=8,
    )  # fmt: skip
    k, weight = tensor(1, 3, 2, 4), np.float32([1, 2, 3, 4])
    codes, scales = device.empty((1, 3, 2, 4), np.uint8), device.empty((1, 3, 2), np.float32)
    kernel.run(k=device.array(k), out_k=codes, k_scales=scales,
               parameters=kernel.parameters(k={"weight": weight}))
    row = k / np.sqrt((k.astype(float) ** 2).mean(-1, keepdims=True) + 1e-6) * weight
    exact, _ = rotated(row.astype(np.float32), rotation, np.arange(3))
    np.testing.assert_allclose(scales.numpy(), abs(exact).max(-1) / 127, rtol=1e-5)
    stored = codes.numpy().view(np.int8) * scales.numpy()[..., None]
    np.testing.assert_allclose(stored, exact, atol=0.51 * scales.numpy().max())


def test_tables_of_the_caller(device, tensor):
    rotation = vkrope.RopeParams([1.0, 0.1], pairing="interleaved")
    angle = np.arange(9)[:, None] * rotation.inv_freq
    tables = [device.array(of(angle).astype(np.float32)) for of in (np.cos, np.sin)]
    kernel = vkrope.Kernel(device, rotation, q=np.float32, angles=vkrope.CosSinCache(*tables))
    q = tensor(1, 3, 2, 4)
    there = device.array(q)
    assert kernel.run(q=there, positions=6).out_of_range == 0
    assert_right(there.numpy(), rotated(q, rotation, np.arange(6, 9)), BOUND)
    assert kernel.run(q=there, positions=7).out_of_range == 1  # the table ends with position 8
