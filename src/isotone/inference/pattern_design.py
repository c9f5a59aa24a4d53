"""`begin`: a module for a table that does not exist yet, from its entities and access patterns.

    begun = begin(read_patterns(text), "shop")
    begun.source                         # the module
    begun.answers[0].key                 # "Order.by_status": what answers the first pattern

The rules: an entity is in the item collection of the entity whose whole key is part of its own key, and otherwise in one of
its own. A pattern that groups and orders by the fields of the key decides how the key is divided. Every other pattern
gets an index, unless a key answers it already, perhaps from its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, NamedTuple

from isotone.codec import readable
from isotone.errors import UsageError
from isotone.inference.field_types import FieldType, quoted
from isotone.inference.grouping import Group
from isotone.inference.key_forms import FormField, KeyForm
from isotone.inference.key_styles import ESCAPED, KeyStyle, number_text
from isotone.inference.module_writer import write_module
from isotone.inference.naming import field_name, words
from isotone.inference.pattern_file import (
    AccessPattern,
    Ordering,
    PatternEntity,
    PatternField,
    PatternFile,
)
from isotone.inference.planning import EntityPlan, FieldPlan, IndexPlan, ModelPlan
from isotone.inference.sampling import Sample
from isotone.tables.description import (
    IndexDescription,
    KeyDescription,
    KeyElement,
    TableDescription,
)
from isotone.text_table import pluralized

_TAG: Final = "_type"
_MOST_INDEXES: Final = 20  # of a table, by AWS's default
_TYPES: Final = {
    "text": "str",
    "int": "int",
    "decimal": "Decimal",
    "bool": "bool",
    "datetime": "datetime",
    "date": "date",
    "uuid": "UUID",
    "ulid": "ULID",
}
_CODECS: Final[dict[str, readable.Codec[Any]]] = {
    "choice": readable.Text(),
    "bool": readable.Flag(),
    "datetime": readable.Instant("microseconds"),
    "date": readable.Day(),
    "uuid": readable.Uuid(),
    "ulid": readable.Ulid(),
}


class PatternAnswer(NamedTuple):
    """What answers a pattern: a key, which may be read from its end; or the key's `get`."""

    pattern: AccessPattern
    key: str
    from_end: bool = False

    @property
    def direction(self) -> str:
        """The call that a query then needs: `.descending()` begins with the greatest values, however a key stores them."""
        if not self.from_end:
            return ""
        return ".descending()" if self.pattern.order[0].descending else ".ascending()"


class BegunModule(NamedTuple):
    """The source of a module, and what answers each pattern."""

    source: str
    answers: tuple[PatternAnswer, ...]


@dataclass
class _PlannedKey:
    """A key in the making: a word and fields that group items, and what orders them. `index` is 0 for the table's."""

    index: int
    title: str
    word: str
    equal: tuple[str, ...]
    order: tuple[Ordering, ...]
    literal: str = ""
    note: str = ""

    def answers(self, pattern: AccessPattern) -> bool | None:
        """Whether the key answers a pattern: False from its beginning, True from its end, None not at all."""
        if set(pattern.equal) != set(self.equal) or len(pattern.order) > len(self.order):
            return None
        own = self.order[: len(pattern.order)]
        if own == pattern.order:
            return False
        opposite = tuple(each._replace(descending=not each.descending) for each in own)
        return True if opposite == pattern.order else None


@dataclass
class _EntityKeys:
    """The keys of an entity in the making."""

    entity: PatternEntity
    primary: _PlannedKey
    indexes: list[_PlannedKey] = field(default_factory=list)

    def answer(self, pattern: AccessPattern) -> PatternAnswer | None:
        if set(pattern.equal) == set(self.entity.identity):
            return PatternAnswer(pattern, f"{self.entity.name}.get")
        for key in (self.primary, *self.indexes):
            found = key.answers(pattern)
            if found is not None:
                return PatternAnswer(pattern, f"{self.entity.name}.{key.title}", found)
        return None


