"""`Faults`: the faults that a test orders, and the databases that they apply to.

A request passes through the faults in the order in which they were ordered, and then reaches the database. Each fault
has its own random generator, so it strikes the same calls whatever other faults are ordered.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from inspect import signature
from typing import Any, Final, TypeVar, get_type_hints

import msgspec

from isotone import errors
from isotone.backends.interception import Interceptor
from isotone.backends.interface import Native, Request, Response, with_token
from isotone.backends.request_retries import Retries
from isotone.clock import Clock, ManualClock, SystemClock
from isotone.errors import ApiError, ConnectionFailed, UsageError
from isotone.testing.faults.failing import (
    Conflicts,
    Delays,
    ExpiredIterators,
    Failing,
    LostAnswers,
    Unprocessed,
)
from isotone.testing.faults.replica_lag import ReplicaLag
from isotone.testing.faults.rules import InterceptedCall, Proceed, Rule, When
from isotone.testing.faults.serving import FaultyService
from isotone.testing.faults.slow_tables import SlowTables
from isotone.testing.faults.stale_reads import StaleReads
from isotone.testing.faults.throttling import (
    ErrorName,
    Throttling,
    is_throttle,
    throttled_without_units,
)

R = TypeVar("R", bound=Rule)

_BATCHES: Final = ("BatchWriteItem", "BatchGetItem")
_CAN_CONFLICT: Final = (
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "TransactWriteItems",
    "TransactGetItems",
    "ExecuteStatement",
    "ExecuteTransaction",
)
_MESSAGES: Final[Mapping[str, str]] = {
    "InternalServerError": "Internal server error",
    "ReplicatedWriteConflictException": (
        "The request was rejected because one or more items in the request are being modified "
        "by a request in another Region."
    ),
}
FAULTS: Final = (
    "conflict",
    "delay",
    "expire_iterators",
    "fail",
    "lag_replicas",
    "leave_unprocessed",
    "lose_answers",
    "slow_tables",
    "stale_reads",
    "throttle",
)
"""The faults that `order` accepts: the names of the methods below."""


class Faults(Interceptor):
    """Faults to order, deterministic from a seed. Without any, requests pass through.

    Methods that order a fault return it: its `count` is how often it struck, `stop()` ends it. `at` is the number of a
    matching call, or several numbers, from 1. `rate` is the probability for each matching call, `times` the most calls
    that are struck. Time is measured by `clock`; waiting advances a `ManualClock`, and takes real time with any other.
    """

    def __init__(
        self, seed: int = 0, *, clock: Clock | None = None, retries: Retries | None = None
    ) -> None:
        self._seed = seed
        self._clock: Clock = clock or SystemClock()
        self._retries = retries or Retries()
        self._rules: list[Rule] = []
        self._databases: list[Any] = []
        self._ordered = 0

    # Databases

    @contextmanager
    def on(self, *databases: Any) -> Iterator[None]:
        """Inside the block, the faults strike every request to these databases, from any client.

        A store repeats throttled and lost requests as it does with a server; SDKs have retries of their own.
        """
        if not databases:
            yield
            return
        first, *others = databases
        self._databases.append(first)
        try:
            for lag in self._lags():
                lag.begin(first)
            with first.intercepted(self), self.on(*others):
                yield
        finally:
            self._databases.remove(first)
            for lag in self._lags():
                lag.end(first)

    def _lags(self) -> list[ReplicaLag]:
        return [rule for rule in self._rules if isinstance(rule, ReplicaLag)]

    def around(self, backend: Any) -> FaultyBackend:
        """A backend for `isotone.connect` that puts the faults before another backend, such as a server's."""
        return FaultyBackend(self, backend)

    def served(self, database: Any) -> FaultyService:
        """The database as a service whose faults are ordered over HTTP, for `running_server(…, threaded=True)`."""
        return FaultyService(self, database)

    # Faults

    def throttle(
        self,
        table: str | None = None,
        *,
        index: str | None = None,
        reads: float | None = None,
        writes: float | None = None,
        partition_reads: float = 3000,
        partition_writes: float = 1000,
        burst: float = 1.0,
        error: ErrorName | None = None,
    ) -> Rule:
        """Throttle above `reads` and `writes` units per second, by default those that the table declares.

        `index` throttles a global index instead. A partition key has limits of its own. `burst` is for how many
        seconds unused units are kept. The `error` follows from the billing mode of the table, unless it is given.
        """
        return self._add(
            Throttling(
                table,
                index=index,
                reads=reads,
                writes=writes,
                partition_reads=partition_reads,
                partition_writes=partition_writes,
                burst=burst,
                error=error,
                clock=self._clock,
            )
        )

    def fail(
        self,
        operation: str | Collection[str] | None,
        error: str = "ProvisionedThroughputExceededException",
        *,
        table: str | None = None,
        at: int | Collection[int] | None = None,
        rate: float = 1.0,
        times: int | None = None,
    ) -> Rule:
        """Answer with an error of the API instead of executing the request."""
        when = self._when(operation, table, at=at, rate=rate, times=times)
        return self._add(Failing(when, _error_named(error)))

    def conflict(
        self,
        table: str | None = None,
        *,
        at: int | Collection[int] | None = None,
        rate: float = 1.0,
        times: int | None = None,
    ) -> Rule:
        """Refuse writes and transactions as if another transaction held one of their items."""
        return self._add(Conflicts(self._when(_CAN_CONFLICT, table, at=at, rate=rate, times=times)))

    def lose_answers(
        self,
        operation: str | Collection[str] | None = None,
        *,
        table: str | None = None,
        at: int | Collection[int] | None = None,
        rate: float = 1.0,
        times: int | None = None,
    ) -> Rule:
        """Execute requests, and break the connection instead of answering."""
        return self._add(LostAnswers(self._when(operation, table, at=at, rate=rate, times=times)))

    def delay(
        self,
        seconds: float,
        operation: str | Collection[str] | None = None,
        *,
        table: str | None = None,
        at: int | Collection[int] | None = None,
        rate: float = 1.0,
        times: int | None = None,
    ) -> Rule:
        """Wait before a request is executed, and before other faults strike it."""
        if seconds < 0:
            raise UsageError(f"seconds={seconds!r} is negative; give the seconds to wait")
        when = self._when(operation, table, at=at, rate=rate, times=times)
        rule = Delays(when, seconds, self._wait)
        # first, because others may hold a lock while they call the next one
        self._rules.insert(0, rule)
        return rule

    def leave_unprocessed(
        self,
        share: float = 0.5,
        operation: str | Collection[str] | None = _BATCHES,
        *,
        table: str | None = None,
        at: int | Collection[int] | None = None,
        rate: float = 1.0,
        times: int | None = None,
    ) -> Rule:
        """Leave about this share of the entries of a batch unprocessed, but never all."""
        if not 0 <= share <= 1:
            raise UsageError(f"share={share!r} is not a share; give a number from 0 to 1")
        when = self._when(operation, table, at=at, rate=rate, times=times)
        return self._add(Unprocessed(when, share))

    def stale_reads(
        self,
        table: str | None = None,
        *,
        index: str | None = None,
        seconds: float = 0.0,
        writes: int = 0,
        at: int | Collection[int] | None = None,
        rate: float = 1.0,
        times: int | None = None,
    ) -> Rule:
        """Answer eventually consistent reads as of some seconds ago, or as of some writes ago.

        With `index`, only reads of that index are stale.
        """
        if (seconds > 0) == (writes > 0):
            raise UsageError("stale_reads takes either seconds= or writes=, as a positive number")
        when = self._when(None, table, at=at, rate=rate, times=times)
        return self._add(
            StaleReads(when, index=index, seconds=seconds, writes=writes, clock=self._clock)
        )

    def expire_iterators(
        self,
        *,
        at: int | Collection[int] | None = None,
        rate: float = 1.0,
        times: int | None = None,
    ) -> Rule:
        """Make the shard iterators of these calls of GetRecords expire, for good."""
        when = self._when("GetRecords", None, at=at, rate=rate, times=times)
        return self._add(ExpiredIterators(when))

    def lag_replicas(self, seconds: float = 0.0, *, paused: bool = False) -> Rule:
        """Deliver writes to other replicas only after so many seconds, or not at all while `paused`.

        It applies to the databases that the faults are on. When it ends, delayed writes are delivered.
        """
        if (seconds > 0) == paused:
            raise UsageError(
                "lag_replicas takes either seconds=, as a positive number, or paused=True"
            )
        rule = self._add(ReplicaLag(seconds, paused=paused))
        for database in self._databases:
            rule.begin(database)
        return rule

    def slow_tables(
        self,
        table: str | None = None,
        *,
        creating: float = 0.0,
        updating: float = 0.0,
        deleting: float = 0.0,
        indexes: float = 0.0,
    ) -> Rule:
        """Keep tables CREATING, UPDATING and DELETING, and new indexes CREATING, for some seconds."""
        seconds = {"CREATING": creating, "UPDATING": updating, "DELETING": deleting}
        return self._add(SlowTables(table, seconds, indexes, self._clock))

    def order(self, fault: str, **options: Any) -> Rule:
        """Order a fault by the name of its method, such as `order("throttle", writes=5)`."""
        if fault not in FAULTS:
            raise UsageError(f"{fault!r} is not a fault; order one of {', '.join(FAULTS)}")
        method = getattr(self, fault)
        _check_options(method, options)
        rule: Rule = method(**options)
        rule.order = {"fault": fault, **options}
        return rule

    def clear(self) -> None:
        """End all faults."""
        for rule in self._rules:
            rule.stop()
        self._rules.clear()

    @property
    def ordered(self) -> tuple[Rule, ...]:
        """The faults that were ordered and have not ended."""
        return tuple(rule for rule in self._rules if not rule.is_stopped)

    # Requests

    def send(
        self, operation: str, request: Request, proceed: Callable[[str, Request], Response]
    ) -> Response:
        """Answer a request: one attempt."""

        def ask(call: InterceptedCall) -> Response:
            return proceed(call.operation, call.request)

        answer: Proceed = ask
        for rule in reversed(self._rules):
            if not rule.is_stopped:
                answer = partial(rule.answer, proceed=answer)
        return answer(InterceptedCall(operation, request, proceed))

    def execute(
        self, operation: str, request: Request, proceed: Callable[[str, Request], Response]
    ) -> Response:
        """Answer a request, with the retries that a store does on a server."""
        request = with_token(operation, request)
        attempts = self._retries.begin()
        while True:
            try:
                return self.send(operation, request, proceed)
            except (ApiError, ConnectionFailed) as error:
                delay = attempts.delay(error)
                if delay is None:
                    raise
            self._wait(delay)

    def _add(self, rule: R) -> R:
        self._rules.append(rule)
        return rule

    def _when(
        self,
        operation: str | Collection[str] | None,
        table: str | None,
        *,
        at: int | Collection[int] | None,
        rate: float,
        times: int | None,
    ) -> When:
        self._ordered += 1
        own = random.Random(f"{self._seed} {self._ordered}")
        return When(operation, table, at=at, rate=rate, times=times, random=own)

    def _wait(self, seconds: float) -> None:
        if isinstance(self._clock, ManualClock):
            self._clock.advance(seconds)
        else:
            time.sleep(seconds)


