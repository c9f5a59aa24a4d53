"""The outputs of an export: a file, standard output, or a folder like that of AWS's exports.

    output = FileOutput(…)
    saved = output.begin(saved)         # continues where an earlier run saved
    output.write(items)
    saved = output.save()               # durable on return
    output.finish()                     # the file gets its name

A file is written under a temporary name beside its place (`orders.jsonl.part`), by one process at a time. Its length
and CRC are saved: a later run truncates the file to that length, or begins again if another export has written to it.
Each saved length is the end of a gzip member or a Zstandard frame, so the file can be continued there.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import fspath
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import msgspec

from isotone.crc import crc32
from isotone.errors import StorageError, UsageError
from isotone.exchange.compression import Compression, compressor
from isotone.exchange.export_layout import (
    ExportedFile,
    ExportFormat,
    ExportLayout,
    summary_of,
    write_manifests,
)
from isotone.exchange.objects import Bucket, Folder, ObjectStoreError
from isotone.file_lock import MARK, begin_draft, check_in_place, end_draft, open_locked
from isotone.moving.file_names import Place
from isotone.moving.line_files import Encoder
from isotone.output_paths import STANDARD, OutputPath, check_output
from isotone.tables.scan import ItemOrJson

PART: Final = ".part"
BESIDE: Final = (PART, PART + MARK)
"""The endings of the files that are written beside an exported file until it is complete."""
_UNSAVED: Final = 16 << 20  # bytes, uncompressed, before a file is saved
_READ: Final = 1 << 20
_FILE_SIZE: Final = 8 << 20  # bytes, compressed, before a folder gets its next file


class Output(Protocol):
    """Where items are written."""

    is_resumable: bool

    def begin(self, saved: Any) -> bool:
        """Open the output; returns whether it continues from the saved state. None starts a new one."""

    def write(self, items: Sequence[ItemOrJson]) -> None:
        """Add items."""

    @property
    def should_save(self) -> bool:
        """Whether enough was written since the last save."""

    def save(self) -> Any:
        """Make everything so far durable; returns the state that `begin` needs to continue, in JSON's types."""

    def finish(self) -> None:
        """Complete the output, and give it its name."""

    def close(self) -> None:
        """Close open files. The saved state remains."""


class FileOutput:
    """A file of lines, or standard output."""

    def __init__(
        self, place: Place, encode: Encoder, header: bytes, compression: Compression, *, force: bool
    ) -> None:
        self._place = fspath(place)
        self._encode = encode
        self._header = header
        self._compression = compression
        self._force = force
        self._unsaved = 0
        self._has_member = False
        self._compressor = compressor(compression)
        self._file: Any = None
        self._size = self._sum = 0  # the length of what was written, and its CRC
        self.is_resumable: bool = self._place != STANDARD

    def begin(self, saved: Any) -> bool:
        if not self.is_resumable:
            self._file = getattr(sys.stdout, "buffer", None) or _TextStream()
        else:
            check_free(self._place, force=self._force)
            self._file = open_locked(Path(self._place + PART))
            if self._continues(saved):
                self._has_member = True
                return True
        self._add(self._header)
        return False

    def _continues(self, saved: Any) -> bool:
        """Truncate the file to the saved length; to nothing, if its content has changed since."""
        # States of earlier versions have only a length.
        length, expected = saved if isinstance(saved, list) else (saved or 0, None)
        self._sum, read = sum_of(self._file, length)
        is_same = bool(length) and read == length and expected in (None, self._sum)
        if not is_same:
            length = self._sum = 0
            begin_draft(self._file, self._place + PART)
        self._file.truncate(length)
        self._file.seek(length)
        self._size = length
        return is_same

    def write(self, items: Sequence[ItemOrJson]) -> None:
        self._add(self._encode(items))

    def _add(self, content: bytes) -> None:
        self._unsaved += len(content)
        self._write(self._compressor.compress(content))

    def _write(self, content: bytes) -> None:
        self._size, self._sum = self._size + len(content), crc32(content, self._sum)
        self._file.write(content)

    @property
    def should_save(self) -> bool:
        return self._unsaved >= _UNSAVED

    def save(self) -> Any:
        if self._unsaved or not self._has_member:  # an empty file has one empty member
            self._has_member = True
            self._write(self._compressor.flush())
            self._compressor = compressor(self._compression)
            self._unsaved = 0
        self._file.flush()
        if not self.is_resumable:
            return None
        os.fsync(self._file.fileno())
        check_in_place(self._file, self._place + PART, self._size)
        return [self._size, self._sum]

    def finish(self) -> None:
        self.save()
        if self.is_resumable:
            name_part(self._file, self._place, self._size, force=self._force)

    def close(self) -> None:
        if self.is_resumable and self._file is not None:
            self._file.close()


