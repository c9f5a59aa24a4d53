"""KeyConditionExpression: a condition that selects one contiguous part of an item collection.

A key condition is parsed as a condition. It must be a conjunction with one comparison for each key
attribute: equality for the whole partition key, and for the sort key equality from the left, then at most
one of `< <= > >= BETWEEN begins_with` on the next attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

import msgspec

from isotone.errors import ValidationException
from isotone.expressions import messages
from isotone.expressions.expression import COMPILED, Expression, NameMap
from isotone.expressions.key_planning import MIRRORED
from isotone.expressions.nodes import (
    Between,
    Call,
    Comparison,
    ConditionNode,
    In,
    Literal,
    Node,
    Not,
    Operand,
    Or,
    Path,
    ValueRef,
    conjuncts,
)
from isotone.expressions.operands import ValueMap
from isotone.expressions.parser import parse_condition
from isotone.expressions.placeholders import check_scalar_keys
from isotone.expressions.rules import Constant, constant
from isotone.values.types import AttributeValue

_SORT_OPERATORS: Final = frozenset({"=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"})


class KeyRange(msgspec.Struct, frozen=True):
    """The range of a query: the items with this partition key whose sort key begins with `equal`.

    If there is an operator, the next attribute of the sort key must also satisfy `operator operands`.
    """

    partition: tuple[AttributeValue, ...]
    equal: tuple[AttributeValue, ...] = ()
    operator: str | None = None
    operands: tuple[AttributeValue, ...] = ()


class _Term(msgspec.Struct, frozen=True):
    """One comparison of a key condition: `attribute operator operands`."""

    attribute: str
    operator: str
    operands: tuple[Constant, ...]


class _RangeOperands(msgspec.Struct, frozen=True):
    """The operands of each part of a key range, for one key schema."""

    partition: tuple[Constant, ...]
    equal: tuple[Constant, ...]
    operator: str | None
    operands: tuple[Constant, ...]


_Schema: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


class KeyCondition(Expression):
    """A key condition; `resolve` applies it to a key schema and values."""

    PARAMETER: ClassVar[str] = "KeyConditionExpression"

    __slots__ = ("_plans", "_tree")

    @staticmethod
    def parse(text: str) -> ConditionNode:
        return parse_condition(text)

    def _compile(self, tree: ConditionNode, nodes: list[Node]) -> None:
        self._gather(nodes)
        self._tree = tree
        self._plans: dict[_Schema, _RangeOperands] = {}

    def check_terms(self) -> None:
        """Raise `ValidationException` unless it has one allowed comparison for each attribute. O(nodes)."""
        _terms(self._tree)

    def resolve(
        self,
        values: ValueMap | None,
        partition: tuple[str, ...],
        sort: tuple[str, ...],
        label: str = "Key",
    ) -> KeyRange:
        """The key range for a key of these attributes. O(attributes), more the first time for a key schema.

        `label` is what messages call a key attribute: `Key` for a table, `IndexKey` for an index. Raises
        `ValidationException` if the expression is not a condition on such a key.
        """
        schema = (partition, sort)
        plan = self._plans.get(schema)
        if plan is None:
            check_scalar_keys((self,), (*partition, *sort), label)
            plan = self._plans[schema] = _operands_of(_terms(self._tree), *schema)
        given: Any = values
        return KeyRange(
            tuple([get(given) for get in plan.partition]),
            tuple([get(given) for get in plan.equal]) if plan.equal else (),
            plan.operator,
            tuple([get(given) for get in plan.operands]) if plan.operands else (),
        )


def key_condition(source: str | ConditionNode, names: NameMap | None = None) -> KeyCondition:
    """The key condition of a text or a lifted tree. O(length) the first time, then cached."""
    compiled: KeyCondition = COMPILED[
        KeyCondition, source, tuple(names.items()) if names else (), KeyCondition.PARAMETER
    ]
    return compiled


# A condition as terms


def _terms(node: ConditionNode) -> dict[str, _Term]:
    """The terms of a conjunction by attribute. Raises for the first that is not allowed."""
    terms: dict[str, _Term] = {}
    for conjunct in conjuncts(node):
        term = _term(conjunct)
        if term.attribute in terms:
            raise _refused(messages.KEY_TWICE)
        terms[term.attribute] = term
    return terms


def _term(node: ConditionNode) -> _Term:
    operator, operands = _operator_and_operands(node)
    if operator not in _SORT_OPERATORS:
        raise _refused(messages.KEY_OPERATOR, operator=operator)
    first, *others = operands
    if isinstance(first, ValueRef | Literal):
        if operator not in MIRRORED:
            raise _refused(messages.KEY_FIRST_OPERAND, operator=operator)
        operator, others = MIRRORED[operator], [first]
    return _Term(_attribute(operands), operator, tuple(filter(None, map(constant, others))))


def _operator_and_operands(node: ConditionNode) -> tuple[str, tuple[Operand, ...]]:
    match node:
        case Comparison(operator, left, right):
            return operator, (left, right)
        case Between(operand, low, high):
            return "BETWEEN", (operand, low, high)
        case Call(function, operands):
            return function, operands
    return _NAMES[type(node)], ()


def _attribute(operands: tuple[Operand, ...]) -> str:
    """The one attribute among the operands of a term."""
    attribute: str | None = None
    for operand in operands:
        if isinstance(operand, Call):
            raise _refused(messages.KEY_NESTED_OPERATION)
        if isinstance(operand, Path):
            if attribute is not None:
                raise _refused(messages.KEY_MANY_ATTRIBUTES)
            attribute, *rest = map(str, operand.elements)
            if rest:
                raise _refused(messages.KEY_NESTED_PATH)
    if attribute is None:
        raise _refused(messages.KEY_NO_ATTRIBUTE)
    return attribute


_NAMES: Final[dict[type, str]] = {Or: "OR", Not: "NOT", In: "IN"}


# Terms and key schema


def _operands_of(
    terms: Mapping[str, _Term], partition: tuple[str, ...], sort: tuple[str, ...]
) -> _RangeOperands:
    fit = _check_simple_key if len(partition) == 1 and len(sort) <= 1 else _check_composed_key
    fit(terms, partition, sort)
    present = [terms[name] for name in sort if name in terms]
    last = present.pop() if present and present[-1].operator != "=" else None
    return _RangeOperands(
        tuple(terms[name].operands[0] for name in partition),
        tuple(term.operands[0] for term in present),
        last.operator if last else None,
        last.operands if last else (),
    )


def _check_simple_key(
    terms: Mapping[str, _Term], partition: tuple[str, ...], sort: tuple[str, ...]
) -> None:
    """The rules for a key of one partition attribute and at most one sort attribute."""
    key = (*partition, *sort)
    _check_count(terms, key)
    for name in key[: len(terms)]:
        if name not in terms:
            raise _refused(messages.KEY_MISSED, attribute=name)
    if terms[partition[0]].operator != "=":
        raise _refused(messages.KEY_UNSUPPORTED)


def _check_count(terms: Mapping[str, _Term], key: tuple[str, ...]) -> None:
    if len(terms) > len(key):
        raise _refused(messages.KEY_TOO_MANY, count=len(terms), attributes=len(key))


def _check_composed_key(
    terms: Mapping[str, _Term], partition: tuple[str, ...], sort: tuple[str, ...]
) -> None:
    """The rules for a key with several attributes in its partition or sort part."""
    missed = _without_equality(terms, partition)
    if missed:
        raise _refused(messages.KEY_PARTITION_PARTS, attributes=", ".join(missed))
    _check_count(terms, (*partition, *sort))
    if not terms.keys() <= {*partition, *sort}:
        absent = next(name for name in sort if name not in terms)
        raise _refused(messages.KEY_MISSED, attribute=absent)
    present = [place for place, name in enumerate(sort) if name in terms]
    if present:
        missed = _without_equality(terms, sort[: present[-1]])
        if missed:
            raise _refused(
                messages.KEY_SORT_PARTS,
                attributes=", ".join(missed),
                present=sort[present[-1]],
            )


def _without_equality(terms: Mapping[str, _Term], names: Sequence[str]) -> list[str]:
    return [name for name in names if name not in terms or terms[name].operator != "="]


def _refused(sentence: str, **details: object) -> ValidationException:
    return ValidationException(sentence.format(**details))
