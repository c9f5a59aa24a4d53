"""The tab Files: imports and exports a table's items; a file is uploaded, or written and downloaded.

The page never names a path: files are in temporary folders during a transfer, so no page can read or write another file
of this machine. They are limited in size and number. `isotone.moving` reads and writes them.
"""

from __future__ import annotations

import weakref
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final

from isotone import moving
from isotone.errors import UsageError
from isotone.moving.file_names import FileFormat
from isotone.moving.line_files import lines_of
from isotone.tables.jobs import Job
from isotone.tables.progress import Progress
from isotone.tables.threads import in_thread
from isotone.workbench.access import WriteAccess
from isotone.workbench.source import Source

LARGEST: Final = 256 << 20  # bytes of a file
# transfers at once; a new one replaces the oldest that has ended, or that waits for the rest of its
# file
_MOST: Final = 4
_PART: Final = 1 << 20
_BAD_SHOWN: Final = 20
_ENDINGS: Final = ("jsonl", "csv", "jsonl.gz", "csv.gz")

Answer = dict[str, Any]


@dataclass(kw_only=True)
class _Transfer(Job[moving.Exported | moving.Imported]):
    """One file that is being transferred."""

    id: int
    kind: str
    table: str
    folder: Path
    file: Path
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Delete its files when the transfer is dropped, or when the workbench ends."""
        self.delete_files = weakref.finalize(self, rmtree, self.folder, ignore_errors=True)

    @property
    def bad(self) -> int:
        return self.result.bad if isinstance(self.result, moving.Imported) else 0

    @property
    def size(self) -> int:
        return self.file.stat().st_size if self.file.exists() else 0


class Transfers:
    """The transfers of one workbench; `calls` are the calls of the page."""

    def __init__(self, source: Source, access: WriteAccess, written: Callable[[str], None]) -> None:
        """`written` is called with the names of tables that got items."""
        self._source = source
        self._access = access
        self._written = written
        self._all: dict[int, _Transfer] = {}
        self._last = 0

    @property
    def calls(self) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
        """The calls by name."""
        return {
            "export": self.export,
            "export_part": self.export_part,
            "rows_file": self.rows_file,
            "import": self.begin_import,
            "import_part": self.import_part,
            "import_run": self.import_run,
            "transfer": self.transfer,
            "transfer_end": self.end,
        }

    async def export(self, given: Mapping[str, Any]) -> Answer:
        """Start writing a table to a file: `{"table", "ending"}`."""
        transfer = self._new("export", given)
        transfer.start(self._export, transfer)
        return self._status(transfer)

    async def export_part(self, given: Mapping[str, Any]) -> Answer:
        """A part of a complete file: `{"id", "offset"}`."""
        transfer = self._known(given, "export")
        offset = given.get("offset")
        if transfer.state != "done" or type(offset) is not int or offset < 0:
            raise UsageError("the file is not complete, or the offset is not a number")
        return {"data": b64encode(await in_thread(_part, transfer.file, offset)).decode()}

    async def rows_file(self, given: Mapping[str, Any]) -> Answer:
        """The file of some items: `{"items", "first", "ending"}`; `first` are the first columns of CSV."""
        ending, items, first = given.get("ending"), given.get("items"), given.get("first")
        if (
            ending not in ("jsonl", "csv")
            or not isinstance(items, list)
            or not isinstance(first, list)
        ):
            raise UsageError(
                "rows are saved as jsonl or csv: items, and the names of the first columns"
            )
        form: FileFormat = "csv" if ending == "csv" else "jsonl"
        return {"text": (await in_thread(lines_of, items, form, first)).decode()}

    async def begin_import(self, given: Mapping[str, Any]) -> Answer:
        """Start an upload: `{"table", "ending", "key", "sort_key"}`; with `key`, a missing table is created."""
        self._access.check("BatchWriteItem", {})
        transfer = self._new("import", given)
        for name in ("key", "sort_key"):
            if given.get(name):
                transfer.options[name] = str(given[name])
        transfer.file.touch()
        return self._status(transfer)

    async def import_part(self, given: Mapping[str, Any]) -> Answer:
        """Add a part to an upload: `{"id", "data"}`, in Base64."""
        self._access.check("BatchWriteItem", {})
        transfer = self._known(given, "import")
        try:
            data = b64decode(str(given.get("data") or ""), validate=True)
        except ValueError:
            raise UsageError("the part of the file is not Base64") from None
        if transfer.state != "waiting" or transfer.size + len(data) > LARGEST:
            raise UsageError(f"a file may have {LARGEST >> 20} MB; use isotone import for larger")
        await in_thread(_append, transfer.file, data)
        return self._status(transfer)

    async def import_run(self, given: Mapping[str, Any]) -> Answer:
        """Write the items of an uploaded file: `{"id"}`."""
        self._access.check("BatchWriteItem", {})
        transfer = self._known(given, "import")
        if transfer.state != "waiting":
            raise UsageError("this import has begun already")
        transfer.start(self._import, transfer)
        return self._status(transfer)

    async def transfer(self, given: Mapping[str, Any]) -> Answer:
        """The progress of a transfer: `{"id"}`."""
        return self._status(self._known(given))

    async def end(self, given: Mapping[str, Any]) -> Answer:
        """Stop a transfer, and delete its file: `{"id"}`. Returns its progress: it may have been complete already."""
        transfer = self._known(given)
        transfer.stop.set()
        status = self._status(transfer)
        if status["state"] != "running":
            self._drop(transfer)
        return status

    # One transfer

    def _new(self, kind: str, given: Mapping[str, Any]) -> _Transfer:
        table, ending = given.get("table"), given.get("ending")
        if not isinstance(table, str) or not table:
            raise UsageError("a transfer needs the name of a table")
        if ending not in _ENDINGS:
            raise UsageError(f"{ending!r} is not supported here; use {', '.join(_ENDINGS)}")
        if len(self._all) >= _MOST:
            over = [each for each in self._all.values() if each.state not in ("running", "waiting")]
            over += [each for each in self._all.values() if each.state == "waiting"]
            if not over:
                raise UsageError(f"{_MOST} transfers are running; wait until one ends")
            self._drop(over[0])
        self._last += 1
        folder = Path(mkdtemp(prefix="isotone-"))
        file = folder / f"items.{ending}"
        self._all[self._last] = _Transfer(
            id=self._last, kind=kind, table=table, folder=folder, file=file
        )
        return self._all[self._last]

    def _known(self, given: Mapping[str, Any], kind: str = "") -> _Transfer:
        found = self._all.get(given.get("id") or 0)
        if found is None or kind not in ("", found.kind):
            raise UsageError("this transfer is over; begin it again")
        return found

    def _export(self, transfer: _Transfer) -> moving.Exported:
        def report(progress: Progress) -> None:
            transfer.report(progress)
            written = sum(each.stat().st_size for each in transfer.folder.iterdir())
            if written > LARGEST:
                raise UsageError(f"the file is larger than {LARGEST >> 20} MB; use isotone export")

        return moving.export_items(
            self._source.backend,
            transfer.table,
            transfer.file,
            state=transfer.folder / "state",
            progress=report,
            stop=transfer.stop,
        )

    def _import(self, transfer: _Transfer) -> moving.Imported:
        folder = transfer.folder
        try:
            return moving.import_items(
                transfer.file,
                self._source.backend,
                transfer.table,
                bad_rows=folder / "bad.jsonl",
                state=folder / "state",
                progress=transfer.report,
                stop=transfer.stop,
                **transfer.options,
            )
        finally:
            self._written(transfer.table)

    def _drop(self, transfer: _Transfer) -> None:
        self._all.pop(transfer.id, None)
        transfer.delete_files()

    def _status(self, transfer: _Transfer) -> Answer:
        status: Answer = {
            "id": transfer.id,
            "kind": transfer.kind,
            "table": transfer.table,
            **transfer.status(),
            "size": transfer.size,
            "bad": transfer.bad,
            "bad_rows": _first_lines(transfer.folder / "bad.jsonl"),
        }
        if status["state"] in ("failed", "stopped"):
            self._drop(transfer)
        return status


def _part(file: Path, offset: int) -> bytes:
    with file.open("rb") as opened:
        opened.seek(offset)
        return opened.read(_PART)


def _append(file: Path, data: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(data)


def _first_lines(file: Path) -> list[str]:
    if not file.exists():
        return []
    with file.open(encoding="utf-8", errors="replace") as lines:
        return [line[:500].strip() for line, _ in zip(lines, range(_BAD_SHOWN), strict=False)]
