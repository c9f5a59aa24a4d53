"""With --workers: adds up the metrics (`/metrics`) and hot keys (`/hotkeys`) of all processes of a server.

Counters, histograms and gauges of a process's own (connections, bodies, memory) are summed. Gauges of the shared file, such
as its size, are the largest value of any process. Stream lag is the writer's, because only the writer reads streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from isotone.server.exposition import Labels, MetricFamily, MetricSample
from isotone.server.hot_keys import SHOWN

_SAME_FOR_ALL: Final = frozenset(
    [
        "isotone_bodies_limit_bytes",
        "isotone_disk_free_bytes",
        "isotone_file_bytes",
        "isotone_tables",
        "isotone_wal_bytes",
    ]
)
_OF_THE_WRITER: Final = frozenset(["isotone_stream_lag_seconds"])

packed: Final = msgspec.msgpack.Encoder().encode
"""Encodes metric families for another process."""
unpacked: Final = msgspec.msgpack.Decoder(list[MetricFamily]).decode


class Gathering:
    """Collects the answers of `number` processes, and passes them to `then`. A process that has ended has no answer."""

    def __init__(self, number: int, then: Callable[[list[bytes]], object]) -> None:
        self._missing = number
        self._then = then
        self._parts: list[bytes] = []
        if not number:
            then([])

    def take(self, part: object) -> None:
        """Take the answer of one process, or the error of one that has ended; after the last, call `then`."""
        self._missing -= 1
        if isinstance(part, bytes):
            self._parts.append(part)
        if not self._missing:
            self._then(self._parts)


def all_families(
    of_writer: Iterable[MetricFamily], of_fronts: Sequence[bytes]
) -> list[MetricFamily]:
    """The metrics of a server, from those of its writer and the `packed` ones of its fronts."""
    families = {family.name: family for family in of_writer}
    values = {name: _by_series(family) for name, family in families.items()}
    for part in of_fronts:
        for family in unpacked(part):
            name = family.name
            if name in _OF_THE_WRITER:
                continue
            families.setdefault(name, family)
            known = values.setdefault(name, {})
            for series, value in _by_series(family).items():
                before = known.get(series, 0.0)
                known[series] = max(before, value) if name in _SAME_FOR_ALL else before + value
    return [
        family._replace(
            samples=[MetricSample(value, *series) for series, value in values[name].items()]
        )
        for name, family in families.items()
    ]


def _by_series(family: MetricFamily) -> dict[tuple[Labels, str], float]:
    return {(labels, suffix): value for value, labels, suffix in family.samples}


class _Key(msgspec.Struct):
    table: str
    key: str
    reads: int
    writes: int


class _HotKeys(msgspec.Struct):
    seconds: float
    requests: int
    looked_at: int
    keys: list[_Key]


def all_hot_keys(parts: Sequence[bytes]) -> bytes:
    """The most used keys of all fronts, from the `/hotkeys` JSON of each and in the same form."""
    known: dict[tuple[str, str], _Key] = {}
    every = [msgspec.json.decode(part, type=_HotKeys) for part in parts]
    for each in every:
        for key in each.keys:
            found = known.setdefault((key.table, key.key), key)
            if found is not key:
                found.reads += key.reads
                found.writes += key.writes
    used = sorted(known.values(), key=lambda key: -(key.reads + key.writes))
    return msgspec.json.encode(
        _HotKeys(
            max((each.seconds for each in every), default=0.0),
            sum(each.requests for each in every),
            sum(each.looked_at for each in every),
            used[:SHOWN],
        )
    )
