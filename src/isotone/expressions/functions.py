"""The functions of the language, as data: where each may stand and what it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# The places where a function may stand.
CONDITION: Final = "condition"  # by itself, as a condition
OPERAND: Final = "operand"  # as an operand in a condition
VALUE: Final = "value"  # as the whole value of a SET action
INNER: Final = "inner"  # as an operand within the value of a SET action

IN_CONDITIONS: Final = frozenset({CONDITION, OPERAND})
IN_UPDATES: Final = frozenset({VALUE, INNER})


# The types that an operand may have where the request gives its value; ANY is not looked at.
ANY: Final = None
TEXTS: Final = frozenset({"S", "B"})
LISTS: Final = frozenset({"L"})
SIZED: Final = frozenset({"S", "B", "SS", "NS", "BS", "L", "M"})


@dataclass(frozen=True, slots=True)
class Function:
    """How a function may be used: in which places, with which operands.

    `needs_path`: the first operand must be a document path. `needs_distinct`: a path that comes first
    must not come again.
    """

    places: frozenset[str]
    operands: tuple[frozenset[str] | None, ...]
    needs_path: bool = False
    needs_distinct: bool = False


FUNCTIONS: Final = {
    "attribute_exists": Function(frozenset({CONDITION}), (ANY,), needs_path=True),
    "attribute_not_exists": Function(frozenset({CONDITION}), (ANY,), needs_path=True),
    "attribute_type": Function(
        frozenset({CONDITION}), (ANY, frozenset({"S"})), needs_distinct=True
    ),
    "begins_with": Function(frozenset({CONDITION}), (TEXTS, TEXTS), needs_distinct=True),
    "contains": Function(frozenset({CONDITION}), (ANY, ANY), needs_distinct=True),
    "size": Function(frozenset({OPERAND}), (SIZED,)),
    "if_not_exists": Function(IN_UPDATES, (ANY, ANY), needs_path=True, needs_distinct=True),
    "list_append": Function(frozenset({VALUE}), (LISTS, LISTS)),
}
