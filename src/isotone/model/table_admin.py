"""`create_tables`, `differences`, `add_indexes`, `drop_tables`: tables from declarations; `TableDiffers`.

A `Table` with its entities becomes a CreateTable request. `differences` compares an existing table with its
declaration. `add_indexes` adds missing global indexes one at a time, as the service requires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from isotone.backends.capabilities import Capabilities
from isotone.backends.engines import EngineIdentity
from isotone.errors import (
    ResourceInUseException,
    ResourceNotFoundException,
    TableDiffers,
    Unsupported,
    UsageError,
    ValidationException,
)
from isotone.model import key_records
from isotone.model.declaring.table import (
    KeyAttribute,
    KeyLayout,
    Projection,
    Table,
    VectorLayout,
)
from isotone.model.engine_needs import require_for
from isotone.model.key_records import KeyRecords
from isotone.model.streams import ensure_stream, specification
from isotone.tables.description import (
    IndexDescription,
    KeyDescription,
    TableDescription,
    describe_table,
    expiry_of,
)
from isotone.tables.retries import poll_pauses
from isotone.tables.steps import Call, Steps, capabilities_of

_TRANSIENT: Final = {"CREATING", "UPDATING", "DELETING", "ACTIVE"}
"""The temporary statuses of a table or an index."""


class Throughput(NamedTuple):
    """Provisioned units per second, for the table and each of its global indexes.

    store.create_tables(shop, throughput=isotone.Throughput(read=10, write=5))
    """

    read: int
    write: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between a table or index and its declaration; `what` describes it."""

    table: str
    index: str | None
    what: str

    def __str__(self) -> str:
        of = f"index {self.index!r} of table" if self.index else "table"
        return f"{of} {self.table!r} {self.what}"


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """The progress of filling an index: items in the index, and items in the table."""

    table: str
    index: str
    status: str
    items: int
    of_items: int


Progress = Callable[[IndexProgress], None]


def _check_tables(call: str, given: Sequence[Any]) -> None:
    """Raise `UsageError` for an argument that is not a table."""
    if not given:
        raise UsageError(f"{call}() needs a table; write {call}(shop)")
    for each in given:
        if isinstance(each, Table):
            continue
        if (schema := getattr(each, "__schema__", None)) is not None:
            raise UsageError(
                f"{call} takes tables, and {schema.tag} is an entity; give its table, Table({schema.table.name!r})"
            )
        if isinstance(each, list | tuple | set | frozenset):
            raise UsageError(f"{call} takes tables one by one; write {call}(*tables)")
        raise UsageError(f"{call} takes tables, isotone.Table(…), not {each!r}")


def create_tables(
    tables: Sequence[Table],
    engine: EngineIdentity,
    throughput: Throughput | None = None,
    *,
    records: KeyRecords,
) -> Steps[list[str]]:
    """Create the missing tables. All requests are sent before the first wait."""
    _check_tables("create_tables", tables)
    capabilities = yield from capabilities_of(engine)
    for table in tables:
        require_for(table, capabilities)
    made = []
    for table in tables:
        if (yield from _create(table, throughput)):
            made.append(table.name)  # noqa: PERF401 - a comprehension cannot yield
    found: list[Difference] = []
    for table in tables:
        description = yield from _wait_until_active(table)
        if table.name in made:
            _check_vectors_were_made(table, description)
        else:
            found += table_differences(table, description, capabilities)
            if capabilities.expiry:
                found += yield from _compare_expiry(table, may_lack=True)
    if found:
        raise TableDiffers(found)
    for table in tables:
        if capabilities.expiry:
            yield from ensure_expiry(table)
        yield from ensure_stream(table)
        if table.name in made:
            yield from records.record_all(table)
    return made


def _check_vectors_were_made(table: Table, description: TableDescription) -> None:
    """Raise `Unsupported` if the engine ignored the vector indexes in a CreateTable request."""
    if table.vectors and not description.vector_indexes:
        raise Unsupported(
            f"table {table.name!r} was created without its vector index {next(iter(table.vectors))!r}: the engine has "
            "no vector indexes; with capabilities=isotone.Capabilities(vectors=False) such a table is refused first"
        )


