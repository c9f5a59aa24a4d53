"""How a timeline is read: a reader's own, merged with the channels of those whom very many follow.

All are partitions of entries in one order: by tick, then by author. So one entry, the last that was read, is
the place in all of them, and the cursor stays good whatever is posted meanwhile. What an entry names is
looked up: a post that was deleted, or whose author is not followed any more, is not shown, whoever wrote the
entry and when.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, overload

from isotone.errors import Contended, TransactionFailed, UsageError
from isotone.model import Steps
from isotone.structures.feed.entities import (
    JUDGEMENT_DAY,
    TICKS,
    FeedChannel,
    FeedEntry,
    FeedFollow,
    FeedItems,
    FeedPost,
    Owner,
)
from isotone.structures.feed.followers import Following, TableFollowers
from isotone.structures.merging import Marks, Stream, merged

_ROUNDS: Final = 10  # of one read, after which a page may be short
_KNOWN: Final = 100  # posts that a mark has, at most
_PAIRS: Final = 50  # of a delete and a check in one transaction

Place = tuple[str, ...]
"""Where a post is in every timeline: texts that sort as the keys of its entries do, the newest first."""


@dataclass(frozen=True, slots=True)
class FeedPage(Sequence[FeedPost]):
    """Some posts, the newest first.

    `cursor` goes on with older ones, and is None where there are none. `newest` is the mark from which
    `read_newer` goes on: the newest one of them, and those shortly before it.
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


