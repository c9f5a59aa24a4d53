"""The modelling libraries, each as the same three calls; runs in an interpreter that has the library.

    python -m bench.model_subjects SUBJECT PORT CALLS

prints the microseconds of processor time (user and system, of all threads) that a put, a get and a query
of a hundred items take, as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.model_values import CUSTOMER, NUMBER, PAGE, PARTITION, SORT, TABLE, values

REGION = "us-east-1"


class Calls(NamedTuple):
    """What is measured; each makes or reads objects of the library's own."""

    put: Callable[[], object]
    get: Callable[[], object]
    query: Callable[[], object]


def isotone(url: str) -> Calls:
    import isotone
    from bench.model_entity import Order

    store = isotone.connect(url)
    return Calls(
        lambda: store.put(Order(**values())),
        lambda: store.get(Order, customer=CUSTOMER, number=NUMBER),
        lambda: store.all(Order.primary.where(Order.customer == CUSTOMER)),
    )


def pydynox(url: str) -> Calls:
    from pydynox import DynamoDBClient, Model, ModelConfig
    from pydynox import attributes as of

    client = DynamoDBClient(
        region=REGION,
        endpoint_url=url,
        access_key="any",
        secret_key="any",
    )

    class Order(Model):  # type: ignore[misc]
        model_config = ModelConfig(table=TABLE, client=client)
        pk = of.StringAttribute(partition_key=True)
        sk = of.StringAttribute(sort_key=True)
        customer = of.StringAttribute()
        number = of.NumberAttribute()
        status = of.StringAttribute()
        placed_at = of.DatetimeAttribute()
        total = of.DecimalAttribute()
        quantity = of.NumberAttribute()
        gift = of.BooleanAttribute()
        tags = of.StringSetAttribute()
        address = of.MapAttribute()
        note = of.StringAttribute()

    return Calls(
        lambda: Order(pk=PARTITION, sk=SORT, **values()).sync_save(),
        lambda: Order.sync_get(pk=PARTITION, sk=SORT),
        lambda: list(Order.sync_query(partition_key=PARTITION)),
    )


def pynamodb(url: str) -> Calls:
    from pynamodb import attributes as of
    from pynamodb.models import Model

    class Address(of.MapAttribute):  # type: ignore[misc]
        street = of.UnicodeAttribute()
        city = of.UnicodeAttribute()

    class Order(Model):  # type: ignore[misc]
        class Meta:
            table_name = TABLE
            region = REGION
            host = url

        pk = of.UnicodeAttribute(hash_key=True)
        sk = of.UnicodeAttribute(range_key=True)
        customer = of.UnicodeAttribute()
        number = of.NumberAttribute()
        status = of.UnicodeAttribute()
        placed_at = of.UTCDateTimeAttribute()
        total = of.NumberAttribute()
        quantity = of.NumberAttribute()
        gift = of.BooleanAttribute()
        tags = of.UnicodeSetAttribute()
        address = Address()
        note = of.UnicodeAttribute()

    def fields() -> dict[str, Any]:
        given = values()
        return {**given, "total": float(given["total"]), "address": Address(**given["address"])}

    return Calls(
        lambda: Order(PARTITION, SORT, **fields()).save(),
        lambda: Order.get(PARTITION, SORT),
        lambda: list(Order.query(PARTITION)),
    )


def boto3(url: str) -> Calls:
    import boto3
    from boto3.dynamodb.conditions import Key

    resource = boto3.resource("dynamodb", region_name=REGION, endpoint_url=url)
    table = resource.Table(TABLE)
    key = {"pk": PARTITION, "sk": SORT}

    def item() -> dict[str, Any]:
        given = values()
        return {**key, **given, "placed_at": given["placed_at"].isoformat()}

    return Calls(
        lambda: table.put_item(Item=item()),
        lambda: table.get_item(Key=key)["Item"],
        lambda: table.query(KeyConditionExpression=Key("pk").eq(PARTITION))["Items"],
    )


SUBJECTS: dict[str, Callable[[str], Calls]] = {
    "isotone": isotone,
    "pydynox": pydynox,
    "pynamodb": pynamodb,
    "boto3": boto3,
}


def processor_time() -> float:
    """Seconds that this process has used of the processors."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cost(call: Callable[[], object], calls: int) -> float:
    """Microseconds of processor time for one call."""
    for _ in range(max(20, calls // 10)):
        call()
    began = processor_time()
    for _ in range(calls):
        call()
    return (processor_time() - began) / calls * 1e6


def main(subject: str, port: int, calls: int) -> None:
    os.environ.update(AWS_ACCESS_KEY_ID="any", AWS_SECRET_ACCESS_KEY="any", AWS_REGION=REGION)
    each = SUBJECTS[subject](f"http://127.0.0.1:{port}")
    each.put()
    found, page = each.get(), each.query()
    assert found is not None
    assert isinstance(page, list)
    assert len(page) == PAGE
    counts = (calls, calls, max(20, calls // 20))
    print(json.dumps([cost(call, count) for call, count in zip(each, counts, strict=True)]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
