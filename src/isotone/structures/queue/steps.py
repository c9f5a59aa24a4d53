"""How a queue does what it does: each step of it as requests, which `queue` puts together.

Writes that may be overtaken hold what they have seen in their conditions. Whether a claim is still one's own
is a condition as well, on its receipt; so a consumer that was too slow can change nothing.
"""

from __future__ import annotations

import contextlib
import random
import uuid
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from isotone.errors import (
    AlreadyExists,
    ConditionFailed,
    Contended,
    IsotoneError,
    LeaseLost,
    TransactionFailed,
    UsageError,
)
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.table import Table
from isotone.model.ids import uuid7
from isotone.model.reading.patterns import Query
from isotone.model.steps import Pause, Steps
from isotone.model.writing.transactions import Transaction
from isotone.structures.operation import S, Structure
from isotone.structures.queue.entities import (
    Message,
    QueueEntry,
    QueueMessage,
    QueueToken,
    message_of,
    shortened,
)

_SPREAD: Final = 5  # further candidates that a claim reads, for when others are faster
_ELBOWED: Final = 8  # among how many more to choose when another was faster; one less when none was
_MOST_CROWDED: Final = 64
_OVERTAKEN: Final = 40  # attempts of a transaction that others overtake
_LONGEST_PAUSE: Final = 0.25

State = Literal["READY", "DEAD"]
Body = tuple[str, Any]
"""A message's id and what is in it."""


