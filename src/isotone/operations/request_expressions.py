"""Compiles the expressions of a request, binds their placeholders, and checks which parameters can be combined.

A request uses either expressions or the legacy parameters that they replaced. An expression is a text with placeholders
that the request defines or, from a caller in this process, a tree with its values as literals. With texts, every
placeholder that the request defines must be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from isotone import limits
from isotone.engine.table_indexes import StoredTable
from isotone.errors import SerializationException, UsageError, ValidationException
from isotone.expressions import (
    CompiledCondition,
    CompiledProjection,
    CompiledUpdate,
    KeyCondition,
    SearchCondition,
    check_all_used,
    check_placeholders,
    check_scalar_keys,
    condition,
    key_condition,
    lift,
    projection,
    search_condition,
    update,
)
from isotone.expressions.messages import refused
from isotone.operations.request_members import ApiStructure, member_name
from isotone.values.attribute_validation import (
    AttributeValue,
    Item,
    Misshapen,
    canonical_value,
    measured,
)

Matches: TypeAlias = Callable[[Item], bool]
Values: TypeAlias = Mapping[str, AttributeValue]
Compiled: TypeAlias = (
    CompiledCondition | CompiledUpdate | CompiledProjection | KeyCondition | SearchCondition
)
WithValues = TypeVar("WithValues", CompiledCondition, CompiledUpdate, KeyCondition, SearchCondition)


VALUES_WITHOUT_EXPRESSIONS: Final = (
    "ExpressionAttributeValues can only be specified when using expressions"
)


class Binding:
    """Compiles the expressions of a request, and checks them with its values. `nodes` counts theirs."""

    __slots__ = (
        "_compiled",
        "_level",
        "_names",
        "_nested",
        "_placeholders",
        "nodes",
        "size",
        "values",
    )

    def __init__(
        self, names: Mapping[str, str] | None, values: Mapping[str, Any] | None, level: int = 1
    ) -> None:
        """`level` is how deep the values are nested in the request."""
        self._level = level
        self._placeholders = names is not None or values is not None
        self._names = names
        self._compiled: tuple[Compiled, ...] = ()
        self._nested = False
        self.size: int = 0
        self.nodes: int = 0
        self.values: dict[str, AttributeValue] = {}
        if self._placeholders:
            check_placeholders(names, values)
        if values is not None:
            self._add(values.items())

    def condition(
        self, expression: Any, parameter: str = "ConditionExpression"
    ) -> CompiledCondition | None:
        """A condition or filter, or None if there is none."""
        if expression is None:
            return None
        return self._checked(condition(self._source(expression, parameter), self._names, parameter))

    def filter(self, expression: Any) -> CompiledCondition:
        """A filter; its values are not checked."""
        parameter = "FilterExpression"
        return self._unchecked(
            condition(self._source(expression, parameter), self._names, parameter)
        )

    def update(self, expression: Any) -> CompiledUpdate | None:
        if expression is None:
            return None
        return self._checked(
            update(self._source(expression, CompiledUpdate.PARAMETER), self._names)
        )

    def key_condition(self, expression: Any) -> KeyCondition | None:
        """A key condition; its values are not checked."""
        if expression is None:
            return None
        return self._unchecked(
            key_condition(self._source(expression, KeyCondition.PARAMETER), self._names)
        )

    def search_condition(self, expression: Any) -> SearchCondition | None:
        if expression is None:
            return None
        return self._checked(
            search_condition(self._source(expression, SearchCondition.PARAMETER), self._names)
        )

    def projection(self, expression: Any) -> CompiledProjection | None:
        if expression is None:
            return None
        compiled = projection(self._source(expression, CompiledProjection.PARAMETER), self._names)
        self._compiled += (compiled,)
        self._nested = self._nested or bool(compiled.nested_attributes)
        return compiled

    def check(self) -> None:
        """Refuse placeholders that no expression uses."""
        if self._placeholders:
            check_all_used(self._compiled, self._names, self.values)

    def check_keys(self, table: StoredTable, update: CompiledUpdate | None = None) -> None:
        """Refuse paths into the attributes of keys, which are never lists or maps.

        An update of `key.a` is refused as an update of the key, once its condition holds.
        """
        if not self._nested:
            return
        if update is not None and not update.attributes_written.isdisjoint(table.keyspace.names):
            return
        check_scalar_keys(self._compiled, table.schema.keys.names)
        for index in table.secondary:
            check_scalar_keys(self._compiled, index.schema.keys.names, "IndexKey")

    def _source(self, expression: Any, parameter: str) -> Any:
        """What to compile: a text, or a tree whose literals are added to the values of this request."""
        if type(expression) is str:
            return expression
        if self._placeholders:
            raise UsageError(
                "an expression tree contains its names and values: leave out "
                "ExpressionAttributeNames and ExpressionAttributeValues"
            )
        known = len(self.values)
        try:
            lifted = lift(expression, self.values)
        except KeyError:  # not a tree
            raise SerializationException from None
        except RecursionError as error:
            raise refused(parameter, error) from None
        if lifted is not expression:
            self._add(islice(self.values.items(), known, None))
        return lifted

    def _add(self, values: Iterable[tuple[str, Any]]) -> None:
        """Add values in normal form."""
        for name, value in values:
            try:
                self.values[name], size = measured(value, self._level)
            except (Misshapen, ValidationException):
                self._refuse(name, value)
                raise
            self.size += size
        if self.size > limits.EXPRESSION_VALUES_SIZE:
            raise ValidationException(
                "ExpressionAttributeValues size exceeds the maximum allowed size"
            )

    def _refuse(self, name: str, value: Any) -> None:
        """Raise the error for an invalid value."""
        try:
            canonical_value(value, self._level)
        except ValidationException as error:
            raise ValidationException(
                f"ExpressionAttributeValues contains invalid value: {error.message} for key {name}"
            ) from None

    def _checked(self, compiled: WithValues) -> WithValues:
        """An expression with checked values. The service checks one expression completely before the next."""
        self._compiled += (compiled,)
        self._nested = self._nested or bool(compiled.nested_attributes)
        self.nodes += compiled.nodes
        compiled.check(self.values)
        return compiled

    def _unchecked(self, compiled: WithValues) -> WithValues:
        self._compiled += (compiled,)
        self._nested = self._nested or bool(compiled.nested_attributes)
        return compiled


def bound(compiled: CompiledCondition | None, values: Values) -> Matches | None:
    """A condition as a function of the item alone."""
    if compiled is None:
        return None
    matches: Callable[..., bool] = compiled.matches
    if compiled.has_long_in:
        matches = compiled.compiled_with(values)
    return partial(matches, values=values)


# Which parameters can be combined


class ExpressionParameters(msgspec.Struct, frozen=True):
    """The parameters of an action: expressions, those that may contain values, and legacy ones."""

    expressions: tuple[str, ...]
    with_values: tuple[str, ...] = ()
    legacy: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()  # the parameters that ConditionalOperator joins
    without_any: bool = False  # whether placeholders may be empty if there is no expression


def checker(parameters: ExpressionParameters) -> Callable[[ApiStructure], None]:
    """The check of an action's parameters. Fast if they can be combined."""
    placeholders = ("expression_attribute_names", "expression_attribute_values")
    kinds = placeholders if parameters.with_values else placeholders[:1]
    plain = (*parameters.legacy, *kinds)
    options: Callable[[ApiStructure], Any] = attrgetter(*plain)
    no_options = (None,) * len(plain) if len(plain) > 1 else None
    without_legacy = _absence(parameters.legacy)
    without_expressions = _absence(parameters.with_values or parameters.expressions)

    def check(request: ApiStructure) -> None:
        if options(request) != no_options and (
            without_expressions(request) or not without_legacy(request)
        ):
            _check(request, parameters)

    return check


