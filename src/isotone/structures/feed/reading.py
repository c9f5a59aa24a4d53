"""How a timeline is read: a reader's own, merged with the channels of those whom very many follow.

All are partitions of entries in one order: by tick, then by author. So one entry, the last that was read, is
the place in all of them, and the cursor stays good whatever is posted meanwhile. What an entry names is
looked up: a post that was deleted, or whose author is not followed any more, is not shown, whoever wrote the
entry and when.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple, overload

from isotone.errors import Contended, TransactionFailed
from isotone.model.calls import Calls
from isotone.model.reading.reading import Page
from isotone.model.steps import Steps
from isotone.structures.feed.entities import (
    FeedChannel,
    FeedEntry,
    FeedFollow,
    FeedPost,
    Kinds,
    Owner,
    PostId,
)
from isotone.structures.feed.followers import Following, TableFollowers

_ROUNDS: Final = 10  # of one read, after which a page may be short
_TOGETHER: Final = 99  # deletes of one transaction, besides its check
_PAIRS: Final = 50  # of a delete and a check in one transaction


@dataclass(frozen=True, slots=True)
class FeedPage(Sequence[FeedPost]):
    """Some posts, the newest first.

    `cursor` goes on with older ones, and is None where there are none. `newest` is the mark of the newest
    one of them, from which `read_newer` goes on.
    """

    items: list[FeedPost]
    cursor: str | None
    newest: str | None

    @overload
    def __getitem__(self, place: int) -> FeedPost: ...
    @overload
    def __getitem__(self, place: slice) -> list[FeedPost]: ...
    def __getitem__(self, place: int | slice) -> FeedPost | list[FeedPost]:
        return self.items[place]

    def __iter__(self) -> Iterator[FeedPost]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class _Source(NamedTuple):
    """A partition of entries."""

    of: Owner
    owner: str


class FeedReading:
    """The steps that read timelines."""

    def __init__(
        self, calls: Calls, feed: str, kinds: Kinds, following: Following, *, hide_unfollowed: bool
    ) -> None:
        self._calls = calls
        self._feed = feed
        self._kinds = kinds
        self._following = following
        self._hide_unfollowed = hide_unfollowed

    # Pages

    def older(self, reader: str, size: int, cursor: str | None) -> Steps[FeedPage]:
        """A page behind a cursor, or the newest one."""
        behind = None if cursor is None else self._opened(cursor, reader)
        found, last, more = yield from self._collect(reader, size, behind, newer=False)
        newest = self._sealed(PostId.of(found[0]), reader) if found else None
        return FeedPage(found, self._sealed(last, reader) if more else None, newest)

    def newer(self, reader: str, size: int, mark: str | None) -> Steps[FeedPage]:
        """The page that follows a mark towards now; its posts are the newest first, too."""
        behind = None if mark is None else self._opened(mark, reader)
        found, last, _ = yield from self._collect(reader, size, behind, newer=True)
        return FeedPage(found[::-1], None, None if last is None else self._sealed(last, reader))

    def _collect(
        self, reader: str, size: int, behind: PostId | None, *, newer: bool
    ) -> Steps[tuple[list[FeedPost], PostId | None, bool]]:
        """Posts that are shown, the last place that was read, and whether more follows."""
        sources = yield from self._sources(reader)
        found: list[FeedPost] = []
        more = True
        for _ in range(_ROUNDS):
            entries, more = yield from self._merged(sources, behind, size - len(found), newer=newer)
            found += yield from self._shown(reader, entries)
            behind = entries[-1].post if entries else behind
            if not more or len(found) == size:
                break
        return found, behind, more

    # Entries

    def _sources(self, reader: str) -> Steps[list[_Source]]:
        """The reader's own timeline, and the channels of those who are followed."""
        kind = self._kinds.channels
        every = yield from self._calls.all(
            kind.primary.where(FeedChannel.feed == self._feed).consistent()
        )
        authors = [each.author for each in every if each.author != reader]
        followed = yield from self._following.followed(reader, authors)
        return [_Source("READER", reader), *(_Source("CHANNEL", each) for each in sorted(followed))]

    def _merged(
        self, sources: Sequence[_Source], behind: PostId | None, size: int, *, newer: bool
    ) -> Steps[tuple[list[FeedEntry], bool]]:
        """The first entries behind a place, each post once, and whether more follow."""
        pages: dict[_Source, Page[FeedEntry]] = {}
        for source in sources:
            pages[source] = yield from self._page(source, behind, size, newer=newer)
        merged = heapq.merge(*pages.values(), key=_order, reverse=newer)
        once = list({entry.post: entry for entry in merged}.values())
        return once[:size], len(once) > size or any(
            page.cursor is not None for page in pages.values()
        )

    def _page(
        self, source: _Source, behind: PostId | None, size: int, *, newer: bool
    ) -> Steps[Page[FeedEntry]]:
        query = self._kinds.entries.primary.where(
            FeedEntry.feed == self._feed, FeedEntry.of == source.of, FeedEntry.owner == source.owner
        ).consistent()
        asked = query.reversed() if newer else query
        cursor = None
        if behind is not None:
            place = {"feed": self._feed, **source._asdict(), **behind._asdict()}
            cursor = self._calls.cursor_behind(asked, **place)
        return (yield from self._calls.page(asked, size=size, cursor=cursor))

    # Posts

    def _shown(self, reader: str, entries: Sequence[FeedEntry]) -> Steps[list[FeedPost]]:
        """The posts of entries, without those that are not for the reader any more."""
        keys = [{"feed": self._feed, **each.post._asdict()} for each in entries]
        posts = yield from self._calls.get_many(self._kinds.posts, keys, consistent=True)
        stale = [entry for entry, post in zip(entries, posts, strict=True) if post is None]
        yield from self._sweep(stale)
        found = [post for post in posts if post is not None]
        if not self._hide_unfollowed:
            return found
        authors = {each.author for each in found} - {reader}
        followed = {reader, *(yield from self._following.followed(reader, sorted(authors)))}
        for author in sorted(authors - followed):
            yield from self._forget(reader, author, entries)
        return [each for each in found if each.author in followed]

    def _sweep(self, stale: Sequence[FeedEntry]) -> Steps[None]:
        """Delete the entries of posts that are gone, unless one is there after all.

        A transaction's writes do not appear at one moment: an entry may be seen just before its post.
        """
        for start in range(0, len(stale), _PAIRS):
            together = self._calls.transaction()
            for each in stale[start : start + _PAIRS]:
                post = {"feed": self._feed, **each.post._asdict()}
                together.check(self._kinds.posts, FeedPost.author.missing(), **post)
                together.delete(each)
            with suppress(TransactionFailed, Contended):
                yield from together.commit()

    def _forget(self, reader: str, author: str, entries: Sequence[FeedEntry]) -> Steps[None]:
        """Delete the entries of an author who is not followed, unless that has changed meanwhile."""
        if not isinstance(self._following, TableFollowers):
            return  # whether they are followed cannot be checked in one transaction
        theirs = [each for each in entries if (each.author, each.of) == (author, "READER")]
        for start in range(0, len(theirs), _TOGETHER):
            together = self._calls.transaction()
            follow = {"feed": self._feed, "reader": reader, "author": author}
            together.check(self._kinds.follows, FeedFollow.reader.missing(), **follow)
            for each in theirs[start : start + _TOGETHER]:
                together.delete(each)
            with suppress(TransactionFailed, Contended):
                yield from together.commit()

    # Cursors

    def _sealed(self, place: PostId | None, reader: str) -> str:
        return self._calls.seal(place, feed=self._feed, reader=reader)

    def _opened(self, cursor: str, reader: str) -> PostId | None:
        state = self._calls.unseal(cursor, feed=self._feed, reader=reader)
        return None if state is None else PostId(*state)


def _order(entry: FeedEntry) -> tuple[int, bytes]:
    """As the keys have it: the newest first, and then by the author's bytes."""
    return -entry.tick, entry.author.encode()