def begin(patterns: PatternFile, table: str) -> BegunModule:
    """The module of a table with these entities and access patterns. Raises `UsageError` for too many indexes."""
    keys = {name: _keys_of(entity, patterns) for name, entity in patterns.entities.items()}
    answers = []
    for pattern in patterns.patterns:
        of_entity = keys[pattern.entity]
        found = of_entity.answer(pattern)
        if found is None:
            _add_index(of_entity, pattern)
            found = of_entity.answer(pattern)
        assert found is not None  # the index was made for it
        answers.append(found)
    shape = _table(table, max(len(each.indexes) for each in keys.values()))
    plans = [_plan(each, shape) for each in keys.values()]
    count = pluralized(len(plans), "entity", "entities")
    introduction = [
        f"Begun from {pluralized(len(answers), 'access pattern')}: table {table!r}, {count}.",
        *(["\n".join(f"- {_answered(each)}" for each in answers)] if answers else []),
    ]
    sample = Sample(shape, [], True, 0, 0)
    module = write_module(sample, ModelPlan(_TAG, plans), introduction, set())
    return BegunModule(module.source, tuple(answers))


def _answered(answer: PatternAnswer) -> str:
    """A pattern, and what a program writes for it."""
    equal = ", ".join(answer.pattern.equal)
    direction = answer.direction
    return f"{answer.pattern.text}: {answer.key} of {equal or 'all'}{direction and f', with {direction}'}"


# Keys


def _keys_of(entity: PatternEntity, patterns: PatternFile) -> _EntityKeys:
    return _EntityKeys(entity, _primary(entity, patterns))


def _primary(entity: PatternEntity, patterns: PatternFile) -> _PlannedKey:
    identity = set(entity.identity)
    for pattern in patterns.patterns:
        ordered = [each.field for each in pattern.order]
        if (
            pattern.entity == entity.name
            and pattern.equal
            and ordered
            and {*pattern.equal, *ordered} == identity
        ):
            return _divided(entity, pattern.equal, pattern.order, patterns)
    parent = _parent(entity, patterns)
    if parent is None:
        word = _word(entity.name)
        return _PlannedKey(0, "primary", word, entity.identity, (), literal=word)
    rest = [name for name in entity.identity if name not in parent.identity]
    return _divided(entity, parent.identity, [Ordering(name) for name in rest], patterns)


def _divided(
    entity: PatternEntity,
    equal: Sequence[str],
    order: Sequence[Ordering],
    patterns: PatternFile,
) -> _PlannedKey:
    """The primary key, divided between the partition and the order: in the collection of another entity, if it has one."""
    for other in patterns.entities.values():
        if other.name != entity.name and set(other.identity) == set(equal):
            word, own = _word(other.name), _word(entity.name)
            return _PlannedKey(0, "primary", word, other.identity, tuple(order), literal=own)
    return _PlannedKey(0, "primary", _word(entity.name), tuple(equal), tuple(order))


def _parent(entity: PatternEntity, patterns: PatternFile) -> PatternEntity | None:
    """The entity whose whole key is a part of this one's; of several, that with the most fields."""
    found = [
        other for other in patterns.entities.values() if set(other.identity) < set(entity.identity)
    ]
    return max(found, key=lambda each: len(each.identity), default=None)


def _add_index(keys: _EntityKeys, pattern: AccessPattern) -> None:
    entity, number = keys.entity, len(keys.indexes) + 1
    if number > _MOST_INDEXES:
        raise UsageError(
            f"line {pattern.line}: {entity.name} would need more than {_MOST_INDEXES} indexes; leave patterns out"
        )
    # Without an order of its own, an index needs one all the same: that of the key.
    rest = [name for name in entity.identity if name not in pattern.equal]
    order = pattern.order or tuple(Ordering(name) for name in rest)
    title = _title(keys, pattern)
    word = _word(entity.name)
    keys.indexes.append(_PlannedKey(number, title, word, pattern.equal, order, note=pattern.text))


def _title(keys: _EntityKeys, pattern: AccessPattern) -> str:
    """The name of an index's pattern: from what groups the items, and from their order if that is taken."""
    taken = {*keys.entity.fields, *(each.title for each in keys.indexes), "primary"}
    ordered = [each.field for each in pattern.order]
    owner = field_name(pattern.owner, ()) if pattern.owner else ""
    group = [owner] if owner else list(pattern.equal)
    short = "by_" + "_and_".join(group or ordered)
    long = "by_" + "_and_".join([*group, *ordered])
    return field_name(short if short not in taken else long, taken, "index")


def _word(name: str) -> str:
    """The literal of an entity in keys: `ORDER_LINE` for OrderLine."""
    return "_".join(words(name)).upper()


