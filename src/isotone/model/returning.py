"""`store.returning("old")`, `store.returning("none")` and `store.requests`: writes with another result.

    before = store.returning("old").update(Order, Order.status.set("SHIPPED"), customer_id="a", number=1)
    store.returning("none").update(Order, Order.total.add(1), customer_id="a", number=1)
    request = store.requests.update(Order, Order.total.add(1), customer_id="a", number=1)

They have the store's methods, with the same arguments. They are separate objects because the type of a result cannot
depend on an argument when one definition serves both sync and async stores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from isotone.backends.interface import Request
from isotone.clock import Clock
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.entity import Entity
from isotone.model.operation import Host, M_co, operation
from isotone.model.writing.moves import Move
from isotone.model.writing.put_and_delete import Delete, Put
from isotone.model.writing.updates import Update
from isotone.model.writing.upserts import Upsert
from isotone.model.writing.write import Returned, Write
from isotone.tables.steps import Steps

E = TypeVar("E", bound=Entity)


class _Returning(Host[M_co]):
    """A store's writes, with another result."""

    returned: Returned

    def __init__(
        self, store: Host[M_co], write: Callable[[Write[Any]], Steps[Any]], clock: Clock
    ) -> None:
        self.run: Callable[[Steps[Any]], Any] = store.run
        self._execute = write
        self._clock = clock

    def _write(self, write: Write[Any]) -> Steps[Any]:
        write.returned = self.returned
        return self._execute(write)


class ReturningOld(_Returning[M_co]):
    """Writes that return the previous entity; made by `store.returning("old")`.

    They cost as much as the store's own writes. The result is None if there was no entity, or if it had expired.
    """

    returned: Returned = "ALL_OLD"

    @operation
    def put(self, entity: E, *, when: Condition | None = None) -> Steps[E | None]:
        """Write an entity; return the one that it replaced."""
        return self._write(Put(entity, self._clock, when))

    @operation
    def replace(self, entity: E, *, when: Condition | None = None) -> Steps[E]:
        """Replace an existing entity; return the one that it replaced."""
        return self._write(Put(entity, self._clock, when, "presence"))

    @operation
    def update(
        self,
        target: type[E] | EntityKey[E] | E,
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[E]:
        """Change some fields of an entity; return it as it was before."""
        return self._write(Update(target, changes, key, when))

    @operation
    def upsert(
        self,
        target: type[E] | EntityKey[E],
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[E | None]:
        """Change some fields of an entity, or create it; return it as it was before."""
        return self._write(Upsert(target, changes, key, when))

    @operation
    def delete(
        self,
        target: type[E] | EntityKey[E] | E,
        /,
        *,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[E | None]:
        """Delete an entity and return it, like the store's own `delete`."""
        return self._write(Delete(target, key, when))


class ReturningNothing(_Returning[M_co]):
    """Writes that return nothing, which saves the transfer and decoding; made by `store.returning("none")`.

    They cost as many units as the store's own writes. There is no `put` here, because `put` never returns an item.
    """

    returned: Returned = "NONE"

    @operation
    def update(
        self,
        target: type[Entity] | EntityKey[Any] | Entity,
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[None]:
        """Change some fields of an entity."""
        return self._write(Update(target, changes, key, when))

    @operation
    def upsert(
        self,
        target: type[Entity] | EntityKey[Any],
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[None]:
        """Change some fields of an entity, or create it."""
        return self._write(Upsert(target, changes, key, when))

    @operation
    def delete(
        self,
        target: type[Entity] | EntityKey[Any] | Entity,
        /,
        *,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[None]:
        """Delete an entity, if there is one."""
        return self._write(Delete(target, key, when))


class Requests(Host[M_co]):
    """The requests for writes, without sending them: `store.requests`.

    Each method takes the same arguments as the store's own, and returns the request as servers take it: a PutItem,
    UpdateItem or DeleteItem, or a TransactWriteItems if several items are written. If a write must read its item first,
    it does so. The entity is not changed.
    """

    def __init__(
        self, store: Host[M_co], requested: Callable[[Write[Any]], Steps[Request]], clock: Clock
    ) -> None:
        self.run: Callable[[Steps[Any]], Any] = store.run
        self._requested = requested
        self._clock = clock

    @operation
    def put(self, entity: Entity, *, when: Condition | None = None) -> Steps[Request]:
        """The request for `store.put`."""
        return self._requested(Put(_copy(entity), self._clock, when))

    @operation
    def create(self, entity: Entity) -> Steps[Request]:
        """The request for `store.create`."""
        return self._requested(Put(_copy(entity), self._clock, expected="absence"))

    @operation
    def replace(self, entity: Entity, *, when: Condition | None = None) -> Steps[Request]:
        """The request for `store.replace`."""
        return self._requested(Put(_copy(entity), self._clock, when, "presence"))

    @operation
    def update(
        self,
        target: type[Entity] | EntityKey[Any] | Entity,
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[Request]:
        """The request for `store.update`."""
        return self._requested(Update(target, changes, key, when))

    @operation
    def upsert(
        self,
        target: type[Entity] | EntityKey[Any],
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[Request]:
        """The request for `store.upsert`; it works whether or not the item exists."""
        return self._requested(Upsert(target, changes, key, when))

    @operation
    def delete(
        self,
        target: type[Entity] | EntityKey[Any] | Entity,
        /,
        *,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[Request]:
        """The request for `store.delete`."""
        return self._requested(Delete(_copy(target), key, when))

    @operation
    def move(
        self,
        target: type[Entity] | EntityKey[Any] | Entity,
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> Steps[Request]:
        """The request for `store.move`, which reads the item first."""
        return self._requested(Move(target, changes, key, when))


def _copy(target: Any) -> Any:
    """A copy of an entity, which hooks may change instead of the caller's; a class or a key unchanged."""
    if not isinstance(target, Entity):
        return target
    return type(target).from_trusted(dict(target.__dict__))
