"""The reads into which the service splits the OR of a PartiQL WHERE; `key_planning` finds the keys in it.

What is read, and in which order, is decided in operations/statement_reads.
`key_planning` splits the condition into values of the partition key, conditions on the sort key, and the remaining
filter.

The service splits an OR into one read per branch, and refuses reads that overlap. Isotone reads each collection once,
but `WherePlan.reads` has the service's reads: the branches of the condition as an OR of ANDs. Parts that mention no key
are not split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from isotone.errors import ValidationException
from isotone.expressions.condition import CompiledCondition
from isotone.expressions.key_planning import (
    KeyPlan,
    KeyTerm,
    Term,
    Values,
    compiled,
    distinct,
    key_term,
    mentions,
    name_of,
    plan_key,
    possible_values,
    term_of,
    value_of,
)
from isotone.expressions.nodes import (
    And,
    Between,
    Call,
    Comparison,
    ConditionNode,
    In,
    Literal,
    Not,
    Operand,
    Or,
    ValueRef,
    walk_up,
)
from isotone.expressions.partiql import messages
from isotone.expressions.partiql.statements import Where
from isotone.values.types import AttributeValue

T = TypeVar("T")

_KEYS: Final = 64  # more than one table and its indexes have


class KeyRead(msgspec.Struct, frozen=True):
    """A read into which the service splits a condition: a partition key, and a condition on the sort key."""

    partition: tuple[Term, ...]
    sort: KeyTerm | None


class WherePlan(KeyPlan, frozen=True, eq=False, kw_only=True):
    """How the condition of a statement selects keys, and how the service would read them.

    `filter` is the AND of `rest`. `reads` are the reads into which the service splits the condition; it is empty for a
    scan and for conditions with too many branches. `has_alternatives`: there is an OR. `can_overlap`: the service
    checks whether the reads overlap.
    """

    filter: CompiledCondition | None
    reads: tuple[KeyRead, ...]
    has_alternatives: bool
    can_overlap: bool
    compared: dict[tuple[str, ...], tuple[KeyTerm, ...]] = msgspec.field(default_factory=dict)


def _kept(known: dict[Any, T], key: Any, make: Callable[[], T]) -> T:
    """The cached result for a key, made if missing. A table and its indexes have few keys."""
    found = known.get(key)
    if found is None:
        if len(known) >= _KEYS:
            known.clear()
        found = known[key] = make()
    return found


def plan_where(where: Where | None, partition: tuple[str, ...], sort: tuple[str, ...]) -> WherePlan:
    """The plan of a condition for the key of a table or an index. O(nodes) the first time, then cached with the
    condition.
    """
    if where is None:
        return _plan((), partition, sort)
    made: WherePlan = _kept(
        where.plans, (partition, sort), lambda: _plan((where.node,), partition, sort)
    )
    return made


def _plan(
    where: tuple[ConditionNode, ...], partition: tuple[str, ...], sort: tuple[str, ...]
) -> WherePlan:
    plan = plan_key(where, partition, sort)
    reads, can_overlap = ((), False) if plan.is_scan else _reads(where[0], partition, sort)
    return WherePlan(
        **msgspec.structs.asdict(plan),
        filter=compiled(plan.rest),
        reads=reads,
        has_alternatives=any(map(_has_alternatives, where)),
        can_overlap=can_overlap,
    )


def key_of(plan: KeyPlan, names: Sequence[str], values: Values) -> dict[str, AttributeValue] | None:
    """The key that a condition fixes by equality alone, as writes require; None if it does not.

    Raises `ValidationException` if one attribute must equal two values.
    """
    key: dict[str, AttributeValue] = {}
    for name in names:
        found = [value_of(operand, values) for operand in plan.equalities.get(name, ())]
        if not found:
            return None
        if any(value != found[0] for value in found):
            raise ValidationException(messages.KEY_TWICE.format(name=name))
        key[name] = found[0]
    return key


def beyond_key(where: Where, names: tuple[str, ...]) -> CompiledCondition | None:
    """The part of a condition beyond equality of all these key attributes. Cached with the condition."""
    (found,) = _kept(where.beyond, names, lambda: (_beyond_key(where, names),))
    return found


def _beyond_key(where: Where, names: tuple[str, ...]) -> CompiledCondition | None:
    return compiled([each for each in distinct((where.node,)) if not _is_equality(each, names)])


def _is_equality(node: ConditionNode, names: tuple[str, ...]) -> bool:
    term = key_term(node)
    return term is not None and term.operator == "=" and term.attribute in names


def compared_with_keys(key_plan: WherePlan, names: tuple[str, ...]) -> tuple[KeyTerm, ...]:
    """The literals and parameters that a plan's filter compares with each of these key attributes."""
    return _kept(key_plan.compared, names, lambda: _compared_with_keys(key_plan, names))


