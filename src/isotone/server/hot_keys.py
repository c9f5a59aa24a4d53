"""Which partition keys are read and written most: a sample of the requests, while somebody asks for it.

Nothing is counted until `GET /hotkeys` is asked, and counting ends when nobody has asked for a while; a server that is not
asked pays nothing. A look at a request decodes it a second time, so only some are looked at: all of a quiet server's,
and one of n of a busy one, by chance, where each stands for n. Requests that take long to decode are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import random
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from isotone.errors import IsotoneError
from isotone.server.dispatcher import LARGE_BODY, See

if TYPE_CHECKING:  # most servers have no users
    from isotone.server.policies import PolicyQuery

_PATIENCE: Final = 15.0  # seconds without a question after which nothing is counted any more
_LOOKS: Final = 250  # requests of a second that are looked at, about
_MOST_KEYS: Final = 4096  # that are counted at once; the rarest are forgotten
SHOWN: Final = 200
_WRITES: Final = ("Put", "Update", "Delete", "BatchWrite", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete")  # fmt: skip


class KeyLookup(Protocol):
    """What knows the keys of a request: the service of the server."""

    def accesses(self, operation: str, body: bytes, region: str = "") -> Sequence[PolicyQuery]: ...

    def is_long(self, operation: str, body: bytes) -> bool: ...


class HotKeys:
    """The counts of one server. `watch` makes the server show its requests, or ends that with None."""

    def __init__(self, service: KeyLookup, watch: Callable[[See | None], None]) -> None:
        self._service = service
        self._watch = watch
        self._until = 0.0  # when watching ends
        self._reset()

    def _reset(self) -> None:
        self._began = time.monotonic()
        self._counts: dict[tuple[str, str], list[int]] = {}
        self._requests = self._looked_at = 0
        self._second = self._in_second = 0
        self._every = 1

    def json(self) -> bytes:
        """What was counted since the first question, the most used keys first; begins to count."""
        now = time.monotonic()
        if now > self._until:
            self._reset()
            self._watch(self._see)
        self._until = now + _PATIENCE
        used = sorted(self._counts.items(), key=lambda each: -sum(each[1]))[:SHOWN]
        return msgspec.json.encode(
            {
                "seconds": round(now - self._began, 3),
                "requests": self._requests,
                "looked_at": self._looked_at,
                "keys": [
                    {"table": table, "key": key, "reads": reads, "writes": writes}
                    for (table, key), (reads, writes) in used
                ],
            }
        )

    def _see(self, operation: str, body: bytes, region: str) -> None:
        """Count a request, or end."""
        now = time.monotonic()
        if now > self._until:
            self._watch(None)
            return
        self._requests += 1
        if int(now) != self._second:
            self._every = max(1, self._in_second // _LOOKS)
            self._second, self._in_second = int(now), 0
        self._in_second += 1
        if (
            (self._every == 1 or random() * self._every < 1)
            and len(body) <= LARGE_BODY
            and not self._service.is_long(operation, body)
        ):
            self._looked_at += 1
            self._look(operation, body, region)

    def _look(self, operation: str, body: bytes, region: str) -> None:
        try:
            for access in self._service.accesses(operation, body, region):
                place = 1 if access.action.startswith(_WRITES) else 0
                _, _, name = access.resource.partition(":table/")
                for key in access.values("leadingkeys") or ():
                    self._count((name, key), place)
        except (IsotoneError, KeyError, ValueError, TypeError):
            return  # it takes long, or is answered with its fault

    def _count(self, key: tuple[str, str], place: int) -> None:
        counts = self._counts.get(key)
        if counts is None:
            if len(self._counts) >= _MOST_KEYS:
                rare = sorted(self._counts, key=lambda each: sum(self._counts[each]))
                for each in rare[: _MOST_KEYS // 2]:
                    del self._counts[each]
            counts = self._counts[key] = [0, 0]
        counts[place] += self._every
