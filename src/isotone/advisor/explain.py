"""Explains a query of a model, a raw request or a PartiQL statement: `isotone.explain`."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, overload

from isotone.advisor.alternatives import advice_of, alternatives_of
from isotone.advisor.collection_drawing import CollectionDrawing
from isotone.advisor.drawing import MOST_ITEMS, read_view
from isotone.advisor.explanation import Cost, Explanation, KeyRangePart
from isotone.advisor.key_names import KeyNames
from isotone.advisor.pattern_names import ModelPatterns
from isotone.advisor.read_costs import Budget, estimate_read, measure_read
from isotone.advisor.read_plan import (
    READS,
    ReadPlan,
    plan_of_read,
    plan_of_request,
    terms_of,
)
from isotone.advisor.statement_plan import plan_of_statement
from isotone.advisor.table_sample import (
    DEFAULT_SAMPLE,
    TableSample,
    basis_of,
    collections,
    read_sample,
)
from isotone.advisor.write_costs import (
    WRITES,
    WritePlan,
    estimate_write,
    measure_write,
    plan_of_write,
)
from isotone.backends.interface import Request, as_text
from isotone.errors import ResourceNotFoundException, UsageError
from isotone.expressions.partiql import Exists, parse_statement
from isotone.inference import existing_table
from isotone.model import (
    AsyncStore,
    Call,
    Calls,
    Entity,
    EntityKey,
    Merge,
    Pattern,
    Query,
    Read,
    Steps,
    Store,
    Table,
)
from isotone.tables.description import TableDescription
from isotone.tables.pace import units_of
from isotone.text_table import pluralized
from isotone.values.attribute_validation import canonical_item
from isotone.values.notation import value_text
from isotone.values.types import AttributeValue

Subject = (
    Read[Any]
    | Merge[Any]
    | Pattern[Any]
    | EntityKey[Any]
    | Entity
    | str
    | Request
    | tuple[str, Request]
)
"""A query, scan, merge, key, entity, PartiQL statement, or an action with its request."""

_PAGES: Final = 8  # of 1 MB that are read of a range at most, where reading costs nothing but time
_PAGES_OF_A_SERVICE: Final = 1  # where it takes units from those of the table
_BATCHES: Final = frozenset(
    {"BatchGetItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems"}
)
_CHECKED: Final = READS | (WRITES - {"ConditionCheck"}) | _BATCHES  # what has a request of its own
_INSTEAD: Final = (
    "give a query such as Order.primary.where(…), a PartiQL statement, or an action with its request: "
    "('Query', {…})"
)


@overload
def explain(
    store: Store,
    subject: Subject,
    *,
    parameters: Sequence[AttributeValue] = (),
    run: bool = False,
    sample: int = DEFAULT_SAMPLE,
    tables: Iterable[Table] = (),
) -> Explanation: ...
@overload
def explain(
    store: AsyncStore,
    subject: Subject,
    *,
    parameters: Sequence[AttributeValue] = (),
    run: bool = False,
    sample: int = DEFAULT_SAMPLE,
    tables: Iterable[Table] = (),
) -> Coroutine[Any, Any, Explanation]: ...
@overload
def explain(
    store: Calls,
    subject: Subject,
    *,
    parameters: Sequence[AttributeValue] = (),
    run: bool = False,
    sample: int = DEFAULT_SAMPLE,
    tables: Iterable[Table] = (),
) -> Steps[Explanation]: ...
def explain(
    store: Any,
    subject: Subject,
    *,
    parameters: Sequence[AttributeValue] = (),
    run: bool = False,
    sample: int = DEFAULT_SAMPLE,
    tables: Iterable[Table] = (),
) -> Any:
    """Explain a query, a PartiQL statement or a request: what it reads, what it costs, what else could answer it.

    The estimate is made from the table's description, a scan of `sample` items (0 for none), and the beginning of the
    range; it is exact if these are all, else it says between which figures the cost lies. With `run`, the call is
    executed (even a write), and `measured` has its cost. `parameters` are the values of a statement; `tables` name the
    parts of keys for requests and statements. Cost: the scan of the sample, and up to 1 MB of each range (8 MB of an
    engine that does not throttle). With an `AsyncStore`, await the result.

    >>> isotone.explain(store, Order.primary.where(Order.customer_id == "nobody")).estimate.units
    0.5
    >>> isotone.explain(store, "SELECT * FROM shop WHERE PK = 'CUSTOMER#nobody'").operation
    'Query'
    """
    if not hasattr(store, "run"):
        raise UsageError(f"{store!r} is not a store; make one by isotone.connect(…)")
    if type(sample) is not int or sample < 0:
        raise UsageError(f"sample={sample!r} is not a number of items; give 0 or more")
    pages = _PAGES if not store.capabilities.provisioned_throughput else _PAGES_OF_A_SERVICE
    explaining = _Explaining(sample, tuple(tables), pages if sample else None, run=run)
    return store.run(explaining.explain(subject, parameters))


class _Explaining:
    """One explanation: reads each table at most once."""

    def __init__(
        self, sample: int, tables: tuple[Table, ...], pages: int | None, *, run: bool
    ) -> None:
        self._most = sample
        self._budget = Budget(pages)
        self._budget_of_others = Budget(None if pages is None else pages // 4)
        self._tables = tables
        self._run = run
        self._contents: dict[str, TableSample] = {}
        self._shapes: dict[str, TableDescription] = {}
        self._spent = 0.0

    def explain(self, subject: Any, parameters: Sequence[AttributeValue]) -> Steps[Explanation]:
        explained = yield from self._explain(subject, parameters)
        return replace(explained, spent=self._spent)

    def _explain(self, subject: Any, parameters: Sequence[AttributeValue]) -> Steps[Explanation]:
        if isinstance(subject, Merge):
            parts = []
            for query in subject.queries:
                parts.append((yield from self._of_read(query)))  # noqa: PERF401 - a comprehension cannot yield
            return _joined(f"Merge of {pluralized(len(parts), 'query', 'queries')}", "Query", parts)
        if isinstance(subject, Pattern):
            return (yield from self._of_pattern(subject))
        if isinstance(subject, Read):
            return (yield from self._of_read(subject))
        if isinstance(subject, str):
            given = {"Parameters": [*parameters]} if parameters else {}
            return (yield from self._of_statement({"Statement": subject, **given}))
        operation, request, models = _request_of(subject)
        if not models and operation in _CHECKED:
            if operation not in _BATCHES:
                _member(operation, request, "TableName")
            _refuse_malformed(operation, request)
        return (yield from self._of_request(operation, request, models))

    def _sample(self, table: str) -> Steps[TableSample]:
        if table not in self._contents:
            self._contents[table] = yield from read_sample(table, self._most)
            self._spent += self._contents[table].units
        return self._contents[table]

    def _shape(self, table: str) -> Steps[TableDescription]:
        """The description of a table: a write is estimated without a sample, which would cost more than the write."""
        if table in self._contents:
            return self._contents[table].shape
        if table not in self._shapes:
            self._shapes[table] = yield from existing_table(table)
        return self._shapes[table]

    # Reads

    def _of_pattern(self, pattern: Pattern[Any]) -> Steps[Explanation]:
        """A key without values: explains the largest collection in the sample."""
        table = pattern.schema.table
        contents = yield from self._sample(table.name)
        names = KeyNames([table, *self._tables])
        entries = [
            entry
            for entry in contents.entries(pattern.key.index)
            if (schema := names.schema(table.name, entry)) is not None
            and pattern.schema.tag in schema.lineage
        ]
        groups = collections(contents.shape.key_of(pattern.key.index), entries)
        if not groups:
            raise UsageError(
                f"{pattern} has no items in {table.name} from which to take values; "
                "write a query: .where(…)"
            )
        example = pattern.schema.from_item(max(groups.values(), key=len)[0], is_whole=False)
        fields = dict.fromkeys(
            component.field for slot in pattern.key.partition for component in slot.components
        )
        conditions = [field == getattr(example, field.name) for field in fields]
        explained = yield from self._of_read(pattern.where(*conditions))
        largest = "the largest collection of the sample; give others by .where(…)"
        return replace(explained, notes=(*explained.notes, f"values of {largest}"))

    def _of_read(self, read: Read[Any]) -> Steps[Explanation]:
        where = f"index {read.index} of table {read.table.name}" if read.index else ""
        title = f"{read.operation} of {read.name}: {where or f'table {read.table.name}'}"
        if read.is_empty:
            nothing = Cost(basis="the conditions exclude one another")
            return Explanation(title, read.operation, read.table.name, nothing, read.index)
        contents = yield from self._sample(read.table.name)
        plan = plan_of_read(read, contents.shape)
        asked = ", ".join(map(repr, read.asked))
        explained = yield from self._of_plan(plan, contents, [read.table], title, read)
        order = _order_of(read) if isinstance(read, Query) else ""
        filters = ", ".join(map(repr, read.filters))
        return replace(
            explained,
            reads=asked or ("everything" if read.bounds is None else "the key's one collection"),
            order=order,
            filter=filters or explained.filter,
        )

    def _of_plan(
        self,
        plan: ReadPlan,
        contents: TableSample,
        models: Sequence[Table],
        title: str = "",
        read: Read[Any] | None = None,
    ) -> Steps[Explanation]:
        estimate, spent, entries = yield from estimate_read(plan, contents, self._budget)
        patterns = ModelPatterns([*models, *self._tables])
        others, more = yield from alternatives_of(
            plan, contents, estimate, read, patterns, self._budget_of_others
        )
        self._spent += spent + more
        names = KeyNames([*models, *self._tables])
        drawing = CollectionDrawing((read_view(contents, plan, names, MOST_ITEMS, entries),))
        measured = None
        if self._run:
            measured = yield from measure_read(plan)
            # the response of a statement does not contain it
            if plan.request[0] == "ExecuteStatement":
                measured = replace(measured, items_read=estimate.items_read)
        return Explanation(
            title=title or _title(plan, patterns.read_by(plan)),
            operation=plan.operation,
            table=plan.table,
            index=plan.index,
            estimate=estimate,
            key_range=tuple(
                KeyRangePart(name, operator, tuple(map(value_text, values)))
                for name, operator, values in terms_of(plan)
            ),
            direction=None
            if plan.operation != "Query"
            else ("backward" if plan.backward else "forward"),
            filter=plan.filter_text,
            consistent=plan.consistent,
            advice=advice_of(plan, contents, estimate, read, patterns),
            alternatives=others,
            drawing=drawing if drawing.views[0].collections else None,
            measured=measured,
            request=plan.request[1],
        )

    # Requests and statements

    def _of_statement(self, request: Request) -> Steps[Explanation]:
        parameters = request.get("Parameters") or ()
        statement = parse_statement(_member("ExecuteStatement", request, "Statement"))
        if isinstance(statement, Exists):
            raise UsageError("EXISTS stands in a transaction; explain a SELECT with its condition")
        if len(parameters) > statement.parameters:
            raise UsageError(
                f"there are {len(parameters)} parameters, but the statement has {statement.parameters} ?"
            )
        canonical = [canonical_item({"p": each})[0]["p"] for each in parameters]
        values = statement.bind(canonical)
        shape = yield from self._shape(statement.table)
        more = {name: value for name, value in request.items() if name != "Statement"}
        plan = plan_of_statement(statement, values, shape, more)
        if isinstance(plan, ReadPlan):
            return (yield from self._of_plan(plan, (yield from self._sample(statement.table)), ()))
        return (yield from self._of_write(plan, shape))

    def _of_request(
        self, operation: str, request: Request, models: Sequence[Table]
    ) -> Steps[Explanation]:
        if operation == "ExecuteStatement":
            return (yield from self._of_statement(request))
        if operation in _BATCHES:
            return (yield from self._of_batch(operation, request, models))
        if operation not in READS | WRITES:
            raise UsageError(f"{operation} cannot be explained; {_INSTEAD}")
        table = _member(operation, request, "TableName")
        if operation in READS:
            contents = yield from self._sample(table)
            plan = plan_of_request(operation, request, contents.shape)
            return (yield from self._of_plan(plan, contents, models))
        shape = yield from self._shape(table)
        return (yield from self._of_write(plan_of_write(operation, request, shape), shape))

    def _of_write(self, plan: WritePlan, shape: TableDescription) -> Steps[Explanation]:
        estimate, writes, notes, spent = yield from estimate_write(plan, shape)
        self._spent += spent
        measured = (yield from measure_write(plan)) if self._run else None
        return Explanation(
            title=f"{plan.operation} in table {plan.table}",
            operation=plan.operation,
            table=plan.table,
            estimate=estimate,
            key_range=tuple(
                KeyRangePart(name, "=", (value_text(value),)) for name, value in plan.key.items()
            ),
            notes=((f"condition: {plan.condition}",) if plan.condition else ()) + notes,
            writes=writes,
            measured=measured,
            request=plan.request[1],
        )

    def _of_batch(
        self, operation: str, request: Request, models: Sequence[Table]
    ) -> Steps[Explanation]:
        """A batch or a transaction: the explanations of its parts, with their units added up."""
        run, self._run = self._run, False
        parts = []
        in_transaction = operation.startswith("Transact")
        for each, members in _parts_of(operation, as_text(request)):
            if each == "GetItem":
                contents = yield from self._sample(members["TableName"])
                plan = plan_of_request(each, members, contents.shape)
                plan = replace(plan, consistent=in_transaction or plan.consistent)
                part = yield from self._of_plan(plan, contents, models)
                part = replace(part, alternatives=(), drawing=None)
                parts.append(_doubled(part) if in_transaction else part)
            else:
                factor = 2 if in_transaction else 1
                shape = yield from self._shape(members["TableName"])
                write = plan_of_write(each, members, shape, factor)
                parts.append((yield from self._of_write(write, shape)))
        explained = _joined(f"{operation} of {pluralized(len(parts), 'item')}", operation, parts)
        basis = explained.estimate.basis
        if len(parts) > 1:
            basis = basis.replace("the stored item", "the stored items")
        estimate = replace(explained.estimate, requests=1, basis=basis)
        explained = replace(explained, request=request, estimate=estimate)
        if run:
            response = yield Call(operation, {**request, "ReturnConsumedCapacity": "TOTAL"})
            measured = replace(
                explained.estimate, units=units_of(response) or 0.0, basis=basis_of(response)
            )
            explained = replace(explained, measured=measured)
        return explained


def _doubled(part: Explanation) -> Explanation:
    return replace(part, estimate=replace(part.estimate, units=2 * part.estimate.units))


def _joined(title: str, operation: str, parts: Sequence[Explanation]) -> Explanation:
    """Joins the explanations of several requests into one."""
    estimate = Cost()
    for part in parts:
        estimate += part.estimate
    measured = None
    if parts and all(part.measured is not None for part in parts):
        measured = Cost()
        for part in parts:
            measured += part.measured or Cost()
    tables = ", ".join(dict.fromkeys(part.table for part in parts))
    views = [view for part in parts if part.drawing is not None for view in part.drawing.views]
    return Explanation(
        title=title,
        operation=operation,
        table=tables,
        estimate=estimate,
        measured=measured,
        writes=tuple(write for part in parts for write in part.writes),
        parts=tuple(replace(part, drawing=None) for part in parts),
        drawing=CollectionDrawing(tuple(views)) if views else None,
    )


def _request_of(subject: Any) -> tuple[str, Request, Sequence[Table]]:
    """The action, its request, and the tables whose model is known."""
    if isinstance(subject, EntityKey):
        table = subject.entity.__schema__.table
        key = subject.entity.__schema__.identify(subject.fields)
        return "GetItem", {"TableName": table.name, "Key": key}, [table]
    schema = getattr(type(subject), "__schema__", None)
    if schema is not None:
        item = schema.to_item(vars(subject))
        return "PutItem", {"TableName": schema.table.name, "Item": item}, [schema.table]
    if isinstance(subject, tuple) and len(subject) == 2 and isinstance(subject[0], str):
        return subject[0], subject[1], ()
    if isinstance(subject, Mapping):
        for member, operation in _BY_MEMBER.items():
            if member in subject:
                is_read = operation == "TransactWriteItems" and _only_gets(subject)
                return "TransactGetItems" if is_read else operation, subject, ()
    raise UsageError(f"{subject!r} cannot be explained; {_INSTEAD}")


def _refuse_malformed(operation: str, request: Request) -> None:
    """Raise the error of a request that is refused whatever the tables are: an empty database answers it."""
    from isotone.backends.embedded import open as open_database  # only needed here

    with open_database(":memory:") as empty, suppress(ResourceNotFoundException):
        empty.execute(operation, request)


def _only_gets(request: Request) -> bool:
    return all("Get" in entry for entry in request["TransactItems"])


def _member(operation: str, request: Request, name: str) -> Any:
    """A required member of a request."""
    if name not in request:
        raise UsageError(f"{operation} has no {name}: {request!r}")
    return request[name]


_BY_MEMBER: Final = {
    "TransactItems": "TransactWriteItems",
    "Item": "PutItem",
    "UpdateExpression": "UpdateItem",
    "KeyConditionExpression": "Query",
    "Statement": "ExecuteStatement",
}

_ACTIONS: Final = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheck",
    "Get": "GetItem",
    "PutRequest": "PutItem",
    "DeleteRequest": "DeleteItem",
}


def _parts_of(operation: str, request: Request) -> list[tuple[str, Request]]:
    """The single requests of a batch or a transaction."""
    if operation.startswith("Transact"):
        return [
            (_ACTIONS[action], members)
            for entry in request["TransactItems"]
            for action, members in entry.items()
        ]
    found: list[tuple[str, Request]] = []
    for table, wanted in request["RequestItems"].items():
        if operation == "BatchGetItem":
            shared = {name: value for name, value in wanted.items() if name != "Keys"}
            found += [
                ("GetItem", {**shared, "TableName": table, "Key": key}) for key in wanted["Keys"]
            ]
        else:
            found += [
                (_ACTIONS[action], {**members, "TableName": table})
                for entry in wanted
                for action, members in entry.items()
            ]
    return found


def _place(plan: ReadPlan) -> str:
    return f"index {plan.index} of table {plan.table}" if plan.index else f"table {plan.table}"


def _title(plan: ReadPlan, pattern: str = "") -> str:
    several = len(plan.collections) if plan.operation == "Query" else 1
    action = f"{several} Queries" if several > 1 else plan.operation
    return f"{action} of {f'{pattern}: ' if pattern else ''}{_place(plan)}"


def _order_of(query: Query[Any]) -> str:
    """The order of a query's results, in terms of its fields."""
    free = query.bounds.free
    if free is None or not all(key.sorts_by(free) for key in query.keys):
        return ""
    greatest = query.backward is not free.descending
    return f"{free.field.name}, the {'greatest' if greatest else 'least'} first"
