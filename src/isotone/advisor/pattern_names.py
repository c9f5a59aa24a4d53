"""Names the access patterns of a model that a raw request reads, and those that answer its conditions by their keys.

A request has attributes and stored keys, a model has fields and patterns: `GSI1PK = "METRIC#api"` reads
`Usage.by_metric`, and a filter `metric = "api"` could be answered by it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isotone.advisor.read_plan import ReadPlan
from isotone.errors import IsotoneError, MalformedKey
from isotone.expressions import Writer
from isotone.expressions.key_planning import distinct, key_term, mentions, name_of
from isotone.expressions.nodes import Call, ConditionNode, Or, filled
from isotone.model import Attr, Condition, EntitySchema, Pattern, Query, Table, queries_for
from isotone.values.types import AttributeValue

_SHOWN: Final = 3  # patterns with the same key
_COMPARE: Final[dict[str, Callable[..., Condition]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "BETWEEN": lambda field, low, high: field.between(low, high),
    "begins_with": lambda field, prefix: field.begins_with(prefix),
}
_HAVE_PREFIX: Final = frozenset(("=", "BETWEEN", "begins_with"))


class ModelPatterns:
    """The access patterns of a model's tables."""

    def __init__(self, tables: Iterable[Table] = ()) -> None:
        self._tables = {table.name: table for table in tables}

    def read_by(self, plan: ReadPlan) -> str:
        """The patterns whose keys a request reads: `Usage.by_metric`; empty if none is known."""
        if plan.operation == "Scan":
            return ""
        patterns = self._patterns_of(plan.table, plan.index)
        names = [str(each) for each in patterns if _holds(each.key, plan)]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return ", ".join(names[:_SHOWN]) + more

    def of_index(self, table: str, index: str | None) -> str:
        """The patterns of one index, as a name for it."""
        found = self._patterns_of(table, index)
        return str(found[0]) if len(found) == 1 else ""

    def fields_of(self, plan: ReadPlan, attribute: str) -> Sequence[str]:
        """The fields in an attribute of a request's key: `metric` in GSI1PK; itself if not one pattern alone has the key."""
        patterns = self._patterns_of(plan.table, plan.index)
        if plan.operation != "Scan":
            patterns = [each for each in patterns if _holds(each.key, plan)]
        slots = patterns[0].key.slots if len(patterns) == 1 else ()
        named = [slot for slot in slots if slot.attribute.name == attribute]
        return [each.field.name for slot in named for each in slot.components] or [attribute]

    def _patterns_of(self, table: str, index: str | None) -> list[Pattern[Any]]:
        """The patterns of all entities that read an index, or the table's own key."""
        known = self._tables.get(table)
        return [
            schema.patterns[key.name]
            for schema in (known.entities.values() if known is not None else ())
            for key in schema.keys.values()
            if key.index == index
        ]

    def answering(self, plan: ReadPlan) -> Iterator[tuple[Query[Any], str]]:
        """The queries of the model that answer conditions on fields, each with what its key answers.

        An entity is considered if it has all attributes of the filter.
        """
        table = self._tables.get(plan.table)
        if table is None or plan.filter is None or plan.where is None:
            return
        terms = [
            term for node in distinct([plan.where]) if (term := key_term(without_default(node)))
        ]
        wanted = next((t for t in terms if (t.attribute, t.operator) == (table.tag, "=")), None)
        for schema in table.entities.values():
            if wanted is not None and wanted.values(plan.values) != ({"S": schema.tag},):
                continue
            if not _has_defaults(schema, plan):
                continue
            conditions, tests = _conditions(schema, plan)
            fields = {field.attribute for field in schema.fields.values()}
            if conditions:  # what the key answers now, another one has to answer, too
                conditions += _conditions_of_key(schema, plan)
            if not conditions or not plan.filter.attributes <= {*fields, table.tag}:
                continue
            try:
                ways, _ = queries_for(schema.entity, conditions, tests)
            except IsotoneError:
                continue  # a value that no field can have
            for query, answers in ways:
                if query.index != plan.index or plan.operation == "Scan":
                    yield query, answers


