"""Declarations of entities as values: classes are made of them, and each kind of change is a function.

To add a kind of change, write a function that takes a `Draw` and an `Entity`, returns the changed entity, and has
`@change`. It calls `draw(choices)` to choose, and returns None if the entity has nothing to change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from hypothesis import strategies as st

import isotone
from isotone import Attr, Global, Table, desc, in_order, upgrade

Draw = Callable[[st.SearchStrategy[Any]], Any]
Values = Mapping[str, Any]

INDEXES = ("GSI1", "GSI2", "GSI3")
REQUIRED = object()


class _Brief:
    """Shows only what is not as by default."""

    def __repr__(self) -> str:
        shown = (
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)  # type: ignore[arg-type] # each is a dataclass
            if getattr(self, each.name) != each.default
        )
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class Field(_Brief):
    """A field: an int, a str, a bool, or one of `choices`. Its attribute is `stored`."""

    name: str
    type: type = str
    choices: tuple[str, ...] = ()
    max: int | None = None
    was: int | None = None
    case: Literal["lower"] | None = None
    is_optional: bool = False
    default: Any = REQUIRED
    is_unique: bool = False
    attribute: str | None = None
    examples: tuple[Any, ...] = ()

    @property
    def stored(self) -> str:
        return self.attribute or self.name

    @property
    def annotation(self) -> Any:
        kind: Any = Literal[self.choices] if self.choices else self.type
        return Attr[kind | None] if self.is_optional else Attr[kind]

    def declare(self) -> Any:
        options: dict[str, Any] = {"name": self.attribute, "case": self.case}
        if self.max is not None:
            options |= {"max": self.max, "was": self.was, "alert": None}
        if self.default is not REQUIRED:
            options["default"] = self.default
        return isotone.field(unique=self.is_unique, **options)

    def accepts(self, value: Any) -> bool:
        return value in self.choices if self.choices else type(value) is self.type

    def values(self) -> list[Any]:
        """Some values, few enough to meet often, and different also in lower case and as texts."""
        some: list[Any] = ["a", "B", "c#"]
        if self.examples:
            some = list(self.examples)
        elif self.choices:
            some = list(self.choices)
        elif self.type is bool:
            some = [False, True]
        elif self.type is int:
            some = [each for each in (7, 10, 42, 512) if self.max is None or each <= self.max]
        return [*some, None] if self.is_optional else some


@dataclass(frozen=True, repr=False)
class Part(_Brief):
    """A field in a key."""

    field: str
    is_descending: bool = False
    is_in_order: bool = False

    def declare(self, fields: Mapping[str, Any]) -> Any:
        part = fields[self.field]
        if self.is_in_order:
            part = in_order(part)
        return desc(part) if self.is_descending else part

    def order(self, field: Field, value: Any) -> Any:
        """A number or a tuple of numbers that sorts as the part does."""
        if self.is_in_order:
            place: Any = (field.choices.index(value),)
        elif field.type is str:
            place = tuple(map(ord, value.lower() if field.case else value))
        else:
            place = (int(value),)
        # The end of a text comes last in descending order.
        return (*(-each for each in place), float("inf")) if self.is_descending else place


@dataclass(frozen=True, repr=False)
class Key(_Brief):
    """A key of a table, or of an index if it has one; a part that is a str is a literal."""

    name: str
    partition: tuple[str | Part, ...]
    sort: tuple[str | Part, ...]
    index: str | None = None
    separator: str = "#"
    when: tuple[str, Any] | None = None
    was: Key | None = None

    @property
    def parts(self) -> list[Part]:
        return [part for part in (*self.partition, *self.sort) if isinstance(part, Part)]

    def declare(self, fields: Mapping[str, Any]) -> isotone.Key:
        partition, sort = (
            [part if isinstance(part, str) else part.declare(fields) for part in parts]
            for parts in (self.partition, self.sort)
        )
        options: dict[str, Any] = {"separator": self.separator}
        if self.index is None:
            key: Any = isotone.Key(*partition, **options)
        else:
            if self.when is not None:
                name, value = self.when
                options["when"] = fields[name] == value
            key = isotone.Index(self.index, *partition, **options)
        key = key.sort(*sort)
        return key if self.was is None else key.was(self.was.declare(fields))


@dataclass(frozen=True, repr=False)
class Upgrade(_Brief):
    """What an `@upgrade` does: renames an attribute, and converts its value."""

    before: str
    after: str
    convert: type = object

    def __call__(self, item: dict[str, Any]) -> dict[str, Any]:
        if self.before in item:
            value = item.pop(self.before)
            item[self.after] = value if self.convert is object else self.convert(value)
        return item


@dataclass(frozen=True, repr=False)
class Entity(_Brief):
    """A class statement."""

    name: str
    fields: tuple[Field, ...]
    keys: tuple[Key, ...]
    tag: str | None = None
    was_tag: str | None = None
    upgrades: tuple[Upgrade, ...] = ()

    @property
    def version(self) -> int:
        return len(self.upgrades) + 1

    @property
    def stored_tag(self) -> str:
        return self.tag or self.name

    @property
    def primary(self) -> Key:
        return self.keys[0]

    @property
    def indexes(self) -> tuple[Key, ...]:
        return self.keys[1:]

    def field(self, name: str) -> Field:
        return next(each for each in self.fields if each.name == name)

    def with_field(self, field: Field) -> Entity:
        """The entity with another field of that name."""
        fields = [field if each.name == field.name else each for each in self.fields]
        return replace(self, fields=tuple(fields))

    def with_key(self, key: Key) -> Entity:
        """The entity with another key of that name."""
        keys = [key if each.name == key.name else each for each in self.keys]
        return replace(self, keys=tuple(keys))

    def declare(self, table: Table) -> Any:
        """Execute the class statement."""
        fields = {each.name: each.declare() for each in self.fields}
        keys = {each.name: each.declare(fields) for each in self.keys}
        upgrades = {
            f"upgrade_{version}": staticmethod(upgrade(version)(_function(each)))
            for version, each in enumerate(self.upgrades, 1)
        }
        annotations = {each.name: each.annotation for each in self.fields}
        members = {"__annotations__": annotations, **fields, **keys, **upgrades}
        options = {"tag": self.tag, "was_tag": self.was_tag, "version": self.version}
        return type(self.name, (isotone.Entity,), members, table=table, **options)

    def upgraded(self, values: Values, version: int) -> dict[str, Any]:
        """The values of an item of a version, by attribute, as this program sees them."""
        upgraded = dict(values)
        for each in self.upgrades[version - 1 :]:
            upgraded = each(upgraded)
        return upgraded


def _function(each: Upgrade) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda item: each(item)


def table() -> Table:
    return Table("desk", indexes={name: Global(f"{name}PK", f"{name}SK") for name in INDEXES})


TICKET = Entity(
    "Ticket",
    (
        Field("team"),
        Field("number", int, max=99),
        Field("urgency", choices=("LOW", "HIGH")),
        Field("open", bool, default=True),
        Field("title"),
        Field("mail", is_optional=True, default=None),
    ),
    (
        Key("primary", ("TEAM", Part("team")), ("TICKET", Part("number"))),
        Key(
            "by_urgency",
            ("TEAM", Part("team")),
            (Part("urgency", is_in_order=True), Part("number")),
            index="GSI1",
        ),
    ),
)
NOTE = Entity(
    "Note",
    (Field("team"), Field("title", case="lower"), Field("stars", int, max=9, default=0)),
    (
        Key("primary", ("TEAM", Part("team")), ("NOTE", Part("title"))),
        Key("by_stars", ("NOTES",), (Part("stars", is_descending=True),), index="GSI2"),
    ),
)


# Changes

Change = Callable[[Draw, Entity], Entity | None]
CHANGES: list[Change] = []


def change(function: Change) -> Change:
    CHANGES.append(function)
    return function


def changed(draw: Draw, entity: Entity) -> Entity:
    """The entity with one change; as it was if it has nothing of the kind to change."""
    return draw(st.sampled_from(CHANGES))(draw, entity) or entity


def _one_of(draw: Draw, some: Any) -> Any:
    """One of some things; None if there are none."""
    choices = list(some)
    return draw(st.sampled_from(choices)) if choices else None


@change
def add_a_choice(draw: Draw, entity: Entity) -> Entity | None:
    field = _one_of(draw, (each for each in entity.fields if each.choices))
    if field is None or len(field.choices) > 4:
        return None
    choices = list(field.choices)
    choices.insert(draw(st.integers(0, len(choices))), f"NEW{len(choices)}")
    return entity.with_field(replace(field, choices=tuple(choices)))


@change
def add_many_choices(draw: Draw, entity: Entity) -> Entity | None:
    field = _one_of(draw, (each for each in entity.fields if 0 < len(each.choices) < 10))
    more = tuple(f"MORE{number}" for number in range(10))
    return field and entity.with_field(replace(field, choices=(*field.choices, *more)))


@change
def widen(draw: Draw, entity: Entity) -> Entity | None:
    field = _one_of(draw, (each for each in entity.fields if each.max and each.max < 9999))
    if field is None:
        return None
    was = draw(st.sampled_from([None, field.max]))
    return entity.with_field(replace(field, max=field.max * 10 + 9, was=was))


@change
def leave_out_was(draw: Draw, entity: Entity) -> Entity | None:
    fields = tuple(replace(each, was=None) for each in entity.fields)
    keys = tuple(replace(each, was=None) for each in entity.keys)
    return replace(entity, fields=fields, keys=keys, was_tag=None)


@change
def rename_field(draw: Draw, entity: Entity) -> Entity | None:
    """Another name of the attribute, too, which an upgrade gives it."""
    field = draw(st.sampled_from(entity.fields))
    after = f"{field.stored}_{entity.version}"
    renamed = entity.with_field(replace(field, attribute=after))
    return replace(renamed, upgrades=(*entity.upgrades, Upgrade(field.stored, after)))


@change
def rename_field_only(draw: Draw, entity: Entity) -> Entity | None:
    """Another name in the class; the attribute keeps its name."""
    field = _one_of(draw, (each for each in entity.fields if each.name[-1] != "_"))
    if field is None:
        return None
    name = f"{field.name}_"

    def with_name(key: Key) -> Key:
        partition, sort = (
            tuple(
                replace(part, field=name)
                if isinstance(part, Part) and part.field == field.name
                else part
                for part in parts
            )
            for parts in (key.partition, key.sort)
        )
        when = (name, key.when[1]) if key.when and key.when[0] == field.name else key.when
        was = key.was and with_name(key.was)
        return replace(key, partition=partition, sort=sort, when=when, was=was)

    fields = [
        replace(each, name=name, attribute=field.stored) if each == field else each
        for each in entity.fields
    ]
    return replace(entity, fields=tuple(fields), keys=tuple(map(with_name, entity.keys)))


@change
def retype_field(draw: Draw, entity: Entity) -> Entity | None:
    field = _one_of(draw, (each for each in entity.fields if each.type is int))
    if field is None:
        return None
    default = field.default if field.default is REQUIRED else str(field.default)
    examples = tuple(str(each) for each in field.values() if each is not None)
    as_text = replace(field, type=str, max=None, was=None, default=default, examples=examples)
    step = Upgrade(field.stored, field.stored, str)
    return replace(entity.with_field(as_text), upgrades=(*entity.upgrades, step))


@change
def add_index(draw: Draw, entity: Entity) -> Entity | None:
    used = {key.index for key in entity.keys}
    index = _one_of(draw, (each for each in INDEXES if each not in used))
    if index is None:
        return None
    fields = st.sampled_from([each.name for each in entity.fields])
    names = draw(st.lists(fields, min_size=1, max_size=2, unique=True))
    sort = (entity.name, *(Part(name, draw(st.booleans())) for name in names))
    key = Key(f"by_{index.lower()}", ("ALL", entity.name), sort, index=index)
    return replace(entity, keys=(*entity.keys, key))


@change
def drop_index(draw: Draw, entity: Entity) -> Entity | None:
    key = _one_of(draw, entity.indexes)
    return key and replace(entity, keys=tuple(each for each in entity.keys if each != key))


@change
def change_when(draw: Draw, entity: Entity) -> Entity | None:
    key = _one_of(draw, entity.indexes)
    if key is None:
        return None
    field = draw(st.sampled_from([each for each in entity.fields if not each.is_optional]))
    value = draw(st.sampled_from([None, *field.values()]))
    return entity.with_key(replace(key, when=None if value is None else (field.name, value)))


@change
def reverse_part(draw: Draw, entity: Entity) -> Entity | None:
    key = draw(st.sampled_from(entity.keys))
    part = _one_of(draw, (each for each in key.sort if isinstance(each, Part)))
    if part is None:
        return None
    reversed_ = replace(part, is_descending=not part.is_descending)
    sort = tuple(reversed_ if each == part else each for each in key.sort)
    return entity.with_key(_with_was(draw, key, replace(key, sort=sort)))


@change
def swap_parts(draw: Draw, entity: Entity) -> Entity | None:
    key = _one_of(draw, entity.indexes)
    return key and entity.with_key(_with_was(draw, key, replace(key, sort=key.sort[::-1])))


@change
def change_separator(draw: Draw, entity: Entity) -> Entity | None:
    key = draw(st.sampled_from(entity.keys))
    separator = "|" if key.separator == "#" else "#"
    return entity.with_key(_with_was(draw, key, replace(key, separator=separator)))


@change
def change_literal(draw: Draw, entity: Entity) -> Entity | None:
    key = draw(st.sampled_from(entity.keys))
    first = key.sort[0]
    sort = (f"{first}S", *key.sort[1:]) if isinstance(first, str) else ("S", *key.sort)
    return entity.with_key(_with_was(draw, key, replace(key, sort=sort)))


def _with_was(draw: Draw, before: Key, after: Key) -> Key:
    """The key, which may declare what it was."""
    was = draw(st.sampled_from([None, replace(before, was=None)]))
    return replace(after, was=was)


@change
def change_case(draw: Draw, entity: Entity) -> Entity | None:
    texts = [each for each in entity.fields if each.type is str and not each.choices]
    field = draw(st.sampled_from(texts))
    return entity.with_field(replace(field, case=None if field.case else "lower"))


@change
def rename_class(draw: Draw, entity: Entity) -> Entity | None:
    """With the tag that its items have, or with a new one, and maybe the previous one as such."""
    name, tag = f"{entity.name}s", entity.stored_tag
    declared = draw(st.sampled_from([{"tag": tag}, {"tag": None, "was_tag": tag}, {"tag": None}]))
    return replace(entity, name=name, **declared)


@change
def add_field(draw: Draw, entity: Entity) -> Entity | None:
    name = f"more{len(entity.fields)}"
    field = draw(
        st.sampled_from(
            [
                Field(name, is_optional=True, default=None),
                Field(name, default="a"),
                Field(name, int, max=99, default=7),
                Field(name, choices=("YES", "NO"), default="NO"),
            ]
        )
    )
    return replace(entity, fields=(*entity.fields, field))


@change
def make_unique(draw: Draw, entity: Entity) -> Entity | None:
    field = _one_of(draw, (e for e in entity.fields if e.name.startswith("mail")))
    return field and entity.with_field(replace(field, is_unique=True))
