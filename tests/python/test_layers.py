# SPDX-License-Identifier: MIT
"""Tests kernels of layers without RoPE and of MLA's latent row, and second destinations, with numpy
as the engine."""

import numpy as np
import pytest
import vkrope
from numpy.testing import assert_array_equal as assert_same

from definition import assert_right, rotated
from stored_codes import stored_rows

BOUND = 6
LLAMA4 = {
    "model_type": "llama4_text", "hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 64, "num_hidden_layers": 4,
    "no_rope_layers": [1, 1, 1, 0], "rope_theta": 5e5, "attn_temperature_tuning": True,
    "attn_scale": 0.1, "floor_scale": 8192,
}  # fmt: skip
COHERE2 = {
    "model_type": "cohere2", "hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2, "num_hidden_layers": 4, "sliding_window_pattern": 4,
    "rope_theta": 5e4,
}  # fmt: skip


def f32(values):
    return np.asarray(values, np.float32)


def test_temperature_without_rope(device, tensor):
    """Queries of Llama 4 are scaled by position, one f32 product each; the rest keeps its bits."""
    rotation = vkrope.frequencies(LLAMA4, layer=3)
    assert not rotation.rotates and rotation.rotary_dim == 0
    q, k, v = (tensor(2, 5, heads, 64, dtype=np.float16) for heads in (4, 2, 2))
    q[0, 1, 0, :4] = [-0.0, np.inf, 6e-8, -65504]
    k[1, 2, 1, :4] = [-0.0, np.nan, -np.inf, 6e-8]
    kernel = vkrope.Kernel(device, rotation, q=np.float16, k=np.float16, v=np.float16)
    position = np.arange(10).reshape(2, 5) * 4000
    factors = f32(1 + 0.1 * np.log1p(np.floor((position + 1) / 8192)))
    there = [device.array(array) for array in (q, k, v)]
    out = [device.empty(array.shape, np.float16) for array in (q, k, v)]
    run = kernel.run(
        q=there[0], k=there[1], v=there[2], out_q=out[0], out_k=out[1], out_v=out[2],
        q_scale_tokens=device.array(factors),
    )  # fmt: skip
    assert run.out_of_range == 0
    scaled = (f32(q) * factors[..., None, None]).astype(np.float16)
    for right, result in zip((scaled, k, v), out):
        assert_same(result.numpy().view(np.uint16), right.view(np.uint16))


@pytest.mark.parametrize("name", ["device", "device_with_sets"])
def test_a_cache_without_rope(request, name, tensor):
    """Cohere 2: K to q8_0 blocks and V to the same slots; other rows keep their bytes."""
    device = request.getfixturevalue(name)
    rotation = vkrope.frequencies(COHERE2, layer=3)
    assert not rotation.rotates
    k, v = tensor(1, 4, 2, 64), tensor(1, 4, 2, 64)
    kernel = vkrope.Kernel(
        device, rotation, k=vkrope.HeadFormat(np.float32, "q8_0", heads=2),
        v=vkrope.HeadFormat(np.float32, np.float16, heads=2), scatter_kv=True,
    )  # fmt: skip
    caches = np.full((8, 2, 68), 7, np.uint8), np.full((8, 2, 64), 7, np.float16)
    there = [device.array(cache) for cache in caches]
    slots = np.array([5, -1, 2, 8])  # the cache has 8
    run = kernel.run(k=device.array(k), v=device.array(v), out_k=there[0], out_v=there[1],
                     slot_mapping=device.array(slots))  # fmt: skip
    assert run.out_of_range == 1
    caches[0][[5, 2]] = stored_rows("q8_0", k[0, [0, 2]], None)[0]
    caches[1][[5, 2]] = v[0, [0, 2]].astype(np.float16)
    for right, result in zip(caches, there):
        assert_same(result.numpy(), right)


