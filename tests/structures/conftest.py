"""Stores of every kind for the tests of structures: in memory (or in PostgreSQL), in a file, over HTTP, DynamoDB Local."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.oracle import optional_dynamodb_local
from tests.postgres_server import database_address

import isotone
from isotone import ManualClock, Store
from isotone.server import running_server

START = 1_800_000_000  # 2027-01-15 08:00:00 UTC

_numbers = itertools.count()


@pytest.fixture
def clock() -> ManualClock:
    """The time of every store of the test."""
    return ManualClock(START)


@pytest.fixture(scope="session")
def dynamodb_local() -> Iterator[str]:
    """The address of Amazon's own DynamoDB Local."""
    with optional_dynamodb_local.dynamodb_local() as server:
        yield server.url


ADDRESSES = ["memory", "file", "http"]
if optional_dynamodb_local.WANTED:
    ADDRESSES.append("dynamodb-local")


@pytest.fixture(params=ADDRESSES)
def address(
    request: pytest.FixtureRequest, tmp_path: object, clock: ManualClock
) -> Iterator[object]:
    """Where the store keeps its tables; servers of ours go by the test's clock, Amazon's by its own."""
    if request.param == "memory":
        with isotone.open(database_address(), clock=clock, stream_shards=4) as database:
            yield database
    elif request.param == "file":
        path = f"{tmp_path}/structures.db"
        with isotone.open(path, durability="process", clock=clock, stream_shards=4) as database:
            yield database
    elif request.param == "http":
        with (
            isotone.open(clock=clock, stream_shards=4) as database,
            running_server(database) as url,
        ):
            yield url
    else:
        yield request.getfixturevalue("dynamodb_local")


@pytest.fixture
def store(address: object, clock: ManualClock) -> Iterator[Store]:
    """A store at the address."""
    with isotone.connect(address, clock=clock) as store:
        yield store


@pytest.fixture
def memory(clock: ManualClock) -> Iterator[Store]:
    """A store in memory, for what is the same everywhere."""
    with (
        isotone.open(clock=clock, stream_shards=4) as database,
        isotone.connect(database, clock=clock) as store,
    ):
        yield store


@pytest.fixture
def table_name() -> str:
    """A name that no other test uses: DynamoDB Local keeps its tables for the whole session."""
    return f"structures-{next(_numbers)}"
