"""Reads a file of access patterns: which entities there are, what identifies each, and how they are read.

    Customer(customer_id; name, email)
    Order(customer_id, number: int <= 99_999; status: OPEN|PAID, placed_at: datetime, total?: decimal)

    Order of Customer by number desc
    Order of status by placed_at

Each line is an entity or a pattern; nothing is guessed. Before the semicolon are the fields that identify an entity. A
pattern reads the items of one entity with equal values of the fields after `of`, in the order of those after `by`. The name
of an entity after `of` stands for the fields that identify it. Every error names its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from isotone.errors import UsageError
from isotone.inference.naming import class_name, field_name

_ENTITY: Final = re.compile(r"(\w+)\s*\((.*)\)")
_PATTERN: Final = re.compile(r"(\w+)(?:\s+of\s+(.+?))?(?:\s+by\s+(.+))?")
_FIELD: Final = re.compile(r"(\w+)(\??)(?:\s*:\s*(.+))?")
_BOUNDED: Final = re.compile(r"(int|decimal)\s*<=\s*([0-9][0-9_]*(?:\.[0-9]+)?)")
_CHOICE: Final = re.compile(r"\w[\w-]*")
_BY: Final = re.compile(r"(\w+)(\s+desc)?")

PLAIN: Final = ("text", "int", "decimal", "bool", "datetime", "date", "uuid", "ulid")
"""The types of fields; the others are choices (`OPEN|PAID`)."""
_NUMBERS: Final = ("int", "decimal")


class PatternField(NamedTuple):
    """A field: its type, the choices that it has, the greatest value of a number."""

    name: str
    kind: str = "text"
    choices: tuple[str, ...] = ()
    greatest: Decimal | None = None
    is_optional: bool = False

    def __str__(self) -> str:
        """The type as it is written."""
        bound = "" if self.greatest is None else f" <= {self.greatest:,f}".replace(",", "_")
        return "|".join(self.choices) or f"{self.kind}{bound}"


class PatternEntity(NamedTuple):
    """An entity: its fields by name, and those that identify it."""

    line: int
    name: str
    fields: Mapping[str, PatternField]
    identity: tuple[str, ...]


class Ordering(NamedTuple):
    """A field that orders a pattern, and whether the greatest value comes first."""

    field: str
    descending: bool = False


class AccessPattern(NamedTuple):
    """A pattern: the items of an entity with equal values of fields, in an order. `owner` is the entity after `of`."""

    line: int
    text: str
    entity: str
    equal: tuple[str, ...]
    order: tuple[Ordering, ...]
    owner: str = ""


class PatternFile(NamedTuple):
    """The entities by name, and the patterns, as their lines stand."""

    entities: Mapping[str, PatternEntity]
    patterns: tuple[AccessPattern, ...]


def read_patterns(text: str, source: str = "") -> PatternFile:
    """Read a file's text; raises `UsageError` that names the line. `source` is the file's name for errors."""
    before = f"{source}: " if source else ""
    entities: dict[str, PatternEntity] = {}
    later: list[tuple[int, str]] = []
    for number, line in _lines(text):
        try:
            if "(" in line:
                entity = _entity(number, line, entities)
                entities[entity.name] = entity
            else:
                later.append((number, line))
        except UsageError as error:
            raise UsageError(f"{before}line {number}: {error}") from None
    patterns: list[AccessPattern] = []
    for number, line in later:
        try:
            patterns.append(_pattern(number, line, entities, patterns))
        except UsageError as error:
            raise UsageError(f"{before}line {number}: {error}") from None
    if not entities:
        raise UsageError(f"{before}there is no entity; begin with one, such as {_EXAMPLE}")
    return PatternFile(entities, tuple(patterns))


_EXAMPLE: Final = "Order(customer_id, number: int <= 99_999; placed_at: datetime)"


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines without comments, with their numbers; one that opens a bracket goes on until it is closed."""
    begun, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        plain = " ".join(line.partition("#")[0].split())
        if not plain:
            continue
        begun, first = (f"{begun} {plain}", first) if begun else (plain, number)
        if begun.count("(") <= begun.count(")"):
            yield first, begun
            begun = ""
    if begun:
        yield first, begun


# Entities


def _entity(line: int, text: str, known: Mapping[str, PatternEntity]) -> PatternEntity:
    match = _ENTITY.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no entity; write {_EXAMPLE}")
    name, inner = match[1], match[2]
    if name in known:
        raise UsageError(f"{name} is declared in line {known[name].line} already")
    if class_name(name, ()) != name:
        raise UsageError(
            f"{name!r} is no name for an entity; write {class_name(name, ())}, for example"
        )
    parts = inner.split(";")
    if len(parts) != 2 or not parts[0].strip():
        raise UsageError(
            f"{name} must say what identifies it: write these fields, a semicolon, and then the others, such as "
            f"{_EXAMPLE}"
        )
    identifying, others = ([_field(each) for each in _listed(part)] for part in parts)
    fields: dict[str, PatternField] = {}
    for field in (*identifying, *others):
        if field.name in fields:
            raise UsageError(f"{name} has field {field.name!r} twice")
        fields[field.name] = field
    identity = tuple(field.name for field in identifying)
    for field in identifying:
        _check_in_key(field, f"identifies {name}")
    entity = PatternEntity(line, name, fields, identity)
    for other in known.values():
        _check_alike(entity, other)
    return entity


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")] if text.strip() else []


