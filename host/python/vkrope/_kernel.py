# SPDX-License-Identifier: MIT
"""Kernels, which rotate arrays that stay in device memory, also into and within a paged cache."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Mapping, NamedTuple, Optional, Union

import numpy as np

from ._arrays import element_of
from ._declarations import ffi
from ._device import Device, submit
from ._device_array import DeviceArray, check_arrays, packed_strides
from ._errors import InvalidArgumentError
from ._library import Handle, Owner, call, create, filled, in_range, lib, new_struct, set_field
from ._rotation import RopeParams
from ._words import angle_sources, directions, elements, gains, op_words, pairings, seconds


@dataclass(frozen=True)
class HeadFormat:
    """Storage format of Q, K or V."""

    dtype: Any
    """of the input: float32, float16, or uint16 or ml_dtypes.bfloat16 for bfloat16. For keys that
    move it may be a quantised type, a word such as "e4m3fn" or "q8_0": its arrays are uint8, and
    their last axis counts bytes"""
    dtype_out: Any = None
    """of the output, which may be quantised; None: the same"""
    head_dim: int = 0
    """channels per head; 0: as in the rotation; for V, as for K"""
    rotary_offset: Optional[int] = None
    """first rotated channel; None: as in the rotation"""
    heads: Optional[int] = None
    """number of heads in every run, 0: any; None: as in the rotation, if the model has ops"""
    ops: Optional[Mapping[str, Any]] = None
    """instead of the ops of the rotation: fields of vkrope_ops by name, a word for an enumerator,
    such as {"norm": {"kind": "rms", "eps": 1e-6, "weight": "channel"}, "scale_tokens": True}; a
    norm may take a part of a row, {"first_channel": 0, "channels": 512, ...}"""
    norm_weight: Any = None
    """dtype of the weight of the norm, float32, float16 or bfloat16, which run() then takes from an
    array of its own instead of from parameters(); None: it is in the parameters"""
    second: Any = None
    """of K and V: dtype of a second destination, float32, float16 or bfloat16, for which `heads`
    must be known; None: there is none"""
    second_of: Optional[str] = None
    """content of the second destination: "result", the rows after all ops, before they are rounded
    or quantised for the first; or "input", the rows as they were read"""


class CosSinCache(NamedTuple):
    """The caller's tables of cos and sin, float32, float16 or bfloat16, indexed by position."""

    cos: DeviceArray
    """[positions, rotary_dim / 2], or [positions, rotary_dim] with `channel_angles`"""
    sin: DeviceArray
    """as cos"""
    channel_angles: bool = False
    """each channel has its own cos and sin"""


class Run(NamedTuple):
    """Result of a run."""

    nanoseconds: Optional[float]
    """device time of the run; None if the device has no timestamps"""
    out_of_range: int
    """number of tokens whose position the table does not cover (their rows stay unrotated) or
    whose slot is outside the cache (their K and V are not stored); a token whose position is
    covered counts once more if V has slots of its own, and its slot there is outside. A
    token_count that is too large counts once"""


Format = Union[HeadFormat, Any]
"""A HeadFormat, or just its dtype"""

Pages = NamedTuple("Pages", [("page_size", int), ("page_stride", int), ("row_stride", int)])


