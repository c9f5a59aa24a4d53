"""The inputs of an import: a file, standard input, or a folder with AWS's exports; rows come with their numbers.

Rows come in chunks; after each, `position` is where a later run continues, in JSON's types. The files of a folder are
read one after the other: those of the full export, then those of incremental exports in the order of their times.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from os import fspath
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, cast

import msgspec

from isotone.errors import UsageError
from isotone.exchange.compression import Compression, damage, decompressed
from isotone.exchange.export_layout import FILES, SUMMARY
from isotone.exchange.item_files import (
    BEGIN,
    END,
    ChangeFile,
    ChangeRecord,
    DeleteRecord,
    ItemFile,
    Unreadable,
)
from isotone.moving.file_names import (
    TABLE_FILE,
    FileKind,
    Place,
    is_folder,
    kind_of,
)
from isotone.moving.line_files import open_lines
from isotone.moving.parquet_files import ParquetInput
from isotone.moving.row_checks import RowChecks
from isotone.output_paths import STANDARD
from isotone.values.known_shapes import Known, KnownShapes
from isotone.values.types import Item

_CHUNK_SIZE: Final = 8 << 20  # bytes of lines in one chunk


class InputRow(NamedTuple):
    """One row: an item to put, or the key of an item to delete, or its problem and its text.

    `file` is its file in a folder. `is_fatal`: nothing after it in this file can be read. An item of a known shape is
    not decoded: the row has its JSON, and what is known about it.
    """

    number: int
    item: Item | None = None
    key: Item | None = None
    problem: str = ""
    text: str = ""
    file: str = ""
    is_fatal: bool = False
    json: bytes = b""
    known: Known | None = None


class Input(Protocol):
    """A source of rows that can be read from any position."""

    @property
    def position(self) -> Any:
        """Where a later run continues, in JSON's types."""

    @property
    def ended(self) -> bool:
        """Whether no rows follow."""

    def read(self, most: int) -> list[InputRow]:
        """The next rows, at most about `most`."""

    def skip_to(self, position: Any) -> None:
        """Go forward to a position."""

    @property
    def share(self) -> float | None:
        """The fraction that was read; None if that is not known."""

    @property
    def fingerprint(self) -> str:
        """Identifies the input that a position belongs to. Empty for standard input."""

    def check_unchanged(self) -> None:
        """Raise `UsageError` if a file was changed while it was read: its rows are of no single content."""

    def close(self) -> None:
        """Close it."""


class _Records(Protocol):
    position: int
    ended: bool

    @property
    def line(self) -> int: ...

    def read(self, most: int, most_bytes: int | None = None) -> Iterator[Any]: ...

    def skip_to(self, position: int) -> None: ...

    def close(self) -> None: ...


def check_place(place: Place, form: str | None) -> None:
    """Raise `UsageError` if there is nothing to read, or its format is not known."""
    if is_folder(place):
        if not Path(fspath(place)).is_dir():
            raise UsageError(f"there is no folder {fspath(place)}")
        return
    kind_of(place, form)
    if fspath(place) != STANDARD and not Path(fspath(place)).is_file():
        raise UsageError(f"there is no file {fspath(place)}")


def open_input(
    place: Place, form: str | None, types: Mapping[str, str], checks: RowChecks
) -> Input:
    """Open the input at a place: a file, a folder, or standard input. Call `check_place` first."""
    if is_folder(place):
        return FolderInput(Path(fspath(place)), form, types, checks)
    return FileInput(place, kind_of(place, form), types, checks)


