"""Groups of a queue: their messages are handled one after the other, in the order of their `put`.

A group is one entry, which is claimed in place of its first message and counts its messages. The messages are separate,
numbered items. Each is added or removed in one transaction with a change of the entry, on the condition that the entry
is unchanged since it was read. So no two messages have the same number, and none is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from isotone.errors import TransactionFailed
from isotone.model import Calls, Steps, Transaction, uuid7
from isotone.structures.queue_messages import (
    IS_DEAD,
    Message,
    QueueEntry,
    QueuePlan,
    in_place,
)
from isotone.structures.structure import after
from isotone.structures.waits_and_retries import retry_on_conflict

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class QueueGroups:
    """The groups of one queue."""

    calls: Calls
    plan: QueuePlan

    def append(
        self,
        group: str,
        bodies: Sequence[Any],
        *,
        token: str | None = None,
        gone_at: datetime | None = None,
    ) -> Steps[list[str]]:
        """Put messages at the end of a group; returns their ids.

        If the token was used before, returns the earlier message's id. The token is kept until `gone_at`.
        """
        plan, ids = self.plan, [str(uuid7()) for _ in bodies]
        put_at = after(self.calls, 0)

        def attempt() -> Steps[list[str]]:
            tx = self.calls.transaction()
            last = yield from self._extend(tx, group, len(bodies))
            if token is not None and gone_at is not None:
                tx.create(plan.token(token, ids[0], gone_at))
            for number, (message, body) in enumerate(zip(ids, bodies, strict=True), start=last + 1):
                key = plan.message_key(group, number)
                tx.create(plan.messages(message=message, body=body, put_at=put_at, **key))
            try:
                yield from tx.commit()
            except TransactionFailed as failed:
                earlier = plan.put_before(failed)
                if earlier is None:
                    raise  # the entry has changed
                return [earlier]
            return ids

        return (yield from self._retry(group, attempt))

    def append_letter(self, group: str, letter: Message) -> Steps[bool]:
        """Put a dead letter again, at the end of its group; returns whether it still existed."""
        plan = self.plan

        def attempt() -> Steps[bool]:
            tx = self.calls.transaction()
            last = yield from self._extend(tx, group, 1)
            key = plan.message_key(group, last + 1)
            tx.create(
                plan.messages(message=letter.id, body=letter.body, put_at=letter.put_at, **key)
            )
            tx.delete(plan.entries, when=IS_DEAD, **plan.key(letter.id))
            try:
                yield from tx.commit()
            except TransactionFailed as failed:
                if failed.reason_of(plan.group_key(group)) is not None:
                    raise  # the entry has changed
                return False
            return True

        return (yield from self._retry(group, attempt))

    def _extend(self, tx: Transaction, group: str, more: int) -> Steps[int]:
        """Count more messages in a group, or create it; returns the number of its last message before."""
        plan = self.plan
        entry = yield from self._entry(group)
        if entry is None:
            tx.create(plan.group(group, after(self.calls, 0), more))
            return 0
        changes = QueueEntry.last.set(entry.last + more), QueueEntry.pending.add(more)
        tx.update(plan.group_key(group), *changes, when=QueueEntry.last == entry.last)
        return entry.last

    def advance(self, message: Message, letter: QueueEntry | None = None) -> Steps[None]:
        """Remove a message from its group, or make it a dead letter; the next message becomes due.

        The group's entry is deleted with its last message.
        """
        plan, group, pending = self.plan, str(message.group), message.pending

        def attempt() -> Steps[None]:
            nonlocal pending
            tx = self.calls.transaction()
            self._decrement(tx, message, pending)
            tx.delete(plan.messages, **plan.message_key(group, message.number))
            if letter is not None:
                tx.put(letter)
            try:
                yield from tx.commit()
            except TransactionFailed:
                entry = yield from self._entry(group)
                if entry is None or entry.claim != message.receipt:
                    raise plan.lost(message) from None
                pending = entry.pending
                raise

        return (yield from self._retry(group, attempt))

    def _decrement(self, tx: Transaction, message: Message, pending: int) -> None:
        """Decrement the count of a group's messages, from `pending`."""
        entries, key = self.plan.entries, self.plan.key_of(message)
        is_held = QueueEntry.claim == message.receipt
        if pending == 1:
            tx.delete(entries, when=is_held & (QueueEntry.pending == 1), **key)
            return
        changes = [QueueEntry.pending.add(-1), QueueEntry.due.set(after(self.calls, 0))]
        changes += [
            QueueEntry.claim.remove(),
            QueueEntry.attempts.set(0),
            QueueEntry.reason.remove(),
        ]
        has_more = in_place(message) & is_held & (QueueEntry.pending > 1)
        tx.update(entries, *changes, when=has_more, **key)

    def _entry(self, group: str) -> Steps[QueueEntry | None]:
        return self.calls.get(self.plan.group_key(group), consistent=True)

    def _retry(self, group: str, attempt: Callable[[], Steps[R]]) -> Steps[R]:
        what = f"to group {group!r} of {self.plan.queue!r}"
        return retry_on_conflict(attempt, what, "try again later")
