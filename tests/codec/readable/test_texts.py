"""Texts: their bytes, their cases, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codec.readable.kinds import texts

from isotone.codec.readable import RawText, Text
from isotone.errors import MalformedKey, OutOfRange, UsageError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", ""),
        ("36ab", "36ab"),
        ("Berkshire & Sons", "Berkshire$_&$_Sons"),
        ("#1", "$h1"),
        ('!"#$%', "$b$d$h$s%"),
        ("\x00\t\n\x1f\x7f", "$0$9$A$V\x7f"),
        ("é～😀", "é～😀"),
        ("$h", "$sh"),
    ],
)
def test_texts(value: str, text: str) -> None:
    assert Text().encode(value) == text
    assert Text().decode(text) == value


def test_each_escape_sorts_as_what_it_stands_for() -> None:
    escaped = [Text().encode(chr(code)) for code in range(0x25)]
    assert escaped == sorted(escaped)
    assert all(text[0] == "$" and text[1].isprintable() for text in escaped)


def test_a_text_comes_before_what_it_begins_with() -> None:
    values = ["a", "a\x00", "a ", "a!", "a#", "a$", "a%", "ab"]
    keys = [Text().encode(value) + "#z" for value in values]
    assert keys == sorted(keys)


@pytest.mark.parametrize(
    ("value", "text"), [("", "~"), ("a", "9e~"), ("ab", "9e9d~"), ("é", "3c56~"), ("#", "dc~")]
)
def test_descending(value: str, text: str) -> None:
    for codec in (Text().descending(), RawText().descending()):
        assert codec.encode(value) == text
        assert codec.decode(text) == value


def test_a_raw_text_is_as_it_is() -> None:
    assert RawText().encode("2022-08-13 00:00:00#LANE1") == "2022-08-13 00:00:00#LANE1"
    assert RawText().decode("$ #\x00") == "$ #\x00"


def test_scenario_text_order() -> None:
    values = ["apple", "Banana", "cherry", "#1", "é", "～", "😀"]
    wanted = ["#1", "Banana", "apple", "cherry", "é", "～", "😀"]
    for codec in (Text(), RawText()):
        assert sorted(values, key=lambda value: codec.encode(value).encode()) == wanted
        falling = codec.descending()
        assert sorted(values, key=lambda value: falling.encode(value).encode()) == wanted[::-1]


@pytest.mark.parametrize(
    ("case", "text"), [("upper", "BANANA"), ("lower", "banana"), ("casefold", "banana")]
)
@pytest.mark.parametrize("kind", [Text, RawText])
def test_one_case_for_all(kind: Any, case: str, text: str) -> None:
    assert {kind(case).encode(value) for value in ("Banana", "BANANA", "banana")} == {text}


@pytest.mark.parametrize("case", ["upper", "lower", "casefold"])
@given(value=texts | st.text(max_size=3), end=st.integers(0, 3))
def test_a_folded_prefix_is_a_prefix(case: Any, value: str, end: int) -> None:
    """Also where a sigma is the last letter of a word, which lower case writes otherwise."""
    codec = Text(case)
    assert codec.encode(value).startswith(codec.encode_prefix(value[:end]))


@pytest.mark.parametrize("case", ["upper", "lower", "casefold"])
def test_what_is_folded_stays_so(case: Any) -> None:
    codec = RawText(case)
    for code in (*range(0xD800), *range(0xE000, 0x20000)):
        folded = codec.fold(chr(code))
        assert codec.fold(folded) == folded


@pytest.mark.parametrize("codec", [Text(), Text().descending(), RawText("upper")])
def test_half_a_surrogate_pair_is_no_text(codec: Any) -> None:
    with pytest.raises(OutOfRange, match="half of a surrogate pair"):
        codec.encode("a\ud800")
    with pytest.raises(MalformedKey):
        codec.decode("a\ud800")


@pytest.mark.parametrize("value", [b"a", 1, None])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="holds str"):
        Text().encode(value)


@pytest.mark.parametrize("text", ["a b", "a#b", "$", "a$", "$a", "$h$", "$$", "\x00", "$W"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(MalformedKey, match="is not an escaped text"):
        Text().decode(text)


@pytest.mark.parametrize("text", ["", "9e", "9E~", "9~", "9e~~", "00~", "a"])
def test_other_descending_texts_are_refused(text: str) -> None:
    with pytest.raises(MalformedKey, match="is not a descending text"):
        Text().descending().decode(text)


def test_a_text_in_another_case_is_refused() -> None:
    with pytest.raises(MalformedKey, match="in lower case"):
        Text("lower").decode("Banana")


def test_other_cases_are_refused() -> None:
    with pytest.raises(UsageError, match="'title' is not a case rule"):
        Text("title")  # type: ignore[arg-type]
