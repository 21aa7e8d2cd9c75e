# SPDX-License-Identifier: MIT
"""Checks that every wrong input raises an exception with a sentence and changes nothing."""

import numpy as np
import pytest
import vkrope
from vkrope._declarations import ffi

Q = np.ones((1, 4, 2, 128), np.float32)


def test_every_error_code_has_a_class():
    codes = {
        number for name, number in ffi.typeof("vkrope_result").relements.items()
        if name.startswith("VKROPE_ERROR_")
    }  # fmt: skip
    classes = {error.code: error for error in vkrope.VkropeError.__subclasses__()}
    assert set(classes) == codes
    for error in classes.values():
        assert error.__name__ in vkrope.__all__


REFUSED = {
    "a list": (dict(q=[1, 2]), "q is a list: it must be a numpy array"),
    "float64": (dict(q=Q.astype(np.float64)), "q has the dtype float64"),
    "big endian": (dict(q=Q.astype(">f4")), "q has the dtype >f4"),
    "three axes": (dict(q=Q[0]), r"q has the shape \(4, 2, 128\): the layout bshd has 4 axes"),
    "nothing": (dict(), "q and k are both missing"),
    "V alone": (dict(v=Q), "q and k are both missing"),
    "two dtypes": (dict(q=Q, k=Q.astype(np.float16)), "k has the dtype float16: it must be fl"),
    "two lengths": (dict(q=Q, k=Q[:, :3]), "k has 1 sequences of 3 tokens: q has 1 of 4"),
    "layout": (dict(q=Q, layout="hsbd"), "layout is 'hsbd': it must be one of bshd, bhsd, sbhd"),
    "pairing": (dict(q=Q, pairing="neox"), "pairing is 'neox': it must be one of half_split, in"),
    "angles": (dict(q=Q, angles="table"), "angles is 'table'"),
    "angles of the caller": (dict(q=Q, angles="cos_sin_cache"), "angles"),
    "gain": (dict(q=Q, gain=2), "gain is 2: it must be one of apply, omit, divide_out"),
    "too few positions": (dict(q=Q, positions=[1, 2]), r"positions have the shape \(2,\)"),
    "positions of floats": (dict(q=Q, positions=[0.5] * 4), "positions have the dtype float64"),
    "a large position": (dict(q=Q, positions=[0, 0, 0, 2**31]), "positions hold 2147483648"),
    "two beginnings": (dict(q=Q, positions=[0] * 4, first_position=1), "first_position is 1"),
    "a last position": (dict(q=Q, first_position=2**31 - 2), "position"),
    "first_position": (dict(q=Q, first_position=2**31), "first_position is 2147483648"),
    "axes": (dict(q=Q, positions=np.zeros((3, 1, 4), int)), "axes is 3"),
    "narrow heads": (dict(q=Q[..., :64]), "head_dim"),
    "another shape of out": (dict(q=Q, out_q=Q[:, :3]), "out_q is float32 of the shape"),
    "out without": (dict(q=Q, out_k=Q), "out_k is given without k"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rotate_refuses(device, llama, name):
    arguments, sentence = REFUSED[name]
    with pytest.raises(vkrope.InvalidArgumentError, match=sentence) as caught:
        vkrope.rotate(**arguments, rotation=llama, device=device)
    assert caught.value.code == ffi.integer_const("VKROPE_ERROR_INVALID_ARGUMENT")
    assert isinstance(caught.value, ValueError)


def test_rotate_refuses_a_read_only_result(device, llama):
    out = np.zeros_like(Q)
    out.flags.writeable = False
    with pytest.raises(vkrope.InvalidArgumentError, match="out_q is read-only"):
        vkrope.rotate(Q, rotation=llama, out_q=out, device=device)


def test_rotate_needs_one_rotation(device, models, llama):
    with pytest.raises(vkrope.InvalidArgumentError, match="both missing"):
        vkrope.rotate(Q, device=device)
    with pytest.raises(vkrope.InvalidArgumentError, match="both given"):
        vkrope.rotate(Q, rotation=llama, model=models / "llama-3.1-8b.json", device=device)


def test_a_table_that_is_too_large(device, llama):
    with pytest.raises(vkrope.LimitExceededError) as caught:
        vkrope.rotate(
            Q, rotation=llama, first_position=2**30, angles="direct_texture", device=device
        )
    assert caught.value.code == ffi.integer_const("VKROPE_ERROR_LIMIT_EXCEEDED")


@pytest.mark.parametrize(
    "model, kind, sentence",
    [
        ("/nowhere/config.json", vkrope.InvalidDataError, "'/nowhere/config.json' cannot be read"),
        ({}, vkrope.InvalidDataError, ""),
        ({"model_type": "llama", "head_dim": -3}, vkrope.InvalidDataError, "head_dim"),
        (
            {
                "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
                "rope_scaling": {"rope_type": "unheard_of"},
            },
            vkrope.NotSupportedError,
            "unheard_of",
        ),
    ],
)  # fmt: skip
def test_models_that_cannot_be_read(model, kind, sentence):
    with pytest.raises(kind, match=sentence):
        vkrope.frequencies(model)


def test_a_damaged_gguf_file(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF\x03")
    with pytest.raises(vkrope.InvalidDataError):
        vkrope.frequencies(path)


def test_queries_that_the_model_cannot_answer(models):
    path = models / "llama-3.1-8b.json"
    with pytest.raises(vkrope.InvalidArgumentError, match="layer_type"):
        vkrope.frequencies(path, layer_type="sliding_attention")
    with pytest.raises(vkrope.InvalidArgumentError, match="layer is -1"):
        vkrope.frequencies(path, layer=-1)
    with pytest.raises(vkrope.InvalidArgumentError, match="seq_len is -1"):
        vkrope.frequencies(path, seq_len=-1)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (dict(inv_freq=[[1.0]]), "inv_freq has the shape"),
        (dict(inv_freq=[]), "inv_freq has the shape"),
        (dict(inv_freq=[1.0], head_dim=-1), "head_dim is -1"),
        (dict(inv_freq=[1.0], head_dim=2**33), "head_dim is 8589934592"),
        (dict(inv_freq=[1.0], attention_factor="a"), "attention_factor is 'a'"),
        (dict(inv_freq=[1.0], sections=vkrope.Sections("sequential", (1,) * 9)), "9 axes"),
        (dict(inv_freq=[1.0], precision="double"), "precision is 'double'"),
        (dict(inv_freq=[1.0], windows=[(0, 2)] * 5), "windows has 5 entries: 4 at most"),
        (dict(inv_freq=[1.0], windows=[(-2, 2)]), r"windows\[0\] is"),
        (dict(inv_freq=[1.0], windows=[(0, 2.5)]), r"windows\[0\] is"),
        (dict(inv_freq=[1.0], windows=[(0,)]), r"windows\[0\] is"),
        (dict(inv_freq=[1.0], windows=[(0, 2**32)]), r"windows\[0\] is"),
        (dict(inv_freq=[1.0], windows=[3]), r"windows\[0\] is"),
    ],
)
def test_rotations_of_bad_numbers(arguments, sentence):
    with pytest.raises(vkrope.InvalidArgumentError, match=sentence):
        vkrope.RopeParams(**{"pairing": "half_split", **arguments})


def test_a_pairing_has_no_default():
    with pytest.raises(TypeError, match="pairing"):
        vkrope.RopeParams([1.0])


def test_numbers_that_only_tables_and_kernels_need_are_checked_there(device):
    rotation = vkrope.RopeParams([np.nan] + [1.0] * 63, pairing="half_split")
    with pytest.raises(vkrope.InvalidArgumentError, match="inv_freq"):
        vkrope.rotate(Q, rotation=rotation, device=device)
    overlapping = vkrope.RopeParams(
        [1.0, 1.0], pairing="half_split", head_dim=128, windows=[(0, 2), (1, 2)]
    )
    with pytest.raises(vkrope.InvalidArgumentError, match=r"windows\[1\].offset is 1"):
        vkrope.rotate(Q, rotation=overlapping, device=device)


def test_devices_that_are_not_there():
    with pytest.raises(vkrope.NoDeviceError, match="no such device"):
        vkrope.Device("no such device")
    with pytest.raises(vkrope.InvalidArgumentError, match="select is 3"):
        vkrope.Device(3)
    with pytest.raises(vkrope.InvalidArgumentError, match="timeout_ns is 0"):
        vkrope.Device("0", timeout_ns=0)


def test_closed_objects(device, llama):
    kernel = vkrope.Kernel(device, llama, q=np.float32, max_position=8)
    there = device.array(Q)
    kernel.close()
    kernel.close()
    with pytest.raises(vkrope.InvalidArgumentError, match="this Kernel is closed"):
        kernel.run(q=there)
    closed = vkrope.Device("0")
    closed.close()
    with pytest.raises(vkrope.InvalidArgumentError, match="this Device is closed"):
        vkrope.rotate(Q, rotation=llama, device=closed)


def test_kernels_refuse(device, llama):
    def refused(sentence, **arguments):
        with pytest.raises(vkrope.InvalidArgumentError, match=sentence):
            kernel.run(**arguments)

    with pytest.raises(vkrope.InvalidArgumentError, match="max_position is -1"):
        vkrope.Kernel(device, llama, q=np.float32, max_position=-1)
    with pytest.raises(vkrope.InvalidArgumentError, match="k has the dtype int8"):
        vkrope.Kernel(device, llama, k=np.int8, max_position=8)
    with pytest.raises(vkrope.InvalidArgumentError):
        vkrope.Kernel(device, llama, max_position=8)
    for ops, sentence in (({"gain": 2}, "q.ops has 'gain'"), ({"scale": "a"}, "scale is 'a'"),
                          ({"norm": {"kind": "max"}}, "q.ops.norm.kind is 'max'")):
        with pytest.raises(vkrope.InvalidArgumentError, match=sentence):
            vkrope.Kernel(device, llama, q=vkrope.HeadFormat(np.float32, ops=ops), max_position=8)
    kernel = vkrope.Kernel(device, llama, q=np.float32, k=np.float32, max_position=8)
    q = device.array(Q)
    with pytest.raises(vkrope.InvalidArgumentError, match="cos is float32 of .*must be alike"):
        vkrope.Kernel(device, llama, q=np.float32, angles=vkrope.CosSinCache(q[0, :, 0], q[0, 0]))
    ids = device.array(np.zeros(4, np.int32))
    refused("q, k and v are all missing")
    refused("must be", q=q, direction="back")
    refused("q has 1 sequences of 4, k has 1 sequences of 3", q=q, k=q[:, :3])
    refused("made without position_ids", q=q, positions=ids)
    refused("positions is 2147483648", q=q, positions=2**31)
    refused(r"q has the shape \(2, 128\)", q=q[0, 0])
    refused("q has the stride 2 between channels", q=q[..., ::2])
    refused("without out_k or out_v", q=q, slot_mapping=ids)
    # The library refuses arguments that this kernel does not use, by their names.
    factors = device.array(np.ones(4, np.float32))
    refused("slot_mapping", q=q, k=q, out_k=q, slot_mapping=ids)
    refused("scale_tokens", q=q, q_scale_tokens=factors)
    refused("parameters", q=q, parameters=factors)
    refused("first_set_tokens", q=q, first_set_tokens=1)
    refused("out_v is given without v", q=q, out_v=q)
    kernel = vkrope.Kernel(device, llama, q=np.float32, max_position=8, position_ids=True)
    refused("this kernel takes ids", q=q, positions=3)
    refused("positions has the dtype float32", q=q, positions=q)
    np.testing.assert_array_equal(q.numpy(), Q)


def test_device_arrays_refuse(device):
    there = device.array(Q)
    with pytest.raises(vkrope.InvalidArgumentError, match="every axis must have an element"):
        device.empty((2, 0), np.float32)
    with pytest.raises(vkrope.InvalidArgumentError, match="values are float64 of the shape"):
        there.write(Q.astype(np.float64))
    with pytest.raises(IndexError):
        there[0, 4]
    with pytest.raises(IndexError, match="5 indices"):
        there[0, 0, 0, 0, 0]
    with pytest.raises(IndexError, match="in their order"):
        there[:, ::-1]
    with pytest.raises(vkrope.InvalidArgumentError, match="axes"):
        there.transpose(0, 0, 1, 2)