# The plan of the module


def _table(name: str, indexes: int) -> TableDescription:
    attributes = [
        "PK",
        "SK",
        *(f"GSI{at}{end}" for at in range(1, indexes + 1) for end in ("PK", "SK")),
    ]
    return TableDescription(
        name=name,
        key=_key("PK", "SK"),
        indexes=tuple(
            IndexDescription(
                f"GSI{at}", "global", _key(f"GSI{at}PK", f"GSI{at}SK"), "ALL", 0, 0, "ACTIVE", None
            )
            for at in range(1, indexes + 1)
        ),
        vector_indexes=(),
        types=dict.fromkeys(attributes, "S"),
        arn="",
        identity="",
        status="ACTIVE",
        is_counted=False,
        item_count=0,
        size=0,
        billing="PAY_PER_REQUEST",
        units=(0, 0),
        is_protected=False,
        stream=None,
        stream_arn=None,
    )


def _key(partition: str, sort: str) -> KeyDescription:
    return KeyDescription((KeyElement(partition, "S"),), (KeyElement(sort, "S"),))


def _plan(keys: _EntityKeys, shape: TableDescription) -> EntityPlan:
    entity = keys.entity
    forms: dict[str, KeyForm] = {}
    indexes = []
    for key in (keys.primary, *keys.indexes):
        own = shape.key if key.index == 0 else shape.indexes[key.index - 1].key
        partition, sort = own.names
        forms[partition] = _form([key.word], [Ordering(name) for name in key.equal], entity)
        forms[sort] = _form([key.literal] if key.literal else [], key.order, entity)
        if key.index:
            description = shape.indexes[key.index - 1]
            indexes.append(IndexPlan(description, 0, note=key.note, title=key.title))
    fields = {name: _field_plan(each) for name, each in entity.fields.items()}
    names = {name: name for name in entity.fields}
    about = ", ".join(f"{name} {forms[name].shown(names)}" for name in shape.key.names)
    group = Group((), entity.name)
    return EntityPlan(group, [], fields, forms, indexes, [], about=f"{about}.")


def _form(literals: Sequence[str], order: Sequence[Ordering], entity: PatternEntity) -> KeyForm:
    """Literals and fields, with separators between them."""
    parts: list[str | FormField] = [*literals]
    parts += [FormField(each.field, _style(entity.fields[each.field], each)) for each in order]
    joined: list[str | FormField] = []
    for part in parts:
        if joined and isinstance(joined[-1], str):
            joined[-1] += readable.SEPARATOR
        elif joined:
            joined.append(readable.SEPARATOR)
        joined.append(part)
    return KeyForm(tuple(joined))


def _style(of: PatternField, ordering: Ordering) -> KeyStyle:
    codec: Any = _codec(of)
    style = KeyStyle(_style_kind(of), codec)
    if not ordering.descending:
        return style
    return KeyStyle(style.kind, codec.descending(), "desc({})")


def _style_kind(of: PatternField) -> str:
    """The kind of a field as the styles of keys name it."""
    return {"text": "str", "decimal": "Decimal"}.get(of.kind, of.kind)


def _codec(of: PatternField) -> readable.Codec[Any]:
    if of.kind == "text":
        return ESCAPED.codec
    if of.kind == "int":
        return readable.Natural(int(of.greatest or 1))
    if of.kind == "decimal":
        return readable.FixedPoint(of.greatest or Decimal(1), _scale(of))
    return _CODECS[of.kind]


def _scale(of: PatternField) -> int:
    exponent = (of.greatest or Decimal(0)).as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def _field_plan(of: PatternField) -> FieldPlan:
    text = f"Literal[{', '.join(map(quoted, of.choices))}]" if of.choices else _TYPES[of.kind]
    options: dict[str, str] = {}
    if of.is_optional:
        text, options["default"] = f"{text} | None", "None"
    if of.greatest is not None:
        options["max"] = _greatest_text(of.greatest)
    if of.kind == "decimal" and of.greatest is not None:
        options["scale"] = str(_scale(of))
    return FieldPlan(of.name, FieldType(text, of.kind), 0, options=options)


def _greatest_text(greatest: Decimal) -> str:
    whole = int(greatest)
    return number_text(whole) if greatest == whole else f"Decimal({quoted(str(greatest))})"
