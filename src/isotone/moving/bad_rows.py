"""`BadRow`, `--bad-rows`: the file of an import's bad rows: number, reason and text of each, as JSON lines."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from isotone.crc import crc32
from isotone.errors import BadRow, UsageError
from isotone.file_lock import check_in_place, open_locked
from isotone.moving.input_files import InputRow
from isotone.moving.output_files import sum_of


class _BadLine(msgspec.Struct):
    row: int
    reason: str


_decode: Final = msgspec.json.Decoder(_BadLine).decode
_decode_object: Final = msgspec.json.Decoder(dict[str, Any]).decode
_encode: Final = msgspec.json.Encoder().encode


class BadRows:
    """Collects the bad rows of one import. Without a path, the first one becomes the `failure` of the import.

    `import_items` has checked that the path may be written.
    """

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._file: BinaryIO | None = None
        self._taken = 0
        self._is_durable = True
        self.failure: BadRow | None = None
        self._size = 0  # of the file
        self.checksum: int = 0

    def open(self, size: int, checksum: int | None = None) -> None:
        """Open a new file, or continue one that had this size and checksum when it was saved.

        If its rows have changed since, new rows are appended. Raises `UsageError` for any other kind of file, which
        stays unchanged, and `InProgress` if another import writes to it.
        """
        if self._path is None:
            return
        _check_is_of_bad_rows(self._path, is_begun=size > 0)
        try:
            self._file = open_locked(self._path)
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"cannot write {self._path}: {reason}") from None
        found = sum_of(self._file, size)
        if found[1] == size and checksum in (None, found[0]):
            self._file.truncate(size)
        else:  # rows were removed from it, or another import has written to it
            found = sum_of(self._file, self._path.stat().st_size)
        self.checksum = found[0]
        self._size = self._file.seek(0, os.SEEK_END)
        self._end_line()

    def _end_line(self) -> None:
        """Complete a line that a killed process has left."""
        assert self._file is not None
        size = self._file.tell()
        self._file.seek(max(0, size - 1))
        if self._file.read() not in (b"", b"\n"):
            self._write(b"\n")

    def _write(self, content: bytes) -> None:
        assert self._file is not None
        self._file.write(content)
        self._size, self.checksum = self._size + len(content), crc32(content, self.checksum)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def add(self, row: InputRow, reason: str) -> bool:
        """Record a bad row; returns whether the import continues."""
        text = row.text or row.json.decode()
        if not text and (row.item or row.key):
            text = _encode(row.item or row.key).decode()
        if self._file is None:
            if self.failure is None or row.number < self.failure.number:
                self.failure = BadRow(row.number, reason, text, row.file)
            return False
        if row.is_fatal:
            self.failure = BadRow(row.number, reason, text, row.file)
            return False
        place = {"file": row.file} if row.file else {}
        self._write(_encode({**place, "row": row.number, "reason": reason, "text": text}) + b"\n")
        self._taken += 1
        self._is_durable = False
        return True

    def taken(self) -> int:
        """The number of rows added since the last call."""
        count, self._taken = self._taken, 0
        return count

    def sync(self) -> int:
        """Make the rows durable; returns the size of the file."""
        if self._file is None:
            return 0
        assert self._path is not None
        if not self._is_durable:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._is_durable = True
        check_in_place(self._file, self._path, self._size)
        return self._size


def _check_is_of_bad_rows(path: Path, *, is_begun: bool) -> None:
    """Raise `UsageError` for a file that no import wrote; a killed import may have left part of a line.

    A file that was already begun is only appended to, so it may contain any JSON objects.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        line = file.readline()
    is_torn = not line.endswith(b"\n") and line.startswith((b'{"row":', b'{"file":'))
    if not line or is_torn:
        return
    try:
        (_decode_object if is_begun else _decode)(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise UsageError(
            f"--bad-rows (bad_rows=) {path} exists, and has no bad rows of an import; give another file"
        ) from None
