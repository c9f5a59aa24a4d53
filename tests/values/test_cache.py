"""The cache of what is made of texts: bounded by size, shared by threads."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.values.cache import Cache


class Making:
    """Makes the length of a text, and counts how often."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def __call__(self, text: str, length: int) -> int:
        assert length == len(repr(text))
        self.made.append(text)
        if not text:
            raise ValueError("no text")
        return len(text)


def test_a_value_is_made_once():
    make = Making()
    cache = Cache(make, 1000, entry=10, character=1)
    assert [cache["abc"], cache["abc"], cache["d"]] == [3, 3, 1]
    assert make.made == ["abc", "d"]


def test_an_error_is_not_kept():
    make = Making()
    cache = Cache(make, 1000, entry=10, character=1)
    for _ in range(2):
        with pytest.raises(ValueError, match="no text"):
            cache[""]
    assert make.made == ["", ""]
    assert not cache


@given(st.lists(st.text("abc", min_size=1, max_size=40), max_size=300))
def test_the_cache_never_holds_more_than_it_may(texts):
    make = Making()
    cache = Cache(make, 200, entry=10, character=1)
    for text in texts:
        assert cache[text] == len(text)
        held = {**cache, **cache._before}
        assert sum(12 + len(each) for each in held) <= 200
        assert cache.bytes == sum(12 + len(each) for each in cache)
        assert make.made[-1] == text or text in held


def test_what_is_in_use_stays():
    make = Making()
    cache = Cache(make, 220, entry=10, character=1)
    for number in range(200):
        cache["used"], cache[f"new {number}"]
    assert make.made.count("used") == 1


def test_an_entry_that_is_too_large_alone_displaces_the_others_only():
    cache = Cache(Making(), 100, entry=10, character=1)
    assert [cache["x" * 500], cache["x" * 500], cache["a"]] == [500, 500, 1]
    assert set(cache) == {"a"}


def test_threads_share_it():
    cache = Cache(Making(), 400, entry=10, character=1)
    wrong: list[str] = []

    def use() -> None:
        for number in range(3000):
            text = "x" * (number % 37 + 1)
            if cache[text] != len(text):
                wrong.append(text)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert cache.bytes == sum(12 + len(each) for each in cache)
