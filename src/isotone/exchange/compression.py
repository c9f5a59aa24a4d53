"""Compressed files: gzip, with any number of members, and Zstandard, with any number of frames.

Zstandard is in Python 3.14 and later; before, it needs `pip install isotone[zstd]`.
"""

from __future__ import annotations

import gzip
import importlib
import zlib
from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO, Final, Literal, Protocol, cast

from isotone.errors import UsageError
from isotone.exchange.item_files import LineTooLong
from isotone.exchange.objects import ObjectStoreError

Compression = Literal["NONE", "GZIP", "ZSTD"]

_READ: Final = 128 << 10
NO_ZSTD: Final = "ZSTD needs Python 3.14 or the package zstandard: pip install 'isotone[zstd]'"


def decompressed(file: BinaryIO, compression: Compression) -> BinaryIO:
    """A file-like object with the decompressed content of a file. Closing it closes the file."""
    if compression == "GZIP":
        return cast("BinaryIO", _Gzip(fileobj=file))
    if compression == "ZSTD":
        return cast("BinaryIO", _zstd_reader(file))
    return file


def can_read(compression: Compression) -> bool:
    """Whether this Python can read a compression."""
    return compression != "ZSTD" or _zstd() is not None


def damage() -> tuple[type[Exception], ...]:
    """The exceptions of reading a damaged file, or one that cannot be read at all."""
    library = _zstd()
    known = (EOFError, zlib.error, OSError, UnicodeDecodeError, LineTooLong, ObjectStoreError)
    return known if library is None else (*known, library.ZstdError)


class Compressor(Protocol):
    """Compresses one member or frame: call `compress` for each piece of content, then `flush` once."""

    def compress(self, data: bytes, /) -> bytes:
        """Add content, and return the compressed bytes so far."""

    def flush(self) -> bytes:
        """End the member, and return its remaining bytes."""


def compressor(compression: Compression) -> Compressor:
    """A new member of a gzip file, or frame of a Zstandard file. A file may have any number of them."""
    if compression == "GZIP":
        return zlib.compressobj(6, wbits=31)
    if compression == "NONE":
        return _Uncompressed()
    library = _zstd()
    if library is None:
        raise UsageError(NO_ZSTD)
    made: Compressor = (
        library.ZstdCompressor()
        if hasattr(library, "ZstdFile")
        else library.ZstdCompressor().compressobj()
    )
    return made


class _Uncompressed:
    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


class _Gzip(gzip.GzipFile):
    """A GzipFile that closes the file under it."""

    def close(self) -> None:
        under: Any = self.__dict__.get("under")
        super().close()
        if under is not None:
            under.close()

    def __init__(self, fileobj: BinaryIO) -> None:
        super().__init__(fileobj=fileobj, mode="rb")
        self.under = fileobj


def _zstd() -> Any:
    """The library for Zstandard, or None."""
    for name in ("compression.zstd", "zstandard"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def _zstd_reader(file: BinaryIO) -> Any:
    library = _zstd()
    if library is None:
        raise UsageError(NO_ZSTD)
    if hasattr(library, "ZstdFile"):
        return library.ZstdFile(file)
    return BufferedReader(_ZstdFrames(file, library.ZstdDecompressor()), _READ)


class _ZstdFrames(RawIOBase):
    """Reads frames one after the other. The library's own reader does not detect a truncated frame."""

    def __init__(self, file: BinaryIO, decompressor: Any) -> None:
        self._file = file
        self._decompressor = decompressor
        self._frame: Any = None  # the current one
        self._compressed = b""
        self._content = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._content:
            if not self._compressed:
                self._compressed = self._file.read(_READ)
            if not self._compressed:
                if self._frame is not None:
                    raise EOFError("its last Zstandard frame is cut off")
                return 0
            self._content = memoryview(self._decompressed())
        count = min(len(buffer), len(self._content))
        buffer[:count] = self._content[:count]
        self._content = self._content[count:]
        return count

    def _decompressed(self) -> bytes:
        """The decompressed part of what was read, up to the end of its first frame."""
        if self._frame is None:
            self._frame = self._decompressor.decompressobj()
        content: bytes = self._frame.decompress(self._compressed)
        self._compressed = self._frame.unused_data if self._frame.eof else b""
        if self._frame.eof:
            self._frame = None
        return content

    def close(self) -> None:
        super().close()
        self._file.close()
