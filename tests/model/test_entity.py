"""Entities of which only some fields were read."""

from __future__ import annotations

from collections.abc import Iterator

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


def test_it_shows_what_was_read(part: Note) -> None:
    assert repr(part) == "Note(author='ann', number=1)"
    assert part.to_dict() == {"author": "ann", "number": 1}


def test_it_is_not_copied_nor_written(store: Store, part: Note) -> None:
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
            UsageError, match="Memo was read without its fields text; read it whole"
        ):
            write(part)
    assert store.get(Memo, author="ann") == memo