def _field(text: str) -> PatternField:
    match = _FIELD.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no field; write name, or name: type, such as number: int")
    name, mark, type_ = match[1], match[2], match[3] or "text"
    if field_name(name, ()) != name:
        raise UsageError(
            f"{name!r} is no name for a field; write {field_name(name, ())}, for example"
        )
    return _typed(name, type_.strip())._replace(is_optional=bool(mark))


def _typed(name: str, type_: str) -> PatternField:
    if type_ in PLAIN:
        return PatternField(name, type_)
    bounded = _BOUNDED.fullmatch(type_)
    if bounded is not None:
        greatest = Decimal(bounded[2].replace("_", ""))
        if greatest <= 0 or (bounded[1] == "int" and "." in bounded[2]):
            raise UsageError(f"{bounded[2]} is no greatest value of {name!r}; write 99_999")
        return PatternField(name, bounded[1], greatest=greatest)
    choices = tuple(each.strip() for each in type_.split("|"))
    if len(choices) > 1:
        for each in choices:
            if not _CHOICE.fullmatch(each) or choices.count(each) > 1:
                raise UsageError(f"{each!r} is no choice of {name!r}; write OPEN|PAID|SHIPPED")
        return PatternField(name, "choice", choices)
    raise UsageError(
        f"{type_!r} is no type of {name!r}; the types are {', '.join(PLAIN)}, int <= 99_999, decimal <= 999.99, and "
        "choices such as OPEN|PAID"
    )


def _check_in_key(field: PatternField, why: str) -> None:
    """Refuse a field that cannot be in a key: one that may be missing, or a number of any size."""
    if field.is_optional:
        raise UsageError(f"{field.name!r} {why}, so it must have a value; write it without ?")
    if field.kind in _NUMBERS and field.greatest is None:
        example = "99_999" if field.kind == "int" else "9_999.99"
        raise UsageError(
            f"{field.name!r} {why}, so its greatest value must be known; write {field.name}: {field.kind} <= {example}"
        )


def _check_alike(entity: PatternEntity, other: PatternEntity) -> None:
    """Refuse a field with another type than in an entity that it identifies: the two keys would never be equal."""
    for name in (*other.identity, *entity.identity):
        if name not in entity.fields or name not in other.fields:
            continue
        one, another = (each.fields[name]._replace(is_optional=False) for each in (entity, other))
        if one != another:
            verbs = ["identifies" if name in each.identity else "is in" for each in (entity, other)]
            raise UsageError(
                f"{name!r} {verbs[0]} {entity.name} as {one}, and {verbs[1]} {other.name} as {another} in line "
                f"{other.line}; give both the same type"
            )


# Patterns


def _pattern(
    line: int, text: str, entities: Mapping[str, PatternEntity], before: Sequence[AccessPattern]
) -> AccessPattern:
    match = _PATTERN.fullmatch(text)
    if match is None or (match[2] is None and match[3] is None):
        raise UsageError(
            f"{text!r} is neither an entity nor a pattern; write {_EXAMPLE}, or Order of status by placed_at desc"
        )
    if match[1] not in entities:
        raise UsageError(f"there is no entity {match[1]!r}; there are {', '.join(entities)}")
    entity = entities[match[1]]
    equal, owner = _equal(entity, match[2] or "", entities)
    order = tuple(_ordering(entity, each) for each in _listed(match[3] or ""))
    names = [*equal, *(each.field for each in order)]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{name!r} is there twice; a field groups items or orders them")
        _check_in_key(entity.fields[name], "is in a pattern")
    if set(equal) > set(entity.identity):
        raise UsageError(
            f"{', '.join(entity.identity)} identifies {entity.name} already; leave the other fields after of out"
        )
    for other in before:
        if (other.entity, set(other.equal), other.order) == (entity.name, set(equal), order):
            raise UsageError(f"line {other.line} is the same pattern")
    return AccessPattern(line, text, entity.name, equal, order, owner)


def _equal(
    entity: PatternEntity, text: str, entities: Mapping[str, PatternEntity]
) -> tuple[tuple[str, ...], str]:
    """The fields after `of`, and the entity that stands for some of them."""
    found: list[str] = []
    owner = ""
    for each in _listed(text):
        if each not in entities:
            found.append(_known(entity, each))
            continue
        owner = each
        for name in entities[each].identity:
            if name not in entity.fields:
                raise UsageError(
                    f"{entity.name} has no field {name!r}, which identifies {each}; add it to {entity.name}"
                )
            found.append(name)
    return tuple(found), owner


def _ordering(entity: PatternEntity, text: str) -> Ordering:
    match = _BY.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} orders nothing; write a field, or a field and desc")
    return Ordering(_known(entity, match[1]), match[2] is not None)


def _known(entity: PatternEntity, name: str) -> str:
    if name not in entity.fields:
        raise UsageError(
            f"{entity.name} has no field {name!r}; its fields are {', '.join(entity.fields)}"
        )
    return name
