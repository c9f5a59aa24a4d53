"""Right uses, with the types that they have."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, assert_type

from pydantic import TypeAdapter
from shop import Customer, Order, shop

import isotone
from isotone import (
    Attr,
    BulkProgress,
    Change,
    Condition,
    Entity,
    EntityKey,
    FindingCount,
    Index,
    Key,
    Neighbor,
    Page,
    Query,
    Scan,
    Snapshot,
    Table,
    Vector,
    VectorIndex,
    VectorSearch,
    Verification,
    desc,
    field,
    raw,
    since_epoch,
    vector,
    written,
)

order = Order(customer_id="a", number=1, ordered_at=datetime.now(UTC), total=Decimal(1))
assert_type(order.total, Decimal)
assert_type(order.tags, set[str])
assert_type(order.label, str)
assert_type(order.revision, int)
assert_type(Order.number, Attr[int])
assert_type(Order.total > 3, Condition)
assert_type(Order.total > Decimal(3), Condition)
assert_type(
    (Order.total > Decimal(3)) & ~(Order.status == "PLACED") | Order.tags.exists(), Condition
)
order.total = Decimal(2)
order.status = "SHIPPED"
assert_type(Customer(customer_id="a", name="Ann").nick, str | None)
assert_type(Customer.nick == None, Condition)  # noqa: E711
assert_type(Order.tags.contains("new"), Condition)
assert_type(Order.tags.size > 2, Condition)
assert_type(Order.status.is_in(["PLACED", "SHIPPED"]), Condition)
assert_type(Order.number < Order.revision, Condition)
assert_type(Order.total > Order.number, Condition)
assert_type(Order.number < Order.total, Condition)
assert_type(Customer.nick == Customer.name, Condition)
assert_type(Customer.name == Customer.nick, Condition)
assert_type(Order.number > Order.tags.size, Condition)
assert_type(Order.total.between(Order.number, 3), Condition)
assert_type(Order.number.set(Order.revision + 1), Change)
assert_type(Order.number.set(10 - Order.revision), Change)
assert_type(Order.total.set(Order.total - Order.number), Change)
assert_type(Order.total.set(1 + Order.total), Change)
assert_type(Order.total.add(Order.number), Change)
assert_type(Customer.name.set(Customer.nick.or_else(Customer.customer_id)), Change)
assert_type(Customer.nick.set(Customer.name), Change)
assert_type(order.replace(status="SHIPPED"), Order)
assert_type(Order.model_validate({"number": 1}), Order)
assert_type(Order.model_validate_json("{}"), Order)
assert_type(order.model_dump_json(exclude={"total"}), str)
assert_type(TypeAdapter(list[Order]).validate_python([]), list[Order])
assert_type(dataclasses.asdict(order), dict[str, Any])

query = Order.by_status.where(Order.customer_id == "a", Order.status == "PLACED")
assert_type(query, Query[Order])
assert_type(query.newest_first().filter(Order.total > Decimal(1)).limit(3), Query[Order])


class Old(Entity, table=Table("old")):
    """Keys of a table that was there already."""

    name: Attr[str] = field()
    number: Attr[int] = field()
    at: Attr[datetime] = field()

    primary = Key("USER", raw(name), raw(number), separator="_").sort(
        "at-", desc(written(at, "%Y%m%d")), separator=""
    )
    by_time = Index("GSI1", "ALL", separator="|").sort(since_epoch(at, "milliseconds", digits=13))


assert_type(Old.primary.where(Old.name == "a", Old.number == 1), Query[Old])
assert_type(Old(name="a", number=1, at=datetime.now(UTC)).at, datetime)

store = isotone.connect(":memory:")
store.create_tables(shop)
assert_type(Order.match(Order.total > 3), Query[Order])
assert_type(Order.match(Order.total > 3, scan=True), Query[Order] | Scan[Order])
assert_type(store.all(Order.match(Order.total > 3, scan=True)), list[Order])
assert_type(store.returning("old").put(order), Order | None)
assert_type(
    store.returning("old").update(Order, Order.number.add(1), customer_id="a", number=1), Order
)
assert_type(
    store.returning("old").upsert(Order, Order.number.add(1), customer_id="a", number=1),
    Order | None,
)
store.returning("none").update(Order, Order.number.add(1), customer_id="a", number=1)
assert_type(store.requests.put(order), Mapping[str, Any])
assert_type(store.pages(query, size=3), Iterator[Page[Order]])
assert_type(store.exists(Order, customer_id="a", number=1), bool)
assert_type(store.refresh(order), Order)
assert_type(store.touch(Order, customer_id="a", number=1), Order)
assert_type(store.update_all(query, Order.number.add(1)).written, int)
assert_type(store.delete_all(Order.primary.scan()), BulkProgress)
assert_type(store.put(order), Order)
assert_type(store.get(Order, customer_id="a", number=1), Order | None)
assert_type(store.get_many(Order, [{"customer_id": "a", "number": 1}]), list[Order | None])
assert_type(
    store.update(
        Order,
        Order.total.set(Decimal(3)),
        Order.status.set("SHIPPED"),
        Order.tags.add({"new"}),
        Order.number.add(1),
        customer_id="a",
        number=1,
        when=Order.status == "PLACED",
    ),
    Order,
)
assert_type(store.page(query, size=25), Page[Order])
assert_type(store.page(query, size=25).items, list[Order])
assert_type(store.page(query, size=25).cursor, str | None)
assert_type(store.all(query), list[Order])
assert_type(store.first(query), Order | None)
assert_type(store.iterate(query), Iterator[Order])
assert_type(store.count(query), int)
assert_type(store.delete(order), Order | None)
assert_type(store.load(query), Snapshot[Order])
assert_type(store.scan(Order.primary.scan()), Iterator[Order])
assert_type(Order.find(Order.customer_id == "a"), Query[Order])
with store.transaction() as together:
    assert_type(together.get(Order, customer_id="a", number=1), Order | None)
    assert_type(together.get(Order.primary.at(customer_id="a", number=1)), Order | None)

key = Order.primary.at(customer_id="a", number=1)
assert_type(key, EntityKey[Order])
assert_type(key.entity, type[Order])
assert_type(EntityKey.of(order), EntityKey[Order])
assert_type(store.get(key), Order | None)
assert_type(store.get_many([key]), list[Order | None])
assert_type(store.update(key, Order.total.set(3)), Order)
assert_type(store.update(order, Order.total.set(3)), Order)
assert_type(store.upsert(key, Order.total.set(3)), Order)
assert_type(store.move(key, Order.number.set(3)), Order)
assert_type(store.delete(key), Order | None)
keys: list[EntityKey[Entity]] = [key, Customer.primary.at(customer_id="a")]
assert_type(store.get_many(keys), list[Entity | None])
together_read: list[Entity | None] = store.get_together(key, (Customer, {"customer_id": "a"}))

verification = store.verify(Order, Customer, segments=2, progress=lambda each: print(each.items))
assert_type(verification, Verification)
assert_type(verification.findings, tuple[FindingCount, ...])
assert_type(store.verify(Order, resume=verification).findings[0].examples[0].key, dict[str, Any])

both = Customer.primary.with_children(Order.primary)
page = store.page(both.where(Customer.customer_id == "a"), size=25)
assert_type(page, Page[Customer | Order])
assert_type(page.items, list[Customer | Order])
assert_type(page.of(Customer), list[Customer])
assert_type(page.of(Order), list[Order])
assert_type(page.cursor, str | None)
assert_type(store.page(query).of(Order), list[Order])
family = store.family(both.where(Customer.customer_id == "a"))
assert_type(family.parent, Customer | None)
assert_type(family.of(Order), list[Order])


async def main() -> None:
    async with isotone.aconnect(":memory:") as awaited:
        assert_type(await awaited.get(Order, customer_id="a", number=1), Order | None)
        assert_type(await awaited.all(query), list[Order])
        assert_type(await awaited.verify(Order), Verification)
        async for each in awaited.iterate(query):
            assert_type(each, Order)
        collected = await awaited.page(both.where(Customer.customer_id == "a"))
        assert_type(collected.of(Order), list[Order])
        async for each in awaited.scan(Order.primary.scan(), segments=2):
            assert_type(each, Order)
        async with awaited.transaction() as together:
            assert_type(await together.get(Order, customer_id="a", number=1), Order | None)


# Vectors


class Doc(Entity, table=shop):
    tenant: Attr[str] = field()
    name: Attr[str] = field()
    embedding: Attr[Vector] = vector(384)
    summary: Attr[Vector | None] = vector(384, default=None)

    primary = Key("TENANT", tenant).sort("DOC", name)
    by_embedding = VectorIndex(embedding, partition=tenant, filters=[name], projection=(name,))


doc = Doc(tenant="a", name="b", embedding=Vector([0.5] * 384))
assert_type(doc.embedding, Vector)
assert_type(doc.summary, Vector | None)
assert_type(doc.embedding[0], float)
assert_type(Doc.by_embedding(tenant="a"), VectorSearch[Doc])
assert_type(Doc.by_embedding.where(Doc.tenant == "a"), VectorSearch[Doc])
neighbors = store.nearest(Doc.by_embedding(tenant="a"), [1, 0.5, Decimal(1)], limit=3)
assert_type(neighbors, list[Neighbor[Doc]])
for found, score in neighbors:
    assert_type(found, Doc)
    assert_type(score, float)
