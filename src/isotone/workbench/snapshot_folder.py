"""The folder of snapshots (`--snapshots`, `shop.db-snapshots`): an Isotone file and a description for each.

    20261123-003512-before-the-migration-4f2a.db       its tables: keys and items, without indexes
    20261123-003512-before-the-migration-4f2a.json     its name, its time, the definitions of its tables

A snapshot is complete when its description exists. A file without one is being written, or compared, by the process
that has locked its `.lock`; if no process has, that one was killed, and the file is deleted. Databases without a lock
file are not ours, and stay.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from isotone.errors import InProgress, UsageError
from isotone.tables.definition import TableDefinition
from isotone.tables.job_state import locked

_FORM: Final = 1
_ID: Final = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-z-]{1,80}")
_TEMPORARY: Final = "isotone_snapshots_"
_OWNER: Final = "owner.lock"
_OLD: Final = 60.0  # seconds before the folder of an ended process is deleted


class SnapshotTable(msgspec.Struct, frozen=True):
    """One table of a snapshot: its definition, its number of items, and their size. `identity` is that of its copy."""

    definition: TableDefinition
    items: int
    bytes: int
    identity: str = ""


class SnapshotFile(msgspec.Struct, frozen=True):
    """The description of a snapshot. `is_moment`: all items are as of one moment, `began`."""

    id: str
    name: str
    target: str
    began: float
    ended: float
    is_moment: bool
    tables: dict[str, SnapshotTable]
    form: int = _FORM


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(SnapshotFile).decode


class SnapshotFolder:
    """The snapshots in one folder, which is created with the first snapshot."""

    def __init__(self, path: Path, *, is_temporary: bool = False) -> None:
        self.path = path
        self.is_temporary = is_temporary

    def all(self) -> tuple[list[SnapshotFile], list[str]]:
        """The snapshots, the newest first, and the names of unreadable descriptions."""
        self.sweep()
        found, unreadable = list[SnapshotFile](), list[str]()
        for file in self.path.glob("*.json"):
            try:
                snapshot = _decode(file.read_bytes())
            except FileNotFoundError:
                continue  # another process has just deleted it
            except (msgspec.MsgspecError, OSError):
                unreadable.append(file.name)
                continue
            if snapshot.id == file.stem:
                found.append(snapshot)
            else:  # a copy, which would stand for the files of the original
                unreadable.append(file.name)
        return sorted(found, key=lambda each: each.began, reverse=True), sorted(unreadable)

    def find(self, identity: str) -> SnapshotFile:
        """A snapshot by its id; raises `UsageError` if it no longer exists."""
        try:
            return _decode(self._file(identity, ".json").read_bytes())
        except FileNotFoundError:
            raise UsageError(
                f"there is no snapshot {identity!r} any more: it was deleted, or is in another folder"
            ) from None
        except msgspec.MsgspecError:
            raise UsageError(
                f"{identity}.json in {self.path} does not describe a snapshot"
            ) from None

    def file(self, identity: str) -> Path:
        """The Isotone file of a snapshot."""
        return self._file(identity, ".db")

    def size(self, identity: str) -> int:
        """The bytes of a snapshot on the disk."""
        return sum(file.stat().st_size for file in self._files(identity) if file.exists())

    @contextmanager
    def draft(self, identity: str) -> Iterator[Path]:
        """A new Isotone file, which is deleted at the end of the block unless `keep` turned it into a snapshot."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.sweep()
        lock = self._file(identity, ".lock")
        held = locked(lock)
        try:
            yield self.file(identity)
        finally:
            if not self._file(identity, ".json").exists():
                self._unlink(identity)
            with suppress(OSError):  # Windows cannot delete an open file
                lock.unlink(missing_ok=True)
            held.close()

    def keep(self, snapshot: SnapshotFile) -> None:
        """Turn a draft into a snapshot: it and its description are on the disk when this returns."""
        _sync(self.file(snapshot.id))
        description = self._file(snapshot.id, ".json")
        new = description.with_suffix(".new")
        new.write_bytes(_encode(snapshot))
        _sync(new)
        new.replace(description)

    def delete(self, identity: str) -> None:
        """Delete a snapshot, its description first, so that a killed process leaves no incomplete snapshot."""
        self.find(identity)
        self._file(identity, ".json").unlink(missing_ok=True)
        self._unlink(identity)

    def sweep(self) -> None:
        """Delete drafts of killed processes, which have a lock file. Other databases in the folder are left alone."""
        for file in self.path.glob("*.db"):
            if not _ID.fullmatch(file.stem) or not file.with_suffix(".lock").exists():
                continue
            if file.with_suffix(".json").exists():
                continue
            with suppress(InProgress, UsageError), locked(file.with_suffix(".lock")):
                if not file.with_suffix(".json").exists():  # it may have been completed just now
                    self._unlink(file.stem)
                file.with_suffix(".lock").unlink(missing_ok=True)

    def free(self) -> int:
        """The free bytes on the disk of the folder."""
        there = next(each for each in (self.path, *self.path.parents) if each.exists())
        return shutil.disk_usage(there).free

    def _file(self, identity: str, suffix: str) -> Path:
        if not _ID.fullmatch(identity):
            raise UsageError(f"{identity!r} is not the id of a snapshot")
        return self.path / f"{identity}{suffix}"

    def _files(self, identity: str) -> list[Path]:
        return [self._file(identity, suffix) for suffix in (".db", ".db-wal", ".db-shm", ".new")]

    def _unlink(self, identity: str) -> None:
        for file in self._files(identity):
            file.unlink(missing_ok=True)


