"""Groups of messages, which are done one after the other.

A group is one entry, due when its first message is, and claimed for it. It knows how many messages it has, and
the number of the last. Putting messages at its end, and taking the first one away, is one transaction each with
the entry, on the condition that this is as it was seen.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from isotone.errors import AlreadyExists, TransactionFailed
from isotone.model import Steps, Transaction, uuid7
from isotone.structures.queue.entities import Message, QueueEntry, QueueMessage, in_place, is_dead
from isotone.structures.retries import retry_on_conflict

if TYPE_CHECKING:
    from isotone.structures.queue.queue import Queue

R = TypeVar("R")


def append(
    queue: Queue[Any],
    group: str,
    bodies: Sequence[Any],
    *,
    token: str | None = None,
    letter: Message | None = None,
) -> Steps[list[str]]:
    """Put messages at the end of a group, or a dead letter anew, which is none then.

    Gives their ids, or that of the message which the token was used for; none where the letter is gone.
    """
    ids = [str(uuid7()) for _ in bodies] if letter is None else [letter.id]
    put_at = queue._after(0) if letter is None else letter.put_at

    def attempt() -> Steps[list[str]]:
        entry = yield from _entry(queue, group)
        together = queue.calls.transaction()
        _lengthen(queue, together, group, entry, len(bodies))
        if token is not None:
            together.create(queue._token(token, ids[0]))
        last = 0 if entry is None else entry.last
        for number, (message, body) in enumerate(zip(ids, bodies, strict=True), start=last + 1):
            place: dict[str, Any] = {"queue": queue.name, "group": group, "number": number}
            together.create(queue._messages(message=message, body=body, put_at=put_at, **place))
        if letter is not None:
            together.delete(queue._entries, when=is_dead, **queue._key(letter.id))
        try:
            yield from together.commit()
        except TransactionFailed as failed:
            if token is not None and 1 in failed.failures:
                return [put_before(failed)]
            if letter is not None and 0 not in failed.failures:
                return []
            raise  # others have changed the entry
        return ids

    return (yield from _settled(queue, group, attempt))


def _lengthen(
    queue: Queue[Any], together: Transaction, group: str, entry: QueueEntry | None, by: int
) -> None:
    """Count messages that are put at the end of a group, which is made where there is none."""
    key = queue._key(group, "GROUP")
    if entry is None:
        shard, now = zlib.crc32(group.encode()) % queue.shards, queue._after(0)
        together.create(
            queue._entries(shard=shard, due=now, put_at=now, last=by, pending=by, **key)
        )
    else:
        changes = QueueEntry.last.set(entry.last + by), QueueEntry.pending.add(by)
        together.update(queue._entries, *changes, when=QueueEntry.last == entry.last, **key)


def advance(queue: Queue[Any], message: Message, letter: QueueEntry | None = None) -> Steps[None]:
    """Take a message out of its group, whose next one is due then; the last one takes the group along.

    It may become a dead letter.
    """
    group, pending = str(message.group), message.pending

    def attempt() -> Steps[None]:
        nonlocal pending
        together = queue.calls.transaction()
        _shorten(queue, together, message, pending)
        together.delete(queue._messages, queue=queue.name, group=group, number=message.number)
        if letter is not None:
            together.put(letter)
        try:
            yield from together.commit()
        except TransactionFailed:
            entry = yield from _entry(queue, group)
            if entry is None or entry.claim != message.receipt:
                raise queue._lost(message) from None
            pending = entry.pending
            raise

    return (yield from _settled(queue, group, attempt))


def _shorten(queue: Queue[Any], together: Transaction, message: Message, pending: int) -> None:
    """Count a message that leaves its group, of which so many are left."""
    key, is_held = queue._key(message.entry, "GROUP"), QueueEntry.claim == message.receipt
    if pending == 1:
        together.delete(queue._entries, when=is_held & (QueueEntry.pending == 1), **key)
        return
    changes = [QueueEntry.pending.add(-1), QueueEntry.due.set(queue._after(0))]
    changes += [QueueEntry.claim.remove(), QueueEntry.attempts.set(0), QueueEntry.reason.remove()]
    more = in_place(message) & is_held & (QueueEntry.pending > 1)
    together.update(queue._entries, *changes, when=more, **key)


def first(queue: Queue[Any], group: str) -> Steps[QueueMessage | None]:
    """The message at the head of a group."""
    asked = QueueMessage.queue == queue.name, QueueMessage.group == group
    return queue.calls.first(queue._messages.primary.where(*asked).consistent().limit(1))


def put_before(failed: TransactionFailed) -> str:
    """The message that was put with a token, the second write of its transaction; raises any other failure."""
    failure = failed.failures.get(1)
    if not isinstance(failure, AlreadyExists):
        raise failed
    earlier: str = failure.current.message
    return earlier


def _entry(queue: Queue[Any], group: str) -> Steps[QueueEntry | None]:
    return queue.calls.get(queue._entries, consistent=True, **queue._key(group, "GROUP"))


def _settled(queue: Queue[Any], group: str, attempt: Callable[[], Steps[R]]) -> Steps[R]:
    return retry_on_conflict(attempt, f"to group {group!r} of {queue.name!r}", "try again later")
