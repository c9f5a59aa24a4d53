"""The expressions of one request with their placeholders: compiled, checked, and tied to its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, TypeVar

from msgspec import Struct

from isotone import limits
from isotone.engine.table import Table
from isotone.errors import SerializationException, UsageError, ValidationException
from isotone.expressions import (
    Condition,
    KeyCondition,
    Projection,
    Update,
    check_all_used,
    check_placeholders,
    check_scalar_keys,
    condition,
    key_condition,
    lift,
    projection,
    update,
)
from isotone.values.attributes import AttributeValue, Item, canonical_value

Matches = Callable[[Item], bool]
Values = Mapping[str, AttributeValue]

Compiled = Condition | Update | Projection | KeyCondition
WithValues = TypeVar("WithValues", Condition, Update, KeyCondition)


class Binding:
    """Compiles the expressions of a request, and checks them with its values.

    An expression is a text with placeholders, whose names and values the request gives; or it is a tree
    that carries its values as literals. Of texts, no placeholder may be left over.
    """

    __slots__ = ("_compiled", "_names", "_placeholders", "_size", "values")

    def __init__(self, names: Mapping[str, str] | None, values: Mapping[str, Any] | None) -> None:
        self._placeholders = names is not None or values is not None
        self._names = names
        self._compiled: list[Compiled] = []
        self._size = 0
        self.values: dict[str, AttributeValue] = {}
        if self._placeholders:
            check_placeholders(names, values)
        if values is not None:
            self._add(values)

    def condition(
        self, expression: Any, parameter: str = "ConditionExpression"
    ) -> Condition | None:
        """A condition or filter, or None where there is none."""
        if expression is None:
            return None
        return self._checked(condition(self._source(expression), self._names, parameter))

    def update(self, expression: Any) -> Update | None:
        if expression is None:
            return None
        return self._checked(update(self._source(expression), self._names))

    def key_condition(self, expression: Any) -> KeyCondition | None:
        if expression is None:
            return None
        return self._checked(key_condition(self._source(expression), self._names))

    def projection(self, expression: Any) -> Projection | None:
        if expression is None:
            return None
        compiled = projection(self._source(expression), self._names)
        self._compiled.append(compiled)
        return compiled

    def check(self) -> None:
        """Refuse placeholders that nothing uses."""
        if self._placeholders:
            check_all_used(self._compiled, self._names, self.values)

    def check_keys(self, table: Table) -> None:
        """Refuse paths into the attributes of keys, which are never lists or maps."""
        if not any(compiled.nested_attributes for compiled in self._compiled):
            return
        check_scalar_keys(self._compiled, table.schema.keys.names)
        for index in table.secondary:
            check_scalar_keys(self._compiled, index.schema.keys.names, "IndexKey")

    def _source(self, expression: Any) -> Any:
        """What to compile: a text, or a tree whose literals have become values of this request."""
        if type(expression) is str:
            return expression
        if not isinstance(expression, Struct):
            raise SerializationException
        if self._placeholders:
            raise UsageError(
                "an expression that is a tree carries its names and values itself: leave out "
                "ExpressionAttributeNames and ExpressionAttributeValues"
            )
        known = len(self.values)
        tree: Any = expression
        lifted = lift(tree, self.values)
        if len(self.values) > known:
            self._add(dict(islice(self.values.items(), known, None)))
        return lifted

    def _add(self, values: Mapping[str, Any]) -> None:
        """Add values in normal form."""
        for name, value in values.items():
            try:
                self.values[name], size = canonical_value(value)
            except ValidationException as error:
                raise ValidationException(
                    "ExpressionAttributeValues contains invalid value: "
                    f"{error.message} for key {name}"
                ) from None
            self._size += size
        if self._size > limits.EXPRESSION_VALUES_SIZE:
            raise ValidationException(
                "ExpressionAttributeValues size exceeds the maximum allowed size"
            )

    def _checked(self, compiled: WithValues) -> WithValues:
        """An expression with its values checked: the service is done with one before the next."""
        self._compiled.append(compiled)
        compiled.check(self.values)
        return compiled


def bound(compiled: Condition | None, values: Values) -> Matches | None:
    """A condition as a function of the item alone."""
    if compiled is None:
        return None
    matches = compiled.matches
    return lambda item: matches(item, values)
