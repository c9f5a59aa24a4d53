"""The complement of decimal digits, which reverses their order: for descending numbers, times and choices.

The complement of a digit is its difference from nine, so a zero-padded number becomes its difference from the greatest
number of its width: 00157 becomes 99842. Punctuation stays.
"""

from __future__ import annotations

from typing import Final

_COMPLEMENT: Final = str.maketrans("0123456789", "9876543210")


def complement(text: str) -> str:
    """Each digit replaced by its difference from nine. Its own inverse."""
    return text.translate(_COMPLEMENT)


def is_digits(text: str, width: int) -> bool:
    """Whether the text has exactly this many characters, all of them digits from 0 to 9."""
    return len(text) == width and text.isascii() and text.isdigit()
