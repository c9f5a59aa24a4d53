"""The state of a job in a JSON file (by default in XDG_STATE_HOME), so that the same call continues it after a crash.

    with JobState.open(path, ("copy", source, target)) as state:
        entry = state.get("Orders", Entry)          # what an earlier run has saved, or None
        state.set("Orders", entry)                  # on the disk when it returns
        state.drop("Orders")

The file is replaced as a whole, so a killed process leaves the state before or after a change. It has a checksum,
because a damaged entry could make a job skip items. It is locked while a job runs, because two runs of one job would
undo each other's work. It is deleted with its last entry.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, TypeVar

import msgspec

from isotone.backends.addresses import is_remote, whole
from isotone.crc import crc32
from isotone.errors import UsageError
from isotone.file_lock import open_locked
from isotone.output_paths import STANDARD, OutputPath, errors_name
from isotone.postgres_address import is_postgres, shown

T = TypeVar("T")

_FORM: Final = 1
_LOCK: Final = ".lock"
_NEW: Final = ".new"


class _Document(msgspec.Struct):
    job: list[str]
    entries: dict[str, msgspec.Raw]
    form: int = _FORM
    sum: int | None = None  # of the entries; files of earlier versions have none


_BEGIN: Final = b'{"job":'
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Document).decode


def default_path(job: tuple[str, ...]) -> Path:
    """The default state file of a job, in the user's state folder: the same for the same arguments."""
    name = blake2b(_encode(job), digest_size=8).hexdigest()
    return _state_folder() / "isotone" / f"{job[0]}-{name}.json"


def _state_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


def state_output(
    path: str | PathLike[str] | None, *, option: str = "--state (state=)"
) -> OutputPath | None:
    """The state file that a caller named, as an output; None for the default one."""
    if path is None:
        return None
    beside = (_LOCK, _NEW)
    return OutputPath(option, path, beside=beside, needs_folder=False)


def file_text(place: str | PathLike[str]) -> str:
    """Identifies a file or a folder across processes; standard input and output are `-`."""
    text = os.fsdecode(fspath(place))
    return text if text == STANDARD else str(Path(text).absolute())


def address_text(target: object) -> str | None:
    """Identifies a source or a target across processes, without a password; None for a database in memory, and for an
    object.

    A path is made absolute, so that a job can be continued from another directory.
    """
    if not isinstance(target, str | PathLike) or (text := fspath(target)) == ":memory:":
        return None
    text = os.fsdecode(text)
    if is_postgres(text):
        return shown(text)
    return whole(text) if is_remote(target) else str(Path(text).absolute())


class JobState:
    """The saved entries of a job, by the names of tables or files. Without a path they are kept in memory."""

    def __init__(self, path: str | PathLike[str] | None, job: tuple[str, ...]) -> None:
        self.path: Path | None = None if path is None else Path(path)
        self._job = job
        self._lock = threading.Lock()
        self._held: BinaryIO | None = None
        self._entries: dict[str, msgspec.Raw] = {}

    def __enter__(self) -> Self:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._held = locked(self._beside(_LOCK))
            try:
                self._check_unsaved(self._beside(_NEW))
                self._entries = self._load(self.path)
            except BaseException:
                self._release()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._release()

    @property
    def names(self) -> list[str]:
        """The names of the entries."""
        return list(self._entries)

    def get(self, name: str, form: type[T]) -> T | None:
        """An entry, decoded as a class; None if there is none."""
        stored = self._entries.get(name)
        try:
            return None if stored is None else msgspec.json.decode(stored, type=form)
        except msgspec.MsgspecError:
            raise self._unreadable() from None

    def set(self, name: str, entry: Any) -> None:
        """Save an entry."""
        with self._lock:
            self._entries[name] = msgspec.Raw(_encode(entry))
            self._save()

    def drop(self, *names: str) -> None:
        """Delete entries."""
        with self._lock:
            for name in names:
                self._entries.pop(name, None)
            self._save()

    def end(self, report: Callable[[], object], *names: str) -> None:
        """Report that a job is complete, then delete its entries, even if the report fails.

        If the process is killed or interrupted in between, the entries stay, and the same call finds the job complete.
        """
        try:
            report()
        except Exception:  # whatever it is: raised again, once the state is dropped
            self.drop(*names)
            raise
        self.drop(*names)

    def _load(self, path: Path) -> dict[str, msgspec.Raw]:
        try:
            found = _decode(path.read_bytes())
        except FileNotFoundError:
            return {}
        except msgspec.MsgspecError:
            raise self._unreadable() from None
        if found.form != _FORM or found.job != list(self._job):
            raise UsageError(
                f"{path} is the state of another job: {' '.join(found.job)}; name another file"
            )
        if found.sum not in (None, _sum_of(found.entries)):
            raise UsageError(f"{path} is damaged; delete it to start from the beginning")
        return {name: msgspec.Raw(bytes(raw)) for name, raw in found.entries.items()}

    @staticmethod
    def _check_unsaved(new: Path) -> None:
        """Raise `UsageError` if the temporary file that a state is written to is some other file."""
        if not new.exists():
            return
        with new.open("rb") as file:
            head = file.read(len(_BEGIN))
        if not _BEGIN.startswith(head):  # a killed process may have left a part
            raise UsageError(f"{new} is not the state of a job; name another state file")

    def _unreadable(self) -> UsageError:
        return UsageError(
            f"{self.path} is not the state of a job; delete it to start from the beginning"
        )

    def _save(self) -> None:
        if self.path is None:
            return
        if not self._entries:
            self.path.unlink(missing_ok=True)
            return
        new = self._beside(_NEW)
        # The state contains keys of items, which no other user of the machine should read.
        with errors_name(self.path), open(new, "wb", opener=_only_for_the_owner) as file:
            entries = self._entries
            file.write(_encode(_Document(list(self._job), entries, sum=_sum_of(entries))))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)

    def _beside(self, suffix: str) -> Path:
        assert self.path is not None
        return self.path.with_name(self.path.name + suffix)

    def _release(self) -> None:
        if self._held is None:
            return
        if not self._entries:
            with suppress(OSError):  # Windows does not delete an open file
                self._beside(_LOCK).unlink(missing_ok=True)
        self._held.close()
        self._held = None


def _sum_of(entries: dict[str, msgspec.Raw]) -> int:
    total = 0
    for name, raw in entries.items():
        total = crc32(bytes(raw), crc32(name.encode(), total))
    return total


def _only_for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def locked(path: Path) -> BinaryIO:
    """Open and lock a file, until it is closed or the process ends; raises `InProgress` if another process has it.

    A lock file is empty. Raises `UsageError` for one that is not: it is another kind of file, and would be deleted at
    the end.
    """
    if path.exists() and path.stat().st_size:
        raise UsageError(f"{path} is not a lock of Isotone, and not empty; name another file")
    return open_locked(path, f"another process is working on the same job: it has locked {path}")
