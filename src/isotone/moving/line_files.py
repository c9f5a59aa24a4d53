"""Item files with one item per line: plain JSON, CSV and the types of its cells, DynamoDB JSON, Ion (by `exchange`).

    jsonl          {"customer": "ann", "total": 12.5}              plain, as the command line writes items
    dynamodb-json  {"Item":{"customer":{"S":"ann"},…}}             as exports of AWS have them
    ion            $ion_1_0 {Item:{customer:"ann",total:12.5}}     the same
    csv            customer,total:N                                types in the header; the others are strings

The CSV of AWS's imports, whose key types come with the request, is read by exchange/item_files.

An empty cell is an absent attribute, because many programs write both alike. An empty string goes to the last column
(`columns`).
"""

from __future__ import annotations

import base64
import binascii
import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, BinaryIO, Final

import msgspec

from isotone.errors import UsageError
from isotone.exchange.item_files import (
    CsvRows,
    ItemFile,
    Lines,
    LineTooLong,
    PutRecord,
    Record,
    RecordFile,
    Unreadable,
    header_fault,
    ion_line,
    json_line,
    json_reader,
    shown,
)
from isotone.moving.columns import (
    CODES,
    JSON,
    REST,
    FileColumns,
    add_rest,
    checked_types,
    columns_of,
    value_of,
)
from isotone.moving.file_names import FileFormat
from isotone.tables.scan import ItemOrJson, decoded
from isotone.values.notation import item_text, parse_json, read_item
from isotone.values.types import AttributeValue, Item

Encoder = Callable[[Sequence[ItemOrJson]], bytes]
"""Encodes items as lines."""

_encode: Final = msgspec.json.Encoder().encode


# Write


def lines_of(items: Sequence[Item], form: FileFormat, first: Sequence[str] = ()) -> bytes:
    """A few items as a whole file. The columns of CSV begin with the `first` attributes, as far as items have them."""
    if form != "csv":
        return encoder_of(form)(items)
    known = [name for name in first if any(name in item for item in items)]
    columns = columns_of(items, known, is_whole=True, fits=fits_cell)
    return csv_header(columns) + encoder_of(form, columns)(items)


def encoder_of(form: FileFormat, columns: FileColumns | None = None) -> Encoder:
    """The encoder of a format; CSV needs columns."""
    if form == "csv":
        assert columns is not None
        return _CsvEncoder(columns)
    return _ENCODERS[form]


def _plain_lines(items: Sequence[ItemOrJson]) -> bytes:
    return "".join([item_text(decoded(item)) + "\n" for item in items]).encode()


def _json_lines(items: Sequence[ItemOrJson]) -> bytes:
    return b"".join([json_line(_encode(item)) for item in items])


def _ion_lines(items: Sequence[ItemOrJson]) -> bytes:
    return b"".join([ion_line(decoded(item)) for item in items])


_ENCODERS: Final[dict[FileFormat, Encoder]] = {
    "jsonl": _plain_lines,
    "dynamodb-json": _json_lines,
    "ion": _ion_lines,
}


def csv_header(columns: FileColumns) -> bytes:
    """The first line of a CSV file."""
    names = [_header(column.name, column.code) for column in columns.columns]
    text = _csv_text([[*names, *([REST] if columns.has_rest else [])]])
    return _MARK + text if text.startswith(_MARK) else text  # readers remove one mark


_MARK: Final = "\ufeff".encode()


def _header(name: str, code: str) -> str:
    is_plain = code == "S" and name.rpartition(":")[2] not in CODES
    return name if is_plain else f"{name}:{code}"


def fits_cell(code: str, content: Any) -> bool:
    """Whether a content can be a cell; an empty cell would be read as an absent attribute."""
    return bool(content != "")


class _CsvEncoder:
    def __init__(self, columns: FileColumns) -> None:
        self._columns = columns

    def __call__(self, items: Sequence[ItemOrJson]) -> bytes:
        return _csv_text([self._row(decoded(item)) for item in items])

    def _row(self, item: Item) -> list[str]:
        cells, rest = self._columns.split(item, lambda _, content: content != "")
        row = [_cell(content) for content in cells]
        return [*row, rest or ""] if self._columns.has_rest else row


def _cell(content: Any) -> str:
    if isinstance(content, bool):
        return "true" if content else "false"
    return content or ""


def _csv_text(rows: list[list[str]]) -> bytes:
    lines: list[str] = []
    # Many programs end a line at a CR; the writer quotes it only if its own lines end with one.
    csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n").writerows(rows)
    return "".join(f"{line[:-2]}\n" for line in lines).encode()


# Read


def open_lines(
    file: BinaryIO, form: FileFormat, types: Mapping[str, str], key_types: Mapping[str, str]
) -> RecordFile[Record]:
    """The records of a file. `types` are the types of CSV columns, `key_types` those of the table's keys."""
    if form == "dynamodb-json":
        return ItemFile(file, "DYNAMODB_JSON")
    if form == "ion":
        return ItemFile(file, "ION")
    if form == "jsonl":
        return _JsonLines(file)
    lines = Lines(file)
    return RecordFile(lines, _CsvReader(lines, types, key_types))


