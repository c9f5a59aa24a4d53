"""Plans and ranks the keys that answer a condition: partition values, sort key range, remaining filter (Query or Scan).

    plan_key(conditions, ("customer",), ("placed_at",))

A condition reads one item, one or several item collections, or everything:

    id = 1                          the values of the partition key are known: a query for each
    id IN [1, 2], id = 1 OR id = 2
    id = 1 AND placed > '2026'      conditions on the sort key narrow each query
    id > 1, total > 5               the values of the partition key are not known: a scan

Partition values are looked for in every operand of an AND, and must be found in all operands of an OR. A condition is
removed from the filter only if it stands alone in the top-level AND.

PartiQL statements, `match` of a model, the command line and explanations all choose keys by these plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Final, TypeAlias

import msgspec

from isotone.expressions.condition import CompiledCondition
from isotone.expressions.nodes import (
    And,
    Between,
    Call,
    Comparison,
    ConditionNode,
    In,
    Literal,
    Operand,
    Or,
    Path,
    ValueRef,
    conjuncts,
    references,
    walk_up,
)
from isotone.values.types import AttributeValue, sort_key

Values: TypeAlias = Mapping[str, AttributeValue]
Term: TypeAlias = Literal | ValueRef

MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The comparisons that a key can answer, each with its operator when the two sides are exchanged."""


class KeyTerm(msgspec.Struct, frozen=True):
    """A condition on one key attribute: `attribute operator operands`."""

    attribute: str
    operator: str
    operands: tuple[Term, ...]

    def values(self, values: Values) -> tuple[AttributeValue, ...]:
        """The values of the operands."""
        return tuple(value_of(operand, values) for operand in self.operands)


