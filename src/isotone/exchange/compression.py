"""Reading compressed files: gzip, with any number of members, and Zstandard, with any number of frames.

Zstandard is in Python 3.14 and later; before, it needs `pip install isotone[zstd]`.
"""

from __future__ import annotations

import gzip
import importlib
import zlib
from typing import Any, BinaryIO, Final, Literal, cast

from isotone.errors import UsageError
from isotone.exchange.item_files import LineTooLong
from isotone.exchange.objects import ObjectStoreError

Compression = Literal["NONE", "GZIP", "ZSTD"]

NO_ZSTD: Final = (
    "Reading ZSTD needs Python 3.14 or the package zstandard: pip install 'isotone[zstd]'"
)


def decompressed(file: BinaryIO, compression: Compression) -> BinaryIO:
    """The content of a file. Closing it closes the file."""
    if compression == "GZIP":
        return cast("BinaryIO", _Gzip(fileobj=file))
    if compression == "ZSTD":
        return cast("BinaryIO", _zstd_reader(file))
    return file


def can_read(compression: Compression) -> bool:
    """Whether this Python has what a compression needs."""
    return compression != "ZSTD" or _zstd() is not None


def damage() -> tuple[type[Exception], ...]:
    """What reading a file raises if it is damaged, or cannot be read at all."""
    library = _zstd()
    known = (EOFError, zlib.error, OSError, UnicodeDecodeError, LineTooLong, ObjectStoreError)
    return known if library is None else (*known, library.ZstdError)


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
    return library.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=True)
