"""The items of a feed, and how a timeline is read: from its entries, and from authors with many followers.

    FEED#site#POSTS#ann          POST#998199999…                a post, the newest first
    FEED#site#CHANNELS           CHANNEL#eve                    her posts are read from her channel

and in the table of timelines:

    FEED#site#READER#bob         ENTRY#998199999…#ann           her post, in his timeline
    FEED#site#CHANNEL#eve        ENTRY#998199999…#eve           her post, for all her followers
    FEED#site#FANOUT#ann         POST#001800000…                the position of a long fan-out
    FEED#site#TOKEN#ann#form-7   TOKEN                          the post that was made with this token

Times are ticks, tenths of a microsecond. Keys store MAX_TICK − tick, so the newest sorts first.

A timeline is the reader's own entries, merged with the channels of followed authors with very many
followers. All are partitions of entries in the same order: by tick, then by author. So the last entry that was
read is a position in all of them, and a cursor stays valid whatever is posted meanwhile. Entries refer to posts,
which are then read. Deleted posts, and posts of authors whom the reader no longer follows, are not shown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final, Literal, NamedTuple, overload

from isotone.errors import Contended, TransactionFailed, UsageError
from isotone.model import (
    Attr,
    Calls,
    Condition,
    Entity,
    EventKind,
    Key,
    Query,
    Steps,
    desc,
    expires,
    field,
)
from isotone.structures.feed_followers import FeedFollow, Following, TableFollowers
from isotone.structures.sharding import MergeOrder, Stream, merged

TICKS: Final = 10_000_000
"""Ticks in a second."""
MAX_TICK: Final = 10**19 - 1
"""The last tick of 19 digits, in the year 33658."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RETENTION: Final = timedelta(days=2)
"""How long tokens and saved positions are kept. Stream records are kept for one day."""
_MAX_QUERIES: Final = 10  # queries of one read, after which a page may be short
_MAX_SHOWN: Final = 100  # posts that a mark remembers
_MAX_SWEPT: Final = 50  # entries in one transaction, with a delete and a check for each

Owner = Literal["READER", "CHANNEL"]
Position = tuple[str, ...]
"""A post's position in every timeline: texts that sort like the keys of its entries."""


