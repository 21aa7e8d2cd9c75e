# SPDX-License-Identifier: MIT
"""RoPE parameters of a model: frequencies, factors, pairing."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Mapping, Sequence, Union

import numpy as np

from ._declarations import ffi
from ._errors import InvalidArgumentError, InvalidDataError
from ._library import call, in_range, lib, new_struct, set_field, text
from ._words import angle_sources, pairings, precisions, section_orders

Model = Union[str, "os.PathLike[str]", Mapping[str, Any]]
"""Path of a config.json (Hugging Face) or GGUF file, or the content of a config.json."""


@dataclass(frozen=True)
class Sections:
    """The assignment of pairs to axes for tokens with a position on each of several axes."""

    order: str
    """ "sequential" (Qwen2-VL, vision), "interleaved" (Qwen3-VL) or "sum" (Mochi): every pair
    rotates by the sum over all axes"""
    pairs: tuple[int, ...]
    """number of pairs in each section: one section per axis, 2 to 8; a sum: a 0 for each axis"""
    leftover_axis: int = 0
    """for interleaved sections, the axis of the remaining pairs"""


class RopeParams:
    """RoPE parameters of a model or of one of its layer types. Immutable.

    Args:
        inv_freq:          [rotary_dim / 2] radians per position; with the order "sum"
                           [axes, rotary_dim / 2]; with several head groups there is a
                           first axis [head_groups, ...]
        pairing:           "half_split" (Hugging Face Llama) or "interleaved" (GPT-J); no default
        head_dim:          channels per head; the default is rotary_dim
        attention_factor:  multiplies cos and sin, 2^-64 to 2^64
        q_rotary_offset:   first rotated channel of a query row
        k_rotary_offset:   first rotated channel of a key row
        windows:           (offset, rotary_dim) of up to 4 windows of a row, ascending; pairs are
                           formed within each window, and offsets count from the rotary offset.
                           Empty: one window
        sections:          assignment of pairs to axes; None: one position per token
        precision:         "exact", or "float32", the angles that Hugging Face transformers computes
        base:              base of the unscaled frequencies; 0: unknown
        phase:             [rotary_dim / 2] or [head_groups, rotary_dim / 2] radians that are added
                           to the angles; None: none
        head_groups:       number of groups of consecutive heads, each with its own frequencies

    Raises:
        InvalidArgumentError: a number is outside its range
    """

    def __init__(
        self,
        inv_freq: Any,
        *,
        pairing: str,
        head_dim: int = 0,
        attention_factor: float = 1.0,
        q_rotary_offset: int = 0,
        k_rotary_offset: int = 0,
        windows: Sequence[tuple[int, int]] = (),
        sections: Sections | None = None,
        precision: str = "exact",
        base: float = 0.0,
        phase: Any = None,
        head_groups: int = 1,
    ) -> None:
        numbers = np.array(inv_freq, np.float64, order="C")
        outer = (head_groups,) if head_groups != 1 else ()
        if sections is not None and sections.order == "sum":
            outer += (len(sections.pairs),)
        if numbers.shape[:-1] != outer or numbers.ndim == 0 or numbers.size == 0:
            raise InvalidArgumentError(
                f"inv_freq has the shape {numbers.shape}: it must be "
                f"[{', '.join([*map(str, outer), 'rotary_dim / 2'])}]"
            )
        pairs = numbers.shape[-1]
        phases = np.array([] if phase is None else phase, np.float64, order="C")
        info = new_struct(
            "vkrope_rope_params",
            head_dim=head_dim or 2 * pairs,
            rotary_dim=2 * pairs,
            head_groups=head_groups,
            pairing=pairings.number("pairing", pairing),
            precision=precisions.number("precision", precision),
            attention_factor=attention_factor,
            q_rotary_offset=q_rotary_offset,
            k_rotary_offset=k_rotary_offset,
            base=base,
        )
        _set_windows(info, windows)
        info.inv_freq = ffi.from_buffer("double[]", numbers)
        info.inv_freq_count = numbers.size
        if phases.size != 0:
            info.phase = ffi.from_buffer("double[]", phases)
            info.phase_count = phases.size
        _set_sections(info, sections)
        _check(info)
        self._params = info
        self._kept = (numbers, phases)

    @classmethod
    def without_rope(cls, head_dim: int) -> RopeParams:
        """Returns the parameters of a layer without RoPE, for a Kernel that only applies ops,
        converts, quantises and stores."""
        info = new_struct("vkrope_rope_params", no_rope=True)
        set_field(info, "head_dim", head_dim)
        return cls._of(info, None)

    @classmethod
    def _of(cls, params: Any, kept: Any) -> RopeParams:
        """Wraps a vkrope_rope_params; `kept` owns the data that it points to."""
        made = cls.__new__(cls)
        made._params, made._kept = params, kept
        return made

    def replace(self, **changes: Any) -> RopeParams:
        """Returns a copy with other values of `pairing`, `head_dim`, `attention_factor`,
        `precision`, `q_rotary_offset`, `k_rotary_offset`, `windows` or `sections`."""
        info = ffi.new("vkrope_rope_params*", self._params[0])
        for name, value in changes.items():
            if name in ("pairing", "precision"):
                words = pairings if name == "pairing" else precisions
                setattr(info, name, words.number(name, value))
            elif name == "sections":
                _set_sections(info, value)
            elif name == "windows":
                _set_windows(info, value)
            elif name in ("head_dim", "attention_factor", "q_rotary_offset", "k_rotary_offset"):
                set_field(info, name, value)
            else:
                raise InvalidArgumentError(f"{name} is not a value that replace() changes")
        _check(info)
        return RopeParams._of(info, self._kept)

    @property
    def inv_freq(self) -> np.ndarray:
        """A copy of the frequencies: float64 radians per position, in the shape of the argument."""
        info = self._params
        if info.inv_freq_count == 0:
            return np.empty(0)
        numbers = np.array(ffi.unpack(info.inv_freq, info.inv_freq_count))
        outer = (self.head_groups,) if self.head_groups != 1 else ()
        sections = self.sections
        if sections is not None and sections.order == "sum":
            outer += (len(sections.pairs),)
        return numbers.reshape(*outer, -1)

    @property
    def phase(self) -> np.ndarray | None:
        """A copy of the phases, which are added to the angles: float64 radians
        [head_groups, rotary_dim / 2], without the first axis for one group. None: no phases."""
        info = self._params
        if info.phase_count == 0:
            return None
        numbers = np.array(ffi.unpack(info.phase, info.phase_count))
        return numbers if self.head_groups == 1 else numbers.reshape(self.head_groups, -1)

    @property
    def head_groups(self) -> int:
        """Number of groups of consecutive heads, each with its own frequencies."""
        return self._params.head_groups

    @property
    def rotates(self) -> bool:
        """False for a layer without RoPE."""
        return not self._params.no_rope

    @property
    def pairing(self) -> str | None:
        """ "half_split" or "interleaved": the channels of a pair; None after without_rope()."""
        number = self._params.pairing
        return None if number == lib.VKROPE_PAIRING_NONE else pairings.word(number)

    @property
    def precision(self) -> str:
        """ "exact" or "float32": precision of the angles."""
        return precisions.word(self._params.precision)

    @property
    def head_dim(self) -> int:
        """Number of channels per head."""
        return self._params.head_dim

    @property
    def rotary_dim(self) -> int:
        """Number of rotated channels."""
        return self._params.rotary_dim

    @property
    def q_rotary_offset(self) -> int:
        """First rotated channel of a query row."""
        return self._params.q_rotary_offset

    @property
    def k_rotary_offset(self) -> int:
        """First rotated channel of a key row."""
        return self._params.k_rotary_offset

    @property
    def windows(self) -> tuple[tuple[int, int], ...]:
        """(offset, rotary_dim) of each window of a row; empty: one window."""
        info = self._params
        return tuple(
            (window.offset, window.rotary_dim)
            for window in info.windows
            if window.rotary_dim != 0
        )

    @property
    def attention_factor(self) -> float:
        """Factor of cos and sin."""
        return self._params.attention_factor or 1.0

    @property
    def softmax_scale(self) -> float:
        """Factor for the caller's softmax scale; never applied here."""
        return self._params.softmax_scale or 1.0

    @property
    def base(self) -> float:
        """The unscaled frequencies are base^(-2j / rotary_dim); 0: unknown, or another formula."""
        return self._params.base

    @property
    def max_position(self) -> int:
        """Number of positions in the model's training; 0: unknown."""
        return self._params.max_position

    @property
    def longest_seq_len(self) -> int:
        """Longest sequence that these frequencies are valid for; 0: no limit."""
        return self._params.longest_seq_len

    @property
    def rope_type(self) -> str:
        """Name of the scaling in the model's file."""
        name = self._params.rope_type
        return text(name) if name != ffi.NULL else "default"

    @property
    def warnings(self) -> list[str]:
        """Values that were ignored or assumed while reading the model."""
        info = self._params
        return [text(info.warnings[index]) for index in range(info.warning_count)]

    @property
    def sections(self) -> Sections | None:
        """Assignment of pairs to axes; None: one position per token."""
        of = self._params.sections
        if of.axes == 0:
            return None
        return Sections(
            order=section_orders.word(of.order),
            pairs=tuple(of.pairs[axis] for axis in range(of.axes)),
            leftover_axis=of.leftover_axis,
        )

    def __repr__(self) -> str:
        return (
            f"<vkrope.RopeParams {self.rope_type}, {self.pairing}, "
            f"{self.rotary_dim} of {self.head_dim} channels>"
        )


