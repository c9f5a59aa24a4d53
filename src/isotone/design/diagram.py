"""The diagram of a model: its tables, keys and indexes, the entities, and which of them share an item collection.

    diagram = diagram_of(shop)
    Path("shop.svg").write_text(diagram.svg())

It is made of the declarations alone, so it is the same on every machine. Entities whose keys have the same partition are
in one collection, in the order of the literals with which their sort keys begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isotone.advisor.drawn_collections import DrawnKeyPart, KeyParts
from isotone.advisor.key_names import key_form
from isotone.advisor.lint import LintFinding
from isotone.design.diagram_svg import diagram_svg
from isotone.design.plan import tables_of
from isotone.design.relations import has_same_partitions, relations_of
from isotone.model import Attr, Entity, EntitySchema, Table, type_text

_ROLES: Final = {
    "computed": "computed",
    "version": "version",
    "created": "set when created",
    "created_id": "made when created",
    "updated": "set by each write",
    "expires": "expires",
}


@dataclass(frozen=True, slots=True)
class DiagramKey:
    """A key of an entity, in its collection: the access pattern, the form of the sort key, and what is special about it."""

    entity: str
    pattern: str
    sort: KeyParts
    notes: tuple[str, ...]
    findings: tuple[str, ...] = ()
    """The codes of lint's findings about it."""


@dataclass(frozen=True, slots=True)
class DiagramCollection:
    """The item collections of one form: their partition key, and the keys of the entities in them, in their order."""

    partition: KeyParts
    keys: tuple[DiagramKey, ...]

    @property
    def entities(self) -> list[str]:
        """The entities that share the collections."""
        return list(dict.fromkeys(key.entity for key in self.keys))


@dataclass(frozen=True, slots=True)
class DiagramPlace:
    """A table or an index: the names of its key attributes, and its collections."""

    name: str
    about: str
    partition: str
    sort: str
    collections: tuple[DiagramCollection, ...]


@dataclass(frozen=True, slots=True)
class DiagramField:
    """A field of an entity: its type, and its marks, such as `key` or `unique`."""

    name: str
    type: str
    marks: tuple[str, ...]
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiagramEntity:
    """An entity: what it belongs to or extends, and its fields."""

    name: str
    about: str
    fields: tuple[DiagramField, ...]
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiagramTable:
    """A table: itself and its indexes as places, and its entities."""

    name: str
    about: str
    places: tuple[DiagramPlace, ...]
    entities: tuple[DiagramEntity, ...]


@dataclass(frozen=True, slots=True)
class DesignDiagram:
    """The tables of a model."""

    tables: tuple[DiagramTable, ...]

    def svg(self, title: str = "") -> str:
        """The diagram as a self-contained file, light or dark as the reader prefers, with a title and a description."""
        return diagram_svg(self.tables, title)

    def _repr_html_(self) -> str:
        return self.svg()


def diagram_of(
    *targets: Table | type[Entity], findings: Sequence[LintFinding] = ()
) -> DesignDiagram:
    """The diagram of tables, or of some entities of them; with the codes of `findings` beside what they are about.

    Nothing is read. Raises `UsageError` for anything but tables and entities.

    >>> diagram_of(Order).tables[0].name
    'shop'
    """
    tables = tables_of(targets)
    drawing = _Drawing(targets, findings)
    return DesignDiagram(tuple(drawing.table(table) for table in tables))


