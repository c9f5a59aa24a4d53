"""Entities: partly read ones, bases without a table, entities that extend others, refused defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any, Literal

import pytest

import isotone
from isotone import Attr, Entity, Key, Store, Table, computed, field
from isotone.errors import UsageError

notes = Table("notes")


class Note(Entity, table=notes):
    author: Attr[str] = field()
    number: Attr[int] = field(max=999, alert=2)
    text: Attr[str] = field(default="")
    length: Attr[int] = computed(lambda note: len(note.text))

    primary = Key("AUTHOR", author).sort("NOTE", number)


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.connect() as store:
        store.create_tables(notes)
        store.put(Note(author="ann", number=1, text="hello"))
        yield store


@pytest.fixture
def part(store: Store) -> Note:
    (note,) = store.all(Note.primary.where(Note.author == "ann").select(Note.author, Note.number))
    return note


def test_a_partly_read_entity_shows_what_was_read(part: Note) -> None:
    assert repr(part) == "Note(author='ann', number=1)"
    assert part.to_dict() == {"author": "ann", "number": 1}


def test_a_partly_read_entity_is_not_copied_nor_written(store: Store, part: Note) -> None:
    with pytest.raises(UsageError, match="Note was read without its fields text, length"):
        part.replace(number=2)
    with pytest.raises(AttributeError, match="Note was read without its field 'text'"):
        store.put(part)  # in which the length is computed
    assert store.get(Note, author="ann", number=1) == Note(author="ann", number=1, text="hello")


def test_one_that_computes_nothing_is_not_written_either(store: Store) -> None:
    class Memo(Entity, table=notes):
        author: Attr[str] = field()
        text: Attr[str] = field(default="")
        primary = Key("MEMO", author).sort("MEMO")

    memo = store.put(Memo(author="ann", text="hello"))
    (part,) = store.all(Memo.primary.where(Memo.author == "ann").select(Memo.author))
    for write in (store.put, store.replace, lambda one: store.put_many([one])):
        with pytest.raises(
            UsageError, match="Memo was read without its fields text; read all of them"
        ):
            write(part)
    assert store.get(Memo, author="ann") == memo


# Bases and defaults


class Dated(Entity):
    """A base: fields, a key, a hook and a computed field for the entities derived from it."""

    author: Attr[str] = field()
    day: Attr[date] = field()
    labels: Attr[list[str]] = field(default_factory=list)
    year: Attr[int] = computed(lambda dated: dated.day.year)

    def before_put(self) -> None:
        self.labels = [*self.labels, "stored"]


papers = Table("papers")


class Letter(Dated, table=papers):
    to: Attr[str] = field()

    primary = Key("AUTHOR", Dated.author).sort("LETTER", Dated.day)


class Diary(Dated, table=papers):
    mood: Attr[str] = field(default="fine")

    primary = Key("AUTHOR", Dated.author).sort("DIARY", Dated.day)


def test_entities_share_the_fields_of_a_base_without_a_table() -> None:
    day = date(2026, 2, 1)
    with isotone.connect() as store:
        store.create_tables(papers)
        store.put(Letter(author="ann", day=day, to="bob"))
        store.put(Diary(author="ann", day=day))
        letter, diary = (store.get(kind, author="ann", day=day) for kind in (Letter, Diary))
        assert letter == Letter(author="ann", day=day, to="bob", labels=["stored"])
        assert isinstance(diary, Diary)
        assert (diary.mood, diary.year, diary.labels) == ("fine", 2026, ["stored"])
        assert store.all(Letter.primary.where(Letter.author == "ann", Dated.day == day)) == [letter]
        assert store.update(diary, Diary.mood.set("grey")).mood == "grey"


def test_an_entity_with_a_key_of_its_own_can_extend_another() -> None:
    class Postcard(Letter, table=papers):
        picture: Attr[str] = field()

        primary = Key("AUTHOR", Letter.author).sort("POSTCARD", Letter.day)

    card = Postcard(author="ann", day=date(2026, 2, 1), to="bob", picture="sea")
    with isotone.connect() as store:
        store.create_tables(papers)
        store.put(card)
        assert store.get(Postcard, author="ann", day=card.day) == card
        assert store.get(Letter, author="ann", day=card.day) is None


def test_a_base_is_not_an_entity() -> None:
    with pytest.raises(UsageError, match=r"Dated has no table, .* class …\(Dated, table=…\)"):
        Dated(author="ann", day=date(2026, 2, 1))


@pytest.mark.parametrize(
    ("default", "factory"),
    [
        ([], "default_factory=list"),
        ({}, "default_factory=dict"),
        (set(), "default_factory=set"),
        (["a"], "default_factory=lambda: ['a']"),
        (([],), "default_factory=lambda: ([],)"),
        (bytearray(b"a"), "default_factory=lambda: bytearray(b'a')"),
    ],
)
def test_a_default_that_entities_would_share_is_refused(default: object, factory: str) -> None:
    with pytest.raises(UsageError, match=re.escape(factory)):

        class Base(Entity):
            values: Attr[Any] = field(default=default)

    with pytest.raises(UsageError, match="field 'values' has the mutable default"):

        class Stored(Entity, table=Table("stored")):
            key: Attr[str] = field()
            values: Attr[Any] = field(default=default)

            primary = Key("KEY", key).sort("STORED")


def test_two_orders_of_the_same_values_are_two_types() -> None:
    assert Attr[Literal["a", "b"]].__args__[0].__args__ == ("a", "b")  # type: ignore[attr-defined]
    assert Attr[Literal["b", "a"]].__args__[0].__args__ == ("b", "a")  # type: ignore[attr-defined]
