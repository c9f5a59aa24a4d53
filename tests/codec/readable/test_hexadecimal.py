"""Bytes: their digits, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from isotone.codec.readable import Hex
from isotone.errors import MalformedKey, UsageError


@pytest.mark.parametrize(
    ("value", "ascending", "descending"),
    [(b"", "", "~"), (b"\x00", "00", "ff~"), (b"\x00\xff", "00ff", "ff00~"), (b"a", "61", "9e~")],
)
def test_texts(value: bytes, ascending: str, descending: str) -> None:
    for codec, text in ((Hex(), ascending), (Hex().descending(), descending)):
        assert codec.encode(value) == text
        assert codec.decode(text) == value


@pytest.mark.parametrize("value", ["00", 1, None])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="holds bytes"):
        Hex().encode(value)


@pytest.mark.parametrize("text", ["0", "0G", "FF", "00~", "0 0", "00 "])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(MalformedKey, match="pairs of lower-case hexadecimal digits"):
        Hex().decode(text)


@pytest.mark.parametrize("text", ["", "00", "0~", "FF~", "~~"])
def test_other_descending_texts_are_refused(text: str) -> None:
    with pytest.raises(MalformedKey, match="digits and ~"):
        Hex().descending().decode(text)
