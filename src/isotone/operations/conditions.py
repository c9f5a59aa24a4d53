"""The condition of a write, however the request says it: an expression, or the legacy `Expected`."""

from __future__ import annotations

from isotone.operations import legacy
from isotone.operations.binding import Binding, Matches, bound
from isotone.operations.shapes.items import DeleteItem, PutItem, UpdateItem


def is_plain(request: PutItem | DeleteItem | UpdateItem) -> bool:
    """Whether a write has no expressions and no legacy parameters: the fast and common case."""
    return (
        request.condition_expression is None
        and request.expected is None
        and request.expression_attribute_names is None
        and request.expression_attribute_values is None
    )


def write_condition(request: PutItem | DeleteItem | UpdateItem, binding: Binding) -> Matches | None:
    """The condition as a function of the item, or None. The binding still has to be checked."""
    if request.condition_expression is not None:
        compiled = binding.condition(request.condition_expression)
    else:
        compiled = legacy.expected_condition(request.expected, request.conditional_operator)
    return bound(compiled, binding.values)


def shows_old(request: object) -> bool:
    """Whether a failed condition shall show the item."""
    return getattr(request, "return_values_on_condition_check_failure", None) == "ALL_OLD"
