# SPDX-License-Identifier: MIT
"""Tests that `vkrope rotate` rejects every wrong input before it looks for a device, with an error
that names the input, and that no file is left behind. (Headers of .npy and .safetensors files:
npy_test.cpp, safetensors_test.cpp. The advice of errors: test_advice.py.)"""

import os
import re

import numpy as np
import pytest

from command import limited, rows, save, write_model

REFUSED = """
2 | --q*--k                                | rotate --v k.npy --out-v ov.npy
2 | --out-v*--v                            | with --v k.npy
2 | --v*--out-v                            | with --out-v ov.npy
2 | --{0}:*{1} | with --{0} {1} | layout=hdsb dtype=f64 gain=double angles=cos_sin_cache \
pairing=odd_even repeat=0 repeat=1001 first-position=2147483648
2 | layer_type*full_attention              | with --layer-type full_attention
2 | --rotary-offset:*64*2*64               | with --rotary-offset 2
2 | head_dim 32                            | with --head-dim 32
5 | --head-dim                             | with --head-dim 128
5 | --model:*negative.json*rope_theta      | model negative.json
5 | --model:*missing.json                  | model missing.json
5 | --q:*'{}'                              | q {} | missing.npy . /dev/null pipe model.json
5 | --q:*f8_1x5x4x64.npy*<f8               | q f8_1x5x4x64.npy
5 | --q:*f2_1x5x4x64.npy*f16*f32           | q f2_1x5x4x64.npy --dtype f32
5 | --k:*u2_1x5x2x64.npy*bf16*f2_1x5x4x64.npy*f16 | q f2_1x5x4x64.npy --k u2_1x5x2x64.npy --out-k \
ok.npy
5 | (1, 5, 4, 64)*thd                      | with --layout thd
5 | --q:*f4_4x64.npy*(4, 64)*bshd          | q f4_4x64.npy
5 | --q:*f4_4294967296x0x4x64.npy*2^32     | q f4_4294967296x0x4x64.npy
5 | --q:*f4_1x5x1x63.npy*63*64             | q f4_1x5x1x63.npy
5 | --k:*f4_1x6x2x64.npy*6*q.npy*5         | q q.npy --k f4_1x6x2x64.npy --out-k ok.npy
5 | --k:*f4_2x5x2x64.npy*2*q.npy*1         | q q.npy --k f4_2x5x2x64.npy --out-k ok.npy
5 | --v:*missing.npy                       | v missing.npy
5 | --v:*f2_1x5x4x64.npy*f16*f32           | v f2_1x5x4x64.npy
5 | --v:*f4_1x6x2x64.npy*6*5               | v f4_1x6x2x64.npy
5 | --v:*f4_2x5x2x64.npy*2*1               | v f4_2x5x2x64.npy
5 | --v:*f4_5x2x1.npy*(5, 2, 1)*bshd       | v f4_5x2x1.npy
5 | --v:*f4_1x5x2x1.npy*head_dim 1*65534   | v f4_1x5x2x1.npy
5 | --v:*f4_1x5x1x65535.npy*head_dim 65535*65534 | v f4_1x5x1x65535.npy
5 | --v:*k.npy*2                           | q f4_1x5x0x64.npy --v k.npy --out-v ov.npy
2 | --positions                            | with --positions i4_5.npy --first-position 7
5 | --positions:*missing.npy               | with --positions missing.npy
5 | --positions:*q.npy*<f4                 | with --positions q.npy
5 | --positions:*(2, 5)*(5,)*(1, 5)        | with --positions i4_2x5.npy
5 | --positions:*(2, 1, 5)                 | with --positions i4_2x1x5.npy
5 | --positions:*2147483648*3              | with --positions above.npy
5 | --positions:*-2147483649*1             | with --positions below.npy
2 | --q-norm:                              | k --q-norm f4_64.npy --norm-eps 1e-6
2 | --q-scale:                             | k --q-scale 2
2 | --q-scale-tokens:                      | k --q-scale-tokens f4_5.npy
2 | --{0}:*{1} | with --{0} {1} | clip=0 clip=-2 clip=NaN clip=1e39 q-scale=0 q-scale=inf \
q-scale=2x scale-floor=-1 scale-floor=1e39 norm-kind=group norm-span=row norm-place=between \
hadamard=96 store=q6_k
2 | --hadamard:*{}                         | with --hadamard q={} | 1 513 x
2 | --norm-eps:*'{}' | with --q-norm f4_64.npy --norm-eps {} | 0 1e-21 1.5 NaN none
2 | --norm-offset                          | with --q-norm f4_64.npy --norm-offset 2
2 | --store:*q6_k                          | with --store q=f16,k=q6_k
2 | --store:*'{}' | with --store {} | x=f16 q=f16,q=f32 q=f16,k q=f16, =f16 q=f16,,k=f16
2 | --store:*--v                           | with --store v=q8_0
2 | --roof:*Q*q8_0                         | with --store q=q8_0 --roof
2 | --hadamard:*--v                        | with --hadamard q=64,v=64
2 | --store-scale:*--v                     | with --store int8 --store-scale v=2
2 | --out-v-scales:*--v                    | with --store int8 --out-v-scales s.npy
2 | --store:*q5_1*'f4_1x5x2x40.npy'*40     | v f4_1x5x2x40.npy --store v=q5_1
2 | --store-scale:*'{}' | with --store int8 --store-scale {} | 0 inf 1e-50 2x rows
5 | --store-scale:*'f4_3.npy'*(3,)*(2,)    | with --store k=int8 --store-scale k=f4_3.npy
5 | --store-scale:*'one_zero.npy'*0*1      | with --store k=int8 --store-scale k=one_zero.npy
5 | --store-scale:*'absent.npy'            | with --store k=int8 --store-scale k=absent.npy
2 | --scale-floor:*2^127 | with --store int8 --store-scale k=row_power_of_two --scale-floor 3e38 \
--out-k-scales s.npy
2 | s.npy*--out-q-scales                   | rows --out-q-scales s.npy --out-k-scales s.npy
2 | ok.npy*--out-k                         | rows --out-q-scales s.npy --out-k-scales ok.npy
2 | --out-q-scales:*'f4_5.npy' | rows --q-scale-tokens f4_5.npy --out-q-scales f4_5.npy \
--out-k-scales s.npy
2 | --out-q-scales:*'s.safetensors'        | rows --out-q-scales s.safetensors --out-k-scales \
s.npy
2 | --k-norm-channels:*'{1}' | with --k-norm f4_64.npy --k-norm-channels {0} | 12=12 x:4=x 0:0=0 \
-1:4=-1 4:= 0:70000=70000
2 | --k-norm-channels:*60:8*64*'k.npy' | part 60:8
2 | --k-norm-channels:*2:63*64*'k.npy' | part 2:63
5 | --k-norm:*'f4_8.npy'*(12,)             | part 4:12
2 | --{0}-norm-channels:*--{1} is missing  | k --q-norm-channels 0:4 --v-norm-channels 0:4 | q=q
2 | --v-norm-channels:*--v is missing      | with --v-norm-channels 0:4
2 | --second:*{}                           | with --second k={} | q8_0 int8 x
2 | --second:*Q                            | with --second q=f16
2 | --second-of:*Q                         | with --second k=f16 --second-of q=input
2 | --second-of:*'{}'                      | with --second k=f16 --second-of k={} | none rows
2 | --second:*--v                          | with --second v=f16 --out-v-second s.npy
2 | --second-of:*--v                       | with --second-of v=input
2 | --out-v-second:*--v                    | with --out-v-second s.npy
2 | --second:*--k*--v                      | q q.npy --second f16
2 | --second-of:*V is stored once          | v k.npy --second k=f16 --out-k-second s.npy \
--second-of v=input
2 | --out-v-second:*V                      | v k.npy --second k=f16 --out-k-second s.npy \
--out-v-second t.npy
2 | --roof:*K                              | with --second f16 --out-k-second s.npy --roof
2 | --dtype:*'{}'                          | with --dtype {} | q6_k x=f16 k=f16,k=f16
2 | --dtype:*--q                           | rows_of u1_1x5x2x68.npy --dtype k=q8_0 --q q.npy \
--out-q oq.npy
2 | --hadamard-of-input:*--q               | with --hadamard-of-input 64
2 | --dtype:*--q is missing                | k --dtype q=f32
5 | --k:*'u1_1x5x2x68.npy'*|u1*--dtype     | rows_of u1_1x5x2x68.npy
5 | --k:*'k.npy'*f32*q8_0                  | rows_of k.npy --dtype q8_0
5 | --k:*'u1_1x5x2x70.npy'*70*34*32        | rows_of u1_1x5x2x70.npy --dtype k=q8_0
5 | --k:*'u1_1x5x2x34.npy'*head_dim 32     | rows_of u1_1x5x2x34.npy --dtype q8_0
2 | --dtype:*--second                      | moves --second k=f16 --out-k-second s.npy
2 | --hadamard-of-input:*'{}'              | k --hadamard-of-input {} | 3 1024 k=64,64
2 | --hadamard-of-input:*128*'k.npy'*64    | k --hadamard-of-input 128
2 | --hadamard-of-input:*--v               | k --hadamard-of-input v=64
2 | --hadamard-of-input:*all heads         | k --hadamard-of-input 64 --k-norm f4_64.npy \
--norm-eps 1e-6 --norm-span token
2 | --k-scales:*K*q8_0                     | moves --k-scales f4_1x5x2.npy
2 | --v-scales:*--v is missing             | moves --v-scales f4_1x5x2.npy
5 | --k-scales:*(1, 5, 3)*(1, 5, 2)*<f4    | scaled f4_1x5x3.npy
5 | --k-scales:*|u1*<f4                    | scaled u1_1x5x2.npy
5 | --k-scales:*<f4*|u1                    | scaled f4_1x5x2.npy --scale-type ue8m0
5 | --k-scales:*(1, 5, 2)*(1, 5, 2, 2)     | scaled f4_1x5x2.npy --store-scale-group 32
2 | --out-k-scales:*--k-scales             | scaled f4_1x5x2.npy --store-scale row \
--out-k-scales f4_1x5x2.npy
2 | --store-scale-group:*'{}'              | rows --store-scale-group {} | 0 16 48 256
2 | --store-scale-group:*128*64            | scaled f4_1x5x2.npy --store-scale-group 128
2 | --{0}:*no scales                       | with --{0} {1} | store-scale-group=32 scale-type=f32
2 | --scale-type:*row_power_of_two         | rows --scale-type ue8m0 --out-q-scales s.npy \
--out-k-scales t.npy
2 | --store:*int4*'f4_1x5x2x7.npy'*7       | v f4_1x5x2x7.npy --store v=int4
2 | ok.npy*--out-k                         | with --second f16 --out-k-second ok.npy
2 | --out-k-second:*--k                    | with --second f16 --out-k-second k.npy
5 | --q-norm:*'missing.npy'                | with --q-norm missing.npy --norm-eps 1e-6
5 | --q-norm:*'f8_64.npy'*<f8              | with --q-norm f8_64.npy --norm-eps 1e-6
5 | --q-bias:*'model.json'                 | with --q-bias model.json
2 | --out-q:*f4_64.npy' | rotate --q q.npy --out-q ./f4_64.npy --q-norm f4_64.npy --norm-eps 1e-6
3 |                                        | with --positions i4_5.npy
3 |                                        | v k.npy --angles computed
3 |                                        | with --float32-angles --angles direct_buffer
3 |  | with --store q=f16,k=e4m3fn --hadamard llama.cpp --store-scale k=2
3 |  | rows --out-q-scales s.npy --out-k-scales t.npy --scale-floor 1e-6
3 |                                        | part 56:8
3 |  | v k.npy --second k=f16,v=bf16 --second-of v=input --out-k-second s.npy --out-v-second t.npy
3 |                                        | qwen3 --q-norm f4_64.npy --k-norm f4_2x64.npy
3 | note: --model:*rms norm*--model-ops    | qwen3
"""
STARTS = {
    "rotate": "rotate --model model.json",
    "model": "rotate --q q.npy --out-q out.npy --model",
    "q": "rotate --model model.json --out-q out.npy --q",
    "k": "rotate --model model.json --k k.npy --out-k ok.npy",
    "with": "rotate --model model.json --q q.npy --k k.npy --out-q oq.npy --out-k ok.npy",
    "qwen3": "rotate --model qwen3.json --q q.npy --k k.npy --out-q oq.npy --out-k ok.npy",
}
STARTS["rows_of"] = "rotate --model model.json --out-k ok.npy --k"
STARTS["moves"] = f"{STARTS['rows_of']} u1_1x5x2x68.npy --dtype q8_0"
STARTS["scaled"] = f"{STARTS['rows_of']} u1_1x5x2x64.npy --dtype int8 --k-scales"
STARTS["v"] = f"{STARTS['with']} --out-v ov.npy --v"
STARTS["part"] = f"{STARTS['with']} --k-norm f4_8.npy --norm-eps 1e-6 --k-norm-channels"
STARTS["rows"] = f"{STARTS['with']} --store int8 --store-scale row"


