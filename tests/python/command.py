# SPDX-License-Identifier: MIT
"""Runs the command vkrope in the working directory, and checks what it says."""

import json
import re
import resource
import shlex
import subprocess
from pathlib import Path

import numpy as np


def says(pattern, text):
    """True if a line of the text has the words of the pattern, which stars separate, in order."""
    return re.search(".*".join(map(re.escape, pattern.split("*"))), text) is not None


def same(first, second):
    """True if two files have the same bytes. (An assertion prints all bytes.)"""
    return Path(first).read_bytes() == Path(second).read_bytes()


def write_model(name="model.json", **fields):
    """Writes a config.json with 4 query heads and 2 key heads of 64 channels."""
    model = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
             "num_key_value_heads": 2, "max_position_embeddings": 2048, "rope_theta": 10000.0}
    Path(name).write_text(json.dumps({**model, **fields}))


def limited(resource_name, most):
    """Returns options that limit a resource of the command to this many bytes."""
    kind = getattr(resource, f"RLIMIT_{resource_name}")
    return {"preexec_fn": lambda: resource.setrlimit(kind, (most, most))}


def save(**arrays):
    """Writes each array to NAME.npy."""
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)


def bits(name):
    """Returns the elements of NAME.npy as integers, for comparisons without a tolerance."""
    array = np.load(f"{name}.npy")
    return array.view(f"u{array.itemsize}")


def rows(table, **starts):
    """Returns (exit code, words, command line) for each row of a table. A command line begins with
    a key of `starts`, which its value replaces. For each value in the last column, {} stands for
    the value, or {0} and {1} for the parts before and after its `=`."""
    found = []
    for row in table.strip().splitlines():
        code, words, line, *values = (part.strip() for part in row.split(" | "))
        start, _, more = line.partition(" ")
        for value in values[0].split() if values else [""]:
            parts = value.split("=", 1) if "{1}" in row else [value]
            both = (text.format(*parts) for text in (words, f"{starts[start]} {more}"))
            found.append((int(code), *both))
    return found


class Command:
    """The program, which has no driver until `use`."""

    def __init__(self, program, setenv):
        self.program = Path(program).absolute()
        self._setenv = setenv
        self.use("/nonexistent/no_driver.json", leaks=True)

    def use(self, *drivers, leaks=False):
        """Makes these the only drivers from here on, whose leaks are no errors: they leak a little,
        and are unloaded before a sanitizer could name them in a suppression."""
        for name in "VK_DRIVER_FILES", "VK_ICD_FILENAMES":
            self._setenv(name, ":".join(drivers))
        # A finding of a sanitizer ends a program with 1, like a failed verification, so this sets
        # an exit code that no command of vkrope has.
        self._setenv("ASAN_OPTIONS", f"exitcode=99:detect_leaks={leaks:d}")

    def __call__(self, line, **options):
        """Runs it with the words of the line; returns its exit code, stdout and stderr."""
        words = [self.program, *shlex.split(line)]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        done = subprocess.run(words, encoding="utf-8", errors="replace", check=False, **options)
        return done.returncode, done.stdout, done.stderr

    def expect(self, expected, pattern, line, **options):
        """Runs it and checks its exit code, and that a line of stderr is like the pattern: the
        error, an option or a field, and its value. A failing command prints nothing on stdout and
        one line "vkrope: error: ...". Returns stdout."""
        code, out, err = self(line, **options)
        assert code == expected, err
        assert says(pattern, err), f"stderr has no line with '{pattern}': {err}"
        if code:
            assert len(re.findall("^vkrope: error: .", err, re.MULTILINE)) == 1, err
            assert code == 1 or not out, "a failure wrote to stdout"
        return out

    def works(self, line, **options):
        """Runs it without an error, and returns stdout."""
        return self.expect(0, "", line, **options)

    def report(self, line, **options):
        """Runs it without an error, and returns its JSON."""
        return json.loads(self.works(line + " --json", **options))

    def refuse(self, code, pattern, line, **options):
        """Like `expect`, and the command does not change the list of files."""
        before = sorted(Path().rglob("*"))
        self.expect(code, pattern, line, **options)
        assert sorted(Path().rglob("*")) == before, "files were left behind"