class _TextStream:
    """Standard output that a program has replaced by a text stream; gets whole lines."""

    def write(self, content: bytes) -> None:
        sys.stdout.write(content.decode())

    def flush(self) -> None:
        sys.stdout.flush()


def check_free(place: str, *, force: bool) -> None:
    """Raise `UsageError` if a file exists and must not be replaced, or if its folder does not exist."""
    check_output(OutputPath("the target", place, beside=BESIDE))
    if Path(place).exists() and not force:
        raise UsageError(f"{place} exists; --force (force=True) replaces it")


def sum_of(file: BinaryIO, length: int) -> tuple[int, int]:
    """The CRC of the first `length` bytes of a file, and how many of them exist."""
    file.seek(0)
    total = read = 0
    while chunk := file.read(min(length - read, _READ)):
        total, read = crc32(chunk, total), read + len(chunk)
    return total, read


def name_part(file: BinaryIO, place: str, size: int, *, force: bool) -> None:
    """Give a complete file of this size its name, and close it. It stays locked until then, if an open file can be renamed."""
    check_free(place, force=force)
    check_in_place(file, place + PART, size)
    if os.name == "nt":
        file.close()
    Path(place + PART).replace(place)
    end_draft(place + PART)
    file.close()


class _SavedFolder(msgspec.Struct):
    """The files of a folder so far."""

    id: str
    started: float
    size: int = 0
    items: int = 0
    files: list[tuple[str, int, str]] = []  # key, items, MD5 in hex


class FolderOutput:
    """A folder with a full export like that of ExportTableToPointInTime."""

    is_resumable = True

    def __init__(
        self,
        folder: Place,
        encode: Encoder,
        form: ExportFormat,
        table: Mapping[str, Any],
        identity: str,
        started: float,
    ) -> None:
        path = Path(folder).absolute()
        self._folder = path
        self._bucket = Bucket(path.name)
        self._objects = Folder(path.parent)
        self._encode = encode
        self._form: ExportFormat = form
        self._table = table
        self._saved = _SavedFolder(identity, started)
        self._parts: list[bytes] = []
        self._staged = 0
        self._staged_items = 0
        self._compressor = compressor("GZIP")

    def begin(self, saved: Any) -> bool:
        if saved is not None:
            self._saved = msgspec.convert(saved, _SavedFolder)
            files: dict[str, bytes | None] = {
                key: bytes.fromhex(md5) for key, _, md5 in self._saved.files
            }
            with suppress(ObjectStoreError):
                # The folder was changed or moved: all files are written again.
                self._objects.check_kept(self._bucket, files)
                return True
        self._saved = _SavedFolder(self._saved.id, self._saved.started)
        self._put(self._layout.key("_started"), b"")
        return False

    def _put(self, key: str, content: bytes) -> None:
        with self._failures_named():
            self._objects.put(self._bucket, key, content)

    @contextmanager
    def _failures_named(self) -> Iterator[None]:
        try:
            yield
        except ObjectStoreError as error:
            raise StorageError(
                f"the export stopped: {error}; the same call continues it when that is mended"
            ) from error

    @property
    def _layout(self) -> ExportLayout:
        return ExportLayout("", self._saved.id, self._form)

    def write(self, items: Sequence[ItemOrJson]) -> None:
        lines = self._encode(items)
        part = self._compressor.compress(lines)
        self._parts.append(part)
        self._staged += len(part)
        self._staged_items += len(items)
        self._saved.size += len(lines)

    @property
    def should_save(self) -> bool:
        return self._staged >= _FILE_SIZE

    def save(self) -> Any:
        if self._staged_items:
            self._write_file()
        return msgspec.to_builtins(self._saved)

    def _write_file(self) -> None:
        content = b"".join([*self._parts, self._compressor.flush()])
        key = self._layout.data_key(len(self._saved.files))
        self._put(key, content)
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        self._saved.files.append((key, self._staged_items, digest))
        self._saved.items += self._staged_items
        self._compressor = compressor("GZIP")
        self._parts, self._staged, self._staged_items = [], 0, 0

    def finish(self) -> None:
        # an export without items has one empty file
        if self._staged_items or not self._saved.files:
            self._write_file()
        saved, layout = self._saved, self._layout
        files = [ExportedFile(key, items, bytes.fromhex(md5)) for key, items, md5 in saved.files]
        arn = str(self._table.get("TableArn") or f"table/{self._table['TableName']}")
        summary = summary_of(
            layout,
            export_arn=f"{arn}/export/{saved.id}",
            table_arn=arn,
            table_id=str(self._table.get("TableId") or ""),
            bucket=self._bucket.name,
            started=saved.started,
            ended=time.time(),
            moments=(saved.started,),
            items=saved.items,
            size=saved.size,
            request={},
        )
        with self._failures_named():
            manifests = layout.manifests(files, summary)
            write_manifests(self._objects, self._bucket, manifests, files)

    def close(self) -> None:
        """Do nothing: no file is open."""
