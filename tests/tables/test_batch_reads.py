"""Reads of many items by their keys: what the service leaves out is asked for again, but not for ever."""

from __future__ import annotations

from typing import Any

import pytest

from isotone.errors import BatchIncomplete
from isotone.tables.batch_reads import read_items
from isotone.tables.pace import Pace
from isotone.tables.retries import PACED

KEYS = [{"pk": {"S": text}} for text in "abc"]


class Scarce:
    """A service that answers one key of every so many requests, or none at all."""

    def __init__(self, every: int | None) -> None:
        self.asked = 0
        self._every = every

    def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
        self.asked += 1
        keys = request["RequestItems"]["t"]["Keys"]
        answers = self._every is not None and self.asked % self._every == 0
        found, left = (keys[:1], keys[1:]) if answers else ([], keys)
        unprocessed = {"t": {"Keys": left, "ConsistentRead": True}} if left else {}
        return {"Responses": {"t": found}, "UnprocessedKeys": unprocessed}


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "throttled", lambda pace, attempt: None)


def test_keys_that_are_left_out_are_read_in_the_end() -> None:
    service = Scarce(every=PACED.attempts)
    assert read_items(service, "t", KEYS, Pace()) == KEYS
    assert service.asked == 3 * PACED.attempts


def test_keys_that_are_always_left_out_end_the_read() -> None:
    """It asked for ever."""
    service = Scarce(every=None)
    with pytest.raises(BatchIncomplete, match="3 keys of 3 are not read"):
        read_items(service, "t", KEYS, Pace())
    assert service.asked == PACED.attempts + 1