class FaultyBackend(Native):
    """A backend that puts faults before another backend."""

    def __init__(self, faults: Faults, backend: Any) -> None:
        self._faults = faults
        self._backend = backend

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        return self._faults.execute(operation, request, self._backend.execute)


def _check_options(method: Callable[..., Rule], options: Mapping[str, Any]) -> None:
    """Raise UsageError unless a fault takes these options, of these types."""
    fault = method.__name__
    parameters = signature(method).parameters
    kinds = get_type_hints(method)
    for name, value in options.items():
        if name not in parameters:
            raise UsageError(f"{fault} has no option {name!r}; it has {', '.join(parameters)}")
        try:
            msgspec.convert(value, kinds[name])
        except msgspec.ValidationError as error:
            raise UsageError(f"{fault}: {name}={value!r} is of a wrong type: {error}") from None
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in options:
            raise UsageError(f"{fault} needs the option {name!r}")


def _error_named(name: str) -> Callable[[InterceptedCall], Exception]:
    if is_throttle(name):
        return lambda call: throttled_without_units(name, call)
    kind: Any = vars(errors).get(name)
    if not (isinstance(kind, type) and issubclass(kind, ApiError)):
        raise UsageError(f"{name!r} is not an error of the API; docs/errors.md lists them")
    return lambda call: kind(_MESSAGES.get(name, f"{name} (a fault that was ordered)"))