class _JsonLines(ItemFile):
    """Reads plain items, or lines of DynamoDB JSON; the first line decides."""

    __slots__ = ("_is_wrapped",)

    def __init__(self, file: BinaryIO) -> None:
        RecordFile.__init__(self, Lines(file), json_reader(_JsonReader()))
        self._is_wrapped: bool | None = None

    @property
    def has_lines(self) -> bool:
        if self._is_wrapped is None:
            self._is_wrapped = _is_wrapped(self._lines.peek())
        return self._is_wrapped

    def record_of(self, line: bytes) -> Record:
        return _wrapped_item(line)


_decode_put: Final = msgspec.json.Decoder(PutRecord).decode


class _OnlyPut(PutRecord, rename="pascal", forbid_unknown_fields=True):
    """A record without other members; a plain item that has an attribute `Item` is not taken for one."""


_decode_only_put: Final = msgspec.json.Decoder(_OnlyPut).decode


class _JsonReader:
    """Reads plain items, or lines of DynamoDB JSON; the first line decides."""

    def __init__(self) -> None:
        self._read: Callable[[bytes], Record] | None = None

    def __call__(self, line: bytes) -> Record:
        if self._read is None:
            if line.lstrip().startswith(b"["):
                return Unreadable(
                    "the file is a JSON array; write one item per line, or use isotone put TABLE @FILE",
                    is_fatal=True,
                )
            self._read = _wrapped_item if _is_wrapped(line) else _plain_item
        return self._read(line)


def _is_wrapped(line: bytes) -> bool:
    """Whether a line is a record of DynamoDB JSON: an `Item` whose members are all typed values."""
    try:
        put = _decode_only_put(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return bool(put.item) and all(
        len(value) == 1 and _TYPES.issuperset(value) for value in put.item.values()
    )


_TYPES: Final = frozenset({"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"})


def _wrapped_item(line: bytes) -> Record:
    try:
        return _decode_put(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Unreadable(f"it is not an item in DynamoDB JSON: {error}", text=shown(line))


def _plain_item(line: bytes) -> Record:
    try:
        return PutRecord(read_item(parse_json(line.decode())))
    except (UsageError, UnicodeDecodeError, RecursionError) as error:
        return Unreadable(str(error), text=shown(line))


class _CsvReader:
    """Reads rows; the first one has the names and types of the columns."""

    def __init__(
        self, lines: Lines, types: Mapping[str, str], key_types: Mapping[str, str]
    ) -> None:
        self._rows = CsvRows(",")
        first = next(self._rows(lines), "").removeprefix("\ufeff")
        header = self._rows.fields(first)
        if not header or header == [""]:
            raise UsageError(
                "the file has no header; the first line of a CSV file names the columns"
            )
        given = checked_types(types)
        self._columns = [_column(text, given, key_types) for text in header]
        names = [name for name, _ in self._columns]
        fault = header_fault(first, names)
        if fault:
            raise UsageError(fault)
        for name in given.keys() - set(names):
            raise UsageError(f"the file has no column {name!r}; its columns: {', '.join(names)}")

    def __call__(self, lines: Lines) -> Iterator[Record]:
        try:
            for row in self._rows(lines):
                yield self._record(row)
        except LineTooLong as error:
            yield Unreadable(str(error), is_fatal=True)
        except UnicodeDecodeError as error:
            yield Unreadable(f"the file is not text in UTF-8: {error}", is_fatal=True)

    def _record(self, row: str) -> Record:
        cells = self._rows.fields(row)
        if cells is None:
            return Unreadable('a double quote is not escaped; write it as ""', text=row)
        if len(cells) != len(self._columns):
            return Unreadable(
                f"it has {len(cells)} cells, but there are {len(self._columns)} columns", text=row
            )
        item: Item = {}
        for (name, code), cell in zip(self._columns, cells, strict=True):
            if cell == "":
                continue
            try:
                if name == REST and code == REST:
                    add_rest(item, cell)
                else:
                    item[name] = _READ_CELL[code](cell)
            except (UsageError, ValueError) as error:
                return Unreadable(f"column {name}: {error}", text=row)
        return PutRecord(item)


def _column(text: str, given: Mapping[str, str], key_types: Mapping[str, str]) -> tuple[str, str]:
    """The name and type of a column: the caller's type, else the header's, else the type of the table's key."""
    if text == REST and REST not in given:
        return REST, REST
    name, _, code = text.rpartition(":")
    if not name or code not in CODES or text in given:
        name, code = text, key_types.get(text, "S")
    return name, given.get(name, code)


def _flag(cell: str) -> AttributeValue:
    if cell.lower() not in ("true", "false"):
        raise UsageError(f"{cell!r} is neither true nor false")
    return {"BOOL": cell.lower() == "true"}


def _binary(cell: str) -> AttributeValue:
    try:
        base64.b64decode(cell, validate=True)
    except binascii.Error:
        raise UsageError(f"{cell[:40]!r} is not base64") from None
    return {"B": cell}


_READ_CELL: Final[dict[str, Callable[[str], AttributeValue]]] = {
    "S": lambda cell: {"S": cell},
    "N": lambda cell: {"N": cell.strip()},
    "B": _binary,
    "BOOL": _flag,
    JSON: value_of,
}