class KeyPlan(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """How conditions select the keys of one key schema.

    `partition` has the possible values of each partition attribute; it is empty if they are not known. `equal` has an
    equality for each of the first sort attributes, and `ranges` the conditions on the next one. `answered` has the
    conditions that these replace, in the order of the key, and `rest` the remaining ones, which become the filter.
    `equalities` has all values that each key attribute must equal. `is_one_key`: equality fixes the whole key, and
    nothing is left to filter.
    """

    partition: tuple[tuple[Term, ...], ...]
    equal: tuple[KeyTerm, ...]
    ranges: tuple[KeyTerm, ...]
    answered: tuple[ConditionNode, ...]
    rest: tuple[ConditionNode, ...]
    equalities: Mapping[str, tuple[Term, ...]]
    is_one_key: bool

    def action(self, index: str | None) -> str:
        """The action that reads this: GetItem, Query or Scan."""
        if self.is_scan:
            return "Scan"
        return "GetItem" if self.is_one_key and index is None else "Query"

    def collections(self, values: Values) -> dict[tuple[Any, ...], tuple[AttributeValue, ...]]:
        """The partition key of each item collection that is read, by its sort value."""
        known = [[value_of(term, values) for term in terms] for terms in self.partition]
        return {tuple(map(sort_key, each)): each for each in product(*known)}

    @property
    def is_scan(self) -> bool:
        """Whether the whole table or index is read."""
        return not self.partition

    def is_query(self, names: Sequence[str]) -> bool:
        """Whether one Query on a key with these attributes can express the plan.

        A Query takes one value for each partition attribute, one condition on the sort key after its equalities, and
        no filter on an attribute of its key.
        """
        is_one_collection = not self.is_scan and all(len(values) == 1 for values in self.partition)
        return is_one_collection and len(self.ranges) < 2 and not mentions(self.rest, names)

    def rank(self, left: int, *, is_whole: bool) -> tuple[object, ...]:
        """A value that orders usable keys by how well they answer; the greatest is best.

        A key that finds a single item is best (`is_whole`: equality fixes the table's whole key). Next is the key that
        leaves the fewest conditions to the filter, and then the one that answers the most by equality.
        """
        equal = sum(map(len, self.partition)) + len(self.equal)
        return is_whole, -left, equal, len(self.answered)


class KeyPlanner:
    """Plans the keys of a table and its indexes for conditions that must all be true.

    `equalities` has all values that each attribute must equal.
    """

    __slots__ = ("_conditions", "_terms", "equalities")

    def __init__(self, conditions: Iterable[ConditionNode]) -> None:
        self._conditions = distinct(conditions)
        self._terms = [key_term(each) for each in self._conditions]
        self.equalities: dict[str, tuple[Term, ...]] = {}
        for term in self._terms:
            if term is not None and term.operator == "=":
                before = self.equalities.get(term.attribute, ())
                self.equalities[term.attribute] = (*before, *term.operands)

    def plan(self, partition: Sequence[str], sort: Sequence[str]) -> KeyPlan:
        """The plan for a key of these attributes. O(nodes)."""
        given, names = self._conditions, (*partition, *sort)
        possible = [found for name in partition if (found := possible_values(given, name))]
        equal: list[int] = []
        ranges: list[int] = []
        if len(possible) == len(partition):
            equal, ranges = self._on_sort_key(sort)
        else:
            possible = []
        taken = dict.fromkeys([*(place for _, place in possible), *equal, *ranges])
        rest = tuple([each for place, each in enumerate(given) if place not in taken])
        equalities = {name: self.equalities[name] for name in names if name in self.equalities}
        return KeyPlan(
            partition=tuple([values for values, _ in possible]),
            equal=self._at(equal),
            ranges=self._at(ranges),
            answered=tuple([given[place] for place in taken if place >= 0]),
            rest=rest,
            equalities=equalities,
            is_one_key=not rest and equalities.keys() == {*names},
        )

    def _at(self, places: Sequence[int]) -> tuple[KeyTerm, ...]:
        return tuple([term for place in places if (term := self._terms[place])])

    def _on_sort_key(self, sort: Sequence[str]) -> tuple[list[int], list[int]]:
        """The positions of equalities on the first sort attributes, and of the conditions on the one after them."""
        equal: list[int] = []
        for name in sort:
            terms = {
                at: term for at, term in enumerate(self._terms) if term and term.attribute == name
            }
            first = next((at for at, term in terms.items() if term.operator == "="), None)
            if first is None:
                return equal, [*terms]
            equal.append(first)
        return equal, []


def plan_key(
    conditions: Iterable[ConditionNode], partition: Sequence[str], sort: Sequence[str]
) -> KeyPlan:
    """How conditions that must all be true select the keys of one table or index. O(nodes)."""
    return KeyPlanner(conditions).plan(partition, sort)


def mentions(nodes: Sequence[ConditionNode], names: Iterable[str]) -> bool:
    """Whether conditions mention any of these attributes. O(nodes)."""
    return not references(walk_up(*nodes)).attributes.isdisjoint(names)


def value_of(operand: Term, values: Values) -> AttributeValue:
    """The value of a literal or a parameter."""
    return operand.value if isinstance(operand, Literal) else values[operand.name]


def joined(conditions: Sequence[ConditionNode]) -> ConditionNode | None:
    """The conditions joined by AND; None if there are none."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return And(tuple(conditions))


def compiled(conditions: Sequence[ConditionNode]) -> CompiledCondition | None:
    """The conditions joined by AND and compiled; None if there are none."""
    node = joined(conditions)
    return None if node is None else CompiledCondition.from_node(node, parameter="")


def distinct(conditions: Iterable[ConditionNode]) -> list[ConditionNode]:
    """The conditions without duplicates."""
    found: list[ConditionNode] = []
    for condition in conditions:
        for each in conjuncts(condition):
            if each not in found:
                found.append(each)
    return found


def key_term(node: Any) -> KeyTerm | None:
    """A condition that can be part of a key range: one attribute compared with values."""
    kind = type(node)
    if kind is Comparison and node.operator in MIRRORED:
        if is_value(node.left):
            return term_of(node.right, MIRRORED[node.operator], (node.left,))
        return term_of(node.left, node.operator, (node.right,))
    if kind is Between:
        return term_of(node.operand, "BETWEEN", (node.low, node.high))
    if kind is Call and node.function == "begins_with":
        return term_of(node.operands[0], "begins_with", node.operands[1:])
    return None


def term_of(path: Operand, operator: str, operands: tuple[Any, ...]) -> KeyTerm | None:
    """The term of these parts, if the path is an attribute name and the operands are values."""
    name = name_of(path)
    if name is None:
        return None
    for operand in operands:
        if not is_value(operand):
            return None
    return KeyTerm(name, operator, operands)


def name_of(operand: Operand) -> Any:
    """The attribute that a path with one element names."""
    return operand.elements[0] if type(operand) is Path and len(operand.elements) == 1 else None


def is_value(operand: Operand) -> bool:
    """Whether an operand is a value: a literal or a parameter."""
    kind = type(operand)
    return kind is Literal or kind is ValueRef


def possible_values(
    conditions: Sequence[ConditionNode], name: str
) -> tuple[tuple[Term, ...], int] | None:
    """The only values that an attribute can have, and the position of the condition that says so.

    The shortest list of values is preferred. The position is -1 if the condition says more, so the filter must keep it.
    """
    best: tuple[tuple[Term, ...], int] | None = None
    for place, condition in enumerate(conditions):
        values = _values(condition, name)
        if values is not None and (best is None or len(values) < len(best[0])):
            keeps = isinstance(condition, Or) and not _is_about_only(condition, name)
            best = values, -1 if keeps else place
            if len(values) == 1:
                break
    return best


def _values(node: Any, name: str) -> tuple[Term, ...] | None:
    """The only values that an attribute can have if a condition is true; None if others are possible."""
    kind = type(node)
    if kind is Comparison:
        term = key_term(node)
        if term is None or term.operator != "=" or term.attribute != name:
            return None
        return term.operands
    if kind is In:
        return (
            node.choices
            if name_of(node.operand) == name and all(map(is_value, node.choices))
            else None
        )
    if kind is Or:
        parts = [_values(operand, name) for operand in node.operands]
        return None if None in parts else tuple(v for part in parts for v in part or ())
    if kind is And:
        found = [part for each in node.operands if (part := _values(each, name)) is not None]
        return min(found, key=len, default=None)
    return None


def _is_about_only(node: ConditionNode, name: str) -> bool:
    """Whether a condition is an OR that tests only the values of one attribute."""
    if isinstance(node, Or):
        return all(_is_about_only(operand, name) for operand in node.operands)
    return isinstance(node, Comparison | In)
