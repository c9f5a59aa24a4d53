"""A disk that remembers what was written and what was synced, and that can fill up.

`RecordingDisk` is an SQLite VFS over the real one. It keeps a log of every write, truncation, sync and
deletion, into which the test puts its own marks. `after_power_cut` says what a file may hold if the
power had failed at a point of the log: all that was synced, and of the rest what the test chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw


@dataclass(frozen=True)
class Event:
    """One thing that happened to a file, or a mark of the test (`kind="mark"`)."""

    kind: str
    name: str = ""
    offset: int = 0
    data: bytes = b""
    mark: Any = None


@dataclass
class Fault:
    """What goes wrong: calls of `kind` on some files, from the `first` on, while it is `active`."""

    kind: str
    names: str
    first: int
    error: Callable[[], Exception]
    active: bool = True
    seen: int = 0
    raised: int = 0

    def strike(self, event: Event) -> None:
        if event.kind != self.kind or not event.name.endswith(self.names):
            return
        self.seen += 1
        if self.active and self.seen > self.first:
            self.raised += 1
            raise self.error()


@dataclass
class Disk:
    log: list[Event] = field(default_factory=list)
    fault: Fault | None = None

    def note(self, event: Event) -> None:
        if self.fault:
            self.fault.strike(event)
        self.log.append(event)

    def mark(self, mark: Any) -> None:
        self.log.append(Event("mark", mark=mark))


class _RecordingVFS(apsw.VFS):
    def __init__(self, name: str, disk: Disk) -> None:
        self.disk = disk
        self.base = apsw.vfs_names()[0]
        super().__init__(name, base=self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _RecordingFile(self, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802
        super().xDelete(name, sync)
        self.disk.note(Event("delete", Path(name).name))


class _RecordingFile(apsw.VFSFile):
    def __init__(self, vfs: _RecordingVFS, name: Any, flags: list[int]) -> None:
        self.disk = vfs.disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self.name = Path(path).name if path else ""
        super().__init__(vfs.base, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self.disk.note(Event("write", self.name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self.disk.note(Event("truncate", self.name, size))
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self.disk.note(Event("sync", self.name))
        super().xSync(flags)


@contextmanager
def recording_disk() -> Iterator[Disk]:
    """Make every SQLite file that is opened inside the block lie on a recording disk."""
    disk = Disk()
    vfs = _RecordingVFS(f"recording-{id(disk)}", disk)
    try:
        yield disk
    finally:
        vfs.unregister()


def after_power_cut(log: list[Event], remains: Callable[[Event], Event | None]) -> dict[str, bytes]:
    """The files' content when the power fails at the end of `log`.

    What was synced is there. Of each write or truncation that was not, `remains` says what is: the
    event itself, a part of it, or None.
    """
    last_sync = {event.name: index for index, event in enumerate(log) if event.kind == "sync"}
    files: dict[str, bytearray] = {}
    for index, event in enumerate(log):
        if event.kind == "delete":
            files.pop(event.name, None)
        elif event.kind in ("write", "truncate"):
            kept = event if index < last_sync.get(event.name, -1) else remains(event)
            if kept:
                _apply(files.setdefault(event.name, bytearray()), kept)
    return {name: bytes(content) for name, content in files.items()}


def _apply(content: bytearray, event: Event) -> None:
    if event.kind == "truncate":
        del content[event.offset :]
        return
    content.extend(bytes(max(0, event.offset - len(content))))
    content[event.offset : event.offset + len(event.data)] = event.data
