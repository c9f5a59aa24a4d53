"""Legacy parameters (Expected, QueryFilter, ScanFilter, KeyConditions, AttributeUpdates …) as expression trees.

AttributesToGet, Expected, QueryFilter, ScanFilter, KeyConditions and AttributeUpdates have no paths: a name is a whole
attribute name, dots and brackets included. Their values are checked here, condition by condition, with the service's
messages; `expressions` evaluates the trees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from isotone import limits
from isotone.errors import ValidationException
from isotone.expressions.condition import CompiledCondition
from isotone.expressions.key_condition import KeyCondition
from isotone.expressions.messages import KEY_UNSUPPORTED, LONG_TYPE_NAMES, WRONG_TYPE
from isotone.expressions.nodes import (
    Action,
    Add,
    And,
    Between,
    Call,
    Comparison,
    ConditionNode,
    Delete,
    In,
    Literal,
    Not,
    Or,
    Path,
    Remove,
    Set,
    UpdateNode,
)
from isotone.expressions.projection import CompiledProjection
from isotone.expressions.update import CompiledUpdate
from isotone.operations import request_members
from isotone.operations.item_validation import INVALID
from isotone.values.attribute_validation import AttributeValue, Item, canonical_value
from isotone.values.types import compare

_SCALAR: Final = frozenset({"S", "N", "B"})
_SINGLE: Final = _SCALAR | {"BOOL", "NULL"}
_SETS: Final = frozenset({"SS", "NS", "BS"})
_ANY: Final = _SINGLE | _SETS | {"L", "M"}
# The operators that a key condition may have.
_INDEXABLE: Final = frozenset({"EQ", "LE", "LT", "GE", "GT", "BETWEEN", "BEGINS_WITH"})

Build = Callable[..., ConditionNode]
Apply = Callable[[Item, Any], Item]


class Operator(msgspec.Struct, frozen=True):
    """A ComparisonOperator: the number and types of its values, and its expression tree."""

    build: Build
    fewest: int = 1
    most: float = 1
    types: frozenset[str] = _ANY


def _compared(operator: str) -> Build:
    return lambda path, value: Comparison(operator, path, value)


def _called(function: str) -> Build:
    return lambda path, *operands: Call(function, (path, *operands))


def _in(path: Path, *choices: Literal) -> ConditionNode:
    # The limit on IN in expressions does not apply here.
    starts = range(0, len(choices), limits.IN_OPERANDS)
    parts = tuple(In(path, choices[start : start + limits.IN_OPERANDS]) for start in starts)
    return parts[0] if len(parts) == 1 else Or(parts)


def _not_contains(path: Path, value: Literal) -> ConditionNode:
    # Unlike NE, a missing attribute does not satisfy it.
    return And((Call("attribute_exists", (path,)), Not(Call("contains", (path, value)))))


OPERATORS: Final[dict[str, Operator]] = {
    "EQ": Operator(_compared("=")),
    "NE": Operator(_compared("<>")),
    "LE": Operator(_compared("<="), types=_SCALAR),
    "LT": Operator(_compared("<"), types=_SCALAR),
    "GE": Operator(_compared(">="), types=_SCALAR),
    "GT": Operator(_compared(">"), types=_SCALAR),
    "IN": Operator(_in, most=float("inf"), types=_SCALAR),
    "BETWEEN": Operator(Between, fewest=2, most=2, types=_SCALAR),
    "NOT_NULL": Operator(_called("attribute_exists"), fewest=0, most=0),
    "NULL": Operator(_called("attribute_not_exists"), fewest=0, most=0),
    "CONTAINS": Operator(_called("contains"), types=_SINGLE),
    "NOT_CONTAINS": Operator(_not_contains, types=_SINGLE),
    "BEGINS_WITH": Operator(_called("begins_with"), types=frozenset({"S", "B"})),
}


def refuse_repeated_names(attributes_to_get: Sequence[str]) -> None:
    """Refuse AttributesToGet that names an attribute twice."""
    seen: set[str] = set()
    for name in attributes_to_get:
        if name in seen:
            raise ValidationException(f"{INVALID}Duplicate value in attribute name: {name}")
        seen.add(name)


def projection_of(attributes_to_get: Sequence[str]) -> CompiledProjection:
    """The projection of AttributesToGet."""
    if "" in attributes_to_get:
        raise _empty_name()
    return CompiledProjection.of_names(attributes_to_get)


def expected_condition(
    expected: Mapping[str, request_members.ExpectedAttributeValue] | None, operator: str | None
) -> CompiledCondition | None:
    """The condition of a write, from Expected and ConditionalOperator."""
    return _joined(_expectation, expected, operator, "ConditionExpression")


def filter_condition(
    conditions: Mapping[str, request_members.Condition] | None, operator: str | None
) -> CompiledCondition | None:
    """The filter of a read, from QueryFilter or ScanFilter and ConditionalOperator."""
    return _joined(_filter, conditions, operator, "FilterExpression")


def attribute_updates(
    updates: Mapping[str, request_members.AttributeValueUpdate] | None,
) -> CompiledUpdate | None:
    """The update of AttributeUpdates."""
    if not updates:
        return None
    actions = tuple(_action(name, update) for name, update in updates.items())
    update = CompiledUpdate.from_node(UpdateNode(actions))
    update.apply = _in_legacy_words(update.apply)
    return update


def key_conditions(conditions: Mapping[str, request_members.Condition] | None) -> KeyCondition:
    """The key condition of KeyConditions; its `resolve` takes the names of the key attributes."""
    if conditions is None:
        raise ValidationException(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified "
            "in the request."
        )
    if not conditions:
        raise ValidationException("Conditions must be at least length 1")
    nodes = tuple(_filter(name, condition) for name, condition in conditions.items())
    if not _INDEXABLE.issuperset(each.comparison_operator for each in conditions.values()):
        raise ValidationException(
            KEY_UNSUPPORTED
            if len(conditions) == 1
            else "Attempted conditional constraint is not an indexable operation"
        )
    return KeyCondition.from_node(nodes[0] if len(nodes) == 1 else And(nodes))


def checked_values(
    operator: str, values: Sequence[AttributeValue] | None
) -> tuple[AttributeValue, ...]:
    """The values of a comparison in normal form, after checking their number and types."""
    checked = tuple(canonical_value(value)[0] for value in values or ())
    rule = _rule_of(operator)
    if not rule.fewest <= len(checked) <= rule.most:
        raise ValidationException(
            f"{INVALID}Invalid number of argument(s) for the {operator} ComparisonOperator"
        )
    types = [type_of(value) for value in checked]
    for code in types:
        if code not in rule.types:
            raise ValidationException(
                f"{INVALID}ComparisonOperator {operator} is not valid for {code} AttributeValue type"
            )
    if len(set(types)) > 1:
        raise ValidationException(
            f"{INVALID}AttributeValues inside AttributeValueList must be of same type"
        )
    if operator == "BETWEEN" and compare(*checked) > 0:
        raise ValidationException(
            "The BETWEEN condition was provided a range "
            "where the lower bound is greater than the upper bound"
        )
    return checked


def _rule_of(operator: str) -> Operator:
    try:
        return OPERATORS[operator]
    except KeyError:
        raise ValidationException(f"{INVALID}Invalid comparison operator") from None


def type_of(value: AttributeValue) -> str:
    """The type code of a value in normal form."""
    return next(iter(value))


def check_operator(conditions: Mapping[str, Any], operator: str | None) -> None:
    """Check the ConditionalOperator of conditions: it must join at least two. Its first value is AWS's default."""
    if operator is not None and len(conditions) < 2:
        raise ValidationException(
            "ConditionalOperator can only be used when Filter or Expected has two or more elements"
        )
    if operator not in (None, "AND", "OR"):
        raise ValidationException(
            "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"
        )


