"""The expressions of one request with their placeholders: compiled, checked, and tied to its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from isotone import limits
from isotone.errors import ValidationException
from isotone.expressions import (
    Condition,
    KeyCondition,
    Projection,
    Update,
    check_all_used,
    check_placeholders,
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
        if text is None:
            return None
        compiled = condition(text, self._names, parameter)
        self._compiled.append(compiled)
        return compiled

    def update(self, text: str | None) -> Update | None:
        if text is None:
            return None
        compiled = update(text, self._names)
        self._compiled.append(compiled)
        return compiled

    def projection(self, text: str | None) -> Projection | None:
        if text is None:
            return None
        compiled = projection(text, self._names)
        self._compiled.append(compiled)
        return compiled

    def key_condition(self, text: str | None) -> KeyCondition | None:
        if text is None:
            return None
        compiled = key_condition(text, self._names)
        self._compiled.append(compiled)
        return compiled

    def check(self) -> None:
        """Refuse values of wrong types, and placeholders that nothing uses."""
        for compiled in self._compiled:
            if not isinstance(compiled, Projection):
                compiled.check(self.values)
        if self._names or self.values:
            check_all_used(self._compiled, self._names, self.values)


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