def differences(tables: Sequence[Table], engine: EngineIdentity) -> Steps[list[Difference]]:
    """Compare tables with their declarations."""
    _check_tables("differences", tables)
    capabilities = yield from capabilities_of(engine)
    found: list[Difference] = []
    for table in tables:
        description = yield from _describe(table)
        if description is None:
            found.append(Difference(table.name, None, "does not exist"))
            continue
        of_table = list(table_differences(table, description, capabilities))
        found += of_table
        if capabilities.expiry:
            found += yield from _compare_expiry(table)
        if table.stream and not description.stream:
            found.append(Difference(table.name, None, f"has no stream, declared is {table.stream}"))
        if not of_table:
            changes = yield from key_records.differences(table)
            found += [Difference(table.name, None, change) for change in changes]
    return found


def add_indexes(
    tables: Sequence[Table],
    engine: EngineIdentity,
    throughput: Throughput | None = None,
    progress: Progress | None = None,
) -> Steps[list[str]]:
    """Add the missing global and vector indexes, and wait until each is filled."""
    _check_tables("add_indexes", tables)
    capabilities = yield from capabilities_of(engine)
    for table in tables:
        require_for(table, capabilities)
    added = []
    for table in tables:
        description = yield from _wait_until_active(table)
        present = description.all_indexes
        for name, index in table.indexes.items():
            if name in present:
                continue
            if index.kind == "local":
                raise UsageError(
                    f"index {name!r} of table {table.name!r} is local, and a local index is created "
                    "only with its table; declare a Global one, or create the table again"
                )
            what = f"index {name!r} of table {table.name!r}, which exists without it,"
            capabilities.require(["added_indexes"], what, "create the table again with the index")
            keys = table.layout(name)
            create = _index_request(name, keys, index.projection) | _throughput_request(throughput)
            yield from _add_index(table, name, keys, "GlobalSecondaryIndex", create, progress)
            added.append(name)
        for name, layout in table.vectors.items():
            if name not in present:
                create = _vector_request(name, layout)
                keys = _searched(layout)
                yield from _add_index(table, name, keys, "VectorIndex", create, progress)
                added.append(name)
    return added


def drop_tables(tables: Sequence[Table], records: KeyRecords) -> Steps[list[str]]:
    """Delete tables, and wait until they are deleted."""
    _check_tables("drop_tables", tables)
    dropped = []
    for table in tables:
        if (yield from _drop(table)):
            dropped.append(table)  # noqa: PERF401 - a comprehension cannot yield
    for table in dropped:
        pauses = poll_pauses()
        while (yield from _describe(table)) is not None:
            yield next(pauses)
        records.forget(table)
    return [table.name for table in dropped]


def _drop(table: Table) -> Steps[bool]:
    pauses = poll_pauses()
    while True:
        try:
            yield Call("DeleteTable", {"TableName": table.name})
        except ResourceNotFoundException:
            return False
        except ResourceInUseException:  # the table is being created, changed or deleted
            yield next(pauses)
        else:
            return True


def _create(table: Table, throughput: Throughput | None) -> Steps[bool]:
    pauses = poll_pauses()
    while (description := (yield from _describe(table))) is not None:
        if description.status != "DELETING":
            return False
        yield next(pauses)
    try:
        yield Call("CreateTable", table_request(table, throughput))
    except ResourceInUseException:
        return False  # another process created it meanwhile
    return True


def _describe(table: Table) -> Steps[TableDescription | None]:
    try:
        return (yield from describe_table(table.name))
    except ResourceNotFoundException:
        return None


def _wait_until_active(table: Table) -> Steps[TableDescription]:
    pauses = poll_pauses()
    while True:
        description = yield from _describe(table)
        if description is None:
            raise UsageError(f"table {table.name!r} does not exist; create_tables() creates it")
        if description.statuses == {"ACTIVE"}:
            return description
        if stuck := sorted(description.statuses - _TRANSIENT):
            raise UsageError(
                f"table {table.name!r} is {', '.join(stuck)}, and waiting does not change that; repair the table first"
            )
        yield next(pauses)


def _add_index(
    table: Table,
    name: str,
    keys: KeyLayout,
    kind: Literal["GlobalSecondaryIndex", "VectorIndex"],
    create: dict[str, Any],
    progress: Progress | None,
) -> Steps[None]:
    yield Call(
        "UpdateTable",
        {
            "TableName": table.name,
            "AttributeDefinitions": _definitions([table.keys, keys]),
            f"{kind}Updates": [{"Create": create}],
        },
    )
    pauses = poll_pauses()
    while True:
        description = yield from _describe(table)
        if description is None:
            raise UsageError(f"table {table.name!r} was deleted before index {name!r} was filled")
        index = description.all_indexes.get(name)
        status, entries = (index.status, index.item_count) if index else ("CREATING", 0)
        if progress is not None:
            progress(IndexProgress(table.name, name, status, entries, description.item_count))
        if status == "ACTIVE":
            return
        yield next(pauses)