class FileInput:
    """The rows of one file."""

    def __init__(
        self,
        place: Place,
        kind: FileKind,
        types: Mapping[str, str],
        checks: RowChecks,
        *,
        changes: bool = False,
        name: str = "",
    ) -> None:
        self._place = place
        self._name = name
        self._size = 0 if fspath(place) == STANDARD else Path(place).stat().st_size
        self._raw: _Counted | None = None
        self._checks = checks
        self._shapes = KnownShapes(checks.key_types, BEGIN, END)
        self._records: _Records
        if types and kind.form != "csv":
            raise UsageError("types are those of CSV columns; other formats have their own")
        if kind.form == "parquet":
            self._records = ParquetInput(place)
            self._begun = self._state()
            return
        content = self._opened(kind.compression)
        self._begun = self._state()
        try:
            self._records = (
                ChangeFile(content, "ION" if kind.form == "ion" else "DYNAMODB_JSON")
                if changes
                else open_lines(content, kind.form, types, checks.types)
            )
        except BaseException as error:
            if self._raw is not None:
                content.close()
            if isinstance(error, damage()):  # within the header of a CSV file
                raise UsageError(f"cannot read {fspath(place)}: {error}") from None
            raise

    def _opened(self, compression: Compression) -> BinaryIO:
        """The decompressed content."""
        if fspath(self._place) == STANDARD:
            return sys.stdin.buffer
        if compression != "NONE" and Path(self._place).is_file() and not self._size:
            raise UsageError(
                f"{fspath(self._place)} is empty, so it is no compressed file: copy it again"
            )
        try:
            self._raw = _Counted(Path(self._place).open("rb"))  # noqa: SIM115 - closed with the records
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"cannot read {fspath(self._place)}: {reason}") from None
        return decompressed(cast("BinaryIO", self._raw), compression)

    @property
    def position(self) -> Any:
        return self._records.position

    @property
    def ended(self) -> bool:
        return self._records.ended

    def skip_to(self, position: Any) -> None:
        self._records.skip_to(position)

    def read(self, most: int) -> list[InputRow]:
        rows: list[InputRow] = []
        try:
            if isinstance(self._records, ItemFile) and self._records.has_lines:
                rows.extend(self._rows_of(self._records, most))
            else:
                rows.extend(map(self._row, self._records.read(most, _CHUNK_SIZE)))
        except damage() as error:
            number = self._records.line + 1
            problem = f"the file cannot be read further: {error}"
            rows.append(InputRow(number, problem=problem, file=self._name, is_fatal=True))
            self._records.ended = True
        return rows

    def _rows_of(self, file: ItemFile, most: int) -> Iterator[InputRow]:
        """The rows of lines in DynamoDB JSON; lines of a known shape are not decoded."""
        number = file.line
        for line, known in self._shapes.each(file.read_lines(most, _CHUNK_SIZE)):
            number += 1
            if known is not None and self._checks.accepts(known):
                json = line[len(BEGIN) : -len(END)]
                yield InputRow(number, file=self._name, json=json, known=known)
            elif not line.isspace():
                row = self._row(file.record_of(line), number)
                if row.item is not None and known is None:
                    self._learn(line, row.item)
                yield row

    def _learn(self, line: bytes, item: Item) -> None:
        if not self._shapes.is_over:
            with suppress(ValueError):  # a bad row, which is reported later
                self._shapes.learn(line, self._checks.checked(item))

    def _row(self, record: ChangeRecord, number: int | None = None) -> InputRow:
        number = self._records.line if number is None else number
        if isinstance(record, Unreadable):
            return InputRow(
                number,
                problem=record.message,
                text=record.text,
                file=self._name,
                is_fatal=record.is_fatal,
            )
        if isinstance(record, DeleteRecord):
            return InputRow(number, key=record.key, file=self._name)
        if record.condition_expression is not None:
            problem = "it has a ConditionExpression, which only StartBulkPutItems understands"
            return InputRow(number, problem=problem, text=str(record.item), file=self._name)
        return InputRow(number, item=record.item, file=self._name)

    @property
    def share(self) -> float | None:
        if isinstance(self._records, ParquetInput):
            return self._records.position / max(self._records.total, 1)
        if self._raw is None or not self._size:
            return None
        return min(self._raw.count / self._size, 1.0)

    @property
    def fingerprint(self) -> str:
        return "" if fspath(self._place) == STANDARD else _stamp(Path(self._place))

    def _state(self) -> tuple[int, int]:
        """The size of the file that is open, and the time of its last change."""
        if fspath(self._place) == STANDARD:
            return 0, 0
        found = Path(self._place).stat() if self._raw is None else os.fstat(self._raw.fileno())
        return found.st_size, found.st_mtime_ns

    def check_unchanged(self) -> None:
        if self._state() != self._begun:
            raise UsageError(
                f"{fspath(self._place)} was changed while it was read, so what was imported may be a part of it, or a mix: "
                "give the same command again"
            )

    def close(self) -> None:
        if fspath(self._place) != STANDARD:
            self._records.close()


