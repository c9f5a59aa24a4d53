"""Plans `isotone query` and `isotone scan`: which index, which key condition, which filter.

A query uses the keys that match most of its conditions: the table's or an index's. Conditions on the attributes of
these keys become the key condition, which determines what is read. All others become the filter, which drops items
after they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from isotone.cli.conditions import Condition
from isotone.cli.table_keys import Keys, Table
from isotone.errors import UsageError
from isotone.values.notation import literal
from isotone.values.types import AttributeValue

_TEMPLATES: Final = {
    "begins_with": "begins_with({name}, {values[0]})",
    "between": "{name} BETWEEN {values[0]} AND {values[1]}",
    "contains": "contains({name}, {values[0]})",
    "exists": "attribute_exists({name})",
    "missing": "attribute_not_exists({name})",
}
_KEY_OPERATORS: Final = frozenset({"=", "<", "<=", ">", ">=", "begins_with", "between"})


class Plan(NamedTuple):
    """The keys and the parameters of a query or scan."""

    keys: Keys
    parameters: dict[str, Any]
    filtered: bool


def plan_query(table: Table, conditions: Sequence[Condition], index: str | None) -> Plan:
    """The query for the conditions, on the named index or on the keys that match most of them."""
    candidates = [table.keys_of(index)] if index else [table.keys, *table.indexes]
    equal = {condition.name for condition in conditions if condition.operator == "="}
    usable = [keys for keys in candidates if equal.issuperset(keys.partition)]
    if not usable:
        ways = " or ".join(
            f"{' '.join(f'{n}=…' for n in keys.partition)} ({f'index {keys.index}' if keys.index else 'the table'})"
            for keys in candidates
        )
        raise UsageError(
            f"a query of {table.name} needs a whole partition key: {ways}; isotone scan reads everything"
        )
    keys = max(usable, key=lambda keys: len(_on_keys(keys, conditions)))
    on_keys = _on_keys(keys, conditions)
    others = [condition for condition in conditions if condition not in on_keys]
    writer = _Writer(keys)
    parameters = {"KeyConditionExpression": writer.write(on_keys)}
    return _finished(keys, parameters, writer, others)


def plan_scan(table: Table, conditions: Sequence[Condition], index: str | None) -> Plan:
    """The scan for the conditions."""
    keys = table.keys_of(index)
    return _finished(keys, {}, _Writer(keys), conditions)


def _finished(
    keys: Keys, parameters: dict[str, Any], writer: _Writer, others: Sequence[Condition]
) -> Plan:
    if others:
        parameters["FilterExpression"] = writer.write(others)
    if writer.names:
        parameters["ExpressionAttributeNames"] = writer.names
    if writer.values:
        parameters["ExpressionAttributeValues"] = writer.values
    if keys.index:
        parameters["IndexName"] = keys.index
    return Plan(keys, parameters, bool(others))


def _on_keys(keys: Keys, conditions: Sequence[Condition]) -> list[Condition]:
    """The conditions that the key can answer: on its partition, and on its sort parts from the left."""
    found = [c for c in conditions if c.name in keys.partition and c.operator == "="]
    for name in keys.sort:
        here = [c for c in conditions if c.name == name and c.operator in _KEY_OPERATORS]
        found += here[:1]
        if not here or here[0].operator != "=":
            break
    return found


class _Writer:
    """Writes conditions as expressions, collecting placeholders."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
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
        if name in self._keys.types:
            return lambda word: self._keys.value(name, word)
        return literal