def test_a_layer_without_rope_and_without_a_model(device, tensor):
    """An RMS norm and int8 with a scale of each row."""
    rotation = vkrope.RopeParams.without_rope(64)
    assert not rotation.rotates and rotation.pairing is None and rotation.head_dim == 64
    ops = {"norm": {"kind": "rms", "eps": 1e-6, "weight": "channel"}, "store_scale": "made"}
    kernel = vkrope.Kernel(
        device, rotation, k=vkrope.HeadFormat(np.float32, "int8", heads=2, ops=ops))
    k, weight = tensor(1, 3, 2, 64), tensor(64)
    codes, scales = device.empty(k.shape, np.uint8), device.empty((1, 3, 2), np.float32)
    kernel.run(k=device.array(k), out_k=codes, k_scales=scales,
               parameters=kernel.parameters(k={"weight": weight}))
    exact = k / np.sqrt((k.astype(float) ** 2).mean(-1, keepdims=True) + 1e-6) * weight
    made = scales.numpy()
    np.testing.assert_allclose(made, abs(exact).max(-1) / 127, rtol=1e-5)
    stored = codes.numpy().view(np.int8) * made[..., None]
    np.testing.assert_allclose(stored, exact, atol=0.501 * made.max())


def test_what_a_layer_without_rope_refuses(device, llama, tensor):
    def refused(sentence, call, *arguments, **fields):
        with pytest.raises(vkrope.InvalidArgumentError, match=sentence):
            call(*arguments, **fields)

    rotation = vkrope.RopeParams.without_rope(128)
    for sentence, fields in (
        ("max_position is 8", dict(max_position=8)),
        ("angles is 'computed'", dict(angles="computed")),
        ("positions", dict(position_ids=True)),
        ("pairing_out", dict(pairing_out="interleaved")),
        ("rotary_offset", dict(k=vkrope.HeadFormat(np.float32, rotary_offset=2))),
    ):
        refused(sentence, vkrope.Kernel, device, rotation, **{"k": np.float32, **fields})
    refused("head_dim", vkrope.Kernel, device, vkrope.RopeParams.without_rope(0), k=np.float32)
    kernel = vkrope.Kernel(device, rotation, k=np.float32)
    k = device.array(tensor(1, 4, 2, 128))
    ids = device.array(np.zeros(4, np.int32))
    for sentence, fields in (
        ("positions is 3", dict(positions=3)),
        ("positions is <", dict(positions=ids)),
        ("direction", dict(direction="inverse")),
        ("gain", dict(gain="omit")),
    ):
        refused(sentence, kernel.run, k=k, **fields)


def latent(device, tensor, dtype=np.float32):
    """Returns rows [12 with a norm | 8 rotated], the weight, a rotation and ops."""
    rotation = vkrope.RopeParams([1.0, 0.3, -0.1, 0.01], pairing="interleaved", head_dim=20,
                                 k_rotary_offset=12)  # fmt: skip
    norm = {"kind": "rms", "eps": 1e-6, "weight": "channel", "first_channel": 0, "channels": 12}
    return tensor(2, 5, 1, 20, dtype=dtype), tensor(12), rotation, {"norm": norm}


def test_the_latent_row(device, tensor):
    """The norm reads 12 channels, and the rotation the other 8; neither changes the other's."""
    k, weight, rotation, ops = latent(device, tensor)
    kernel = vkrope.Kernel(device, rotation, max_position=64,
                           k=vkrope.HeadFormat(np.float32, heads=1, ops=ops))  # fmt: skip
    there = device.array(k)
    with pytest.raises(vkrope.InvalidArgumentError, match="weight"):
        kernel.parameters(k={"weight": np.ones(20, np.float32)})
    parameters = kernel.parameters(k={"weight": weight})
    kernel.run(k=there, positions=7, parameters=parameters)
    exact, size = rotated(k, rotation, np.arange(7, 12), offset=12)
    part = k[..., :12].astype(np.float64)
    part *= weight / np.sqrt((part * part).mean(-1, keepdims=True) + 1e-6)
    exact[..., :12], size[..., :12] = part, abs(part) * (4 / 2 + 7) / BOUND
    assert_right(there.numpy(), (exact, size), BOUND)
    # The same bits as a norm of rows of 12 channels, and as a rotation alone.
    of_rows = vkrope.Kernel(
        device, vkrope.RopeParams.without_rope(12),
        k=vkrope.HeadFormat(np.float32, heads=1, ops={"norm": {
            **ops["norm"], "channels": 0}}))  # fmt: skip
    alone = device.array(np.ascontiguousarray(k[..., :12]))
    of_rows.run(k=alone, parameters=of_rows.parameters(k={"weight": weight}))
    assert_same(there.numpy()[..., :12], alone.numpy())
    turned = device.array(k)
    vkrope.Kernel(device, rotation, k=np.float32, max_position=64).run(k=turned, positions=7)
    assert_same(there.numpy()[..., 12:], turned.numpy()[..., 12:])


