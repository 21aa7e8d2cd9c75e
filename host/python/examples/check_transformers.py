# SPDX-License-Identifier: MIT
"""Checks the Q and K that a PyTorch model rotates against the definition.

    check_transformers.py CONFIG [--engine transformers|torch] [--tokens N] [--dtype float32]

CONFIG is a model's config.json. A rotation needs no weights, so the model is built with random
weights and with at most one layer of each kind. The engine "transformers" is Hugging Face's model
of that configuration; "torch" is the attention below, which you can replace by your own. Every
rotation of every layer is recorded with its input and checked by vkrope.
"""

import argparse
import contextlib
import json
import sys

import numpy as np
import torch
import vkrope


def rotate_half(x):
    """Puts the negated second half of the channels before the first half, as Hugging Face does."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin):
    """q and k: [batch, heads, tokens, head_dim]; cos and sin: [tokens, head_dim]"""
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class Attention(torch.nn.Module):
    """The work of an engine before attention: projections and rotation."""

    def __init__(self, rotation, hidden, heads, key_heads):
        super().__init__()
        self.rotation = rotation
        self.q = torch.nn.Linear(hidden, heads * rotation.head_dim, bias=False)
        self.k = torch.nn.Linear(hidden, key_heads * rotation.head_dim, bias=False)

    def forward(self, hidden_states):
        batch, tokens, _ = hidden_states.shape
        shape = (batch, tokens, -1, self.rotation.head_dim)
        q = self.q(hidden_states).view(shape).transpose(1, 2)
        k = self.k(hidden_states).view(shape).transpose(1, 2)
        angles = torch.outer(torch.arange(tokens).double(), torch.tensor(self.rotation.inv_freq))
        both = torch.cat((angles, angles), dim=-1)
        factor = self.rotation.attention_factor
        cos, sin = both.cos() * factor, both.sin() * factor
        return apply_rotary_pos_emb(q, k, cos.to(q.dtype), sin.to(q.dtype))


@contextlib.contextmanager
def recorded(module):
    """Records each call of the module's apply_rotary_pos_emb: its q and k, before and after."""
    original, calls = module.apply_rotary_pos_emb, []

    def record(q, k, *arguments, **keywords):
        q_rotated, k_rotated = original(q, k, *arguments, **keywords)
        calls.append([as_numpy(tensor) for tensor in (q, k, q_rotated, k_rotated)])
        return q_rotated, k_rotated

    module.apply_rotary_pos_emb = record
    try:
        yield calls
    finally:
        module.apply_rotary_pos_emb = original


def as_numpy(tensor):
    """Returns a copy as an array; bfloat16 becomes uint16, which vkrope reads as bfloat16."""
    tensor = tensor.detach().cpu().clone()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16)
    return tensor.numpy()


def check_calls(config, calls, tolerance=None):
    """Prints a line for each recorded rotation and returns whether all are right."""
    right = True
    for layer, (q, k, q_rotated, k_rotated) in enumerate(calls):
        found = vkrope.check(
            config, q=q, actual=q_rotated, k=k, actual_k=k_rotated, layout="bhsd",
            tolerance=tolerance,
        )  # fmt: skip
        error = f"{found['max_error_u']:.3g} u of {found['bound_u']:.3g} u"
        reasons = [match["meaning"] for match in found["matches"][:1]]
        print(f"rotation {layer}: {found['verdict']}, {error}", *reasons, sep="; ")
        right = right and found["verdict"] in ("pass", "close")
    return right and bool(calls)


def run_torch(config, tokens, dtype):
    """Records the rotations of the attention above."""
    rotation = vkrope.frequencies(config)
    heads = config["num_attention_heads"]
    model = Attention(rotation, 64, heads, config.get("num_key_value_heads", heads)).to(dtype)
    with recorded(sys.modules[__name__]) as calls, torch.no_grad():
        model(torch.randn(1, tokens, 64).to(dtype))
    return calls


def run_transformers(config, tokens, dtype):
    """Records the rotations of Hugging Face's model, with two layers and few words."""
    import transformers

    small = {**config, "num_hidden_layers": 2, "vocab_size": 128}
    settings = transformers.AutoConfig.for_model(**small)
    model = transformers.AutoModelForCausalLM.from_config(settings).to(dtype).eval()
    with recorded(sys.modules[type(model).__module__]) as calls, torch.no_grad():
        model(torch.randint(0, 128, (1, tokens)))
    return calls


def main(arguments=None):
    """Returns the exit code: 0 if every rotation is right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", help="a model's config.json")
    parser.add_argument("--engine", choices=["transformers", "torch"], default="transformers")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--dtype", choices=["float32", "float16", "bfloat16"], default="float32")
    parser.add_argument("--tolerance", type=float, help="share of |x0| + |x1| that is right enough")
    given = parser.parse_args(arguments)
    with open(given.config, encoding="utf-8") as file:
        config = json.load(file)
    torch.manual_seed(1)
    run = run_torch if given.engine == "torch" else run_transformers
    calls = run(config, given.tokens, getattr(torch, given.dtype))
    return 0 if check_calls(config, calls, given.tolerance) else 1


if __name__ == "__main__":
    sys.exit(main())
