"""A table with a stream and entities on it, for the tests of workers."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any, NamedTuple

from isotone import Attr, Entity, Key, Store, Table, field
from isotone.structures import Context, Worker, WorkerSettings
from isotone.structures.worker_members import WorkerMember

QUICK = WorkerSettings(lease=30, base=0.0, attempts=3, poll=0.0)

_numbers = itertools.count()


class Bench(NamedTuple):
    """A table, its entity, and the worker on it."""

    table: Table
    post: type[Any]
    copy: type[Any]
    worker: Worker


class PostOf(Entity):
    author: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    text: Attr[str] = field(default="")

    primary = Key("AUTHOR", author).sort("POST", number)


class CopyOf(Entity):
    """What handlers write: one for each event, in another partition."""

    author: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    times: Attr[int] = field(default=1)

    primary = Key("COPIES", author).sort("COPY", number)


def bench(name: str | None = None, *, one_table: bool = False, **settings: Any) -> Bench:
    """A table of its own with a worker that has no handlers yet."""
    table = Table(name or f"working-{next(_numbers)}", stream="NEW_AND_OLD_IMAGES")
    post = type("Post", (PostOf,), {}, table=table)
    copy = type("Copy", (CopyOf,), {}, table=table)
    worker = Worker(
        "copying",
        table,
        leases=table if one_table else None,
        settings=WorkerSettings(
            **{"lease": 30, "base": 0.0, "attempts": 3, "poll": 0.0} | settings
        ),
    )
    return Bench(table, post, copy, worker)


def settle(members: list[WorkerMember], rounds: int = 200) -> None:
    """Let members take turns until none of them has anything to do."""
    quiet = 0
    for _ in range(rounds):
        done = 0
        for member in members:
            done += member.coordinate()
            done += member.work()
        quiet = 0 if done else quiet + 1
        if quiet == 4:
            return
    raise AssertionError("the members do not come to rest")


def write(store: Store, kit: Bench, author: str, numbers: range) -> None:
    """Posts of an author, one after the other."""
    for number in numbers:
        store.put(kit.post(author=author, number=number))


def recorded(kit: Bench) -> list[tuple[str, int]]:
    """Declare a handler that notes the posts that it sees."""
    seen: list[tuple[str, int]] = []

    @kit.worker.on(kit.post, "inserted")
    def note(event: Any, context: Context) -> None:
        seen.append((event.entity.author, event.entity.number))

    return seen


def in_order(seen: list[tuple[str, int]]) -> dict[str, list[int]]:
    """What was seen of each author, the first time that it was seen."""
    found: dict[str, list[int]] = defaultdict(list)
    for author, number in seen:
        if number not in found[author]:
            found[author].append(number)
    return found
