"""Reads and writes items in Parquet files, row group by row group; needs pyarrow (`pip install isotone[parquet]`).

    S string    B binary    BOOL bool    N int64, or decimal128(38, scale), or string, by the sample    others JSON

Numbers stay exact. A number that does not fit the type of its column goes to the last column (`columns`), like
everything else that differs from the sample. Files of other programs are read by the types of their columns: times
become texts in ISO 8601, lists and structs become lists and maps, and a null is an absent attribute.
"""

from __future__ import annotations

import base64
import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import date, datetime, time
from decimal import Decimal
from os import fspath
from pathlib import Path
from typing import Any, BinaryIO, Final
from uuid import UUID

from isotone.errors import UsageError
from isotone.exchange.item_files import PutRecord, Record, Unreadable
from isotone.file_lock import begin_draft, check_in_place, open_locked
from isotone.moving.columns import JSON, REST, FileColumns, add_rest, value_of
from isotone.moving.file_names import Place
from isotone.moving.output_files import PART, check_free, name_part
from isotone.tables.scan import ItemOrJson, decoded
from isotone.values.json import text_of_bytes, to_wire
from isotone.values.types import AttributeValue, Item

NO_PARQUET: Final = "Parquet needs the package pyarrow: pip install 'isotone[parquet]'"
_CODE: Final = b"isotone"  # metadata of a column: the type of its values
_DIGITS: Final = 38
_SPARE_SCALE: Final = 9  # the least digits after the point in a column of decimals
_INT64: Final = 2**63
_GROUP: Final = 20_000  # the most items of a row group
_GROUP_SIZE: Final = 32 << 20  # the approximate bytes of a row group's contents


def _library(name: str = "pyarrow") -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(NO_PARQUET) from None


# Write


def schema_of(columns: FileColumns, sample: Sequence[Item]) -> Any:
    """The schema of a file with these columns; numbers get the narrowest type that fits the sample."""
    arrow = _library()
    fields = []
    for column in columns.columns:
        kind = {"B": arrow.binary(), "BOOL": arrow.bool_()}.get(column.code, arrow.string())
        if column.code == "N":
            kind = _number_type(
                arrow,
                [item[column.name]["N"] for item in sample if "N" in item.get(column.name, ())],
            )
        fields.append(arrow.field(column.name, kind, metadata={_CODE: column.code.encode()}))
    if columns.has_rest:
        fields.append(arrow.field(REST, arrow.string(), metadata={_CODE: REST.encode()}))
    return arrow.schema(fields)


def _number_type(arrow: Any, texts: Sequence[str]) -> Any:
    if all(_is_int64(text) for text in texts):
        return arrow.int64()
    numbers = [Decimal(text) for text in texts]
    scale = max(_scale(number) for number in numbers)
    whole = max(number.adjusted() + 1 for number in numbers)
    if max(scale, 0) + max(whole, 1) > _DIGITS:
        return arrow.string()
    spare = max(scale, _SPARE_SCALE)
    return arrow.decimal128(_DIGITS, spare if spare + whole <= _DIGITS else scale)


