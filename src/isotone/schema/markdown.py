"""Markdown for a page of documentation: keys, indexes, settings, and the kinds of items where a model tells them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from isotone.schema.deployable import DeployableTable, key_names
from isotone.schema.features import FEATURES

_SHOWN = ("expiry", "recovery", "recovery_period", "stream", "protection", "table_class")
_ALSO_SHOWN = ("encryption", "policy", "limits", "warm_throughput", "index_units")


def write(tables: Sequence[DeployableTable]) -> str:
    """A section for each table."""
    return "\n".join("".join(f"{line}\n" for line in _section(table)) for table in tables)


def _section(table: DeployableTable) -> Iterator[str]:
    yield f"## {_escaped(table.name)}"
    yield ""
    yield from _rows(("", "partition key", "sort key", "attributes"), _keys(table))
    yield ""
    yield from (f"- {line}" for line in _settings(table))
    if table.facets:
        names = [each["AttributeName"] for each in table.definition["KeySchema"]]
        yield ""
        yield from _rows(("item", *map(_code, names), "other attributes"), _kinds(table))


def _keys(table: DeployableTable) -> Iterator[Sequence[str]]:
    request = table.definition
    yield "table", *_key(table, request["KeySchema"]), "all"
    for member, what in (
        ("LocalSecondaryIndexes", "local index"),
        ("GlobalSecondaryIndexes", "global index"),
    ):
        for index in request.get(member, ()):
            name = f"{what} {_code(index['IndexName'])}"
            yield name, *_key(table, index["KeySchema"]), _projection(index)
    for index in request.get("VectorIndexes", ()):
        searched = [each["AttributeName"] for each in index.get("SearchSchema", ())]
        narrowed = ", ".join(map(_code, searched))
        vector = _code(index["VectorAttribute"]["AttributeName"])
        size = f"{index['Dimensions']} dimensions, {index['DistanceFunction']}"
        name = f"vector index {_code(index['IndexName'])}"
        yield name, narrowed, f"{vector}: {size}", _projection(index)


def _key(table: DeployableTable, schema: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    def shown(kind: str) -> str:
        names = key_names(schema, kind)
        return " · ".join(f"{_code(name)} ({table.types[name]})" for name in names)

    return shown("HASH"), shown("RANGE")


def _projection(index: Mapping[str, Any]) -> str:
    projection = index["Projection"]
    listed = projection.get("NonKeyAttributes")
    if listed:
        return f"keys, {', '.join(map(_code, listed))}"
    return {"ALL": "all", "KEYS_ONLY": "keys"}.get(projection["ProjectionType"], "keys")


def _settings(table: DeployableTable) -> Iterator[str]:
    units = table.definition.get("ProvisionedThroughput")
    if units:
        read, write = units["ReadCapacityUnits"], units["WriteCapacityUnits"]
        yield f"billing: provisioned, {read} read and {write} write units"
    else:
        yield "billing: on demand"
    for name in (*_SHOWN, *_ALSO_SHOWN):
        yield from (_escaped(use) for use in FEATURES[name].uses(table))
    for tag in table.definition.get("Tags", ()):
        yield f"tag {_code(tag['Key'])}: {_escaped(tag['Value'])}"


def _kinds(table: DeployableTable) -> Iterator[Sequence[str]]:
    for facet in table.facets:
        sort = () if facet.sort is None else (_code(facet.sort),)
        others = ", ".join(map(_code, facet.attributes))
        yield _escaped(facet.name), _code(facet.partition), *sort, others


def _rows(header: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _code(text: str) -> str:
    plain = " ".join(text.split()).replace("|", "\\|")
    return f"`` {plain} ``" if "`" in plain else f"`{plain}`"


def _escaped(text: str) -> str:
    plain = " ".join(text.split())
    return "".join(f"\\{each}" if each in "\\`*_|<>[]" else each for each in plain)