def _compared_with_keys(key_plan: KeyPlan, names: tuple[str, ...]) -> tuple[KeyTerm, ...]:
    return tuple(
        KeyTerm(name, type(node).__name__, terms)
        for node in walk_up(*key_plan.rest)
        if type(node) in _OPERANDS
        for operands in (_OPERANDS[type(node)](node),)
        for terms in (tuple(each for each in operands if isinstance(each, Literal | ValueRef)),)
        for name in filter(names.__contains__, map(name_of, operands))
    )


_OPERANDS: Final[dict[type, Callable[[Any], tuple[Operand, ...]]]] = {
    Comparison: lambda node: (node.left, node.right),
    Between: lambda node: (node.operand, node.low, node.high),
    In: lambda node: (node.operand, *node.choices),
    # The name of a type is not compared with the attribute.
    Call: lambda node: () if node.function == "attribute_type" else node.operands,
}


# The reads into which the service splits a condition

_Leaf: TypeAlias = tuple[ConditionNode, bool]
"""A condition without parts, and whether it is negated."""

_MOST_READS: Final = 1000  # conditions with more reads are not split


def _reads(
    where: ConditionNode, partition: tuple[str, ...], sort: tuple[str, ...]
) -> tuple[tuple[KeyRead, ...], bool]:
    """The reads of a condition on a key, and whether the service checks them for overlap. It does not if one of them
    has several conditions on the sort key, or one that is not a range.
    """
    branches = _branches(where, False, (*partition, *sort))
    reads: list[KeyRead] = []
    can_overlap = True
    for branch in branches or ():
        alone = [node for node, negated in branch if not negated]
        possible = possible_values(alone, partition[0])
        if possible is None:
            return (), False
        terms = [found for name in sort if (found := _sort_conditions(branch, name))]
        conditions = terms[0] if terms else []
        can_overlap &= len(conditions) < 2 and None not in conditions
        reads.append(KeyRead(possible[0], conditions[0] if conditions else None))
    return tuple(reads), can_overlap


def _sort_conditions(branch: Sequence[_Leaf], name: str) -> list[KeyTerm | None]:
    """The conditions on a sort attribute; None if one of them is not a range."""
    found: list[KeyTerm | None] = []
    for node, negated in branch:
        term = key_term(node)
        if isinstance(node, In):
            term = term_of(node.operand, "IN", node.choices)
        if isinstance(node, Comparison) and node.operator == "<>":
            term = key_term(Comparison("=", node.left, node.right))
            negated = True
        if term is not None and term.attribute == name:
            found.append(None if negated else term)
    return found


def _branches(
    node: ConditionNode, negated: bool, names: tuple[str, ...]
) -> list[tuple[_Leaf, ...]] | None:
    """A condition as an OR of ANDs; None if there are too many. Parts that mention none of the attributes are not
    split.
    """
    if isinstance(node, Not):
        return _branches(node.operand, not negated, names)
    if not isinstance(node, And | Or) or not mentions((node,), names):
        return [((node, negated),)]
    found: list[tuple[_Leaf, ...]] = [()] if isinstance(node, And) != negated else []
    for operand in node.operands:
        parts = _branches(operand, negated, names)
        if parts is None:
            return None
        if isinstance(node, And) != negated:
            found = [(*one, *other) for one in found for other in parts[:_MOST_READS]]
        else:
            found += parts
        if len(found) > _MOST_READS:
            return None
    return found


def _has_alternatives(node: ConditionNode, negated: bool = False) -> bool:
    """Whether a condition contains an OR once NOT is moved inwards."""
    if isinstance(node, Not):
        return _has_alternatives(node.operand, not negated)
    if not isinstance(node, And | Or):
        return False
    return isinstance(node, Or) != negated or any(
        _has_alternatives(operand, negated) for operand in node.operands
    )