class _Drawing:
    """The making of one diagram."""

    def __init__(
        self, targets: Sequence[Table | type[Entity]], findings: Sequence[LintFinding]
    ) -> None:
        self._whole = {target.name for target in targets if isinstance(target, Table)}
        self._chosen = {
            target.__schema__.tag for target in targets if not isinstance(target, Table)
        }
        self._findings = findings
        roots = [each for table in tables_of(targets) for each in table.entities.values()]
        self._relations = {
            table.name: relations_of(each for each in self._schemas(table) if each.base is None)
            for table in {each.table.name: each.table for each in roots}.values()
        }

    def _schemas(self, table: Table) -> list[EntitySchema]:
        every = table.name in self._whole
        return [
            schema for schema in table.entities.values() if every or self._chosen & schema.lineage
        ]

    def table(self, table: Table) -> DiagramTable:
        schemas = self._schemas(table)
        facts = ["table"]
        if table.stream:
            facts.append(f"stream of {table.stream}")
        if any("expires" in schema.by_role for schema in schemas):
            facts.append(f"expires by {table.ttl}")
        places = [self._place(table, index, schemas) for index in (None, *table.indexes)]
        entities = tuple(self._entity(schema) for schema in schemas)
        return DiagramTable(table.name, ", ".join(facts), tuple(places), entities)

    # Places

    def _place(
        self, table: Table, index: str | None, schemas: Sequence[EntitySchema]
    ) -> DiagramPlace:
        layout = table.layout(index)
        groups: list[list[tuple[EntitySchema, Any]]] = []
        for schema, key in _keys_in(schemas, index):
            group = next((each for each in groups if has_same_partitions(each[0][1], key)), None)
            if group is None:
                groups.append([(schema, key)])
            else:
                group.append((schema, key))
        return DiagramPlace(
            "items" if index is None else index,
            "by the key of the table" if index is None else _about(table, index),
            " · ".join(each.name for each in layout.partition),
            " · ".join(each.name for each in layout.sort),
            tuple(self._collection(group) for group in groups),
        )

    def _collection(self, group: Sequence[tuple[EntitySchema, Any]]) -> DiagramCollection:
        keys = [
            DiagramKey(
                schema.entity.__name__,
                key.name,
                _joined(key.sort),
                tuple(_notes(key)),
                self._codes(schema, key.name),
            )
            for schema, key in group
        ]
        keys.sort(key=lambda each: _beginning(each.sort))
        return DiagramCollection(_joined(group[0][1].partition), tuple(keys))

    # Entities

    def _entity(self, schema: EntitySchema) -> DiagramEntity:
        fields = [
            DiagramField(
                field.name,
                type_text(field.annotation),
                tuple(_marks(schema, field)),
                self._codes(schema, field.name),
            )
            for field in schema.fields.values()
            if schema.base is None or field.name not in schema.base.fields
        ]
        return DiagramEntity(
            schema.entity.__name__, self._belongs(schema), tuple(fields), self._codes(schema)
        )

    def _belongs(self, schema: EntitySchema) -> str:
        if schema.base is not None:
            return f"a kind of {schema.base.entity.__name__}"
        owner = self._relations[schema.table.name][schema.tag].owner
        return "" if owner is None else f"belongs to {owner.target.entity.__name__}"

    def _codes(self, schema: EntitySchema, member: str = "") -> tuple[str, ...]:
        """The codes of the findings about an entity, or about one of its fields or keys."""
        names = {
            f"{each.__qualname__}.{member}" if member else each.__qualname__
            for each in schema.entity.__mro__
        }
        found = (each.code for each in self._findings if each.place.name in names)
        return tuple(dict.fromkeys(found))


def _keys_in(
    schemas: Iterable[EntitySchema], index: str | None
) -> Iterator[tuple[EntitySchema, Any]]:
    """The keys of an index; those that a kind has from its base are the base's."""
    for schema in schemas:
        inherited = {} if schema.base is None else schema.base.keys
        for key in schema.keys.values():
            if key.index == index and key.name not in inherited:
                yield schema, key


def _joined(slots: Sequence[Any]) -> KeyParts:
    """The forms of the attributes of a partition or sort key, side by side."""
    parts: list[DrawnKeyPart] = []
    for slot in slots:
        parts += [DrawnKeyPart(" · ")] if parts else []
        parts += key_form(slot)
    return tuple(parts)


def _beginning(sort: KeyParts) -> str:
    """The literal with which sort keys begin; that of a value of a field is not known, and such keys stay in place."""
    return "" if not sort or sort[0].field else sort[0].text


def _notes(key: Any) -> Iterator[str]:
    for slot in key.sort:
        for component in slot.components:
            if component.descending:
                yield f"{component.field.name} descending"
    if key.when is not None:
        yield "sparse"


def _about(table: Table, index: str) -> str:
    layout = table.indexes[index]
    return f"{layout.kind} index, {_projected(layout.projection)}"


def _projected(projection: str | tuple[str, ...]) -> str:
    if isinstance(projection, tuple):
        return f"with {', '.join(projection)}"
    return "all attributes" if projection == "ALL" else "keys only"


def _marks(schema: EntitySchema, field: Attr[Any]) -> Iterator[str]:
    if field.name in schema.identity:
        yield "key"
    if field.options.unique:
        yield "unique"
    if field.options.role in _ROLES:
        yield _ROLES[field.options.role]
    elif schema.is_optional(field):
        yield "optional"
    for each in schema.vector_indexes.values():
        if each.field.name == field.name:
            yield f"vectors of {each.index_name}"
