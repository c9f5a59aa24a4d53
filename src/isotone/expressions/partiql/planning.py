"""What a PartiQL condition selects: one key, item collections, or everything; and the rest, which filters.

A condition reads one item, one or several item collections, or everything:

    id = 1                          the values of the partition key are known: a query for each
    id IN [1, 2], id = 1 OR id = 2
    id = 1 AND placed > '2026'      conditions on the sort key narrow each query
    id > 1, total > 5               the values of the partition key are not known: a scan

Partition values are looked for in every operand of an AND, and must be found in all operands of an OR. What selects
keys is taken out of the filter only where it stands alone in the AND at the top.

The service decomposes such an OR into one read for each of its branches, and refuses those that overlap. Here, each
collection is read once, but `KeyPlan.reads` has the service's reads: the branches of the condition as an OR of ANDs,
in which what mentions no key is left whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from isotone.errors import ValidationException
from isotone.expressions.condition import Condition
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
    Path,
    ValueRef,
    references,
    walk_up,
)
from isotone.expressions.partiql import messages
from isotone.expressions.partiql.statements import Where
from isotone.values.types import AttributeValue

Values: TypeAlias = Mapping[str, AttributeValue]
Term: TypeAlias = Literal | ValueRef
T = TypeVar("T")

_KEYS: Final = 64  # of one table and its indexes, at most
_MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class KeyRead(msgspec.Struct, frozen=True):
    """A read into which the service decomposes a condition: a partition key of these values, and a condition on the sort key."""

    partition: tuple[Term, ...]
    sort: KeyTerm | None


class KeyTerm(msgspec.Struct, frozen=True):
    """A condition on one key attribute: `attribute operator operands`."""

    attribute: str
    operator: str
    operands: tuple[Term, ...]

    def values(self, values: Values) -> tuple[AttributeValue, ...]:
        """The values of its operands."""
        return tuple(value_of(operand, values) for operand in self.operands)


@dataclass(frozen=True, slots=True, eq=False)
class KeyPlan:
    """How a condition selects the keys of one key schema.

    `partition` has the possible values of each partition attribute; it is empty if they are not known. `equal` has an
    equality for each of the first sort attributes, `ranges` the conditions on the next one. `rest` has the conditions
    on the items so selected, and `filter` is their AND. `equalities` has all values that each key attribute must equal.
    `is_one_key`: equality fixes the whole key, and nothing is left. `mentions_partition`: one of the conditions that
    must all be true is about the partition key. `reads` are the reads into which the service decomposes the condition;
    none for a scan, or for more than it is worth to tell apart. `has_alternatives`: there is an OR. `can_overlap`: the
    service compares the reads with each other.
    """

    partition: tuple[tuple[Term, ...], ...]
    equal: tuple[KeyTerm, ...]
    ranges: tuple[KeyTerm, ...]
    rest: tuple[ConditionNode, ...]
    filter: Condition | None
    is_one_key: bool
    equalities: Mapping[str, tuple[Term, ...]]
    mentions_partition: bool
    reads: tuple[KeyRead, ...]
    has_alternatives: bool
    can_overlap: bool
    compared: dict[tuple[str, ...], tuple[KeyTerm, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def action(self, index: str | None) -> str:
        """The action that reads this of a table or an index: GetItem, Query or Scan."""
        if self.is_scan:
            return "Scan"
        return "GetItem" if self.is_one_key and index is None else "Query"

    @property
    def is_scan(self) -> bool:
        """Whether everything is read."""
        return not self.partition


def _kept(known: dict[Any, T], key: Any, make: Callable[[], T]) -> T:
    """What is known by a key, made if it is new. The keys are those of a table and its indexes: a few."""
    found = known.get(key)
    if found is None:
        if len(known) >= _KEYS:
            known.clear()
        found = known[key] = make()
    return found


def plan(where: Where | None, partition: tuple[str, ...], sort: tuple[str, ...]) -> KeyPlan:
    """The plan of a condition for the key of a table or an index. O(nodes) the first time, then kept with it."""
    if where is None:
        return _plan(None, partition, sort)
    made: KeyPlan = _kept(where.plans, (partition, sort), lambda: _plan(where, partition, sort))
    return made


def _plan(where: Where | None, partition: tuple[str, ...], sort: tuple[str, ...]) -> KeyPlan:
    conjuncts = [] if where is None else _conjuncts(where.node)
    terms = [_key_term(conjunct, (*partition, *sort)) for conjunct in conjuncts]
    possible = [found for name in partition if (found := _possible_values(conjuncts, name))]
    taken: set[int] = set()
    equal: list[int] = []
    ranges: list[int] = []
    if len(possible) == len(partition):
        equal, ranges = _sort_terms(terms, sort)
        taken = {*(place for _, place in possible), *equal, *ranges}
    else:
        possible = []
    rest = tuple(each for place, each in enumerate(conjuncts) if place not in taken)
    equalities = _equalities(terms)
    reads, can_overlap = _reads(where, partition, sort) if possible else ((), False)
    return KeyPlan(
        partition=tuple(values for values, _ in possible),
        equal=tuple(term for place in equal if (term := terms[place])),
        ranges=tuple(term for place in ranges if (term := terms[place])),
        rest=rest,
        filter=_joined(rest),
        is_one_key=not rest and equalities.keys() == {*partition, *sort},
        equalities=equalities,
        mentions_partition=any(_mentions(conjunct, partition) for conjunct in conjuncts),
        reads=reads,
        has_alternatives=any(map(_has_alternatives, conjuncts)),
        can_overlap=can_overlap,
    )


def _equalities(terms: Sequence[KeyTerm | None]) -> dict[str, tuple[Term, ...]]:
    """All values that each attribute must equal."""
    found: dict[str, tuple[Term, ...]] = {}
    for term in terms:
        if term is not None and term.operator == "=":
            found[term.attribute] = (*found.get(term.attribute, ()), *term.operands)
    return found


def key_of(plan: KeyPlan, names: Sequence[str], values: Values) -> dict[str, AttributeValue] | None:
    """The key that a condition selects by equality alone, as a write must; None if it does not.

    Raises `ValidationException` if one attribute must have two values.
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