class _Counted:
    """A file that counts the bytes read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size)
        self.count += len(content)
        return content

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()


def _stamp(path: Path) -> str:
    """Another file in the place of one has another stamp, though its size and time of change were copied."""
    state = path.stat()
    return f"{state.st_size} {state.st_mtime_ns} {state.st_ctime_ns} {state.st_ino}"


# Folders


class _Summary(msgspec.Struct, rename="camel"):
    manifest_files_s3_key: str = msgspec.field(name="manifestFilesS3Key")
    table_arn: str = ""
    output_format: str = "DYNAMODB_JSON"
    export_type: str = "FULL_EXPORT"
    export_from_time: datetime | None = None
    export_to_time: datetime | None = None
    export_time: datetime | None = None
    item_count: int = 0


class _FileEntry(msgspec.Struct, rename="camel"):
    data_file_s3_key: str = msgspec.field(name="dataFileS3Key")
    md5_checksum: str = msgspec.field(name="md5Checksum", default="")


class _Export(NamedTuple):
    """One export in a folder, described by its manifests."""

    manifest: Path
    summary: _Summary

    @property
    def is_incremental(self) -> bool:
        return self.summary.export_type == "INCREMENTAL_EXPORT"

    @property
    def period(self) -> tuple[datetime, datetime]:
        first, end = self.summary.export_from_time, self.summary.export_to_time
        if first is None or end is None:
            raise UsageError(f"{self.manifest} has no times, which an incremental export has")
        return first, end


class _InputFile(NamedTuple):
    path: Path
    kind: FileKind | None
    is_change: bool = False
    md5: str = ""


class FolderInput:
    """The rows of all files in a folder: of exports with manifests, or of plain files."""

    def __init__(
        self,
        folder: Path,
        form: str | None,
        types: Mapping[str, str],
        checks: RowChecks,
    ) -> None:
        self._files = _files_in(folder, form)
        self._open: Callable[[_InputFile], FileInput] = lambda file: FileInput(
            file.path,
            file.kind or kind_of(file.path, form),
            types,
            checks,
            changes=file.is_change,
            name=_name_in(folder, file.path),
        )
        self._number = 0
        self._current: FileInput | None = None
        self._changed: UsageError | None = None  # the first file that was changed while it was read

    @property
    def ended(self) -> bool:
        return self._number >= len(self._files)

    @property
    def position(self) -> Any:
        return [self._number, 0 if self._current is None else self._current.position]

    def skip_to(self, position: Any) -> None:
        self._number, inner = position
        if inner and not self.ended:
            self._current = self._open(self._files[self._number])
            self._current.skip_to(inner)

    def read(self, most: int) -> list[InputRow]:
        file = self._files[self._number]
        if self._current is None:
            _check_digest(file)
            self._current = self._open(file)
        rows = self._current.read(most)
        if self._current.ended:
            self._check_current(self._current)
            self._current.close()
            self._current = None
            self._number += 1
        return rows

    def _check_current(self, file: FileInput) -> None:
        try:
            file.check_unchanged()
        except UsageError as error:
            self._changed = self._changed or error

    def check_unchanged(self) -> None:
        if self._changed is not None:
            raise self._changed

    @property
    def share(self) -> float | None:
        inner = self._current.share if self._current is not None else None
        return (self._number + (inner or 0.0)) / max(len(self._files), 1)

    @property
    def fingerprint(self) -> str:
        stamps = "\n".join(f"{file.path} {_stamp(file.path)}" for file in self._files)
        return hashlib.blake2b(stamps.encode(), digest_size=16).hexdigest()

    def close(self) -> None:
        if self._current is not None:
            self._current.close()


def _name_in(folder: Path, path: Path) -> str:
    """The name of a file within a folder; an incremental export's data is outside the folder of its manifests."""
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name


def _check_digest(file: _InputFile) -> None:
    if not file.md5:
        return
    digest = hashlib.md5(usedforsecurity=False)
    with file.path.open("rb") as content:
        while chunk := content.read(1 << 20):
            digest.update(chunk)
    if base64.b64encode(digest.digest()).decode() != file.md5:
        raise UsageError(f"{file.path} is not the file that its manifest describes: copy it again")


def _files_in(folder: Path, form: str | None) -> list[_InputFile]:
    try:
        paths = sorted(_walked(folder))
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}") from None
    exports = [_read_export(path) for path in paths if path.name == SUMMARY]
    if not exports:
        return _plain_files(folder, paths, form)
    return [file for export in _in_order(folder, exports) for file in _files_of(export)]


