"""When a sorted set is gone as a whole: said once when it is made, or changed by commands.

Each member carries the moment, so that reads leave it out at once, and the database deletes it some time
later. A set whose moment is fixed has it from its constructor: every write stamps it, and nothing else is
read or written. A set that can be given another moment keeps it in an item, which writers look at before
and after: one that crossed a change stamps its members again.
"""

from __future__ import annotations

import contextlib
from datetime import datetime

from isotone.errors import ConditionFailed, UsageError
from isotone.model import Attr, Calls, Entity, Key, Steps, expires, field

Expires = datetime | bool | None
"""Never, at a fixed moment, or (True) as `expire` and `persist` say."""


class SortedSetExpiry(Entity):
    """When a sorted set expires; gone together with it."""

    name: Attr[str] = field()
    gone_at: Attr[datetime] = expires()

    primary = Key("SORTED_SET_EXPIRY", name).sort("SORTED_SET_EXPIRY")


class Expiry:
    """The expiry of one set; `changes` tells whether commands change it, `is_said` whether it has one."""

    def __init__(self, calls: Calls, kind: type[SortedSetExpiry], name: str, said: Expires) -> None:
        self._calls = calls
        self._kind = kind
        self._name = name
        self._fixed = zoned(said) if isinstance(said, datetime) else None
        self.changes = said is True
        self.is_said = bool(said)

    def is_over(self) -> bool:
        """Whether a fixed moment has come: then nothing is in the set, and nothing comes into it."""
        return self._fixed is not None and self._fixed.timestamp() // 1 <= self._calls.clock.now()

    def moment(self) -> Steps[datetime | None]:
        """When the set expires, None for never. Cost: a read where it can change."""
        if not self.changes:
            return self._fixed
        found = yield from self._calls.get(self._kind, consistent=True, name=self._name)
        return None if found is None else found.gone_at

    def keep(self, moment: datetime | None) -> Steps[None]:
        """Write down another moment."""
        if moment is None:
            yield from self._calls.delete(self._kind, name=self._name)
        else:
            yield from self._calls.put(self._kind(name=self._name, gone_at=moment))

    def forget(self, moment: datetime) -> Steps[None]:
        """Have the set never expire, unless somebody has given it another moment than this one."""
        with contextlib.suppress(ConditionFailed):
            as_read = SortedSetExpiry.gone_at == moment
            yield from self._calls.delete(self._kind, when=as_read, name=self._name)

    def check(self) -> None:
        """Raise `UsageError` where commands do not change the expiry."""
        if not self.changes:
            raise UsageError(
                f"{self._name!r} was made "
                + ("to expire at a fixed time" if self._fixed else "never to expire")
                + "; make it with expires=True, in every process, to change that by commands"
            )


def zoned(moment: datetime) -> datetime:
    """The moment; raises `UsageError` where it could be at any hour."""
    if moment.tzinfo is None:
        raise UsageError(f"{moment!r} has no time zone, so it names no instant")
    return moment


def allows(
    before: datetime | None, after: datetime, *, nx: bool, xx: bool, gt: bool, lt: bool
) -> bool:
    """Whether EXPIRE's options allow the change; a set that never expires is later than any other."""
    if (nx and (xx or gt or lt)) or (gt and lt):
        raise UsageError("nx goes with none of xx, gt and lt, and gt not with lt")
    if (nx or xx) and (before is None) is xx:
        return False
    if gt:
        return before is not None and after > before
    if lt:
        return before is None or after < before
    return True