class FeedPost(Entity):
    """A post. `spread` tells how it is delivered: as an entry for each reader, or through the channel."""

    feed: Attr[str] = field()
    author: Attr[str] = field()
    tick: Attr[int] = field(max=MAX_TICK)
    content: Attr[str] = field()
    data: Attr[dict[str, Any] | None] = field(default=None)
    spread: Attr[Literal["write", "read"]] = field(default="write")
    edited_at: Attr[datetime | None] = field(default=None)

    primary: ClassVar[Key] = Key("FEED", feed, "POSTS", author).sort("POST", desc(tick))

    @property
    def id(self) -> str:
        """The post's id, for example for URLs."""
        return f"{self.author}/{self.tick}"

    @property
    def at(self) -> datetime:
        """When it was posted, to the microsecond."""
        return _EPOCH + timedelta(microseconds=self.tick // 10)


class FeedChannel(Entity):
    """An author with posts in a channel."""

    feed: Attr[str] = field()
    author: Attr[str] = field()

    primary: ClassVar[Key] = Key("FEED", feed, "CHANNELS").sort("CHANNEL", author)


class FeedEntry(Entity):
    """A post in the timeline of a reader, or in the channel of an author."""

    feed: Attr[str] = field()
    of: Attr[Owner] = field()
    owner: Attr[str] = field()
    tick: Attr[int] = field(max=MAX_TICK)
    author: Attr[str] = field()

    primary: ClassVar[Key] = Key("FEED", feed, of, owner).sort("ENTRY", desc(tick), author)


class FeedFanOut(Entity):
    """The position of a fan-out: it has written, or deleted, the entries of all followers up to `after`."""

    feed: Attr[str] = field()
    author: Attr[str] = field()
    tick: Attr[int] = field(max=MAX_TICK)
    after: Attr[str] = field()
    change: Attr[EventKind] = field(default="inserted")
    expires: Attr[datetime | None] = expires()

    primary: ClassVar[Key] = Key("FEED", feed, "FANOUT", author).sort("POST", tick)


class FeedToken(Entity):
    """The tick of the post that an author made with a token."""

    feed: Attr[str] = field()
    author: Attr[str] = field()
    token: Attr[str] = field()
    tick: Attr[int] = field()
    expires: Attr[datetime | None] = expires()

    primary: ClassVar[Key] = Key("FEED", feed, "TOKEN", author, token).sort("TOKEN")


@dataclass(frozen=True, slots=True)
class FeedPlan:
    """The entities of a feed in its tables, and their keys."""

    calls: Calls
    feed: str
    posts: type[FeedPost]
    channels: type[FeedChannel]
    entries: type[FeedEntry]
    fan_outs: type[FeedFanOut]
    tokens: type[FeedToken]

    def key(self, post: FeedPost | FeedEntry | str) -> dict[str, Any]:
        """The key of a post, from the post, one of its entries, or its id."""
        if not isinstance(post, str):
            return {"feed": self.feed, "author": post.author, "tick": post.tick}
        parts = re.fullmatch("(.*)/([0-9]{1,19})", post, re.DOTALL)
        if parts is None:
            raise UsageError(f"{post!r} is not the id of a post; give a FeedPost, or its id")
        return {"feed": self.feed, "author": parts[1], "tick": int(parts[2])}

    def get(self, post: FeedPost | str) -> Steps[FeedPost | None]:
        """The current state of a post. Cost: a consistent read."""
        return self.calls.get(self.posts, consistent=True, **self.key(post))

    def posts_of(self, author: str, *further: Condition) -> Query[FeedPost]:
        """An author's posts, the newest first."""
        where = FeedPost.feed == self.feed, FeedPost.author == author, *further
        return self.posts.primary.where(*where).consistent()

    def entry(self, of: Owner, owner: str, post: FeedPost) -> FeedEntry:
        """The entry of a post in a timeline, or in a channel."""
        return self.entries(of=of, owner=owner, **self.key(post))

    def expiry(self) -> datetime:
        """When tokens and positions that are written now expire."""
        return datetime.fromtimestamp(self.calls.clock.now(), UTC) + _RETENTION


@dataclass(frozen=True, slots=True)
class FeedPage(Sequence[FeedPost]):
    """A page of posts, the newest first.

    `cursor` continues with older posts; it is None at the end. `newest` is the mark for `read_newer`.
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


class _Orphan(NamedTuple):
    """An entry that is not shown, and the missing item: its post, or the follow."""

    entry: FeedEntry
    lacks: type[FeedPost | FeedFollow]
    key: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timelines:
    """The steps that read timelines."""

    plan: FeedPlan
    following: Following
    lag: float
    hide_unfollowed: bool

    def older(self, reader: str, size: int, cursor: str | None) -> Steps[FeedPage]:
        """The newest page, or the one after a cursor."""
        calls, of = self.plan.calls, self._sealed_with(reader, "older")
        start = tuple(calls.unseal(cursor, **of)) if cursor else None
        posts, last, more = yield from self._collect(reader, size, start)
        mark = self._mark(reader, last if more else None, map(_position, posts))
        return FeedPage(posts, calls.seal(last, **of) if more else None, mark)

    def newer(self, reader: str, size: int, mark: str | None) -> Steps[FeedPage]:
        """The page of newer posts after a mark, also the newest first."""
        bottom: Position | None = None
        shown: list[Position] = []
        if mark:
            positions = self.plan.calls.unseal(mark, **self._sealed_with(reader, "newer"))
            bottom, *shown = map(tuple, positions)
        posts, last, more = yield from self._collect(reader, size, bottom, shown, newer=True)
        if more and not posts:
            bottom = last  # everything was hidden: the next call must not read it again
        mark = self._mark(reader, bottom, [*shown, *map(_position, posts)])
        return FeedPage(posts[::-1], None, mark)

    def _mark(self, reader: str, bottom: Position | None, shown: Iterable[Position]) -> str | None:
        """A mark: the position from which `newer` reads, and the posts after it that were already shown.

        So it finds posts that are late by at most `lag` seconds, and by at most the posts in a mark.
        """
        known = sorted(shown)
        bottoms = [] if bottom is None else [bottom]
        if known:
            newest = MAX_TICK - int(known[0][0])
            bottoms += [_at(newest - int(self.lag * TICKS)), *known[_MAX_SHOWN : _MAX_SHOWN + 1]]
        if not bottoms:
            return None
        bottom = min(bottoms)
        beyond = [position for position in known if position < bottom]
        return self.plan.calls.seal([bottom, *beyond], **self._sealed_with(reader, "newer"))

    def _sealed_with(self, reader: str, towards: str) -> dict[str, str]:
        return {"feed": self.plan.feed, "reader": reader, "towards": towards}

    def _collect(
        self,
        reader: str,
        size: int,
        start: Position | None,
        shown: Collection[Position] = (),
        *,
        newer: bool = False,
    ) -> Steps[tuple[list[FeedPost], Position | None, bool]]:
        """Visible posts that were not shown, the last position that was read, and whether there are more."""
        if size < 1:
            raise UsageError(f"size must be 1 or more, not {size}")
        streams = yield from self._streams(reader, newer=newer)
        posts: list[FeedPost] = []
        more = True
        for _ in range(_MAX_QUERIES):
            wanted = size - len(posts)
            page = yield from merged(
                self.plan.calls,
                streams,
                _ORDER,
                wanted + len(shown),
                positions=[start] * len(streams),
                descending=newer,
            )
            unique = {_position(entry): entry for entry in page.items}
            new = [entry for position, entry in unique.items() if position not in shown]
            posts += yield from self._visible(reader, new[:wanted])
            if page.items:
                start = _position((new[:wanted] if len(new) >= wanted else page.items)[-1])
            more = len(new) > wanted or not page.is_over
            if not more or len(posts) == size:
                break
        return posts, start, more

    def _streams(self, reader: str, *, newer: bool) -> Steps[list[Stream[FeedEntry]]]:
        """The reader's own timeline, and the channels of authors whom the reader follows."""
        plan, kind = self.plan, FeedEntry
        known = plan.channels.primary.where(FeedChannel.feed == plan.feed)
        channels = yield from plan.calls.all(known.consistent())
        authors = [channel.author for channel in channels if channel.author != reader]
        followed = yield from self.following.followed(reader, authors)
        owners: list[tuple[Owner, str]] = [("READER", reader)]
        owners += [("CHANNEL", author) for author in sorted(followed)]
        streams: list[Stream[FeedEntry]] = []
        for of, owner in owners:
            query = plan.entries.primary.where(
                kind.feed == plan.feed, kind.of == of, kind.owner == owner
            ).consistent()
            same = {"feed": plan.feed, "of": of, "owner": owner}
            streams.append((query.reversed() if newer else query, same))
        return streams

    def _visible(self, reader: str, entries: Sequence[FeedEntry]) -> Steps[list[FeedPost]]:
        """The posts of entries, without those that the reader may no longer see."""
        plan = self.plan
        keys = [plan.key(entry) for entry in entries]
        found = yield from plan.calls.get_many(plan.posts, keys, consistent=True)
        authors = {post.author for post in found if post is not None} - {reader}
        if self.hide_unfollowed:
            authors = {*(yield from self.following.followed(reader, sorted(authors)))}
        posts: list[FeedPost] = []
        orphans: list[_Orphan] = []
        for entry, post in zip(entries, found, strict=True):
            if post is None:
                orphans.append(_Orphan(entry, plan.posts, plan.key(entry)))
            elif post.author == reader or post.author in authors:
                posts.append(post)
            elif entry.of == "READER" and isinstance(self.following, TableFollowers):
                follow = {"feed": plan.feed, "reader": reader, "author": post.author}
                orphans.append(_Orphan(entry, self.following.follows, follow))
        yield from self._sweep(orphans)
        return posts

    def _sweep(self, orphans: Sequence[_Orphan]) -> Steps[None]:
        """Delete entries whose post or follow is missing, if it still is.

        It may have been written since the read. Also, the writes of a transaction become visible one after the other,
        so a read may see an entry just before its post.
        """
        for start in range(0, len(orphans), _MAX_SWEPT):
            chunk = orphans[start : start + _MAX_SWEPT]
            tx = self.plan.calls.transaction()
            for orphan in {tuple(orphan.key.values()): orphan for orphan in chunk}.values():
                tx.check(orphan.lacks, orphan.lacks.feed.missing(), **orphan.key)
            for orphan in chunk:
                tx.delete(orphan.entry)
            with suppress(TransactionFailed, Contended):
                yield from tx.commit()


def _position(post: FeedPost | FeedEntry) -> Position:
    return _at(post.tick, post.author)


def _at(tick: int, author: str = "") -> Position:
    return f"{MAX_TICK - max(tick, 0):019}", author


_ORDER: Final[MergeOrder[FeedEntry]] = MergeOrder(
    _position, lambda position: {"tick": MAX_TICK - int(position[0]), "author": position[1]}
)
