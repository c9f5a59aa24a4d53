"""How a worker goes about its work, and what it tells about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from isotone.errors import UsageError

_ADDED: Final = ("shards", "records", "deliveries", "retries", "dead_letters", "lost")
_LONG: Final = 5.0  # seconds, from which on a call of a handler is worth a word


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How a worker goes about its work.

    `lease`: seconds after which the shards of a member that says nothing more are given to others.
    `batch`: records that are read at once, up to 1,000. `attempts`: how often a handler is tried with one
    event before that is a dead letter; the wait between is random, its bound starts at `base` seconds,
    doubles, and stops at `longest`. `poll`: seconds between looks at a shard that has nothing new.
    `start`: where a worker begins that has never run: at the oldest record that is kept (TRIM_HORIZON),
    or with what comes from then on (LATEST).
    """

    lease: float = 30.0
    batch: int = 1000
    attempts: int = 5
    base: float = 0.1
    longest: float = 10.0
    poll: float = 0.2
    start: Literal["TRIM_HORIZON", "LATEST"] = "TRIM_HORIZON"

    def __post_init__(self) -> None:
        if not 1 <= self.batch <= 1000:
            raise UsageError(f"batch is from 1 to 1000 records, not {self.batch}")
        if self.attempts < 1:
            raise UsageError(f"an event is tried once or more, not {self.attempts} times")
        if self.lease <= 0:
            raise UsageError(f"a lease is for more than 0 seconds, not for {self.lease:g}")
        if self.poll < 0:
            raise UsageError(f"poll is 0 seconds or more, not {self.poll:g}")
        if self.start not in ("TRIM_HORIZON", "LATEST"):
            raise UsageError(f"a worker starts at TRIM_HORIZON or LATEST, not at {self.start!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerCall:
    """A call of a handler that has not come back yet: with which event, and for how many seconds."""

    handler: str
    event: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.handler} for {self.seconds:,.0f} s at {self.event}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerProgress:
    """What a worker has done so far.

    `records` were handled or passed over, `rate` of them in a second of late; `shards` are held now, and
    the one that is furthest behind is `lag` seconds behind (0 where all is read). `deliveries` counts calls
    of handlers that succeeded, `retries` those that failed and were tried again, `dead_letters` those
    that were given up. `lost` counts shards of which records may have been dropped before they were read.
    `calling` is the call of a handler that has taken the longest of those that run.
    """

    shards: int = 0
    records: int = 0
    deliveries: int = 0
    retries: int = 0
    dead_letters: int = 0
    lost: int = 0
    lag: float = 0.0
    rate: float = 0.0
    calling: HandlerCall | None = None

    def __str__(self) -> str:
        shards = _counted(self.shards, "shard")
        told = [f"lag {self.lag:,.1f} s, {self.rate:,.0f}/s, {shards}, {self.outcome}"]
        if self.calling is not None and self.calling.seconds >= _LONG:
            told.append(str(self.calling))
        return ", ".join(told)

    @property
    def outcome(self) -> str:
        """What has come of it, in words."""
        told = [_counted(self.records, "record")]
        if self.dead_letters:
            told.append(_counted(self.dead_letters, "dead letter"))
        if self.lost:
            told.append(f"{_counted(self.lost, 'shard')} lost")
        if self.retries:
            told.append("1 retry" if self.retries == 1 else f"{self.retries:,} retries")
        return ", ".join(told)


Progress = Callable[[WorkerProgress], None]


def together(parts: Iterable[WorkerProgress]) -> WorkerProgress:
    """The progress of several members."""
    each = list(parts)
    sums: dict[str, Any] = {name: sum(getattr(one, name) for one in each) for name in _ADDED}
    calls = [one.calling for one in each if one.calling is not None]
    return WorkerProgress(
        **sums,
        lag=max((one.lag for one in each), default=0.0),
        calling=max(calls, key=lambda call: call.seconds, default=None),
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