def without_default(node: ConditionNode) -> ConditionNode:
    """`status = :s` of `status = :s OR attribute_not_exists(status)`, by which a model asks for a default."""
    if not isinstance(node, Or) or len(node.operands) != 2:
        return node
    test, absent = node.operands
    term = key_term(test)
    if term is None or not isinstance(absent, Call) or absent.function != "attribute_not_exists":
        return node
    return test if name_of(absent.operands[0]) == term.attribute else node


def _has_defaults(schema: EntitySchema, plan: ReadPlan) -> bool:
    """Whether each value that a condition also finds where it is not stored is the default of its field."""
    implied = {field.attribute: field.implied for field in schema.fields.values()}
    terms = [
        term
        for node in distinct([plan.where] if plan.where else ())
        if (test := without_default(node)) is not node and (term := key_term(test))
    ]
    return all(
        term.operator == "=" and implied.get(term.attribute) in term.values(plan.values)
        for term in terms
    )


@dataclass(frozen=True, eq=False, repr=False)
class SentTest(Condition):
    """A condition of a request that no key answers, as it was sent: `status <> "NEW"`, or a value of another type."""

    sent: ConditionNode
    tested: tuple[Attr[Any], ...]

    def node(self, absence: object = None) -> ConditionNode:
        return self.sent

    def fields(self) -> Sequence[Attr[Any]]:
        return self.tested

    def __repr__(self) -> str:
        return Writer().text(self.sent)


def _conditions(schema: EntitySchema, plan: ReadPlan) -> tuple[list[Condition], list[Condition]]:
    """The conditions on the fields of an entity that a key may answer, and those that none can."""
    fields = {field.attribute: field for field in schema.fields.values()}
    found: list[Condition] = []
    tests: list[Condition] = []
    for node in distinct([plan.where] if plan.where else ()):
        tested = [field for name, field in fields.items() if mentions([node], [name])]
        if not tested:
            continue
        term = key_term(without_default(node))
        if term is not None and term.attribute in fields:
            field = fields[term.attribute]
            try:
                values = [field.wire.decode(value) for value in term.values(plan.values)]
                found.append(_COMPARE[term.operator](field, *values))
                continue
            except (IsotoneError, ValueError, TypeError, KeyError):
                pass  # of another type: no key answers it
        tests.append(SentTest(filled(node, plan.values), tuple(tested)))
    return found, tests


def _conditions_of_key(schema: EntitySchema, plan: ReadPlan) -> list[Condition]:
    """The conditions on fields that are in the stored key of a request: `metric == "api"` of `METRIC#api`."""
    key = next((each for each in schema.keys.values() if each.index == plan.index), None)
    if key is None or plan.operation == "Scan" or len(plan.collections) != 1:
        return []
    if not _holds(key, plan):
        return []
    (partition,) = plan.collections.values()
    stored = dict(zip(plan.key.partition_names, partition, strict=True))
    stored |= {
        term.attribute: term.values(plan.values)[0] for term in plan.terms if term.operator == "="
    }
    found = [] if key.when is None else [key.when]
    for slot in key.slots:
        value = stored.get(slot.attribute.name)
        if value is not None and _has_form(slot, value):
            parsed = slot.parse(value)
            found += [schema.fields[name] == each for name, each in parsed.items()]
    return found


def _holds(key: Any, plan: ReadPlan) -> bool:
    """Whether the values of a request have the form of an entity's key."""
    terms = {term.attribute: term for term in plan.terms}
    values = dict(zip(plan.key.partition_names, next(iter(plan.collections.values())), strict=True))
    for slot in key.partition:
        if not _has_form(slot, values.get(slot.attribute.name)):
            return False
    for slot in key.sort:
        term = terms.get(slot.attribute.name)
        template = getattr(slot, "template", None)
        if term is None or template is None or term.operator not in _HAVE_PREFIX:
            continue
        value = str(term.values(plan.values)[0].get("S", ""))
        literal = template.literals[0]
        if not value.startswith(literal) and not literal.startswith(value):
            return False
    return True


def _has_form(slot: Any, value: AttributeValue | None) -> bool:
    if value is None:
        return False
    try:
        slot.parse(value)
    except (MalformedKey, IsotoneError, KeyError, ValueError):
        return False
    return True
