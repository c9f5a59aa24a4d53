"""`store.transaction()`: collects writes and checks of several entities, sends all or none; `get_together`.

    with store.transaction() as tx:
        account = tx.get(Account, number="1")
        tx.update(Account, Account.balance.add(-10), number="1", when=Account.balance >= 10)
        tx.create(Transfer(…))
        tx.check(Customer, Customer.blocked == False, id="c1")

The methods collect writes; `commit`, or the end of the block, sends them. Entities that the transaction has read must
be unchanged at the commit. If the block raises, nothing is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Never, TypeVar, cast

from typing_extensions import TypeVar as TypeVarWithDefault

from isotone import limits
from isotone.backends.interface import Request, Response
from isotone.clock import Clock
from isotone.errors import Contended, TransactionCanceledException, UsageError, WriteRefused
from isotone.expressions import nodes
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.expiry import is_missing
from isotone.model.expression_trees import absent, conjunction
from isotone.model.key_records import KeyRecords
from isotone.model.migration import migrate_key, migrate_keys
from isotone.model.operation import Awaits, Host, Waits, operation
from isotone.model.reading.projected_gets import ProjectedGet
from isotone.model.reading.projections import Projection
from isotone.model.writing.executor import execute_together, reasons_of
from isotone.model.writing.moves import Move
from isotone.model.writing.put_and_delete import Check, Delete, Put
from isotone.model.writing.updates import Update
from isotone.model.writing.upserts import Upsert
from isotone.model.writing.write import (
    Write,
    as_it_was,
    class_and_key,
    key_of,
    pins,
    place_of,
    read_item,
    schema_of,
)
from isotone.shown_signature import show_signatures
from isotone.tables.retries import CONTENTION
from isotone.tables.steps import Call, Steps
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")
T = TypeVar("T", bound="Entity | Projection[Any]")
K_co = TypeVarWithDefault("K_co", covariant=True, default=Any)


@show_signatures
class Transaction(Host[K_co]):
    """Collects writes, and sends all or none of them; created by `store.transaction()`.

    `get` and `commit` are operations: they block, are awaited or return steps, like the store's. The other methods only
    collect, and need no `await`.
    """

    def __init__(self, store: Host[K_co], clock: Clock, records: KeyRecords) -> None:
        self.run: Callable[[Steps[Any]], Any] = store.run
        self._clock = clock
        self._records = records
        self._writes: list[Write[Any]] = []
        self._read: dict[bytes, _Read] = {}
        self._is_over = False

    # Collecting

    def put(
        self,
        entity: E,
        *,
        when: Condition | None = None,
        otherwise: Callable[[E | None], WriteRefused] | None = None,
    ) -> None:
        """Write an entity, replacing any with its primary key.

        If `when` is false, `otherwise` makes the error from the stored entity.
        """
        put = Put(entity, self._clock, when)
        put.otherwise = otherwise
        self._add(put)

    def create(self, entity: Entity) -> None:
        """Write an entity that must not exist."""
        self._add(Put(entity, self._clock, expected="absence"))

    def replace(self, entity: Entity, *, when: Condition | None = None) -> None:
        """Write an entity that must exist."""
        self._add(Put(entity, self._clock, when, "presence"))

    def delete(
        self,
        target: type[Entity] | EntityKey[Entity] | Entity,
        /,
        *,
        when: Condition | None = None,
        **key: Any,
    ) -> None:
        """Delete an entity, given as an entity, its key, or its class and the key's fields."""
        self._add(Delete(target, key, when))

    def update(
        self,
        target: type[Entity] | EntityKey[Entity] | Entity,
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> None:
        """Change some fields of an entity that must exist."""
        self._add(Update(target, changes, key, when))

    def upsert(
        self,
        target: type[Entity] | EntityKey[Entity],
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> None:
        """Change some fields of an entity, or create it with its defaults."""
        self._add(Upsert(target, changes, key, when))

    def move(
        self,
        target: type[Entity] | EntityKey[Entity] | Entity,
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> None:
        """Change the primary key of an entity that must exist."""
        self._add(Move(target, changes, key, when))

    def check(
        self,
        target: type[Entity] | EntityKey[Entity] | Entity,
        condition: Condition,
        /,
        **key: Any,
    ) -> None:
        """Require a condition on an entity that the transaction does not write."""
        self._add(Check(target, key, condition))

    def _add(self, write: Write[Any]) -> None:
        self._check_open()
        self._writes.append(write)

    def _check_open(self) -> None:
        if self._is_over:
            raise UsageError("the transaction is over; begin another with store.transaction()")

    # Reading

    @operation
    def get(self, target: type[T] | EntityKey[T], /, *values: Never, **key: Any) -> Steps[T | None]:
        """Return an entity, which must be unchanged at the commit. Cost: a consistent read.

        Given a `Projection` in place of the class, only its fields are transferred, and only they must be unchanged.
        """
        entity: Any = target
        if values or not isinstance(target, type):
            entity, key = class_and_key("get", target, values, key)
        self._check_open()
        projected = _projected(entity)
        if projected is not None:
            entity = projected.schema.entity
        schema = schema_of(entity)
        where = key_of(schema, entity, key)
        place = place_of(schema, where)
        if any(place == place_of(write.schema, write.key) for write in self._writes):
            raise UsageError(
                f"the transaction already has a write of this {schema.tag}, which get would not see; "
                "call get before the write"
            )
        yield from self._records.check((schema,), (schema.primary,))
        yield from migrate_key(schema, where, self._clock)
        read = self._read.setdefault(place, _Read(entity, key, []))
        found: Any
        if projected is None:
            item = yield from read_item(schema, where)
            read.add(item, None)
            found = _alive(schema, item, self._clock.now())
        else:
            item = yield from read_item(schema, where, projected.expression)
            read.add(item, projected.attributes)
            found = projected.result(item, self._clock.now())
        return found  # type: ignore[no-any-return] # a T

    # The end

    @operation
    def commit(self) -> Steps[None]:
        """Make all writes or none; raises `TransactionFailed` with the error of each refused write.

        Cost: twice that of single writes, plus a read for each write that needs its item.
        """
        self._check_open()
        self._is_over = True
        for write in self._writes:
            write.prepare()
        checks = self._hold_what_was_read()
        if self._writes:
            writes = [*self._writes, *checks]
            for write in writes:
                if write.schema not in self._records.recorded:
                    yield from self._records.record(write.schema)
            yield from migrate_keys(writes, self._clock)
            yield from execute_together(writes, self._clock)

    def _hold_what_was_read(self) -> list[Check]:
        """Add conditions that the entities read are unchanged: to their own writes, or as separate checks."""
        if not self._read:
            return []
        unwritten = dict(self._read)
        for write in self._writes:
            if here := unwritten.pop(place_of(write.schema, write.key), None):
                write.further = here.as_seen()
            if write.target is None:
                continue
            if there := unwritten.pop(place_of(write.schema, write.target), None):
                write.at_target = there.as_seen()
        checks = []
        for read in unwritten.values():
            checks.append(check := Check(read.entity, read.key))
            check.further = read.as_seen()
        return checks

    def __enter__(self: Transaction[Waits]) -> Transaction[Waits]:
        return self

    def __exit__(self: Transaction[Waits], kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()

    async def __aenter__(self: Transaction[Awaits]) -> Transaction[Awaits]:
        return self

    async def __aexit__(
        self: Transaction[Awaits], kind: type[BaseException] | None, *_: object
    ) -> None:
        if kind is None:
            await self.commit()


class _Read(NamedTuple):
    """An item that the transaction has read, once or several times, whole or in part."""

    entity: type[Entity]
    key: Mapping[str, Any]
    seen: list[nodes.ConditionNode]

    def add(self, item: Item | None, attributes: frozenset[str] | None) -> None:
        """Note what was read: the item, some of its attributes, or that there is none."""
        schema = self.entity.__schema__
        unchanged: nodes.ConditionNode | None
        if item is None:
            unchanged = absent(schema.table.keys.partition[0].name)
        elif attributes is None:
            unchanged = as_it_was(schema, item)
        else:
            unchanged = pins(schema, item, attributes)
        if unchanged is not None and unchanged not in self.seen:
            self.seen.append(unchanged)

    def as_seen(self) -> nodes.ConditionNode:
        """The condition that all of it is unchanged."""
        return cast("nodes.ConditionNode", conjunction(self.seen))


def _projected(target: Any) -> ProjectedGet[Any] | None:
    """How a projection is read; None for anything else."""
    return ProjectedGet(target) if Projection in getattr(target, "__mro__", ()) else None


def _alive(schema: EntitySchema, item: Item | None, now: float) -> Entity | None:
    """The entity of an item; None if it has expired."""
    if item is None or is_missing(schema, item, now):
        return None
    kind = schema.kind_of(item)
    return None if kind is None else kind.from_item(item, require_all_fields=True)


_READS: Final = limits.TRANSACTION_ITEMS


def get_together(
    targets: Sequence[tuple[type[T], Mapping[str, Any]] | EntityKey[T]],
    clock: Clock,
    records: KeyRecords,
) -> Steps[list[T | None]]:
    """Read several entities, or projections, from one snapshot, in order; None for each that is missing or expired.

    Cost: twice that of consistent reads. Raises `UsageError` for more than a hundred.
    """
    # A hot path: no isinstance, and no call for what most targets are.
    wanted: list[tuple[EntitySchema, bytes, ProjectedGet[Any] | None]] = []
    gets: dict[bytes, Request] = {}
    for target in targets:
        of: Any = target
        if of.__class__ is tuple:
            entity, values = of
        elif of.__class__ is EntityKey:
            entity, values = of.entity, of.fields
        else:
            raise UsageError(
                f"get_together takes keys, not {of!r}; write get_together(Order.primary.at(number=1), …), or "
                'get_together((Order, {"number": 1}), …)'
            )
        projected: ProjectedGet[Any] | None = None
        try:
            schema: EntitySchema = entity.__schema__
        except AttributeError:
            projected = _projected(entity)
            schema = schema_of(entity) if projected is None else projected.schema
        key = key_of(schema, schema.entity, values)
        place = place_of(schema, key)
        wanted.append((schema, place, projected))
        whole: Request = {"TableName": schema.table.name, "Key": key}
        expression = None if projected is None else projected.expression
        get = whole if expression is None else {**whole, "ProjectionExpression": expression}
        if place not in gets:
            gets[place] = {"Get": get}
        elif gets[place]["Get"] != get:  # one read serves both
            gets[place] = {"Get": whole}
    if len(gets) > _READS:
        raise UsageError(
            f"a transaction reads at most {_READS} items, not {len(gets)}; use several transactions"
        )
    for schema, place, _ in wanted:
        if schema.primary not in records.checked:
            yield from records.check((schema,), (schema.primary,))
        if schema.previous is not None:
            yield from migrate_key(schema, gets[place]["Get"]["Key"], clock)
    responses = yield from _read_together(list(gets.values()))
    answers, now = dict(zip(gets, responses, strict=True)), clock.now()
    found: list[Any] = [
        _alive(schema, answers[place].get("Item"), now)
        if projected is None
        else projected.result(answers[place].get("Item"), now)
        for schema, place, projected in wanted
    ]
    return found


def _read_together(gets: Sequence[Request]) -> Steps[list[Response]]:
    """The responses of one TransactGetItems, which is retried while other writers conflict."""
    if not gets:
        return []
    for attempt in range(1, CONTENTION.attempts + 1):
        try:
            response = yield Call("TransactGetItems", {"TransactItems": gets})
        except TransactionCanceledException as error:
            if not any(reasons_of(error)):
                raise
            yield CONTENTION.pause(attempt)
        else:
            answers: list[Response] = response["Responses"]
            return answers
    raise Contended(
        f"others wrote to the items during each of {CONTENTION.attempts} attempts to read them together; "
        "try again later"
    )