class Kernel(Owner):
    """The compiled pipelines of one kind of rotation, with its angle table.

        kernel = vkrope.Kernel(device, rotation, q=np.float16, k=np.float16, max_position=8192)
        q_there, k_there = device.array(q), device.array(k)
        kernel.run(q=q_there, k=k_there, positions=4096)

    Args:
        device:        the device that runs the kernel
        rotation:      frequencies and pairs; or a layer without RoPE, whose kernel rotates nothing
                       and takes neither angles nor positions
        q, k, v:       format of each tensor: a HeadFormat or a dtype; None: the kernel does not
                       take the tensor. V is copied, never rotated
        max_position:  covers every position with |position| < max_position
        angles:        "automatic", "factored_texture", "computed", "direct_texture" or
                       "direct_buffer"; or a CosSinCache, which replaces the frequencies and
                       max_position, and contains the attention factor of the rotation
        position_ids:  positions come from a DeviceArray; otherwise they are consecutive. A
                       rotation with sections always takes positions from a DeviceArray
        scatter_kv:     rows of K and V go to the slots of a paged cache
        gather_kv:     rows of K and V come from the slots of a paged cache, for keys that move
                       within it or elsewhere: their positions are what is added to those that
                       they have. Such a kernel has no Q
        pairing_out:   pairing of the output; None: the same. With a different pairing the
                       outputs must not be the inputs
        two_parameter_sets: tokens from `first_set_tokens` of run() on use a second set of
                       weights, as do text and image tokens in a block with two streams
        token_count:   run() takes the number of tokens from a DeviceArray. Not with
                       two_parameter_sets
        ops:           the kernel also applies the norms and scales of the model, which the
                       rotation has from the model's file; False: it only rotates

    Raises:
        InvalidArgumentError, NotSupportedError, LimitExceededError: as for vkrope_kernel_create
    """

    def __init__(
        self,
        device: Device,
        rotation: RopeParams,
        *,
        q: Format | None = None,
        k: Format | None = None,
        v: Format | None = None,
        max_position: int = 0,
        angles: str | CosSinCache = "automatic",
        position_ids: bool = False,
        scatter_kv: bool = False,
        gather_kv: bool = False,
        pairing_out: str | None = None,
        two_parameter_sets: bool = False,
        token_count: bool = False,
        ops: bool = True,
    ) -> None:
        self.device = device
        self._two_sets = two_parameter_sets
        self._scatters, self._gathers = scatter_kv, gather_kv
        self._arena: Handle | None = None
        parent = device._open()
        self._table: Handle | None = None
        self._rotates = rotation.rotates
        with parent.lock:
            if not self._rotates:
                _check_default("max_position", max_position, 0)
                _check_default("angles", angles, "automatic")
                self._angles = None
            elif isinstance(angles, CosSinCache):
                check_arrays(device, {"cos": angles[0], "sin": angles[1]}, required=True)
                self._cache = _planned(angles, rotation)
                self._angles = self._cache.angles
            else:
                self._table = create(
                    lib.vkrope_angle_table_create, lib.vkrope_angle_table_destroy,
                    "vkrope_angle_table", parent.pointer, rotation._params,
                    angle_sources.number("angles", angles),
                    in_range("max_position", max_position, 2**64 - 1), parent=parent,
                )  # fmt: skip
                self._angles = lib.vkrope_angle_table_get(self._table.pointer)
            formats = {"q": _head_format(q), "k": _head_format(k), "v": _head_format(v)}
            info = new_struct("vkrope_kernel_info")
            get_info = lib.vkrope_get_kernel_info
            types = [_type_of(name, of) for name, of in formats.items()]
            layout = self._angles.layout if self._rotates else ffi.NULL
            call(get_info, rotation._params, layout, *types, info)
            for tensor, (name, of) in zip(info.tensor, formats.items()):
                if not ops:
                    tensor.ops = ffi.new("vkrope_ops*")[0]
                    tensor.heads = 0
                if of is None:
                    continue
                if of.dtype_out is not None:
                    tensor.out = _element(name, of.dtype_out)
                if of.head_dim != 0:
                    set_field(tensor, "head_dim", of.head_dim)
                if of.rotary_offset is not None:
                    set_field(tensor, "rotary_offset", of.rotary_offset)
                if of.heads is not None:
                    set_field(tensor, "heads", of.heads)
                if of.ops is not None:
                    tensor.ops = ffi.new("vkrope_ops*")[0]
                    _set_ops(f"{name}.ops", tensor.ops, of.ops)
                if of.norm_weight is not None:
                    norm = tensor.ops.norm
                    norm.weight_bound = True
                    norm.weight_type = element_of(f"{name}.norm_weight", of.norm_weight)
                _set_second(name, tensor, of)
            self._in = {name: getattr(info.tensor[i], "in") for i, name in enumerate(formats)}
            self._out = {name: info.tensor[i].out for i, name in enumerate(formats)}
            self._scale_types = [tensor.ops.scale_type for tensor in info.tensor]
            self._weight_types = [tensor.ops.norm.weight_type for tensor in info.tensor]
            of_heads = lib.VKROPE_PARAMETER_HEAD_CHANNEL
            self._weight_sizes = [
                (tensor.ops.norm.channels or tensor.head_dim)
                * (tensor.heads if tensor.ops.norm.weight == of_heads else 1)
                for tensor in info.tensor
            ]
            self._second = {
                name: None if of is None else of.second for name, of in formats.items()
            }
            self._parameter_layout = filled(
                "vkrope_parameter_layout", lib.vkrope_plan_parameters, info
            )
            self._sections = info.sections.axes != 0
            self._takes_ids = position_ids or self._sections
            self._computed = info.angles == lib.VKROPE_ANGLES_COMPUTED
            if self._takes_ids and not self._sections:
                info.positions = lib.VKROPE_POSITIONS_IDS
            info.scatter_kv, info.gather_kv = scatter_kv, gather_kv
            info.two_parameter_sets = two_parameter_sets
            info.token_count = token_count
            if pairing_out is not None:
                info.pairing_out = pairings.number("pairing_out", pairing_out)
            ref = lib.vkrope_device_get_ref(parent.pointer)
            self._pushes = bool(ref.enabled & lib.VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)
            self._handle = create(
                lib.vkrope_kernel_create, lib.vkrope_kernel_destroy, "vkrope_kernel", ref, info,
                parent=parent,
            )  # fmt: skip

    def close(self) -> None:
        """Releases the kernel and its table. Does nothing the second time."""
        for name in ("_arena", "_table"):
            handle, _ = getattr(self, name, None), setattr(self, name, None)
            if handle is not None:
                handle.release()
        super().close()

    def parameters(
        self,
        *,
        q: dict[str, np.ndarray] | None = None,
        k: dict[str, np.ndarray] | None = None,
        v: dict[str, np.ndarray] | None = None,
        second: dict[str, dict[str, np.ndarray]] | None = None,
    ) -> DeviceArray:
        """Copies the weights of the model's ops to device memory for run(), once per layer.

        Args:
            q, k, v:  arrays by name: "weight" and "norm_bias" for the norm, "bias", and
                      "store_scale", a given scale of a quantised output
            second:   with two_parameter_sets, the second set, as {"q": {"weight": ...}, ...}

        Raises:
            InvalidArgumentError: as for vkrope_fill_parameters
        """
        if self._parameter_layout.bytes == 0:
            raise InvalidArgumentError("this kernel has no weights: its ops need none")
        if (second is not None) != self._two_sets:
            sets = "two sets" if self._two_sets else "one set"
            raise InvalidArgumentError(f"second: this kernel was made for {sets} of parameters")
        filled_in = [self._filled_in({"q": q, "k": k, "v": v})]
        if second is not None:
            filled_in.append(self._filled_in(second))
        return self.device.array(np.concatenate(filled_in))

    def _filled_in(self, tensors: dict[str, dict[str, np.ndarray] | None]) -> np.ndarray:
        plan, kept = self._parameter_layout, []
        sources = new_struct("vkrope_parameter_sources")
        for name, given in tensors.items():
            if name not in ("q", "k", "v"):
                raise InvalidArgumentError(f"second has {name!r}: no such tensor")
            for part, values in (given or {}).items():
                if part not in ("weight", "norm_bias", "bias", "store_scale"):
                    raise InvalidArgumentError(f"{name} has {part!r}: no such weight or bias")
                values = np.ascontiguousarray(values)
                source = getattr(sources.tensor["qkv".index(name)], part)
                kept.append(ffi.from_buffer(values))
                source.data, source.count = kept[-1], values.size
                source.element = element_of(f"{name} {part}", values.dtype)
        filled_in = np.zeros(plan.bytes // 4, np.float32)
        memory = ffi.from_buffer(filled_in, require_writable=True)
        call(lib.vkrope_fill_parameters, plan, sources, memory, plan.bytes)
        return filled_in

    def run(
        self,
        *,
        q: DeviceArray | None = None,
        k: DeviceArray | None = None,
        v: DeviceArray | None = None,
        out_q: DeviceArray | None = None,
        out_k: DeviceArray | None = None,
        out_v: DeviceArray | None = None,
        positions: int | DeviceArray = 0,
        slot_mapping: DeviceArray | None = None,
        source_mapping: DeviceArray | None = None,
        v_slot_mapping: DeviceArray | None = None,
        v_source_mapping: DeviceArray | None = None,
        token_count: DeviceArray | None = None,
        parameters: DeviceArray | None = None,
        first_set_tokens: int = 0,
        q_scale_tokens: DeviceArray | None = None,
        k_scale_tokens: DeviceArray | None = None,
        v_scale_tokens: DeviceArray | None = None,
        q_scales: DeviceArray | None = None,
        k_scales: DeviceArray | None = None,
        v_scales: DeviceArray | None = None,
        k_scales_in: DeviceArray | None = None,
        v_scales_in: DeviceArray | None = None,
        k_second: DeviceArray | None = None,
        v_second: DeviceArray | None = None,
        q_norm_weight: DeviceArray | None = None,
        k_norm_weight: DeviceArray | None = None,
        v_norm_weight: DeviceArray | None = None,
        direction: str = "forward",
        gain: str = "apply",
    ) -> Run:
        """Rotates the tensors and waits for the device.

        Args:
            q, k, v:       [batch, tokens, heads, head_dim] or [tokens, heads, head_dim] in device
                           memory, with any strides but 1 between channels. With gather_kv, k and
                           v are caches
            out_q, ...:    arrays of the same shape; None: in place. With scatter_kv, out_k and
                           out_v are caches: [slots, heads, head_dim] or
                           [pages, page_size, heads, head_dim], also as a transposed view
            positions:     position of token 0 of every sequence; or, for a kernel that takes ids,
                           int32 or int64 [tokens], [batch, tokens] or [axes, batch, tokens]
            slot_mapping:  with scatter_kv, int32 or int64 [batch, tokens] or [tokens]: page *
                           page_size + row; -1 skips the token
            source_mapping: with gather_kv, slots that are read, like slot_mapping; None: the
                           same, so that rows stay where they are
            v_slot_mapping, v_source_mapping: the same of V, where its slots are not those of K;
                           the caches of V may then have another number of pages
            token_count:   with token_count, uint32 [1]: the tokens of each sequence, 0 to those of
                           the tensors. Tokens after them are neither read nor written
            parameters:    weights of the model's norms, from parameters(); required for norms
            first_set_tokens: with two_parameter_sets, number of tokens in each sequence that use
                           the first set of weights, 1 to tokens - 1
            q_scale_tokens, ...: float32 [batch, tokens]: factor of each token; required if the
                           model scales queries by position
            q_scales, ...: float32: receives the scales that the kernel makes for a quantised
                           output, [batch, tokens, heads], or for a cache one for each row; with
                           store_scale_group there is one more axis. uint8 of the type "ue8m0"
            k_scales_in, ...: scales of a quantised input, in the same form; of rows that stay in
                           their cache it is the array of k_scales
            k_second, ...: second destination, for a HeadFormat with `second`: packed, with the
                           shape of k or v, and rows for all tokens, those without a slot too
            q_norm_weight, ...: weight of the norm, for a HeadFormat with `norm_weight`: packed,
                           [channels of the norm] or [heads, channels]
            direction:     "forward" or "inverse"
            gain:          treatment of the attention factor: "apply", "omit" or "divide_out"

        Raises:
            InvalidArgumentError, NotSupportedError, LimitExceededError: as for vkrope_record
        """
        arrays = dict(locals())
        for name in ("self", "first_set_tokens", "direction", "gain"):
            del arrays[name]
        if not isinstance(positions, DeviceArray):
            del arrays["positions"]
        check_arrays(self.device, arrays)
        given = {"q": (q, out_q), "k": (k, out_k), "v": (v, out_v)}
        for name, (array, out) in given.items():
            if array is None and out is not None:
                raise InvalidArgumentError(f"out_{name} is given without {name}")
        mappings = {"slot_mapping": slot_mapping, "source_mapping": source_mapping,
                    "v_slot_mapping": v_slot_mapping, "v_source_mapping": v_source_mapping}
        mappings = {name: of for name, of in mappings.items() if of is not None}
        if self._gathers and mappings:
            batch, tokens = _of_slots(mappings)
        else:
            batch, tokens = _batch_and_tokens(
                {n: a for n, (a, _) in given.items() if a is not None}
            )
        counter = self.device.array(np.zeros(1, np.uint32))
        record = new_struct(
            "vkrope_call",
            batch=batch,
            tokens=tokens,
            direction=directions.number("direction", direction),
            gain=gains.number("gain", gain),
            first_set_tokens=in_range("first_set_tokens", first_set_tokens, 2**32 - 1),
        )
        if token_count is not None:
            if token_count.dtype != np.uint32 or math.prod(token_count.shape) != 1:
                raise InvalidArgumentError(
                    f"token_count is {token_count.dtype} of the shape {token_count.shape}: it must "
                    "be one uint32"
                )
            record.token_count = _where(token_count)
        if parameters is not None:
            record.parameters = _floats("parameters", parameters)
        factors = (q_scale_tokens, k_scale_tokens, v_scale_tokens)
        scales_out, scales_in = (q_scales, k_scales, v_scales), (None, k_scales_in, v_scales_in)
        for index, (name, factor) in enumerate(zip("qkv", factors)):
            if factor is not None:
                record.scale_tokens[index] = _floats(f"{name}_scale_tokens", factor)
            if scales_out[index] is not None:
                record.scales_out[index] = self._scales(index, "scales", scales_out[index])
            if scales_in[index] is not None:
                record.scales_in[index] = self._scales(index, "scales_in", scales_in[index])
        for index, weight in enumerate((q_norm_weight, k_norm_weight, v_norm_weight)):
            if weight is not None:
                record.norm_weight[index] = self._norm_weight(index, weight)
        caches = []
        for index, (name, (array, out)) in enumerate(given.items()):
            if array is None:
                continue
            from_cache, into_cache = (of and name != "q" for of in (self._gathers, self._scatters))
            if into_cache and not from_cache and out is None:
                raise InvalidArgumentError(
                    f"out_{name} is missing: with scatter_kv it is the cache"
                )
            for field, of, element, in_cache in (
                ("in", array, self._in[name], from_cache),
                ("out", array if out is None else out, self._out[name], into_cache),
            ):
                label = name if of is array else f"out_{name}"
                tensor = _tensor(label, of, element)
                if in_cache:  # its other strides are in vkrope_paged_cache
                    tensor.token_stride = tensor.batch_stride = 0
                    packed = of.strides == packed_strides(of.shape)
                    caches.append((label, _pages(label, of, element), packed))
                getattr(record, field)[index] = tensor[0]
        for index, (name, second) in enumerate({"k": k_second, "v": v_second}.items(), 1):
            if second is not None:
                self._check_second(name, second, given[name][0])
                record.second[index] = _whole_words(_where(second))
        if self._rotates:
            record.positions = self._positions(positions)[0]
        else:
            _check_default("positions", positions, 0)
        slots = (self._scatters or self._gathers) and (k is not None or v is not None)
        rotates = self._rotates and (q is not None or k is not None)
        may_be_outside = rotates and (not self._computed or record.positions.int64)
        if slots or may_be_outside or token_count is not None:  # else nothing can be counted
            record.out_of_range = _where(counter)
        if mappings:
            record.paged_cache = _paged_cache(mappings, caches)[0]
        nanoseconds = self._submit(record)
        return Run(nanoseconds if nanoseconds >= 0 else None, int(counter.numpy()[0]))

    def _scales(self, index: int, field: str, array: DeviceArray) -> dict[str, Any]:
        if self._scale_types[index] == lib.VKROPE_SCALE_TYPE_F32:
            return _floats(f"{'qkv'[index]}_{field}", array)
        if array.dtype != np.uint8 or not array._is_packed():
            raise InvalidArgumentError(
                f"{'qkv'[index]}_{field} has the dtype {array.dtype}: must be packed uint8"
            )
        return _whole_words(_where(array))

    def _norm_weight(self, index: int, array: DeviceArray) -> dict[str, Any]:
        field, wanted = f"{'qkv'[index]}_norm_weight", self._weight_types[index]
        if element_of(field, array.dtype) != wanted or not array._is_packed():
            raise InvalidArgumentError(
                f"{field} is {array.dtype} with the strides {array.strides}: must be packed "
                f"{elements.word(wanted)}, as norm_weight of its HeadFormat says"
            )
        size = math.prod(array.shape)
        if self._weight_sizes[index] not in (0, size):  # 0: the tensor is absent
            raise InvalidArgumentError(
                f"{field} has {size} numbers: must have the {self._weight_sizes[index]} of the norm"
            )
        return _whole_words(_where(array))

    def _check_second(self, name: str, second: DeviceArray, rows: DeviceArray | None) -> None:
        if rows is None or self._second[name] is None:
            missing = name if rows is None else "`second` in its HeadFormat"
            raise InvalidArgumentError(f"{name}_second is given without {missing}")
        dtype, shape = np.dtype(self._second[name]), rows.shape
        packed = packed_strides(shape)
        if (second.dtype, second.shape, second.strides) != (dtype, shape, packed):
            raise InvalidArgumentError(
                f"{name}_second is {second.dtype} of the shape {second.shape} with the strides "
                f"{second.strides}: it must be {dtype} of the shape {shape}, packed"
            )

    def _positions(self, positions: int | DeviceArray) -> Any:
        made = new_struct("vkrope_positions")
        if not isinstance(positions, DeviceArray):
            if self._takes_ids:
                raise InvalidArgumentError(
                    f"positions is {positions!r}: this kernel takes ids, from a DeviceArray"
                )
            made.first = in_range("positions", positions, 2**31 - 1, -(2**31))
            made.batch_stride = broadcast
            return made
        if not self._takes_ids:
            raise InvalidArgumentError(
                "positions is a DeviceArray: this kernel was made without position_ids"
            )
        made.int64 = _is_int64("positions", positions)
        if not 1 <= positions.ndim <= 3:
            raise InvalidArgumentError(
                f"positions have the shape {positions.shape}: it must be [tokens], [batch, tokens] "
                "or [axes, batch, tokens]"
            )
        made.ids = _where(positions)
        strides = positions.strides[::-1]
        made.token_stride = strides[0]
        made.batch_stride = strides[1] if len(strides) > 1 else broadcast
        if len(strides) > 2:
            made.axis_stride = strides[2]
        elif self._sections:
            made.axis_stride = broadcast
        return made

    def _submit(self, record: Any) -> float:
        """Records and submits a call; returns the device time in nanoseconds, or -1."""
        handle, parent = self._open(), self.device._open()
        with parent.lock:
            if self._rotates:
                record.angles = self._angles[0]
            arena = ffi.NULL if self._pushes else self._sets(handle, record)

            return submit(
                parent,
                lambda commands, error: lib.vkrope_record(
                    commands, handle.pointer, record, arena, error
                ),
                (handle, self._table, self._arena),
            )

    def _sets(self, handle: Handle, record: Any) -> Any:
        """Creates descriptor sets for a call, on a device without push descriptors."""
        needed = ffi.new("uint64_t*")
        call(lib.vkrope_get_dispatches, handle.pointer, record, needed)
        if self._arena is not None:
            self._arena.release()
            self._arena = None
        self._arena = create(
            lib.vkrope_arena_create, lib.vkrope_arena_destroy, "vkrope_arena", handle.pointer,
            max(needed[0], 1), parent=handle,
        )  # fmt: skip
        return self._arena.pointer


broadcast = -(2**63)  # VKROPE_BROADCAST, which cffi cannot read: all steps share one row


def _head_format(format: Format | None) -> HeadFormat | None:
    return format if format is None or isinstance(format, HeadFormat) else HeadFormat(format)


def _type_of(name: str, of: HeadFormat | None) -> Any:
    return ffi.NULL if of is None else ffi.new("vkrope_element*", _element(name, of.dtype))


def _element(name: str, dtype: Any) -> int:
    """Returns the vkrope_element of a dtype or of a word."""
    if isinstance(dtype, str) and dtype in elements:
        return elements.number(name, dtype)
    return element_of(name, dtype)


class _Planned(NamedTuple):
    """The angles of a call from a CosSinCache, and what they point to."""

    angles: Any
    layout: Any
    cache: CosSinCache


def _planned(cache: CosSinCache, rotation: RopeParams) -> _Planned:
    cos, sin = cache[:2]
    if (cos.ndim, cos.shape, cos.dtype, cos.strides) != (2, sin.shape, sin.dtype, sin.strides):
        raise InvalidArgumentError(
            f"cos is {cos.dtype} of the shape {cos.shape}, sin {sin.dtype} of the shape "
            f"{sin.shape}: they must be alike, [positions, channels]"
        )
    layout = filled(
        "vkrope_angle_table_layout", lib.vkrope_plan_cos_sin_cache, rotation.rotary_dim // 2,
        cos.shape[0], cos.strides[0], element_of("cos", cos.dtype), cache.channel_angles,
    )  # fmt: skip
    layout.attention_factor = rotation.attention_factor
    angles = new_struct("vkrope_angles", layout=layout, buffer=_where(cos), sin=_where(sin))
    return _Planned(angles, layout, cache)


def _check_default(field: str, value: Any, default: Any) -> None:
    """Refuses what only a rotation uses, for a layer without RoPE."""
    if not isinstance(value, type(default)) or value != default:
        raise InvalidArgumentError(f"{field} is {value!r}: a layer without RoPE does not rotate")


def _set_second(name: str, tensor: Any, of: HeadFormat) -> None:
    if of.second is not None:
        tensor.second = element_of(f"{name}.second", of.second)
        tensor.second_of = seconds.number(f"{name}.second_of", of.second_of or "result")
    elif of.second_of is not None:
        raise InvalidArgumentError(f"{name}.second_of is {of.second_of!r}: it needs `second`")


def _set_ops(field: str, ops: Any, values: Mapping[str, Any]) -> None:
    """Sets fields of vkrope_ops or vkrope_norm by name."""
    kinds = {name: of.type for name, of in ffi.typeof(ops).fields}
    for name, value in values.items():
        if name not in kinds:
            raise InvalidArgumentError(f"{field} has {name!r}: no such field")
        if kinds[name].kind == "struct":
            _set_ops(f"{field}.{name}", getattr(ops, name), value)
        elif kinds[name].kind == "enum":
            setattr(ops, name, op_words[kinds[name]].number(f"{field}.{name}", value))
        else:
            set_field(ops, name, value)


def _where(array: DeviceArray) -> dict[str, Any]:
    size = array.dtype.itemsize
    return {
        "buffer": array.buffer.whole().buffer,
        "offset": array.offset * size,
        "range": array.span * size,
    }


def _whole_words(where: dict[str, Any]) -> dict[str, Any]:
    return {**where, "range": -(-where["range"] // 4) * 4}


def _floats(field: str, array: DeviceArray) -> dict[str, Any]:
    if array.dtype != np.float32 or not array._is_packed():
        raise InvalidArgumentError(f"{field} has the dtype {array.dtype}: must be packed float32")
    return _where(array)


def _is_int64(field: str, array: DeviceArray) -> bool:
    if array.dtype not in (np.int32, np.int64):
        raise InvalidArgumentError(f"{field} has the dtype {array.dtype}: must be int32 or int64")
    return array.dtype == np.int64


def _batch_and_tokens(tensors: dict[str, DeviceArray]) -> tuple[int, int]:
    """Returns the batch and tokens of a call, which all its tensors must share."""
    found: dict[tuple[int, int], str] = {}
    for name, array in tensors.items():
        if array.ndim not in (3, 4):
            raise InvalidArgumentError(
                f"{name} has the shape {array.shape}: it must be [batch, tokens, heads, head_dim] "
                "or [tokens, heads, head_dim]"
            )
        found.setdefault((array.shape[0] if array.ndim == 4 else 1, array.shape[-3]), name)
    if not found:
        raise InvalidArgumentError("q, k and v are all missing: one of them must be given")
    if len(found) > 1:
        has = [f"{name} has {n} sequences of {tokens}" for (n, tokens), name in found.items()]
        raise InvalidArgumentError(f"{', '.join(has)} tokens: all must have the same")
    return next(iter(found))


def _channels(array: DeviceArray, element: int) -> list[int]:
    """Returns the strides in channels of the element type; quantised types are bytes."""
    if not lib.vkrope_is_quantised(element):
        return list(array.strides)
    block = lib.vkrope_block_channels(element)
    return [step * block // lib.vkrope_element_bytes(element) for step in array.strides]


def _tensor(name: str, array: DeviceArray, element: int) -> Any:
    """Returns the tensor of an array; `element` tells whether it is quantised."""
    if array.strides[-1] != 1:
        raise InvalidArgumentError(
            f"{name} has the stride {array.strides[-1]} between channels: it must be 1"
        )
    strides = _channels(array, element)
    return new_struct(
        "vkrope_tensor",
        where=_where(array),
        heads=array.shape[-2],
        head_stride=strides[-2],
        token_stride=strides[-3],
        batch_stride=strides[0] if array.ndim == 4 else 0,
        buffer_size=array.buffer.size,
    )


def _of_slots(mappings: dict[str, DeviceArray]) -> tuple[int, int]:
    """Returns the batch and tokens of mappings, which must be alike."""
    (name, first), *others = mappings.items()
    for other, slots in others:
        if (slots.shape, slots.strides, slots.dtype) != (first.shape, first.strides, first.dtype):
            raise InvalidArgumentError(
                f"{other} is {slots.dtype} of the shape {slots.shape}, {name} {first.dtype} of "
                f"{first.shape}: they must be alike"
            )
    if not 1 <= first.ndim <= 2 or first.strides[-1] != 1:
        raise InvalidArgumentError(
            f"{name} has the shape {first.shape}: it must be [tokens] or [batch, tokens], "
            "without gaps between tokens"
        )
    return (first.shape[0] if first.ndim == 2 else 1), first.shape[-1]


def _pages(name: str, cache: DeviceArray, element: int) -> Pages:
    if cache.ndim not in (3, 4):
        raise InvalidArgumentError(
            f"the cache {name} has the shape {cache.shape}: it must be [slots, heads, head_dim] or "
            "[pages, page_size, heads, head_dim]"
        )
    strides = _channels(cache, element)
    return Pages(cache.shape[1] if cache.ndim == 4 else 1, strides[0], strides[-3])


def _paged_cache(
    mappings: dict[str, DeviceArray], caches: list[tuple[str, Pages, bool]]
) -> Any:
    """caches: the name, the pages and whether they are packed"""
    given = " and ".join(mappings)
    if not caches:
        raise InvalidArgumentError(
            f"{given} is given without out_k or out_v for scatter_kv, or k or v for gather_kv"
        )
    _of_slots(mappings)
    packed = all(is_packed for _, _, is_packed in caches)
    found = [of._replace(page_stride=0, row_stride=0) if packed else of for _, of, _ in caches]
    for (name, of, _), other in zip(caches, found):
        if other != found[0]:
            raise InvalidArgumentError(
                f"the cache {name} has {of}, {caches[0][0]} has {caches[0][1]}: they must be the "
                "same"
            )
    slots = next(iter(mappings.values()))
    return new_struct(
        "vkrope_paged_cache",
        **{name: _where(of) for name, of in mappings.items()},
        **found[0]._asdict(),
        int64=_is_int64(next(iter(mappings)), slots),
        batch_stride=slots.strides[0] if slots.ndim == 2 else 0,
    )
