"""The page that describes the format shows bytes; they are the ones that are written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from isotone.codec import encode_binary, encode_number, encode_text, partition_prefix
from isotone.values.number import canonical_number

PAGE = (Path(__file__).parents[2] / "docs/design/format.md").read_text(encoding="utf-8")
HEX = r"[0-9A-F]{2}(?: [0-9A-F]{2})*"


def rows(value: str) -> list[tuple[str, bytes]]:
    """The rows of tables whose first cell looks like `value` and whose last cell is a key."""
    found = re.findall(rf"^\| {value} \|.*`({HEX})` \|$", PAGE, re.MULTILINE)
    return [(cell, bytes.fromhex(key)) for cell, key in found]


NUMBERS = rows(r"`(-?[0-9.E+-]{1,10})`")
NUMBERS = [(text, key) for text, key in NUMBERS if key[0] in b"\x10\x11\x12"]
TEXTS = rows(r'`"([^`]*)"`')
BINARIES = rows(rf"bytes `({HEX})`")


def test_the_page_has_examples() -> None:
    assert (len(NUMBERS), len(TEXTS), len(BINARIES)) == (13, 5, 1)


@pytest.mark.parametrize(("text", "key"), NUMBERS)
def test_numbers(text: str, key: bytes) -> None:
    assert encode_number(canonical_number(text)) == key


@pytest.mark.parametrize(("text", "key"), TEXTS)
def test_texts(text: str, key: bytes) -> None:
    assert encode_text(text.replace(r"\0", "\x00")) == key


@pytest.mark.parametrize(("raw", "key"), BINARIES)
def test_binaries(raw: str, key: bytes) -> None:
    assert encode_binary(bytes.fromhex(raw)) == key


def test_a_whole_key() -> None:
    written = "CEE007238B409620 · 20 61 00 · 12 80 0A"
    assert written in PAGE
    key = partition_prefix(encode_text("a")) + encode_number("5")
    assert key == bytes.fromhex(written.replace("·", ""))
