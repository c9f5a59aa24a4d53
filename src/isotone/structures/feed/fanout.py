"""The fan-out: a worker's handlers that bring each post to all followers of its author, or take it back.

An entry has a key that is made of the post and the reader, so writing it again changes nothing. A fan-out of
more than one page of followers notes after each page how far it is, and a worker that takes over goes on
there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from isotone.model.calls import Calls
from isotone.model.steps import Steps
from isotone.model.tables.events import Event
from isotone.structures.feed.entities import FeedEntry, FeedPost, Kinds
from isotone.structures.feed.followers import Following

_PAGE: Final = 1000  # followers between two looks at how things are
_REMEMBERED: Final = timedelta(days=2)  # for which a place is known: records live for one


class FanOut:
    """The steps of a fan-out."""

    def __init__(self, calls: Calls, feed: str, kinds: Kinds, following: Following) -> None:
        self._calls = calls
        self._feed = feed
        self._posts = kinds.posts
        self._entries = kinds.entries
        self._places = kinds.places
        self._following = following

    def deliver(self, post: FeedPost) -> Steps[int]:
        """Bring a post to its followers; how many.

        Cost: a write for each, a read of each, and for every thousand a read and a write.
        """
        key: dict[str, Any] = {"feed": self._feed, "author": post.author, "tick": post.tick}
        place = yield from self._calls.get(self._places, consistent=True, **key)
        after, done = (None if place is None else place.after), 0
        while readers := (yield from self._following.page(post.author, after, _PAGE)):
            if (yield from self._calls.get(self._posts, consistent=True, **key)) is None:
                return done  # it was deleted, and what is there already goes as its deletion is fanned out
            done += yield from self._calls.put_many(self._entries_of(post, readers))
            after = readers[-1]
            if len(readers) < _PAGE:
                break
            until = datetime.fromtimestamp(self._calls.clock.now(), UTC) + _REMEMBERED
            yield from self._calls.put(self._places(**key, after=after, expires=until))
        return done

    def withdraw(self, post: FeedPost) -> Steps[int]:
        """Take a post from the timelines of all followers; how many.

        Its tick is free, and may have a new post, whose entries have the same keys: these stay. Cost: a write
        for each and one more, and for every thousand a read.
        """
        key: dict[str, Any] = {"feed": self._feed, "author": post.author, "tick": post.tick}
        yield from self._calls.delete(self._places, **key)  # a new post's fan-out begins anew
        after, done = None, 0
        while readers := (yield from self._following.page(post.author, after, _PAGE)):
            if (yield from self._calls.get(self._posts, consistent=True, **key)) is not None:
                return done
            done += yield from self._calls.delete_many(self._entries_of(post, readers))
            after = readers[-1]
            if len(readers) < _PAGE:
                break
        return done

    def _entries_of(self, post: FeedPost, readers: Sequence[str]) -> Iterator[FeedEntry]:
        for reader in readers:
            yield self._entries(
                feed=self._feed, of="READER", owner=reader, tick=post.tick, author=post.author
            )

    def handle(self, event: Event[Any]) -> Steps[int]:
        """What is to be done about a change of a post of this feed."""
        post: FeedPost = event.entity
        if post.feed != self._feed or post.spread == "read":
            return 0
        return (yield from self.deliver(post) if event.kind == "inserted" else self.withdraw(post))
