"""The formats of item files, and how a name determines one."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from isotone.errors import UsageError
from isotone.exchange.compression import Compression
from isotone.output_paths import STANDARD

FileFormat = Literal["jsonl", "dynamodb-json", "ion", "csv", "parquet"]
Place: TypeAlias = str | PathLike[str]
"""A file, a folder, or `-` for a standard stream."""

TABLE_FILE: Final = ".table.json"

_FORMATS: Final[dict[str, FileFormat]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".ion": "ion",
    ".csv": "csv",
    ".parquet": "parquet",
}
_COMPRESSIONS: Final[dict[str, Compression]] = {".gz": "GZIP", ".zst": "ZSTD"}


class FileKind(NamedTuple):
    """The format of a file, and its compression."""

    form: FileFormat
    compression: Compression = "NONE"


def kind_of(place: Place, form: str | None) -> FileKind:
    """The format that a name implies: orders.jsonl.gz is a gzipped file of JSON lines. `form` overrides it."""
    if form is not None and form not in get_args(FileFormat):
        names = ", ".join(get_args(FileFormat))
        raise UsageError(f"{form!r} is not a format; use one of {names}")
    name = fspath(place)
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    compression = _COMPRESSIONS.get(suffixes.pop(), "NONE") if suffixes[-1:] else "NONE"
    if compression == "NONE":
        suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    found = form or _FORMATS.get(suffixes[-1] if suffixes else "")
    if found is None and name == STANDARD:
        found = "jsonl"
    if found is None:
        raise UsageError(
            f"the name {name!r} does not say its format; give --format (format=), or a name that ends with "
            f"{', '.join(sorted(_FORMATS))}, and .gz or .zst if it is compressed"
        )
    if found == "parquet" and (compression != "NONE" or name == STANDARD):
        raise UsageError(
            "a Parquet file is compressed inside, and is not a stream; write NAME.parquet"
        )
    return FileKind(cast("FileFormat", found), compression)


def is_folder(place: Place) -> bool:
    """Whether a place is a folder that exists, or a name with a slash at its end."""
    name = fspath(place)
    return name != STANDARD and (name.endswith(("/", "\\")) or Path(name).is_dir())


def table_file(place: Place) -> Path:
    """The path of the table's description beside its items: orders.jsonl.table.json."""
    return Path(fspath(place).rstrip("/\\") + TABLE_FILE)
