# SPDX-License-Identifier: MIT
"""Words for the enumerators of vkrope.h: their names in lower case."""

from __future__ import annotations

from ._declarations import ffi
from ._errors import InvalidArgumentError


class Words:
    """One enumeration, in which VKROPE_HALF_SPLIT is "half_split"."""

    def __init__(self, enumeration: str, prefix: str) -> None:
        relements = ffi.typeof(enumeration).relements
        self._numbers = {
            name[len(prefix) :].lower(): number
            for name, number in sorted(relements.items(), key=lambda item: item[1])
            # None stands for these enumerators.
            if name not in ("VKROPE_PAIRING_NONE", "VKROPE_SECOND_NONE")
        }
        self._words = {number: word for word, number in self._numbers.items()}

    def __iter__(self):
        return iter(self._numbers)

    def number(self, field: str, word: str) -> int:
        """Returns the enumerator; the error names `field`."""
        if isinstance(word, str) and word in self._numbers:
            return self._numbers[word]
        raise InvalidArgumentError(f"{field} is {word!r}: it must be one of {', '.join(self)}")

    def word(self, number: int) -> str:
        """Returns the word; for an unknown number of a later version, the number as text."""
        return self._words.get(number, str(number))


pairings = Words("vkrope_pairing", "VKROPE_")
elements = Words("vkrope_element", "VKROPE_")
angle_sources = Words("vkrope_angle_source", "VKROPE_ANGLES_")
precisions = Words("vkrope_angle_precision", "VKROPE_ANGLE_PRECISION_")
section_orders = Words("vkrope_section_order", "VKROPE_SECTIONS_")
directions = Words("vkrope_direction", "VKROPE_")
gains = Words("vkrope_gain", "VKROPE_GAIN_")
layouts = Words("vkrope_layout", "VKROPE_LAYOUT_")
seconds = Words("vkrope_second_of", "VKROPE_SECOND_")
query_scalings = Words("vkrope_query_scaling", "VKROPE_QUERY_SCALING_")

# The enumerations of vkrope_ops by their types.
op_words = {
    ffi.typeof(name): Words(name, prefix)
    for name, prefix in (
        ("vkrope_element", "VKROPE_"),
        ("vkrope_norm_kind", "VKROPE_NORM_"),
        ("vkrope_norm_span", "VKROPE_NORM_SPAN_"),
        ("vkrope_norm_place", "VKROPE_NORM_PLACE_"),
        ("vkrope_parameter_shape", "VKROPE_PARAMETER_"),
        ("vkrope_store_scale", "VKROPE_STORE_SCALE_"),
        ("vkrope_scale_layout", "VKROPE_SCALE_LAYOUT_"),
        ("vkrope_scale_type", "VKROPE_SCALE_TYPE_"),
    )
}