@pytest.fixture
def inputs(vkrope):
    write_model()
    write_model("qwen3.json", model_type="qwen3", head_dim=64)
    write_model("negative.json", rope_theta=-10000.0)
    os.mkfifo("pipe")
    save(q=np.zeros((1, 5, 4, 64), "f4"), k=np.zeros((1, 5, 2, 64), "f4"),
         above=np.array([0, 1, 2, 2**31, 4]), below=np.array([[0, -(2**31) - 1, 2, 3, 4]]),
         one_zero=np.array([1, 0], "f4"))  # fmt: skip
    return vkrope


@pytest.mark.parametrize("code, words, line", rows(REFUSED, **STARTS))
def test_refused(inputs, code, words, line):
    """Makes each file f4_2x64.npy, or the like, with zeros of this type and shape."""
    for name, dtype, shape in re.findall(r"((f2|f4|f8|u1|u2|i4)_([0-9x]+))\.npy", line):
        save(**{name: np.zeros([int(size) for size in shape.split("x")], dtype)})
    inputs.refuse(code, words, line)


def test_no_note_where_the_model_has_no_more_ops(inputs):
    code, _, err = inputs(STARTS["with"])
    assert code == 3 and "note:" not in err


def test_a_tensor_too_large_for_the_memory(inputs):
    """Its file has a hole of 8 GiB, which takes no space on the disk."""
    limit = limited("AS", 2_000_000 << 10)
    if inputs("--version", **limit)[0]:
        pytest.skip("the command does not start within 2 GB: a sanitizer reserves terabytes")
    np.lib.format.open_memmap("huge.npy", "w+", "f4", (1, 8388608, 4, 64))
    inputs.refuse(6, "memory", f"{STARTS['q']} huge.npy", **limit)
