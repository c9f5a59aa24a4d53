"""The databases of pytest's fixtures: `isotone_schema` runs once; `rolled_back` in engine/engine.py undoes each test."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import isotone
from isotone.clock import Clock, ManualClock, SystemClock, monotonic_of
from isotone.errors import UsageError
from isotone.testing.process_s3 import ProcessS3

if TYPE_CHECKING:
    from isotone.backends.embedded import Database
    from isotone.client import Client

Schema = Callable[["Client"], object]

_ADVICE: Final = "activate moto's mock_aws in the test, or name a folder for the buckets in pytest's configuration: isotone_s3 = folder"


class Prepared:
    """One database in memory per schema, created when a test first needs it."""

    def __init__(self, *, clock: Clock, region: str, s3: str = "") -> None:
        self._clock = clock
        self._region = region
        self._s3 = s3 or ProcessS3(region=region, advice=_ADVICE)
        self._databases: dict[Schema | None, Database] = {}

    @contextmanager
    def fresh(self, schema: Schema | None) -> Iterator[Database]:
        """The schema's database; writes inside the block are rolled back. Cost: as much as was written."""
        database = self._databases.get(schema)
        if database is None:
            database = self._databases[schema] = self._make(schema)
        with database.rolled_back():
            yield database

    def close(self) -> None:
        for database in self._databases.values():
            database.close()

    def _make(self, schema: Schema | None) -> Database:
        database = isotone.open(clock=self._clock, region=self._region, s3=self._s3)
        if schema is not None:
            with _botocore_on(database):
                made = schema(database.client())
            if inspect.iscoroutine(made):
                made.close()
                raise UsageError(
                    "isotone_schema gave an async function, which nobody awaits; give a plain one, which may use "
                    "asyncio.run"
                )
        return database


class SwitchedClock:
    """The system clock, or a `ManualClock` while a test has stopped it."""

    __slots__ = ("_before", "_source")

    def __init__(self) -> None:
        self._source: Clock = SystemClock()
        self._before = 0.0  # the monotonic time of the switch

    def now(self) -> float:
        return self._source.now()

    def monotonic(self) -> float:
        return self._before + monotonic_of(self._source)()

    @contextmanager
    def stopped(self) -> Iterator[ManualClock]:
        """Use a manual clock inside the block."""
        running = self._source, self._before
        clock = ManualClock(self.now())
        self._source, self._before = clock, self.monotonic()
        try:
            yield clock
        finally:
            self._source, self._before = running


def _botocore_on(database: Database) -> AbstractContextManager[Any]:
    """Connect boto3 to the database, if the program has imported it."""
    if "botocore" not in sys.modules:
        return nullcontext()
    from isotone.testing.mock import mock_dynamodb

    return mock_dynamodb(database=database)
