"""One entity class for each kind and table, however many threads ask for it at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from tests.effort import LONG
from tests.structures.working import bench

from isotone import Attr, Entity, Event, Key, Store, Table, field
from isotone.structures import Context, Feed
from isotone.structures.structure import bind_entity

R = TypeVar("R")

THREADS = 8


class Note(Entity):
    name: Attr[str] = field()

    primary = Key("NOTE", name).sort("NOTE")


@pytest.fixture(autouse=True)
def _many_switches() -> Iterator[None]:
    """Have threads take turns so often that a check and what follows from it are torn apart."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(function: Callable[[], R]) -> list[R]:
    """What a function returns in threads that call it at the same moment."""
    barrier, results = threading.Barrier(THREADS), list[R]()

    def call() -> None:
        barrier.wait()
        results.append(function())

    threads = [threading.Thread(target=call) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("number", range(20 if LONG else 5))
def test_threads_share_one_class(number: int) -> None:
    table = Table(f"binding-{number}")
    (one,) = set(at_once(lambda: bind_entity(table, Note)))
    assert table.entities["Note"].entity is one


@pytest.mark.parametrize("number", range(10 if LONG else 3))
def test_feeds_that_are_made_at_once_deliver(memory: Store, number: int) -> None:
    table = Feed.layout(f"binding-feeds-{number}")
    feeds = at_once(lambda: Feed(memory, "site", table=table))
    assert len({feed.timelines for feed in feeds}) == 1
    feeds[0].create_table()
    feeds[0].follow("bob", "ann")
    feeds[0].post("ann", "hello")
    for place, feed in enumerate(feeds):  # each worker delivers, whichever class its feed has
        worker = feed.worker(f"fan-out-{place}")
        worker.create_tables(memory)
        assert worker.run(memory, until_idle=True).deliveries == 1
    assert [post.content for post in feeds[1].read("bob")] == ["hello"]


def test_a_handler_of_a_class_that_was_defined_again_gets_its_events(memory: Store) -> None:
    kit = bench("binding-again")
    told: list[Any] = []

    @kit.worker.on(kit.post, "inserted")
    def note(event: Event[Any], context: Context) -> None:
        told.append(event.entity.number)

    again = type("Post", (Entity,), dict(vars(kit.post.__mro__[1])), table=kit.table)
    kit.worker.create_tables(memory)
    memory.put(again(author="ann", number=7))
    kit.worker.run(memory, until_idle=True)
    assert told == [7]
