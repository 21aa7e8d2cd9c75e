# SPDX-License-Identifier: MIT
"""Tests that the advice of an error works: a command that fails, with the words of its error, and
below it commands that follow this advice and get further, to their end (0) or until they look for a
device (3)."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from command import rows, save, write_model

ADVICE = """
2 | --norm-eps: missing                | plain --q-norm w.npy
3 |                                    | plain --q-norm w.npy --norm-eps 1e-6
3 | --model:*--model-ops takes them    | qwen3
2 | --q-norm: missing*weight           | qwen3 --model-ops
2 | --k-norm: missing*weight           | qwen3 --q-norm w.npy
3 |                                    | qwen3 --q-norm w.npy --k-norm w.npy
2 | --q-norm-bias: missing*bias        | chameleon --q-norm w_q.npy
2 | --k-norm: missing                  | chameleon --q-norm w_q.npy --q-norm-bias w_q.npy
2 | --k-norm-bias: missing             | layer --k-norm w_k.npy
3 |                                    | layer --k-norm w_k.npy --k-norm-bias w_k.npy
2 | --q-norm-bias:*--q-norm gives it one | plain --q-norm-bias w.npy
2 | --q-norm-bias:*only a layer norm   | norm --q-norm-bias w.npy
3 |                                    | norm --q-norm-bias w.npy --norm-kind layer
2 | --{0}:*--q-norm, --k-norm or --v-norm gives one | plain --{0} {1} \
| norm-place=after norm-span=token norm-kind=layer norm-eps=1e-6 norm-offset=1
3 |                                    | norm --{0} {1} \
| norm-place=after norm-span=token norm-kind=layer norm-offset=1
2 | --v-norm: --v is missing           | plain --v-norm --norm-eps 1e-6
3 |                                    | plain --v-norm --norm-eps 1e-6 --v k.npy --out-v ov.npy
2 | --v-bias: --v is missing           | plain --v-bias w.npy
3 |                                    | plain --v-bias w.npy --v k.npy --out-v ov.npy
5 | --q-norm:*'w_k.npy'*(2, 64)*needs (64,), (4, 64)*(256,) | \
plain --q-norm w_k.npy --norm-eps 1e-6
3 |                                    | plain --q-norm w_q.npy --norm-eps 1e-6
5 | --q-scale-tokens:*'w.npy'*(64,)*needs (5,)*(1, 5) | plain --q-scale-tokens w.npy
3 |                                    | plain --q-scale-tokens five.npy
2 | --store-scale:*--store gives no tensor | plain --store-scale 2
3 |                                    | plain --store-scale 2 --store int8
2 | --out-q-scales: missing            | plain --store int8 --store-scale row
2 | --out-q-scales:*--store-scale row makes them | plain --out-q-scales s.npy
3 |                                    | row
2 | --k-norm-channels:*--k-norm gives it one | plain --k-norm-channels 0:32
3 |                                    | plain --k-norm half.npy --norm-eps 1e-6 --k-norm-channels \
0:32
2 | --out-k-second:*--second stores it again | plain --out-k-second s.npy
2 | --second-of:*--second stores them again | plain --second-of input
2 | --out-k-second: missing            | plain --second f16
3 |                                    | plain --second f16 --second-of input --out-k-second s.npy
2 | --scale-floor:*--store-scale row makes them | plain --scale-floor 1
3 |                                    | row --scale-floor 1
2 | --store-scale:*Q*q8_0*int8 and int4 | plain --store q=q8_0,k=int8 --store-scale q=2
3 |                                    | plain --store {} --store-scale q=2 | e4m3fn e5m2 int8
2 | --hadamard:*--k is missing         | q q.npy --hadamard llama.cpp
3 |                                    | plain --hadamard llama.cpp
2 | --hadamard:*128*'k.npy'*head_dim 64*multiple | plain --hadamard k=128
3 |                                    | plain --hadamard k=64
2 | --q and --k are missing            | rotate
3 |                                    | q q.npy
3 |                                    | rotate --k k.npy --out-k ok.npy
2 | --out-q is missing; --q needs it   | rotate --q q.npy
2 | --k is missing; --out-k needs it   | q q.npy --out-k ok.npy
5 | --q:*head_dim 96*head_dim is 64; --head-dim | q wide.npy
3 |                                    | q wide.npy --head-dim 96
2 | --float32-angles:*direct_texture or direct_buffer | q q.npy --float32-angles --angles computed
3 |                  | q q.npy --float32-angles --angles {} | direct_texture direct_buffer
2 | --first-position:*2^31*have 5      | q q.npy --first-position 2147483644
3 |                                    | q q.npy --first-position 2147483643
5 | --positions:*need (5,)             | q q.npy --positions three.npy
3 |                                    | q q.npy --positions ids.npy
2 | --out-k:*each output must be a separate file | q q.npy --k k.npy --out-k oq.npy
3 |                                    | plain
5 | --model:*name the config.json in it | frequencies .
0 |                                    | frequencies ./config.json
5 | give a pairing                     | frequencies told.json
0 |                                    | frequencies told.json --pairing interleaved
2 | ask for a single layer             | frequencies bases.json --layer-type sliding_attention
2 | --layer-type excludes --layer      | frequencies bases.json --layer 1 --layer-type x
0 |                                    | frequencies bases.json --layer 1
2 | layer_type*full_attention, sliding_attention | frequencies bases.json --layer-type chunked
0 |                                    | frequencies bases.json --layer-type full_attention
"""
BOTH = "rotate --q q.npy --k k.npy --out-q oq.npy --out-k ok.npy --model"
STARTS = {
    "plain": f"{BOTH} config.json", "norm": f"{BOTH} config.json --q-norm w.npy --norm-eps 1e-6",
    "qwen3": f"{BOTH} qwen3.json", "chameleon": f"{BOTH} chameleon.json",
    "layer": f"{BOTH} chameleon.json --q-norm w_q.npy --q-norm-bias w_q.npy",
    "row": f"{BOTH} config.json --store int8 --store-scale row --out-q-scales s.npy "
           "--out-k-scales t.npy",
    "rotate": "rotate --model config.json", "frequencies": "frequencies --model",
    "q": "rotate --model config.json --out-q oq.npy --q",
}  # fmt: skip


@pytest.fixture
def inputs(vkrope):
    write_model("config.json", num_hidden_layers=2)
    for name in "qwen3", "chameleon":
        write_model(f"{name}.json", model_type=name, num_hidden_layers=2, head_dim=64)
    write_model("told.json", head_dim=64, rope_interleaved=True)
    write_model("bases.json", model_type="granite_swa", head_dim=64, num_hidden_layers=4,
                layer_rope_theta=[1e4, 2e4, 1e4, 1e4])
    for name, shape in [("q", (1, 5, 4, 64)), ("k", (1, 5, 2, 64)), ("wide", (1, 5, 4, 96)),
                        ("w", 64), ("half", 32), ("w_k", (2, 64)), ("w_q", (4, 64)), ("five", 5)]:
        save(**{name: np.zeros(shape, "f4")})
    save(three=np.arange(3), ids=np.arange(5))
    return vkrope


@pytest.mark.parametrize("code, words, line", rows(ADVICE, **STARTS))
def test_advice(inputs, code, words, line):
    inputs.refuse(code, words, line)


def test_no_advice_for_rows_that_are_too_narrow(inputs):
    save(narrow=np.zeros((1, 5, 4, 32), "f4"))
    code, _, err = inputs(f"{STARTS['q']} narrow.npy")
    assert code == 5 and "head_dim 32" in err and "--head-dim" not in err


def test_a_file_of_several_tensors(inputs):
    k = {"dtype": "F32", "shape": [1, 5, 2, 64]}
    head = json.dumps({"a": {**k, "data_offsets": [0, 2560]},
                       "b": {**k, "data_offsets": [2560, 5120]}}).encode()
    Path("two.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes(5120))
    line = "rotate --model config.json --out-k ok.npy --k two.safetensors"
    inputs.refuse(5, "--k:*name one of them: FILE.safetensors:NAME", line)
    inputs.refuse(3, "", f"{line}:b")


def test_a_gguf_file_on_stdin(inputs, models):
    shutil.copy(models.parent / "corpus/gguf/llama3.gguf", "llama3.gguf")
    with open("llama3.gguf", encoding="latin-1") as file:
        inputs.refuse(5, "--model:*give its name", "frequencies --model -", stdin=file)
    inputs.works("frequencies --model llama3.gguf")
