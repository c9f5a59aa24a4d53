"""A feed: what those whom a reader follows have posted, the newest first.

    feed = Feed(store, "site")
    feed.create_table()
    feed.follow("bob", "ann")
    feed.post("ann", "Hello")            # in her own timeline at once
    feed.read("bob", size=20)            # … and in his, as soon as the worker has been there

    def fan_out(store):                  # isotone worker feeds:fan_out feeds.db
        return Feed(store, "site").worker()

A post is written once; a timeline has an entry for each, which names it. The stream of the table brings the
post to a worker, and that to all followers. Where there are very many of them, the post goes to a channel of
its author, and readers merge it into their timelines.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from weakref import WeakKeyDictionary

from isotone.errors import Contended, UsageError
from isotone.model import Condition, Event, Page, Query, Steps, Table, Transaction
from isotone.structures.feed.entities import JUDGEMENT_DAY, TICKS, FeedItems, FeedPost, committed
from isotone.structures.feed.fanout import carry
from isotone.structures.feed.followers import Followers, OutsideFollowers, TableFollowers
from isotone.structures.feed.reading import FeedPage, FeedReading
from isotone.structures.operation import S, Structure, operation
from isotone.structures.worker.handlers import Context
from isotone.structures.worker.settings import WorkerSettings
from isotone.structures.worker.worker import Worker

FEEDS: Final = Table("feeds", stream="NEW_AND_OLD_IMAGES")
_TIMELINES: Final[WeakKeyDictionary[Table, Table]] = WeakKeyDictionary()
_TIMELINES_LOCK: Final = threading.Lock()
_NEIGHBOURS: Final = 100  # ticks that are looked at together for one that is free
_ATTEMPTS: Final = 20  # at a tick that nobody else takes first
# A fan-out takes long and goes on where it was, so many a process may end during it, and none because of it.
_PATIENT: Final = WorkerSettings(attempts=25)


class Feed(Structure[S]):
    """The timelines of all readers of a site, and the posts in them.

    Posts of authors with more than `threshold` followers are not brought to each of them, but read from the
    author's channel. `backfill` posts are brought to a reader who begins to follow. `followers` says who
    follows whom, if not the feed's own table. Posts of authors whom a reader does not follow any more are
    hidden, unless `hide_unfollowed` is False: then what was delivered stays. `lag` is for how many seconds a
    post may be late, because the fan-out is behind, and still be among what `read_newer` finds.
    """

    def __init__(
        self,
        store: S,
        name: str = "main",
        *,
        followers: Followers | None = None,
        threshold: int = 10_000,
        backfill: int = 20,
        hide_unfollowed: bool = True,
        lag: float = 60.0,
        table: Table | None = None,
        timelines: Table | None = None,
    ) -> None:
        super().__init__(store, table or FEEDS)
        if threshold < 0 or backfill < 0:
            raise UsageError(f"threshold and backfill are 0 or more: {threshold}, {backfill}")
        if not 0 <= lag <= JUDGEMENT_DAY / TICKS:
            raise UsageError(f"lag={lag} is no number of seconds that a post can be late")
        self.name = name
        self.threshold = threshold
        self.timelines = timelines or _timelines_of(self.table)
        self._backfill = backfill
        self._items = items = FeedItems(self.calls, name, self.table, self.timelines)
        self.posts = items.posts
        self.entries = items.entries
        self._following = (
            TableFollowers(items) if followers is None else OutsideFollowers(followers)
        )
        self._reading = FeedReading(
            items=items, following=self._following, lag=lag, hide_unfollowed=hide_unfollowed
        )

    @staticmethod
    def layout(name: str = "feeds") -> Table:
        """A table in which posts and followers can live. It needs a stream, by which the worker is told."""
        return Table(name, stream="NEW_AND_OLD_IMAGES")

    @operation
    def create_table(self) -> Steps[None]:
        """Make the tables, of posts and of timelines, where they are missing."""
        yield from self.calls.create_tables(*dict.fromkeys((self.table, self.timelines)))

    # Posts

    @operation
    def post(
        self,
        author: str,
        content: str,
        data: Mapping[str, Any] | None = None,
        *,
        token: str | None = None,
    ) -> Steps[FeedPost]:
        """Write a post, and put it into the author's own timeline; the worker does the rest.

        Each has a tick of its own: the next free one where another post has that of now. With a `token` that
        the author has posted with in the last two days, nothing is posted, and the post of then is given, as
        it was if it is deleted. Cost: a read of the count of followers, and a transaction of 2 writes (4 of
        them into a channel, and one more with a token).
        """
        many = (yield from self._following.count(author)) > self.threshold
        tick = int(self.now() * TICKS)
        for _ in range(_ATTEMPTS):
            post = self.posts(
                feed=self.name,
                author=author,
                tick=tick,
                content=content,
                data=dict(data) if data else None,
                spread="read" if many else "write",
            )
            if (yield from committed(self._posting(post, token))):
                return post
            if earlier := (yield from self._posted_with(token, post)):
                return earlier
            tick = yield from self._free_tick(author, tick)
        raise Contended(f"{author!r} posts from too many places at once; try again later")

    def _posting(self, post: FeedPost, token: str | None) -> Transaction:
        """The transaction of a post, its first entries, and the note of its token."""
        items, together = self._items, self.calls.transaction()
        together.create(post)
        together.put(items.entry("READER", post.author, post))
        if post.spread == "read":
            together.put(items.entry("CHANNEL", post.author, post))
            together.put(items.channels(feed=self.name, author=post.author))
        if token is not None:
            key = {"feed": self.name, "author": post.author, "token": token}
            together.create(items.tokens(**key, tick=post.tick, expires=items.kept_until()))
        return together

    def _posted_with(self, token: str | None, post: FeedPost) -> Steps[FeedPost | None]:
        """The post that was made with a token before. Cost: two consistent reads."""
        if token is None:
            return None
        key = {"feed": self.name, "author": post.author, "token": token}
        known = yield from self.calls.get(self._items.tokens, consistent=True, **key)
        if known is None:
            return None
        then = post.replace(tick=known.tick)
        return (yield from self._items.post(then)) or then

    def _free_tick(self, author: str, taken: int) -> Steps[int]:
        """The first tick after a taken one that the author has no post at. Cost: a query."""
        while True:
            later = self._posts_of(author, FeedPost.tick > taken).oldest_first()
            neighbours = yield from self.calls.all(later.consistent().limit(_NEIGHBOURS))
            for each in neighbours:
                if each.tick != taken + 1:
                    return taken + 1
                taken = each.tick
            if len(neighbours) < _NEIGHBOURS:
                return taken + 1

    def _posts_of(self, author: str, *within: Condition) -> Query[FeedPost]:
        return self.posts.primary.where(
            FeedPost.feed == self.name, FeedPost.author == author, *within
        )

    @operation
    def get(self, post: str) -> Steps[FeedPost | None]:
        """A post by its id, or None. Cost: a consistent read."""
        return (yield from self._items.post(post))

    @operation
    def edit(
        self, post: FeedPost | str, content: str, data: Mapping[str, Any] | None = None
    ) -> Steps[FeedPost]:
        """Change a post, everywhere at once. Cost: one write. Raises `NotFound`."""
        now = datetime.fromtimestamp(self.now(), UTC)
        changes = [FeedPost.content.set(content), FeedPost.edited_at.set(now)]
        if data is not None:
            changes.append(FeedPost.data.set(dict(data) if data else None))
        return (yield from self.calls.update(self.posts, *changes, **self._items.key(post)))

    @operation
    def delete(self, post: FeedPost | str) -> Steps[bool]:
        """Delete a post; whether it was there. From then on nobody reads it, wherever it was delivered.

        The worker removes it from timelines, and what it misses goes when it is read. Cost: a transaction of 3
        writes, and one for each entry.
        """
        key = self._items.key(post)
        together = self.calls.transaction()
        together.delete(self.posts, when=FeedPost.author.exists(), **key)
        together.delete(self.entries, of="READER", owner=key["author"], **key)
        together.delete(self.entries, of="CHANNEL", owner=key["author"], **key)
        return (yield from committed(together))

    @operation
    def posts_of(
        self, author: str, size: int = 20, cursor: str | None = None
    ) -> Steps[Page[FeedPost]]:
        """A page of an author's posts, the newest first. Cost: a query of `size` items."""
        query = self._posts_of(author).consistent()
        return (yield from self.calls.page(query, size=size, cursor=cursor))

    # Timelines

    @operation
    def read(self, reader: str, size: int = 20, cursor: str | None = None) -> Steps[FeedPage]:
        """A page of a reader's timeline, the newest first, or the one behind a cursor.

        Cost, of consistent reads: a query of `size` entries for the reader, and for each author followed who
        has a channel; `size` posts; and a follow for each author among them, and each channel of the feed.
        Raises `InvalidCursor`.
        """
        return (yield from self._reading.older(reader, size, cursor))

    @operation
    def read_newer(self, reader: str, mark: str | None = None, size: int = 20) -> Steps[FeedPage]:
        """What came after a mark (a page's `newest`): the next `size` posts; these, too, the newest first.

        Its own `newest` is the next mark. A post that is late by up to `lag` seconds, and by up to a hundred
        posts, is not missed. Cost: that of `read`, and the entries of that time. Raises `InvalidCursor`.
        """
        return (yield from self._reading.newer(reader, size, mark))

    # Followers

    @operation
    def follow(self, reader: str, author: str) -> Steps[bool]:
        """Have an author's posts in a reader's timeline, and the newest ones at once; False where it is so.

        Cost: a transaction of 3 writes; then a query of the author's newest posts, and a write for each.
        """
        if reader == author:
            raise UsageError(f"{reader!r} has their own posts in their timeline already")
        new = yield from self._inside().change(reader, author, follows=True)
        yield from self._fill(reader, author)
        return new

    @operation
    def unfollow(self, reader: str, author: str) -> Steps[bool]:
        """Hide an author's posts from a reader; whether they were followed. Cost: a transaction of 3 writes."""
        return (yield from self._inside().change(reader, author, follows=False))

    @operation
    def backfill(self, reader: str, author: str) -> Steps[int]:
        """Bring an author's newest posts to a reader; how many. For those who are kept outside of the table."""
        return (yield from self._fill(reader, author))

    def _fill(self, reader: str, author: str) -> Steps[int]:
        if not self._backfill:
            return 0
        newest = self._posts_of(author).consistent().limit(self._backfill)
        posts = yield from self.calls.all(newest)
        entries = [
            self._items.entry("READER", reader, each) for each in posts if each.spread == "write"
        ]
        return (yield from self.calls.put_many(entries))

    @operation
    def follower_count(self, author: str) -> Steps[int]:
        """How many follow an author, exactly. Cost: a consistent read."""
        return (yield from self._following.count(author))

    @operation
    def followers(
        self, author: str, after: str | None = None, size: int = 100
    ) -> Steps[Sequence[str]]:
        """Those who follow an author, in order, behind one of them. Cost: a query of `size` small items."""
        return (yield from self._following.page(author, after, size))

    @operation
    def following(
        self, reader: str, after: str | None = None, size: int = 100
    ) -> Steps[Sequence[str]]:
        """Those whom a reader follows, in order, behind one of them. Cost: a query of `size` small items."""
        return (yield from self._inside().following(reader, after, size))

    def _inside(self) -> TableFollowers:
        if not isinstance(self._following, TableFollowers):
            raise UsageError(
                "who follows whom is kept outside of this feed; write it there, and call backfill() "
                "for those who begin to follow"
            )
        return self._following

    # The worker

    def worker(
        self,
        name: str | None = None,
        *,
        leases: Table | None = None,
        settings: WorkerSettings | None = None,
    ) -> Worker:
        """The worker that does the fan-out; it runs over a `Store`, and tries each post 25 times.

        Raises `UsageError` where the table's stream does not show what a post was before it was deleted.
        """
        if self.table.stream != "NEW_AND_OLD_IMAGES":
            raise UsageError(
                f"the fan-out has to see posts that were deleted; declare Table({self.table.name!r}, …, "
                "stream='NEW_AND_OLD_IMAGES')"
            )
        worker = Worker(
            name or f"feed-{self.name}", self.table, leases=leases, settings=settings or _PATIENT
        )

        @worker.on(FeedPost, "inserted", "removed")
        def fan_out(event: Event[FeedPost], context: Context) -> None:
            post = event.entity
            if post.feed == self.name and post.spread == "write":
                steps = carry(self._items, self._following, post, event.kind, context.stopping)
                context.store.run(steps)

        return worker


def _timelines_of(table: Table) -> Table:
    """The table of timelines that goes with a table of posts, unless another is given."""
    with _TIMELINES_LOCK:
        if table not in _TIMELINES:
            _TIMELINES[table] = Table(f"{table.name}.timelines")
        return _TIMELINES[table]