def _check(params: Any) -> None:
    """Checks that arrays have the sizes that the other fields require."""
    summed = params.sections.axes if params.sections.order == lib.VKROPE_SECTIONS_SUM else 1
    phases = params.rotary_dim // 2 * (params.head_groups or 1)
    for name, count, right in (
        ("inv_freq_count", params.inv_freq_count, phases * summed),
        ("phase_count", params.phase_count, phases if params.phase_count else 0),
    ):
        if count != right:
            raise InvalidArgumentError(f"{name} is {count}: it must be {right}")


def _read(function: Any, *arguments: Any) -> RopeParams:
    made = ffi.new("vkrope_model**")
    call(function, *arguments, made)
    model = ffi.gc(made[0], lib.vkrope_model_destroy)
    return RopeParams._of(lib.vkrope_model_get_params(model), model)


def _set_windows(info: Any, windows: Sequence[tuple[int, int]]) -> None:
    if len(windows) > lib.VKROPE_MAX_WINDOWS:
        raise InvalidArgumentError(
            f"windows has {len(windows)} entries: {lib.VKROPE_MAX_WINDOWS} at most"
        )
    for index in range(lib.VKROPE_MAX_WINDOWS):
        try:
            offset, rotary_dim = windows[index] if index < len(windows) else (0, 0)
            info.windows[index] = {"offset": offset, "rotary_dim": rotary_dim}
        except (OverflowError, TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"windows[{index}] is {windows[index]!r}: it must be (offset, rotary_dim), "
                f"uint32 each ({error})"
            ) from None


