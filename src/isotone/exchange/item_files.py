"""The records of AWS's exports and imports: converts lines of DynamoDB JSON, Ion and CSV to items, and back.

The plain formats (JSON lines, typed CSV) are in moving/line_files.

A position is a number of bytes of the (decompressed) content, always between two lines. A reader only goes forward: it
reads on, without decoding, until it reaches the position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from isotone.exchange import ion

Format = Literal["DYNAMODB_JSON", "ION", "CSV"]
Item: TypeAlias = dict[str, Any]

LONGEST_LINE: Final = 16 << 20
_CHUNK: Final = 256 << 10


class PutRecord(msgspec.Struct, rename="pascal", gc=False):
    """One record: an item to put, and the condition on which it is put, if any."""

    item: dict[str, dict[Any, Any]]  # attribute values are checked later
    condition_expression: str | None = None
    expression_attribute_names: dict[str, str] | None = None
    expression_attribute_values: dict[str, dict[Any, Any]] | None = None  # as above


class DeleteRecord(NamedTuple):
    """One record of an incremental export: an item that was deleted, by its key."""

    key: Item


class Unreadable(NamedTuple):
    """A record that is not an item, with the reason and its text. `is_fatal`: nothing after it can be read."""

    message: str
    is_fatal: bool = False
    text: str = ""


Record: TypeAlias = PutRecord | Unreadable
ChangeRecord: TypeAlias = PutRecord | DeleteRecord | Unreadable
R = TypeVar("R")


class CsvOptions(NamedTuple):
    """How the lines of a CSV file become items: `types` has the types of key attributes; all others are strings."""

    types: Mapping[str, str]
    delimiter: str = ","
    headers: Sequence[str] | None = None


# Write

BEGIN: Final = b'{"Item":'
END: Final = b"}\n"


def json_line(body: bytes) -> bytes:
    """The line for an item whose DynamoDB JSON is `body`."""
    return BEGIN + body + END


def ion_line(item: Item) -> bytes:
    """The line for an item in Ion."""
    return f"{ion.MARKER} {{Item:{ion.struct_of(item)}}}\n".encode()


class Changed(NamedTuple):
    """A record of an incremental export; an image is None if it is not wanted or does not exist."""

    micros: int
    keys: Item
    old: Item | None
    new: Item | None


_encode: Final = msgspec.json.Encoder().encode


def json_change(change: Changed) -> bytes:
    """The line for a change."""
    images = {"OldImage": change.old, "NewImage": change.new}
    return (
        _encode(
            {
                "Metadata": {"WriteTimestampMicros": {"N": str(change.micros)}},
                "Keys": change.keys,
                **{name: image for name, image in images.items() if image is not None},
            }
        )
        + b"\n"
    )


def ion_change(change: Changed) -> bytes:
    """The line for a change in Ion."""
    members = {
        "Keys": {"M": change.keys},
        "Metadata": {"M": {"WriteTimestampMicros": {"N": str(change.micros)}}},
    }
    for name, image in (("OldImage", change.old), ("NewImage", change.new)):
        if image is not None:
            members[name] = {"M": image}
    return f"{ion.MARKER} {{Record:{ion.struct_of(members)}}}\n".encode()


# Read


class RecordFile(Generic[R]):
    """Reads the records of one file; `read` turns its lines into records. Closing it closes the file."""

    __slots__ = ("_lines", "_read", "ended", "position")

    def __init__(self, lines: Lines, read: Callable[[Lines], Iterator[R]]) -> None:
        self._lines = lines
        self._read = read
        self.position: int = 0
        self.ended: bool = False

    @property
    def line(self) -> int:
        """The number of the line that was read last, from 1."""
        return self._lines.number

    def skip_to(self, position: int) -> None:
        """Go forward to a position."""
        self._lines.skip_to(position)
        self.position = position

    def read(self, most: int, most_bytes: int | None = None) -> Iterator[R]:
        """The next `most` records; fewer if the file ends, a few more if a line has several.

        With `most_bytes`, it stops after that many bytes of lines. When it is exhausted, `position` is after the last
        record, and `ended` tells whether it was the file's last.
        """
        end = None if most_bytes is None else self._lines.position + most_bytes
        for count, record in enumerate(self._read(self._lines), 1):
            yield record
            if isinstance(record, Unreadable) and record.is_fatal:
                self.ended = True
                break
            is_enough = count >= most or (end is not None and self._lines.position >= end)
            if is_enough and self._lines.is_between:
                break
        else:
            self.ended = True
        self.position = self._lines.position

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


class ItemFile(RecordFile[Record]):
    """Reads the items of one file, or its lines as they are if they are DynamoDB JSON."""

    __slots__ = ("_form",)

    def __init__(self, file: BinaryIO, form: Format, csv: CsvOptions | None = None) -> None:
        lines = ItemLines(file) if form == "DYNAMODB_JSON" else Lines(file)
        read = _READERS.get(form, _json_records)
        if form == "CSV":
            assert csv is not None
            read = _csv_reader(csv, lines)
        super().__init__(lines, read)
        self._form = form

    @property
    def has_lines(self) -> bool:
        """Whether each line is an item in DynamoDB JSON, so that `read_lines` reads them."""
        return self._form == "DYNAMODB_JSON"

    def read_lines(self, most: int, most_bytes: int | None = None) -> list[bytes]:
        """The next lines, undecoded: at most `most`, and about `most_bytes`; `record_of` decodes one."""
        lines = self._lines.take(most, most_bytes)
        self.ended: bool = not lines
        self.position: int = self._lines.position
        return lines

    def record_of(self, line: bytes) -> Record:
        """The record in a line."""
        return _json_record(line)


class ChangeFile(RecordFile[ChangeRecord]):
    """Reads the changes of one file of an incremental export: what to put, and what to delete."""

    __slots__ = ()

    def __init__(self, file: BinaryIO, form: Format) -> None:
        super().__init__(Lines(file), _CHANGE_READERS[form])


class LineTooLong(ValueError):
    """A line is longer than any item could be."""


class Lines:
    """The lines of a file, the number of the last taken line, and the position after it."""

    __slots__ = ("_ended", "_file", "_rest", "_waiting", "is_between", "number", "position")

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._waiting: list[bytes] = []  # complete lines in reverse order
        self._rest = b""
        self._ended = False
        self.position: int = 0
        self.number: int = 0
        self.is_between: bool = True  # False while a reader has taken part of a record

    def __iter__(self) -> Iterator[bytes]:
        while self._waiting or self._fill():
            line = self._waiting.pop()
            self.position += len(line)
            self.number += 1
            yield line

    def peek(self) -> bytes:
        """The next line, without taking it; empty at the end of the file."""
        return self._waiting[-1] if self._waiting or self._fill() else b""

    def take(self, most: int, most_bytes: int | None = None) -> list[bytes]:
        """The next lines, at most `most`; empty at the end of the file. Stops reading after `most_bytes`."""
        taken: list[bytes] = []
        end = None if most_bytes is None else self.position + most_bytes
        while (
            len(taken) < most
            and (end is None or self.position < end)
            and (self._waiting or self._fill())
        ):
            part = self._waiting[len(taken) - most :]
            del self._waiting[len(taken) - most :]
            taken += reversed(part)
            self.position += sum(map(len, part))
        self.number += len(taken)
        return taken

    def _fill(self) -> bool:
        """Read until there is a complete line, or the last line without a line end."""
        parts = [self._rest]
        length = len(self._rest)
        while not self._ended:
            chunk = self._file.read(_CHUNK)
            parts.append(chunk)
            length += len(chunk)
            if not chunk:
                self._ended = True
            elif b"\n" in chunk or self._has_joints(chunk):
                break
            elif length > LONGEST_LINE:
                raise LineTooLong(f"a line is longer than {LONGEST_LINE >> 20} MB")
        lines = self._split(b"".join(parts))
        self._rest = b""
        if not self._ended and lines and not lines[-1].endswith(b"\n"):
            self._rest = lines.pop()
        lines.reverse()
        self._waiting = lines
        return bool(lines)

    def _has_joints(self, chunk: bytes) -> bool:
        """Whether part of a line may be several records."""
        return False

    def _split(self, text: bytes) -> list[bytes]:
        if b"\r" not in text:  # `splitlines` would split at it, too
            return text.splitlines(keepends=True)
        lines = [line + b"\n" for line in text.split(b"\n")]
        last = lines.pop()[:-1]
        return [*lines, last] if last else lines

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def skip_to(self, position: int) -> None:
        """Drop lines until a position, which is the end of a line."""
        lines = iter(self)
        while self.position < position and next(lines, None) is not None:
            pass


class ItemLines(Lines):
    """The lines of DynamoDB JSON. Records without a line end between them are split into lines."""

    __slots__ = ()

    def _has_joints(self, chunk: bytes) -> bool:
        return (b"}{" in chunk or b"} {" in chunk) and _JOINT.search(chunk) is not None

    def _split(self, text: bytes) -> list[bytes]:
        lines = super()._split(text)
        if not self._has_joints(text):
            return lines
        return [record for line in lines for record in _JOINT.split(line)]


_JOINT: Final = re.compile(rb'(?<=\})(?= ?\{"Item":)')
"""Between two records. A string cannot match, because its quotes are escaped."""


_decode_put: Final = msgspec.json.Decoder(PutRecord).decode
_NO_ITEM: Final = "The record has no Item"


def json_reader(
    read: Callable[[bytes], R | Unreadable],
) -> Callable[[Lines], Iterator[R | Unreadable]]:
    """Makes a reader of lines that contain one record each."""

    def records(lines: Lines) -> Iterator[R | Unreadable]:
        try:
            for line in lines:
                if not line.isspace():
                    yield read(line)
        except LineTooLong as error:
            yield Unreadable(str(error), is_fatal=True)

    return records


def _json_record(line: bytes) -> Record:
    try:
        return _decode_put(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        text = shown(line)
        if b'"NewImage"' in line or b'"Keys"' in line:
            return Unreadable(f"{_NO_ITEM}: it is a record of an incremental export", text=text)
        return Unreadable(f"The record is not an item in DynamoDB JSON: {error}", text=text)


def shown(line: bytes) -> str:
    """A record as text, even if it is not valid UTF-8."""
    return line.decode("utf-8", "replace").strip()


class _ChangeRecord(msgspec.Struct, rename="pascal", gc=False):
    keys: dict[str, dict[Any, Any]]  # attribute values are checked later
    new_image: dict[str, dict[Any, Any]] | None = None  # as above


_decode_change: Final = msgspec.json.Decoder(_ChangeRecord).decode


def _json_changed(line: bytes) -> ChangeRecord:
    try:
        change = _decode_change(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"The record is not a change in DynamoDB JSON: {error}"
        return Unreadable(message, text=shown(line))
    return DeleteRecord(change.keys) if change.new_image is None else PutRecord(change.new_image)


_json_records: Final = json_reader(_json_record)


def _ion_reader(
    read: Callable[[dict[str, Any]], R | Unreadable],
) -> Callable[[Lines], Iterator[R | Unreadable]]:
    return lambda lines: _ion_records(lines, read)


def _ion_records(
    lines: Lines, read: Callable[[dict[str, Any]], R | Unreadable]
) -> Iterator[R | Unreadable]:
    buffer = b""
    try:
        for line in lines:
            if line.startswith(ion.BINARY_MARKER) and not buffer:
                yield Unreadable("Binary Ion cannot be read: write the file as text", is_fatal=True)
                return
            buffer += line
            # Most structs end with their line.
            if buffer.isspace() or not line.rstrip().endswith((b"}", b"]")):
                lines.is_between = buffer.isspace()
                continue
            yield from _ion_values(buffer, lines, read, is_last=False)
            if lines.is_between:
                buffer = b""
            elif len(buffer) > LONGEST_LINE:
                raise LineTooLong(f"a value is longer than {LONGEST_LINE >> 20} MB")
    except LineTooLong as error:
        yield Unreadable(str(error), is_fatal=True)
        return
    if buffer and not buffer.isspace():
        yield from _ion_values(buffer, lines, read, is_last=True)


def _ion_values(
    buffer: bytes,
    lines: Lines,
    read: Callable[[dict[str, Any]], R | Unreadable],
    *,
    is_last: bool,
) -> Iterator[R | Unreadable]:
    """The records in the buffered text; none if it ends inside a value."""
    lines.is_between = True
    try:
        values = ion.values_in(buffer.decode())
    except ion.IonIncomplete as error:
        if is_last:
            yield Unreadable(f"The record is not an item in Ion: {error}", text=shown(buffer))
        else:
            lines.is_between = False
        return
    except (ion.IonError, UnicodeDecodeError) as error:
        yield Unreadable(f"The record is not an item in Ion: {error}", text=shown(buffer))
        return
    for left, value in enumerate(values, 1 - len(values)):
        lines.is_between = left == 0
        record = read(value)
        yield record._replace(text=shown(buffer)) if isinstance(record, Unreadable) else record


def _ion_record(value: dict[str, Any]) -> Record:
    members = value.get("M", {})
    item = members.get("Item", {}).get("M")
    if item is None:
        return Unreadable(
            f"{_NO_ITEM}: it is a record of an incremental export"
            if "Record" in members
            else _NO_ITEM
        )
    names = members.get("ExpressionAttributeNames", {}).get("M")
    return PutRecord(
        item,
        members.get("ConditionExpression", {}).get("S"),
        None if names is None else {name: text.get("S", "") for name, text in names.items()},
        members.get("ExpressionAttributeValues", {}).get("M"),
    )


def _ion_changed(value: dict[str, Any]) -> ChangeRecord:
    record = value.get("M", {}).get("Record", {}).get("M", {})
    keys = record.get("Keys", {}).get("M")
    if keys is None:
        return Unreadable("The record is not a change in Ion: it has no Keys")
    image = record.get("NewImage", {}).get("M")
    return DeleteRecord(keys) if image is None else PutRecord(image)


class CsvRows:
    """Splits lines into rows, and rows into fields."""

    __slots__ = ("_delimiter", "_field", "_is_open")

    def __init__(self, delimiter: str) -> None:
        mark = re.escape(delimiter)
        quoted, plain = '"((?:[^"]|"")*)"', f'([^"{mark}]*)'
        self._delimiter = delimiter
        self._field = re.compile(rf"(?:{quoted}|{plain})({mark}|\Z)")
        self._is_open = re.compile(rf'(?:(?:{quoted}|{plain}){mark})*"(?:[^"]|"")*\Z').match

    def __call__(self, lines: Lines) -> Iterator[str]:
        """The rows without line ends. A quoted field may contain line ends."""
        row = ""
        for line in lines:
            row += line.decode()
            if row.count('"') % 2 and self._is_open(row):
                lines.is_between = False
                if len(row) > LONGEST_LINE:
                    raise LineTooLong(f"a row is longer than {LONGEST_LINE >> 20} MB")
                continue
            lines.is_between = True
            text, row = row.removesuffix("\n").removesuffix("\r"), ""
            if text:
                yield text
        if row:
            lines.is_between = True
            yield row

    def fields(self, row: str) -> list[str] | None:
        """The fields of a row; None if its quotes are wrong."""
        if '"' not in row:
            return row.split(self._delimiter)
        fields: list[str] = []
        position, mark = 0, self._delimiter
        while mark:
            found = self._field.match(row, position)
            if found is None:
                return None
            quoted, plain, mark = found.groups()
            fields.append(plain if quoted is None else quoted.replace('""', '"'))
            position = found.end()
        return fields


def header_fault(first: str, names: Sequence[str]) -> str:
    """Why the rows below a header would not become what they are, in words; `first` is its text, `names` its columns."""
    if "\r" in first and '"' not in first:  # the whole file would be a header without rows
        return "the lines of the file end with CR alone; write it with LF or CRLF"
    if len(set(names)) < len(names):  # the last one would replace the others
        return f"two columns have the same name: {', '.join(names)}"
    return ""


def _csv_reader(options: CsvOptions, lines: Lines) -> Callable[[Lines], Iterator[Record]]:
    """A reader of rows; the first row is the header, unless headers are given."""
    rows = CsvRows(options.delimiter)
    first, headers = "", options.headers
    if headers is None:
        first = next(rows(lines), "").removeprefix("\ufeff")
        headers = rows.fields(first) or ()
    fault = header_fault(first, headers)
    columns = [(name, options.types.get(name, "S")) for name in headers]

    def read(lines: Lines) -> Iterator[Record]:
        if fault:
            yield Unreadable(f"The file cannot be read: {fault}", text=first, is_fatal=True)
            return
        try:
            for row in rows(lines):
                record = _csv_record(rows.fields(row), columns)
                yield record._replace(text=row) if isinstance(record, Unreadable) else record
        except LineTooLong as error:
            yield Unreadable(str(error), is_fatal=True)
        except UnicodeDecodeError as error:
            yield Unreadable(f"The file is not text in UTF-8: {error}", is_fatal=True)

    return read


def _csv_record(fields: list[str] | None, columns: list[tuple[str, str]]) -> Record:
    if fields is None:
        return Unreadable(
            'The row has a double quote that is not escaped: write it as "" in a quoted field'
        )
    if len(fields) != len(columns):
        return Unreadable(f"The row has {len(fields)} fields, but there are {len(columns)} headers")
    return PutRecord(
        {name: {kind: text} for (name, kind), text in zip(columns, fields, strict=True)}
    )


_READERS: Final[dict[str, Callable[[Lines], Iterator[Record]]]] = {
    "DYNAMODB_JSON": _json_records,
    "ION": _ion_reader(_ion_record),
}
_CHANGE_READERS: Final[dict[str, Callable[[Lines], Iterator[ChangeRecord]]]] = {
    "DYNAMODB_JSON": json_reader(_json_changed),
    "ION": _ion_reader(_ion_changed),
}
