"""What a worker keeps: who reads which shard and how far, what could not be handled, what was done once.

All lies in one table, which may be the table of the data.

    WORKER#fan-out               START#…               when it first ran on a stream
                                 LEASE#…#shardId-…     a shard: its owner, until when, how far
                                 DEAD#…                a record that a handler could not handle
    WORKER#fan-out#EFFECT#…      EFFECT#deliver        that an event's effect is there
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from isotone.model import Attr, Entity, Key, created, expires, field


class WorkerStart(Entity):
    """When a worker first looked at a stream; with LATEST, older records are not for it."""

    worker: Attr[str] = field()
    stream: Attr[str] = field()
    since: Attr[datetime | None] = field(default=None)

    primary = Key("WORKER", worker).sort("START", stream)


class WorkerLease(Entity):
    """A shard, and the member that may read it.

    `epoch` rises with each change of hands, and every write of a member names the epoch of its own: one
    that was taken for dead cannot move the checkpoint of its successor. `wanted` names a member that has
    fewer shards than it should, to which the owner hands this one over. `falls` counts the owners that
    ended without giving it back since the checkpoint last moved; from the second on, each record is noted
    before it is handled (`trying`, `tries`), so that one that kills is found.
    """

    worker: Attr[str] = field()
    stream: Attr[str] = field()
    shard: Attr[str] = field()
    parent: Attr[str | None] = field(default=None)
    owner: Attr[str | None] = field(default=None)
    epoch: Attr[int] = field(default=0)
    until: Attr[datetime | None] = field(default=None)
    checkpoint: Attr[str | None] = field(default=None)
    finished: Attr[bool] = field(default=False)
    wanted: Attr[str | None] = field(default=None)
    falls: Attr[int] = field(default=0)
    trying: Attr[str | None] = field(default=None)
    tries: Attr[int] = field(default=0)
    found: Attr[datetime | None] = created()

    primary = Key("WORKER", worker).sort("LEASE", stream, shard)

    def is_live(self, now: datetime) -> bool:
        """Whether somebody holds it."""
        return self.owner is not None and self.until is not None and self.until > now


class WorkerDeadLetter(Entity):
    """A record that a handler could not handle, as the stream had it (JSON, deflated).

    `record` is None where it was too large to be kept; `keys` are those of its item in any case.
    """

    worker: Attr[str] = field()
    handler: Attr[str] = field()
    event: Attr[str] = field()
    sequence: Attr[str] = field()
    time: Attr[datetime] = field()
    shard: Attr[str] = field()
    record: Attr[bytes | None] = field(default=None)
    keys: Attr[str] = field(default="")
    error: Attr[str] = field()
    attempts: Attr[int] = field()
    failed: Attr[datetime] = field()

    primary = Key("WORKER", worker).sort("DEAD", time, sequence, event, handler)


class WorkerEffect(Entity):
    """That the effect of an event is there; kept longer than the event can be delivered again."""

    worker: Attr[str] = field()
    handler: Attr[str] = field()
    event: Attr[str] = field()
    expires: Attr[datetime | None] = expires()

    primary = Key("WORKER", worker, "EFFECT", event).sort("EFFECT", handler)


OWN: Final = (WorkerStart, WorkerLease, WorkerDeadLetter, WorkerEffect)
"""All that a worker writes itself; `bind_entity` gives the class of each with the keys of a table."""
