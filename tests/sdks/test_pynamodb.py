"""PynamoDB: models, indexes, iterators and transactions of a mapper that people use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from pynamodb.attributes import (
    BinaryAttribute,
    BooleanAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    TTLAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)
from pynamodb.connection import Connection
from pynamodb.exceptions import (
    DoesNotExist,
    PutError,
    TransactWriteError,
    UpdateError,
)
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex, LocalSecondaryIndex
from pynamodb.models import Model
from pynamodb.transactions import TransactGet, TransactWrite

START = datetime(2026, 1, 11, 10, tzinfo=UTC)
COUNT = 23
STATUSES = ("open", "paid", "sent")


class Line(MapAttribute):  # type: ignore[type-arg]
    sku = UnicodeAttribute()
    quantity = NumberAttribute()


class ByTotal(LocalSecondaryIndex[Any]):
    class Meta:
        projection = AllProjection()

    customer = UnicodeAttribute(hash_key=True)
    total = NumberAttribute(range_key=True)


class ByStatus(GlobalSecondaryIndex[Any]):
    class Meta:
        projection = AllProjection()
        read_capacity_units = 1
        write_capacity_units = 1

    status = UnicodeAttribute(hash_key=True)
    placed_at = UTCDateTimeAttribute(range_key=True)


def order_model(url: str, table: str) -> type[Any]:
    """A model of its own for each test, bound to a table of its own."""

    class Order(Model):
        class Meta:
            table_name = table
            host = url
            region = "eu-west-1"
            read_capacity_units = 5
            write_capacity_units = 5
            tags: ClassVar = {"team": "shop"}

        customer = UnicodeAttribute(hash_key=True)
        placed_at = UTCDateTimeAttribute(range_key=True)
        status = UnicodeAttribute()
        total = NumberAttribute()
        paid = BooleanAttribute(default=False)
        photo = BinaryAttribute(legacy_encoding=False, null=True)
        tags = UnicodeSetAttribute(null=True)
        lines: ListAttribute[Line] = ListAttribute(of=Line, default=list)
        expires = TTLAttribute(null=True)
        version = VersionAttribute()
        by_total = ByTotal()
        by_status = ByStatus()

    return Order


def make(model: type[Any], number: int) -> Any:
    return model(
        "ann" if number % 2 else "böb",
        START + timedelta(hours=number),
        status=STATUSES[number % 3],
        total=number % 5,
        photo=bytes([number, 0, 255]),
        tags={f"t{number}", "gift"},
        lines=[Line(sku=f"sku-{line}", quantity=line) for line in range(number % 3)],
    )


@pytest.fixture
def order(url: str, account: None, name: str) -> type[Any]:
    """A model whose table is there and full."""
    model = order_model(url, name)
    model.create_table(wait=True)
    with model.batch_write() as batch:
        for number in range(COUNT):
            batch.save(make(model, number))
    return model


def hours(found: Any) -> list[int]:
    """Which orders were found, by their number."""
    return [int((one.placed_at - START) / timedelta(hours=1)) for one in found]


def test_a_table_from_its_birth_to_its_end(client: Any, url: str, name: str) -> None:
    model = order_model(url, name)
    assert not model.exists()
    model.create_table(wait=True)
    assert model.exists()
    assert name in Connection(region="eu-west-1", host=url).list_tables()["TableNames"]
    described = model.describe_table()
    assert described["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
    answer = client.list_tags_of_resource(ResourceArn=described["TableArn"])
    assert answer["Tags"] == [{"Key": "team", "Value": "shop"}]
    expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert expiry["AttributeName"] == "expires"
    model.delete_table()
    assert not model.exists()


def test_items_come_back(order: type[Any]) -> None:
    found = order.get("ann", START + timedelta(hours=5), consistent_read=True)
    assert found.photo == b"\x05\x00\xff"
    assert found.tags == {"t5", "gift"}
    assert [line.sku for line in found.lines] == ["sku-0", "sku-1"]
    with pytest.raises(DoesNotExist):
        order.get("ann", START - timedelta(hours=5))


@pytest.mark.parametrize("forward", [True, False])
def test_query(order: type[Any], forward: bool) -> None:
    way = 1 if forward else -1
    request = {"scan_index_forward": forward, "page_size": 3}
    assert hours(order.query("ann", **request)) == list(range(1, COUNT, 2))[::way]
    after = order.placed_at > START + timedelta(hours=8)
    assert hours(order.query("böb", after, **request)) == list(range(10, COUNT, 2))[::way]
    by_total = sorted(range(1, COUNT, 2), key=lambda number: (number % 5, number))
    assert hours(order.by_total.query("ann", **request)) == by_total[::way]
    assert hours(order.by_status.query("paid", **request)) == list(range(1, COUNT, 3))[::way]
    limited = order.by_status.query("open", order.placed_at >= START, limit=4, **request)
    assert hours(limited) == list(range(0, COUNT, 3))[::way][:4]


def test_query_continues_where_it_stopped(order: type[Any]) -> None:
    first = order.by_status.query("paid", limit=3)
    assert hours(first) == [1, 4, 7]
    rest = order.by_status.query("paid", last_evaluated_key=first.last_evaluated_key)
    assert hours(rest) == [10, 13, 16, 19, 22]


def test_scan_and_count(order: type[Any]) -> None:
    parts = [order.scan(segment=part, total_segments=3, page_size=2) for part in range(3)]
    assert sorted(number for part in parts for number in hours(part)) == list(range(COUNT))
    cheap = order.scan(order.total.between(1, 2) & order.tags.contains("gift"))
    assert sorted(hours(cheap)) == [number for number in range(COUNT) if number % 5 in (1, 2)]
    assert order.count("ann") == COUNT // 2
    assert order.count("ann", filter_condition=order.status == "paid") == 4
    keys = [("ann", START + timedelta(hours=number)) for number in (1, 3, 4)]
    assert sorted(hours(order.batch_get(keys))) == [1, 3]


def test_updates_and_conditions(order: type[Any]) -> None:
    one = order.get("ann", START + timedelta(hours=1))
    one.update(
        actions=[
            order.total.set(order.total + 0.5),
            order.tags.add({"new"}),
            order.lines.set(order.lines.append([Line(sku="late", quantity=9)])),
            order.photo.remove(),
        ],
        condition=order.status == "paid",
    )
    assert (one.total, one.photo, one.version) == (1.5, None, 1)
    assert one.lines[-1].quantity == 9
    with pytest.raises(UpdateError) as refused:
        one.update(actions=[order.total.set(0)], condition=order.status == "open")
    assert refused.value.cause_response_code == "ConditionalCheckFailedException"
    with pytest.raises(PutError) as refused_put:
        make(order, 1).save(condition=order.customer.does_not_exist())
    assert refused_put.value.cause_response_message == "The conditional request failed"
    stale = order.get("ann", START + timedelta(hours=3))
    order.get("ann", START + timedelta(hours=3)).save()
    with pytest.raises(PutError):
        stale.save()


def test_transactions(order: type[Any], url: str) -> None:
    connection = Connection(region="eu-west-1", host=url)
    with TransactWrite(connection=connection, client_request_token="once") as write:
        write.save(make(order, 40))
        write.update(order.get("ann", START + timedelta(hours=7)), actions=[order.paid.set(True)])
        write.delete(order.get("ann", START + timedelta(hours=9)))
    with TransactGet(connection=connection) as get:
        new = get.get(order, "böb", START + timedelta(hours=40))
        changed = get.get(order, "ann", START + timedelta(hours=7))
        deleted = get.get(order, "ann", START + timedelta(hours=9))
    assert new.get().tags == {"t40", "gift"}
    assert changed.get().paid is True
    with pytest.raises(DoesNotExist):
        deleted.get()
    with (  # noqa: PT012 - the block's end is what raises
        pytest.raises(TransactWriteError) as refused,
        TransactWrite(connection=connection) as write,
    ):
        write.save(make(order, 41))
        write.condition_check(
            order, "ann", START + timedelta(hours=1), condition=order.status == "open"
        )
    assert refused.value.cause_response_code == "TransactionCanceledException"
    # PynamoDB sends the checks before the puts.
    failed, nothing = refused.value.cancellation_reasons
    assert nothing is None
    assert failed.code == "ConditionalCheckFailed"
    with pytest.raises(DoesNotExist):
        order.get("ann", START + timedelta(hours=41))
