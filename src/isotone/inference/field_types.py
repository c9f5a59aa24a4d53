"""Infers the types of fields from the values of an attribute.

A type is inferred only if every value is written back unchanged: `datetime` for texts with microseconds in UTC, but
`str` for those with milliseconds, which Isotone would write in another form. Values that fit no type become `Any`,
which reads and writes every value.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from isotone.codec.ids import BASE62, CROCKFORD, KSUID, ULID
from isotone.inference.naming import class_name, words
from isotone.text_table import pluralized
from isotone.values.json import from_wire
from isotone.values.types import AttributeValue

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = datetime(1990, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(2100, 1, 1, tzinfo=UTC)
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([.,]\d+)?(Z|[+-]\d\d(:?\d\d)?)?")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TIME_WORDS: Final = frozenset(
    {
        *(
            "at",
            "time",
            "timestamp",
            "ts",
            "date",
            "datetime",
            "on",
            "when",
            "since",
            "until",
            "from",
        ),
        *("created", "updated", "modified", "changed", "expires", "expiry", "expiration", "ttl"),
        *("started", "ended", "start", "end", "seen", "epoch", "deadline", "due", "ends", "starts"),
    }
)
_CHOICE_WORDS: Final = frozenset(
    {
        *(
            "status",
            "state",
            "type",
            "kind",
            "role",
            "level",
            "priority",
            "category",
            "plan",
            "tier",
        ),
        *(
            "mode",
            "channel",
            "currency",
            "size",
            "severity",
            "visibility",
            "method",
            "stage",
            "phase",
        ),
        *("urgency", "gender", "direction", "outcome", "result"),
    }
)
_MOST_CHOICES: Final = 10
_LEAST_ITEMS: Final = 10  # items that a Literal needs


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type as source code, and the decoder of its values.

    `kind` names how values may appear in a key: "str", "choice", "int", "Decimal", "date", "datetime", "uuid", "ulid",
    "ksuid", "bool", "bytes", or "" for values that are never part of one. `options` are arguments of `field`,
    `definitions` are the classes that the type needs, `note` says what was guessed.
    """

    text: str
    kind: str = ""
    decode: Callable[[AttributeValue], Any] = from_wire
    options: Mapping[str, str] = field(default_factory=dict)
    definitions: tuple[str, ...] = ()
    note: str = ""
    is_guess: bool = False


def type_of(name: str, values: Sequence[AttributeValue], taken: set[str]) -> FieldType:
    """The type of an attribute with these values; none of them is NULL.

    `taken` has the names of all classes; the names of classes that the type needs are added.
    """
    codes = Counter(code for value in values for code in value)
    if not codes:
        return FieldType("Any", note="it is NULL in every item")
    if len(codes) > 1:
        pluralized = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
        return FieldType("Any", note=f"values of several types: {pluralized}")
    (code,) = codes
    contents = [value[code] for value in values]
    if code == "S":
        return _text(name, contents)
    if code == "N":
        return _number(name, contents)
    if code in _SIMPLE:
        return _SIMPLE[code]
    if code in _SETS:
        are_whole = code == "NS" and all(
            _is_whole(each) for members in contents for each in members
        )
        member = "int" if are_whole else _SETS[code]
        return FieldType(f"set[{member}]")
    if code == "L":
        return _list(name, contents, taken)
    return _map(name, contents, taken)


_SIMPLE: Final = {
    "BOOL": FieldType("bool", "bool"),
    "B": FieldType("bytes", "bytes"),
    "NULL": FieldType("Any"),
}
_SETS: Final = {"SS": "str", "NS": "Decimal", "BS": "bytes"}


# Texts


def _text(name: str, texts: Sequence[str]) -> FieldType:
    for fits, found in _TEXTS:
        if all(map(fits, texts)):
            return found
    if all(map(_ISO.fullmatch, texts)):
        note = f"times such as {texts[0]!r}: as a datetime, Isotone would write microseconds and Z"
        return FieldType("str", "str", _content, note=note)
    return _choices(name, texts) or FieldType("str", "str", _content)


def _choices(name: str, texts: Sequence[str]) -> FieldType | None:
    """A Literal for few values in many items, if the name or the values look like choices."""
    counts = Counter(texts)
    if not 2 <= len(counts) <= _MOST_CHOICES or len(texts) < max(_LEAST_ITEMS, 4 * len(counts)):
        return None
    if min(counts.values()) < 2 or not all(re.fullmatch(r"[\w .-]{1,30}", text) for text in counts):
        return None
    if not may_be_choice(name):
        return None
    listed = ", ".join(map(quoted, sorted(counts)))
    note = f"{len(counts)} different values in {pluralized(len(texts), 'item')}"
    return FieldType(f"Literal[{listed}]", "choice", _content, note=note, is_guess=True)


def may_be_choice(name: str) -> bool:
    """Whether an attribute's name suggests that it has few values, such as orderStatus."""
    return bool(_CHOICE_WORDS & {word.lower() for word in words(name)[-1:]})


def quoted(text: str) -> str:
    """A text as Python source, in double quotes where it has none inside.

    >>> print(quoted("a"), quoted('say "a"'))
    "a" 'say "a"'
    """
    plain = repr(text)
    if plain[0] == "'" and '"' not in plain:
        return '"' + plain[1:-1].replace("\\'", "'") + '"'
    return plain


def _content(value: AttributeValue) -> Any:
    return value["S"]


def _is_instant(text: str) -> bool:
    return bool(_INSTANT.fullmatch(text)) and _parses(datetime.fromisoformat, text)


def _is_day(text: str) -> bool:
    return bool(_DAY.fullmatch(text)) and _parses(date.fromisoformat, text)


