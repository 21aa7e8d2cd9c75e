# SPDX-License-Identifier: MIT
"""Runs a case on a device. Layouts, views and planes become rows [batch, tokens, heads, head_dim]
first, because a rotation has the same bits in every layout."""

import math

import numpy as np
import vkrope

from case_document import BLOCKS, DTYPES, Struct, printable, unsupported, values, wrong

# The first channel, the rotation, the gain and the angles of a kernel that rotates nothing.
STILL = 0, vkrope.RopeParams.without_rope(2), "apply", "automatic"

LOWEST, HIGHEST = -(2**31), 2**31 - 1  # of positions


class Tensor:
    """A tensor of a case: `rows` of its input, with rotated planes as heads, and its output."""

    def __init__(self, folder, case, name):
        of, self.name = case.tensors[name], name
        layout, self.shape, self.steps = of.layout, of.shape, of.steps
        has = set(layout)
        if (len(has) < len(layout) or not has <= set("BSHDTPE") or layout[-1:] not in ("D", "E")
                or has >= set("DE") or has >= set("EH") or ("T" in has and has & set("SB"))):
            unsupported(f"tensors.{name}.layout '{printable(layout)}': it must have letters of "
                        "BSHDTPE once, T without B and S, E without H and D, and channels last")
        if len(layout) != len(of.shape):
            wrong(f"tensors.{name}.layout '{layout}' has {len(layout)} axes, not {len(of.shape)}")
        split = [*of.shape]
        if layout[-1] == "E":
            if not of.num_heads or split[-1] % of.num_heads:
                wrong(f"tensors.{name}.num_heads must divide {split[-1]} channels of '{layout}'")
            layout, split[-1:] = layout[:-1] + "HD", [of.num_heads, split[-1] // of.num_heads]
        self.lengths = dict(zip(layout, split))
        full = [math.prod(self.lengths.get(letter, 1) for letter in letters)
                for letters in ("B", "ST", "P", "H", "D")]
        self.batch, self.tokens, planes, self.heads, self.head_dim = full
        parent = folder.array(of.file, [DTYPES[case.dtype]])
        self.file_size = parent.size
        self.hold_elements(1)
        # Axes of the layout in the order [batch, tokens, planes, heads, channels] of `whole`.
        self.axes = [layout.index(letter) for letter in "BSTPHD" if letter in layout]
        self.whole = placed(of, name, parent).reshape(split).transpose(self.axes).reshape(full)
        self.planes = case.planes_rotated if "P" in layout else [0]
        if max(self.planes, default=0) >= max(planes, 1):
            wrong(f"planes_rotated is {self.planes}; {name} has {planes} planes")
        self.rows = self.whole[:, :, self.planes].reshape(
            *full[:2], len(self.planes) * self.heads, self.head_dim)
        self.out = self.steps.out_dtype or case.dtype
        self.dtype = np.dtype(DTYPES.get(self.out, "|u1"))
        channels, size = BLOCKS.get(self.out, (1, 1))
        if self.head_dim % channels or (self.out in BLOCKS and not self.head_dim):
            wrong(f"out_dtype.{name} has blocks of {channels} channels, heads {self.head_dim}")
        self.width = self.head_dim // channels * size  # of a row of the output
        row_bytes = self.width * self.dtype.itemsize
        self.result = np.full((*self.rows.shape[:3], row_bytes), 0xA5, np.uint8).view(self.dtype)
        self.read_steps(folder, case)

    def hold_elements(self, passes):
        """Refuses work that is far larger than the file justifies."""
        most = min(64 * self.file_size + (1 << 24), 1 << 29)
        count = passes * math.prod(max(n, 1) for n in self.lengths.values())
        if count > most:
            unsupported(f"tensors.{self.name}.shape {tuple(self.shape)} has {count} elements to "
                        f"write in {passes} passes, where an axis of 0 counts as 1; a file of "
                        f"{self.file_size} elements allows {most}, 64 times its own and 2^24")

    def actual(self):
        """Returns the cache, or the output in the layout of the case; other planes pass through."""
        if self.steps.cache:
            return self.result
        whole = np.empty((*self.whole.shape[:-1], self.width), self.dtype)
        if len(self.planes) < whole.shape[2]:
            whole[...] = self.whole
        whole[:, :, self.planes] = self.result.reshape(whole[:, :, self.planes].shape)
        lengths = [*self.lengths.values()][:-1] + [self.width]
        whole = whole.reshape([lengths[at] for at in self.axes]).transpose(np.argsort(self.axes))
        return whole.reshape(*self.shape[:-1], math.prod(lengths[len(self.shape) - 1:]))

    def read_steps(self, folder, case):
        """Reads ops, as vkrope.HeadFormat takes them, the arrays that they need, and the cache."""
        steps, name, norm, head_dim = self.steps, self.name, self.steps.norm, self.head_dim
        self.parameters, self.given, hadamard = {}, {}, steps.hadamard or 1
        if head_dim % hadamard:
            wrong(f"hadamard.{name} is {hadamard}: it must divide {head_dim} channels of a head")
        if hadamard > 512:
            unsupported(f"hadamard.{name} is {hadamard}: it may be at most 512")
        self.ops = {key: value for key, value, plain in (
            ("scale", steps.scale or 1, 1), ("clip", case.clip or 0, 0), ("hadamard", hadamard, 1))
            if value != plain}
        if norm:
            self.ops["norm"] = {key: getattr(norm, key) for key in (
                "kind", "span", "place", "eps", "weight_offset")}
        for part, of, key in (("bias", steps, "bias"), ("weight", norm, "weight"),
                              ("norm_bias", norm, "bias")):
            if of and getattr(of, key):
                dtypes = [norm.weight_dtype] if part == "weight" and norm.weight_dtype else None
                array = folder.array(getattr(of, key), dtypes, [
                    (head_dim,), (self.heads, head_dim), (self.heads * head_dim,)])
                ops = self.ops if of is steps else self.ops["norm"]
                ops[key] = "channel" if array.shape == (head_dim,) else "head_channel"
                self.parameters[part] = array
        shapes = [(self.tokens,), (1, self.tokens), (self.batch, self.tokens)]

        def of_tokens(array):
            return np.ascontiguousarray(np.broadcast_to(array, shapes[2]))

        if steps.scale_tokens:
            self.ops["scale_tokens"] = True
            self.given[f"{name}_scale_tokens"] = of_tokens(
                folder.array(steps.scale_tokens, ["<f4"], shapes))
        self.passes_through = not self.ops and not steps.cache and self.out == case.dtype
        if steps.cache:
            self.read_cache(folder, steps.cache)
            slots = steps.cache.slots = of_tokens(folder.integers(steps.cache.slots, shapes))
            for slot in slots[(slots < -1) | (slots >= steps.cache.count)]:
                wrong(f"cache.{name}.slots has {slot}; the cache has {steps.cache.count} slots")
            self.result = folder.array(steps.cache.initial, [self.dtype.str],
                                       [tuple(steps.cache.shape)])
        scale = steps.store_scale or Struct()
        self.is_made, of_heads = scale.made is not None, isinstance(scale.given, str)
        if self.is_made:
            self.ops["store_scale"] = "made_power_of_two" if scale.power_of_two else "made"
            self.ops["scale_floor"] = scale.floor or 0
            if steps.cache and steps.cache.heads_first:
                self.ops["scale_layout"] = "pages_heads"
            self.given[f"{name}_scales"] = np.zeros(self.result.shape[:3], np.float32)
            self.scales = self.scales_of_tokens(self.given[f"{name}_scales"])  # without tokens
        elif scale.given is not None:
            self.ops["store_scale"] = "given_head" if of_heads else "given"
            self.parameters["store_scale"] = folder.array(
                scale.given, ["<f4"], [(self.heads,)]) if of_heads else np.float32([scale.given])

    def read_cache(self, folder, of):
        name = f"cache.{self.name}"
        if sorted(of.layout) != sorted("NPHD") or len(of.shape) != 4:
            wrong(f"{name}: layout '{printable(of.layout)}' and {len(of.shape)} dimensions; both "
                  "must have N, P, H and D")
        if of.layout[-1] != "D":
            unsupported(f"{name}.layout '{of.layout}': channels must come last")
        of.axes = [of.layout.index(letter) for letter in "NPHD"]
        pages, *lengths = (of.shape[axis] for axis in of.axes)
        if lengths != [of.page_size, self.heads, self.width]:
            wrong(f"{name}.shape {tuple(of.shape)} in layout {of.layout} must have page_size, "
                  f"heads and what a row takes: {of.page_size}, {self.heads}, {self.width}")
        of.count, of.heads_first = pages * of.page_size, of.axes[2] < of.axes[1]

    def scales_of_tokens(self, scales):
        """Returns computed scales with the axes of the layout; NaN where a token has no slot."""
        cache = self.steps.cache
        if cache:
            rows = scales.transpose(0, 2, 1) if cache.heads_first else scales
            there = cache.slots >= 0
            scales = np.full((*there.shape, self.heads), np.float32("nan"))
            scales[there] = rows.reshape(cache.count, self.heads)[cache.slots[there]]
        axes = [n for letters, n in (("B", self.batch), ("ST", self.tokens))
                if set(letters) & self.lengths.keys()]
        return scales.reshape(*axes, self.heads)


def placed(of, name, parent):
    """Returns the elements of a tensor, or of its view, which may repeat elements of the file."""
    if of.view is None:
        if list(parent.shape) != of.shape:
            wrong(f"{of.file}: has shape {parent.shape}; tensors.{name}.shape is {tuple(of.shape)}")
        return parent
    strides, offset = of.view.strides, of.view.offset
    if len(strides) != len(of.shape):
        wrong(f"tensors.{name}.view.strides has {len(strides)} numbers, the shape {len(of.shape)}")
    if 0 in of.shape:
        return np.empty(of.shape, parent.dtype)
    strides = [step if n > 1 else 0 for n, step in zip(of.shape, strides)]
    reach = [(n - 1) * step for n, step in zip(of.shape, strides)]
    lowest, highest = (offset + sum(of(step, 0) for step in reach) for of in (min, max))
    if lowest < 0 or highest >= parent.size:
        wrong(f"tensors.{name}.view reaches outside the {parent.size} elements of its file")
    if any(step < 0 or (n > 1 and step != 1 and letter in "DE") or (n > 1 > step and letter in "ST")
           for letter, n, step in zip(of.layout, of.shape, strides)):
        unsupported(f"tensors.{name}.view.strides are {strides}: they must not be negative, "
                    "channels must be neighbours, and each token needs a row")
    return np.lib.stride_tricks.as_strided(
        parent.ravel()[offset:], of.shape, [step * parent.itemsize for step in strides])


def positions_of(folder, case, batch, tokens):
    """Returns the first position, or ids [batch, tokens] or [axes, batch, tokens]."""
    of, angles = case.positions, case.angles
    if angles.rows == "direct":
        if of.kind != "none" or case.sections:
            unsupported("positions or sections together with a row of cos and sin for each token")
        rows = folder.array(angles.cos).shape
        if rows[-2:-1] != (tokens,) or rows[:-2] not in ((), (1,), (batch,)):
            wrong(f"cos and sin have shape {rows} for {batch} x {tokens} tokens")
        own = rows[:-2] not in ((), (1,))
        return np.arange(batch * tokens, dtype=np.int32).reshape(batch, tokens) if own else 0
    if of.kind == "none":
        unsupported("positions.kind 'none' without a row of cos and sin for each token")
    if of.kind == "offset":
        if not LOWEST <= of.value <= of.value + tokens - 1 <= HIGHEST:
            unsupported(f"positions from {of.value} to {of.value + tokens - 1}: they must be int32")
        return of.value
    if of.kind == "explicit":
        return explicit_ids(of.axes, folder.integers(of.file), batch, tokens)
    return expanded_ids(folder, of, batch, tokens)


def explicit_ids(axes, ids, batch, tokens):
    letters = axes.replace("T", "S")
    if len(set(letters)) < len(letters) or not set(letters) <= set("ABS"):
        unsupported(f"positions.axes '{printable(axes)}'")
    lengths = dict(zip(letters, ids.shape))
    if (len(axes) != ids.ndim or lengths.get("S", 1) != tokens
            or lengths.get("B", 1) not in (1, batch)):
        wrong(f"positions: ids of shape {ids.shape} with the axes '{printable(axes)}'; the tensors "
              f"have {batch} x {tokens} tokens")
    ids = ids.transpose([letters.index(letter) for letter in "ABS" if letter in letters])
    ids = ids.reshape(*[lengths.get(letter, 1) for letter in "ABS"])
    ids = np.ascontiguousarray(np.broadcast_to(ids, (len(ids), batch, tokens)))
    return ids if "A" in letters else ids[0]


def expanded_ids(folder, of, batch, tokens):
    """Returns the ids of offsets, ragged sequences and shards."""
    shards = of.cp_size or 1
    chunks = 2 * shards if shards > 1 else 1  # of a sequence, of which a shard has two
    mine = [of.cp_rank, chunks - 1 - of.cp_rank] if shards > 1 else [0]
    lengths = np.full(batch, tokens * shards)
    if of.cu_seqlens is not None:
        starts = folder.integers(of.cu_seqlens).ravel()
        lengths = np.diff(starts)
        if (len(starts) < 2 or starts[0] != 0 or starts[-1] != tokens * shards
                or (starts[1:] < starts[:-1]).any() or (lengths % chunks).any()):
            wrong(f"positions.cu_seqlens is {starts}: it must ascend from 0 to {tokens * shards}, "
                  f"in multiples of {chunks} (2 cp_size)")
        if batch != 1:
            unsupported(f"positions: cu_seqlens with a batch of {batch}")
    elif (lengths % chunks).any():
        unsupported(f"positions: {tokens} tokens; a shard must have a multiple of 2")
    offsets = next((value for value in (of.file, of.seqlen_offsets, of.start_positions)
                    if value is not None), 0)
    if isinstance(offsets, int):
        offsets = [offsets] * len(lengths)
    offsets = folder.integers(offsets).ravel().tolist()
    if len(offsets) != len(lengths):
        wrong(f"positions: {len(offsets)} offsets for {len(lengths)} sequences")
    ids = np.array([offset + i for offset, size in zip(offsets, (lengths // chunks).tolist())
                    for chunk in mine for i in range(chunk * size, (chunk + 1) * size)], object)
    ids = np.where((LOWEST <= ids) & (ids <= HIGHEST), ids, LOWEST).astype(np.int32)
    return ids.reshape(batch, tokens)


def frequencies(folder, case, pairs):
    """Returns the frequencies of the pairs of a window, and the attention factor."""
    of, factor, sections = case.angles, case.attention_factor, case.sections
    scaling = of.scaling or Struct(type="none")
    exponents, independent = np.arange(pairs), sections and sections.mode == "independent"
    if independent:
        exponents = np.resize(np.concatenate([np.arange(size) for size in sections.sizes]), pairs)
    count, n = int(exponents.max()) + 1, of.exponent_dim or 2 * pairs
    if n % 2 == 0 and 2 * count <= n <= 65534:
        inv_freq = vkrope.default_inv_freq(of.base, n)
    else:  # base^(-2e / n) equals (base^(2 count / n))^(-2e / (2 count))
        with np.errstate(all="ignore"):
            base = float(np.float64(of.base) ** (2 * count / n))
        inv_freq = vkrope.default_inv_freq(base, 2 * count)
    if scaling.type not in ("dynamic", "yarn", "proportional"):
        inv_freq = inv_freq[:count]
    elif 2 * len(inv_freq) != n:
        unsupported(f"angles.exponent_dim is {n} for {count} pairs: a scaling of this type needs "
                    "them all")
    numbers = {key: value for key, value in vars(scaling).items() if key != "type"}
    if scaling.type == "ggml":
        file = numbers.pop("freq_factors")
        divisors = values(folder.array(file, most=1 << 20)).ravel()[:pairs] if file else ()
        if independent:
            inv_freq, exponents = inv_freq[exponents], np.arange(pairs)
        inv_freq, factor = vkrope.scale_ggml(inv_freq, of.base, divisors[:len(inv_freq)], **numbers,
                                             attn_factor=factor, n_dims=n)
    elif scaling.type == "yarn":  # the case's factor contains the one that is returned
        numbers["no_truncate"] = not numbers.pop("truncate")
        inv_freq = vkrope.scale_yarn(inv_freq, of.base, **numbers)[0]
    elif scaling.type == "proportional":
        inv_freq = vkrope.proportional_inv_freq(of.base, n, **numbers)
    else:
        scale = {"linear": vkrope.scale_linear, "llama3": vkrope.scale_llama3,
                 "te_interp": vkrope.scale_positions,
                 "longrope": lambda inv_freq, factors: vkrope.scale_divisors(inv_freq, factors),
                 "dynamic": lambda inv_freq, seq_len, **of: vkrope.scale_dynamic_ntk(
                     inv_freq, int(seq_len), **of)}
        inv_freq = scale.get(scaling.type, lambda same: same)(inv_freq, **numbers)
    if len(inv_freq) < count:
        unsupported(f"angles: {len(inv_freq)} frequencies for {count} pairs")
    return inv_freq[exponents], factor


def passes_of(case, positions):
    """Returns (windows, sections, ids or the first position) of each pass over the tensors."""
    windows, of, has_axes = case.windows, case.sections, np.ndim(positions) == 3
    axes = len(positions) if has_axes else 1
    if windows[0].axis is None:
        if has_axes and not of and axes != 1:
            unsupported(f"positions on {axes} axes without sections")
        if not of or not has_axes:
            return [(windows, None, positions[0] if has_axes else positions)]
        used = max(i for i, size in enumerate(of.sizes) if size) + 1
        if of.mode == "interleaved":
            used = max(used, 3, of.leftover_axis + 1)
        if used > axes:
            wrong(f"sections over {used} axes; the positions have {axes}")
        if used == 1:
            return [(windows, None, positions[0])]
        order, leftover = ("interleaved", of.leftover_axis) if of.mode == "interleaved" else (
            "sequential", 0)
        pairs = tuple([*of.sizes, 0, 0, 0][:used])
        return [(windows, vkrope.Sections(order, pairs, leftover), positions[:used])]
    if of:
        unsupported("sections together with windows")
    used = [window.axis for window in windows]
    if max(used) >= axes:
        wrong(f"a window of axis {max(used)}; the positions have {axes}")
    ids = [positions[axis] if has_axes else positions for axis in used]
    if len(windows) <= 4 and all(after.offset >= before.offset + before.rotary_dim
                                 for before, after in zip(windows, windows[1:])):
        if len(set(used)) == 1:
            return [(windows, None, ids[0])]
        if used == list(range(len(used))):
            pairs = tuple(window.rotary_dim // 2 for window in windows)
            return [(windows, vkrope.Sections("sequential", pairs), positions[:len(used)])]
    return [([window], None, of_axis) for window, of_axis in zip(windows, ids)]


class Run:
    """Runs a case: its tensors then have results, and `scales` where the kernel makes them."""

    def __init__(self, device, folder, case):
        self.device, self.folder, self.case, self.uncovered = device, folder, case, 0
        self.tensors = [Tensor(folder, case, name) for name in case.tensors]
        first, planes = self.tensors[0], any("P" in of.lengths for of in self.tensors)
        if case.head_dim not in (None, first.head_dim):
            wrong(f"head_dim is {case.head_dim}; {first.name} has {first.head_dim} channels a head")
        if planes != bool(case.planes_rotated):
            wrong(f"planes_rotated is {case.planes_rotated}: it must name planes if and only if a "
                  "layout has the axis P")
        if planes and case.has_steps:
            unsupported("the axis P with schema 'rope-case/2'")
        groups = {}
        for tensor in self.tensors:
            groups.setdefault((tensor.batch, tensor.tokens), []).append(tensor)
        for (batch, tokens), tensors in groups.items():
            if batch and tokens:
                self.rotate(tensors, positions_of(folder, case, batch, tokens))
        if self.uncovered and case.angles.kind == "base":
            unsupported(f"{self.uncovered} positions are beyond what the library's tables cover")

    def rotate(self, tensors, positions):
        passes, case = passes_of(self.case, positions), self.case
        ends = positions, positions + tensors[0].tokens - 1
        ids = np.ravel(ends if np.ndim(positions) == 0 else positions)
        ids = ids[(ids > LOWEST) & (ids <= HIGHEST)].astype(np.int64)  # others are not covered
        self.largest = int(abs(ids).max(initial=0))
        for tensor in tensors:
            tensor.hold_elements(len(passes))
        if len(passes) > 1 and (case.has_steps or case.angles.kind == "cache"):
            unsupported("windows that overlap, or whose axes are not in order, with schema "
                        "'rope-case/2' or with cos and sin from files")
        rotated = [tensor for tensor in tensors if tensor.rows.size]
        if rotated and rotated[-1].name == "v" and not (
                rotated[:-1] and rotated[-2].name == "k" and same_pages(*rotated[-2:])):
            # V alone: a kernel must take K or Q, which its calls may leave out.
            self.call([rotated.pop()], 0, *STILL, k=vkrope.HeadFormat(np.float32))
        for windows, sections, ids in passes if rotated else ():
            self.call(rotated, ids, *self.rotation(rotated, windows, sections))
            for tensor in rotated if len(passes) > 1 else ():
                tensor.rows = tensor.result

    def rotation(self, tensors, windows, sections):
        """Returns the first channel of a single window, the rotation, the gain and the angles."""
        case, dims = self.case, [window.rotary_dim for window in windows]
        several = len(windows) > 1
        if dims == [0]:  # a layer without RoPE
            return STILL
        for rotary_dim in dims:
            if rotary_dim < 2 or rotary_dim % 2:
                unsupported(f"rotary_dim is {rotary_dim}: it must be even, 2 or more")
        common = dict(pairing=case.pairing, sections=sections,
                      windows=[(of.offset, of.rotary_dim) for of in windows if several],
                      head_dim=max(tensor.head_dim for tensor in tensors))
        offset = 0 if several else windows[0].offset
        if case.angles.kind == "base":  # each window has its own exponents
            inv_freq, factors = zip(*(frequencies(self.folder, case, n // 2) for n in dims))
            rotation = vkrope.RopeParams(np.concatenate(inv_freq), attention_factor=factors[-1],
                                         **common)
            return offset, rotation, case.gain, "automatic"
        if case.angles.width == "full" and several:
            unsupported("angles.width full with several windows")
        # The files do not contain the factor. The table is said to contain its inverse, which the
        # gain "omit" takes out.
        factor = {"apply": case.attention_factor, "omit": 1}.get(case.gain,
                                                                 1 / case.attention_factor)
        rotation = vkrope.RopeParams(np.ones(sum(dims) // 2), attention_factor=1 / factor, **common)
        return offset, rotation, "apply" if factor == 1 else "omit", self.tables(sum(dims))

    def tables(self, rotary_dim):
        of = self.case.angles
        width = rotary_dim // (2 if of.width == "half" else 1)
        cos = self.folder.array(of.cos, DTYPES.values(), None, unsupported)
        sin = self.folder.array(of.sin, [cos.dtype.str], [cos.shape])
        if of.dtype not in (None, cos.dtype.str):
            wrong(f"cos and sin have data of type {cos.dtype.str}; angles.dtype needs {of.dtype}")
        if cos.ndim not in (2, 2 + (of.rows == "direct")) or cos.shape[-1] != width:
            wrong(f"cos and sin have shape {cos.shape}: it must be (positions, {width}), or with "
                  f"rows 'direct' ([batch,] tokens, {width})")
        there = [self.device.array(table.reshape(-1, width)) for table in (cos, sin)]
        return vkrope.CosSinCache(*there, of.width == "full")

    def call(self, tensors, ids, offset, rotation, gain, angles, **formats):
        device, case, given, has_ids = self.device, self.case, {}, isinstance(ids, np.ndarray)
        for tensor in tensors:
            name, cache, out = tensor.name, tensor.steps.cache, device.array(tensor.result)
            formats[name] = vkrope.HeadFormat(
                tensor.rows.dtype, tensor.out, tensor.head_dim, 0 if name == "v" else offset,
                tensor.heads if case.has_steps else 0, tensor.ops)
            given[name], given[f"out_{name}"], tensor.there = device.array(tensor.rows), out, out
            given.update({key: device.array(array) for key, array in tensor.given.items()})
            if cache:
                paged = out.transpose(*cache.axes)
                given[f"out_{name}"] = paged if cache.page_size > 1 else paged[:, 0]
        caches = {of.name: of.steps.cache for of in tensors if of.steps.cache}
        for name, cache in caches.items():
            own = name == "v" and not same_slots(cache, caches.get("k", cache))
            given["v_slot_mapping" if own else "slot_mapping"] = device.array(cache.slots)
        if rotation.rotates:
            formats.update(max_position=self.largest + 1, angles=angles, position_ids=has_ids,
                           pairing_out=case.pairing_out)
            given.update(positions=device.array(ids) if has_ids else ids, gain=gain,
                         direction=case.direction)
        with vkrope.Kernel(device, rotation, scatter_kv=bool(caches), **formats) as kernel:
            parameters = {of.name: of.parameters for of in tensors if of.parameters}
            if parameters:
                given["parameters"] = kernel.parameters(**parameters)
            run = kernel.run(**given)
        self.uncovered += run.out_of_range
        for tensor in tensors:
            tensor.result = tensor.there.numpy()
            if tensor.is_made:
                tensor.scales = tensor.scales_of_tokens(given[f"{tensor.name}_scales"].numpy())


def same_pages(*tensors):
    """Tells whether one call can store K and V to these caches."""
    caches = [tensor.steps.cache for tensor in tensors]
    if None in caches:
        return caches == [None, None]
    return len({(*of.shape[1:], of.layout, of.slots.dtype, tensor.out)
                for of, tensor in zip(caches, tensors)}) == 1


def same_slots(a, b):
    return a.shape == b.shape and np.array_equal(a.slots, b.slots)