def _set_sections(info: Any, sections: Sections | None) -> None:
    info.sections = ffi.new("vkrope_sections*")[0]
    if sections is None:
        return
    axes = len(sections.pairs)
    if axes > lib.VKROPE_MAX_AXES:
        raise InvalidArgumentError(
            f"sections.pairs has {axes} axes: {lib.VKROPE_MAX_AXES} at most"
        )
    info.sections.order = section_orders.number("sections.order", sections.order)
    info.sections.axes = axes
    info.sections.pairs = [*sections.pairs, *[0] * (lib.VKROPE_MAX_AXES - axes)]
    set_field(info.sections, "leftover_axis", sections.leftover_axis)


def frequencies(
    model: Model,
    *,
    seq_len: int = 0,
    layer_type: str | None = None,
    layer: int | None = None,
    tower: str | None = None,
    pairing: str | None = None,
    ignore: Sequence[str] = (),
) -> RopeParams:
    """Reads the RoPE of a model, without its weights and without network access.

    Args:
        model:       path of a config.json (Hugging Face) or of a GGUF file, or the content of a
                     config.json as a dict, such as `transformers_model.config.to_dict()`
        seq_len:     length of the sequence if the scaling needs it; 0: unknown
        layer_type:  one of the model's layer types; not together with `layer`
        layer:       a layer, counted from 0
        tower:       "text" (the default) or "vision"
        pairing:     replaces the model's pairing, for weights that were permuted
        ignore:      names of keys that are taken out of the file before it is read, as errors
                     name them: keys that the model's own code does not use

    Raises:
        InvalidDataError:      the file cannot be read, or a field is missing or out of range
        NotSupportedError:     a rope type or architecture that this version does not support
        InvalidArgumentError:  the model does not have what the query selects
    """
    query = new_struct("vkrope_model_query", seq_len=seq_len)
    kept = []  # data that the query points to
    if layer_type is not None:
        kept.append(ffi.new("char[]", layer_type.encode()))
        query.layer_type = kept[-1]
    if tower is not None:
        kept.append(ffi.new("char[]", tower.encode()))
        query.tower = kept[-1]
    if layer is not None:
        query.by_layer = True
        query.layer = in_range("layer", layer, 2**31 - 1)
    if pairing is not None:
        query.pairing = pairings.number("pairing", pairing)
    kept += [ffi.new("char[]", name.encode()) for name in ignore]
    names = ffi.new("char*[]", kept[len(kept) - len(ignore) :])
    query.ignore, query.ignore_count = names, len(ignore)
    if isinstance(model, Mapping):
        content = json.dumps(model).encode()
    else:
        path = os.fspath(model)
        try:
            with open(path, "rb") as file:
                is_gguf = file.read(4) == b"GGUF"
                file.seek(0)
                content = b"" if is_gguf else file.read()
        except OSError as error:
            raise InvalidDataError(f"model '{path}' cannot be read: {error.strerror}") from None
        if is_gguf:
            return _read(lib.vkrope_model_from_gguf_file, os.fsencode(path), query)
    return _read(lib.vkrope_model_from_hf_config, content, len(content), query)


