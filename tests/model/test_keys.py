"""What cannot be in a key is refused with the name of its field; a table that is not there, with its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Any

import pytest

import isotone
from isotone import Attr, Entity, Key, Store, Table, field
from isotone.errors import OutOfRange, ResourceNotFoundException, UsageError

shelf = Table("shelf")


class Grade(Enum):
    NEW = "new"


class Book(Entity, table=shelf):
    grade: Attr[Grade] = field()
    number: Attr[int] = field(max=999, alert=2)
    bought: Attr[date] = field()

    primary = Key("GRADE", grade).sort("BOOK", number, bought)


KEY: dict[str, Any] = {"grade": Grade.NEW, "number": 1, "bought": date(2026, 1, 1)}


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"grade": "new"}, UsageError, "field 'grade': 'new' is not a member of Grade"),
        ({"number": 1000}, OutOfRange, "field 'number': 1000 does not fit"),
        ({"number": "1"}, UsageError, "field 'number': '1' is a str"),
        ({"bought": "2026-01-01"}, UsageError, "field 'bought': '2026-01-01' is a str"),
    ],
)
def test_the_field_is_named(wrong: dict[str, Any], kind: type[Exception], message: str) -> None:
    with isotone.connect() as store:
        store.create_tables(shelf)
        with pytest.raises(kind, match=message):
            store.get(Book, **{**KEY, **wrong})


@pytest.mark.parametrize(
    ("call", "note"),
    [
        (lambda store: store.put(Book(**KEY)), "table 'shelf' or its index does not exist"),
        (lambda store: store.all(Book.primary.scan()), "table 'shelf' or its index does not exist"),
        (lambda store: store.put_many([Book(**KEY)]), "table 'shelf' or its index does not exist"),
    ],
)
def test_a_table_that_is_not_there_is_named(call: Callable[[Store], Any], note: str) -> None:
    with isotone.connect() as store:
        with pytest.raises(ResourceNotFoundException) as raised:
            call(store)
        text = str(raised.value)
        assert text.startswith(f"Requested resource not found ({note}")
        assert "store.create_tables(" in text
