# SPDX-License-Identifier: MIT
"""What the kernels of all layers read from device memory, made there once per step."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import numpy as np

from ._declarations import ffi
from ._device import Device, submit
from ._device_array import DeviceArray, check_arrays, packed_strides
from ._errors import InvalidArgumentError
from ._kernel import _is_int64, _where
from ._library import Owner, call, create, filled, in_range, lib, new_struct
from ._words import query_scalings


class QueryScales:
    """A table of the factors of queries by position, in device memory.

    Args:
        device:        the device
        kind:          "logn", "llama4" or "ministral3"
        length, beta:  as in vkrope_query_scale
        max_position:  covers the positions 0 to max_position - 1

    Raises:
        InvalidArgumentError, LimitExceededError: as for vkrope_plan_query_scales
    """

    def __init__(
        self, device: Device, kind: str, *, length: float, beta: float = 0, max_position: int
    ) -> None:
        scale = new_struct(
            "vkrope_query_scale", kind=query_scalings.number("kind", kind), length=length, beta=beta
        )
        self._layout = filled(
            "vkrope_query_scale_layout", lib.vkrope_plan_query_scales, scale,
            in_range("max_position", max_position, 2**64 - 1),
        )  # fmt: skip
        factors = np.empty(self._layout.rows, np.float32)
        call(
            lib.vkrope_fill_query_scales, self._layout, ffi.from_buffer(factors), factors.nbytes
        )
        self._table = device.array(factors)


class Step(NamedTuple):
    """What a step needs, in the arguments of the same names of Kernel.run()."""

    positions: DeviceArray
    """int32 [batch, tokens]"""
    slot_mapping: Optional[DeviceArray]
    """int32 [batch, tokens]; None without block_table"""
    scale_tokens: Optional[DeviceArray]
    """float32 [batch, tokens], for q_scale_tokens; None without query_scales"""
    token_count: Optional[DeviceArray]
    """uint32 [1]; None unless asked for"""
    out_of_range: int
    """number of tokens, slots and factors that are out of range; see vkrope_position_call"""


class PositionKernel(Owner):
    """Makes positions, slots and factors on the device. vkrope_position_call documents the rules.

        kernel = vkrope.PositionKernel(device)
        step = kernel.run(tokens=256, query_lens=lengths, seq_lens=ends, block_table=table,
                          page_size=16, cache_pages=4096)

    Raises:
        VulkanError and others, as for vkrope_position_kernel_create
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        parent = device._open()
        with parent.lock:
            ref = lib.vkrope_device_get_ref(parent.pointer)
            self._pushes = bool(ref.enabled & lib.VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)
            self._handle = create(
                lib.vkrope_position_kernel_create, lib.vkrope_position_kernel_destroy,
                "vkrope_position_kernel", ref, parent=parent,
            )  # fmt: skip

    def run(
        self,
        *,
        tokens: int,
        batch: int = 1,
        first: int = 0,
        ids: DeviceArray | None = None,
        fraction_bits: int = 0,
        offsets: DeviceArray | None = None,
        cu_seqlens: DeviceArray | None = None,
        query_lens: DeviceArray | None = None,
        seq_lens: DeviceArray | None = None,
        cp_size: int = 1,
        cp_rank: int = 0,
        block_table: DeviceArray | None = None,
        page_size: int = 0,
        cache_pages: int = 0,
        query_scales: QueryScales | None = None,
        token_count: bool = False,
    ) -> Step:
        """Makes the arrays of a step, and waits for the device.

        Args:
            tokens, batch:  shape of the outputs
            first:        added to every position
            ids:          int64 or float32 [batch, tokens], instead of `first` and of all that
                          follows up to cp_rank; a float32 is a multiple of 2^-fraction_bits
            offsets:      int32 or int64 [sequences], the first position of each sequence
            cu_seqlens:   int32 or int64 [sequences + 1], sums of the lengths of packed sequences
            query_lens:   int32 [sequences], the lengths themselves
            seq_lens:     int32 [sequences], tokens of each sequence after this step
            cp_size, cp_rank: number of shards of a sequence, and the index of this one
            block_table:  int32 [sequences, pages], with page_size and cache_pages
            query_scales: table of the factors
            token_count:  the result has the number of tokens of packed sequences

        Raises:
            InvalidArgumentError, LimitExceededError: as for vkrope_record_positions
        """
        record = new_struct(
            "vkrope_position_call",
            batch=in_range("batch", batch, 2**32 - 1, 1),
            tokens=in_range("tokens", tokens, 2**32 - 1, 1),
            first=in_range("first", first, 2**31 - 1, -(2**31)),
            cp_size=in_range("cp_size", cp_size, 2**32 - 1, 1),
            cp_rank=in_range("cp_rank", cp_rank, 2**32 - 1),
            fraction_bits=in_range("fraction_bits", fraction_bits, 2**32 - 1),
            page_size=in_range("page_size", page_size, 2**32 - 1),
            cache_pages=in_range("cache_pages", cache_pages, 2**32 - 1),
        )
        if not isinstance(query_scales, (QueryScales, type(None))):
            raise InvalidArgumentError(f"query_scales is {query_scales!r}: it must be QueryScales")
        table = None if query_scales is None else query_scales._table
        check_arrays(
            self.device,
            {"ids": ids, "offsets": offsets, "cu_seqlens": cu_seqlens, "query_lens": query_lens,
             "seq_lens": seq_lens, "block_table": block_table, "query_scales": table},
        )  # fmt: skip
        sequences = batch
        for field, sums, more in (("cu_seqlens", cu_seqlens, 1), ("query_lens", query_lens, 0)):
            if sums is not None:
                if sums.ndim != 1:
                    raise InvalidArgumentError(
                        f"{field} has the shape {sums.shape}: it must have one axis"
                    )
                sequences = record.sequences = max(sums.shape[0] - more, 0)
        shape, rows = (batch, tokens), (sequences,)
        if ids is not None:
            record.ids = _given("ids", ids, shape, (np.int64, np.float32))
            record.ids_f32 = ids.dtype == np.float32
        for field, array in (("offsets", offsets), ("cu_seqlens", cu_seqlens)):
            if array is not None:
                of = rows if array is offsets else (sequences + 1,)
                setattr(record, field, _given(field, array, of, (np.int32, np.int64)))
                setattr(record, f"{field}_int64", _is_int64(field, array))
        for field, array in (("query_lens", query_lens), ("seq_lens", seq_lens)):
            if array is not None:
                setattr(record, field, _given(field, array, rows, (np.int32,)))
        made: dict[str, DeviceArray | None] = {"positions": self.device.empty(shape, np.int32)}
        record.out = _where(made["positions"])
        if block_table is not None:
            is_table = block_table.ndim == 2 and block_table.dtype == np.int32
            if not is_table or block_table.strides[1] != 1:
                raise InvalidArgumentError(
                    f"block_table is {block_table.dtype} of the shape {block_table.shape} with the "
                    f"strides {block_table.strides}: it must be int32 [sequences, pages], without "
                    "gaps between pages"
                )
            if block_table.shape[0] != sequences:
                raise InvalidArgumentError(
                    f"block_table has {block_table.shape[0]} rows: it must have {sequences}"
                )
            record.block_table = _where(block_table)
            record.pages, record.block_table_stride = block_table.shape[1], block_table.strides[0]
            made["slot_mapping"] = self.device.empty(shape, np.int32)
            record.slot_mapping = _where(made["slot_mapping"])
        if query_scales is not None:
            record.query_scales = _where(table)
            record.query_scale_layout = query_scales._layout
            made["scale_tokens"] = self.device.empty(shape, np.float32)
            record.scale_tokens = _where(made["scale_tokens"])
        if token_count:
            made["token_count"] = self.device.empty((1,), np.uint32)
            record.token_count = _where(made["token_count"])
        counter = self.device.array(np.zeros(1, np.uint32))
        record.out_of_range = _where(counter)
        self._submit(record)
        optional = {"slot_mapping": None, "scale_tokens": None, "token_count": None}
        return Step(**{**optional, **made}, out_of_range=int(counter.numpy()[0]))

    def _submit(self, record: Any) -> None:
        handle, parent = self._open(), self.device._open()
        with parent.lock:
            arena = None
            if not self._pushes:
                arena = create(
                    lib.vkrope_position_arena_create, lib.vkrope_arena_destroy, "vkrope_arena",
                    handle.pointer, 4, parent=handle,
                )  # fmt: skip
            sets = ffi.NULL if arena is None else arena.pointer
            try:
                submit(
                    parent,
                    lambda commands, error: lib.vkrope_record_positions(
                        commands, handle.pointer, record, sets, error
                    ),
                    (handle, arena),
                )
            finally:
                if arena is not None:
                    arena.release()


def _given(
    field: str, array: DeviceArray, shape: tuple[int, ...], dtypes: tuple[type, ...]
) -> dict[str, Any]:
    """Returns where a packed array of this shape is."""
    packed = array.shape == shape and array.strides == packed_strides(shape)
    if array.dtype not in dtypes or not packed:
        wanted = " or ".join(np.dtype(of).name for of in dtypes)
        raise InvalidArgumentError(
            f"{field} is {array.dtype} of the shape {array.shape} with the strides "
            f"{array.strides}: it must be packed {wanted} of the shape {shape}"
        )
    return _where(array)
