# SPDX-License-Identifier: MIT
"""Loads the shared library, calls it, and raises its errors."""

from __future__ import annotations

import threading
from numbers import Integral
from pathlib import Path
from typing import Any, Callable

from ._declarations import ffi
from ._errors import InvalidArgumentError, error_of

_declared = tuple(
    ffi.integer_const(f"VKROPE_VERSION_{part}") for part in ("MAJOR", "MINOR", "PATCH")
)


def _load() -> Any:
    """Loads the library of the wheel or, if the package has none, of the system."""
    beside = Path(__file__).parent / "libvkrope.so"
    name = "libvkrope.so.{}.{}".format(*_declared)
    try:
        return ffi.dlopen(str(beside) if beside.exists() else name)
    except OSError as error:
        raise ImportError(f"vkrope needs the library {name}: {error}") from None


lib = _load()


def version() -> str:
    """Returns the version of the loaded library, "major.minor.patch"."""
    number = lib.vkrope_version()
    return f"{number >> 22}.{number >> 12 & 0x3FF}.{number & 0xFFF}"


if tuple(int(part) for part in version().split(".")[:2]) != _declared[:2]:
    raise ImportError(
        "vkrope {}.{}.{} needs a library of the same minor version; the one found is {}".format(
            *_declared, version()
        )
    )


def call(function: Callable[..., int], *arguments: Any) -> None:
    """Calls a function whose last parameter is a vkrope_error, and raises the error."""
    error = ffi.new("vkrope_error*")
    code = function(*arguments, error)
    if code != lib.VKROPE_SUCCESS:
        raise error_of(code, text(error.what), error.vk_result)


def new_struct(name: str, **fields: Any) -> Any:
    """Returns a struct. The caller keeps alive the data that its fields point to."""
    made = ffi.new(f"{name}*")
    for field, value in fields.items():
        set_field(made, field, value)
    return made


def set_field(struct: Any, field: str, value: Any) -> None:
    """Sets a field of a struct."""
    try:
        setattr(struct, field, value)
    except (OverflowError, TypeError) as error:
        raise InvalidArgumentError(f"{field} is {value!r}: {error}") from None


def in_range(field: str, value: Any, highest: int, lowest: int = 0) -> int:
    """Returns an integer; the error names `field` if it is none, or outside this range."""
    if not isinstance(value, Integral) or not lowest <= value <= highest:
        raise InvalidArgumentError(
            f"{field} is {value!r}: it must be an integer from {lowest} to {highest}"
        )
    return int(value)


def filled(name: str, function: Callable[..., int], *arguments: Any) -> Any:
    """Returns a struct that a function fills."""
    made = new_struct(name)
    call(function, *arguments, made)
    return made


def text(of: Any) -> str:
    """Converts a C string to a str."""
    return ffi.string(of).decode("utf-8", "replace")


class Handle:
    """An object of the library. It is destroyed when no references or dependent objects remain.

    Objects created with a device share its lock, because a device belongs to one thread at a time,
    and keep the device alive, in whatever order Python collects the objects.
    """

    def __init__(self, pointer: Any, destroy: Callable[[Any], None], parent: Handle | None = None):
        self.pointer = pointer
        self.lock: threading.RLock = parent.lock if parent else threading.RLock()
        self._destroy = destroy
        self._parent = parent
        self._users = 1
        self.kept: Any = None  # data that the library refers to as long as the object lives
        if parent:
            with self.lock:
                parent._users += 1

    def release(self) -> None:
        """Ends one use; the end of the last use destroys the object."""
        with self.lock:
            self._users -= 1
            if self._users == 0:
                self._destroy(self.pointer)
                if self._parent:
                    self._parent.release()


def create(
    function: Callable[..., int],
    destroy: Callable[[Any], None],
    kind: str,
    *arguments: Any,
    parent: Handle | None = None,
) -> Handle:
    """Calls a vkrope_..._create; `kind` is the type of the object."""
    target = ffi.new(f"{kind}**")
    call(function, *arguments, target)
    return Handle(target[0], destroy, parent)


class Owner:
    """Base of the classes that own an object of the library; also a context manager."""

    _handle: Handle | None = None

    def close(self) -> None:
        """Releases the object. Does nothing the second time."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.release()

    def _open(self) -> Handle:
        if self._handle is None:
            raise error_of(
                lib.VKROPE_ERROR_INVALID_ARGUMENT, f"this {type(self).__name__} is closed", 0
            )
        return self._handle

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
