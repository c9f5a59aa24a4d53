"""When a sorted set is gone as a whole: said once when it is made, or changed by commands.

Each member carries the moment, so that reads leave it out at once, and the database deletes it some time
later. A set whose moment is fixed has it from its constructor: every write stamps it, and nothing else is
read or written. A set that can be given another moment keeps it in an item, which writers look at before
and after: one that crossed a change stamps its members again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from isotone.errors import UsageError
from isotone.model.calls import Calls
from isotone.model.declaring.fields import Attr, expires, field
from isotone.model.declaring.keys import Key
from isotone.model.entity import Entity
from isotone.model.steps import Steps

Expires = datetime | bool | None
"""Never, at a fixed moment, or (True) as `expire` and `persist` say."""

NO_SET: Final = -2
NO_EXPIRY: Final = -1


class SortedSetExpiry(Entity):
    """When a sorted set expires; gone together with it."""

    name: Attr[str] = field()
    gone_at: Attr[datetime] = expires()

    primary = Key("SORTED_SET_EXPIRY", name).sort("SORTED_SET_EXPIRY")


class Expiry:
    """The expiry of one set."""

    def __init__(self, calls: Calls, kind: type[SortedSetExpiry], name: str, said: Expires) -> None:
        if isinstance(said, datetime) and said.tzinfo is None:
            raise UsageError(f"expires={said!r} has no time zone, so it names no instant")
        self._calls = calls
        self._kind = kind
        self._name = name
        self.fixed = said if isinstance(said, datetime) else None
        self.changes = said is True

    @property
    def is_said(self) -> bool:
        """Whether members carry a moment at all."""
        return self.changes or self.fixed is not None

    def is_over(self) -> bool:
        """Whether a fixed moment has come: then nothing is in the set, and nothing comes into it."""
        return self.fixed is not None and self.fixed.timestamp() // 1 <= self._calls.clock.now()

    def moment(self) -> Steps[datetime | None]:
        """When the set expires, None for never. Cost: a read where it can change."""
        if not self.changes:
            return self.fixed
        found = yield from self._calls.get(self._kind, consistent=True, name=self._name)
        return None if found is None else found.gone_at

    def keep(self, moment: datetime | None) -> Steps[None]:
        """Write down another moment."""
        if moment is None:
            yield from self._calls.delete(self._kind, name=self._name)
        else:
            yield from self._calls.put(self._kind(name=self._name, gone_at=moment))

    def forget(self) -> Steps[None]:
        """The set has no member left, so it has no expiry either."""
        if self.changes:
            yield from self.keep(None)

    def check(self) -> None:
        """Raise `UsageError` where commands do not change the expiry."""
        if not self.changes:
            raise UsageError(
                f"{self._name!r} was made "
                + ("to expire at a fixed time" if self.fixed else "never to expire")
                + "; make it with expires=True, in every process, to change that by commands"
            )

    def after(self, time: float | timedelta) -> datetime:
        """The moment in so many seconds."""
        span = time if isinstance(time, timedelta) else timedelta(seconds=time)
        return datetime.fromtimestamp(self._calls.clock.now(), UTC) + span

    def seconds_left(self, moment: datetime | None) -> int:
        """How long it is until then, as TTL says it."""
        if moment is None:
            return NO_EXPIRY
        return round(moment.timestamp() - self._calls.clock.now())


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
