"""Tokens: every character of a text is in exactly one of them, or is space between two. Words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.expressions.tokenizer import RESERVED_WORDS, Kind, is_reserved, is_word, tokenize


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b[0]", ["a", ".", "b", "[", "0", "]"]),
        ("#a = :b", ["#a", "=", ":b"]),
        ("a<=b", ["a", "<=", "b"]),
        ("a< =b", ["a", "<", "=", "b"]),
        ("a<>b", ["a", "<>", "b"]),
        ("_a", ["_", "a"]),
        ("1a", ["1", "a"]),
        ("007", ["0", "0", "7"]),
        ("#", ["#"]),
        ("é", ["é"]),
        ("\ta\n", ["a"]),
    ],
)
def test_a_text_falls_into_tokens(text: str, expected: list[str]) -> None:
    assert [token.text for token in tokenize(text)[:-1]] == expected


@pytest.mark.parametrize("word", ["AND", "and", "aNd", "between", "Set", "DELETE"])
def test_keywords_are_known_whatever_their_case(word: str) -> None:
    (token, _) = tokenize(word)
    assert token.kind is Kind.KEYWORD
    assert token.symbol == word.upper()


@given(st.text("aA_9#:.,()[]<>=+- \té\"'"))
def test_nothing_is_lost(text: str) -> None:
    tokens = tokenize(text)
    assert tokens[-1].kind is Kind.END
    assert all(text[token.start : token.end] == token.text for token in tokens[:-1])
    between = "".join(text[before.end : after.start] for before, after in pairwise(tokens))
    assert not between.strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", True),
        ("a_9", True),
        ("_a", False),
        ("9a", False),
        ("", False),
        ("or", False),
        ("a.b", False),
    ],
)
def test_what_a_word_is(text: str, expected: bool) -> None:
    assert is_word(text) is expected


def test_there_are_as_many_reserved_words_as_in_the_developer_guide() -> None:
    assert len(RESERVED_WORDS) == 573


@pytest.mark.parametrize("word", ["name", "Status", "TTL", "data", "size", "zone", "abort"])
def test_words_are_reserved_in_any_case(word: str) -> None:
    assert is_reserved(word)


@pytest.mark.parametrize("word", ["pk", "sk", "id", "price", "names2", "version", ""])
def test_other_words_are_free(word: str) -> None:
    assert not is_reserved(word)
