"""Unique values with one owner at a time: user names, addresses, seats.

    names = Unique(store, "username", normal=str.casefold)
    names.reserve("Ann", owner="user:1")
    names.reserve("ann", owner="user:2")        # NotUnique, with the owner

    with store.transaction() as tx:             # with other writes
        tx.create(user)
        names.within(tx).reserve(user.name, owner=user.id)

A value is the key of an item, so the database itself keeps it unique.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

from isotone.errors import ConditionFailed, NotFound, NotUnique
from isotone.model import Attr, Condition, Entity, Key, Steps, Table, Transaction, expires, field
from isotone.structures.argument_checks import require_positive, validated
from isotone.structures.structure import S, Structure, operation

UNIQUE: Final = Table("unique")


class UniqueValue(Entity):
    """A value and its owner."""

    namespace: Attr[str] = field()
    value: Attr[str] = field()
    owner: Attr[str] = field()
    given: Attr[str] = field()
    gone_at: Attr[datetime | None] = expires(default=None)

    primary: ClassVar[Key] = Key("UNIQUE", namespace, value).sort("UNIQUE")


class Unique(Structure[S]):
    """The values of one namespace. Values with the same `normal(value)` are the same."""

    def __init__(
        self,
        store: S,
        namespace: str,
        *,
        normal: Callable[[str], str] = str,
        table: Table | None = None,
    ) -> None:
        super().__init__(store, table or UNIQUE)
        self.namespace = namespace
        self._normal = normal
        self._kind = self.bind(UniqueValue)

    @staticmethod
    def layout(name: str = "unique") -> Table:
        """A table for unique values."""
        return Table(name)

    @operation
    def reserve(self, value: str, owner: str, *, seconds: float | None = None) -> Steps[None]:
        """Reserve a value, permanently or for `seconds` seconds. Cost: one write.

        Its owner may reserve it again, for a longer or shorter time. Raises `NotUnique`.
        """
        taken, free = self._reservation(value, owner, seconds)
        try:
            yield from self.calls.put(taken, when=free)
        except ConditionFailed as refused:
            raise self._taken(value, refused.current) from None

    @operation
    def release(self, value: str, owner: str) -> Steps[bool]:
        """Release a value; returns whether `owner` had it. Cost: one write."""
        try:
            was = yield from self._release(self.calls, value, owner)
        except ConditionFailed:
            return False
        return was is not None

    @operation
    def transfer(self, value: str, owner: str, to: str) -> Steps[None]:
        """Transfer a value to another owner, permanently. Cost: one write.

        Raises `NotFound` if it is free, `NotUnique` if another owner has it. If `to` already has it
        permanently, nothing happens: the response to an earlier call may have been lost.
        """
        try:
            yield from self._transfer(self.calls, value, owner, to)
        except NotFound:
            raise NotFound(f"{self.namespace} {value!r} has no owner; reserve() it") from None
        except ConditionFailed as refused:
            if (refused.current.owner, refused.current.gone_at) != (to, None):
                raise self._taken(value, refused.current) from None

    @operation
    def owner_of(self, value: str) -> Steps[str | None]:
        """The owner of a value; None if it is free. Cost: a consistent read."""
        taken = yield from self.calls.get(self._kind, consistent=True, **self._key(value))
        return None if taken is None else taken.owner

    @validated
    def within(self, tx: Transaction) -> UniqueWrites:
        """The same writes as part of a transaction: all or none are written."""
        return UniqueWrites(self, tx)

    # Writes: `to` is the store's calls, which return steps, or a transaction, which collects them

    def _reservation(
        self, value: str, owner: str, seconds: float | None
    ) -> tuple[UniqueValue, Condition]:
        """The item of a value, and the condition under which it may be put."""
        require_positive(seconds=seconds)
        now = datetime.fromtimestamp(self.now(), UTC)
        gone_at = None if seconds is None else now + timedelta(seconds=seconds)
        taken = self._kind(**self._key(value), owner=owner, given=value, gone_at=gone_at)
        free = UniqueValue.owner.missing() | (UniqueValue.gone_at <= now)
        return taken, free | (UniqueValue.owner == owner)

    def _release(self, to: Any, value: str, owner: str) -> Any:
        return to.delete(self._kind, when=UniqueValue.owner == owner, **self._key(value))

    def _transfer(self, to: Any, value: str, owner: str, heir: str) -> Any:
        changes = UniqueValue.owner.set(heir), UniqueValue.gone_at.remove()
        mine = UniqueValue.owner == owner
        return to.update(self._kind, *changes, when=mine, **self._key(value))

    def _key(self, value: str) -> dict[str, str]:
        return {"namespace": self.namespace, "value": self._normal(value)}

    def _taken(self, value: str, current: UniqueValue | None) -> NotUnique:
        owner = None if current is None else current.owner
        return NotUnique(
            f"{self.namespace} {value!r} is taken by {owner}", self.namespace, value, owner
        )


class UniqueWrites:
    """The writes of a `Unique` in a transaction.

    If one is refused, the transaction fails, and `reasons` has the error: for `reserve`, `NotUnique` with
    the `owner`; for the others, `ConditionFailed` with the stored value as `current`, or None.
    """

    def __init__(self, unique: Unique[Any], tx: Transaction) -> None:
        self._unique = unique
        self._tx = tx

    def reserve(self, value: str, owner: str, *, seconds: float | None = None) -> None:
        """Reserve a value, permanently or for `seconds` seconds. Cost: one entry of the transaction."""
        taken, free = self._unique._reservation(value, owner, seconds)
        refused = functools.partial(self._unique._taken, value)
        self._tx.put(taken, when=free, otherwise=refused)

    def release(self, value: str, owner: str) -> None:
        """Release a value that `owner` has. Cost: one entry of the transaction."""
        self._unique._release(self._tx, value, owner)

    def transfer(self, value: str, owner: str, to: str) -> None:
        """Transfer a value to another owner, permanently. Cost: one entry of the transaction."""
        self._unique._transfer(self._tx, value, owner, to)
