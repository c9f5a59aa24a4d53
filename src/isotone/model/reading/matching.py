"""`Order.match(…)`: which indexes qualify (projection, filter); `key_planning` ranks their keys by how much is read.

    Order.match(Order.customer == "x", Order.status == "OPEN", Order.total > 5).explain()

A key can be used if the conditions give `==` for every partition field, and if no wanted entity is missing from it: an
index with `when=` is used if the conditions imply its condition, an index of an optional field if they imply that the
field has a value. The best of these keys answers most conditions itself. The other conditions become a filter, and
DynamoDB charges for the items it drops. If no key can be used, only a scan remains, which the caller must ask for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from isotone.errors import Unanswerable, UsageError
from isotone.expressions import nodes
from isotone.expressions.key_planning import KeyPlan, KeyPlanner
from isotone.model.declaring.conditions import Condition, ValueComparison
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.keys import BoundKey
from isotone.model.reading.access_patterns import Pattern
from isotone.model.reading.implication import exclude_one_another, implies
from isotone.model.reading.index_projections import unprojected_fields
from isotone.model.reading.key_bounds import KeyBounds, bounds, flat
from isotone.model.reading.queries import Query, Scan, owner_of
from isotone.text_table import pluralized

if TYPE_CHECKING:
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")


_ALWAYS_SET: Final = frozenset({"created", "created_id", "updated"})
"""The roles of fields that the constructor may leave out, and that every write sets."""


class _Unusable(Exception):
    """A key cannot be used for the conditions; the message says why."""


@dataclass(frozen=True)
class _Candidate:
    """A query by one key, and its rank."""

    query: Query[Any]
    rank: tuple[object, ...]
    answers: str


def match(entity: type[E], given: Sequence[Condition], *, scan: bool) -> Query[E] | Scan[E]:
    """The query by the best key; see `Entity.match`."""
    schema = entity.__schema__
    conditions = _conditions(schema, given)
    if conditions is None:
        return _nothing(schema, given)
    candidates, reasons = _candidates(schema, conditions)
    if candidates:
        best, *others = candidates
        rejected = [f"{each.query.name}: {each.answers}" for each in others]
        return replace(best.query, because=(f"it {best.answers}", *rejected, *reasons))
    if not scan:
        raise Unanswerable(
            f"no key of {entity.__name__} can find what satisfies {_listed(conditions)}:\n  "
            + "\n  ".join(reasons)
            + "\nGive what is missing, declare an index, or read and pay for everything by match(…, scan=True)"
        )
    return _scan(schema, conditions, reasons)


def find(entity: type[E], given: Sequence[Condition]) -> Query[E]:
    """The query by the best key that answers all conditions; see `Entity.find`.

    Keys that answer them as they stand are equally good to `match`, so the first one needs no comparison. Otherwise
    `match` ranks the keys, and the best that needs no filter is taken.
    """
    schema = entity.__schema__
    reasons = []
    for key in (schema.primary, *schema.indexes):
        try:
            query: Query[E] = schema.patterns[key.name].where(*given)
        except Unanswerable as error:
            reasons.append(str(error))
            continue
        why = lacking(schema, key, given)
        if why is None:
            return query
        what = "does not project all attributes" if unprojected_fields(schema, key) else why
        reasons.append(f"{key.name} {what}; if you mean that index, use it by name")
    conditions = _conditions(schema, given)
    if conditions is None:
        return _nothing(schema, given)
    candidates, others = _candidates(schema, conditions)
    exact = [each for each in candidates if not each.query.filters]
    if exact:
        best = max(exact, key=lambda each: each.rank)
        return replace(best.query, because=(f"it {best.answers}", *others))
    raise Unanswerable(
        f"no key of {entity.__name__} answers these conditions:\n  " + "\n  ".join(reasons)
    )


def queries_for(
    entity: type[E], given: Sequence[Condition], tests: Sequence[Condition] = ()
) -> tuple[list[tuple[Query[E], str]], list[str]]:
    """A query by each usable key, best first, each with the conditions that its key answers.

    `tests` are further conditions, which no key can answer. The second list says why each other key cannot be used.
    """
    schema = entity.__schema__
    conditions = _conditions(schema, given)
    if conditions is None:
        return [], []
    candidates, reasons = _candidates(schema, conditions, tests)
    return [(each.query, each.answers) for each in candidates], reasons


def _conditions(schema: EntitySchema, given: Sequence[Condition]) -> list[Condition] | None:
    """The conditions without redundant ones; None if they exclude one another."""
    for condition in given:
        owner_of(condition, (schema,))
    parts = list(map(_as_equality, flat(given)))
    exact = [each for each in parts if not _ignores_case(each)]
    others = [each for each in parts if _ignores_case(each)]
    return None if exclude_one_another(exact) else [*_necessary(exact), *others]


def _candidates(
    schema: EntitySchema, conditions: Sequence[Condition], tests: Sequence[Condition] = ()
) -> tuple[list[_Candidate], list[str]]:
    """The queries by all usable keys, best first, and why each other key cannot be used."""
    candidates, reasons = [], []
    trees = list(map(_tree, conditions))
    by_tree = {id(tree): each for tree, each in zip(trees, conditions, strict=True)}
    planner = KeyPlanner(trees)
    for key in (schema.primary, *schema.indexes):
        try:
            candidates.append(_candidate(schema, key, planner, by_tree, tests))
        except _Unusable as error:
            reasons.append(f"{schema.patterns[key.name]}: {error}")
    best = max(
        candidates, key=lambda each: each.rank, default=None
    )  # the first one if several are equal
    candidates.sort(key=lambda each: each is not best)
    return candidates, reasons


def _listed(conditions: Sequence[Condition]) -> str:
    return ", ".join(map(repr, conditions)) or "no conditions"


def _as_equality(condition: Condition) -> Condition:
    """A choice (`is_in`) of one value as `==`, which a key can answer."""
    if not isinstance(condition, ValueComparison):
        return condition
    if condition.operator != "in" or len(condition.values) > 1:
        return condition
    return ValueComparison(condition.field, "=", condition.values, condition.path)


def _ignores_case(condition: Condition) -> bool:
    """Whether a condition is on a field whose case keys change. A filter would compare the unchanged value."""
    return any(field.options.case is not None for field in condition.fields())


def _necessary(conditions: list[Condition]) -> list[Condition]:
    """Drop conditions that others imply: `n == 5, n > 3` becomes one key value."""
    kept = list(conditions)
    for condition in conditions:
        rest = [each for each in kept if each is not condition]
        if implies(rest, condition):
            kept = rest
    return kept


def _nothing(schema: EntitySchema, given: Sequence[Condition]) -> Query[Any]:
    pattern: Pattern[Any] = schema.patterns[schema.primary.name]
    return Query(
        name=str(pattern),
        schemas=(schema,),
        keys=(schema.primary,),
        bounds=KeyBounds((), None, is_empty=True),
        asked=tuple(given),
    )


# One key


def _candidate(
    schema: EntitySchema,
    key: BoundKey,
    planner: KeyPlanner,
    by_tree: Mapping[int, Any],
    tests: Sequence[Condition],
) -> _Candidate:
    """The query by a key. `by_tree` finds each condition by the tree that the planner has for it.

    Raises `_Unusable`.
    """
    conditions = [*by_tree.values()]
    if why := lacking(schema, key, conditions):
        raise _Unusable(why)
    plan = _plan(schema, key, planner)
    asked: list[ValueComparison] = [by_tree[id(tree)] for tree in plan.answered]
    try:
        bounds(key, asked)
    except UsageError:  # a range in a form that does not sort, or in another order
        asked = [each for each in asked if each.operator == "="]
    rest = [each for each in conditions if not any(each is one for one in asked)]
    filters = [*_filters(schema, key, rest), *tests]
    try:
        query = schema.patterns[key.name].where(*asked).filter(*filters)
    except UsageError as error:
        raise _Unusable(str(error)) from None
    equal = {each.field.name for each in asked if each.operator == "="}
    is_whole = key.index is None and key.component_names <= equal
    rank = plan.rank(len(filters), is_whole=is_whole)
    count = len(conditions) + len(tests)
    answered = f"{count - len(filters)} of {pluralized(count, 'condition')}"
    return _Candidate(query, rank, f"answers {answered} by its key")


def lacking(schema: EntitySchema, key: BoundKey, conditions: Sequence[Condition]) -> str | None:
    """Why a key may lack entities that satisfy the conditions, or fields of them; None if it has everything."""
    if key.index is None:
        return None
    missing = unprojected_fields(schema, key)
    if missing:
        return f"the index does not project {', '.join(sorted(missing))}"
    exact = [each for each in conditions if not _ignores_case(each)]
    if key.when is not None and not implies(exact, key.when):
        return f"it has only entities with {key.when!r}, which the conditions do not imply"
    asked = {
        each.field.name
        for each in conditions
        if isinstance(each, ValueComparison) and each.operator != "<>" and not each.path
    }
    for name, has_value in _presence(key).items():
        if name not in asked and not implies(exact, has_value):
            return f"it lacks entities without {name}"
    return None


@lru_cache(maxsize=1024)
def _presence(key: BoundKey) -> dict[str, Condition]:
    """For each optional field of an index key, the condition that it has a value, as in all entries."""
    if key.index is None:
        return {}
    fields = {component.field.name: component.field for component in key.components}
    present: dict[str, Any] = {
        name: field != None  # noqa: E711 - makes a condition
        for name, field in fields.items()
        if EntitySchema.is_optional(field) and field.options.role not in _ALWAYS_SET
    }
    return present


def _plan(schema: EntitySchema, key: BoundKey, planner: KeyPlanner) -> KeyPlan:
    """How a key answers the conditions: equal values from the left, then a range; raises `_Unusable`."""
    partition, sort = _parts(key)
    missing = [name for name in partition if name not in planner.equalities]
    if missing:
        fields = {each.field.attribute: each.field.name for each in key.components}
        entity = schema.entity.__name__
        needed = " and ".join(f"{entity}.{fields[name]} == …" for name in dict.fromkeys(missing))
        raise _Unusable(f"needs {needed}")
    return planner.plan(partition, sort)


@lru_cache(maxsize=1024)
def _parts(key: BoundKey) -> tuple[tuple[str, ...], ...]:
    """The attributes of the partition fields and of the sort fields of a key."""
    return tuple(
        tuple(component.field.attribute for slot in slots for component in slot.components)
        for slots in (key.partition, key.sort)
    )


def _tree(condition: Condition) -> nodes.ConditionNode:
    """A condition as the planner sees it. A range over ordered choices stays a range."""
    return condition.plain_node() if isinstance(condition, ValueComparison) else condition.node()


def _filters(schema: EntitySchema, key: BoundKey, rest: Sequence[Condition]) -> list[Condition]:
    """The remaining conditions that must be filtered; a sparse index's own condition need not be."""
    always = [*_presence(key).values()]
    if key.when is not None and not _ignores_case(key.when):
        always.append(key.when)
    filters = [each for each in rest if not (always and implies(always, each))]
    for each in filters:
        if _ignores_case(each):
            name = next(iter(each.fields())).name
            raise _Unusable(
                f"a filter on {name} would not ignore case, as keys with it do; give == for the fields before it"
            )
    return filters


# Everything


def _scan(
    schema: EntitySchema, conditions: Sequence[Condition], reasons: Sequence[str]
) -> Scan[Any]:
    """The scan of the table, or of a sparse index that has everything wanted."""
    sparse = [key for key in schema.indexes if key.when is not None]
    for key in (*sparse, schema.primary):
        if lacking(schema, key, conditions):
            continue
        try:
            scanned = schema.patterns[key.name].scan().filter(*_filters(schema, key, conditions))
        except (_Unusable, UsageError) as error:
            if key is schema.primary:
                raise Unanswerable(
                    f"a scan cannot find what satisfies {_listed(conditions)}: {error}"
                ) from None
            continue
        return replace(scanned, because=("no key can find it", *reasons))
    raise AssertionError("the table itself has all entities")
