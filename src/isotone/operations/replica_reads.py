"""Reads from a replica of PostgreSQL: eventually consistent reads go to the one that the address names.

GetItem, BatchGetItem, Query and Scan without ConsistentRead go to a second engine, over the replica. All other requests go
to the primary, and so does a read for which the replica has no answer: it is away, it does not have the table yet, or
this thread is in a block of the primary's engine.

Such reads never go back in time within one process. Every commit raises the store's revision, and a replica that shows an
older one than any answer so far has no answer. It is then left alone for a moment, as one that failed is.

A database without a replica has the plain `Api` (`api_over`), which knows nothing of this.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from isotone.engine.engine import Engine
from isotone.errors import ApiError, IsotoneError, StorageError, TakesLong
from isotone.operations.action import ACTIONS
from isotone.operations.api import Answered, Api
from isotone.operations.request_decoding import decode, decode_mapping
from isotone.operations.request_members import ApiStructure

log: logging.Logger = logging.getLogger("isotone")

EVENTUAL: Final = frozenset({"BatchGetItem", "GetItem", "Query", "Scan"})
"""The actions that a replica may answer."""
_REST: Final = 1.0  # seconds in which a replica that had no answer is not asked
_RESTS_TO_ATTEMPT: Final = 10  # the same, at least, in units of the time that it took to notice
_LONGEST_REST: Final = 30.0

T = TypeVar("T")
_Read: TypeAlias = Callable[[Api, Sequence[int]], Sequence[T | Exception]]
"""Answers some of several requests, given by their places; an exception is what the request would raise."""


def api_over(engine: Engine) -> Api:
    """The API over an engine, with reads from a replica if its store has one."""
    open_replica = getattr(engine.store, "replica", None)  # only PostgreSQL has replicas
    return Api(engine) if open_replica is None else ReplicaReads(engine, open_replica)


class ReplicaReads(Api):
    """An `Api` whose eventually consistent reads are answered by a replica."""

    __slots__ = ("_newest", "_open", "_primary", "_reason", "_replica", "_rests_until")

    def __init__(self, engine: Engine, open_replica: Callable[[], Any]) -> None:
        super().__init__(engine)
        self._open = open_replica
        self._primary = Api(engine)
        self._replica: Api | None = None
        self._newest = b""  # the newest revision that an answer has shown
        self._rests_until = 0.0
        self._reason = ""  # why it rests

    def send(self, operation: str, body: bytes, is_alone: bool = True) -> bytes:
        """The same as `Api.send`."""
        if not is_alone or not _is_eventual(operation, body, decode):
            return super().send(operation, body, is_alone)
        return self._answer_of(lambda api: api.send(operation, body))

    def execute(
        self, operation: str, request: Mapping[str, Any], *, json_items: bool = False
    ) -> dict[str, Any]:
        """The same as `Api.execute`."""
        if not _is_eventual(operation, request, decode_mapping):
            return super().execute(operation, request, json_items=json_items)
        return self._answer_of(lambda api: api.execute(operation, request, json_items=json_items))

    def send_reads(self, requests: Sequence[tuple[str, bytes]]) -> list[Answered]:
        """The same as `Api.send_reads`."""
        eventual = [place for place, each in enumerate(requests) if _is_eventual(*each, decode)]
        others = sorted({*range(len(requests))}.difference(eventual))
        answers: dict[int, Answered] = {}
        if others:
            answers.update(
                zip(others, super().send_reads([requests[place] for place in others]), strict=True)
            )

        def read(api: Api, places: Sequence[int]) -> list[Answered]:
            return api.send_reads([requests[eventual[place]] for place in places])

        answers.update(zip(eventual, self._answers(len(eventual), read), strict=True))
        return [answers[place] for place in range(len(requests))]

    def close(self) -> None:
        """Close the database, and the session of the replica."""
        if self._replica is not None:
            self._replica.close()
        self._rests_until = float("inf")
        super().close()

    def _answer_of(self, call: Callable[[Api], T]) -> T:
        """The answer of one request; raises what it raises."""

        def read(api: Api, _: Sequence[int]) -> list[T | Exception]:
            try:
                return [call(api)]
            except IsotoneError as error:
                return [error]

        (answer,) = self._answers(1, read)
        try:
            if isinstance(answer, Exception):
                raise answer
            return answer
        finally:
            del answer  # breaks the reference cycle through the traceback

    def _answers(self, count: int, read: _Read[T]) -> list[T | Exception]:
        """The answers of so many requests: the replica's, and the primary's where that has none."""
        answers = self._replicas_answers(range(count), read)
        left = [place for place in range(count) if place not in answers]
        if left:
            self._primary.served = self.served
            found = read(self._primary, left)
            if not all(isinstance(answer, Exception) for answer in found):
                self._newest = max(self._newest, _revision(self.engine))
            answers.update(zip(left, found, strict=True))
        return [answers[place] for place in range(count)]

    def _replicas_answers(self, places: Sequence[int], read: _Read[T]) -> dict[int, T | Exception]:
        """By their places, the answers that the replica has."""
        engine = self.engine
        began = time.monotonic()
        if began < self._rests_until or engine.readers.paused or engine.lock._is_owned():
            return {}
        try:
            replica = self._replica or self._opened()
            found = self._read_alone(replica, places, read)
        except IsotoneError as error:
            self._rest(began, error)
            return {}
        answers = dict(zip(places, found, strict=True))
        for place, answer in zip(places, found, strict=True):
            if isinstance(answer, Exception) and not isinstance(answer, TakesLong):
                del answers[place]
                if not isinstance(answer, ApiError):
                    self._rest(began, answer)
        return answers

    def _read_alone(
        self, replica: Api, places: Sequence[int], read: _Read[T]
    ) -> Sequence[T | Exception]:
        """Read while no other thread does; raises `StorageError` if that was older than an earlier answer."""
        engine = replica.engine
        engine.lock.acquire()
        try:
            replica.served = self.served
            engine.catalog.share_units(self.engine.catalog.units)
            found = read(replica, places)
            revision = _revision(engine)
            if revision < self._newest:
                raise StorageError("it is older than what was read before")
            self._newest = revision
            return found
        except BaseException as error:
            if not isinstance(error, IsotoneError):
                engine.abandon()
            raise
        finally:
            if engine.lock._is_owned():
                engine.lock.release()

    def _opened(self) -> Api:
        engine = self.engine
        with engine.readers.lock:
            if self._replica is None:
                store = self._open()
                try:
                    replica = Engine(
                        store, clock=engine.clock, region=engine.region, account=engine.account
                    )
                except BaseException:
                    store.close()
                    raise
                self._replica = Api(replica)
            return self._replica

    def _rest(self, began: float, reason: Exception) -> None:
        """Do not ask the replica for some time: an attempt to connect may hold up the event loop."""
        now = time.monotonic()
        rest = min(_RESTS_TO_ATTEMPT * (now - began), _LONGEST_REST)
        self._rests_until = now + max(_REST, rest)
        if str(reason) != self._reason:
            self._reason = str(reason)
            log.warning("the primary answers reads that its replica should: %s", reason)


def _is_eventual(
    operation: str, request: T, decoded: Callable[[type[ApiStructure], T], Any]
) -> bool:
    """Whether a replica may answer a request. The primary refuses one that is not valid."""
    if operation not in EVENTUAL:
        return False
    try:
        asked = decoded(ACTIONS[operation].request, request)
    except Exception:  # noqa: BLE001 - the primary raises it again, as its answer
        return False
    parts = asked.request_items.values() if operation == "BatchGetItem" else (asked,)
    return not any(part.consistent_read for part in parts)


def _revision(engine: Engine) -> bytes:
    """The newest revision that an engine or one of its readers has seen."""
    stores: list[Any] = [engine.store, *(reader.store for reader in engine.readers.opened)]
    found: bytes = max(store.revision for store in stores)
    return found
