# SPDX-License-Identifier: MIT
"""Functions that run the command `vkrope` and return its JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from ._arrays import Layout, element_of, positions_of
from ._errors import (
    DeviceLostError,
    InvalidArgumentError,
    InvalidDataError,
    NoDeviceError,
    OutOfHostMemoryError,
    VkropeError,
)
from ._rotation import Model

# Exit codes of the command, except 1, which `check` returns together with its verdict.
_errors = {
    2: InvalidArgumentError,
    3: NoDeviceError,
    4: DeviceLostError,
    5: InvalidDataError,
    6: OutOfHostMemoryError,
}


def _program() -> str:
    """Returns the command of the wheel, or the one on the PATH."""
    beside = Path(__file__).parent / "vkrope"
    found = str(beside) if beside.exists() else shutil.which("vkrope")
    if found is None:
        raise FileNotFoundError("the command vkrope is neither in this package nor on the PATH")
    return found


def _run(arguments: list[str], model: Model) -> Any:
    """Runs the command with --json and returns the document that it prints."""
    content = json.dumps(model) if isinstance(model, Mapping) else None
    path = "-" if content is not None else os.fspath(model)
    done = subprocess.run(
        [_program(), *arguments, "--model", path, "--json"],
        input=content, stdin=subprocess.DEVNULL if content is None else None,
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode == 0 or (done.returncode == 1 and done.stdout):
        return json.loads(done.stdout)
    lines = done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"]
    raise _errors.get(done.returncode, VkropeError)(lines[-1])


def _options(**given: Any) -> list[str]:
    """Returns the options of the command, for the arguments that are not None."""
    options = []
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            options.append(option)
        elif isinstance(value, (list, tuple)):
            options += [part for one in value for part in (option, str(one))]
        elif value is not None and value is not False:
            options += [option, str(value)]
    return options


def explain(
    model: Model,
    *,
    seq_len: int | None = None,
    layer_type: str | None = None,
    layer: int | None = None,
    tower: str | None = None,
    pairing: str | None = None,
    ignore: Sequence[str] = (),
    svg: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Explains a model's RoPE: wavelengths, scaling, pairs, factors.

    Runs the command `vkrope explain`, because the C interface has no such function.

    Args:
        model, ...:  as in frequencies()
        svg:         a file to which a picture of the RoPE is written

    Returns:
        the document that `vkrope explain --json` prints; wavelengths are in positions,
        frequencies in radians per position

    Raises:
        InvalidDataError, InvalidArgumentError: as in frequencies()
        FileNotFoundError: there is no command `vkrope`
    """
    options = _options(
        seq_len=seq_len, layer_type=layer_type, layer=layer, tower=tower, pairing=pairing,
        ignore=list(ignore), svg=None if svg is None else os.fspath(svg),
    )  # fmt: skip
    return _run(["explain", *options], model)


def check(
    model: Model,
    *,
    q: np.ndarray | None = None,
    actual: np.ndarray | None = None,
    k: np.ndarray | None = None,
    actual_k: np.ndarray | None = None,
    positions: Any = None,
    first_position: int | None = None,
    layout: Layout = "bshd",
    inverse: bool = False,
    gain: str | None = None,
    pairing: str | None = None,
    seq_len: int | None = None,
    layer_type: str | None = None,
    layer: int | None = None,
    tower: str | None = None,
    ignore: Sequence[str] = (),
    tolerance: float | None = None,
) -> dict[str, Any]:
    """Checks another engine's rotated q and k, and names the mistake that explains them.

    Runs the command `vkrope check`, because the C interface has no such function. The arrays are
    passed as files in a temporary folder. No device is needed.

    Args:
        model, ...:     as in frequencies()
        q, k:           the tensors before the rotation, as in rotate()
        actual:         q as rotated by the engine; has the shape of q
        actual_k:       k as rotated by the engine
        positions:      integers [tokens], [batch, tokens] or [axes, batch, tokens]
        tolerance:      accepts errors up to this share of |x0| + |x1|

    Returns:
        the document that `vkrope check --json` prints: "verdict" is "pass", "close" (the right
        operation, but not exact), "mistake" (explained by the first of "matches") or
        "unexplained"; "matches" has at most three that explain the output, the likelier first, and
        none after a pass; "findings" of "q" and "k" says in sentences what was measured if nothing
        explains the output; "max_error_u" is in units of 2^-24 (|x0| + |x1|)

    Raises:
        InvalidArgumentError, InvalidDataError: an input that the command cannot use
        FileNotFoundError: there is no command `vkrope`
    """
    options = _options(
        first_position=first_position, layout=layout, inverse=inverse, gain=gain, pairing=pairing,
        seq_len=seq_len, layer_type=layer_type, layer=layer, tower=tower, tolerance=tolerance,
        ignore=list(ignore),
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="vkrope-") as folder:
        arrays = {"q": q, "actual": actual, "k": k, "actual_k": actual_k}
        for name, array in arrays.items():
            if array is not None:
                options += _saved(folder, name, array)
        if positions is not None:
            path = os.path.join(folder, "positions.npy")
            np.save(path, positions_of(positions))
            options += ["--positions", path]
        return _run(["check", *options], model)


def _saved(folder: str, name: str, array: np.ndarray) -> list[str]:
    """Saves an array and returns the option that names its file. bfloat16 becomes uint16."""
    array = np.asarray(array)
    element_of(name, array.dtype)
    if array.dtype.name == "bfloat16":
        array = array.view(np.uint16)
    path = os.path.join(folder, name + ".npy")
    np.save(path, array)
    return ["--" + name.replace("_", "-"), path]
