"""Copies and comparisons over HTTP and with Amazon's DynamoDB Local, in both directions, with a writer at work.

The second needs `ISOTONE_ORACLE=1`; see `tests/oracle/local.py`.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.backends.azure import azurite
from tests.moving.tables import NAME, create, fill, items, key_of, order, write_at_random

import isotone
from isotone.backends.interface import Backend
from isotone.backends.opening import open_backend
from isotone.errors import ResourceNotFoundException, Unsupported
from isotone.moving import copy, diff
from isotone.server import running_server

COUNT = 400


@pytest.fixture(params=["isotone", "dynamodb-local"])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server without the table."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr("isotone.moving.copying._ITEMS_A_SENT_PAGE", 60)
    if request.param == "isotone":
        with isotone.open() as database, running_server(database) as address:
            yield address
        return
    address: str = request.getfixturevalue("dynamodb_local")
    drop(address)
    yield address
    drop(address)


def drop(address: str) -> None:
    opened = open_backend(address)
    try:
        opened.backend.execute("DeleteTable", {"TableName": NAME})
    except ResourceNotFoundException:
        pass
    finally:
        opened.close()


@contextmanager
def backend(address: Any) -> Iterator[Backend]:
    opened = open_backend(address)
    try:
        yield opened.backend
    finally:
        opened.close()


def test_a_table_is_copied_there_and_back(url: str, tmp_path: Path) -> None:
    first, last = tmp_path / "first.db", tmp_path / "last.db"
    expiry = {"Enabled": True, "AttributeName": "gone"}
    with isotone.open(first) as source:
        create(source)
        fill(source, COUNT)
        odd = {**order(1), "map": {"M": {"a": {"L": [{"M": {}}, {"NS": ["2", "1"]}]}}}}
        source.execute("PutItem", {"TableName": NAME, "Item": odd})
        source.execute("UpdateTimeToLive", {"TableName": NAME, "TimeToLiveSpecification": expiry})
    notices: list[str] = []
    there = copy(first, url, state=tmp_path / "1", notice=notices.append)
    assert there.is_complete, there.missing
    assert diff(first, url).is_equal
    assert copy(url, last, state=tmp_path / "2").is_complete
    report = diff(first, last)
    assert report.is_equal, report
    with isotone.open(first) as source, isotone.open(last) as target:
        assert items(source) == items(target)
        assert target.check() == []


@pytest.mark.parametrize("direction", ["there", "back"])
def test_a_live_copy_with_a_writer_at_work(url: str, tmp_path: Path, direction: str) -> None:
    file, state = tmp_path / "file.db", tmp_path / "state"
    source, target = (file, url) if direction == "there" else (url, file)
    rng, over, failures = random.Random(2), threading.Event(), list[BaseException]()
    with backend(source) as opened:
        create(opened)
        fill(opened, COUNT)

        def write() -> None:
            try:
                while not over.is_set():
                    write_at_random(opened, rng, COUNT + 50)
                    time.sleep(0.002)
            except BaseException as error:  # noqa: BLE001 - raised by the test
                failures.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        stop = threading.Event()
        threading.Timer(0.5, stop.set).start()
        try:
            # stopped somewhere, perhaps in the middle of the copy, and continued
            copy(source, target, live=True, state=state, stop=stop, until=lambda _: False)
            copy(source, target, live=True, state=state)
        finally:
            over.set()
            writer.join()
        assert failures == []
        opened.execute("PutItem", {"TableName": NAME, "Item": order(COUNT + 60)})
        done = copy(source, target, cut_over=True, state=state)
        assert done.is_complete, done.comparisons
        with backend(target) as copied:
            assert items(copied) == items(opened)
    assert diff(source, target, segments=3).is_equal


def test_differences_over_http(url: str, tmp_path: Path) -> None:
    file = tmp_path / "file.db"
    with backend(file) as one, backend(url) as two:
        for each in (one, two):
            create(each)
            fill(each, 100)
        two.execute("DeleteItem", {"TableName": NAME, "Key": key_of(order(4))})
        two.execute("PutItem", {"TableName": NAME, "Item": {**order(5), "total": {"N": "9"}}})
    found = diff(file, url).comparisons[NAME]
    assert (found.only_in_source, found.only_in_target, found.changed) == (1, 0, 1)
    shown = {each.key["number"]["N"]: each.attributes for each in found.examples}
    assert shown["5"] == {"total": ({"N": "0"}, {"N": "9"})}


def test_an_engine_without_streams_is_not_followed(tmp_path: Path) -> None:
    with isotone.open() as database, running_server(database) as address:
        create(database)
        with pytest.raises(Unsupported, match="without --live"):
            copy(f"{address}?engine=azure-table", ":memory:", live=True)


def test_what_the_target_lacks_is_said_first(tmp_path: Path) -> None:
    with (
        isotone.open() as source,
        isotone.open() as database,
        running_server(database) as address,
    ):
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
        create(source, StreamSpecification=stream, Tags=[{"Key": "a", "Value": "b"}])
        fill(source, 10)
        notices: list[str] = []
        target = f"{address}?engine=alternator"
        done = copy(source, target, notice=notices.append)
        assert done.is_complete
        assert notices == [
            "Orders: the projection of index by_status: it will have everything",
            "Orders: the stream: Alternator has none",
        ]
        table = database.execute("DescribeTable", {"TableName": NAME})["Table"]
        assert table["GlobalSecondaryIndexes"][0]["Projection"] == {"ProjectionType": "ALL"}
        assert items(database) == items(source)


def test_a_table_is_copied_to_azure_and_back(tmp_path: Path) -> None:
    if why := azurite.missing():
        pytest.skip(why)
    first, last = tmp_path / "first.db", tmp_path / "last.db"
    with isotone.open(first) as source:
        create(source)
        fill(source, 150)
    notices: list[str] = []
    with azurite.serve(tmp_path) as address:
        there = copy(first, address, notice=notices.append, state=tmp_path / "1")
        assert there.is_complete, there.missing
        assert "Orders: global index by_status: Azure Table storage has none" in notices
        found = diff(first, address).comparisons[NAME]
        assert (found.differing, found.source_items, found.target_items) == (0, 150, 150)
        assert copy(address, last, state=tmp_path / "2").is_complete
        with pytest.raises(Unsupported, match="without --live"):
            copy(address, tmp_path / "other.db", live=True)
    with isotone.open(first) as source, isotone.open(last) as target:
        assert items(source) == items(target)
