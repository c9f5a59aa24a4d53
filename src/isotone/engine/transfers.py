"""Stored state of jobs (exports to S3, imports, bulk operations): the request, the progress, and the outcome.

j · id              the job
r · id              present while it runs
o · id              the objects that it reads
s · id · 0 · number what it will write to a file: a part of a data file, or of an error log

Any process that has the file open can continue a job (`operations/transfers/jobs.py`). One transaction saves both what a job
has stored in the database and its position in its input. What it writes to files is first kept here, in the same
transaction. The file is then written from it, under the same name, as often as needed.
"""

from __future__ import annotations

import os
from typing import Any, Final, TypeAlias

import msgspec

from isotone import limits
from isotone.engine.engine import TRANSFERS, Engine
from isotone.engine.history import milliseconds


class TransferFailure(msgspec.Struct, frozen=True):
    """Why a job failed or was cancelled."""

    code: str
    message: str


class DataFile(msgspec.Struct, frozen=True):
    """A data file that an export has written."""

    key: str
    items: int
    md5: bytes
    etag: str = ""


class Export(msgspec.Struct, frozen=True, tag="export"):
    """An export. `view` has what is still to be read; `staged` parts with `staged_items` items are not in a file yet.

    Times are in seconds, `moments` in milliseconds: the time of a full export, or the first and last of an incremental
    export.
    """

    id: str
    table: str
    table_id: str
    request: dict[str, Any]
    started: float
    moments: tuple[int, ...]
    status: str = "IN_PROGRESS"
    ended: float | None = None
    failure: TransferFailure | None = None
    view: str | None = None
    begun: bool = False
    items: int = 0
    size: int = 0
    staged: int = 0
    staged_size: int = 0
    staged_items: int = 0
    files: tuple[DataFile, ...] = ()


class LoadJob(msgspec.Struct, frozen=True, tag="load"):
    """An import into a new table, or a bulk operation on an existing one.

    The next record to read is number `index` of object number `object`, at `position`. `ahead` is how many items after
    it an import has already written. `known`: the objects have been listed. `unreadable` is why the first unreadable
    object could not be read. `is_bulk` distinguishes the two kinds; only a bulk operation counts `usage`, the bytes
    that it wrote to the table and to each index.
    """

    id: str
    table: str
    table_id: str
    request: dict[str, Any]
    started: float
    is_bulk: bool = False
    status: str = "IN_PROGRESS"
    ended: float | None = None
    failure: TransferFailure | None = None
    known: bool = False
    object: int = 0
    position: int = 0
    index: int = 0
    items: int = 0
    ahead: int = 0
    errors: int = 0
    size: int = 0
    read: int = 0
    total: int = 0
    staged: int = 0
    unreadable: TransferFailure | None = None
    usage: dict[str, int] = {}


Job: TypeAlias = Export | LoadJob
Listing: TypeAlias = list[tuple[str, int]]

_encode: Final = msgspec.msgpack.Encoder().encode
_job: Final = msgspec.msgpack.Decoder(Job).decode
_listing: Final = msgspec.msgpack.Decoder(Listing).decode


def new_id(engine: Engine) -> str:
    """An id in the service's form, sorted by time: milliseconds, then a random part."""
    return f"{milliseconds(engine.clock.now()):014d}-{os.urandom(4).hex()}"


def begin(engine: Engine, job: Job) -> None:
    """Record a new job, and drop jobs that ended too long ago to be shown."""
    oldest = f"{milliseconds(engine.clock.now() - limits.TRANSFER_RETENTION):014d}"
    for old in known(engine):
        if old.id < oldest and old.ended is not None:
            engine.store.delete(TRANSFERS, b"j" + old.id.encode())
    engine.store.put(TRANSFERS, b"r" + job.id.encode(), b"")
    save(engine, job)


def save(engine: Engine, job: Job) -> None:
    """Record the progress of a job. A job that has ended no longer counts as running."""
    engine.store.put(TRANSFERS, b"j" + job.id.encode(), _encode(job))
    if job.ended is not None:
        engine.store.delete(TRANSFERS, b"r" + job.id.encode())
        engine.store.delete(TRANSFERS, b"o" + job.id.encode())
        drop_staged(engine, job.id)


def find(engine: Engine, identity: str) -> Job | None:
    """A job by its id."""
    stored = engine.store.get(TRANSFERS, b"j" + identity.encode())
    return None if stored is None else _job(stored)


def known(engine: Engine) -> list[Job]:
    """All jobs, oldest first."""
    return [_job(stored) for _, stored in engine.store.range(TRANSFERS, b"j", b"k")]


def running(engine: Engine) -> list[str]:
    """The ids of the jobs that have not ended, oldest first."""
    return [key[1:].decode() for key, _ in engine.store.range(TRANSFERS, b"r", b"s")]


def save_objects(engine: Engine, identity: str, objects: Listing) -> None:
    """Record the objects that a job reads."""
    engine.store.put(TRANSFERS, b"o" + identity.encode(), _encode(objects))


def objects_of(engine: Engine, identity: str) -> Listing:
    """The objects that a job reads, in order."""
    stored = engine.store.get(TRANSFERS, b"o" + identity.encode())
    return [] if stored is None else _listing(stored)


def stage(engine: Engine, identity: str, number: int, content: bytes) -> None:
    """Keep a part of what a job will write to a file."""
    engine.store.put(TRANSFERS, _part(identity) + number.to_bytes(8, "big"), content)


def staged(engine: Engine, identity: str) -> list[bytes]:
    """The kept parts of a job, in order."""
    low = _part(identity)
    return [content for _, content in engine.store.range(TRANSFERS, low, low[:-1] + b"\x01")]


def drop_staged(engine: Engine, identity: str) -> None:
    """Drop the kept parts: they are in a file now, or no longer wanted."""
    low = _part(identity)
    keys = [key for key, _ in engine.store.range(TRANSFERS, low, low[:-1] + b"\x01")]
    for key in keys:
        engine.store.delete(TRANSFERS, key)


def _part(identity: str) -> bytes:
    return b"s" + identity.encode() + b"\x00"
