"""The items and messages of a queue, and the bodies that it accepts.

An *entry* can be claimed: a single message, or a group, which represents its next message. An index has the
entries by their due time. A claim sets the due time to the end of the claim, so the entry becomes available
again without a cleanup.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from dataclasses import field as attribute
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, Literal

from isotone.errors import UsageError
from isotone.model import (
    Attr,
    Condition,
    Entity,
    Index,
    Key,
    Query,
    desc,
    expires,
    field,
)

MAX_SHARDS: Final = 1000
MAX_PRIORITIES: Final = 10
_MAX_NUMBER: Final = 10**15 - 1  # of a message in a group, until the group is empty

_MAX_BODY: Final = 390_000  # bytes; an item has 400 KB, including its keys and a reason
_MAX_TOGETHER: Final = 90  # messages of a group in one transaction
_MAX_BYTES_TOGETHER: Final = 3_500_000  # of their bodies; a transaction takes 4 MB

_INSTEAD: Final = (
    (float, "put Decimal(str(…)), or a text"),
    (tuple, "put a list"),
    (date, "put its isoformat()"),
    (set | frozenset, "put None, or a list: the database has no empty sets"),
)
_OTHERWISE: Final = (
    "put texts, ints, Decimals, bytes, bools, None, and lists, dicts and sets of them"
)


class QueueEntry(Entity):
    """A single message, or a group of messages that are handled one after the other."""

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

    primary = Key("QUEUE", queue, kind, entry).sort("ENTRY")
    ready = Index("queue", "QUEUE", queue, state, shard).sort(desc(priority), due, entry)


class QueueMessage(Entity):
    """A message of a group."""

    queue: Attr[str] = field()
    group: Attr[str] = field()
    number: Attr[int] = field(max=_MAX_NUMBER, alert=None)
    message: Attr[str] = field()
    put_at: Attr[datetime] = field()
    body: Attr[Any] = field(default=None)

    primary = Key("QUEUE", queue, "GROUP", group).sort("MESSAGE", number)


class QueueToken(Entity):
    """The message that was put with a token, so that it is not put again."""

    queue: Attr[str] = field()
    token: Attr[str] = field()
    message: Attr[str] = field()
    gone_at: Attr[datetime] = expires()

    primary = Key("QUEUE", queue, "TOKEN", token).sort("TOKEN")


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
    """The message of an entry; of a group, the one at its head."""
    return Message(
        id=entry.entry if head is None else head.message,
        body=_plain(entry.body if head is None else head.body),
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
    """The index key of an entry. An update on this condition needs no read."""
    kind = QueueEntry
    return (kind.state == "READY") & (kind.shard == of.shard) & (kind.priority == of.priority)


@dataclass(slots=True)
class QueueCounts:
    """The numbers of messages: ready, waiting in their group, delayed, in flight, dead.

    `age` is the seconds for which the oldest ready message has been ready.
    """

    ready: int = 0
    behind: int = 0
    delayed: int = 0
    in_flight: int = 0
    dead: int = 0
    age: float = 0.0

    @property
    def depth(self) -> int:
        """All messages that are neither done nor dead."""
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


# Bodies


def check_body(body: Any) -> Any:
    """The body; raises `UsageError` if it is too large or would not be read back equal."""
    size = _size(body)
    if size > _MAX_BODY:
        raise UsageError(
            f"a body of {size:,} bytes is too large for an item; a queue takes {_MAX_BODY:,}: put it "
            "elsewhere, and its address into the queue"
        )
    return body


def split_bodies(bodies: Iterable[Any]) -> Iterator[list[Any]]:
    """Bodies of a group, as many at a time as fit into one transaction."""
    chunk: list[Any] = []
    total = 0
    for body in bodies:
        size = _size(body)
        if len(chunk) == _MAX_TOGETHER or total + size > _MAX_BYTES_TOGETHER:
            yield chunk
            chunk, total = [], 0
        chunk.append(body)
        total += size
    if chunk:
        yield chunk


def _plain(body: Any) -> Any:
    """The original body: whole numbers are ints again, not Decimals."""
    if isinstance(body, Decimal):
        return int(body) if body == body.to_integral_value() else body
    if isinstance(body, list | set):
        return type(body)(map(_plain, body))
    if isinstance(body, dict):
        return {name: _plain(value) for name, value in body.items()}
    return body


def _size(value: Any) -> int:
    """The size of a value in the database, or a few bytes more: numbers take up to 21."""
    if isinstance(value, str):
        return _length(value)
    if isinstance(value, bytes | bytearray):
        return len(value)
    if isinstance(value, dict):
        return 3 + sum(1 + _length(name) + _size(member) for name, member in value.items())
    if isinstance(value, list | set | frozenset) and (value or isinstance(value, list)):
        return 3 + sum(1 + _size(member) for member in value)
    if value is None or isinstance(value, int | Decimal):
        return 21
    raise UsageError(
        f"{value!r} is of type {type(value).__name__}, and would not come back as it was put; "
        + next((advice for kind, advice in _INSTEAD if isinstance(value, kind)), _OTHERWISE)
    )


def _length(text: Any) -> int:
    if not isinstance(text, str):
        raise UsageError(f"the keys of a dict in a body are texts, not {text!r}; put {str(text)!r}")
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{text!r} has half of a surrogate pair and cannot be stored: {error}"
        ) from None
