"""Followers that a relational database keeps, read through SQLAlchemy: `pip install isotone[sqlalchemy]`.

engine = sqlalchemy.create_engine("mysql+pymysql://…")
followers = RelationalFollowers(engine, follows.c.author, follows.c.reader)
feed = Feed(store, "site", followers=followers)
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from isotone.errors import UsageError

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Engine, Select

_TOGETHER: Final = 500  # authors that one statement names


class RelationalFollowers:
    """Who follows whom, by two columns of a table, or of any select (`select(…).subquery().c`).

    The columns hold texts, or anything that `str` makes a text of and its own type reads back: whole numbers,
    UUIDs. An index over author and reader, in this order, makes each page one range. `where` says which rows
    count. Rows that are there twice are one follower.
    """

    def __init__(
        self,
        engine: Engine,
        author: ColumnElement[Any],
        reader: ColumnElement[Any],
        *where: ColumnElement[bool],
    ) -> None:
        self._engine = engine
        self._author = author
        self._reader = reader
        self._where = where
        self._sql: Any = _sqlalchemy()

    def page(self, author: str, after: str | None, size: int) -> Sequence[str]:
        """The next followers in the order of the column, behind one of them. Cost: one statement."""
        rows = self._select(self._reader).where(self._author == _value(self._author, author))
        if after is not None:
            rows = rows.where(self._reader > _value(self._reader, after))
        return self._texts(rows.order_by(self._reader).limit(size))

    def count(self, author: str) -> int:
        """How many follow an author. Cost: one statement, which counts."""
        counted = self._sql.func.count(self._reader.distinct())
        rows = self._sql.select(counted).where(
            self._author == _value(self._author, author), *self._where
        )
        with self._engine.connect() as connection:
            return int(connection.execute(rows).scalar_one())

    def followed(self, reader: str, authors: Collection[str]) -> Collection[str]:
        """Those of the authors whom a reader follows. Cost: a statement for each 500 authors."""
        found: set[str] = set()
        mine = self._select(self._author).where(self._reader == _value(self._reader, reader))
        for some in _portions(authors):
            named = self._author.in_([_value(self._author, each) for each in some])
            found.update(self._texts(mine.where(named)))
        return found

    def _select(self, column: ColumnElement[Any]) -> Select[Any]:
        rows: Select[Any] = self._sql.select(column).where(*self._where).distinct()
        return rows

    def _texts(self, rows: Select[Any]) -> list[str]:
        with self._engine.connect() as connection:
            return [str(each) for each in connection.execute(rows).scalars()]


def _portions(values: Collection[str]) -> Iterator[list[str]]:
    left = iter(values)
    while some := list(islice(left, _TOGETHER)):
        yield some


def _value(column: ColumnElement[Any], text: str) -> Any:
    """A text as a value of the column."""
    kind = column.type.python_type
    return text if kind is str else kind(text)


def _sqlalchemy() -> Any:
    try:
        return importlib.import_module("sqlalchemy")
    except ModuleNotFoundError:
        raise UsageError(
            "RelationalFollowers needs SQLAlchemy: pip install isotone[sqlalchemy]"
        ) from None