def values_of(condition: Any) -> Iterator[AttributeValue]:
    """The values of a legacy condition or update, as they are written."""
    value = getattr(condition, "value", None)
    if value is not None:
        yield value
    yield from getattr(condition, "attribute_value_list", None) or ()


def _joined(
    translate: Callable[[str, Any], ConditionNode],
    conditions: Mapping[str, Any] | None,
    operator: str | None,
    parameter: str,
) -> CompiledCondition | None:
    if not conditions:
        return None
    check_operator(conditions, operator)
    for condition in conditions.values():
        for value in values_of(condition):
            canonical_value(value)
    nodes = tuple(translate(name, condition) for name, condition in conditions.items())
    join = Or if operator == "OR" else And
    node = nodes[0] if len(nodes) == 1 else join(nodes)
    return _LegacyCondition.from_node(node, parameter=parameter)


class _LegacyCondition(CompiledCondition):
    """A condition that was not an expression: only the size of the request limits it, as in DynamoDB Local."""

    __slots__ = ()
    MOST_OPERATORS = math.inf


def _path(name: str) -> Path:
    if not name:
        raise _empty_name()
    return Path((name,))


def _empty_name() -> ValidationException:
    return ValidationException("Empty attribute name")


def _filter(name: str, condition: request_members.Condition) -> ConditionNode:
    return _node(name, condition.comparison_operator, condition.attribute_value_list)


