"""The background work of all exports, imports and bulk operations: a slice of each that runs, in turn.

A job whose records are damaged is logged, and does not hold up the others. While entries of an older format lack their
checksums, all jobs wait, because damage to these would not be noticed.

It needs the buckets: in a process that was given none, the jobs of a file wait until one has them. Buckets may be behind a
network, so this work has a thread of its own, and holds the lock only while it reads or writes the database.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final
from weakref import WeakKeyDictionary

from isotone.engine import transfers
from isotone.engine.engine import Engine
from isotone.engine.transfers import Export
from isotone.errors import StorageCorrupt
from isotone.exchange.objects import ObjectStore, ObjectStoreClosed
from isotone.operations import export_files, loading


def pending(engine: Engine) -> bool:
    """Whether there is a job that this process can continue."""
    if engine.objects is None:
        return False
    with engine.reading:
        return bool(transfers.running(engine))


def step(engine: Engine) -> bool:
    """Do a slice of every job that runs; False if there is none, or none that can go on."""
    objects = engine.objects
    if objects is None:
        return False
    with engine.reading:
        identities = transfers.running(engine)
        if not identities or engine.store.is_upgrading():
            return False
    worker = _worker(engine)
    is_going_on = False
    with worker.lock, suppress(ObjectStoreClosed):
        for identity in identities:
            try:
                _step(engine, objects, worker.buffers, identity)
            except StorageCorrupt as error:
                engine.log_damage(error)
            else:
                is_going_on = True
    return is_going_on


def _step(engine: Engine, objects: ObjectStore, buffers: loading.Buffers, identity: str) -> None:
    with engine.reading:
        job = transfers.find(engine, identity)
    if job is None or job.ended is not None:
        return
    if isinstance(job, Export):
        export_files.step(engine, objects, job)
    else:
        loading.step(engine, objects, buffers, job)


class _Worker:
    """What one engine's work keeps between two slices; two threads never do a slice at once."""

    def __init__(self, engine: Engine) -> None:
        self.lock = threading.Lock()
        self.buffers = loading.Buffers()
        engine.at_close.callback(self.buffers.close_all)


_WORKERS: Final[WeakKeyDictionary[Engine, _Worker]] = WeakKeyDictionary()


def _worker(engine: Engine) -> _Worker:
    with engine.lock:
        worker = _WORKERS.get(engine)
        if worker is None:
            worker = _WORKERS[engine] = _Worker(engine)
        return worker
