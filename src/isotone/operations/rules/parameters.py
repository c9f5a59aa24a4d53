"""Expressions and the legacy parameters that they replaced: which of them a request may combine.

A request speaks one of the two languages. Placeholders need an expression that could use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from isotone.errors import ValidationException
from isotone.operations.shapes.members import Structure, member_name

INVALID: Final = "One or more parameter values were invalid: "


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one action that are an expression, may hold values, or are legacy."""

    expressions: tuple[str, ...]
    with_values: tuple[str, ...] = ()
    legacy: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()  # what ConditionalOperator joins


def checker(parameters: Parameters) -> Callable[[Structure], None]:
    """The check of one action's parameters.

    Costs 0.1 µs for a request without placeholders, 0.4 µs for one with expressions that may use them.
    """
    placeholders = ("expression_attribute_names", "expression_attribute_values")
    kinds = placeholders if parameters.with_values else placeholders[:1]
    is_plain = _absence((*parameters.legacy, *kinds))
    without_legacy = _absence(parameters.legacy)
    without_expressions = _absence(parameters.with_values or parameters.expressions)

    def check(request: Structure) -> None:
        if not is_plain(request) and (without_expressions(request) or not without_legacy(request)):
            _check(request, parameters)

    return check


def _absence(names: tuple[str, ...]) -> Callable[[Structure], bool]:
    """Whether a request has none of some members."""
    if not names:
        return lambda request: True
    members: Callable[[Structure], Any] = attrgetter(*names)
    nothing = (None,) * len(names) if len(names) > 1 else None
    return lambda request: bool(members(request) == nothing)


def given(request: Structure, names: Sequence[str]) -> list[str]:
    """Those of some members that a request has."""
    return [name for name in names if getattr(request, name) is not None]


def _check(request: Structure, parameters: Parameters) -> None:
    expressions = given(request, parameters.expressions)
    legacy = given(request, parameters.legacy)
    if expressions and _conflicting(legacy, expressions):
        raise ValidationException(
            "Can not use both expression and non-expression parameters in the same request: "
            f"Non-expression parameters: {{{_listed(_conflicting(legacy, expressions))}}} "
            f"Expression parameters: {{{_listed(expressions)}}}"
        )
    _check_names(request, expressions)
    if parameters.with_values:
        _check_values(request, parameters.with_values)
    if parameters.filters and "conditional_operator" in legacy:
        _check_conditional_operator(request, parameters.filters)


def _conflicting(legacy: Sequence[str], expressions: Sequence[str]) -> list[str]:
    # AWS's exception: KeyConditions may stand beside expressions other than its own successor.
    keys_apart = "key_condition_expression" not in expressions
    return [name for name in legacy if not (keys_apart and name == "key_conditions")]


def _check_names(request: Any, expressions: Sequence[str]) -> None:
    if request.expression_attribute_names is not None and not expressions:
        raise ValidationException(
            "ExpressionAttributeNames can only be specified when using expressions"
        )


def _check_values(request: Any, with_values: Sequence[str]) -> None:
    if request.expression_attribute_values is None or given(request, with_values):
        return
    verb = "is" if len(with_values) == 1 else "are"
    raise ValidationException(
        "ExpressionAttributeValues can only be specified when using expressions: "
        f"{' and '.join(map(member_name, with_values))} {verb} null"
    )


def _check_conditional_operator(request: Structure, filters: Sequence[str]) -> None:
    # That it joins two conditions or more is checked after the conditions themselves (`legacy`).
    if not any(getattr(request, name) for name in filters):
        raise ValidationException("ConditionalOperator cannot be used without Filter or Expected")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(member_name, names))
