"""The queue of exports, imports and bulk operations: a slice of each in turn in the background; retries, failures.

Every job ends: it completes, or it fails with a reason, whatever its slices raise. Only temporary errors are retried:
another process that is writing, and a disk that cannot even record the failure. A job with a damaged record is logged.
While entries of an older format lack checksums, all jobs wait, because damage to these would go unnoticed.

It needs the buckets: in a process without any, the jobs of a file wait until a process has them. Buckets may be behind
a network, so each job has its own thread (`threads`). Only one slice computes at a time. A job that waits for
a bucket gives its turn to the others, and it holds the database's lock only while it reads or writes.
"""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Final, cast
from weakref import WeakKeyDictionary

from isotone.engine import transfers
from isotone.engine.engine import Engine
from isotone.engine.transfers import Export, TransferFailure
from isotone.errors import IsotoneError, StorageBusy, StorageCorrupt
from isotone.exchange.objects import Bucket, ObjectStore, ObjectStoreClosed, StoredObject
from isotone.operations.transfers import export_files, loading

_BUFFER: Final = 256 << 10  # bytes of an object read per turn

log: logging.Logger = logging.getLogger("isotone")


def pending(engine: Engine) -> bool:
    """Whether there is a job that this process can continue."""
    if engine.objects is None:
        return False
    with engine.reading:
        return bool(transfers.running(engine))


def due(engine: Engine) -> list[str]:
    """The ids of the jobs that this process can continue now."""
    if engine.objects is None:
        return []
    with engine.reading:
        return [] if engine.store.is_upgrading() else transfers.running(engine)


def step(engine: Engine) -> bool:
    """Do a slice of every running job; False if there is none, or none can continue."""
    is_going_on = False
    with suppress(ObjectStoreClosed):
        for identity in due(engine):
            is_going_on = step_job(engine, identity) or is_going_on
    return is_going_on


def step_job(engine: Engine, identity: str) -> bool:
    """Do a slice of one job; False if it is over or cannot continue.

    Raises `StorageBusy` if another process is writing, and the job's error if its failure cannot be recorded.
    """
    if engine.objects is None:
        return False
    worker = _worker(engine, engine.objects)
    with worker.alone(identity):
        try:
            return _step(engine, worker, identity)
        except (ObjectStoreClosed, StorageBusy):
            raise
        except Exception as error:  # noqa: BLE001 - a job ends with its reason, whatever it is
            engine.abandon()
            return _fail(engine, identity, error)


def _step(engine: Engine, worker: _TransferWorker, identity: str) -> bool:
    with engine.reading:
        job = transfers.find(engine, identity)
    if job is None or job.ended is not None:
        return False
    if isinstance(job, Export):
        export_files.step(engine, worker.objects, job)
    else:
        loading.step(engine, worker.objects, worker.buffers, job)
    return True


def _fail(engine: Engine, identity: str, error: Exception) -> bool:
    """End a job that cannot continue, with the reason; False if its record is damaged, so that nothing can be done."""
    try:
        with engine.reading:
            job = transfers.find(engine, identity)
        if job is None or job.ended is not None:
            return False
        if isinstance(job, Export):
            export_files.fail(engine, job, _failure_of(error))
        else:
            loading.fail(engine, job, _failure_of(error))
    except StorageCorrupt as damage:
        engine.log_damage(damage)
        return False
    if not isinstance(error, IsotoneError):
        log.error("job %s failed", identity, exc_info=error)
    return True


def _failure_of(error: Exception) -> TransferFailure:
    if isinstance(error, IsotoneError):
        return TransferFailure(type(error).__name__, str(error))
    return TransferFailure("InternalServerError", f"{type(error).__name__}: {error}")


class _TransferWorker:
    """What an engine's work keeps between two slices. Two threads never work on one job at the same time."""

    def __init__(self, engine: Engine, objects: ObjectStore) -> None:
        self._turn = threading.Lock()
        self._jobs: dict[str, threading.Lock] = {}
        self.buffers = loading.Buffers()
        self.objects = _InTurn(objects, self._turn)
        engine.at_close.callback(self.buffers.close_all)

    @contextmanager
    def alone(self, identity: str) -> Iterator[None]:
        """In the block, nobody else works on this job, and no other job computes."""
        with self._jobs.setdefault(identity, threading.Lock()), self._turn:
            yield


class _InTurn:
    """An object store that gives its turn to other jobs while it waits for a bucket."""

    def __init__(self, objects: ObjectStore, turn: threading.Lock) -> None:
        self._objects = objects
        self._turn = turn

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let others compute in the block."""
        self._turn.release()
        try:
            yield
        finally:
            self._turn.acquire()

    def list(self, bucket: Bucket, prefix: str) -> list[StoredObject]:
        with self.waiting():
            return self._objects.list(bucket, prefix)

    def open(self, bucket: Bucket, key: str, size: int | None = None) -> BinaryIO:
        with self.waiting():
            content = self._objects.open(bucket, key, size)
        return cast("BinaryIO", io.BufferedReader(_ContentInTurn(content, self), _BUFFER))

    def put(self, bucket: Bucket, key: str, content: bytes) -> str:
        with self.waiting():
            return self._objects.put(bucket, key, content)

    def check_kept(self, bucket: Bucket, md5s: Mapping[str, bytes | None]) -> None:
        with self.waiting():
            self._objects.check_kept(bucket, md5s)

    def close(self) -> None:
        self._objects.close()


class _ContentInTurn(io.RawIOBase):
    """The content of an object; waits for it without holding the turn."""

    def __init__(self, content: BinaryIO, objects: _InTurn) -> None:
        self._content = content
        self._objects = objects

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._objects.waiting():
            found = self._content.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._content.close()
        super().close()


_WORKERS: Final[WeakKeyDictionary[Engine, _TransferWorker]] = WeakKeyDictionary()


def _worker(engine: Engine, objects: ObjectStore) -> _TransferWorker:
    with engine.lock:
        worker = _WORKERS.get(engine)
        if worker is None:
            worker = _WORKERS[engine] = _TransferWorker(engine, objects)
        return worker