def _walked(folder: Path, above: frozenset[tuple[int, int]] = frozenset()) -> Iterator[Path]:
    """The files below a folder, following links; `above` are the folders that contain it, to detect loops of links.

    A folder that cannot be read raises an error, because its items would be missing.
    """
    found = folder.stat()
    place = found.st_dev, found.st_ino
    for path in folder.iterdir() if place not in above else ():
        if path.is_dir():
            yield from _walked(path, above | {place})
        else:
            yield path


def _read_export(path: Path) -> _Export:
    try:
        return _Export(path, msgspec.json.decode(path.read_bytes(), type=_Summary))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not the summary of an export: {error}") from None


def _in_order(folder: Path, exports: list[_Export]) -> list[_Export]:
    """The full export, if there is one, then the incremental exports by time, without gaps.

    Exports that earlier ones already cover are left out, because they would replace newer items by older ones.
    """
    tables = sorted({export.summary.table_arn.rpartition("/")[2] for export in exports})
    if len(tables) > 1:
        raise UsageError(
            f"{folder} has exports of several tables: {', '.join(tables)}; give the folder of one table"
        )
    full = [export for export in exports if not export.is_incremental]
    if len(full) > 1:
        places = ", ".join(str(export.manifest.parent) for export in full)
        raise UsageError(f"{folder} has {len(full)} full exports; give the folder of one: {places}")
    changes = sorted(
        (export for export in exports if export.is_incremental),
        key=lambda export: (export.period[0], -export.period[1].timestamp()),
    )
    ordered = full
    reached = full[0].summary.export_time if full else None
    for export in changes:
        begin, end = export.period
        if reached is not None and begin > reached:
            raise UsageError(
                f"the changes from {reached} to {begin} are not in {folder}: add their "
                "export, or import the folder of each export on its own"
            )
        if reached is None or end > reached:
            ordered.append(export)
            reached = end
    return ordered


def _files_of(export: _Export) -> Iterator[_InputFile]:
    """The data files of an export, wherever its folder was copied to."""
    manifest = export.manifest.with_name(FILES)
    if not manifest.exists():
        raise UsageError(f"{manifest} is missing: copy the whole folder of the export")
    inner = f"{export.manifest.parent.name}/{FILES}"
    prefix = export.summary.manifest_files_s3_key.removesuffix(inner)
    kind = FileKind("ion" if export.summary.output_format == "ION" else "dynamodb-json", "GZIP")
    folder = export.manifest.parent.parent
    for entry in _entries_of(manifest, export.summary):
        path = folder / entry.data_file_s3_key.removeprefix(prefix)
        if not Path(os.path.normpath(path)).is_relative_to(os.path.normpath(folder)):
            raise UsageError(
                f"{manifest} names a file outside of its folder, {entry.data_file_s3_key!r}, which is not read"
            )
        if not path.is_file():
            raise UsageError(
                f"{path} is missing, which {manifest} names: copy the whole bucket prefix"
            )
        yield _InputFile(path, kind, export.is_incremental, entry.md5_checksum)


def _entries_of(manifest: Path, summary: _Summary) -> list[_FileEntry]:
    """The list of an export's files. A truncated list is refused, by its digest if there is one."""
    content = manifest.read_bytes()
    digest = manifest.with_suffix(".md5")
    if digest.is_file() and digest.read_bytes().strip() != _digest_of(content):
        raise UsageError(f"{manifest} is not the file that {digest} describes: copy both again")
    try:
        entries = [
            msgspec.json.decode(line, type=_FileEntry)
            for line in content.splitlines()
            if line.strip()
        ]
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"{manifest} is not the list of an export's files: {error}") from None
    if summary.item_count and not entries:
        raise UsageError(
            f"{manifest} names no files, and the export's item count is {summary.item_count:,}: copy it again"
        )
    return entries


def _digest_of(content: bytes) -> bytes:
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest())


_IS_DATA: Final = re.compile(
    r".*\.(?:jsonl|ndjson|json|ion|csv|parquet)(?:\.gz|\.zst)?\Z", re.IGNORECASE
).match


def _plain_files(folder: Path, paths: list[Path], form: str | None) -> list[_InputFile]:
    """The files of a folder without manifests, in the order of their names."""
    found = [
        _InputFile(path, None)
        for path in paths
        if (form is not None or _IS_DATA(path.name)) and not path.name.endswith(TABLE_FILE)
    ]
    for file in found:
        if not file.path.is_file():
            raise UsageError(
                f"cannot read {file.path}: it is no regular file, or a link to nothing"
            )
    if not found:
        raise UsageError(f"{folder} has neither an export nor files of items")
    return found
