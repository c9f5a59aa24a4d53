"""A feed: posts of followed authors, the newest first; a worker delivers them, or followers read a channel.

    feed = Feed(store, "site")
    feed.create_table()
    feed.follow("bob", "ann")
    feed.post("ann", "Hello")            # in her own timeline at once
    feed.read("bob", size=20)            # … and in his, once the worker has delivered it

    def fan_out(store):                  # isotone worker feeds:fan_out feeds.db
        return Feed(store, "site").worker()

A post is written once; a timeline has an entry that refers to it. A worker reads the post from the table's
stream, and writes an entry for each follower. The post of an author with very many followers goes to the
author's channel instead, which readers merge into their timelines.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from isotone.errors import Contended, UsageError
from isotone.model import Event, EventKind, Page, Steps, Table, Transaction
from isotone.structures.feed_followers import (
    FeedAuthor,
    FeedFollow,
    FeedFollower,
    Followers,
    OutsideFollowers,
    TableFollowers,
    try_commit,
)
from isotone.structures.feed_timelines import (
    MAX_TICK,
    TICKS,
    FeedChannel,
    FeedEntry,
    FeedFanOut,
    FeedPage,
    FeedPlan,
    FeedPost,
    FeedToken,
    Timelines,
)
from isotone.structures.structure import S, Structure, bind_entity, operation
from isotone.structures.worker import Worker
from isotone.structures.worker_delivery import Context, Interrupted, WorkerSettings
from isotone.tables.retries import STALE_READS, RetryNeeded

FEEDS: Final = Table("feeds", stream="NEW_AND_OLD_IMAGES")
_TIMELINES: Final[WeakKeyDictionary[Table, Table]] = WeakKeyDictionary()
_TIMELINES_LOCK: Final = threading.Lock()
_NEIGHBOURS: Final = 100  # posts that one query reads to find a free tick
# Followers between two checks that the post still exists; the position is saved as often.
_FAN_OUT_PAGE: Final = 1000
# A long fan-out resumes, so crashes of several processes must not turn it into a dead letter.
_WORKER_SETTINGS: Final = WorkerSettings(attempts=25)
_WITHOUT: Final = "use an entity of posts by time, which followers read one author at a time"


class Feed(Structure[S]):
    """The posts of a site, and the timelines of all its readers.

    - `followers`: a source of followers, if they are not stored in the feed's own table.
    - `threshold`: the posts of authors with more followers are read from the author's channel.
    - `backfill`: how many of an author's posts a new follower gets at once.
    - `hide_unfollowed`: hide posts of authors whom the reader no longer follows. False keeps delivered posts.
    - `lag`: seconds by which a post may be delivered late and `read_newer` still finds it.

        >>> feed = Feed(store, "site")
        >>> feed.create_table()
        >>> post = feed.post("ann", "Good morning")
        >>> [post.content for post in feed.read("ann")]
        ['Good morning']
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
        self.require("transactions", _WITHOUT)
        self.require("streams", _WITHOUT)
        if threshold < 0 or backfill < 0:
            raise UsageError(
                f"threshold and backfill must be 0 or more, not {threshold} and {backfill}"
            )
        if not 0 <= lag <= MAX_TICK / TICKS:
            raise UsageError(f"lag must be 0 to {MAX_TICK / TICKS:g} seconds, not {lag}")
        self.name = name
        self.threshold = threshold
        self.timelines: Table = timelines or _timelines_of(self.table)
        self._backfill = backfill
        self._plan = FeedPlan(
            calls=self.calls,
            feed=name,
            posts=self.bind(FeedPost),
            channels=self.bind(FeedChannel),
            entries=bind_entity(self.timelines, FeedEntry),
            fan_outs=bind_entity(self.timelines, FeedFanOut),
            tokens=bind_entity(self.timelines, FeedToken),
        )
        self.posts: type[FeedPost] = self._plan.posts
        self.entries: type[FeedEntry] = self._plan.entries
        authors, follows = self.bind(FeedAuthor), self.bind(FeedFollow)
        self._following = (
            TableFollowers(self.calls, name, authors, follows, self.bind(FeedFollower))
            if followers is None
            else OutsideFollowers(followers)
        )
        self._timelines = Timelines(
            plan=self._plan, following=self._following, lag=lag, hide_unfollowed=hide_unfollowed
        )

    @staticmethod
    def layout(name: str = "feeds") -> Table:
        """A table for posts and followers. Its stream tells the worker of new posts."""
        return Table(name, stream="NEW_AND_OLD_IMAGES")

    @operation
    def create_table(self) -> Steps[None]:
        """Create the tables of posts and of timelines, unless they exist."""
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
        """Write a post, and put it into the author's own timeline; the worker delivers it.

        Each post has its own tick: the current one or, if another post of the author has it, the next free one.
        If the author used the `token` in the last two days, nothing is posted, and the earlier post is
        returned, even if it was deleted.

        Cost: a read of the count of followers, and a transaction of 2 writes (4 with a channel, and one more
        with a token). Raises `Contended` if the author posts from very many places at once.
        """
        has_channel = (yield from self._following.count(author)) > self.threshold
        tick = int(self.now() * TICKS)

        def attempt() -> Steps[FeedPost]:
            nonlocal tick
            post = self.posts(
                feed=self.name,
                author=author,
                tick=tick,
                content=content,
                data=dict(data) if data else None,
                spread="read" if has_channel else "write",
            )
            if (yield from try_commit(self._posting(post, token))):
                return post
            if earlier := (yield from self._posted_with(token, post)):
                return earlier
            tick = yield from self._free_tick(author, tick)
            raise RetryNeeded

        return (
            yield from STALE_READS.run(
                attempt,
                lambda _: Contended(
                    f"{author!r} posts from too many places at once; try again later"
                ),
            )
        )

    @operation
    def get(self, post: str) -> Steps[FeedPost | None]:
        """A post by its id, or None. Cost: a consistent read."""
        return self._plan.get(post)

    @operation
    def edit(
        self, post: FeedPost | str, content: str, data: Mapping[str, Any] | None = None
    ) -> Steps[FeedPost]:
        """Change a post, for all readers at once. Cost: one write. Raises `NotFound`."""
        changes = [FeedPost.content.set(content), FeedPost.edited_at.set(self.after(0))]
        if data is not None:
            changes.append(FeedPost.data.set(dict(data) if data else None))
        return self.calls.update(self.posts, *changes, **self._plan.key(post))

    @operation
    def delete(self, post: FeedPost | str) -> Steps[bool]:
        """Delete a post; returns whether it existed. From then on no reader sees it.

        The worker deletes its entries; entries that it misses are deleted when they are read. Cost: a
        transaction of 3 writes, and one for each entry.
        """
        key = self._plan.key(post)
        tx = self.calls.transaction()
        tx.delete(self.posts, when=FeedPost.author.exists(), **key)
        tx.delete(self.entries, of="READER", owner=key["author"], **key)
        tx.delete(self.entries, of="CHANNEL", owner=key["author"], **key)
        return try_commit(tx)

    @operation
    def posts_of(
        self, author: str, size: int = 20, cursor: str | None = None
    ) -> Steps[Page[FeedPost]]:
        """A page of an author's posts, the newest first. Cost: a query of `size` items."""
        return self.calls.page(self._plan.posts_of(author), size=size, cursor=cursor)

    # Timelines

    @operation
    def read(self, reader: str, size: int = 20, cursor: str | None = None) -> Steps[FeedPage]:
        """A page of a reader's timeline, the newest first, or the page after a cursor.

        Cost, of consistent reads: a query of `size` entries for the reader, and for each followed author
        with a channel; `size` posts; a follow for each author among them, and for each channel of the feed.
        Raises `InvalidCursor`.
        """
        return self._timelines.older(reader, size, cursor)

    @operation
    def read_newer(self, reader: str, mark: str | None = None, size: int = 20) -> Steps[FeedPage]:
        """The next `size` posts after a mark (a page's `newest`), also the newest first.

        The next mark is the new page's `newest`. A post is not missed if it is late by at most `lag` seconds
        and a hundred posts. Cost: as `read`, and the entries of that time. Raises `InvalidCursor`.
        """
        return self._timelines.newer(reader, size, mark)

    # Followers

    @operation
    def follow(self, reader: str, author: str) -> Steps[bool]:
        """Follow an author; returns False if the reader already does. The newest posts are delivered at once.

        Cost: a transaction of 3 writes; then a query of the author's newest posts, and a write for each.
        """
        if reader == author:
            raise UsageError(
                f"{reader!r} cannot follow themselves; a timeline already has the reader's own posts"
            )
        is_new = yield from self._own_followers().change(reader, author, follows=True)
        yield from self._fill(reader, author)
        return is_new

    @operation
    def unfollow(self, reader: str, author: str) -> Steps[bool]:
        """Hide an author's posts from a reader; returns whether they were followed.

        Cost: a transaction of 3 writes.
        """
        return self._own_followers().change(reader, author, follows=False)

    @operation
    def backfill(self, reader: str, author: str) -> Steps[int]:
        """Deliver an author's newest posts to a reader; returns how many. For your own `followers=`."""
        return self._fill(reader, author)

    @operation
    def follower_count(self, author: str) -> Steps[int]:
        """The exact number of an author's followers. Cost: a consistent read."""
        return self._following.count(author)

    @operation
    def followers(
        self, author: str, after: str | None = None, size: int = 100
    ) -> Steps[Sequence[str]]:
        """An author's followers in order, after one of them. Cost: a query of `size` small items."""
        return self._following.page(author, after, size)

    @operation
    def following(
        self, reader: str, after: str | None = None, size: int = 100
    ) -> Steps[Sequence[str]]:
        """The authors that a reader follows, in order, after one of them. Cost: a query of `size` small items."""
        return self._own_followers().following(reader, after, size)

    # The worker

    def worker(
        self,
        name: str | None = None,
        *,
        leases: Table | None = None,
        settings: WorkerSettings | None = None,
    ) -> Worker:
        """The worker that delivers posts. It runs over a `Store`, and tries each post 25 times.

        Raises `UsageError` if the table's stream does not contain deleted posts.
        """
        if self.table.stream != "NEW_AND_OLD_IMAGES":
            raise UsageError(
                f"the worker must see deleted posts; declare Table({self.table.name!r}, …, "
                "stream='NEW_AND_OLD_IMAGES')"
            )
        worker = Worker(
            name or f"feed-{self.name}",
            self.table,
            leases=leases,
            settings=settings or _WORKER_SETTINGS,
        )

        @worker.on(FeedPost, "inserted", "removed")
        def fan_out(event: Event[FeedPost], context: Context) -> None:
            post = event.entity
            if post.feed == self.name and post.spread == "write":
                context.store.run(self._fan_out(post, event.kind, context.stopping))

        return worker

    # Steps

    def _posting(self, post: FeedPost, token: str | None) -> Transaction:
        """The transaction of a post, its first entries, and its token."""
        plan, tx = self._plan, self.calls.transaction()
        tx.create(post)
        tx.put(plan.entry("READER", post.author, post))
        if post.spread == "read":
            tx.put(plan.entry("CHANNEL", post.author, post))
            tx.put(plan.channels(feed=self.name, author=post.author))
        if token is not None:
            key = {"feed": self.name, "author": post.author, "token": token}
            tx.create(plan.tokens(**key, tick=post.tick, expires=plan.expiry()))
        return tx

    def _posted_with(self, token: str | None, post: FeedPost) -> Steps[FeedPost | None]:
        """The post that was made with a token before. Cost: two consistent reads."""
        if token is None:
            return None
        key = {"feed": self.name, "author": post.author, "token": token}
        known = yield from self.calls.get(self._plan.tokens, consistent=True, **key)
        if known is None:
            return None
        earlier = post.replace(tick=known.tick)
        return (yield from self._plan.get(earlier)) or earlier

    def _free_tick(self, author: str, taken: int) -> Steps[int]:
        """The first free tick of the author after a taken one. Cost: a query."""
        while True:
            later = self._plan.posts_of(author, FeedPost.tick > taken).oldest_first()
            neighbours = yield from self.calls.all(later.limit(_NEIGHBOURS))
            for post in neighbours:
                if post.tick != taken + 1:
                    return taken + 1
                taken = post.tick
            if len(neighbours) < _NEIGHBOURS:
                return taken + 1

    def _fill(self, reader: str, author: str) -> Steps[int]:
        if not self._backfill:
            return 0
        posts = yield from self.calls.all(self._plan.posts_of(author).limit(self._backfill))
        entries = [
            self._plan.entry("READER", reader, post) for post in posts if post.spread == "write"
        ]
        return (yield from self.calls.put_many(entries))

    def _own_followers(self) -> TableFollowers:
        if not isinstance(self._following, TableFollowers):
            raise UsageError(
                "this feed's followers are stored outside of it; write them there, and call backfill() for "
                "each new one"
            )
        return self._following

    def _fan_out(
        self, post: FeedPost, change: EventKind, stopping: Callable[[], bool] = lambda: False
    ) -> Steps[int]:
        """Write a new post's entries, or delete those of a deleted one; returns how many.

        An entry's key is the post and the reader, so writing it twice changes nothing. The position is saved after each
        page of followers, and a worker that takes over continues there.

        It ends if the post is deleted meanwhile, because the fan-out of the deletion deletes the entries. A removal
        ends if a new post has the same tick, because the entries of both have the same keys.

        Cost: a write and a read for each follower; for every thousand a read and a write; and a write if a
        removal follows a long fan-out. Raises `Interrupted` if the worker must stop.
        """
        calls, plan, key = self.calls, self._plan, self._plan.key(post)
        place = yield from calls.get(plan.fan_outs, consistent=True, **key)
        after, done = None, 0
        if place is not None and place.change == change:
            after = place.after
        elif place is not None:
            # Delete the position, so that a new post with this tick also starts at the first
            # follower.
            yield from calls.delete(place)
        while readers := (yield from self._following.page(post.author, after, _FAN_OUT_PAGE)):
            if stopping():
                raise Interrupted
            is_there = (yield from plan.get(post)) is not None
            if is_there != (change == "inserted"):
                break
            entries = (plan.entry("READER", reader, post) for reader in readers)
            done += yield from (calls.put_many if is_there else calls.delete_many)(entries)
            after = readers[-1]
            if len(readers) < _FAN_OUT_PAGE:
                break
            expires = plan.expiry()
            yield from calls.put(plan.fan_outs(**key, after=after, change=change, expires=expires))
        return done


def _timelines_of(table: Table) -> Table:
    """The default table of timelines for a table of posts."""
    with _TIMELINES_LOCK:
        if table not in _TIMELINES:
            _TIMELINES[table] = Table(f"{table.name}.timelines")
        return _TIMELINES[table]