def test_keys_before_and_after_the_rotation(device, llama, tensor):
    """The second destination has the keys as they were read, for tokens without a slot too."""
    k = tensor(1, 4, 2, 128, dtype=np.float16)
    k[0, 1, 0, :3] = [-0.0, np.nan, -np.inf]
    kernel = vkrope.Kernel(
        device, llama, max_position=64, scatter_kv=True, k=vkrope.HeadFormat(
            np.float16, heads=2, ops={}, second=np.float16, second_of="input"),
    )  # fmt: skip
    cache, raw = device.array(np.zeros((8, 2, 128), np.float16)), device.empty(k.shape, np.float16)
    slots = np.array([5, -1, 2, 7])
    kernel.run(k=device.array(k), out_k=cache, slot_mapping=device.array(slots), k_second=raw,
               positions=8)  # fmt: skip
    assert_same(raw.numpy().view(np.uint16), k.view(np.uint16))
    kept = [part[:, slots >= 0] for part in rotated(k, llama, np.arange(8, 12))]
    assert_right(cache.numpy()[slots[slots >= 0]][None], kept, BOUND)


@pytest.mark.parametrize("dtype", [np.float16, np.uint16])
def test_rows_beside_their_codes(device, llama, tensor, dtype):
    """q8_0 to a cache and packed 16 bits for prefill are one f32 row, which another kernel stores
    as it is, rounded once each."""
    k, v = tensor(1, 5, 2, 128), tensor(1, 5, 2, 128)
    ops = {"norm": {"kind": "rms", "eps": 1e-6}, "hadamard": 64}

    def formats(out, **fields):
        return dict(k=vkrope.HeadFormat(np.float32, out, heads=2, ops=ops, **fields),
                    v=vkrope.HeadFormat(np.float32, out, heads=2, ops={}, **fields))

    there = [device.array(array) for array in (k, v)]
    plain = vkrope.Kernel(device, llama, max_position=64, **formats(np.float32))
    rows = [device.empty(array.shape, np.float32) for array in (k, v)]
    plain.run(k=there[0], v=there[1], out_k=rows[0], out_v=rows[1], positions=9)
    kernel = vkrope.Kernel(device, llama, max_position=64, **formats("q8_0", second=dtype))
    codes = [device.empty((1, 5, 2, 136), np.uint8) for _ in (k, v)]
    second = [device.empty(k.shape, dtype) for _ in (k, v)]
    kernel.run(k=there[0], v=there[1], out_k=codes[0], out_v=codes[1], positions=9,
               k_second=second[0], v_second=second[1])  # fmt: skip
    assert_same(rows[1].numpy(), v)
    for row, code, short in zip(rows, codes, second):
        bits = row.numpy().view(np.uint32)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # to bfloat16, ties to even
        rounded = rounded.astype(dtype) if dtype == np.uint16 else row.numpy().astype(dtype)
        assert_same(short.numpy().view(np.uint16), rounded.view(np.uint16))
        assert_same(code.numpy(), stored_rows("q8_0", row.numpy(), None)[0])


def test_what_a_second_destination_refuses(device, llama, tensor):
    def refused(sentence, call, *arguments, **fields):
        with pytest.raises(vkrope.InvalidArgumentError, match=sentence):
            call(*arguments, **fields)

    def made(name="k", **fields):
        form = vkrope.HeadFormat(np.float32, **{"heads": 2, "second": np.float16, **fields})
        return vkrope.Kernel(device, llama, max_position=64, **{name: form})

    refused("k.second has the dtype int8", made, second=np.int8)
    refused("k.second_of is 'rows'", made, second_of="rows")
    refused("k.second_of is 'none'", made, second_of="none")
    refused("k.second_of is 'input'", made, second=None, second_of="input")
    refused("second", made, "q")
    refused("heads", made, heads=0)
    k = device.array(tensor(1, 3, 2, 128))
    second = device.empty((1, 3, 2, 128), np.float16)
    kernel, plain = made(), vkrope.Kernel(device, llama, max_position=64, k=np.float32)
    before = k.numpy()
    refused("second", kernel.run, k=k)
    refused("k_second is given without", plain.run, k=k, k_second=second)
    refused("v_second is given without v", kernel.run, k=k, k_second=second, v_second=second)
    for wrong in (k, second[:, :2], second.transpose(0, 2, 1, 3)):
        refused("k_second is float", kernel.run, k=k, k_second=wrong)
    assert_same(k.numpy(), before)