def _node(name: str, operator: str, values: Sequence[AttributeValue] | None) -> ConditionNode:
    operands = map(Literal, checked_values(operator, values))
    return OPERATORS[operator].build(_path(name), *operands)


def _expectation(name: str, expected: request_members.ExpectedAttributeValue) -> ConditionNode:
    refuse = partial(_refuse_expectation, name)
    operator, values = expected.comparison_operator, expected.attribute_value_list
    if expected.value is not None and values is not None:
        raise refuse("Value and AttributeValueList cannot be used together")
    if operator is None:
        if values is not None:
            raise refuse("AttributeValueList can only be used with a ComparisonOperator")
        return _existence(name, expected)
    if expected.exists is not None:
        raise refuse("Exists and ComparisonOperator cannot be used together")
    if values is None and expected.value is not None:
        values = [expected.value]
    if values is None and _rule_of(operator).fewest:
        raise refuse(
            f"Value or AttributeValueList must be used with ComparisonOperator: {operator}"
        )
    return _node(name, operator, values)


def _existence(name: str, expected: request_members.ExpectedAttributeValue) -> ConditionNode:
    """Value and Exists, the oldest form of a condition."""
    refuse = partial(_refuse_expectation, name)
    if expected.exists is False:
        if expected.value is not None:
            raise refuse("Value cannot be used when Exists is false")
        return Call("attribute_not_exists", (_path(name),))
    if expected.value is None:
        exists = "null" if expected.exists is None else "true"
        raise refuse(f"Value must be provided when Exists is {exists}")
    return _node(name, "EQ", [expected.value])


def _refuse_expectation(name: str, sentence: str) -> ValidationException:
    return ValidationException(f"{INVALID}{sentence} for Attribute: {name}")


def _action(name: str, update: request_members.AttributeValueUpdate) -> Action:
    path, action = _path(name), update.action or "PUT"
    if update.value is None:
        if action == "DELETE":
            return Remove(path)
        raise ValidationException(
            f"{INVALID}Only DELETE action is allowed when no attribute value is specified"
        )
    value = canonical_value(update.value)[0]
    rule = _UPDATES[action]
    if type_of(value) not in rule.types:
        raise ValidationException(
            f"{INVALID}{rule.words} is not supported for the type {LONG_TYPE_NAMES[type_of(value)]}"
        )
    return rule.build(path, Literal(value))


class _UpdateAction(msgspec.Struct, frozen=True):
    """An Action of AttributeUpdates with a value: the types it accepts, and its expression tree."""

    build: Callable[[Path, Literal], Action]
    words: str
    types: frozenset[str]


def _add(path: Path, value: Literal) -> Action:
    # Unlike ADD in an expression, this ADD appends to lists.
    if "L" in value.value:
        old = Call("if_not_exists", (path, Literal({"L": []})))
        return Set(path, Call("list_append", (old, value)))
    return Add(path, value)


_UPDATES: Final[dict[str, _UpdateAction]] = {
    "PUT": _UpdateAction(Set, "PUT action", _ANY),
    "ADD": _UpdateAction(_add, "ADD action", _SETS | {"N", "L"}),
    "DELETE": _UpdateAction(Delete, "DELETE action with value", _SETS),
}


def _in_legacy_words(apply: Apply) -> Apply:
    """The same function, with type errors worded as for AttributeUpdates."""

    def reworded(item: Item, values: Any) -> Item:
        try:
            return apply(item, values)
        except ValidationException as error:
            if error.message == WRONG_TYPE:
                raise ValidationException("Type mismatch for attribute to update") from None
            raise

    return reworded
