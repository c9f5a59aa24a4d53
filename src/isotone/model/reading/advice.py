"""What would have answered a wasteful read by a key: a key that is there, or one to declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from isotone.errors import UsageError
from isotone.model.declaring.conditions import All, Comparison, Condition
from isotone.model.reading.stats import Stats, Waste

if TYPE_CHECKING:
    from isotone.model.reading.patterns import Read


_NARROWER: Final = "read a narrower range, or keep in a sparse index what is wanted"


def waste_of(read: Read[Any], stats: Stats) -> Waste:
    """The report of a read that returned little of what it read."""
    return Waste(read.name, stats, advice(read))


def advice(read: Read[Any]) -> str:
    """What would help, in words."""
    from isotone.model.reading.patterns import find

    conditions = list(_plain((*getattr(read, "asked", ()), *read.filters)))
    if len(read.schemas) > 1 or not conditions:
        return _NARROWER
    (schema,) = read.schemas
    try:
        better = find(schema.entity, tuple(conditions)).name
    except UsageError:
        return f"an index would read no other items: {_index(conditions)}"
    if better == read.name:  # what is dropped is dropped by conditions that no key answers
        return _NARROWER
    return f"{better} answers it by its key"


def _plain(conditions: Iterable[Condition]) -> Iterator[Comparison]:
    """The conditions that a key could answer."""
    for condition in conditions:
        if isinstance(condition, All):
            yield from _plain(condition.operands)
        elif (
            isinstance(condition, Comparison)
            and not condition.path
            and condition.operator not in ("<>", "in")
        ):
            yield condition


def _index(conditions: list[Comparison]) -> str:
    """The declaration of an index that would answer the conditions."""
    equal = list(dict.fromkeys(c.field.name for c in conditions if c.operator == "="))
    ranged = [c.field.name for c in conditions if c.operator != "="]
    partition, rest = (equal[:1], equal[1:]) if equal else ([], [])
    sort = [*rest, *ranged[:1]]
    literal = ['"ALL"'] if not partition else []
    return f'Index("…", {", ".join(literal + partition)})' + (
        f".sort({', '.join(sort)})" if sort else ""
    )
