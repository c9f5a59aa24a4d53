"""The items of a queue (entries, messages of groups, tokens), and `Message`, which a consumer gets.

An *entry* can be claimed: a single message, or a group, which represents its next message. An index has the
entries by their due time. A claim sets the due time to the end of the claim, so the entry becomes available
again without a cleanup.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass
from dataclasses import field as attribute
from datetime import datetime
from typing import Any, ClassVar, Final, Literal

from isotone.errors import AlreadyExists, LeaseLost, TransactionFailed
from isotone.model import (
    Attr,
    Condition,
    Entity,
    EntityKey,
    Index,
    Key,
    Query,
    desc,
    expires,
    field,
)
from isotone.structures.queue_bodies import plain_body

MAX_SHARDS: Final = 1000
MAX_PRIORITIES: Final = 10
_MAX_NUMBER: Final = 10**15 - 1  # of a message; numbers start again when a group is empty


class QueueEntry(Entity):
    """A single message, or a group of messages that are handled one after the other.

    | | `state` | `due` | `claim` | `attempts` | `reason` |
    |---|---|---|---|---|---|
    | ready | `READY` | since when it can be claimed | none | earlier deliveries | of the last failure |
    | delayed | `READY` | when it can be claimed | none | earlier deliveries | of the last failure |
    | claimed | `READY` | when the claim ends | its receipt | with this delivery | of the failure before |
    | dead | `DEAD` | since when it is dead | none | all deliveries | why |

    A group is ready, delayed or claimed, and has the attempts and the reason of its first message. Its `pending` counts
    its messages, of which `last` is the number of the newest; their bodies are `QueueMessage`s. Only a message has a
    `body`. A message of a group that is dead is an entry of its own, and names its `group`.
    """

    queue: Attr[str] = field()
    kind: Attr[Literal["MESSAGE", "GROUP"]] = field()
    entry: Attr[str] = field()
    state: Attr[Literal["READY", "DEAD"]] = field(default="READY")
    shard: Attr[int] = field(max=MAX_SHARDS - 1, alert=None)
    priority: Attr[int] = field(max=MAX_PRIORITIES - 1, alert=None, default=0)
    due: Attr[datetime] = field()
    claim: Attr[str | None] = field(default=None)
    attempts: Attr[int] = field(default=0)
    put_at: Attr[datetime] = field()
    reason: Attr[str | None] = field(default=None)
    body: Attr[Any] = field(default=None)
    group: Attr[str | None] = field(default=None, description="of a dead message")
    last: Attr[int] = field(default=0, description="number of the last message of a group")
    pending: Attr[int] = field(default=0, description="messages of a group")

    primary: ClassVar[Key] = Key("QUEUE", queue, kind, entry).sort("ENTRY")
    ready: ClassVar[Index] = Index("queue", "QUEUE", queue, state, shard).sort(
        desc(priority), due, entry
    )


IS_DEAD: Final = QueueEntry.state == "DEAD"


class QueueMessage(Entity):
    """A message of a group."""

    queue: Attr[str] = field()
    group: Attr[str] = field()
    number: Attr[int] = field(max=_MAX_NUMBER, alert=None)
    message: Attr[str] = field()
    put_at: Attr[datetime] = field()
    body: Attr[Any] = field(default=None)

    primary: ClassVar[Key] = Key("QUEUE", queue, "GROUP", group).sort("MESSAGE", number)


class QueueToken(Entity):
    """The message that was put with a token, so that it is not put again."""

    queue: Attr[str] = field()
    token: Attr[str] = field()
    message: Attr[str] = field()
    gone_at: Attr[datetime] = expires()

    primary: ClassVar[Key] = Key("QUEUE", queue, "TOKEN", token).sort("TOKEN")


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """The entities of a queue in its table, and their keys."""

    queue: str
    shards: int
    entries: type[QueueEntry]
    messages: type[QueueMessage]
    tokens: type[QueueToken]

    def key(self, entry: str, kind: Literal["MESSAGE", "GROUP"] = "MESSAGE") -> dict[str, Any]:
        """The key of an entry."""
        return {"queue": self.queue, "kind": kind, "entry": entry}

    def key_of(self, message: Message) -> dict[str, Any]:
        """The key of the entry by which a message is claimed."""
        if message.group is None:
            return self.key(message.id)
        return self.key(message.group, "GROUP")

    def group_key(self, group: str) -> EntityKey[QueueEntry]:
        """The key of a group's entry."""
        return EntityKey(self.entries, **self.key(group, "GROUP"))

    def entry(self, id: str, body: Any, now: datetime, **fields: Any) -> QueueEntry:  # noqa: A002
        """A single message, in a random shard."""
        shard = random.randrange(self.shards)
        return self.entries(shard=shard, put_at=now, body=body, **self.key(id), **fields)

    def group(self, name: str, now: datetime, messages: int) -> QueueEntry:
        """A new group."""
        shard, key = zlib.crc32(name.encode()) % self.shards, self.key(name, "GROUP")
        return self.entries(
            shard=shard, due=now, put_at=now, last=messages, pending=messages, **key
        )

    def token(self, token: str, message: str, gone_at: datetime) -> QueueToken:
        """The record that a message was put with a token."""
        return self.tokens(queue=self.queue, token=token, message=message, gone_at=gone_at)

    def put_before(self, failed: TransactionFailed) -> str | None:
        """The id of the message that was put with the token; None if the token was not refused."""
        refused = failed.reason_of(self.tokens)
        return refused.current.message if isinstance(refused, AlreadyExists) else None

    def lost(self, message: Message) -> LeaseLost:
        """The error for a claim that has expired."""
        return LeaseLost(
            f"message {message.id} of {self.queue!r} was held until {message.until}, and another consumer has "
            "claimed or finished it since; hold it longer, or extend it while it is worked on"
        )

    def message_key(self, group: str, number: int) -> dict[str, Any]:
        """The key of a message of a group."""
        return {"queue": self.queue, "group": group, "number": number}

    def in_shard(
        self, shard: int, state: Literal["READY", "DEAD"], *further: Condition
    ) -> Query[QueueEntry]:
        """The entries of a shard by priority and due time."""
        kind = QueueEntry
        where = kind.queue == self.queue, kind.shard == shard, kind.state == state
        return self.entries.ready.where(*where, *further)

    def first_of(self, group: str) -> Query[QueueMessage]:
        """The next message of a group."""
        where = QueueMessage.queue == self.queue, QueueMessage.group == group
        return self.messages.primary.where(*where).consistent().limit(1)


@dataclass(frozen=True, slots=True)
class Message:
    """A claimed message, or a dead letter; `attempts` counts deliveries."""

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
    """The message of an entry; for a group, the given first message."""
    return Message(
        id=entry.entry if head is None else head.message,
        body=plain_body(entry.body if head is None else head.body),
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
    """A condition on the index key of an entry: an update with it needs no read."""
    kind = QueueEntry
    return (kind.state == "READY") & (kind.shard == of.shard) & (kind.priority == of.priority)


@dataclass(slots=True)
class QueueCounts:
    """The numbers of messages: ready, waiting in their group, delayed, in flight, dead.

    `invalid` counts items that are not what a queue writes: claims skip them, and log each once to `isotone.queue`.
    `age` is the seconds for which the oldest ready message has been ready.
    """

    ready: int = 0
    behind: int = 0
    delayed: int = 0
    in_flight: int = 0
    dead: int = 0
    age: float = 0.0
    invalid: int = 0

    @property
    def depth(self) -> int:
        """All messages that are neither acknowledged nor dead."""
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
