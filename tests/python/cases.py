#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs conformance cases, the folders at or below DIR that hold a case.json, on a Vulkan device.
Prints a line for each. Exit codes: 0 all are right; 1 one failed, or none has a result; 2 usage;
3 no device; 4 the device failed; 5 a case or a file is wrong; 6 out of memory."""

import argparse
import contextlib
import io
import json
import os
import sys

import numpy as np
import vkrope

from case_comparison import compare
from case_device import Run
from case_document import Folder, Refusal, describe, printable, wrong

WORDS = ("pass", "fail", "unsupported", "error", "computed")
UNSUPPORTED = vkrope.InvalidArgumentError, vkrope.NotSupportedError, vkrope.LimitExceededError


def die(code, sentence):
    print(f"vkrope: error: {sentence}", file=sys.stderr)
    sys.exit(code)


def find(given):
    """Returns the Folder of each case, sorted. Ignores links to folders, which may form cycles."""
    def unreadable(error):
        die(5, f"'{given}' cannot be read: {error.strerror}")

    root = os.path.realpath(given)
    found = [folder for folder, _, _ in os.walk(root, onerror=unreadable)
             if os.path.lexists(os.path.join(folder, "case.json"))]
    if not found:
        die(5, f"'{given}' has no case.json in it or below it")
    return [Folder(root, folder) for folder in sorted(found, key=lambda path: path.split("/"))]


def put(path, data):
    """Writes a file whole, or leaves it as it was: a full disk may show only at the end."""
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe
        with open(path, "wb") as file:
            file.write(data)
        return
    place = os.path.realpath(path)
    part = f"{place}.part"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)
    try:
        with open(part, "xb") as file:
            file.write(data)
        os.replace(part, place)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def write(outputs, case, arrays):
    """Writes the outputs. No link may lead out of the folder."""
    folder = os.path.join(os.path.realpath(outputs), case.id)
    files = {os.path.join(folder, f"actual_{name}.npy"): array for name, array in arrays.items()}
    if any(os.path.realpath(path) != path for path in (folder, *files)):
        wrong("--write-outputs: a symbolic link leads out of the folder")
    try:
        os.makedirs(folder, exist_ok=True)
        for path, array in files.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, np.ascontiguousarray(array), (1, 0))
            put(path, data.getvalue())
    except OSError as error:
        wrong(f"--write-outputs: the files of '{case.id}' cannot be written: {error.strerror}")


def judged(device, folder, outputs):
    """Returns the status of a case, its largest error or None, and the reason."""
    case = describe(folder.document()[0])
    tensors = Run(device, folder, case).tensors
    actual = {tensor.name: tensor.actual() for tensor in tensors}
    if outputs:
        scales = {f"{tensor.name}_scales": tensor.scales for tensor in tensors if tensor.is_made}
        write(outputs, case, {**actual, **scales})
    compared = [compare(folder, case, tensor, actual[tensor.name]) for tensor in tensors
                if case.expected.get(tensor.name)]
    error = max((error for error, _ in compared), default=None)
    for _, sentence in compared:
        if sentence:
            quirk = f"; the case notes a quirk: {printable(case.quirk)}" if case.quirk else ""
            return "fail", error, sentence + quirk
    if len(compared) < len(tensors):
        return "computed", error, "no expected output"
    empty = not any(array.size for array in actual.values())
    return ("computed", error, "the tensors are empty") if empty else ("pass", error, "")


def run(device, folder, outputs=None, seen=()):
    """Runs a case. Returns its id, status, max_error, reason, and the exit code for an error."""
    of = {"id": os.path.relpath(folder.folder, folder.root), "max_error": None, "code": 0}
    try:
        of["id"] = folder.document()[1]
        if of["id"] in seen:
            wrong("another case has the same id")
        of["status"], of["max_error"], of["reason"] = judged(device, folder, outputs)
    except Refusal as refusal:
        of.update(status=refusal.status, reason=str(refusal), code=refusal.code)
    except UNSUPPORTED as error:
        of.update(status="unsupported", reason=str(error))
    except (vkrope.VkropeError, MemoryError) as error:
        code = 6 if isinstance(error, MemoryError) else 4
        of.update(status="error", reason=str(error), code=code)
    except Exception as error:  # a fault of this program, which ends no other case
        of.update(status="error", reason=f"{type(error).__name__}: {error}", code=5)
    return of


def line_of(of):
    error = "" if of["max_error"] is None else f"  {of['max_error']:.3g}"
    line = f"{of['status']:<11}  {of['id']}{error}" + (f"  {of['reason']}" if of["reason"] else "")
    return "".join(c if " " <= c <= "~" else "?" for c in line)


def say(line, stream):
    try:
        print(line, file=stream, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # for the flush at the exit
        die(5, f"the results cannot be printed: {error.strerror}")


def main():
    parser = argparse.ArgumentParser(prog="cases", description=__doc__)
    parser.add_argument("folders", metavar="DIR", nargs="+")
    parser.add_argument("--device", default=os.environ.get("VKROPE_DEVICE", ""),
                        help="index, UUID or part of the name (the best one)")
    parser.add_argument("--write-outputs", metavar="OUT", help="write OUT/<id>/actual_q.npy, ...")
    parser.add_argument("--json", metavar="F", help="write the results to F; -: to stdout, and "
                        "the lines to stderr")
    given = parser.parse_args()
    if given.json not in (None, "-"):
        path = os.path.realpath(given.json)
        is_new = os.path.isfile(path) or not os.path.exists(given.json)
        if os.path.isdir(path) or not os.access(
                os.path.dirname(path) if is_new else given.json, os.W_OK):
            die(5, f"--json: '{given.json}' cannot be written")
    folders = [folder for directory in given.folders for folder in find(directory)]
    try:
        os.makedirs(given.write_outputs or ".", exist_ok=True)
    except OSError as error:
        die(5, f"--write-outputs: '{given.write_outputs}' cannot be a folder: {error.strerror}")
    try:
        device = vkrope.Device(given.device)
    except vkrope.VkropeError as error:
        die(2 if isinstance(error, vkrope.InvalidArgumentError) else 3, error)
    results = []
    for folder in folders:
        results.append(run(device, folder, given.write_outputs, {of["id"] for of in results}))
        say(line_of(results[-1]), sys.stderr if given.json == "-" else sys.stdout)
    text = json.dumps({"device": device.info.name, "cases": results}, indent=2)
    if given.json == "-":
        say(text, sys.stdout)
    elif given.json:
        try:
            put(given.json, text.encode())
        except OSError as error:
            die(5, f"--json: '{given.json}' cannot be written: {error.strerror}")
    counts = {word: sum(of["status"] == word for of in results) for word in WORDS}
    codes = {of["code"] for of in results} | {int(counts["fail"] > 0)}
    code = next((code for code in (4, 6, 1, 5) if code in codes),
                int(counts["pass"] + counts["computed"] == 0))
    if code:
        text = "".join(f", {count} {word}" for word, count in counts.items() if count)
        die(code, f"of {len(results)} checks{text}")


if __name__ == "__main__":
    main()
