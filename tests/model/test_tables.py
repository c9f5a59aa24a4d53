from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.model.orders import Order, order, shop

import isotone
from isotone import (
    Binary,
    Global,
    Local,
    Number,
    Observation,
    Table,
    Throughput,
    at_end,
)
from isotone.backends.interface import Request, Response, Tape
from isotone.errors import (
    ResourceInUseException,
    ResourceNotFoundException,
    TableDiffers,
    UsageError,
    ValidationException,
)


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    with isotone.open() as database:
        yield database


@pytest.fixture
def store(database: isotone.Database) -> isotone.Store:
    return isotone.connect(database)


def described(database: isotone.Database, name: str) -> dict[str, Any]:
    found: dict[str, Any] = database.client().describe_table(TableName=name)["Table"]
    return found


def created(table: Table) -> Any:
    """The request that makes a table."""
    seen: list[Observation] = []
    with isotone.connect(observe=[at_end(seen.append)]) as store:
        store.create_tables(table)
    (made,) = (each.request for each in seen if each.operation == "CreateTable")
    return made


def test_the_request_of_a_table() -> None:
    readings = Table(
        "readings",
        partition=Binary("device"),
        sort=Number("at"),
        indexes={
            "by_room": Global(
                ("site", "room"), (Number("level"), Number("at")), projection=("kind",)
            ),
            "by_level": Local(Number("level"), projection="KEYS_ONLY"),
        },
    )
    assert created(readings) == {
        "TableName": "readings",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [
            {"AttributeName": "device", "KeyType": "HASH"},
            {"AttributeName": "at", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": "device", "AttributeType": "B"},
            {"AttributeName": "at", "AttributeType": "N"},
            {"AttributeName": "site", "AttributeType": "S"},
            {"AttributeName": "room", "AttributeType": "S"},
            {"AttributeName": "level", "AttributeType": "N"},
        ],
        "LocalSecondaryIndexes": [
            {
                "IndexName": "by_level",
                "KeySchema": [
                    {"AttributeName": "device", "KeyType": "HASH"},
                    {"AttributeName": "level", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by_room",
                "KeySchema": [
                    {"AttributeName": "site", "KeyType": "HASH"},
                    {"AttributeName": "room", "KeyType": "HASH"},
                    {"AttributeName": "level", "KeyType": "RANGE"},
                    {"AttributeName": "at", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["kind"]},
            }
        ],
    }


def test_every_declared_table_is_accepted(store: isotone.Store) -> None:
    tables = [
        shop,
        Table("plain", sort=None),
        Table("wide", indexes={"GSI": Global(("a", "b"), ("c", "d", "e"), projection=("x", "y"))}),
        Table(
            "local",
            indexes={"LSI1": Local(Number("n")), "LSI2": Local("s", projection="KEYS_ONLY")},
        ),
    ]
    assert store.create_tables(*tables) == ["shop", "plain", "wide", "local"]
    assert store.differences(*tables) == []
    assert store.create_tables(*tables) == []


def test_provisioned_units(store: isotone.Store, database: isotone.Database) -> None:
    store.create_tables(shop, throughput=Throughput(7, 3))
    found = described(database, "shop")
    for each in (found, *found["GlobalSecondaryIndexes"]):
        units = each["ProvisionedThroughput"]
        assert (units["ReadCapacityUnits"], units["WriteCapacityUnits"]) == (7, 3)


def test_expiry_is_turned_on(store: isotone.Store, database: isotone.Database) -> None:
    store.create_tables(shop)
    found = database.client().describe_time_to_live(TableName="shop")["TimeToLiveDescription"]
    assert found["AttributeName"] == shop.ttl
    assert found["TimeToLiveStatus"] in ("ENABLING", "ENABLED")


def test_tables_whose_entities_do_not_expire_expire_nothing(
    store: isotone.Store, database: isotone.Database
) -> None:
    store.create_tables(Table("music"))
    found = database.client().describe_time_to_live(TableName="music")["TimeToLiveDescription"]
    assert found == {"TimeToLiveStatus": "DISABLED"}


def test_one_attribute_has_one_type(store: isotone.Store) -> None:
    table = Table("mixed", sort="at", indexes={"GSI": Global("g", Number("at"))})
    with pytest.raises(UsageError, match="'at' is declared as S and as N"):
        store.create_tables(table)


def test_a_table_that_is_otherwise(store: isotone.Store, database: isotone.Database) -> None:
    store.create_tables(
        Table(
            "shop",
            indexes={"GSI1": Global("GSI1PK", Number("GSI1SK"), projection="KEYS_ONLY")},
        )
    )
    wanted = Table(
        "shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "GSI2": Global("GSI2PK", "GSI2SK")}
    )
    found = [str(each) for each in store.differences(wanted)]
    assert found == [
        "index 'GSI1' of table 'shop' has 'GSI1SK' as N, declared is S",
        "index 'GSI1' of table 'shop' projects KEYS_ONLY, declared is ALL",
        "index 'GSI2' of table 'shop' does not exist",
    ]
    with pytest.raises(TableDiffers, match="add_indexes") as raised:
        store.create_tables(wanted)
    assert [str(each) for each in raised.value.differences] == found
    (difference,) = store.differences(Table("shop", partition="id", sort=None))
    assert difference.what == "has the key PK (HASH), SK (RANGE), declared is id (HASH)"
    (missing,) = store.differences(Table("other"))
    assert str(missing) == "table 'other' does not exist"


def test_expiry_that_is_otherwise(store: isotone.Store, database: isotone.Database) -> None:
    store.create_tables(Table("shop", indexes=shop.indexes))
    (difference,) = store.differences(shop)
    assert difference.what == f"expires nothing, declared is {shop.ttl!r}"


def test_missing_indexes_are_added_and_filled(database: isotone.Database) -> None:
    store = isotone.connect(database)
    before = Table("shop")
    store.create_tables(before)
    for number in range(40):
        store.put(order(number))
    seen: list[Any] = []
    assert store.add_indexes(shop, progress=seen.append) == ["GSI1"]
    assert seen[-1].status == "ACTIVE"
    assert (seen[-1].table, seen[-1].index) == ("shop", "GSI1")
    found = store.all(Order.by_status.where(Order.customer_id == "2b5a41c0"))
    assert len(found) == 40
    assert store.add_indexes(shop) == []


def test_a_local_index_cannot_be_added(store: isotone.Store) -> None:
    store.create_tables(Table("music"))
    with pytest.raises(UsageError, match="a local index is created only with its table"):
        store.add_indexes(Table("music", indexes={"LSI": Local("x")}))


def test_indexes_of_a_table_that_is_not_there(store: isotone.Store) -> None:
    with pytest.raises(UsageError, match=r"'shop' does not exist; create_tables\(\) creates it"):
        store.add_indexes(shop)


def test_dropping(store: isotone.Store, database: isotone.Database) -> None:
    store.create_tables(shop)
    assert store.drop_tables(shop, Table("never")) == ["shop"]
    assert database.client().list_tables()["TableNames"] == []


GONE = ResourceNotFoundException("")
PLAIN = Table("plain")


def status(name: str) -> dict[str, Any]:
    keys = [
        {"AttributeName": "PK", "KeyType": "HASH"},
        {"AttributeName": "SK", "KeyType": "RANGE"},
    ]
    types = [{"AttributeName": each["AttributeName"], "AttributeType": "S"} for each in keys]
    described = {"KeySchema": keys, "AttributeDefinitions": types}
    return {"Table": {"TableName": "plain", "TableStatus": name, **described}}


def operations(tape: Tape) -> list[str]:
    return [operation for operation, _ in tape.asked]


def test_a_table_that_is_being_deleted_is_made_anew(pauses: list[float]) -> None:
    deleting = status("DELETING")
    tape = Tape([deleting, deleting, GONE, {}, status("ACTIVE")])
    assert isotone.connect(tape).create_tables(PLAIN) == ["plain"]
    assert operations(tape) == ["DescribeTable"] * 3 + ["CreateTable", "DescribeTable"]
    assert len(pauses) == 2


def test_a_table_that_is_being_made_is_dropped_when_it_can_be(pauses: list[float]) -> None:
    tape = Tape([ResourceInUseException(""), {}, status("DELETING"), GONE])
    assert isotone.connect(tape).drop_tables(PLAIN) == ["plain"]
    assert operations(tape) == ["DeleteTable"] * 2 + ["DescribeTable"] * 2
    assert len(pauses) == 2


def test_nobody_waits_for_what_does_not_come(pauses: list[float]) -> None:
    with pytest.raises(UsageError, match="is ARCHIVED, and waiting does not change that"):
        isotone.connect(Tape([status("ARCHIVED")] * 9)).create_tables(PLAIN)
    grown = Table("plain", indexes={"GSI1": Global("GSI1PK")})
    with pytest.raises(UsageError, match="was deleted before index 'GSI1' was filled"):
        isotone.connect(Tape([status("ACTIVE"), {}, GONE])).add_indexes(grown)


def test_a_table_whose_items_expire_by_something_else(
    store: isotone.Store, database: isotone.Database
) -> None:
    store.create_tables(Table("shop", indexes=shop.indexes))
    other = {"AttributeName": "other", "Enabled": True}
    database.client().update_time_to_live(TableName="shop", TimeToLiveSpecification=other)
    with pytest.raises(TableDiffers, match="expires by 'other', declared is '_expires'"):
        store.create_tables(shop)


def test_expiry_that_was_turned_on_by_an_answer_that_got_lost(
    store: isotone.Store, database: isotone.Database
) -> None:
    class LostAnswer:
        """A backend whose first answer to `UpdateTimeToLive` is lost, and that is asked again."""

        def execute(self, operation: str, request: Request) -> Response:
            if operation == "UpdateTimeToLive":
                self.turn_on(request)
                raise ValidationException("TimeToLive is already enabled")
            return store.backend.execute(operation, request)

        def turn_on(self, request: Request) -> None:
            store.backend.execute("UpdateTimeToLive", request)

    class NeverOn(LostAnswer):
        def turn_on(self, request: Request) -> None:
            pass

    with pytest.raises(ValidationException):
        isotone.connect(NeverOn()).create_tables(shop)
    store.drop_tables(shop)
    assert isotone.connect(LostAnswer()).create_tables(shop) == ["shop"]
