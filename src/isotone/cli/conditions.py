"""Parses conditions of a command line, and plans the query or scan for them.

    customer=ann                          placed_at >= 2020-01-11
    placed_at begins_with 2020            placed_at between 2020-01-11 and 2020-02-01
    total > 10                            gift exists              note missing

`and` joins them. Conditions on key attributes become the key condition, which determines what is read. All
others become the filter, which drops items after they were read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from isotone.cli.notation import literal
from isotone.cli.table_keys import Keys, Table
from isotone.errors import UsageError
from isotone.values.types import AttributeValue

_CONDITION: Final = re.compile(
    r"""\s*(?:"(?P<quoted>[^"]+)"|(?P<name>[^\s=<>"]+?))\s*
    (?:(?P<symbol><=|>=|<>|!=|=|<|>)|\s(?P<word>begins_with|between|contains|exists|missing)\b)\s*
    (?P<value>.*?)\s*""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_AND: Final = re.compile(r"\s+and\s+", re.IGNORECASE)
_TEMPLATES: Final = {
    "begins_with": "begins_with({name}, {values[0]})",
    "between": "{name} BETWEEN {values[0]} AND {values[1]}",
    "contains": "contains({name}, {values[0]})",
    "exists": "attribute_exists({name})",
    "missing": "attribute_not_exists({name})",
}
_OPERANDS: Final = {"between": 2, "exists": 0, "missing": 0}
_KEY_OPERATORS: Final = frozenset({"=", "<", "<=", ">", ">=", "begins_with", "between"})


class Condition(NamedTuple):
    """One attribute, an operator, and the words to compare with."""

    name: str
    operator: str
    words: tuple[str, ...]


class Plan(NamedTuple):
    """The keys and the parameters of a query or scan."""

    keys: Keys
    parameters: dict[str, Any]
    filtered: bool


def parse_conditions(words: Sequence[str]) -> list[Condition]:
    """The conditions in the words of a command line; a condition may be one word or several."""
    return [_parse(piece) for text in _gather(words) for piece in _split(text)]


def plan_query(table: Table, conditions: Sequence[Condition], index: str | None) -> Plan:
    """The query for the conditions, on the named index or on the keys that match most of them."""
    candidates = [table.keys_of(index)] if index else [table.keys, *table.indexes]
    equal = {condition.name for condition in conditions if condition.operator == "="}
    usable = [keys for keys in candidates if equal.issuperset(keys.partition)]
    if not usable:
        ways = "; ".join(
            f"{keys.index or 'the table itself'}: {' and '.join(f'{n}=…' for n in keys.partition)}"
            for keys in candidates
        )
        raise UsageError(
            f"a query needs the whole partition key. For table {table.name}: {ways}. "
            "isotone scan reads everything"
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


def _gather(words: Sequence[str]) -> Iterator[str]:
    """Join words until they form a complete condition; drops an `and` between conditions."""
    gathered = ""
    for word in words:
        if not gathered and word.lower() == "and":
            continue
        gathered = f"{gathered} {word}" if gathered else word
        if _is_whole(gathered):
            yield gathered
            gathered = ""
    if gathered or not any(words):
        yield gathered


def _is_whole(text: str) -> bool:
    match = _CONDITION.fullmatch(text)
    if match is None or _lacks_bound(_split(text)[-1]):
        return False
    return bool(match["value"]) or _OPERANDS.get((match["word"] or "").lower()) == 0


def _split(text: str) -> list[str]:
    """The conditions of a text; the `and` of a `between` joins its bounds, not conditions."""
    pieces: list[str] = []
    for piece in _AND.split(text):
        if pieces and _lacks_bound(pieces[-1]):
            pieces[-1] += f" and {piece}"
        else:
            pieces.append(piece)
    return pieces


def _lacks_bound(piece: str) -> bool:
    match = _CONDITION.fullmatch(piece)
    if match is None or (match["word"] or "").lower() != "between":
        return False
    return not _AND.search(match["value"])


def _parse(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text!r} is not a condition; write it like customer=ann, 'placed_at >= 2020-01-11', "
            "'placed_at begins_with 2020' or 'total between 5 and 10'"
        )
    operator = (match["symbol"] or match["word"]).lower()
    operator = "<>" if operator == "!=" else operator
    wanted = _OPERANDS.get(operator, 1)
    words = tuple(_AND.split(match["value"])) if wanted == 2 else (match["value"],) * wanted
    if len(words) != wanted or (wanted == 0 and match["value"]):
        raise UsageError(
            f"{text!r}: {operator} takes {('nothing', 'a value', 'two values')[wanted]}"
        )
    return Condition(match["quoted"] or match["name"], operator, words)
