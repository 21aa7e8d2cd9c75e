# SPDX-License-Identifier: MIT
"""Compares the outputs of a case with the values, codes and scales that it expects."""

import numpy as np

from case_document import BLOCKS, values, wrong


def plain(value):
    return repr(float(value)).removesuffix(".0")


def place(name, shape, index):
    return f"{name}[{', '.join(map(str, np.unravel_index(index, shape)))}]"


def atol_of(file, array):
    for at in np.flatnonzero(~((array >= 0) & (array < np.inf))):
        wrong(f"{file}: element {at} may differ by {plain(array.flat[at])}: it must be at least 0")
    return array


def findings_of(name, got, wanted, allowed, bits=None, same_bits=None):
    """Returns the number of wrong elements and a sentence about the first. Elements where `bits` is
    true must have the same bits, all others must differ by at most what is allowed."""
    with np.errstate(invalid="ignore"):
        right = (got == wanted) | (abs(got - wanted) <= allowed)
    right = np.where(np.isnan(got) | np.isnan(wanted), np.isnan(got) & np.isnan(wanted), right)
    if bits is not None:
        right = np.where(bits, same_bits, right)
    found = np.flatnonzero(~right)
    if not len(found):
        return 0, ""
    at = found[0]
    rule = "bit for bit" if bits is not None and bits.flat[at] else f"within {allowed.flat[at]:.3g}"
    return len(found), (f"{place(name, got.shape, at)} is {plain(got.flat[at])}, expected "
                        f"{plain(wanted.flat[at])} {rule}")


def compare_values(folder, case, tensor, actual, expected):
    """Returns the findings and the largest error. A tolerance of 0 is a value without rounding
    errors or, where nothing changes a channel outside the windows, the bits of the input."""
    if not case.tolerances:
        wrong("tolerance is missing")
    files = [getattr(of.atol_files, tensor.name, None) for of in case.tolerances]
    atol, exact = case.tolerances[0].atol or 0, np.False_
    if any(files):
        file = files[0] or files[-1]
        of_file = values(folder.array(file, ["<f4", "<f8", "<f2", "<u2"], [actual.shape]))
        exact = of_file == 0
        atol = atol_of(file, of_file) if files[0] else atol
    got, wanted = values(actual), values(expected)
    outside = np.full(tensor.head_dim, tensor.passes_through)
    for window in case.windows if tensor.name != "v" else ():
        outside[window.offset:window.offset + window.rotary_dim] = False
    same = (got == wanted) & (np.signbit(got) == np.signbit(wanted)) | np.isnan(got + wanted)
    if expected.dtype == tensor.dtype:
        same = np.equal(*(of.view(f"u{of.itemsize}") for of in (actual, expected)))
    with np.errstate(invalid="ignore"):
        allowed = np.where(exact, 0, atol + case.tolerances[0].rtol * abs(wanted))
        error = abs(got - wanted)
    bits = exact & np.resize(outside, got.shape)
    return (findings_of(tensor.name, got, wanted, allowed, bits, same),
            float(error[np.isfinite(error)].max(initial=0)))


def numbers_of(kind, blocks):
    """Returns three arrays of the scales, minima and codes of blocks [n, bytes]: ranks, in which
    neighbours differ by 1 and both zeros are 0; the bits; and whether a number is NaN."""
    halves = 0 if BLOCKS[kind][0] == 1 else 1 + kind.endswith("_1")
    rest = blocks[:, 2 * halves:]
    codes = rest.astype(int)
    order, nan = (codes ^ 0x80) - 0x80, np.zeros(codes.shape, bool)
    if kind in ("e4m3fn", "e5m2"):
        order, nan = order_of(codes, 0x80, 0x7E if kind == "e4m3fn" else 0x7C)
    elif kind[:2] in ("q4", "q5"):
        codes = np.hstack([codes[:, -16:] & 15, codes[:, -16:] >> 4])
        if kind[1] == "5":
            codes += 16 * np.unpackbits(rest[:, :4], axis=1, bitorder="little")
        order, nan = codes, np.zeros(codes.shape, bool)
    half = np.ascontiguousarray(blocks[:, :2 * halves]).view("<u2").astype(int)
    half_order, half_nan = order_of(half, 0x8000, 0x7C00)
    return np.hstack([half_order, order]), np.hstack([half, codes]), np.hstack([half_nan, nan])


def order_of(bits, sign, infinite):
    size = bits & (sign - 1)
    return np.where(bits & sign, -size, size), size > infinite