def beyond_key(where: Where, names: tuple[str, ...]) -> Condition | None:
    """What a condition demands beyond the equality of all these key attributes. Kept with it."""
    (found,) = _kept(where.beyond, names, lambda: (_beyond_key(where, names),))
    return found


def _beyond_key(where: Where, names: tuple[str, ...]) -> Condition | None:
    conjuncts = _conjuncts(where.node)
    terms = [_key_term(conjunct, names) for conjunct in conjuncts]
    return _joined(
        [
            conjunct
            for conjunct, term in zip(conjuncts, terms, strict=True)
            if term is None or term.operator != "="
        ]
    )


def compared_with_keys(key_plan: KeyPlan, names: tuple[str, ...]) -> tuple[KeyTerm, ...]:
    """The literals and parameters that the filter of a plan compares with each of these key attributes."""
    return _kept(key_plan.compared, names, lambda: _compared_with_keys(key_plan, names))


def _compared_with_keys(key_plan: KeyPlan, names: tuple[str, ...]) -> tuple[KeyTerm, ...]:
    return tuple(
        KeyTerm(name, type(node).__name__, terms)
        for node in walk_up(*key_plan.rest)
        if type(node) in _OPERANDS
        for operands in (_OPERANDS[type(node)](node),)
        for terms in (tuple(each for each in operands if isinstance(each, Literal | ValueRef)),)
        for name in filter(names.__contains__, map(_name_of, operands))
    )


_OPERANDS: Final[dict[type, Callable[[Any], tuple[Operand, ...]]]] = {
    Comparison: lambda node: (node.left, node.right),
    Between: lambda node: (node.operand, node.low, node.high),
    In: lambda node: (node.operand, *node.choices),
    # The name of a type is not compared with the attribute.
    Call: lambda node: () if node.function == "attribute_type" else node.operands,
}


def value_of(operand: Term, values: Values) -> AttributeValue:
    """The value of a literal or a parameter."""
    return operand.value if isinstance(operand, Literal) else values[operand.name]


def _conjuncts(node: ConditionNode) -> list[ConditionNode]:
    """The conditions that must all be true, each once."""
    found: list[ConditionNode] = []
    for conjunct in _flat(node):
        if conjunct not in found:
            found.append(conjunct)
    return found


def _flat(node: ConditionNode) -> Iterator[ConditionNode]:
    if isinstance(node, And):
        for operand in node.operands:
            yield from _flat(operand)
    else:
        yield node


def _joined(conjuncts: Sequence[ConditionNode]) -> Condition | None:
    if not conjuncts:
        return None
    node = conjuncts[0] if len(conjuncts) == 1 else And(tuple(conjuncts))
    return Condition.from_node(node, parameter="")


def _key_term(node: ConditionNode, names: Sequence[str]) -> KeyTerm | None:
    """A condition on one key attribute that can be part of a key range."""
    match node:
        case Comparison(operator, left, right) if operator in _MIRRORED:
            if _is_term(left):
                operator, left, right = _MIRRORED[operator], right, left
            return _term(left, operator, (right,), names)
        case Between(operand, low, high):
            return _term(operand, "BETWEEN", (low, high), names)
        case Call("begins_with", (path, prefix)):
            return _term(path, "begins_with", (prefix,), names)
    return None


def _term(
    path: Operand, operator: str, operands: tuple[Any, ...], names: Sequence[str]
) -> KeyTerm | None:
    name = _name_of(path)
    if name not in names or not all(map(_is_term, operands)):
        return None
    return KeyTerm(name, operator, operands)


def _name_of(operand: Operand) -> Any:
    """The attribute that a path of one element names."""
    return operand.elements[0] if isinstance(operand, Path) and len(operand.elements) == 1 else None


