"""What is no query is refused with what to write instead, where no type checker has seen it before."""

from __future__ import annotations

from typing import Any

import pytest

import isotone
from isotone import Attr, Entity, Key, Table, field
from isotone.errors import UsageError

shelf = Table("shelf")


class Book(Entity, table=shelf):
    number: Attr[int] = field(max=9)

    primary = Key("BOOKS").sort("BOOK", number)


@pytest.mark.parametrize(
    "wrong", [Book, Book.primary, Book.number, Book.number == 3, "BOOKS", None]
)
def test_what_is_no_query(wrong: Any) -> None:
    with isotone.connect() as store:
        calls = [
            store.all,
            store.first,
            store.count,
            store.load,
            lambda read: store.page(read, size=1),
            lambda read: list(store.iterate(read)),
        ]
        for call in calls:
            with pytest.raises(UsageError, match=r"write a query, such as Order\.primary\.where\("):
                call(wrong)


def test_what_is_no_query_of_a_family() -> None:
    query: Any = Book.primary.where()
    with (
        isotone.connect() as store,
        pytest.raises(UsageError, match=r"with_children\(Child\.primary\)\.where\("),
    ):
        store.family(query)