class QueueSteps(Structure[S]):
    """The steps of a queue, which has a name, a number of shards and of attempts, and so on."""

    def __init__(self, store: S, name: str, table: Table) -> None:
        super().__init__(store, table)
        self.name = name
        self.hold = 0.0
        self.attempts = self.shards = self.priorities = 1
        self.remember = 0.0
        self._crowd = 0  # how many beyond the first a claim chooses among
        self._entries = self.kept(QueueEntry)
        self._messages = self.kept(QueueMessage)
        self._tokens = self.kept(QueueToken)

    def _after(self, seconds: float) -> datetime:
        return datetime.fromtimestamp(self.now(), UTC) + timedelta(seconds=seconds)

    # Putting

    def _fresh(self, body: Any, delay: float, priority: int) -> QueueEntry:
        """The entry of a message that stands for itself."""
        return self._entries(
            queue=self.name,
            kind="MESSAGE",
            entry=str(uuid7()),
            shard=random.randrange(self.shards),
            priority=priority,
            due=self._after(delay),
            put_at=self._after(0),
            body=body,
        )

    def _token(self, token: str, message: str) -> QueueToken:
        gone_at = self._after(self.remember)
        return self._tokens(queue=self.name, token=token, message=message, gone_at=gone_at)

    def _append(
        self,
        group: str,
        bodies: Sequence[Body],
        token: str | None = None,
        also: Callable[[Transaction], None] | None = None,
    ) -> Steps[list[str]]:
        """Put messages at the end of a group, in one transaction; their ids, or that of an earlier one."""
        for attempt in range(_OVERTAKEN):
            head = yield from self._head(group)
            last = 0 if head is None else head.last
            together = self.calls.transaction()
            self._lengthen(together, group, head, len(bodies))
            if token is not None:
                together.create(self._token(token, bodies[0][0]))
            for number, (message, body) in enumerate(bodies, start=last + 1):
                together.create(self._grouped(group, number, message, body))
            if also is not None:
                also(together)
            try:
                yield from together.commit()
            except TransactionFailed as failed:
                if token is not None and 1 in failed.failures:
                    return [known(failed, 1)]
                if 0 not in failed.failures:
                    raise
            except Contended:
                pass
            else:
                return [message for message, _ in bodies]
            yield _breath(attempt)
        raise Contended(f"others kept writing to group {group!r} of {self.name!r}; try again later")

    def _lengthen(
        self, together: Transaction, group: str, head: QueueEntry | None, by: int
    ) -> None:
        """Count messages that are put at the end of a group, which is made where there is none."""
        if head is None:
            entry = self._entries(
                queue=self.name,
                kind="GROUP",
                entry=group,
                shard=zlib.crc32(group.encode()) % self.shards,
                due=self._after(0),
                put_at=self._after(0),
                last=by,
                pending=by,
            )
            together.create(entry)
        else:
            changes = QueueEntry.last.set(head.last + by), QueueEntry.pending.add(by)
            together.update(
                self._entries, *changes, when=QueueEntry.last == head.last, **self._key_of(group)
            )

    def _grouped(self, group: str, number: int, message: str, body: Any) -> QueueMessage:
        return self._messages(
            queue=self.name,
            group=group,
            number=number,
            message=message,
            body=body,
            put_at=self._after(0),
        )

    def _key_of(self, group: str) -> dict[str, str]:
        return {"queue": self.name, "kind": "GROUP", "entry": group}

    def _head(self, group: str) -> Steps[QueueEntry | None]:
        return self.calls.get(self._entries, consistent=True, **self._key_of(group))

    # Claiming

    def _claim(self, most: int, hold: float) -> Steps[list[Message]]:
        found: list[Message] = []
        first = random.randrange(self.shards)
        for priority in reversed(range(self.priorities)):
            for step in range(self.shards):
                shard = (first + step) % self.shards
                found += yield from self._claim_in(shard, priority, most - len(found), hold)
                if len(found) >= most:
                    return found
        return found

    def _claim_in(self, shard: int, priority: int, most: int, hold: float) -> Steps[list[Message]]:
        """The first that are due; where others claim as well, any of the first few, not to fight for the first."""
        due = (QueueEntry.priority == priority, QueueEntry.due <= self._after(0))
        query = self._in(shard, "READY", *due).limit(most + max(_SPREAD, self._crowd))
        candidates = yield from self.calls.all(query)
        found: list[Message] = []
        while candidates and len(found) < most:
            place = random.randrange(min(self._crowd + 1, len(candidates)))
            try:
                message = yield from self._take(candidates.pop(place), hold)
            except IsotoneError:
                if not found:
                    raise
                return found  # what is claimed already is not to wait until its claim runs out
            if message is None:
                self._crowd = min(self._crowd + _ELBOWED, _MOST_CROWDED)
                continue
            self._crowd = max(self._crowd - 1, 0)
            if message.attempts > self.attempts:
                reason = message.reason or "nobody acknowledged it, in any of its attempts"
                with contextlib.suppress(LeaseLost):  # who has it by now sees to it
                    yield from self._bury(message, reason)
            else:
                found.append(message)
        return found

    def _in(self, shard: int, state: State, *further: Condition) -> Query[QueueEntry]:
        asked = QueueEntry.queue == self.name, QueueEntry.shard == shard
        return self._entries.ready.where(*asked, QueueEntry.state == state, *further)

    def _take(self, entry: QueueEntry, hold: float) -> Steps[Message | None]:
        """Claim an entry that was due; None where another consumer has."""
        receipt = uuid.uuid4().hex
        changes = [
            QueueEntry.due.set(self._after(hold)),
            QueueEntry.claim.set(receipt),
            QueueEntry.attempts.add(1),
        ]
        as_seen = _in_place(entry.shard, entry.priority) & (QueueEntry.due == entry.due)
        key = {"kind": entry.kind, "entry": entry.entry}
        try:
            taken = yield from self.calls.update(
                self._entries, *changes, when=as_seen, queue=self.name, **key
            )
        except ConditionFailed as refused:
            if refused.current is None or refused.current.claim != receipt:
                return None
            taken = refused.current  # ours: only the answer was lost
        if taken.kind == "MESSAGE":
            return message_of(taken)
        first = self._messages.primary.where(
            QueueMessage.queue == self.name, QueueMessage.group == taken.entry
        )
        head = yield from self.calls.first(first.consistent().limit(1))
        return None if head is None else message_of(taken, head)

    # Of a claimed message

    def _reschedule(self, message: Message, due: datetime, *changes: Change) -> Steps[None]:
        """Make the entry of a message due at another time, where it is still held."""
        self._must_be_claimed(message)
        held = _in_place(message.shard, message.priority) & is_held(message)
        try:
            yield from self.calls.update(
                self._entries,
                QueueEntry.due.set(due),
                *changes,
                when=held,
                queue=self.name,
                **message.key,
            )
        except ConditionFailed as refused:
            # Due when we said, at this very attempt: done by us, but the answer was lost.
            now = refused.current
            if now is None or (now.due, now.attempts) != (
                due,
                min(message.attempts, self.attempts),
            ):
                raise self._lost(message) from None

    def _must_be_claimed(self, message: Message) -> None:
        if message.receipt is None:
            raise UsageError(
                f"message {message.id} of {self.name!r} is a dead letter, and not claimed: redrive() has it "
                "tried anew, acknowledge() deletes it"
            )

    def _bury(self, message: Message, reason: str | None) -> Steps[None]:
        self._must_be_claimed(message)
        attempts, reason = min(message.attempts, self.attempts), shortened(reason)
        if message.group is None:
            changes = [QueueEntry.state.set("DEAD"), QueueEntry.claim.remove()]
            changes += [QueueEntry.reason.set(reason), QueueEntry.attempts.set(attempts)]
            yield from self._reschedule(message, self._after(0), *changes)
            return
        dead = self._entries(
            queue=self.name,
            kind="MESSAGE",
            entry=message.id,
            state="DEAD",
            shard=message.shard,
            due=self._after(0),
            put_at=message.put_at,
            body=message.body,
            attempts=attempts,
            reason=reason,
            group=message.group,
        )
        yield from self._advance(message, lambda together: together.put(dead))

    def _advance(
        self, message: Message, also: Callable[[Transaction], None] | None = None
    ) -> Steps[None]:
        """Take the message out of its group, whose next one is due then; the last one takes the group along."""
        assert message.group is not None
        pending = message.pending
        for attempt in range(_OVERTAKEN):
            together = self.calls.transaction()
            self._shorten(together, message, pending)
            together.delete(
                self._messages, queue=self.name, group=message.group, number=message.number
            )
            if also is not None:
                also(together)
            try:
                yield from together.commit()
            except (TransactionFailed, Contended):
                head = yield from self._head(message.group)
                if head is None or head.claim != message.receipt:
                    raise self._lost(message) from None
                pending = head.pending
                yield _breath(attempt)
            else:
                return
        raise Contended(
            f"others kept writing to group {message.group!r} of {self.name!r}; try again later"
        )

    def _shorten(self, together: Transaction, message: Message, pending: int) -> None:
        """Count a message that leaves its group, of which so many are left; the last one is its end."""
        key = self._key_of(str(message.group))
        if pending == 1:
            last = is_held(message) & (QueueEntry.pending == 1)
            together.delete(self._entries, when=last, **key)
            return
        changes = [QueueEntry.pending.add(-1), QueueEntry.due.set(self._after(0))]
        changes += [QueueEntry.claim.remove(), QueueEntry.attempts.set(0)]
        changes += [QueueEntry.reason.remove()]
        more = _in_place(message.shard, message.priority) & (QueueEntry.pending > 1)
        together.update(self._entries, *changes, when=more & is_held(message), **key)

    def _lost(self, message: Message) -> LeaseLost:
        return LeaseLost(
            f"message {message.id} of {self.name!r} was held until {message.until}, and then claimed by "
            "another consumer, or done: hold it longer, or extend it while it is worked on"
        )

    # Dead letters

    def _dead(self, keys: Sequence[QueueEntry]) -> Steps[list[Message]]:
        """Dead letters as a whole, of which the index has the keys."""
        wanted = [{"queue": self.name, "kind": each.kind, "entry": each.entry} for each in keys]
        found = yield from self.calls.get_many(self._entries, wanted, consistent=True)
        return [message_of(each) for each in found if each is not None and each.state == "DEAD"]

    def _revive(self, message: Message) -> Steps[bool]:
        """Have a dead letter tried anew; whether it was still there."""
        key = {"queue": self.name, "kind": "MESSAGE", "entry": message.id}
        is_dead = QueueEntry.state == "DEAD"
        try:
            if message.group is not None:
                yield from self._append(
                    message.group,
                    [(message.id, message.body)],
                    also=lambda together: together.delete(self._entries, when=is_dead, **key),
                )
                return True
            changes = [QueueEntry.state.set("READY"), QueueEntry.due.set(self._after(0))]
            changes += [QueueEntry.attempts.set(0), QueueEntry.reason.remove()]
            where = (QueueEntry.shard == message.shard) & (QueueEntry.priority == message.priority)
            yield from self.calls.update(self._entries, *changes, when=is_dead & where, **key)
        except (ConditionFailed, TransactionFailed):
            return False
        return True


def is_held(message: Message) -> Condition:
    """The claim by which a message was given is the last one."""
    return QueueEntry.claim == message.receipt


def known(failed: TransactionFailed, place: int) -> str:
    """The message that was put with a token before; raises what else a transaction failed for."""
    failure = failed.failures.get(place)
    if not isinstance(failure, AlreadyExists):
        raise failed
    earlier: str = failure.current.message
    return earlier


def _in_place(shard: int, priority: int) -> Condition:
    """Tells the update where in the index the entry is, so that it has to read nothing."""
    return (
        (QueueEntry.state == "READY")
        & (QueueEntry.shard == shard)
        & (QueueEntry.priority == priority)
    )


def _breath(attempt: int) -> Pause:
    return Pause(random.uniform(0, min(_LONGEST_PAUSE, 0.005 * 2**attempt)))