def _is_term(operand: Operand) -> bool:
    return isinstance(operand, Literal | ValueRef)


def _possible_values(
    conjuncts: Sequence[ConditionNode], name: str
) -> tuple[tuple[Term, ...], int] | None:
    """The only values that an attribute can have, and the place of the condition that says so.

    The fewest values are preferred. The place is -1 if the condition says more, so that the filter must keep it.
    """
    best: tuple[tuple[Term, ...], int] | None = None
    for place, conjunct in enumerate(conjuncts):
        values = _values(conjunct, name)
        if values is not None and (best is None or len(values) < len(best[0])):
            keeps = isinstance(conjunct, Or) and not _is_about_only(conjunct, name)
            best = values, -1 if keeps else place
    return best


def _values(node: ConditionNode, name: str) -> tuple[Term, ...] | None:
    """The only values that an attribute can have if a condition is true; None if others are possible."""
    match node:
        case Comparison("=", left, right):
            if _is_term(left):
                left, right = right, left
            return (right,) if _name_of(left) == name and _is_term(right) else None  # type: ignore[return-value] # _is_term has checked it
        case In(operand, choices):
            known = _name_of(operand) == name and all(map(_is_term, choices))
            return choices if known else None  # type: ignore[return-value] # _is_term has checked each
        case Or(operands):
            parts = [_values(operand, name) for operand in operands]
            return None if None in parts else tuple(v for part in parts for v in part or ())
        case And(operands):
            found = [part for operand in operands if (part := _values(operand, name)) is not None]
            return min(found, key=len, default=None)
    return None


def _is_about_only(node: ConditionNode, name: str) -> bool:
    """Whether a condition is an OR of nothing but values of one attribute."""
    if isinstance(node, Or):
        return all(_is_about_only(operand, name) for operand in node.operands)
    return isinstance(node, Comparison | In)


def _sort_terms(
    terms: Sequence[KeyTerm | None], sort: Sequence[str]
) -> tuple[list[int], list[int]]:
    """The places of equalities on the first sort attributes, and of the conditions on the one after them."""
    equal: list[int] = []
    for name in sort:
        of_name = {at: term for at, term in enumerate(terms) if term and term.attribute == name}
        first = next((place for place, term in of_name.items() if term.operator == "="), None)
        if first is None:
            return equal, [*of_name]
        equal.append(first)
    return equal, []


def _mentions(node: ConditionNode, names: Sequence[str]) -> bool:
    return not isinstance(node, Or) and not references(walk_up(node)).attributes.isdisjoint(names)


# The reads into which the service decomposes a condition

_Leaf: TypeAlias = tuple[ConditionNode, bool]
"""A condition without parts, and whether it is negated."""

_MOST_READS: Final = 1000  # of one condition, beyond which they are not told apart


def _reads(
    where: Where | None, partition: tuple[str, ...], sort: tuple[str, ...]
) -> tuple[tuple[KeyRead, ...], bool]:
    """The reads of a condition on a key, and whether the service compares them: not if one has a condition on the sort
    key that is no range, or several."""
    branches = _branches(where.node, False, (*partition, *sort)) if where is not None else None
    reads: list[KeyRead] = []
    can_overlap = True
    for branch in branches or ():
        alone = [node for node, negated in branch if not negated]
        possible = _possible_values(alone, partition[0])
        if possible is None:
            return (), False
        terms = [found for name in sort if (found := _sort_conditions(branch, name))]
        conditions = terms[0] if terms else []
        can_overlap &= len(conditions) < 2 and None not in conditions
        reads.append(KeyRead(possible[0], conditions[0] if conditions else None))
    return tuple(reads), can_overlap


def _sort_conditions(branch: Sequence[_Leaf], name: str) -> list[KeyTerm | None]:
    """The conditions on a sort attribute; None for one that is no range."""
    found: list[KeyTerm | None] = []
    for node, negated in branch:
        term = _key_term(node, (name,))
        if isinstance(node, In):
            term = _term(node.operand, "IN", node.choices, (name,))
        if isinstance(node, Comparison) and node.operator == "<>":
            term = _key_term(Comparison("=", node.left, node.right), (name,))
            negated = True
        if term is not None:
            found.append(None if negated else term)
    return found


def _branches(
    node: ConditionNode, negated: bool, names: tuple[str, ...]
) -> list[tuple[_Leaf, ...]] | None:
    """A condition as an OR of ANDs; None if there are too many. What mentions none of the attributes is left whole."""
    if isinstance(node, Not):
        return _branches(node.operand, not negated, names)
    if not isinstance(node, And | Or) or references(walk_up(node)).attributes.isdisjoint(names):
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
    """Whether a condition is an OR somewhere, once NOT is moved inwards."""
    if isinstance(node, Not):
        return _has_alternatives(node.operand, not negated)
    if not isinstance(node, And | Or):
        return False
    return isinstance(node, Or) != negated or any(
        _has_alternatives(operand, negated) for operand in node.operands
    )
