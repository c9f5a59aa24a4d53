"""`Database.frozen`: tables as they are at one moment, whatever is written while they are read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.moving.tables import NAME, REQUEST, create, fill, key_of, order
from tests.operations.test_vectors import near

import isotone
from isotone.engine import frozen_reads
from isotone.errors import ResourceInUseException, ResourceNotFoundException, UsageError

ITEMS = 250


@pytest.fixture(params=["memory", "file"])
def database(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[isotone.Database]:
    monkeypatch.setattr(frozen_reads, "ITEMS", 40)
    monkeypatch.setattr(frozen_reads, "_ITEMS_LOCKED", 30)
    place = ":memory:" if request.param == "memory" else tmp_path / "shop.db"
    with isotone.open(place, durability="none") as database:
        create(database)
        fill(database, ITEMS)
        yield database
        assert database.check() == []


def scanned(database: isotone.Database) -> list[Any]:
    found, start = [], {}
    while True:
        page = database.execute("Scan", {"TableName": NAME, **start})
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return found
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def write(database: isotone.Database, number: int) -> None:
    """Change one item, delete the next one, add one."""
    database.execute("PutItem", {"TableName": NAME, "Item": order(number, total=77)})
    database.execute("DeleteItem", {"TableName": NAME, "Key": key_of(order(number + 1))})
    database.execute("PutItem", {"TableName": NAME, "Item": order(ITEMS + number)})


def test_what_is_written_meanwhile_is_not_read(database):
    before = scanned(database)
    read: list[bytes] = []
    with database.frozen([NAME]) as pages_of:
        write(database, 0)
        for place, page in enumerate(pages_of(NAME)):
            read += [json for _, json, _ in page]
            write(database, 2 + 20 * place)
    assert [msgspec.json.decode(json) for json in read] == before
    assert scanned(database) != before


def test_items_come_in_the_order_of_a_scan_with_what_they_sort_by(database):
    with database.frozen([NAME]) as pages_of:
        entries = [entry for page in pages_of(NAME) for entry in page]
    assert [msgspec.json.decode(json) for _, json, _ in entries] == scanned(database)
    keys = [key for key, _, _ in entries]
    assert keys == sorted(set(keys))


def test_what_is_read_is_added_to_another_table(database):
    keys_alone = {"GlobalSecondaryIndexes": None, "LocalSecondaryIndexes": None}
    definitions = {"AttributeDefinitions": REQUEST["AttributeDefinitions"][:2]}
    with isotone.open() as copy, database.frozen([NAME]) as pages_of:
        create(copy, **keys_alone, **definitions)
        for page in pages_of(NAME):
            copy.add_frozen(NAME, page)
        assert scanned(copy) == scanned(database)
        tables = [
            each.execute("DescribeTable", {"TableName": NAME})["Table"] for each in (copy, database)
        ]
        assert tables[0]["ItemCount"] == tables[1]["ItemCount"]
        assert tables[0]["TableSizeBytes"] == tables[1]["TableSizeBytes"]
        assert copy.check() == []
        with pytest.raises(UsageError, match="none of them"):
            copy.add_frozen(NAME, page)
        with pytest.raises(UsageError, match="no index"):
            database.add_frozen(NAME, page)


@pytest.mark.parametrize("what", ["expiry", "recovery", "a vector index"])
def test_a_table_that_has_more_than_its_items_takes_no_entries(database, what):
    plain: dict[str, Any] = {"GlobalSecondaryIndexes": None, "LocalSecondaryIndexes": None}
    if what == "a vector index":
        plain["VectorIndexes"] = [near()]
    with isotone.open() as copy, database.frozen([NAME]) as pages_of:
        create(copy, AttributeDefinitions=REQUEST["AttributeDefinitions"][:2], **plain)
        client = copy.client()
        if what == "expiry":
            until = {"AttributeName": "until", "Enabled": True}
            client.update_time_to_live(TableName=NAME, TimeToLiveSpecification=until)
        elif what == "recovery":
            client.update_continuous_backups(
                TableName=NAME,
                PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
            )
        with pytest.raises(UsageError, match="takes entries only if"):
            copy.add_frozen(NAME, next(pages_of(NAME)))


def test_a_thread_reads_while_others_write(database):
    wanted, found = len(scanned(database)), []

    def read() -> None:
        with database.frozen([NAME]) as pages_of:
            found.append(sum(map(len, pages_of(NAME))))

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(0, 200, 2):
        database.execute("PutItem", {"TableName": NAME, "Item": order(number, total=1)})
    thread.join()
    assert found == [wanted]


def test_nothing_is_left_of_it(database):
    described = database.execute("DescribeTable", {"TableName": NAME})
    with database.frozen([NAME]) as pages_of:
        next(pages_of(NAME))  # and no more
    assert database.execute("DescribeTable", {"TableName": NAME}) == described
    with pytest.raises(ResourceNotFoundException), database.frozen(["Nowhere"]):
        pass
    database.execute("DeleteTable", {"TableName": NAME})


def test_a_table_in_memory_is_not_deleted_while_it_is_read():
    with isotone.open() as database:
        create(database)
        with database.frozen([NAME]), pytest.raises(ResourceInUseException):
            database.execute("DeleteTable", {"TableName": NAME})