def rope_params_from_ggml_op(
    op_params: Sequence[int], head_dim: int, freq_factors: Any = None
) -> RopeParams:
    """Returns the RoPE of a node of ggml's graph.

    Args:
        op_params:     the 16 int32 words of a GGML_OP_ROPE or GGML_OP_ROPE_BACK
        head_dim:      ne[0] of the node
        freq_factors:  src[2] of the node, float32; None: the node has none

    Raises:
        InvalidArgumentError: a word that has no meaning, or a number outside its range
    """
    words = np.asarray(op_params)
    whole = words.shape == (16,) and words.dtype.kind in "iu"
    if not whole or not np.array_equal(words, words.astype(np.int32)):
        raise InvalidArgumentError(f"op_params is {op_params!r}: it must be 16 numbers of int32")
    numbers = np.empty(in_range("head_dim", head_dim, lib.VKROPE_MAX_HEAD_DIM) // 2)
    factors = np.array([] if freq_factors is None else freq_factors, np.float32)
    made = ffi.new("vkrope_rope_params*")
    call(
        lib.vkrope_rope_params_from_ggml_op,
        words.tolist(), head_dim,
        ffi.NULL if freq_factors is None else ffi.from_buffer("float[]", factors), factors.size,
        ffi.from_buffer("double[]", numbers), numbers.size, made,
    )  # fmt: skip
    return RopeParams._of(made, numbers)


def error_bound(source: str, attention_factor: float = 1.0) -> float:
    """Returns B of the error bound: a float32 result is within B * 2^-24 * attention_factor *
    (|x0| + |x1|) + 2^-148 of the exact result.

    Args:
        source:            "factored_texture", "computed", "direct_texture" or "direct_buffer"
        attention_factor:  attention factor of the rotation
    """
    number = angle_sources.number("source", source)
    return lib.vkrope_error_bound(number, attention_factor)