def _absence(names: tuple[str, ...]) -> Callable[[ApiStructure], bool]:
    """Whether a request has none of these members."""
    if not names:
        return lambda request: True
    members: Callable[[ApiStructure], Any] = attrgetter(*names)
    nothing = (None,) * len(names) if len(names) > 1 else None
    return lambda request: bool(members(request) == nothing)


def given(request: ApiStructure, names: Sequence[str]) -> list[str]:
    """Those of these members that a request has."""
    return [name for name in names if getattr(request, name) is not None]


def _check(request: ApiStructure, parameters: ExpressionParameters) -> None:
    check_mixed(given(request, parameters.legacy), given(request, parameters.expressions))
    check_names_are_used(request, parameters)
    check_values_are_used(request, parameters)
    check_conditional_operator(request, parameters)


def check_mixed(legacy: Sequence[str], expressions: Sequence[str]) -> None:
    """Refuse expressions together with the legacy parameters that they replaced."""
    if expressions and _conflicting(legacy, expressions):
        raise mixed(_conflicting(legacy, expressions), expressions)


def mixed(legacy: Sequence[str], expressions: Sequence[str]) -> ValidationException:
    """The error for legacy parameters and expressions in one request."""
    return ValidationException(
        "Can not use both expression and non-expression parameters in the same request: "
        f"Non-expression parameters: {{{_listed(legacy)}}} "
        f"Expression parameters: {{{_listed(expressions)}}}"
    )


def _conflicting(legacy: Sequence[str], expressions: Sequence[str]) -> list[str]:
    # AWS's exception: KeyConditions can be combined with any expression except KeyConditionExpression.
    keys_apart = "key_condition_expression" not in expressions
    return [name for name in legacy if not (keys_apart and name == "key_conditions")]


def check_names_are_used(request: Any, parameters: ExpressionParameters) -> None:
    """Refuse ExpressionAttributeNames without an expression."""
    names = request.expression_attribute_names
    if _are_useless(names, parameters) and not given(request, parameters.expressions):
        raise ValidationException(
            "ExpressionAttributeNames can only be specified when using expressions"
        )


def _are_useless(placeholders: Mapping[str, Any] | None, parameters: ExpressionParameters) -> bool:
    """Whether placeholders lack an expression."""
    return placeholders is not None and (bool(placeholders) or not parameters.without_any)


def check_values_are_used(request: Any, parameters: ExpressionParameters) -> None:
    """Refuse ExpressionAttributeValues without an expression that may contain values."""
    with_values = parameters.with_values
    if (
        not with_values
        or not _are_useless(request.expression_attribute_values, parameters)
        or given(request, with_values)
    ):
        return
    verb = "is" if len(with_values) == 1 else "are"
    raise ValidationException(
        f"{VALUES_WITHOUT_EXPRESSIONS}: {' and '.join(map(member_name, with_values))} {verb} null"
    )


def check_conditional_operator(request: Any, parameters: ExpressionParameters) -> None:
    """Refuse a ConditionalOperator without conditions; `legacy` checks that it joins at least two."""
    if not parameters.filters or request.conditional_operator is None:
        return
    if not any(getattr(request, name) for name in parameters.filters):
        raise ValidationException("ConditionalOperator cannot be used without Filter or Expected")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(member_name, names))
