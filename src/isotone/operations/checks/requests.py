"""The checks of parameters, expressions, placeholders, legacy parameters and tables, one layer each for `orders`.

They call the same functions as the actions, one part at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from isotone.errors import ValidationException
from isotone.expressions import CompiledCondition, check_placeholders
from isotone.expressions.messages import (
    EMPTY,
    HOW_LONG,
    NAME_EMPTY,
    NAME_INVALID,
    TOO_LONG,
    VALUE_UNDEFINED,
)
from isotone.operations import legacy
from isotone.operations.checks.first_fault import Check, RefusedRequest
from isotone.operations.item_validation import checked_key, requested_key
from isotone.operations.request_expressions import (
    Binding,
    ExpressionParameters,
    check_conditional_operator,
    check_mixed,
    check_names_are_used,
    check_values_are_used,
)
from isotone.operations.request_members import member_name
from isotone.values.attribute_validation import EMPTY_NAME, canonical_item, canonical_value
from isotone.values.value_layers import check_nesting, check_sets

_UNDEFINED: Final = VALUE_UNDEFINED.partition("{")[0]
_HOW_LONG: Final = HOW_LONG.partition("{")[0]


# Which parameters can be combined


def not_mixed(parameters: ExpressionParameters) -> Check:
    """Expressions and the legacy parameters that they replaced exclude each other."""

    def check(asked: RefusedRequest) -> None:
        legacy, expressions = (
            [name for name in names if member_name(name) in asked.document]
            for names in (parameters.legacy, parameters.expressions)
        )
        check_mixed(legacy, expressions)

    return check


def names_have_expressions(parameters: ExpressionParameters) -> Check:
    """ExpressionAttributeNames need an expression."""
    return lambda asked: check_names_are_used(asked.request, parameters)


def values_have_expressions(parameters: ExpressionParameters, *, shortly: bool = False) -> Check:
    """ExpressionAttributeValues need an expression. With `shortly`, the error does not say which expressions are
    missing.
    """

    def check(asked: RefusedRequest) -> None:
        try:
            check_values_are_used(asked.request, parameters)
        except ValidationException as error:
            if not shortly:
                raise
            raise ValidationException(error.message.partition(":")[0]) from None

    return check


def operator_joins(parameters: ExpressionParameters) -> Check:
    """ConditionalOperator joins at least two conditions, with AND or OR."""

    def check(asked: RefusedRequest) -> None:
        check_conditional_operator(asked.request, parameters)
        for name in parameters.filters:
            conditions = getattr(asked.request, name)
            if conditions:
                legacy.check_operator(conditions, asked.request.conditional_operator)

    return check


def names_are_not_empty(asked: RefusedRequest) -> None:
    """No name in ExpressionAttributeNames is empty."""
    for key, name in (asked.request.expression_attribute_names or {}).items():
        if not name:
            raise ValidationException(
                NAME_INVALID.format(parameter="ExpressionAttributeNames", wrong=NAME_EMPTY, key=key)
            )


def placeholders_are_well_formed(asked: RefusedRequest) -> None:
    """The keys of ExpressionAttributeNames and -Values, and the names, have the right form."""
    values = getattr(asked.request, "expression_attribute_values", None)
    check_placeholders(asked.request.expression_attribute_names, values)


# Expressions


def not_empty(*parameters: str) -> Check:
    """No expression is an empty text."""

    def check(asked: RefusedRequest) -> None:
        for name in parameters:
            if getattr(asked.request, name) == "":
                raise ValidationException(f"Invalid {member_name(name)}: {EMPTY}")

    return check


def compiled(*parameters: str, defined: bool = True, sized: bool = False) -> Check:
    """Each expression is valid by itself, and with the values of its placeholders.

    Without `defined`, a value that the request does not define is left to a later layer. With `sized`, the error for an
    expression that is too long shows its length.
    """

    def check(asked: RefusedRequest) -> None:
        binding = binding_of(asked.request)
        for name in parameters:
            try:
                _COMPILE[name](binding, getattr(asked.request, name))
            except ValidationException as error:
                if not sized and TOO_LONG in error.message:
                    raise ValidationException(error.message.partition(_HOW_LONG)[0]) from None
                if defined or _UNDEFINED not in error.message:
                    raise

    return check


def placeholders_are_used(*parameters: str) -> Check:
    """Every placeholder that the request defines is used by an expression."""

    def check(asked: RefusedRequest) -> None:
        binding = binding_of(asked.request)
        for name in parameters:
            _COMPILE[name](binding, getattr(asked.request, name))
        binding.check()

    return check


def binding_of(request: Any) -> Binding:
    """The placeholders of a request, which must be well-formed."""
    return Binding(
        request.expression_attribute_names, getattr(request, "expression_attribute_values", None)
    )


def compiled_filter(binding: Binding, expression: Any) -> CompiledCondition | None:
    """The filter of a request, and the error in its values; None if there is none."""
    if expression is None:
        return None
    filters = binding.filter(expression)
    filters.check(binding.values)
    return filters


def _key_condition(binding: Binding, expression: Any) -> None:
    found = binding.key_condition(expression)
    if found is not None:
        found.check(binding.values)


_COMPILE: Final[Mapping[str, Callable[[Binding, Any], object]]] = {
    "condition_expression": Binding.condition,
    "update_expression": Binding.update,
    "projection_expression": Binding.projection,
    "filter_expression": compiled_filter,
    "key_condition_expression": _key_condition,
    "search_condition_expression": Binding.search_condition,
}


# Legacy parameters


def attributes_have_names(asked: RefusedRequest) -> None:
    """No name in AttributesToGet is empty."""
    if "" in (asked.request.attributes_to_get or ()):
        raise ValidationException(EMPTY_NAME)


def attributes_differ(asked: RefusedRequest) -> None:
    """No name occurs twice in AttributesToGet."""
    legacy.refuse_repeated_names(asked.request.attributes_to_get or ())


_LEGACY: Final = ("expected", "attribute_updates", "key_conditions", "query_filter", "scan_filter")


def legacy_nesting(asked: RefusedRequest) -> None:
    """No value of a legacy parameter is nested too deeply."""
    for name in _LEGACY:
        for each in (getattr(asked.request, name, None) or {}).values():
            for value in legacy.values_of(each):
                check_nesting(value)


def values_of(parameter: str) -> Check:
    """The values of legacy conditions or updates."""

    def check(asked: RefusedRequest) -> None:
        for condition in (getattr(asked.request, parameter) or {}).values():
            for value in legacy.values_of(condition):
                canonical_value(value)

    return check


def expected_is_sound(asked: RefusedRequest) -> None:
    """The conditions of Expected are valid."""
    legacy.expected_condition(asked.request.expected, asked.request.conditional_operator)


def filter_is_sound(parameter: str) -> Check:
    """The conditions of QueryFilter or ScanFilter are valid."""

    def check(asked: RefusedRequest) -> None:
        legacy.filter_condition(
            getattr(asked.request, parameter), asked.request.conditional_operator
        )

    return check


def no_empty_sets_in_updates(asked: RefusedRequest) -> None:
    """No value of AttributeUpdates is an empty set."""
    changes = asked.request.attribute_updates or {}
    check_sets({name: change.value for name, change in changes.items() if change.value})


def actions_exist(asked: RefusedRequest) -> None:
    """Each Action of AttributeUpdates exists; the quotation mark is AWS's."""
    for change in (asked.document.get("AttributeUpdates") or {}).values():
        if change.get("Action", "PUT") not in ("ADD", "DELETE", "PUT"):
            raise ValidationException(
                "Member must satisfy enum value set: [ADD, DELETE, PUT]' for Action"
            )


def updates_are_sound(asked: RefusedRequest) -> None:
    """The changes of AttributeUpdates are valid."""
    legacy.attribute_updates(asked.request.attribute_updates)


# The table


def table_exists(asked: RefusedRequest) -> None:
    """The table exists."""
    asked.table()


def key_fits(asked: RefusedRequest) -> None:
    """The Key has the attributes of the table's key, with the right types, neither empty nor too long."""
    requested_key(asked.table().keyspace, asked.request.key)


def item_fits(asked: RefusedRequest) -> None:
    """The Item has valid keys for the table and its indexes."""
    checked_key(asked.table(), *canonical_item(asked.request.item))
