"""What becomes of a message that was claimed: done, given back, dead, and tried anew.

Each write holds in its condition that the claim is still the last one, by its receipt. One that is sent again
because its answer was lost is refused for that, and known by what it has left.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from isotone.errors import ConditionFailed, LeaseLost, UsageError
from isotone.model import Change, Steps
from isotone.structures.arguments import require_non_negative
from isotone.structures.queue import groups
from isotone.structures.queue.entities import Message, QueueEntry, in_place, is_dead

if TYPE_CHECKING:
    from isotone.structures.queue.queue import Queue

_LOGGER: Final = logging.getLogger("isotone.queue")
_LONGEST_REASON: Final = 1000  # characters: it has to fit into the item, beside the body


def acknowledged(queue: Queue[Any], message: Message) -> Steps[None]:
    """It goes: also a dead letter, unless that is tried anew."""
    is_claimed = message.receipt is not None
    if message.group is not None and is_claimed:
        yield from groups.advance(queue, message)
        return
    theirs = QueueEntry.claim == message.receipt if is_claimed else is_dead
    try:
        yield from queue.calls.delete(queue._entries, when=theirs, **queue._key(message.id))
    except ConditionFailed as refused:
        if is_claimed and refused.current is not None:  # else it is gone, maybe by us
            raise queue._lost(message) from None


def extended(queue: Queue[Any], message: Message, hold: float) -> Steps[Message]:
    """Held for so long from now."""
    until = queue._after(hold)
    yield from _rescheduled(queue, message, until)
    return replace(message, until=until)


def given_back(
    queue: Queue[Any], message: Message, delay: float, reason: str | None
) -> Steps[None]:
    """To be claimed again, or dead where that was the last of its attempts."""
    if message.attempts >= queue.attempts:
        yield from buried(queue, message, reason)
        return
    changes = QueueEntry.claim.remove(), QueueEntry.reason.set(_shortened(reason))
    yield from _rescheduled(queue, message, queue._after(delay), *changes)


def buried(queue: Queue[Any], message: Message, reason: str | None) -> Steps[None]:
    """A dead letter; that of a group leaves it, and becomes an entry of its own."""
    now, attempts = queue._after(0), min(message.attempts, queue.attempts)
    if message.group is None:
        changes = [QueueEntry.state.set("DEAD"), QueueEntry.claim.remove()]
        changes += [QueueEntry.reason.set(_shortened(reason)), QueueEntry.attempts.set(attempts)]
        yield from _rescheduled(queue, message, now, *changes)
        return
    _check_claimed(queue, message)
    letter = queue._entries(
        state="DEAD",
        shard=message.shard,
        due=now,
        put_at=message.put_at,
        body=message.body,
        attempts=attempts,
        reason=_shortened(reason),
        group=message.group,
        **queue._key(message.id),
    )
    yield from groups.advance(queue, message, letter)


def revived(queue: Queue[Any], letter: Message) -> Steps[bool]:
    """A dead letter is tried anew; whether it was still there."""
    if letter.group is not None:
        return bool((yield from groups.append(queue, letter.group, [letter.body], letter=letter)))
    try:
        changes = [QueueEntry.state.set("READY"), QueueEntry.due.set(queue._after(0))]
        changes += [QueueEntry.attempts.set(0), QueueEntry.reason.remove()]
        place = QueueEntry.shard == letter.shard, QueueEntry.priority == letter.priority
        when = is_dead & place[0] & place[1]
        yield from queue.calls.update(queue._entries, *changes, when=when, **queue._key(letter.id))
    except ConditionFailed:
        return False
    return True


def _rescheduled(
    queue: Queue[Any], message: Message, due: datetime, *changes: Change
) -> Steps[None]:
    """The entry of a message is due at another time, where it is still held."""
    _check_claimed(queue, message)
    key = queue._key(message.entry, "MESSAGE" if message.group is None else "GROUP")
    held = in_place(message) & (QueueEntry.claim == message.receipt)
    try:
        yield from queue.calls.update(
            queue._entries, QueueEntry.due.set(due), *changes, when=held, **key
        )
    except ConditionFailed as refused:
        # Due when we said, at this very attempt: done by us, but the answer was lost.
        now, attempts = refused.current, min(message.attempts, queue.attempts)
        if now is None or (now.due, now.attempts) != (due, attempts):
            raise queue._lost(message) from None


def _check_claimed(queue: Queue[Any], message: Message) -> None:
    if message.receipt is None:
        raise UsageError(
            f"message {message.id} of {queue.name!r} is a dead letter, and not claimed: redrive() has it "
            "tried anew, acknowledge() deletes it"
        )


def _shortened(reason: str | None) -> str | None:
    """A reason as it can be kept: the texts of errors are of any length, and may be halves of characters."""
    if reason is None:
        return None
    return reason[:_LONGEST_REASON].encode(errors="replace").decode()


# A block that handles a message


def begun(queue: Queue[Any], message: Message, keep: bool) -> Steps[Message]:
    """The message as it is handled: where it is kept, held anew, whatever has passed since it was claimed."""
    return (yield from extended(queue, message, queue.hold)) if keep else message


def ended(
    queue: Queue[Any], message: Message, error: BaseException | None, raising: bool
) -> Steps[bool]:
    """It is acknowledged, or given back for what the block raised; whether that goes no further."""
    if error is None:
        yield from acknowledged(queue, message)
        return False
    if not isinstance(error, Exception):  # not the message's fault, so it need not wait
        yield from given_back(queue, message, 0.0, f"interrupted by {type(error).__name__}")
        return False
    if not raising:
        _LOGGER.warning(
            "attempt %d at message %s of %r failed",
            message.attempts,
            message.id,
            queue.name,
            exc_info=error,
        )
    delay, reason = queue.retry_after(message.attempts), f"{type(error).__name__}: {error}"
    require_non_negative(retry_after=delay)
    with contextlib.suppress(LeaseLost):  # then somebody else has it
        yield from given_back(queue, message, delay, reason)
    return not raising
