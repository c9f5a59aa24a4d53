"""Lint's checks of declarations: tables, entities and their keys. Reads no data."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin
from uuid import UUID

from isotone.advisor.lint.finding import FindingPlace, LintFinding
from isotone.advisor.lint.settings import Settings
from isotone.advisor.lint.sources import place_of_entity, place_of_value
from isotone.backends.engines import ENGINES
from isotone.codec.ids import KSUID, ULID
from isotone.errors import UsageError
from isotone.model import EntitySchema, Table, gaps_of
from isotone.structures import Adjacency, Feed, Leaderboard, Queue, SortedSet, TimeSeries

_TIMELIKE: Final = re.compile(r"(?i)(^|_)(date|day|time|timestamp)$|_(at|on)$")
_NUMBERLIKE: Final = re.compile(
    r"(?i)(^|_)(number|no|count|amount|price|score|rank|position|year|age|quantity|total)$"
)
_NAMELIKE: Final = re.compile(r"(?i)(^|_)(e_?mail|user_?name|login|handle|host_?name|domain)$")
_FEW: Final = 100  # possible values up to which an int counts as a choice


def check_table(
    table: Table, modules: tuple[str, ...], settings: Settings
) -> Iterator[LintFinding]:
    """The findings of a table and of its entities."""
    place = place_of_value(table, f"table {table.name}", modules)
    for schema in table.entities.values():
        for check in _OF_ENTITIES:
            yield from check(schema)
    yield from _unused_indexes(table, place)
    yield from _overloaded_indexes(table)
    for name in settings.engines:
        yield from _portability(table, name, place)


# Keys


def _own_keys(schema: EntitySchema) -> list[Any]:
    """The keys that an entity declares itself, without those of the entity that it extends."""
    inherited = set() if schema.base is None else set(schema.base.keys)
    return [key for name, key in schema.keys.items() if name not in inherited]


def _components(schema: EntitySchema) -> Iterator[tuple[Any, Any, Any, int, Any]]:
    """Each component of each key: key, slot, component, position, and its codec or None."""
    for key in _own_keys(schema):
        for slot in key.slots:
            template = getattr(slot, "template", None)
            for number, component in enumerate(slot.components):
                codec = None if template is None else template.codecs[number]
                yield key, slot, component, number, codec


def _text_components(schema: EntitySchema, *, sort: bool) -> Iterator[tuple[Any, Any]]:
    """The plain text fields in keys, each with the first of its keys; with `sort`, those that order items."""
    found: dict[str, tuple[Any, Any]] = {}
    for key, slot, component, _, _ in _components(schema):
        if sort and slot not in key.sort:
            continue
        is_text = slot.attribute.type == "S" and present_type(component.field.annotation) is str
        if is_text and component.field.options.codec is None:
            found.setdefault(component.field.name, (key, component.field))
    yield from found.values()


def _widthless_numbers(schema: EntitySchema) -> Iterator[LintFinding]:
    for key, slot, component, _, codec in _components(schema):
        if type(codec).__name__ == "Unpadded" and slot in key.sort:
            field = component.field
            yield LintFinding(
                "ISO101",
                place_of_entity(schema.entity, key.name),
                f"{schema.tag}.{key.name} has raw({field.name}), so 10 comes before 2.",
                f"Ranges of {field.name} are refused, and items do not lie in its order.",
                f"Write {field.name} with its greatest value, field(max=99_999), and store.rewrite, unless only "
                "other programs need the present form.",
            )
    for key, field in _text_components(schema, sort=True):
        if _NUMBERLIKE.search(field.name):
            yield LintFinding(
                "ISO101",
                place_of_entity(schema.entity, field.name),
                f"{field.name} is a text in {schema.tag}.{key.name}, and sounds like a number.",
                "As a text, 10 comes before 2.",
                f"Declare {field.name}: Attr[int] = field(max=99_999).",
            )


def _mixed_case(schema: EntitySchema) -> Iterator[LintFinding]:
    for key, field in _text_components(schema, sort=False):
        if _NAMELIKE.search(field.name) and field.options.case is None:
            yield LintFinding(
                "ISO103",
                place_of_entity(schema.entity, field.name),
                f"{field.name} is in {schema.tag}.{key.name} as it was typed.",
                "Ann@example.com and ann@example.com are two keys, and capitals sort first.",
                f'Declare {field.name}: Attr[str] = field(case="lower").',
            )


def _display_dates(schema: EntitySchema) -> Iterator[LintFinding]:
    for key, field in _text_components(schema, sort=True):
        if _TIMELIKE.search(field.name):
            yield LintFinding(
                "ISO104",
                place_of_entity(schema.entity, field.name),
                f"{field.name} is a text in {schema.tag}.{key.name}, and sounds like a time.",
                "Nothing ensures that such texts sort by time.",
                f"Declare {field.name}: Attr[datetime] or Attr[date].",
            )


def _reverse_composites(schema: EntitySchema) -> Iterator[LintFinding]:
    for key in _own_keys(schema):
        components = [component for slot in key.sort for component in slot.components]
        for many, few in itertools.pairwise(components):
            if _has_many_values(many.field) and _has_few_values(few.field):
                yield LintFinding(
                    "ISO105",
                    place_of_entity(schema.entity, key.name),
                    f"{schema.tag}.{key.name} sorts by {many.field.name} before {few.field.name}.",
                    f"A query by {few.field.name} reads all items and filters them.",
                    f"Write .sort({few.field.name}, {many.field.name}), or an index in that order.",
                )


def _time_partitions(schema: EntitySchema) -> Iterator[LintFinding]:
    for key in _own_keys(schema):
        components = [component for slot in key.partition for component in slot.components]
        if components and all(_is_time(component.field) for component in components):
            names = ", ".join(component.field.name for component in components)
            yield LintFinding(
                "ISO202",
                place_of_entity(schema.entity, key.name),
                f"{schema.tag}.{key.name} has no other partition than the time {names}.",
                "All writes of the present share one partition: 1,000 write units per second.",
                "Add what distinguishes writers to the partition, or a shard number.",
            )


def _constant_partitions(schema: EntitySchema) -> Iterator[LintFinding]:
    for key in _own_keys(schema):
        if any(slot.components for slot in key.partition):
            continue
        what = "entity" if key.when is None else f"entity with {key.when!r}"
        yield LintFinding(
            "ISO205",
            place_of_entity(schema.entity, key.name),
            f"every {what} is in one partition of {schema.tag}.{key.name}: its partition has no field.",
            "Together they have 1,000 write and 3,000 read units per second, however large the table is.",
            "Add what divides them to the partition, such as a tenant, a month or a shard number, and merge the "
            "reads; if they stay few, ignore this and say so.",
        )


def _extra_reads(schema: EntitySchema) -> Iterator[LintFinding]:
    for key in _own_keys(schema):
        index = schema.table.indexes.get(key.index) if key.index else None
        if index is None or index.kind != "local" or index.projection == "ALL":
            continue
        kept = set() if index.projection == "KEYS_ONLY" else set(index.projection)
        kept |= {part.name for part in (*schema.table.keys.attributes, *index.keys.attributes)}
        held = {
            component.field.name
            for slot in (*schema.primary.slots, *key.slots)
            for component in slot.components
        }
        missing = [
            field.name
            for field in schema.fields.values()
            if field.attribute not in kept and field.name not in held
        ]
        if missing:
            yield LintFinding(
                "ISO303",
                place_of_entity(schema.entity, key.name),
                f"local index {key.index} does not project {', '.join(missing)} of {schema.tag}.",
                "Each item that is read by it costs one more read, or lacks these fields.",
                f'Project them: Local(…, projection=({", ".join(repr(name) for name in missing)},)), or "ALL".',
            )


_OF_ENTITIES: Final[Sequence[Callable[[EntitySchema], Iterator[LintFinding]]]] = (
    _widthless_numbers,
    _mixed_case,
    _display_dates,
    _reverse_composites,
    _time_partitions,
    _extra_reads,
    _constant_partitions,
)


def present_type(annotation: Any) -> Any:
    """The type of a field's values other than None."""
    if get_origin(annotation) in (Union, UnionType):
        kinds = [each for each in get_args(annotation) if each is not NoneType]
        return kinds[0] if len(kinds) == 1 else annotation
    return annotation


