"""Several ordered queries read as one, against all of their items sorted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone import Attr, Entity, Key, Store, Table, field, raw
from isotone.errors import UsageError
from isotone.structures.sharding import MergeOrder, Position, Stream, merged, shard_of

table = Table("streams")


class Item(Entity, table=table):
    shard: Attr[int] = field(max=99)
    order: Attr[str] = field()

    primary = Key("STREAM", shard).sort(raw(order))


ORDER: MergeOrder[Item] = MergeOrder(
    position=lambda item: (item.order, str(item.shard)),
    fields=lambda position: {"order": position[0]},
)
orders = st.text("abc", min_size=1, max_size=3)


def read(
    store: Store, shards: int, sizes: Iterator[int], of_each: int | None, descending: bool
) -> list[tuple[str, ...]]:
    """All items, by as many calls as it takes."""
    found: list[tuple[str, ...]] = []
    positions: Sequence[Position] = ()
    while True:
        streams: list[Stream[Item]] = []
        for shard in range(shards):
            query = Item.primary.where(Item.shard == shard)
            streams.append((query.reversed() if descending else query, {"shard": shard}))
        size = next(sizes)
        part = store.run(
            merged(
                store.calls,
                streams,
                ORDER,
                size,
                positions=positions,
                descending=descending,
                of_each=of_each,
            )
        )
        assert len(part.items) <= size
        assert part.is_over or len(part.items) >= min(size, of_each or size)
        assert part.stats.scanned <= shards * (of_each or size)
        found += [ORDER.position(each) for each in part.items]
        if part.is_over:
            return found
        positions = part.positions


@given(
    st.lists(st.sets(orders, max_size=12), min_size=1, max_size=4),
    st.sampled_from([None, 1, 2, 5]),
    st.booleans(),
    st.data(),
)
def test_a_merged_page_is_what_sorting_gives(
    shards: list[set[str]], of_each: int | None, descending: bool, data: st.DataObject
) -> None:
    with isotone.connect() as store:
        store.create_tables(table)
        everything = [
            Item(shard=shard, order=order) for shard, found in enumerate(shards) for order in found
        ]
        store.put_many(everything)
        sizes = iter(lambda: data.draw(st.integers(1, 6)), 0)
        found = read(store, len(shards), sizes, of_each, descending)
    assert found == sorted(map(ORDER.position, everything), reverse=descending)


def test_what_lies_where() -> None:
    assert {shard_of(str(number), 3) for number in range(50)} == {0, 1, 2}
    assert shard_of("é x", 7) == shard_of("é x", 7)
    with pytest.raises(UsageError, match="surrogate"):
        shard_of("\ud800", 2)