def compare_codes(kind, actual, expected, written, share=None):
    """Compares bytes [rows, bytes of a row]. Returns the number of findings, the byte of the first
    and a sentence about it.

    Rows that are not `written` must have the expected bytes. Of N codes, floor(share N) may be one
    step from the expected code. -0 and +0 are then equal, and any NaN equals any other. Of the
    blocks, the same share may have a scale or minimum that is one unit in the last place off.
    """
    channels, size = BLOCKS[kind]
    blocks = np.arange(actual.size).reshape(-1, size)[np.repeat(written, actual.shape[1] // size)]
    (order, bits, nan), (order2, bits2, nan2) = (
        numbers_of(kind, of.ravel()[blocks]) for of in (actual, expected))
    halves = order.shape[1] - channels
    equal = order == order2 if share is not None or channels > 1 else bits == bits2
    equal = np.where(nan | nan2, nan == nan2, equal)
    near = ~equal & ~nan & ~nan2 & (abs(order - order2) <= 1)

    def sentence(block, item):
        """Returns the byte and a sentence for a number of a block."""
        code = item - halves
        if code < 0:
            name, byte = f"the {('scale', 'minimum')[item]} of the block", 2 * item
            texts = [f"{np.uint16(of[block, item]).view(np.float16):g} ({of[block, item]:#06x})"
                     for of in (bits, bits2)]
        else:
            in_row = min(channels, 16 if kind[:2] in ("q4", "q5") else 32)
            name, byte = f"code {code} of the block", size - in_row + code % in_row
            name = name if channels > 1 else "the code"
            texts = [f"{of[block, item]}" for of in (order, order2)]
            if kind in ("e4m3fn", "e5m2"):
                texts = [f"{of[block, item]:#04x}" for of in (bits, bits2)]
        return int(blocks[block, byte]), f"{name} is {texts[0]}, expected {texts[1]}"

    other = np.argwhere((actual != expected) & ~written[:, None])
    far = np.argwhere(~equal & ~near)
    count, first = len(other) + len(far), [sentence(*at) for at in far[:1]]
    for row, byte in other[:1]:
        first.append((row * actual.shape[1] + byte,
                      f"the byte is {actual[row, byte]:#04x}, expected {expected[row, byte]:#04x}, "
                      "and no slot names its row"))
    first = sorted(first)[:1]
    steps = np.argwhere(near[:, halves:]) + [0, halves]
    scales = [(block, near[block].argmax()) for block in np.flatnonzero(near[:, :halves].any(1))]
    for found, of, what in ((steps, len(blocks) * channels, "codes differ by one"),
                            (scales, len(blocks), "blocks have a scale that differs by one unit")):
        may = int((share or 0) * of * (1 + 1e-12))  # 0.29 * 100 is 28.999999999999996
        if len(found) > may:
            count += len(found)
            byte, text = sentence(*found[0])
            first.append((byte, f"{text}: {len(found)} of {of} {what}, and {may} may"))
    return (count, *(first or [(0, "")])[0])


def compare_quantised(case, tensor, actual, expected):
    cache = tensor.steps.cache
    written = np.ones(actual.size // tensor.width, bool)
    if cache:
        slots = np.zeros((cache.count, tensor.heads), bool)
        slots[cache.slots[cache.slots >= 0]] = True
        slots = slots.reshape(-1, cache.page_size, tensor.heads)
        written = slots.transpose(np.argsort(cache.axes[:3])).ravel()
    shares = [of.codes.off_by_one for of in case.tolerances if of.codes]
    count, byte, text = compare_codes(
        tensor.out, *(of.reshape(-1, tensor.width) for of in (actual, expected)), written,
        *shares[:1])
    return count, count and f"{place(tensor.name, expected.shape, byte)}: {text}"


def compare_scales(folder, case, tensor):
    name, made = f"{tensor.name}_scales", tensor.scales

    def read(file):
        """Reads the scales of all tokens and heads; a file may leave out axes of length 1."""
        array = folder.array(file, ["<f4", "<f8"])
        if [n for n in array.shape if n != 1] != [n for n in made.shape if n != 1]:
            wrong(f"{file}: has shape {array.shape}; {name} have {made.shape}")
        return values(array).reshape(made.shape)

    wanted, atol = read(f"expected_{name}.npy"), np.zeros(made.shape)
    files = [getattr(of.atol_files, name, None) for of in case.tolerances]
    for file in [file for file in files if file][:1]:
        atol = atol_of(file, np.where(np.isnan(wanted), 0, read(file)))
    return findings_of(name, values(made), wanted, atol + 2e-6 * abs(wanted))


def compare(folder, case, tensor, actual):
    """Returns the largest error, and a sentence if an element is wrong. Reads the files."""
    kind, error = "bytes" if tensor.out in BLOCKS else "elements", 0.0
    dtypes = ["|u1"] if kind == "bytes" else ["<f4", "<f8", "<f2", "<u2"]
    expected = folder.array(case.expected[tensor.name], dtypes, [actual.shape])
    if kind == "bytes":
        found = [compare_quantised(case, tensor, actual, expected)]
    else:
        of_values, error = compare_values(folder, case, tensor, actual, expected)
        found = [of_values]
    if tensor.is_made:
        found.append(compare_scales(folder, case, tensor))
    count = sum(number for number, _ in found)
    first = next((text for number, text in found if number), "")
    return error, count and f"{first} ({count} such findings in {actual.size} {kind})"