def _has_many_values(field: Any) -> bool:
    """Whether nearly every item has a different value: a time, an id, a number of wide range."""
    kind = present_type(field.annotation)
    if _has_few_values(field) or not isinstance(kind, type):
        return False
    if issubclass(kind, KSUID | ULID | UUID | datetime | Decimal | float):
        return True
    return issubclass(kind, int) and (field.options.max is None or field.options.max >= _FEW)


def _has_few_values(field: Any) -> bool:
    """Whether a field has a handful of values."""
    kind = present_type(field.annotation)
    if get_origin(kind) is Literal:
        return True
    return isinstance(kind, type) and (issubclass(kind, Enum) or kind is bool)


def _is_time(field: Any) -> bool:
    kind = present_type(field.annotation)
    return isinstance(kind, type) and issubclass(kind, date | datetime)


# Indexes


def _of_structures() -> dict[str, Any]:
    """The indexes that structures add to a table; their entities are bound only when they are used."""
    layouts = (Adjacency, Feed, Leaderboard, Queue, SortedSet, TimeSeries)
    return {name: index for each in layouts for name, index in each.layout().indexes.items()}


def _unused_indexes(table: Table, place: FindingPlace) -> Iterator[LintFinding]:
    used = {key.index for schema in table.entities.values() for key in schema.keys.values()}
    known = _of_structures()
    for name, index in table.indexes.items():
        if name not in used and known.get(name) != index and table.entities:
            yield LintFinding(
                "ISO301",
                place,
                f"no entity has a key on index {name} of table {table.name}.",
                "Items of other programs that have its attributes are written twice.",
                f"Remove {name} from the table, or declare Index({name!r}, …) in an entity.",
            )