# Expiry


def expiry_attribute(table: Table) -> str | None:
    """The attribute by which the table's items expire; None if no entity declares one."""
    expires = any("expires" in schema.by_role for schema in table.entities.values())
    return table.ttl if expires else None


def ensure_expiry(table: Table) -> Steps[None]:
    """Enable expiry if an entity declares it and the table does not have it."""
    wanted = expiry_attribute(table)
    if wanted is None or (yield from _current_expiry(table)) is not None:
        return
    specification = {"AttributeName": wanted, "Enabled": True}
    request = {"TableName": table.name, "TimeToLiveSpecification": specification}
    try:
        yield Call("UpdateTimeToLive", request)
    except ValidationException:
        # Another process, or a request whose response was lost, may have enabled it.
        if (yield from _current_expiry(table)) != wanted:
            raise


def expiry_difference(table: Table, *, may_lack: bool) -> Steps[str | None]:
    """How the table's expiry differs from the declaration; `may_lack` accepts expiry that is not enabled."""
    wanted = expiry_attribute(table)
    if wanted is None:
        return None
    actual = yield from _current_expiry(table)
    if actual == wanted or (may_lack and actual is None):
        return None
    has = f"by {actual!r}" if actual else "nothing"
    return f"expires {has}, declared is {wanted!r}"


def _current_expiry(table: Table) -> Steps[str | None]:
    return expiry_of((yield Call("DescribeTimeToLive", {"TableName": table.name})))


# Declaration to request


def table_request(table: Table, throughput: Throughput | None = None) -> dict[str, Any]:
    """The CreateTable request for a table; on demand unless units are given."""
    request: dict[str, Any] = {
        "TableName": table.name,
        "AttributeDefinitions": _definitions(
            [table.keys, *table.layouts.values(), *map(_searched, table.vectors.values())]
        ),
        "KeySchema": key_schema(table.keys),
        "BillingMode": "PROVISIONED" if throughput else "PAY_PER_REQUEST",
        **_throughput_request(throughput),
        **specification(table),
    }
    for member, kind in (("LocalSecondaryIndexes", "local"), ("GlobalSecondaryIndexes", "global")):
        indexes = [
            _index_request(name, table.layout(name), index.projection)
            | (_throughput_request(throughput) if kind == "global" else {})
            for name, index in table.indexes.items()
            if index.kind == kind
        ]
        if indexes:
            request[member] = indexes
    if table.vectors:
        request["VectorIndexes"] = [
            _vector_request(name, layout) for name, layout in table.vectors.items()
        ]
    return request


def key_schema(keys: KeyLayout) -> list[dict[str, str]]:
    """A key as in the API: HASH for each partition attribute, RANGE for each sort attribute."""
    return [{"AttributeName": each.name, "KeyType": "HASH"} for each in keys.partition] + [
        {"AttributeName": each.name, "KeyType": "RANGE"} for each in keys.sort
    ]


def _definitions(layouts: Sequence[KeyLayout]) -> list[dict[str, str]]:
    found: dict[str, KeyAttribute] = {}
    for attribute in (each for layout in layouts for each in layout.attributes):
        if found.setdefault(attribute.name, attribute).type != attribute.type:
            raise UsageError(
                f"key attribute {attribute.name!r} is declared as {found[attribute.name].type} "
                f"and as {attribute.type}; an attribute has one type in all keys"
            )
    return [{"AttributeName": each.name, "AttributeType": each.type} for each in found.values()]


def _index_request(name: str, keys: KeyLayout, projection: Projection) -> dict[str, Any]:
    return {"IndexName": name, "KeySchema": key_schema(keys), "Projection": _projection(projection)}


def _vector_request(name: str, layout: VectorLayout) -> dict[str, Any]:
    request: dict[str, Any] = {
        "IndexName": name,
        "VectorAttribute": {"AttributeName": layout.attribute},
        "Dimensions": layout.dimensions,
        "DistanceFunction": layout.distance,
        "Projection": _projection(layout.projection),
    }
    if layout.search:
        request["SearchSchema"] = [
            {"AttributeName": each.name, "SearchSchemaElementType": role}
            for each, role in layout.search
        ]
    return request


