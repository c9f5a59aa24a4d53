"""What every codec keeps, in both directions, against orders that know of no text."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codec.readable.kinds import DELIMITED, KINDS, Kind, order, utf8

from isotone.codec.readable import HasPrefixes, Measured
from isotone.errors import MalformedKey

every = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
anything = st.text(max_size=3)
characters = st.sampled_from("#$ 0_~-9Aa.٣") | st.characters(exclude_categories=["Cs"])
short = st.text(max_size=5)


def expected(kind: Kind, left: object, right: object) -> int:
    direction = 1 if kind.codec.ascending else -1
    return direction * order(kind.meaning(left), kind.meaning(right))


@every
@settings(max_examples=20)
@given(data=st.data())
def test_what_every_codec_keeps(kind: Kind, data: st.DataObject) -> None:
    """One draw of values serves all properties: to draw takes longer than to check."""
    left, right = data.draw(kind.values), data.draw(kind.values)
    texts_sort_as_values_do(kind, left, right)
    a_text_is_read_back(kind, left)
    neighbours_are_next_to_each_other(kind, left, right)
    text = kind.codec.encode(left)
    only_what_was_written_is_read(kind, data.draw(changes_of(text)))
    if kind in DELIMITED:
        what_follows_changes_nothing(kind, left, right, data.draw(st.tuples(anything, anything)))
        no_text_holds_a_separator_or_what_sorts_below(kind, left)


def texts_sort_as_values_do(kind: Kind, left: object, right: object) -> None:
    texts = utf8(kind.codec.encode(left)), utf8(kind.codec.encode(right))
    assert order(*texts) == expected(kind, left, right)


def what_follows_changes_nothing(
    kind: Kind, left: object, right: object, tails: tuple[str, str]
) -> None:
    texts = [
        utf8(kind.codec.encode(value) + "#" + tail)
        for value, tail in zip((left, right), tails, strict=True)
    ]
    wanted = expected(kind, left, right)
    assert order(*texts) == (wanted or order(*map(utf8, tails)))


def a_text_is_read_back(kind: Kind, value: object) -> None:
    text = kind.codec.encode(value)
    read = kind.codec.decode(text)
    assert read == kind.returned(value)
    assert kind.meaning(read) == kind.meaning(value)
    assert kind.codec.encode(read) == text
    assert kind.codec.width in (None, len(text))


def no_text_holds_a_separator_or_what_sorts_below(kind: Kind, value: object) -> None:
    text = kind.codec.encode(value)
    assert all(character > "#" for character in text)
    assert not text.endswith("$")


def changes_of(text: str) -> st.SearchStrategy[str]:
    """A text with less, another or one more character, or any other text."""

    def changes_at(place: int) -> st.SearchStrategy[str]:
        return (
            st.sampled_from([text[:place], text[place:], text[:place] + text[place + 1 :]])
            | characters.map(lambda new: text[:place] + new + text[place + 1 :])
            | characters.map(lambda new: text[:place] + new + text[place:])
            | short
        )

    return st.integers(0, len(text)).flatmap(changes_at)


def only_what_was_written_is_read(kind: Kind, changed: str) -> None:
    with suppress(MalformedKey):
        assert kind.codec.encode(kind.codec.decode(changed)) == changed


def neighbours_are_next_to_each_other(kind: Kind, value: object, another: object) -> None:
    codec, other = kind.codec, kind.meaning(another)
    below, above = codec.before(value), codec.after(value)
    if below is not None:
        assert kind.meaning(below) < kind.meaning(value)
        assert not kind.meaning(below) < other < kind.meaning(value)
        codec.encode(below)
    if above is not None:
        assert kind.meaning(value) < kind.meaning(above)
        assert not kind.meaning(value) < other < kind.meaning(above)
        codec.encode(above)


@every
def test_the_direction_turns_and_turns_back(kind: Kind) -> None:
    codec = kind.codec
    assert codec.descending() != codec
    assert codec.descending().ascending is not codec.ascending
    assert codec.descending().descending() == codec
    assert hash(codec.descending().descending()) == hash(codec)


@pytest.mark.parametrize(
    "kind", [each for each in KINDS if each.codec.width is not None], ids=lambda kind: kind.name
)
def test_values_of_a_fixed_width_have_neighbours_up_to_the_ends(kind: Kind) -> None:
    texts = sorted(kind.codec.samples())
    if not kind.codec.ascending:
        texts.reverse()
    least, greatest = kind.codec.decode(texts[0]), kind.codec.decode(texts[-1])
    assert kind.codec.before(least) is None
    assert kind.codec.after(greatest) is None
    assert kind.codec.before(kind.codec.after(least)) == least
    assert kind.codec.after(kind.codec.before(greatest)) == greatest


@every
def test_samples_are_texts_of_the_codec(kind: Kind) -> None:
    for text in kind.codec.samples():
        assert kind.codec.encode(kind.codec.decode(text)) == text


@pytest.mark.parametrize(
    "kind",
    [each for each in KINDS if isinstance(each.codec, HasPrefixes)],
    ids=lambda kind: kind.name,
)
@settings(max_examples=20)
@given(data=st.data())
def test_texts_begin_as_values_do(kind: Kind, data: st.DataObject) -> None:
    value = data.draw(kind.values)
    prefix = data.draw(kind.values | st.integers(0, len(value)).map(lambda end: value[:end]))
    wanted = kind.meaning(value)[: len(kind.meaning(prefix))] == kind.meaning(prefix)
    assert isinstance(kind.codec, HasPrefixes)
    assert kind.codec.encode(value).startswith(kind.codec.encode_prefix(prefix)) == wanted


def test_text_and_bytes_alone_have_beginnings() -> None:
    kinds = {type(kind.codec).__name__ for kind in KINDS if isinstance(kind.codec, HasPrefixes)}
    assert kinds == {"Text", "RawText", "Hex"}


def test_numbers_alone_measure() -> None:
    kinds = {type(kind.codec).__name__ for kind in KINDS if isinstance(kind.codec, Measured)}
    assert kinds == {"Natural", "Integer", "FixedPoint"}