class _Useless(NamedTuple):
    """An entry that nobody is shown, for want of a post or a follow."""

    entry: FeedEntry
    lacks: type[FeedPost | FeedFollow]
    key: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedReading:
    """The steps that read timelines."""

    items: FeedItems
    following: Following
    lag: float
    hide_unfollowed: bool

    # Pages

    def older(self, reader: str, size: int, cursor: str | None) -> Steps[FeedPage]:
        """A page behind a cursor, or the newest one."""
        of = self._of(reader, "older")
        behind = None if cursor is None else tuple(self.items.calls.unseal(cursor, **of))
        found, last, more = yield from self._collect(reader, size, behind)
        mark = self._mark(reader, last if more else None, map(_place, found))
        return FeedPage(found, self.items.calls.seal(last, **of) if more else None, mark)

    def newer(self, reader: str, size: int, mark: str | None) -> Steps[FeedPage]:
        """The page that follows a mark towards now; its posts are the newest first, too."""
        bottom: Place | None = None
        known: list[Place] = []
        if mark is not None:
            places = self.items.calls.unseal(mark, **self._of(reader, "newer"))
            bottom, *known = map(tuple, places)
        found, last, more = yield from self._collect(reader, size, bottom, known, newer=True)
        if more and not found:
            bottom = last  # much is hidden; do not look at it again and again
        return FeedPage(
            found[::-1], None, self._mark(reader, bottom, [*known, *map(_place, found)])
        )

    def _mark(self, reader: str, bottom: Place | None, shown: Iterable[Place]) -> str | None:
        """What `newer` needs: a place behind which it looks again, and what has been shown beyond it.

        So a post is found that is late by no more than the lag, and by no more posts than are known.
        """
        known = sorted(shown)
        bottoms = [] if bottom is None else [bottom]
        if known:
            newest = JUDGEMENT_DAY - int(known[0][0])
            bottoms += [_at(newest - int(self.lag * TICKS)), *known[_KNOWN : _KNOWN + 1]]
        if not bottoms:
            return None
        bottom = min(bottoms)
        beyond = [each for each in known if each < bottom]
        return self.items.calls.seal([bottom, *beyond], **self._of(reader, "newer"))

    def _of(self, reader: str, towards: str) -> dict[str, str]:
        return {"feed": self.items.feed, "reader": reader, "towards": towards}

    # Entries

    def _collect(
        self,
        reader: str,
        size: int,
        behind: Place | None,
        known: Collection[Place] = (),
        *,
        newer: bool = False,
    ) -> Steps[tuple[list[FeedPost], Place | None, bool]]:
        """Posts that are shown and not known, the last place that was read, and whether more follows."""
        if size < 1:
            raise UsageError(f"a page has 1 post or more, not {size}")
        streams = yield from self._streams(reader, newer=newer)
        found: list[FeedPost] = []
        more = True
        for _ in range(_ROUNDS):
            wanted, places = size - len(found), [behind] * len(streams)
            page = yield from merged(
                self.items.calls,
                streams,
                _ORDER,
                wanted + len(known),
                behind=places,
                descending=newer,
            )
            once = {_place(each): each for each in page.items}
            new = [each for place, each in once.items() if place not in known]
            found += yield from self._shown(reader, new[:wanted])
            if page.items:
                behind = _place((new[:wanted] if len(new) >= wanted else page.items)[-1])
            more = len(new) > wanted or not page.is_over
            if not more or len(found) == size:
                break
        return found, behind, more

    def _streams(self, reader: str, *, newer: bool) -> Steps[list[Stream[FeedEntry]]]:
        """The reader's own timeline, and the channels of those who are followed."""
        feed = self.items.feed
        channels = self.items.channels.primary.where(FeedChannel.feed == feed)
        every = yield from self.items.calls.all(channels.consistent())
        authors = [each.author for each in every if each.author != reader]
        followed = yield from self.following.followed(reader, authors)
        owners: list[tuple[Owner, str]] = [("READER", reader)]
        owners += [("CHANNEL", each) for each in sorted(followed)]
        streams: list[Stream[FeedEntry]] = []
        for of, owner in owners:
            query = self.items.entries.primary.where(
                FeedEntry.feed == feed, FeedEntry.of == of, FeedEntry.owner == owner
            ).consistent()
            same = {"feed": feed, "of": of, "owner": owner}
            streams.append((query.reversed() if newer else query, same))
        return streams

    # Posts

    def _shown(self, reader: str, entries: Sequence[FeedEntry]) -> Steps[list[FeedPost]]:
        """The posts of entries, without those that are not for the reader any more."""
        items = self.items
        keys = [items.key(each) for each in entries]
        posts = yield from self.items.calls.get_many(items.posts, keys, consistent=True)
        authors = {each.author for each in posts if each is not None} - {reader}
        if self.hide_unfollowed:
            authors = {*(yield from self.following.followed(reader, sorted(authors)))}
        found: list[FeedPost] = []
        useless: list[_Useless] = []
        for entry, post in zip(entries, posts, strict=True):
            if post is None:
                useless.append(_Useless(entry, items.posts, items.key(entry)))
            elif post.author == reader or post.author in authors:
                found.append(post)
            elif entry.of == "READER" and isinstance(self.following, TableFollowers):
                follow = {"feed": items.feed, "reader": reader, "author": post.author}
                useless.append(_Useless(entry, items.follows, follow))
        yield from self._sweep(useless)
        return found

    def _sweep(self, useless: Sequence[_Useless]) -> Steps[None]:
        """Delete entries that lack what they are for, unless it is there after all.

        It may have come meanwhile, and a transaction's writes do not appear at one moment: an entry may be
        seen just before its post.
        """
        for start in range(0, len(useless), _PAIRS):
            some = useless[start : start + _PAIRS]
            together = self.items.calls.transaction()
            for each in {tuple(each.key.values()): each for each in some}.values():
                together.check(each.lacks, each.lacks.feed.missing(), **each.key)
            for each in some:
                together.delete(each.entry)
            with suppress(TransactionFailed, Contended):
                yield from together.commit()


def _place(post: FeedPost | FeedEntry) -> Place:
    return _at(post.tick, post.author)


def _at(tick: int, author: str = "") -> Place:
    return f"{JUDGEMENT_DAY - max(tick, 0):019}", author


_ORDER: Final[Marks[FeedEntry]] = Marks(
    _place, lambda place: {"tick": JUDGEMENT_DAY - int(place[0]), "author": place[1]}
)