def new_id(name: str) -> str:
    """The id of a new snapshot: its time, then as much of its name as a file name may have."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")
    parts = [f"{datetime.now():%Y%m%d-%H%M%S}", words, secrets.token_hex(2)]
    return "-".join(part for part in parts if part)


def folder_for(target: str, *, remote: bool) -> SnapshotFolder:
    """The folder of an engine: beside a file, in the user's data for a server, temporary for memory."""
    if remote:
        words = re.sub(r"[^a-z0-9]+", "-", target.lower()).strip("-")[:60]
        mark = blake2b(target.encode(), digest_size=4).hexdigest()
        return SnapshotFolder(_data_folder() / "isotone" / "snapshots" / f"{words}-{mark}")
    if target == ":memory:":
        return _TemporaryFolder()
    file = Path(target).absolute()
    return SnapshotFolder(file.with_name(f"{file.name}-snapshots"))


def _data_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


class _TemporaryFolder(SnapshotFolder):
    """A folder that is created when needed, and deleted when this object is dropped or the process ends."""

    def __init__(self) -> None:
        name = f"{_TEMPORARY}{secrets.token_hex(6)}"
        super().__init__(Path(tempfile.gettempdir()) / name, is_temporary=True)
        self._is_made = False

    @contextmanager
    def draft(self, identity: str) -> Iterator[Path]:
        if not self._is_made:
            _sweep_temporary()
            self.path.mkdir(mode=0o700)
            weakref.finalize(self, _remove, self.path, locked(self.path / _OWNER))
            self._is_made = True
        with super().draft(identity) as file:
            yield file


def _remove(folder: Path, owner: BinaryIO) -> None:
    owner.close()
    shutil.rmtree(folder, ignore_errors=True)  # the next process deletes the rest


def _sweep_temporary() -> None:
    """Delete the temporary folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*"):
        with suppress(OSError, InProgress):  # it belongs to another user, or is in use
            is_ours = (folder / _OWNER).is_file() and not folder.is_symlink()
            if is_ours and time.time() - folder.stat().st_mtime > _OLD:
                locked(folder / _OWNER).close()
                shutil.rmtree(folder)


def _sync(file: Path) -> None:
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())
