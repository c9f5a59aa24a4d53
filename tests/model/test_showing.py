"""Entities as tables: what is shown as a key is what is stored."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

import isotone
from isotone import Attr, Entity, Global, Index, Key, Number, Table, desc, field, in_order
from isotone.errors import UsageError
from isotone.model.reading.showing import table_text

shelf = Table(
    "shelf", indexes={"stock": Global("GSI1PK", "GSI1SK"), "price": Global("kind", Number("price"))}
)


class Grade(Enum):
    NEW = "new"
    USED = "used"


class Book(Entity, table=shelf):
    kind: Attr[str] = field()
    number: Attr[int] = field(max=999, alert=2)
    grade: Attr[Grade] = field()
    price: Attr[Decimal] = field()
    cover: Attr[bytes | None] = field(default=None)
    note: Attr[str | None] = field(default=None)

    primary = Key("KIND", kind).sort("BOOK", desc(number))
    stock = Index("stock", "KIND", kind).sort(in_order(grade), number)
    by_price = Index("price", kind).sort(price)


class Shelf(Entity, table=shelf):
    kind: Attr[str] = field()
    made: Attr[datetime] = field()

    primary = Key("KIND", kind).sort("SHELF")


BOOKS = [
    Book(kind="novel", number=2, grade=Grade.USED, price=Decimal("10.50"), note="torn\nslightly"),
    Book(kind="novel", number=10, grade=Grade.NEW, price=Decimal("9"), cover=b"\x00\xff"),
]


def cells(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


@pytest.mark.parametrize("key", ["primary", "stock", "by_price"])
def test_keys_are_shown_as_they_are_stored(key: str) -> None:
    pattern: Any = getattr(Book, key)
    with isotone.open(":memory:") as database:
        store = isotone.connect(database)
        store.create_tables(shelf)
        store.put_many(BOOKS)
        read = pattern.where(Book.kind == "novel")
        header, _, *rows = cells(table_text(store.all(read), (), pattern))
        names = [each.name for each in shelf.layout(read.index).attributes]
        stored = store.backend.execute("Query", read.request())["Items"]
    assert header[:2] == names
    assert [row[:2] for row in rows] == [
        [str(next(iter(item[name].values()))) for name in names] for item in stored
    ]


def test_an_attribute_that_is_a_key_is_shown_once() -> None:
    header = cells(table_text(BOOKS, (), Book.by_price))[0]
    assert header == ["kind", "price", "number", "grade", "cover", "note"]


def test_several_kinds_are_named() -> None:
    shelves = [Shelf(kind="novel", made=datetime(2026, 1, 2, tzinfo=UTC))]
    header, _, first, *_, last = cells(table_text([*BOOKS, *shelves]))
    assert header[:3] == ["PK", "SK", "_type"]
    assert first[2] == "Book"
    assert last == ["KIND#novel", "SHELF", "Shelf", "novel", "2026-01-02T00:00:00.000000Z"]


def test_columns_are_as_wide_as_their_cells_and_numbers_stand_at_the_right() -> None:
    words = [Book(kind=kind, number=1, grade=Grade.NEW, price=Decimal(1)) for kind in ("～", "ab")]
    assert table_text(words, (Book.kind, Book.number)).splitlines() == [
        "kind  number",
        "────  ──────",
        "～         1",
        "ab         1",
    ]


def test_what_disturbs_a_terminal_is_spelt_out_and_what_is_long_is_cut() -> None:
    long = Book(kind="x" * 100, number=1, grade=Grade.NEW, price=Decimal("1E-100"), note="a\tb")
    row = table_text([long], (Book.kind, Book.price, Book.note)).splitlines()[-1].split()
    assert row == ["x" * 47 + "…", "1E-100", "a\\tb"]
    assert "torn\\nslightly" in table_text(BOOKS)


def test_show_prints_to_a_file_and_says_where_there_is_nothing() -> None:
    into = io.StringIO()
    isotone.show(BOOKS, Book.number, file=into)
    isotone.show([], file=into)
    assert into.getvalue().split() == ["number", "──────", "2", "10", "(nothing)"]


def test_a_kind_without_the_key_is_refused() -> None:
    shelves = [Shelf(kind="novel", made=datetime(2026, 1, 2, tzinfo=UTC))]
    with pytest.raises(UsageError, match="Shelf has no key on index 'stock'"):
        isotone.show(shelves, by=Book.stock)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            Book.primary.where(Book.kind == "novel"),
            r"not read yet; write show\(store\.all\(query\)\)",
        ),
        (Book.primary.scan(), "not read yet"),
        (BOOKS[0], r"write show\(\[Book\(…\)\]\)"),
        (None, "None is not an entity; show takes the result"),
        ("BOOKS", "'B' is not an entity"),
        ([*BOOKS, None], "None is not an entity"),
    ],
)
def test_show_refuses_what_is_no_sequence_of_entities(wrong: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        isotone.show(wrong)


def test_what_is_wide_is_cut_to_the_same_width() -> None:
    wide = Book(kind="山" * 100, number=1, grade=Grade.NEW, price=Decimal(1))
    assert table_text([wide], (Book.kind,)).splitlines()[-1] == "山" * 23 + "…"


def test_a_notebook_shows_an_entity_and_a_page_as_tables() -> None:
    with isotone.open(":memory:") as database:
        store = isotone.connect(database)
        store.create_tables(shelf)
        store.put_many([BOOKS[0].replace(note="<b>torn</b>"), BOOKS[1]])
        page: Any = store.page(Book.primary.where(Book.kind == "novel"), size=1)
        shown = page._repr_html_()
        empty: Any = store.page(Book.primary.where(Book.kind == "atlas"))
    assert "<caption>1 result, 0.5 units; more follow</caption>" in shown
    assert shown.count("<tr>") == 2
    assert "<th>PK</th><th>SK</th>" in shown
    assert '<td style="text-align: right">10</td>' in shown
    one: Any = BOOKS[0].replace(note="<b>torn</b>")
    assert "<caption>Book</caption>" in one._repr_html_()
    assert "&lt;b&gt;torn&lt;/b&gt;" in one._repr_html_()
    assert "0 results" in empty._repr_html_()
