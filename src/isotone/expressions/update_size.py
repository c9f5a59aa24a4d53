"""The size limit of an UpdateExpression: the expression and its operands together may have 400 KB.

The service limits what an UpdateItem writes in most of its regions, and does not document the rule. This one was
derived to the byte from the sizes that were refused. Each action costs its path, its operands, and a constant:

    SET path = operand      19 + path + operand         REMOVE path           1 + path
    ADD path :value         19 + path + value           DELETE path :value    1 + path

    a path that is written   its first name, and 4 more for each further element
    a path that is read      15 with its first name, and 14 more for each further element
    a function               39 if_not_exists, 37 list_append, 34 for +, 37 for -; and its operands
    the expression           3
"""

from __future__ import annotations

from typing import Final, NamedTuple

from isotone.expressions.nodes import (
    Add,
    Arithmetic,
    Call,
    Literal,
    Operand,
    Path,
    Set,
    UpdateNode,
    ValueRef,
)
from isotone.expressions.operands import ValueMap
from isotone.values.size import text_size, value_size

_EXPRESSION: Final = 3
_WRITES: Final = 19
_REMOVES: Final = 1
_FUNCTIONS: Final = {"if_not_exists": 39, "list_append": 37, "+": 34, "-": 37}
_READ: Final = 15
_READ_WITHIN: Final = 14
_WRITTEN_WITHIN: Final = 4


class UpdateSize(NamedTuple):
    """The constant cost of an expression, and the values that it uses, repeated as often as it uses them."""

    fixed: int
    values: tuple[str, ...]

    def with_values(self, values: ValueMap) -> int:
        """The size in bytes with these values. O(uses of values)."""
        return self.fixed + sum([value_size(values[name]) for name in self.values])


def update_size(tree: UpdateNode) -> UpdateSize:
    """The size of a tree with resolved names. O(length)."""
    used: list[str] = []
    fixed = _EXPRESSION
    for action in tree.actions:
        fixed += _path_size(action.path, 0, _WRITTEN_WITHIN, used)
        if isinstance(action, Set | Add):
            fixed += _WRITES + _operand_size(action.value, used)
        else:
            fixed += _REMOVES
    return UpdateSize(fixed, tuple(used))


def _path_size(path: Path, first: int, within: int, used: list[str]) -> int:
    names = path.elements
    if type(names[-1]) is ValueRef:  # a map key costs its own size
        used.append(names[-1].name)
        names = names[:-1]
    sizes = [text_size(str(element)) for element in names]
    return first + sum(sizes) + within * (len(path.elements) - 1)


def _operand_size(operand: Operand, used: list[str]) -> int:
    if isinstance(operand, Path):
        return _path_size(operand, _READ, _READ_WITHIN, used)
    if isinstance(operand, ValueRef):
        used.append(operand.name)
        return 0
    if isinstance(operand, Literal):
        return value_size(operand.value)
    if isinstance(operand, Call):
        name, operands = operand.function, operand.operands
    elif isinstance(operand, Arithmetic):
        name, operands = operand.operator, (operand.left, operand.right)
    else:
        return 0  # only PartiQL has these nodes, and statements have no such limit
    return _FUNCTIONS[name] + sum([_operand_size(each, used) for each in operands])
