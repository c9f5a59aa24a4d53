"""What a queue keeps, and what it gives.

Whatever can be claimed is an *entry*: a message that stands for itself, or a group, which stands for its
next message. Entries are in an index by the time from which they are due. Claiming one makes it due when the
claim runs out, so that it comes back by itself; there is nothing to sweep.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as attribute
from datetime import datetime
from typing import Any, Final, Literal

from isotone.model import Attr, Condition, Entity, Global, Index, Key, Table, desc, expires, field
from isotone.structures.queue.bodies import natural

MOST_SHARDS: Final = 1000
MOST_PRIORITIES: Final = 10
_MOST_MESSAGES: Final = 10**15  # of a group, in one go


def layout(name: str = "queues") -> Table:
    """A table in which queues can live; its index has what claiming and counting have to know."""
    projection = ("_type", "claim", "attempts", "pending")
    return Table(name, indexes={"queue": Global("QPK", "QSK", projection=projection)})


class QueueEntry(Entity):
    """A message, or a group of messages that are done one after the other."""

    queue: Attr[str] = field()
    kind: Attr[Literal["MESSAGE", "GROUP"]] = field()
    entry: Attr[str] = field()
    state: Attr[Literal["READY", "DEAD"]] = field(default="READY")
    shard: Attr[int] = field(max=MOST_SHARDS - 1, alert=None)
    priority: Attr[int] = field(max=MOST_PRIORITIES - 1, alert=None, default=0)
    due: Attr[datetime] = field()
    claim: Attr[str | None] = field(default=None)
    attempts: Attr[int] = field(default=0)
    put_at: Attr[datetime] = field()
    reason: Attr[str | None] = field(default=None)
    body: Attr[Any] = field(default=None)
    group: Attr[str | None] = field(default=None, description="of a dead message")
    last: Attr[int] = field(default=0, description="number of the last message of a group")
    pending: Attr[int] = field(default=0, description="messages of a group")

    primary = Key("QUEUE", queue, kind, entry).sort("ENTRY")
    ready = Index("queue", "QUEUE", queue, state, shard).sort(desc(priority), due, entry)


is_dead: Final = QueueEntry.state == "DEAD"


class QueueMessage(Entity):
    """A message of a group."""

    queue: Attr[str] = field()
    group: Attr[str] = field()
    number: Attr[int] = field(max=_MOST_MESSAGES - 1, alert=None)
    message: Attr[str] = field()
    put_at: Attr[datetime] = field()
    body: Attr[Any] = field(default=None)

    primary = Key("QUEUE", queue, "GROUP", group).sort("MESSAGE", number)


class QueueToken(Entity):
    """Says which message was put with a token, so that it is not put again."""

    queue: Attr[str] = field()
    token: Attr[str] = field()
    message: Attr[str] = field()
    gone_at: Attr[datetime] = expires()

    primary = Key("QUEUE", queue, "TOKEN", token).sort("TOKEN")


@dataclass(frozen=True, slots=True)
class Message:
    """A message as its consumer has it: claimed until a time, for the so-manieth time."""

    id: str
    body: Any
    attempts: int
    put_at: datetime
    until: datetime
    group: str | None = None
    reason: str | None = None
    priority: int = 0
    receipt: str | None = attribute(default=None, repr=False)
    shard: int = attribute(default=0, repr=False)
    number: int = attribute(default=0, repr=False)
    pending: int = attribute(default=0, repr=False)

    @property
    def entry(self) -> str:
        """The name of the entry by which it was claimed."""
        return self.id if self.group is None else self.group


def message_of(entry: QueueEntry, head: QueueMessage | None = None) -> Message:
    """An entry as a message; of a group, the one at its head."""
    return Message(
        id=entry.entry if head is None else head.message,
        body=natural(entry.body if head is None else head.body),
        attempts=entry.attempts,
        put_at=entry.put_at if head is None else head.put_at,
        until=entry.due,
        group=entry.group if head is None else head.group,
        reason=entry.reason,
        priority=entry.priority,
        receipt=entry.claim,
        shard=entry.shard,
        number=0 if head is None else head.number,
        pending=entry.pending,
    )


def in_place(of: QueueEntry | Message) -> Condition:
    """Tells an update where in the index an entry is, so that it has to read nothing."""
    return (
        (QueueEntry.state == "READY")
        & (QueueEntry.shard == of.shard)
        & (QueueEntry.priority == of.priority)
    )


@dataclass(slots=True)
class QueueCounts:
    """How many messages a queue has: to be claimed, behind others of their group, delayed, claimed, dead.

    `age` is for how many seconds the one that has been waiting longest could have been claimed.
    """

    ready: int = 0
    behind: int = 0
    delayed: int = 0
    in_flight: int = 0
    dead: int = 0
    age: float = 0.0

    @property
    def depth(self) -> int:
        """All that are not done, and not dead."""
        return self.ready + self.behind + self.delayed + self.in_flight

    def add(self, entry: QueueEntry, now: datetime) -> None:
        """Count an entry that is not dead."""
        if entry.due <= now:
            self.ready += 1
            self.age = max(self.age, (now - entry.due).total_seconds())
        elif entry.claim is not None:
            self.in_flight += 1
        else:
            self.delayed += 1
        self.behind += max(entry.pending - 1, 0)
