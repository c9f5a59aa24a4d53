"""Who follows whom: in the feed's own table, or wherever a site keeps it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from isotone.model import Steps
from isotone.structures.feed.entities import (
    FeedAuthor,
    FeedFollow,
    FeedFollower,
    FeedItems,
    committed,
)


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

    def __init__(self, items: FeedItems) -> None:
        self._items = items
        self._calls = items.calls

    def page(self, author: str, after: str | None, size: int) -> Steps[Sequence[str]]:
        behind = [] if after is None else [FeedFollower.reader > after]
        query = self._items.followers.primary.where(
            FeedFollower.feed == self._items.feed, FeedFollower.author == author, *behind
        )
        found = yield from self._calls.all(query.consistent().limit(size))
        return [each.reader for each in found]

    def following(self, reader: str, after: str | None, size: int) -> Steps[Sequence[str]]:
        """The same from the other side: those whom a reader follows."""
        behind = [] if after is None else [FeedFollow.author > after]
        query = self._items.follows.primary.where(
            FeedFollow.feed == self._items.feed, FeedFollow.reader == reader, *behind
        )
        found = yield from self._calls.all(query.consistent().limit(size))
        return [each.author for each in found]

    def count(self, author: str) -> Steps[int]:
        key = {"feed": self._items.feed, "author": author}
        found = yield from self._calls.get(self._items.authors, consistent=True, **key)
        return 0 if found is None else found.followers

    def followed(self, reader: str, authors: Collection[str]) -> Steps[Collection[str]]:
        keys = [{"feed": self._items.feed, "reader": reader, "author": each} for each in authors]
        found = yield from self._calls.get_many(self._items.follows, keys, consistent=True)
        return {each.author for each in found if each is not None}

    def change(self, reader: str, author: str, *, follows: bool) -> Steps[bool]:
        """Write or delete both sides, and count; False where it is so already."""
        feed = self._items.feed
        follow = self._items.follows(feed=feed, reader=reader, author=author)
        follower = self._items.followers(feed=feed, author=author, reader=reader)
        together = self._calls.transaction()
        if follows:
            together.create(follow)
            together.put(follower)
        else:
            together.delete(follow, when=FeedFollow.reader.exists())
            together.delete(follower)
        count = FeedAuthor.followers.add(1 if follows else -1)
        together.upsert(self._items.authors, count, feed=feed, author=author)
        return (yield from committed(together))


Following = TableFollowers | OutsideFollowers
"""Who follows whom, as steps; what their methods do is told by `Followers`."""
