"""Who follows whom: in the feed's own table, or wherever a site keeps it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from isotone.errors import AlreadyExists, ConditionFailed, TransactionFailed
from isotone.model.calls import Calls
from isotone.model.steps import Steps
from isotone.structures.feed.entities import FeedAuthor, FeedFollow, FeedFollower, Kinds


class Followers(Protocol):
    """A source of followers outside of the feed's table.

    Over an `AsyncStore` its methods are called in the event loop, so they had better be fast.
    """

    def page(self, author: str, after: str | None, size: int) -> Sequence[str]:
        """The next followers of an author in an order that stays, behind one of them; up to `size`.

        Fewer may come before the end; none come after it.
        """
        ...

    def count(self, author: str) -> int:
        """How many follow an author."""
        ...

    def followed(self, reader: str, authors: Collection[str]) -> Collection[str]:
        """Those of the authors whom a reader follows."""
        ...


class Following(Protocol):
    """The same as steps: what the feed asks."""

    def page(self, author: str, after: str | None, size: int) -> Steps[Sequence[str]]: ...
    def count(self, author: str) -> Steps[int]: ...
    def followed(self, reader: str, authors: Collection[str]) -> Steps[Collection[str]]: ...


class OutsideFollowers:
    """A source outside of the table, whose answers need no requests to the store."""

    def __init__(self, source: Followers) -> None:
        self._source = source

    def page(self, author: str, after: str | None, size: int) -> Steps[Sequence[str]]:
        yield from ()
        found: list[str] = []
        while more := self._source.page(author, after, size - len(found)):
            found += more
            after = more[-1]
            if len(found) >= size:
                break
        return found

    def count(self, author: str) -> Steps[int]:
        yield from ()
        return self._source.count(author)

    def followed(self, reader: str, authors: Collection[str]) -> Steps[Collection[str]]:
        yield from ()
        return self._source.followed(reader, authors) if authors else ()


class TableFollowers:
    """Followers in the feed's table: two items for each, so that both sides are lists, and a count."""

    def __init__(self, calls: Calls, feed: str, kinds: Kinds) -> None:
        self._calls = calls
        self._feed = feed
        self._follows = kinds.follows
        self._followers = kinds.followers
        self._authors = kinds.authors

    def page(self, author: str, after: str | None, size: int) -> Steps[Sequence[str]]:
        """Cost: a consistent query of `size` small items."""
        behind = [] if after is None else [FeedFollower.reader > after]
        query = self._followers.primary.where(
            FeedFollower.feed == self._feed, FeedFollower.author == author, *behind
        )
        found = yield from self._calls.all(query.consistent().limit(size))
        return [each.reader for each in found]

    def count(self, author: str) -> Steps[int]:
        """Cost: a consistent read."""
        found = yield from self._calls.get(
            self._authors, consistent=True, feed=self._feed, author=author
        )
        return 0 if found is None else found.followers

    def followed(self, reader: str, authors: Collection[str]) -> Steps[Collection[str]]:
        """Cost: a consistent read for each author."""
        keys = [{"feed": self._feed, "reader": reader, "author": author} for author in authors]
        found = yield from self._calls.get_many(self._follows, keys, consistent=True)
        return {each.author for each in found if each is not None}

    # Both sides

    def follow(self, reader: str, author: str) -> Steps[bool]:
        """Write both sides and count; False where it is so already. Cost: a transaction of 3 writes."""
        together = self._calls.transaction()
        together.create(self._follows(feed=self._feed, reader=reader, author=author))
        together.put(self._followers(feed=self._feed, author=author, reader=reader))
        count = FeedAuthor.followers.add(1)
        together.upsert(self._authors, count, feed=self._feed, author=author)
        try:
            yield from together.commit()
        except TransactionFailed as error:
            if not isinstance(error.failures.get(0), AlreadyExists):
                raise
            return False
        return True

    def unfollow(self, reader: str, author: str) -> Steps[bool]:
        """Delete both sides and count; False where it is so already. Cost: a transaction of 3 writes."""
        key: dict[str, Any] = {"feed": self._feed, "reader": reader, "author": author}
        together = self._calls.transaction()
        together.delete(self._follows, when=FeedFollow.reader.exists(), **key)
        together.delete(self._followers, **key)
        count = FeedAuthor.followers.add(-1)
        together.upsert(self._authors, count, feed=self._feed, author=author)
        try:
            yield from together.commit()
        except TransactionFailed as error:
            if not isinstance(error.failures.get(0), ConditionFailed):
                raise
            return False
        return True

    def following(self, reader: str, after: str | None, size: int) -> Steps[Sequence[str]]:
        """Those whom a reader follows. Cost: a consistent query of `size` small items."""
        behind = [] if after is None else [FeedFollow.author > after]
        query = self._follows.primary.where(
            FeedFollow.feed == self._feed, FeedFollow.reader == reader, *behind
        )
        found = yield from self._calls.all(query.consistent().limit(size))
        return [each.author for each in found]
