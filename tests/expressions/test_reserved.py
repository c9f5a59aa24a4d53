"""The reserved words."""

from __future__ import annotations

import pytest

from isotone.expressions.reserved import RESERVED_WORDS, is_reserved


def test_there_are_as_many_as_in_the_developer_guide() -> None:
    assert len(RESERVED_WORDS) == 573


@pytest.mark.parametrize("word", ["name", "Status", "TTL", "data", "size", "zone", "abort"])
def test_case_does_not_matter(word: str) -> None:
    assert is_reserved(word)


@pytest.mark.parametrize("word", ["pk", "sk", "id", "price", "names2", "version", ""])
def test_other_words_are_free(word: str) -> None:
    assert not is_reserved(word)