def _searched(layout: VectorLayout) -> KeyLayout:
    """The attributes of a vector index's search schema; a request defines their types like those of keys."""
    return KeyLayout(tuple(attribute for attribute, _ in layout.search))


def _projection(projection: Projection) -> dict[str, Any]:
    if isinstance(projection, str):
        return {"ProjectionType": projection}
    return {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(projection)}


def _throughput_request(throughput: Throughput | None) -> dict[str, Any]:
    if throughput is None:
        return {}
    units = {"ReadCapacityUnits": throughput.read, "WriteCapacityUnits": throughput.write}
    return {"ProvisionedThroughput": units}


# Comparison


def table_differences(
    table: Table, description: TableDescription, capabilities: Capabilities
) -> Iterator[Difference]:
    """How a table's keys, stream view and indexes differ from the declaration; without its expiry and its items."""
    for what in _compare_keys(table.keys, description.key):
        yield Difference(table.name, None, what)
    view = description.stream
    if table.stream and view and view != table.stream:
        yield Difference(table.name, None, f"has a stream of {view}, declared is {table.stream}")
    present = description.all_indexes
    for name, index in table.indexes.items():
        if name not in present:
            yield Difference(table.name, name, "does not exist")
            continue
        for what in _compare_keys(table.layout(name), present[name].key):
            yield Difference(table.name, name, what)
        if capabilities.index_projections:
            for what in _compare_projection(index.projection, present[name].projection):
                yield Difference(table.name, name, what)
    for name, layout in table.vectors.items():
        if name not in present:
            yield Difference(table.name, name, "does not exist")
            continue
        for what in _compare_vectors(layout, present[name]):
            yield Difference(table.name, name, what)


def _compare_expiry(table: Table, *, may_lack: bool = False) -> Steps[list[Difference]]:
    what = yield from expiry_difference(table, may_lack=may_lack)
    return [Difference(table.name, None, what)] if what else []


def _compare_keys(keys: KeyLayout, actual: KeyDescription) -> Iterator[str]:
    has, wanted = _key_text(actual), _key_text(keys)
    if has != wanted:
        yield f"has the key {has}, declared is {wanted}"
        return
    for attribute, part in zip(keys.attributes, actual.parts, strict=True):
        if part.type != attribute.type:
            yield f"has {attribute.name!r} as {part.type}, declared is {attribute.type}"


def _compare_vectors(layout: VectorLayout, index: IndexDescription) -> Iterator[str]:
    actual = index.vectors
    if actual is None:
        yield "is not a vector index"
        return
    types = {part.name: part.type for part in index.key.parts}
    wanted = _vector_request("", layout)
    for member, what in (
        ("VectorAttribute", "has the vectors of"),
        ("Dimensions", "has the dimensions"),
        ("DistanceFunction", "has the metric"),
        ("SearchSchema", "is searched by"),
    ):
        has, declared = _vector_text(actual.get(member)), _vector_text(wanted.get(member))
        if has != declared:
            yield f"{what} {has}, declared is {declared}"
    for attribute, _ in layout.search:
        if types.get(attribute.name, attribute.type) != attribute.type:
            yield f"has {attribute.name!r} as {types[attribute.name]}, declared is {attribute.type}"
    yield from _compare_projection(layout.projection, index.projection)


def _vector_text(member: Any) -> str:
    """A member of a vector index, as a difference shows it; the order of filters does not matter."""
    if isinstance(member, Mapping):
        return repr(member["AttributeName"])
    if not isinstance(member, list):
        return str(member or "nothing")
    parts = (f"{each['AttributeName']} ({each['SearchSchemaElementType']})" for each in member)
    return ", ".join(sorted(parts))


def _key_text(key: KeyLayout | KeyDescription) -> str:
    parts = [*((each, "HASH") for each in key.partition), *((each, "RANGE") for each in key.sort)]
    return ", ".join(f"{each.name} ({kind})" for each, kind in parts)


def _compare_projection(wanted: Projection, actual: str | tuple[str, ...]) -> Iterator[str]:
    has = actual if isinstance(actual, str) else tuple(sorted(actual))
    declared = wanted if isinstance(wanted, str) else tuple(sorted(wanted))
    if has != declared:
        yield f"projects {_listed(has)}, declared is {_listed(declared)}"


def _listed(projection: str | tuple[str, ...]) -> str:
    return projection if isinstance(projection, str) else ", ".join(projection)
