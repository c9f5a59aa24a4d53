"""Databases that are filled once and given to each test as they were then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import isotone
from isotone.clock import Clock, ManualClock, SystemClock

if TYPE_CHECKING:
    from isotone.backends.embedded import Database
    from isotone.client import Client

Schema = Callable[["Client"], object]


class Prepared:
    """One database in memory for each schema, made when a test first needs it."""

    def __init__(self, *, clock: Clock, region: str) -> None:
        self._clock = clock
        self._region = region
        self._databases: dict[Schema | None, Database] = {}

    @contextmanager
    def fresh(self, schema: Schema | None) -> Iterator[Database]:
        """The schema's database; what is written meanwhile is undone, at a cost in its proportion."""
        database = self._databases.get(schema)
        if database is None:
            database = self._databases[schema] = self._make(schema)
        with database.rolled_back():
            yield database

    def close(self) -> None:
        for database in self._databases.values():
            database.close()

    def _make(self, schema: Schema | None) -> Database:
        database = isotone.open(clock=self._clock, region=self._region)
        if schema is not None:
            with _botocore_on(database):
                schema(database.client())
        return database


class SwitchedClock:
    """The machine's time, or a `ManualClock` for as long as a test has stopped it."""

    __slots__ = ("_source",)

    def __init__(self) -> None:
        self._source: Clock = SystemClock()

    def now(self) -> float:
        return self._source.now()

    @contextmanager
    def stopped(self) -> Iterator[ManualClock]:
        """Stop the clock; the manual one decides until the end of the block."""
        running = self._source
        clock = ManualClock(running.now())
        self._source = clock
        try:
            yield clock
        finally:
            self._source = running


def _botocore_on(database: Database) -> AbstractContextManager[Any]:
    """Let boto3, if the program uses it, talk to the database."""
    if "botocore" not in sys.modules:
        return nullcontext()
    from isotone.testing.mock import mock_dynamodb

    return mock_dynamodb(database=database)
