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


@dataclass(frozen=True, slots=True)
class Function:
    """How a function may be used.

    `needs_path`: its first operand must be a document path. `needs_distinct`: that path must differ
    from the other operand. `types`: those that an operand may have where it is given as a value.
    """

    places: frozenset[str]
    operands: int
    needs_path: bool = False
    needs_distinct: bool = False
    types: frozenset[str] | None = None


FUNCTIONS: Final = {
    "attribute_exists": Function(frozenset({CONDITION}), 1, needs_path=True),
    "attribute_not_exists": Function(frozenset({CONDITION}), 1, needs_path=True),
    "attribute_type": Function(frozenset({CONDITION}), 2, needs_path=True, types=frozenset({"S"})),
    "begins_with": Function(
        frozenset({CONDITION}), 2, needs_distinct=True, types=frozenset({"S", "B"})
    ),
    "contains": Function(frozenset({CONDITION}), 2, needs_distinct=True),
    "size": Function(
        frozenset({OPERAND}), 1, types=frozenset({"S", "B", "SS", "NS", "BS", "L", "M"})
    ),
    "if_not_exists": Function(IN_UPDATES, 2, needs_path=True, needs_distinct=True),
    "list_append": Function(frozenset({VALUE}), 2, types=frozenset({"L"})),
}
