from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from tests.advisor.tickets import fill, places

import isotone


@pytest.fixture
def store() -> Iterator[isotone.Store]:
    clock = isotone.ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
    with isotone.connect(":memory:", clock=clock) as store:
        store.create_tables(places)
        fill(store)
        yield store
