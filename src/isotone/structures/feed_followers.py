"""Followers of a feed's authors: in the feed's own table, or in another source.

    FEED#site#AUTHOR#ann         AUTHOR                         the number of her followers
    FEED#site#FOLLOWING#bob      AUTHOR#ann                     he follows her …
    FEED#site#FOLLOWERS#ann      READER#bob                     … and is one of her followers

Followers in a relational database are read through SQLAlchemy (`pip install isotone[sqlalchemy]`):

    engine = sqlalchemy.create_engine("mysql+pymysql://…")
    followers = RelationalFollowers(engine, follows.c.author, follows.c.reader)
    feed = Feed(store, "site", followers=followers)
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from isotone.errors import ConditionFailed, ConnectionFailed, TransactionFailed, UsageError
from isotone.model import Attr, Calls, Condition, Entity, Key, Steps, Transaction, field

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Engine, Select

_MAX_NAMED: Final = 500  # authors in one statement


class FeedAuthor(Entity):
    """The exact number of an author's followers."""

    feed: Attr[str] = field()
    author: Attr[str] = field()
    followers: Attr[int] = field(default=0)

    primary: ClassVar[Key] = Key("FEED", feed, "AUTHOR", author).sort("AUTHOR")


class FeedFollow(Entity):
    """A reader follows an author, seen from the reader."""

    feed: Attr[str] = field()
    reader: Attr[str] = field()
    author: Attr[str] = field()

    primary: ClassVar[Key] = Key("FEED", feed, "FOLLOWING", reader).sort("AUTHOR", author)


class FeedFollower(Entity):
    """A reader follows an author, seen from the author."""

    feed: Attr[str] = field()
    author: Attr[str] = field()
    reader: Attr[str] = field()

    primary: ClassVar[Key] = Key("FEED", feed, "FOLLOWERS", author).sort("READER", reader)


class Followers(Protocol):
    """A source of followers outside of the feed's table.

    Over an `AsyncStore` its methods are called in the event loop, so they must be fast.
    """

    def page(self, author: str, after: str | None, size: int) -> Sequence[str]:
        """The next followers of an author after `after`, in a stable order; up to `size`.

        A short page is not the last one; an empty page ends.
        """
        ...

    def count(self, author: str) -> int:
        """How many follow an author."""
        ...

    def followed(self, reader: str, authors: Collection[str]) -> Collection[str]:
        """The authors among these that a reader follows."""
        ...


class OutsideFollowers:
    """A `Followers` source as steps."""

    def __init__(self, source: Followers) -> None:
        self._source = source

    def page(self, author: str, after: str | None, size: int) -> Steps[Sequence[str]]:
        yield from ()
        readers: list[str] = []
        while more := self._source.page(author, after, size - len(readers)):
            readers += more
            after = more[-1]
            if len(readers) >= size:
                break
        return readers

    def count(self, author: str) -> Steps[int]:
        yield from ()
        return self._source.count(author)

    def followed(self, reader: str, authors: Collection[str]) -> Steps[Collection[str]]:
        yield from ()
        return self._source.followed(reader, authors) if authors else ()


