"""What a feed keeps: posts, who follows whom, and in each reader's order which posts are for whom.

    FEED#site#POSTS#ann          POST#998199999…                a post, the newest first
    FEED#site#AUTHOR#ann         AUTHOR                         how many follow her
    FEED#site#FOLLOWING#bob      AUTHOR#ann                     he follows her …
    FEED#site#FOLLOWERS#ann      READER#bob                     … and is one of her followers
    FEED#site#CHANNELS           CHANNEL#eve                    so many follow her that her readers come to her

and in the table of timelines:

    FEED#site#READER#bob         ENTRY#998199999…#ann           her post, in his timeline
    FEED#site#CHANNEL#eve        ENTRY#998199999…#eve           her post, for all who follow her
    FEED#site#FANOUT#ann         POST#001800000…                how far a long fan-out is
    FEED#site#TOKEN#ann#form-7   TOKEN                          that she has posted what the form held

Times are ticks: tenths of a microsecond. A key has those that are left until judgement day, the last
one of 19 digits, so that the newest comes first.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from isotone.errors import ConditionFailed, TransactionFailed, UsageError
from isotone.model import (
    Attr,
    Calls,
    Entity,
    EventKind,
    Key,
    Steps,
    Table,
    Transaction,
    desc,
    expires,
    field,
)
from isotone.structures.operation import bind_entity

TICKS: Final = 10_000_000
"""Ticks in a second."""
JUDGEMENT_DAY: Final = 10**19 - 1
"""The last tick of 19 digits, in the year 33658."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Owner = Literal["READER", "CHANNEL"]


class FeedPost(Entity):
    """A post. `spread` says how it comes to its readers, as was decided when it was written."""

    feed: Attr[str] = field()
    author: Attr[str] = field()
    tick: Attr[int] = field(max=JUDGEMENT_DAY)
    content: Attr[str] = field()
    data: Attr[dict[str, Any] | None] = field(default=None)
    spread: Attr[Literal["write", "read"]] = field(default="write")
    edited_at: Attr[datetime | None] = field(default=None)

    primary = Key("FEED", feed, "POSTS", author).sort("POST", desc(tick))

    @property
    def id(self) -> str:
        """The post's id, for URLs and the like."""
        return f"{self.author}/{self.tick}"

    @property
    def at(self) -> datetime:
        """When it was posted, to the microsecond."""
        return _EPOCH + timedelta(microseconds=self.tick // 10)


class FeedAuthor(Entity):
    """How many follow an author, exactly."""

    feed: Attr[str] = field()
    author: Attr[str] = field()
    followers: Attr[int] = field(default=0)

    primary = Key("FEED", feed, "AUTHOR", author).sort("AUTHOR")


class FeedFollow(Entity):
    """That a reader follows an author, from the reader's side."""

    feed: Attr[str] = field()
    reader: Attr[str] = field()
    author: Attr[str] = field()

    primary = Key("FEED", feed, "FOLLOWING", reader).sort("AUTHOR", author)


class FeedFollower(Entity):
    """The same from the author's side."""

    feed: Attr[str] = field()
    author: Attr[str] = field()
    reader: Attr[str] = field()

    primary = Key("FEED", feed, "FOLLOWERS", author).sort("READER", reader)


class FeedChannel(Entity):
    """That some posts of an author are in a channel, from which readers take them."""

    feed: Attr[str] = field()
    author: Attr[str] = field()

    primary = Key("FEED", feed, "CHANNELS").sort("CHANNEL", author)


class FeedEntry(Entity):
    """That a post is in a timeline, which a reader owns, or in the channel of an author."""

    feed: Attr[str] = field()
    of: Attr[Owner] = field()
    owner: Attr[str] = field()
    tick: Attr[int] = field(max=JUDGEMENT_DAY)
    author: Attr[str] = field()

    primary = Key("FEED", feed, of, owner).sort("ENTRY", desc(tick), author)


class FeedFanOut(Entity):
    """How far the fan-out of a post, or of its removal, is: it has come to everybody up to this follower."""

    feed: Attr[str] = field()
    author: Attr[str] = field()
    tick: Attr[int] = field(max=JUDGEMENT_DAY)
    after: Attr[str] = field()
    change: Attr[EventKind] = field(default="inserted")
    expires: Attr[datetime | None] = expires()

    primary = Key("FEED", feed, "FANOUT", author).sort("POST", tick)


class FeedToken(Entity):
    """That an author has posted with a token, and at which tick."""

    feed: Attr[str] = field()
    author: Attr[str] = field()
    token: Attr[str] = field()
    tick: Attr[int] = field()
    expires: Attr[datetime | None] = expires()

    primary = Key("FEED", feed, "TOKEN", author, token).sort("TOKEN")


class FeedItems:
    """What one feed has in its tables: the classes of its entities, and how a post is named and found."""

    def __init__(self, calls: Calls, feed: str, table: Table, timelines: Table) -> None:
        self.calls = calls
        self.feed = feed
        self.posts = bind_entity(table, FeedPost)
        self.authors = bind_entity(table, FeedAuthor)
        self.follows = bind_entity(table, FeedFollow)
        self.followers = bind_entity(table, FeedFollower)
        self.channels = bind_entity(table, FeedChannel)
        self.entries = bind_entity(timelines, FeedEntry)
        self.places = bind_entity(timelines, FeedFanOut)
        self.tokens = bind_entity(timelines, FeedToken)

    def key(self, post: FeedPost | FeedEntry | str) -> dict[str, Any]:
        """The key of a post: by itself, an entry of it, or its id. Raises `UsageError` for another text."""
        if not isinstance(post, str):
            return {"feed": self.feed, "author": post.author, "tick": post.tick}
        parts = re.fullmatch("(.*)/([0-9]{1,19})", post, re.DOTALL)
        if parts is None:
            raise UsageError(f"{post!r} is no post; give a FeedPost, or the id of one")
        return {"feed": self.feed, "author": parts[1], "tick": int(parts[2])}

    def post(self, post: FeedPost | str) -> Steps[FeedPost | None]:
        """A post as it is now. Cost: a consistent read."""
        return (yield from self.calls.get(self.posts, consistent=True, **self.key(post)))

    def entry(self, of: Owner, owner: str, post: FeedPost) -> FeedEntry:
        """The entry of a post in a timeline, or in a channel."""
        return self.entries(of=of, owner=owner, **self.key(post))

    def kept_until(self) -> datetime:
        """When notes that are written now are not needed any more: records of a stream live for a day."""
        return datetime.fromtimestamp(self.calls.clock.now(), UTC) + timedelta(days=2)


def committed(together: Transaction) -> Steps[bool]:
    """Commit; False where a condition did not hold: what was to be made is there, or what was to go is gone."""
    try:
        yield from together.commit()
    except TransactionFailed as error:
        if not all(isinstance(each, ConditionFailed) for each in error.failures.values()):
            raise
        return False
    return True
