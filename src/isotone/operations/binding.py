"""The expressions of one request with their placeholders: compiled, checked, and tied to its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from isotone import limits
from isotone.engine.table import Table
from isotone.errors import ValidationException
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
    projection,
    update,
)
from isotone.values.attributes import AttributeValue, Item, canonical_value

Matches = Callable[[Item], bool]
Values = Mapping[str, AttributeValue]

_NO_VALUES: Values = {}


Compiled = Condition | Update | Projection | KeyCondition
WithValues = TypeVar("WithValues", Condition, Update, KeyCondition)


class Binding:
    """Compiles the expressions of a request, then checks that no placeholder is left over."""

    __slots__ = ("_compiled", "_names", "values")

    def __init__(self, names: Mapping[str, str] | None, values: Mapping[str, Any] | None) -> None:
        if names is not None or values is not None:
            check_placeholders(names, values)
        self._names = names
        self.values = _NO_VALUES if values is None else _canonical(values)
        self._compiled: list[Compiled] = []

    def condition(
        self, text: str | None, parameter: str = "ConditionExpression"
    ) -> Condition | None:
        """A condition or filter, or None where there is none."""
        return None if text is None else self._judged(condition(text, self._names, parameter))

    def update(self, text: str | None) -> Update | None:
        return None if text is None else self._judged(update(text, self._names))

    def projection(self, text: str | None) -> Projection | None:
        if text is None:
            return None
        compiled = projection(text, self._names)
        self._compiled.append(compiled)
        return compiled

    def key_condition(self, text: str | None) -> KeyCondition | None:
        return None if text is None else self._judged(key_condition(text, self._names))

    def check(self) -> None:
        """Refuse placeholders that nothing uses."""
        if self._names or self.values:
            check_all_used(self._compiled, self._names, self.values)

    def check_keys(self, table: Table) -> None:
        """Refuse paths into the attributes of keys, which are never lists or maps."""
        if not any(compiled.nested_attributes for compiled in self._compiled):
            return
        check_scalar_keys(self._compiled, table.schema.keys.names)
        for index in table.secondary:
            check_scalar_keys(self._compiled, index.schema.keys.names, "IndexKey")

    def _judged(self, compiled: WithValues) -> WithValues:
        """An expression with its values checked: the service is done with one before the next."""
        self._compiled.append(compiled)
        compiled.check(self.values)
        return compiled


def _canonical(values: Mapping[str, Any]) -> Values:
    canonical: dict[str, AttributeValue] = {}
    total = 0
    for name, value in values.items():
        try:
            canonical[name], size = canonical_value(value)
        except ValidationException as error:
            raise ValidationException(
                f"ExpressionAttributeValues contains invalid value: {error.message} for key {name}"
            ) from None
        total += size
    if total > limits.EXPRESSION_VALUES_SIZE:
        raise ValidationException("ExpressionAttributeValues size exceeds the maximum allowed size")
    return canonical


def bound(compiled: Condition | None, values: Values) -> Matches | None:
    """A condition as a function of the item alone."""
    if compiled is None:
        return None
    matches = compiled.matches
    return lambda item: matches(item, values)