@dataclass(frozen=True, slots=True)
class TableFollowers:
    """Followers in the feed's table: an item for each side, so that both can be listed, and a count."""

    calls: Calls
    feed: str
    authors: type[FeedAuthor]
    follows: type[FeedFollow]
    followers: type[FeedFollower]

    def page(self, author: str, after: str | None, size: int) -> Steps[Sequence[str]]:
        kind = FeedFollower
        rest: list[Condition] = [] if after is None else [kind.reader > after]
        query = self.followers.primary.where(kind.feed == self.feed, kind.author == author, *rest)
        found = yield from self.calls.all(query.consistent().limit(size))
        return [follower.reader for follower in found]

    def following(self, reader: str, after: str | None, size: int) -> Steps[Sequence[str]]:
        """The next authors whom a reader follows, after `after`."""
        kind = FeedFollow
        rest: list[Condition] = [] if after is None else [kind.author > after]
        query = self.follows.primary.where(kind.feed == self.feed, kind.reader == reader, *rest)
        found = yield from self.calls.all(query.consistent().limit(size))
        return [follow.author for follow in found]

    def count(self, author: str) -> Steps[int]:
        key = {"feed": self.feed, "author": author}
        known = yield from self.calls.get(self.authors, consistent=True, **key)
        return 0 if known is None else known.followers

    def followed(self, reader: str, authors: Collection[str]) -> Steps[Collection[str]]:
        keys = [{"feed": self.feed, "reader": reader, "author": author} for author in authors]
        found = yield from self.calls.get_many(self.follows, keys, consistent=True)
        return {follow.author for follow in found if follow is not None}

    def change(self, reader: str, author: str, *, follows: bool) -> Steps[bool]:
        """Write or delete both sides, and update the count; returns whether anything changed."""
        follow = self.follows(feed=self.feed, reader=reader, author=author)
        follower = self.followers(feed=self.feed, author=author, reader=reader)
        tx = self.calls.transaction()
        if follows:
            tx.create(follow)
            tx.put(follower)
        else:
            tx.delete(follow, when=FeedFollow.reader.exists())
            tx.delete(follower)
        count = FeedAuthor.followers.add(1 if follows else -1)
        tx.upsert(self.authors, count, feed=self.feed, author=author)
        return (yield from try_commit(tx))


Following = TableFollowers | OutsideFollowers


def try_commit(tx: Transaction) -> Steps[bool]:
    """Commit; returns False if a condition was false."""
    try:
        yield from tx.commit()
    except TransactionFailed as error:
        if not all(isinstance(each.reason, ConditionFailed) for each in error.failures):
            raise
        return False
    return True


class RelationalFollowers:
    """Followers in two columns of a relational table, or of any select (`select(…).subquery().c`).

    The columns contain texts, or types that can be converted from text: integers, UUIDs. An index over
    author and reader, in this order, makes each page one range. `where` selects the rows that count.
    Duplicate rows count as one follower. Raises `ConnectionFailed` if the database does not answer.
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
                "RelationalFollowers needs SQLAlchemy: pip install 'isotone[sqlalchemy]'"
            ) from None
        self._engine = engine
        self._author = author
        self._reader = reader
        self._where = where

    def page(self, author: str, after: str | None, size: int) -> Sequence[str]:
        """The next followers after `after`, in the order of the column. Cost: one statement."""
        where = [self._author == _value(self._author, author)]
        if after is not None:
            where.append(self._reader > _value(self._reader, after))
        rows = self._select(self._reader, *where).order_by(self._reader).limit(size)
        return [str(reader) for reader in self._all(rows)]

    def count(self, author: str) -> int:
        """The number of an author's followers. Cost: one COUNT statement."""
        readers = self._sql.func.count(self._reader.distinct())
        (number,) = self._all(self._select(readers, self._author == _value(self._author, author)))
        return int(number)

    def followed(self, reader: str, authors: Collection[str]) -> Collection[str]:
        """The authors among these that a reader follows. Cost: a statement for each 500 authors."""
        wanted = [_value(self._author, author) for author in authors]
        followed: set[str] = set()
        for start in range(0, len(wanted), _MAX_NAMED):
            named = self._author.in_(wanted[start : start + _MAX_NAMED])
            mine = self._reader == _value(self._reader, reader)
            followed.update(map(str, self._all(self._select(self._author, mine, named))))
        return followed

    def _select(self, column: ColumnElement[Any], *where: ColumnElement[bool]) -> Select[Any]:
        rows: Select[Any] = self._sql.select(column).where(*where, *self._where).distinct()
        return rows

    def _all(self, rows: Select[Any]) -> Sequence[Any]:
        errors = self._sql.exc
        try:
            with self._engine.connect() as connection:
                return connection.execute(rows).scalars().all()
        except (errors.OperationalError, errors.InterfaceError, errors.TimeoutError) as error:
            # Transient, so a worker retries without counting the attempt: the post did not cause it.
            raise ConnectionFailed(f"the database of followers did not answer: {error}") from error


def _value(column: ColumnElement[Any], text: str) -> Any:
    """A text as a value of the column."""
    kind = column.type.python_type
    return text if kind is str else kind(text)
