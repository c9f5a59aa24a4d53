"""Followers that a relational database keeps, read through SQLAlchemy: `pip install isotone[sqlalchemy]`.

engine = sqlalchemy.create_engine("mysql+pymysql://…")
followers = RelationalFollowers(engine, follows.c.author, follows.c.reader)
feed = Feed(store, "site", followers=followers)
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from isotone.errors import ConnectionFailed, UsageError

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Engine, Select

_TOGETHER: Final = 500  # authors that one statement names


class RelationalFollowers:
    """Who follows whom, by two columns of a table, or of any select (`select(…).subquery().c`).

    The columns hold texts, or anything that `str` makes a text of and its own type reads back: whole numbers,
    UUIDs. An index over author and reader, in this order, makes each page one range. `where` says which rows
    count. Rows that are there twice are one follower. Raises `ConnectionFailed` where the database does not
    answer.
    """

    def __init__(
        self,
        engine: Engine,
        author: ColumnElement[Any],
        reader: ColumnElement[Any],
        *where: ColumnElement[bool],
    ) -> None:
        try:
            self._sql: Any = importlib.import_module("sqlalchemy")
        except ModuleNotFoundError:
            raise UsageError(
                "RelationalFollowers needs SQLAlchemy: pip install isotone[sqlalchemy]"
            ) from None
        self._engine = engine
        self._author = author
        self._reader = reader
        self._where = where

    def page(self, author: str, after: str | None, size: int) -> Sequence[str]:
        """The next followers in the order of the column, behind one of them. Cost: one statement."""
        theirs = [self._author == _value(self._author, author)]
        if after is not None:
            theirs.append(self._reader > _value(self._reader, after))
        rows = self._select(self._reader, *theirs).order_by(self._reader).limit(size)
        return [str(each) for each in self._all(rows)]

    def count(self, author: str) -> int:
        """How many follow an author. Cost: one statement, which counts."""
        readers = self._sql.func.count(self._reader.distinct())
        (number,) = self._all(self._select(readers, self._author == _value(self._author, author)))
        return int(number)

    def followed(self, reader: str, authors: Collection[str]) -> Collection[str]:
        """Those of the authors whom a reader follows. Cost: a statement for each 500 authors."""
        wanted = [_value(self._author, each) for each in authors]
        found: set[str] = set()
        for start in range(0, len(wanted), _TOGETHER):
            named = self._author.in_(wanted[start : start + _TOGETHER])
            mine = self._reader == _value(self._reader, reader)
            found.update(str(each) for each in self._all(self._select(self._author, mine, named)))
        return found

    def _select(self, column: ColumnElement[Any], *where: ColumnElement[bool]) -> Select[Any]:
        rows: Select[Any] = self._sql.select(column).where(*where, *self._where).distinct()
        return rows

    def _all(self, rows: Select[Any]) -> Sequence[Any]:
        errors = self._sql.exc
        try:
            with self._engine.connect() as connection:
                return connection.execute(rows).scalars().all()
        except (errors.OperationalError, errors.InterfaceError, errors.TimeoutError) as error:
            # A worker tries again until it is there, however long: the post is not to blame.
            raise ConnectionFailed(f"the database of followers did not answer: {error}") from error


def _value(column: ColumnElement[Any], text: str) -> Any:
    """A text as a value of the column."""
    kind = column.type.python_type
    return text if kind is str else kind(text)