def _scale(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def _is_int64(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isdecimal() and len(digits) < 20 and -_INT64 <= int(text) < _INT64


def fits_type(kind: Any, content: Any) -> bool:
    """Whether a number fits into the Arrow type of its column."""
    arrow = _library()
    if arrow.types.is_int64(kind):
        return _is_int64(content)
    if arrow.types.is_decimal(kind):
        number = Decimal(content)
        whole: int = kind.precision - kind.scale
        return bool(_scale(number) <= kind.scale and number.adjusted() + 1 <= whole)
    return True


class ParquetOutput:
    """A Parquet file. It cannot be continued, because its directory is at its end."""

    is_resumable = False
    should_save = False

    def __init__(self, place: Place, columns: FileColumns, schema: Any, *, force: bool) -> None:
        self._place = fspath(place)
        self._columns = columns
        self._schema = schema
        self._codes = [column.code for column in columns.columns]
        self._is_int = [_library().types.is_int64(field.type) for field in schema]
        self._is_decimal = [_library().types.is_decimal(field.type) for field in schema]
        self._force = force
        self._rows: list[list[Any]] = []
        self._size = 0
        self._written = 0  # bytes of the file
        self._writer: Any = None
        self._file: BinaryIO | None = None

    def begin(self, saved: Any) -> bool:
        check_free(self._place, force=self._force)
        self._file = open_locked(Path(self._place + PART))
        begin_draft(self._file, self._place + PART)
        self._writer = _library("pyarrow.parquet").ParquetWriter(
            self._file, self._schema, compression="zstd"
        )
        self._file.flush()
        self._written = self._file.tell()
        return False

    def write(self, items: Sequence[ItemOrJson]) -> None:
        for item in items:
            cells, rest = self._columns.split(decoded(item), self._fits)
            row = [
                None if content is None else self._converted(place, content)
                for place, content in enumerate(cells)
            ]
            self._rows.append([*row, rest] if self._columns.has_rest else row)
            self._size += sum(len(content) for content in cells if isinstance(content, str))
            self._size += len(rest or "")
        if len(self._rows) >= _GROUP or self._size >= _GROUP_SIZE:
            self._write_group()

    def _fits(self, place: int, content: Any) -> bool:
        return self._codes[place] != "N" or fits_type(self._schema.field(place).type, content)

    def _converted(self, place: int, content: Any) -> Any:
        code = self._codes[place]
        if code == "B":
            return base64.b64decode(content)
        if code == "N" and self._is_int[place]:
            return int(content)
        if code == "N" and self._is_decimal[place]:
            return Decimal(content)
        return content

    def _write_group(self) -> None:
        assert self._file is not None
        check_in_place(self._file, self._place + PART, self._written)
        arrow = _library()
        columns = zip(*self._rows, strict=True) if self._rows else [[] for _ in self._schema]
        arrays = [
            arrow.array(list(values), type=field.type)
            for values, field in zip(columns, self._schema, strict=True)
        ]
        self._writer.write_table(arrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows, self._size = [], 0
        self._file.flush()
        self._written = self._file.tell()

    def save(self) -> Any:
        return None

    def finish(self) -> None:
        if self._rows:
            self._write_group()
        assert self._file is not None
        check_in_place(self._file, self._place + PART, self._written)
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        name_part(self._file, self._place, self._file.tell(), force=self._force)

    def close(self) -> None:
        with ExitStack() as stack:
            if self._file is not None:
                stack.callback(self._file.close)
            if self._writer is not None:
                self._writer.close()


# Read


class ParquetInput:
    """The rows of a Parquet file. A position is a number of rows."""

    def __init__(self, place: Place) -> None:
        parquet, arrow = _library("pyarrow.parquet"), _library()
        self._name = fspath(place)
        self._failures = (OSError, arrow.ArrowException)
        try:
            self._file = parquet.ParquetFile(self._name)
        except self._failures as error:
            raise UsageError(f"cannot read {self._name} as Parquet: {error}") from None
        schema = self._file.schema_arrow
        if len(set(schema.names)) < len(schema.names):
            names = ", ".join(schema.names)
            raise UsageError(f"two columns of {self._name} have the same name: {names}")
        self._codes = {
            field.name: (field.metadata or {}).get(_CODE, b"").decode() for field in schema
        }
        self._rows: Iterator[Mapping[str, Any]] = self._rows_from(0)
        self.position: int = 0
        self.ended: bool = False

    @property
    def line(self) -> int:
        """The number of the row that was read last, from 1."""
        return self.position

    @property
    def total(self) -> int:
        """The number of rows."""
        count: int = self._file.metadata.num_rows
        return count

    def skip_to(self, position: int) -> None:
        """Go to a row, without reading the groups before it."""
        self._rows = self._rows_from(position)
        self.position = position

    def _rows_from(self, position: int) -> Iterator[Mapping[str, Any]]:
        metadata = self._file.metadata
        before = 0
        for group in range(metadata.num_row_groups):
            count = metadata.row_group(group).num_rows
            skipped = max(0, min(position - before, count))
            before += count
            if skipped == count:
                continue
            for batch in self._file.iter_batches(batch_size=500, row_groups=[group]):
                if skipped >= batch.num_rows:
                    skipped -= batch.num_rows
                    continue
                yield from batch.slice(skipped).to_pylist()
                skipped = 0

    def read(self, most: int, most_bytes: int | None = None) -> Iterator[Record]:
        """The next rows."""
        for _ in range(most):
            try:
                row = next(self._rows, None)
            except self._failures as error:
                raise UsageError(
                    f"{self._name} is damaged after row {self.position}: {error}"
                ) from None
            except ValueError as error:  # a time with nanoseconds, which Python cannot represent
                raise UsageError(
                    f"{self._name} cannot be read after row {self.position}: {error}"
                ) from None
            if row is None:
                self.ended = True
                return
            self.position += 1
            yield self._record(row)

    def _record(self, row: Mapping[str, Any]) -> Record:
        item: Item = {}
        for name, content in row.items():
            if content is None:
                continue
            try:
                if self._codes[name] == REST:
                    add_rest(item, content)
                else:
                    item[name] = _value(self._codes[name], content)
            except (UsageError, ValueError, TypeError) as error:
                return Unreadable(f"column {name}: {error}", text=str(dict(row)))
        return PutRecord(item)

    def close(self) -> None:
        self._file.close()


def _value(code: str, content: Any) -> AttributeValue:
    if code == JSON:
        return value_of(content)
    if code == "N":
        return {"N": format(content, "f") if isinstance(content, Decimal) else str(content)}
    if code == "B":
        return {"B": text_of_bytes(content)}
    if code:
        return {code: content}
    return to_wire(_plain(content))


def _plain(content: Any) -> Any:
    """A value from another program's file, converted to one that DynamoDB can store."""
    if isinstance(content, float):
        if content != content or content in (float("inf"), float("-inf")):
            raise UsageError(f"{content} is not a number that DynamoDB can store")
        return Decimal(repr(content))
    if isinstance(content, datetime | date | time):
        return content.isoformat()
    if isinstance(content, UUID):
        return str(content)
    if isinstance(content, list | tuple):
        return [_plain(element) for element in content]
    if isinstance(content, dict):
        return {name: _plain(member) for name, member in content.items()}
    return content