def _is_uuid(text: str) -> bool:
    return len(text) == 36 and _parses(UUID, text) and str(UUID(text)) == text


def is_ulid(text: str) -> bool:
    """Whether a text is a ULID with a plausible time."""
    return CROCKFORD.holds(text) and _is_recent(ULID(text).time)


def is_ksuid(text: str) -> bool:
    """Whether a text is a KSUID with a plausible time."""
    return BASE62.holds(text) and _is_recent(KSUID(text).time)


def _is_recent(instant: datetime) -> bool:
    return _FIRST <= instant < _LAST


def _parses(parse: Callable[[str], Any], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


_TEXTS: Final[list[tuple[Callable[[str], bool], FieldType]]] = [
    (
        _is_instant,
        FieldType("datetime", "datetime", lambda value: datetime.fromisoformat(value["S"])),
    ),
    (_is_day, FieldType("date", "date", lambda value: date.fromisoformat(value["S"]))),
    (_is_uuid, FieldType("UUID", "uuid", lambda value: UUID(value["S"]))),
    (is_ulid, FieldType("ULID", "ulid", _content)),
    (is_ksuid, FieldType("KSUID", "ksuid", _content)),
]


# Numbers


def _number(name: str, numbers: Sequence[str]) -> FieldType:
    is_time = bool(_TIME_WORDS & {word.lower() for word in words(name)})
    if is_time and all(map(_is_epoch, numbers)):
        return FieldType(
            "datetime",
            "datetime",
            _read_epoch,
            {"epoch": "True"},
            note="seconds since 1970, by its name and values",
            is_guess=True,
        )
    if not all(map(_is_whole, numbers)):
        return FieldType("Decimal", "Decimal")
    pluralized = next(
        (unit for unit, per in _UNITS.items() if _all_since_epoch(numbers, per)), None
    )
    note = f"{pluralized} since 1970, by its name and values" if is_time and pluralized else ""
    return FieldType("int", "int", lambda value: int(value["N"]), note=note)


_UNITS: Final = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}


def _all_since_epoch(numbers: Sequence[str], units_per_second: int) -> bool:
    return all(_is_epoch(str(int(number) // units_per_second)) for number in numbers)


def _is_whole(number: str) -> bool:
    return number.lstrip("-").isdigit()


def _is_epoch(number: str) -> bool:
    value = Decimal(number)
    if not _FIRST.timestamp() <= value < _LAST.timestamp():
        return False
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -6


def _read_epoch(value: AttributeValue) -> datetime:
    return _EPOCH + timedelta(microseconds=int(Decimal(value["N"]) * 1_000_000))


# Lists and maps


def _list(name: str, lists: Sequence[list[AttributeValue]], taken: set[str]) -> FieldType:
    elements = [element for elements in lists for element in elements]
    if not elements:
        return FieldType("list[Any]", note="all lists are empty")
    inner = _inner(_singular(name), elements, taken)
    return FieldType(f"list[{inner.text}]", definitions=inner.definitions, note=inner.note)


def _map(name: str, maps: Sequence[Mapping[str, AttributeValue]], taken: set[str]) -> FieldType:
    counts = Counter(member for each in maps for member in each)
    if _has_members(maps, counts):
        return _typed_dict(name, maps, counts, taken)
    inner = _inner(name, [value for each in maps for value in each.values()], set())
    if not counts or inner.definitions:
        return FieldType("dict[str, Any]")
    return FieldType(f"dict[str, {inner.text}]")


def _has_members(maps: Sequence[Mapping[str, AttributeValue]], counts: Mapping[str, int]) -> bool:
    """Whether maps have the same few members, so that the members are fields of a class, not keys of a dict."""
    if not 1 <= len(counts) <= 20 or len(maps) < 2:
        return False
    if not all(map(_is_member_name, counts)):
        return False
    return sum(counts.values()) >= 0.6 * len(counts) * len(maps) and max(counts.values()) > 1


def _is_member_name(name: str) -> bool:
    return (
        name.isidentifier()
        and name.isascii()
        and not name.startswith("_")
        and not keyword.iskeyword(name)
    )


def _typed_dict(
    name: str,
    maps: Sequence[Mapping[str, AttributeValue]],
    counts: Mapping[str, int],
    taken: set[str],
) -> FieldType:
    title = class_name(name, taken)
    taken.add(title)
    lines: list[str] = []
    definitions: list[str] = []
    for member in sorted(counts):
        inner = _inner(member, [each[member] for each in maps if member in each], taken)
        text = inner.text if counts[member] == len(maps) else f"NotRequired[{inner.text}]"
        lines.append(f"    {member}: {text}")
        definitions += inner.definitions
    header = f'@with_config(ConfigDict(extra="allow"))\nclass {title}(TypedDict):\n'
    return FieldType(title, definitions=(*definitions, header + "\n".join(lines) + "\n"))


def _inner(name: str, values: Sequence[AttributeValue], taken: set[str]) -> FieldType:
    """The type of values inside a list or a map: optional if some are NULL, and never guessed."""
    present = [value for value in values if "NULL" not in value]
    if not present:
        return FieldType("Any")
    found = type_of(name, present, taken)
    if found.is_guess or found.kind in ("datetime", "date", "uuid", "ulid", "ksuid"):
        is_whole = all(_is_whole(value.get("N", "0.1")) for value in present)
        found = FieldType("str" if "S" in present[0] else "int" if is_whole else "Decimal")
    if found.text != "Any" and len(present) < len(values):
        return FieldType(f"{found.text} | None", definitions=found.definitions)
    return found


def _singular(name: str) -> str:
    return name[:-1] if name.lower().endswith("s") and len(name) > 2 else name
