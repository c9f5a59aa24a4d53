"""`Unsupported`, `EngineWarning`: what tables and entities need from an engine, which one lacks it, what to declare.

A need is a row of `_OF_TABLES` or `_OF_ENTITIES`: a field of `Capabilities`, a function that names what needs it, and the
advice. `docs/engines.md` is tested against the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from isotone.backends.capabilities import Capabilities
from isotone.backends.engines import EngineIdentity
from isotone.errors import Unsupported
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.table import IndexLayout, Table
from isotone.model.warn_caller import warn_caller
from isotone.tables.steps import Steps, capabilities_of


class EngineWarning(UserWarning):
    """The engine ignores part of a declaration, but the program works."""


class _Need(NamedTuple):
    feature: str
    what: Callable[[Table], Iterator[str]]
    instead: str


class _EntityNeed(NamedTuple):
    feature: str
    what: Callable[[EntitySchema], str | None]
    instead: str


def _indexes(table: Table, wanted: Callable[[IndexLayout], bool]) -> Iterator[str]:
    return (
        f"index {name!r} of table {table.name!r}"
        for name, index in table.indexes.items()
        if wanted(index)
    )


def _vectors(table: Table) -> Iterator[str]:
    return (f"vector index {name!r} of table {table.name!r}" for name in table.vectors)


def _stream(table: Table) -> Iterator[str]:
    if table.stream is not None:
        yield f"table {table.name!r} with stream={table.stream!r}"


def _expiry(table: Table) -> Iterator[str]:
    for schema in table.entities.values():
        if "expires" in schema.by_role:
            yield f"entity {schema.tag} of table {table.name!r}"
            return


_OF_TABLES: Final = (
    _Need(
        "streams", _stream, "leave out stream=, and handle changes in the program that makes them"
    ),
    _Need(
        "local_indexes",
        lambda table: _indexes(table, lambda index: index.kind == "local"),
        "declare a Global index with the table's partition key as its partition",
    ),
    _Need(
        "global_indexes",
        lambda table: _indexes(table, lambda index: index.kind == "global"),
        "store a second entity in that order, and write both",
    ),
    _Need(
        "vectors",
        _vectors,
        "leave out VectorIndex(…), and keep the vectors in a database that searches them",
    ),
    _Need(
        "wide_index_keys",
        lambda table: _indexes(table, lambda index: index.keys.is_wide),
        "give each part of its key one attribute, which Index(…).sort(a, b) composes",
    ),
)


def _unique(schema: EntitySchema) -> str | None:
    names = ", ".join(field.name for field in schema.unique)
    return f"entity {schema.tag} with unique {names}" if names else None


def _version(schema: EntitySchema) -> str | None:
    return f"entity {schema.tag} with a version" if "version" in schema.by_role else None


_OF_ENTITIES: Final = (
    _EntityNeed(
        "transactions",
        _unique,
        "leave out unique=, and create() an entity whose primary key is the value first",
    ),
    _EntityNeed(
        "conditional_writes", _version, "leave out version(), and let one process write the entity"
    ),
)


def require_for(table: Table, capabilities: Capabilities) -> None:
    """Raise `Unsupported` if the engine cannot have a table, or the entities in it; warn of what it ignores."""
    for need in _OF_TABLES:
        for what in need.what(table):
            capabilities.require([need.feature], what, need.instead)
    for schema in table.entities.values():
        _require_for_entity(schema, capabilities)
    _require_key_types(table, capabilities)
    for warning in _ignored(table, capabilities):
        warn_caller(EngineWarning(warning))


def _ignored(table: Table, capabilities: Capabilities) -> Iterator[str]:
    """What the engine ignores in a table's declaration without changing any result."""
    engine = capabilities.engine
    if not capabilities.index_projections and capabilities.global_indexes:
        for what in _indexes(table, lambda index: index.projection != "ALL"):
            yield (
                f"{what} stores all attributes: {engine} ignores projection=, so the index takes more space, and its "
                "writes cost more"
            )
    if not capabilities.expiry:
        for what in _expiry(table):
            yield (
                f"{what} expires, but {engine} deletes nothing by itself: reads skip what has expired, and it stays "
                "stored until store.delete_all(…) or another write removes it"
            )


def gaps_of(table: Table, capabilities: Capabilities) -> Iterator[tuple[str, str]]:
    """What the engine lacks or ignores of a table and its entities, each with what to do instead."""
    needs: list[tuple[str, Iterator[str | None], str]] = [
        (need.feature, need.what(table), need.instead) for need in _OF_TABLES
    ]
    needs += [
        (need.feature, map(need.what, table.entities.values()), need.instead)
        for need in _OF_ENTITIES
    ]
    for feature, found, instead in needs:
        if capabilities.lacking([feature]):
            name = feature.replace("_", " ")
            for what in filter(None, found):
                yield f"{what} needs {name}, which {capabilities.engine} does not have", instead
    for layout in (table.keys, *table.layouts.values()):
        for attribute in layout.attributes:
            if attribute.type not in capabilities.key_types:
                yield (
                    f"key attribute {attribute.name!r} of table {table.name!r} has type {attribute.type}, which "
                    f"{capabilities.engine} does not have in keys",
                    "let the key be composed of the field as text: Key(…).sort(field)",
                )
    for warning in _ignored(table, capabilities):
        yield warning, "leave it out, or accept that"


def index_features(schema: EntitySchema) -> Iterator[str]:
    """The features that an entity's index keys need, by the fields of `Capabilities`."""
    for key in schema.indexes:
        layout = schema.table.indexes[str(key.index)]
        yield f"{layout.kind}_indexes"
        if layout.keys.is_wide:
            yield "wide_index_keys"


def require_for_entity(schema: EntitySchema, engine: EngineIdentity) -> Steps[None]:
    """Raise `Unsupported` if the engine cannot write an entity. Sends no request for an entity without needs."""
    if any(need.what(schema) for need in _OF_ENTITIES):
        _require_for_entity(schema, (yield from capabilities_of(engine)))


def _require_for_entity(schema: EntitySchema, capabilities: Capabilities) -> None:
    for need in _OF_ENTITIES:
        if (what := need.what(schema)) is not None:
            capabilities.require([need.feature], what, need.instead)


def _require_key_types(table: Table, capabilities: Capabilities) -> None:
    for layout in (table.keys, *table.layouts.values()):
        for attribute in layout.attributes:
            if attribute.type not in capabilities.key_types:
                raise Unsupported(
                    f"key attribute {attribute.name!r} of table {table.name!r} has type {attribute.type}, and "
                    f"{capabilities.engine} has keys of type {', '.join(sorted(capabilities.key_types))}; let the "
                    "key be composed of the field as text: Key(…).sort(field)"
                )
