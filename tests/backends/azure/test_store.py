"""Entities and structures that need no index, over Azurite: the store and its async form; the others are refused."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import isotone
from isotone import Attr, Entity, Key, Number, Store, Table, desc, field, version
from isotone.backends.azure_table import AzureTable
from isotone.errors import AlreadyExists, Locked, Unsupported, VersionConflict
from isotone.structures import (
    Counter,
    Idempotency,
    Lock,
    Queue,
    Sequence,
    ShardedCounter,
    SortedSet,
)

pytestmark = pytest.mark.filterwarnings("ignore::isotone.EngineWarning")  # of entities that expire


feeds = Table("feeds", partition="user", sort=Number("range_key"))
morning = 1_800_000_000_000_000_000


class FeedEntry(Entity, table=feeds):
    """The ticks pattern of the time-ordered feed: a number that falls while time goes on."""

    user: Attr[str] = field()
    nanoseconds: Attr[int] = field(max=2**63 - 1)
    content: Attr[str] = field()
    revision: Attr[int] = version()
    primary = Key(user).sort(desc(nanoseconds))


@pytest.fixture
def store(azure_address: str) -> Iterator[Store]:
    with isotone.connect(azure_address) as store:
        yield store


def entry(user: str, number: int) -> FeedEntry:
    return FeedEntry(user=user, nanoseconds=morning + number, content=f"Post {number}")


def test_the_feed_of_the_ticks_pattern(store: Store) -> None:
    store.create_tables(feeds)
    for number in range(30):
        for follower in ("ann", "bob"):
            store.put(entry(follower, number))
    of_ann = FeedEntry.primary.where(FeedEntry.user == "ann")
    pages, cursor = [], None
    while True:
        page = store.page(of_ann, size=7, cursor=cursor)
        pages.append(page)
        cursor = page.cursor
        if cursor is None:
            break
    read = [each.content for page in pages for each in page]
    assert read == [f"Post {number}" for number in reversed(range(30))]
    assert store.page(of_ann, size=7, cursor=pages[2].previous).items == pages[1].items
    since = FeedEntry.primary.where(FeedEntry.user == "ann", FeedEntry.nanoseconds > morning + 27)
    assert [each.content for each in store.page(since, size=5)] == ["Post 29", "Post 28"]
    assert store.page(of_ann.reversed(), size=1)[0].content == "Post 0"


def test_conditions_and_versions(store: Store) -> None:
    store.create_tables(feeds)
    kept = store.create(entry("eve", 1))
    with pytest.raises(AlreadyExists):
        store.create(entry("eve", 1))
    store.update(kept, FeedEntry.content.set("Edited"))
    with pytest.raises(VersionConflict):
        store.put(kept)
    store.delete(FeedEntry, user="eve", nanoseconds=morning + 1)
    assert store.get(FeedEntry, user="eve", nanoseconds=morning + 1) is None


def test_the_async_store_reads_what_the_other_wrote(store: Store, azure_address: str) -> None:
    store.create_tables(feeds)

    async def use() -> list[str]:
        async with isotone.aconnect(azure_address) as awaited:
            await asyncio.gather(*(awaited.put(entry("kim", number)) for number in range(10)))
            page = await awaited.page(FeedEntry.primary.where(FeedEntry.user == "kim"), size=3)
            return [each.content for each in page]

    assert asyncio.run(use()) == ["Post 9", "Post 8", "Post 7"]
    assert store.get(FeedEntry, user="kim", nanoseconds=morning + 4) is not None


def test_a_backend_is_recognised_as_an_object_and_by_its_address(
    azure: AzureTable, store: Store
) -> None:
    with isotone.connect(azure) as other:
        assert other.capabilities is store.capabilities is isotone.ENGINES["azure-table"]


def test_counters_count_from_many_threads(store: Store) -> None:
    for counter in (
        Counter(store, "visits", table=Counter.layout(f"c{uuid.uuid4().hex}")),
        ShardedCounter(store, "visits", 4, table=ShardedCounter.layout(f"s{uuid.uuid4().hex}")),
    ):
        counter.create_table()
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(counter.add, range(1, 9)))
        assert counter.value() == 36


def test_a_sequence_gives_each_number_once(store: Store) -> None:
    numbers = Sequence(store, "orders", table=Sequence.layout(f"n{uuid.uuid4().hex}"))
    numbers.create_table()
    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(lambda _: numbers.next(), range(8))) == list(range(1, 9))


def test_a_lock_has_one_owner(store: Store) -> None:
    table = Lock.layout(f"l{uuid.uuid4().hex}")
    one, other = (Lock(store, "nightly", owner=owner, table=table) for owner in ("one", "other"))
    one.create_table()
    with one, pytest.raises(Locked, match="one"):
        other.acquire(wait=0)
    with other:
        pass


def test_work_runs_once(store: Store) -> None:
    once = Idempotency(store, "payments", table=Idempotency.layout(f"i{uuid.uuid4().hex}"))
    once.create_table()
    calls: list[int] = []
    results = [once.once("key", lambda: calls.append(1) or len(calls)) for _ in range(3)]
    assert (results, calls) == ([1, 1, 1], [1])


@pytest.mark.parametrize("structure", [Queue, SortedSet])
def test_structures_with_an_index_are_refused(store: Store, structure: type) -> None:
    with pytest.raises(Unsupported, match="which Azure Table storage does not have"):
        structure(store, "any")