def _overloaded_indexes(table: Table) -> Iterator[LintFinding]:
    """Indexes that are sparse for one entity, but have every item of another."""
    for name in table.indexes:
        keys = [
            (schema, key)
            for schema in table.entities.values()
            if schema.base is None
            for key in schema.indexes
            if key.index == name
        ]
        sparse = [(schema, key) for schema, key in keys if key.when is not None]
        full = [(schema, key) for schema, key in keys if key.when is None and not _is_sparse(key)]
        if sparse and full:
            schema, key = sparse[0]
            others = " and ".join(dict.fromkeys(other.tag for other, _ in full))
            yield LintFinding(
                "ISO302",
                place_of_entity(schema.entity, key.name),
                f"{name} is sparse for {schema.tag}, but has an entry of every {others}.",
                f"Reading all of {name} for {schema.tag} pays for the others, too; a query of one partition does not.",
                f"Give {schema.tag} an index with one_kind=True, or read {schema.tag}.{key.name} by its partition "
                "and ignore this.",
            )


def _is_sparse(key: Any) -> bool:
    """Whether the index has no entry for some of the entities."""
    return any(component.field.wire.optional for component in key.components)


def _portability(table: Table, engine: str, place: FindingPlace) -> Iterator[LintFinding]:
    if engine not in ENGINES:
        raise UsageError(
            f"{engine!r} is not an engine; the engines are {', '.join(sorted(ENGINES))}"
        )
    for gap, instead in gaps_of(table, ENGINES[engine]):
        yield LintFinding(
            "ISO501",
            place,
            f"{gap}.",
            f"The program does not work, or works otherwise, on {ENGINES[engine].engine}.",
            f"{instead[0].upper()}{instead[1:]}.",
        )
