"""The fan-out: what a worker does to bring each post to all followers of its author, or to take it back.

An entry has a key that is made of the post and the reader, so writing it again changes nothing. A fan-out of
more than one page of followers notes after each page how far it is, and a worker that takes over goes on
there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from isotone.model import EventKind, Steps
from isotone.structures.feed.entities import FeedItems, FeedPost
from isotone.structures.feed.followers import Following

_PAGE: Final = 1000  # followers between two looks at how things are


class Interrupted(Exception):
    """The worker is to end, or others may be at it already: the event comes again."""


def carry(
    items: FeedItems,
    following: Following,
    post: FeedPost,
    change: EventKind,
    stopping: Callable[[], bool] = lambda: False,
) -> Steps[int]:
    """Bring a post that was inserted to its followers, or take one that was removed from them; how many.

    It ends where the post is deleted meanwhile: what is there already goes as its deletion is fanned out. So
    does the removal where a new post has taken the tick, whose entries have the same keys. Cost: a write for
    each, a read of each, for every thousand a read and a write, and a write where a removal follows a long
    fan-out. Raises `Interrupted` where the worker is to end; the event comes again.
    """
    calls, key = items.calls, items.key(post)
    place = yield from calls.get(items.places, consistent=True, **key)
    after, done = None, 0
    if place is not None and place.change == change:
        after = place.after
    elif place is not None:  # a new post that takes the tick begins anew, too
        yield from calls.delete(place)
    while readers := (yield from following.page(post.author, after, _PAGE)):
        if stopping():
            raise Interrupted
        is_there = (yield from items.post(post)) is not None
        if is_there != (change == "inserted"):
            break
        entries = (items.entry("READER", each, post) for each in readers)
        done += yield from (calls.put_many if is_there else calls.delete_many)(entries)
        after = readers[-1]
        if len(readers) < _PAGE:
            break
        until = items.kept_until()
        yield from calls.put(items.places(**key, after=after, change=change, expires=until))
    return done
