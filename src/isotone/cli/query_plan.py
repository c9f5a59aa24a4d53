"""Plans `isotone query` and `isotone scan`: which index, which key condition, which filter.

A query uses the keys that match most of its conditions: the table's or an index's. Conditions on the attributes of
these keys become the key condition, which determines what is read. All others become the filter, which drops items
after they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isotone.cli.conditions import Condition
from isotone.cli.table_keys import key_of
from isotone.errors import UsageError
from isotone.tables.description import KeyDescription, TableDescription
from isotone.values.notation import literal, scalar
from isotone.values.types import AttributeValue

_TEMPLATES: Final = {
    "begins_with": "begins_with({name}, {values[0]})",
    "between": "{name} BETWEEN {values[0]} AND {values[1]}",
    "contains": "contains({name}, {values[0]})",
    "exists": "attribute_exists({name})",
    "missing": "attribute_not_exists({name})",
}
_KEY_OPERATORS: Final = frozenset({"=", "<", "<=", ">", ">=", "begins_with", "between"})


@dataclass(frozen=True, slots=True)
class Plan:
    """The index and its key, or the table's, and the parameters of a query or scan."""

    index: str | None
    key: KeyDescription
    parameters: dict[str, Any]
    filtered: bool


def plan_query(table: TableDescription, conditions: Sequence[Condition], index: str | None) -> Plan:
    """The query for the conditions, on the named index or on the keys that match most of them."""
    names = [index] if index else [None, *table.index_names]
    candidates = [(name, key_of(table, name)) for name in names]
    equal = {condition.name for condition in conditions if condition.operator == "="}
    usable = [each for each in candidates if equal.issuperset(each[1].partition_names)]
    if not usable:
        ways = " or ".join(
            f"{' '.join(f'{n}=…' for n in key.partition_names)} ({f'index {name}' if name else 'the table'})"
            for name, key in candidates
        )
        raise UsageError(
            f"a query of {table.name} needs a whole partition key: {ways}; isotone scan reads everything"
        )
    name, key = max(usable, key=lambda each: len(_on_key(each[1], conditions)))
    on_key = _on_key(key, conditions)
    others = [condition for condition in conditions if condition not in on_key]
    writer = _Writer(table.types)
    parameters = {"KeyConditionExpression": writer.write(on_key)}
    return _finished(name, key, parameters, writer, others)


def plan_scan(table: TableDescription, conditions: Sequence[Condition], index: str | None) -> Plan:
    """The scan for the conditions."""
    return _finished(index, key_of(table, index), {}, _Writer(table.types), conditions)


def _finished(
    index: str | None,
    key: KeyDescription,
    parameters: dict[str, Any],
    writer: _Writer,
    others: Sequence[Condition],
) -> Plan:
    if others:
        parameters["FilterExpression"] = writer.write(others)
    if writer.names:
        parameters["ExpressionAttributeNames"] = writer.names
    if writer.values:
        parameters["ExpressionAttributeValues"] = writer.values
    if index:
        parameters["IndexName"] = index
    return Plan(index, key, parameters, bool(others))


def _on_key(key: KeyDescription, conditions: Sequence[Condition]) -> list[Condition]:
    """The conditions that the key can answer: on its partition, and on its sort parts from the left."""
    found = [c for c in conditions if c.name in key.partition_names and c.operator == "="]
    for name in key.sort_names:
        here = [c for c in conditions if c.name == name and c.operator in _KEY_OPERATORS]
        found += here[:1]
        if not here or here[0].operator != "=":
            break
    return found


class _Writer:
    """Writes conditions as expressions, collecting placeholders."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self._types = types
        self.names: dict[str, str] = {}
        self.values: dict[str, AttributeValue] = {}

    def write(self, conditions: Sequence[Condition]) -> str:
        return " AND ".join(map(self._one, conditions))

    def _one(self, condition: Condition) -> str:
        name = f"#n{len(self.names)}"
        self.names[name] = condition.name
        convert = self._converter(condition.name)
        values = []
        for word in condition.words:
            values.append(f":v{len(self.values)}")
            self.values[values[-1]] = convert(word)
        template = _TEMPLATES.get(condition.operator, "{name} {operator} {values[0]}")
        return template.format(name=name, operator=condition.operator, values=values)

    def _converter(self, name: str) -> Callable[[str], AttributeValue]:
        if name in self._types:
            return lambda word: scalar(word, self._types[name])
        return literal
