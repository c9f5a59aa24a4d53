"""`/hotkeys`: which partition keys are read and written most, counted from a sample of requests while it is polled.

Counting begins with a `GET /hotkeys` and ends 15 seconds after the last one, so it costs nothing otherwise. Finding a
request's keys decodes it a second time, so a busy server samples: one request in n, at random, counts n times. Requests
that take long to decode are not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import random
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from isotone.errors import IsotoneError
from isotone.server.dispatcher import LARGE_BODY, OnRequest

if TYPE_CHECKING:  # most servers have no users
    from isotone.server.policies import PolicyQuery

_STOPS_AFTER: Final = 15.0  # seconds without a GET /hotkeys until counting ends
_SAMPLED_PER_SECOND: Final = 250  # requests, roughly
_MOST_KEYS: Final = 4096  # keys with counts; beyond them, the rarer half is dropped
SHOWN: Final = 200
_WRITES: Final = ("Put", "Update", "Delete", "BatchWrite", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete")  # fmt: skip


class KeyLookup(Protocol):
    """What hot keys need from the server's service: the keys of a request."""

    def accesses(self, operation: str, body: bytes, region: str = "") -> Sequence[PolicyQuery]: ...

    def is_long(self, operation: str, body: bytes) -> bool: ...


class HotKeys:
    """The counts of one server. `watch(function)` makes the server call it with each request; `watch(None)` ends that."""

    def __init__(self, service: KeyLookup, watch: Callable[[OnRequest | None], None]) -> None:
        self._service = service
        self._watch = watch
        self._until = 0.0  # when counting ends
        self._reset()

    def _reset(self) -> None:
        self._began = time.monotonic()
        self._counts: dict[tuple[str, str], list[int]] = {}
        self._requests = self._sampled = 0
        self._second = self._in_second = 0
        self._every = 1

    def json(self) -> bytes:
        """The counts since the first call, the most used keys first. The first call starts the counting."""
        now = time.monotonic()
        if now > self._until:
            self._reset()
            self._watch(self._on_request)
        self._until = now + _STOPS_AFTER
        used = sorted(self._counts.items(), key=lambda each: -sum(each[1]))[:SHOWN]
        return msgspec.json.encode(
            {
                "seconds": round(now - self._began, 3),
                "requests": self._requests,
                "looked_at": self._sampled,
                "keys": [
                    {"table": table, "key": key, "reads": reads, "writes": writes}
                    for (table, key), (reads, writes) in used
                ],
            }
        )

    def _on_request(self, operation: str, body: bytes, region: str) -> None:
        """Count a request if it is sampled; stop if nobody has polled for a while."""
        now = time.monotonic()
        if now > self._until:
            self._watch(None)
            return
        self._requests += 1
        if int(now) != self._second:
            self._every = max(1, self._in_second // _SAMPLED_PER_SECOND)
            self._second, self._in_second = int(now), 0
        self._in_second += 1
        if (
            (self._every == 1 or random() * self._every < 1)
            and len(body) <= LARGE_BODY
            and not self._service.is_long(operation, body)
        ):
            self._sampled += 1
            self._count_keys(operation, body, region)

    def _count_keys(self, operation: str, body: bytes, region: str) -> None:
        try:
            for access in self._service.accesses(operation, body, region):
                column = 1 if access.action.startswith(_WRITES) else 0
                _, _, name = access.resource.partition(":table/")
                for key in access.values("leadingkeys") or ():
                    self._count((name, key), column)
        except (IsotoneError, KeyError, ValueError, TypeError):
            return  # the request takes long, or is invalid

    def _count(self, key: tuple[str, str], column: int) -> None:
        counts = self._counts.get(key)
        if counts is None:
            if len(self._counts) >= _MOST_KEYS:
                rare = sorted(self._counts, key=lambda each: sum(self._counts[each]))
                for each in rare[: _MOST_KEYS // 2]:
                    del self._counts[each]
            counts = self._counts[key] = [0, 0]
        counts[column] += self._every
