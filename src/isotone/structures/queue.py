"""A durable queue: put, claim, extend, acknowledge, give back, bury; its `counts`; its dead letters.

    mails = Queue(store, "mails")
    mails.put({"to": "ann@example.com"})
    for message in mails.consume():
        with mails.handling(message):
            send(**message.body)

A message stays until it is acknowledged. A claim holds it for `hold` seconds; then any consumer may claim it
again. After too many attempts it becomes a dead letter.

Every write is conditional on what was read: a claim, on the entry's due time; later writes, on the claim's
receipt. So a consumer that was too slow changes nothing. A write that is sent twice because its response was
lost is recognized by the state that it left.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from isotone.errors import (
    AlreadyExists,
    ConditionFailed,
    InvalidItem,
    LeaseLost,
    TransactionFailed,
    UsageError,
)
from isotone.model import (
    Change,
    Global,
    Steps,
    Table,
    Traversal,
    uuid7,
)
from isotone.structures.argument_checks import require_non_negative, require_positive, validated
from isotone.structures.lease_block import LeaseBlock
from isotone.structures.queue_bodies import check_body, split_bodies
from isotone.structures.queue_claims import InvalidMessages, QueueClaims
from isotone.structures.queue_groups import QueueGroups
from isotone.structures.queue_messages import (
    IS_DEAD,
    MAX_PRIORITIES,
    MAX_SHARDS,
    Message,
    QueueCounts,
    QueueEntry,
    QueueMessage,
    QueuePlan,
    QueueToken,
    in_place,
    message_of,
)
from isotone.structures.structure import Batches, S, Structure, iteration, operation
from isotone.structures.waits_and_retries import poll_intervals, wait

_LOGGER: Final = logging.getLogger("isotone.queue")
_DEAD_PAGE: Final = 25  # dead letters per query; whole items are read
_MAX_REASON: Final = 1000  # characters, to fit into the item beside the body


def _default_retry(attempts: int) -> float:
    """The default seconds before the next attempt: 1, 2, 4 … up to a quarter of an hour."""
    return float(min(2 ** (attempts - 1), 900))


def _layout(name: str = "queues") -> Table:
    """A table for queues, with the index that claims and counts use."""
    projection = ("_type", "claim", "attempts", "pending")
    return Table(name, indexes={"queue": Global("QPK", "QSK", projection=projection)})


QUEUES: Final = _layout()


class Queue(Structure[S]):
    """Messages to be handled, each by one consumer at a time.

    - `hold`: seconds for which a claim holds.
    - `attempts`: deliveries after which a message becomes a dead letter.
    - `retry_after`: seconds before a failed message is retried, as a function of the number of attempts.
    - `shards`: partitions over which the queue is spread; the same for all users of the queue.
    - `priorities`: levels of priority that may be given to `put`.
    - `remember`: seconds for which the tokens of `put` are kept.

        >>> mails = Queue(store, "mails")
        >>> created = mails.create_table()
        >>> put = mails.put({"to": "ann"})
        >>> for message in mails.consume(idle=0):
        ...     with mails.handling(message):
        ...         message.body["to"]
        'ann'
    """

    def __init__(
        self,
        store: S,
        name: str,
        *,
        hold: float = 60.0,
        attempts: int = 5,
        retry_after: Callable[[int], float] = _default_retry,
        shards: int = 1,
        priorities: int = 1,
        remember: float = 300.0,
        table: Table | None = None,
    ) -> None:
        super().__init__(store, table or QUEUES)
        if not (1 <= shards <= MAX_SHARDS and 1 <= priorities <= MAX_PRIORITIES):
            raise UsageError(
                f"a queue has 1 to {MAX_SHARDS} shards and 1 to {MAX_PRIORITIES} priorities, not "
                f"{shards} and {priorities}"
            )
        if attempts < 1:
            raise UsageError(f"attempts must be 1 or more, not {attempts}")
        require_positive(hold=hold, remember=remember)
        self.name = name
        self.hold = hold
        self.attempts = attempts
        self.retry_after = retry_after
        self.shards = shards
        self.priorities = priorities
        self.remember = remember
        self._plan = QueuePlan(
            name, shards, self.bind(QueueEntry), self.bind(QueueMessage), self.bind(QueueToken)
        )
        self._groups = QueueGroups(self.calls, self._plan)
        self._invalid = InvalidMessages(name)
        self._claims = QueueClaims(
            self.calls, self._plan, priorities, attempts, self._bury, self._invalid
        )

    @staticmethod
    def layout(name: str = "queues") -> Table:
        """A table for queues, with the index that claims and counts use."""
        return _layout(name)

    # Putting

    @operation
    def put(
        self,
        body: Any,
        *,
        delay: float = 0.0,
        priority: int = 0,
        group: str | None = None,
        token: str | None = None,
    ) -> Steps[str]:
        """Put a message; returns its id.

        - `delay`: seconds before it can be claimed.
        - `priority`: a higher one comes first.
        - `group`: messages of a group are handled one after the other, in the order of their `put`.
        - `token`: if it was used before, nothing is put, and the earlier message's id is returned.

        Cost: one write; in a group, a read and a transaction of two writes; with a token, a transaction of
        one write more.
        """
        self._check_put(delay, priority, group)
        if group is not None:
            gone_at = self.after(self.remember)
            appended = self._groups.append(group, [check_body(body)], token=token, gone_at=gone_at)
            return (yield from appended)[0]
        entry = self._new_entry(body, delay, priority)
        if token is None:
            with contextlib.suppress(AlreadyExists):  # the first response was lost
                yield from self.calls.create(entry)
            return entry.entry
        tx = self.calls.transaction()
        tx.create(entry)
        tx.create(self._plan.token(token, entry.entry, self.after(self.remember)))
        try:
            yield from tx.commit()
        except TransactionFailed as failed:
            earlier = self._plan.put_before(failed)
            if earlier is None:
                raise
            return earlier
        return entry.entry

    @operation
    def put_many(
        self,
        bodies: Iterable[Any],
        *,
        delay: float = 0.0,
        priority: int = 0,
        group: str | None = None,
    ) -> Steps[list[str]]:
        """Put messages; returns their ids. If it fails, some may have been put.

        Cost: a write for each, 25 to a request; in a group two, up to 90 messages to a transaction.
        """
        self._check_put(delay, priority, group)
        if isinstance(bodies, str | bytes | dict):
            raise UsageError(f"put_many takes a list of bodies, not {bodies!r}; put takes one body")
        if group is None:
            entries = [self._new_entry(body, delay, priority) for body in bodies]
            yield from self.calls.put_many(entries)
            return [entry.entry for entry in entries]
        ids: list[str] = []
        chunks = list(split_bodies(map(check_body, bodies)))  # all are checked before any is put
        for chunk in chunks:
            ids += yield from self._groups.append(group, chunk)
        return ids

    # Claiming

    @operation
    def claim(self, most: int = 1, *, hold: float | None = None) -> Steps[list[Message]]:
        """Claim up to `most` messages for `hold` seconds; an empty list if none is due.

        If an error interrupts it, the messages claimed so far are returned, and the error is logged; without any,
        it is raised. Items that are not what a queue writes are skipped, and logged once.

        Cost: a query for each shard and priority until there are enough, and a write for each message; for a
        group, also a read of its next message; another write if another consumer was faster.
        """
        require_positive(hold=hold)
        _require_messages(most=most)
        return self._claims.claim(most, self.hold if hold is None else hold)

    @iteration
    def consume(
        self,
        *,
        batch: int = 1,
        hold: float | None = None,
        poll: float = 1.0,
        idle: float | None = None,
        until: Callable[[], bool] = lambda: False,
    ) -> Batches[Message]:
        """Claim messages as they arrive: `for message in queue.consume()`, or `async for`.

        - `batch`: messages claimed at once. All of them are held from then on.
        - `poll`: the longest pause, in seconds, after an empty claim.
        - `idle`: end after this many seconds without a message.
        - `until`: end when it returns true.
        """
        require_positive(hold=hold)
        require_non_negative(poll=poll, idle=idle)
        _require_messages(batch=batch)
        seconds = self.hold if hold is None else hold
        idled, intervals = 0.0, poll_intervals(poll)
        while not until():
            if (yield self._claims.claim(batch, seconds)):
                idled, intervals = 0.0, poll_intervals(poll)
                continue
            if idle is not None and idled >= idle:
                return
            interval = next(intervals)
            yield _rest(interval)
            idled += interval

    # Handling a claimed message

    @validated
    def handling(
        self, message: Message, *, keep: bool = False, raising: bool = False
    ) -> LeaseBlock[Message, bool, S]:
        """Handle a message in a `with` or `async with` block, and acknowledge it at the end.

        If the block raises, the message is released and retried after `retry_after`, with the error as its
        reason. The error is logged to `isotone.queue`, and raised again only with `raising`. Other exceptions
        than `Exception` (an interruption, a cancellation) are always raised again.

        With `keep`, the message is held as long as the block runs: it is extended at the start, and then
        three times per `hold`.
        """
        return LeaseBlock(
            self.store,
            begin=lambda: self._begin(message, keep),
            end=lambda error: self._end(message, error, raising),
            renew=(lambda: self._extend(message, self.hold)) if keep else None,
            lease=self.hold,
        )

    @operation
    def acknowledge(self, message: Message) -> Steps[None]:
        """Delete a message that is done, or a dead letter unless it was redriven.

        Cost: one write; in a group, a transaction of two. Raises `LeaseLost` if the claim expired and
        another consumer has the message, or has finished it.
        """
        return self._acknowledge(message)

    @operation
    def extend(self, message: Message, hold: float | None = None) -> Steps[Message]:
        """Hold a message for `hold` seconds from now; returns it with the new time. Cost: one write.

        Raises `LeaseLost` if the claim expired and another consumer may have it.
        """
        require_positive(hold=hold)
        return self._extend(message, self.hold if hold is None else hold)

    @operation
    def give_back(
        self, message: Message, *, delay: float = 0.0, reason: str | None = None
    ) -> Steps[None]:
        """Release a message, to be claimed again after `delay` seconds; its group waits for it. Cost: one write.

        After its last attempt it becomes a dead letter.
        """
        require_non_negative(delay=delay)
        return self._give_back(message, delay, reason)

    @operation
    def bury(self, message: Message, reason: str | None = None) -> Steps[None]:
        """Make a message a dead letter. Cost: one write; in a group, a transaction of three."""
        return self._bury(message, reason)

    # Dead letters, and counts

    @iteration
    def dead_letters(self) -> Batches[Message]:
        """The dead letters of each shard, by priority and age. Cost: a query for 25, and a read of each."""
        for shard in range(self.shards):
            traversal = self._dead_in(shard)
            while not traversal.is_over:
                yield self._next_letters(traversal)

    @operation
    def redrive(self, most: int | None = None) -> Steps[int]:
        """Make dead letters available again; returns how many. Those of a group go to its end.

        Cost: a query for 25, and a read and a write for each.
        """
        moved, began = 0, self.after(0)
        for shard in range(self.shards):
            traversal = self._dead_in(shard)
            while not traversal.is_over:
                for letter in (yield from self._next_letters(traversal)):
                    if most is not None and moved >= most:
                        return moved
                    if letter.until <= began:  # otherwise it has failed again in the meantime
                        moved += yield from self._redrive(letter)
        return moved

    @operation
    def counts(self) -> Steps[QueueCounts]:
        """Count the messages by state. Cost: a query of all of the index's small entries."""
        counts = QueueCounts()
        for shard in range(self.shards):
            ready = self._plan.in_shard(shard, "READY").on_invalid("skip")
            traversal = self.calls.traverse(ready)
            while not traversal.is_over:
                entries, now = (yield from traversal.step()), self.after(0)
                for entry in entries:
                    counts.add(entry, now)
            counts.invalid += traversal.stats.invalid
            counts.dead += yield from self.calls.count(self._plan.in_shard(shard, "DEAD"))
        return counts

    # Steps: single messages

    def _check_put(self, delay: float, priority: int, group: str | None) -> None:
        require_non_negative(delay=delay)
        if not 0 <= priority < self.priorities:
            raise UsageError(
                f"priority must be 0 to {self.priorities - 1} in queue {self.name!r}, not {priority}; for more "
                "levels, give Queue(…, priorities=…)"
            )
        if group is not None and (delay or priority):
            raise UsageError(
                "a message of a group follows those before it; it has no delay and no priority"
            )

    def _new_entry(self, body: Any, delay: float, priority: int) -> QueueEntry:
        now, due = self.after(0), self.after(delay)
        return self._plan.entry(str(uuid7()), check_body(body), now, priority=priority, due=due)

    # Steps: outcomes

    def _acknowledge(self, message: Message) -> Steps[None]:
        is_claimed = message.receipt is not None
        if message.group is not None and is_claimed:
            yield from self._groups.advance(message)
            return
        expected = QueueEntry.claim == message.receipt if is_claimed else IS_DEAD
        was_held = self.after(0) < message.until
        try:
            yield from self.calls.delete(
                self._plan.entries, when=expected, **self._plan.key(message.id)
            )
        except ConditionFailed as refused:
            # The message is gone. If our claim was valid, we deleted it, and the response was lost.
            if is_claimed and (refused.current is not None or not was_held):
                raise self._plan.lost(message) from None

    def _extend(self, message: Message, hold: float) -> Steps[Message]:
        until = self.after(hold)
        yield from self._reschedule(message, until)
        return replace(message, until=until)

    def _give_back(self, message: Message, delay: float, reason: str | None) -> Steps[None]:
        if message.attempts >= self.attempts:
            yield from self._bury(message, reason)
            return
        changes = QueueEntry.claim.remove(), QueueEntry.reason.set(_storable(reason))
        yield from self._reschedule(message, self.after(delay), *changes)

    def _bury(self, message: Message, reason: str | None) -> Steps[None]:
        now, attempts = self.after(0), min(message.attempts, self.attempts)
        if message.group is None:
            changes = [QueueEntry.state.set("DEAD"), QueueEntry.claim.remove()]
            changes += [QueueEntry.reason.set(_storable(reason)), QueueEntry.attempts.set(attempts)]
            yield from self._reschedule(message, now, *changes)
            return
        self._check_claimed(message)
        letter = self._plan.entries(
            state="DEAD",
            shard=message.shard,
            due=now,
            put_at=message.put_at,
            body=message.body,
            attempts=attempts,
            reason=_storable(reason),
            group=message.group,
            **self._plan.key(message.id),
        )
        yield from self._groups.advance(message, letter)

    def _redrive(self, letter: Message) -> Steps[bool]:
        """Make a dead letter available again; returns whether it still existed."""
        if letter.group is not None:
            return bool((yield from self._groups.append_letter(letter.group, letter)))
        changes = [QueueEntry.state.set("READY"), QueueEntry.due.set(self.after(0))]
        changes += [QueueEntry.attempts.set(0), QueueEntry.reason.remove()]
        place = (QueueEntry.shard == letter.shard) & (QueueEntry.priority == letter.priority)
        key = self._plan.key(letter.id)
        try:
            yield from self.calls.update(self._plan.entries, *changes, when=IS_DEAD & place, **key)
        except ConditionFailed:
            return False
        return True

    def _reschedule(self, message: Message, due: datetime, *changes: Change) -> Steps[None]:
        """Change when the entry of a message is due; raises `LeaseLost` if it is not held."""
        self._check_claimed(message)
        is_held = in_place(message) & (QueueEntry.claim == message.receipt)
        changes = (QueueEntry.due.set(due), *changes)
        key = self._plan.key_of(message)
        try:
            yield from self.calls.update(self._plan.entries, *changes, when=is_held, **key)
        except ConditionFailed as refused:
            # It is unclaimed, with our due time and attempt: our write succeeded, and the response
            # was lost.
            now, attempts = refused.current, min(message.attempts, self.attempts)
            if now is None or (now.claim, now.due, now.attempts) != (None, due, attempts):
                raise self._plan.lost(message) from None

    def _begin(self, message: Message, keep: bool) -> Steps[Message]:
        return (yield from self._extend(message, self.hold)) if keep else message

    def _end(self, message: Message, error: BaseException | None, raising: bool) -> Steps[bool]:
        """Acknowledge a message, or release it; returns whether the block's error was handled."""
        if error is None:
            yield from self._acknowledge(message)
            return False
        if not isinstance(error, Exception):
            # The message did not cause it, so it is available at once.
            yield from self._give_back(message, 0.0, f"interrupted by {type(error).__name__}")
            return False
        if not raising:
            _LOGGER.warning(
                "attempt %d at message %s of %r failed",
                *(message.attempts, message.id, self.name),
                exc_info=error,
            )
        delay, reason = self.retry_after(message.attempts), f"{type(error).__name__}: {error}"
        require_non_negative(retry_after=delay)
        with contextlib.suppress(LeaseLost):  # another consumer has it
            yield from self._give_back(message, delay, reason)
        return not raising

    def _check_claimed(self, message: Message) -> None:
        if message.receipt is None:
            raise UsageError(
                f"message {message.id} of {self.name!r} is a dead letter and not claimed; redrive() lets it "
                "be tried again, acknowledge() deletes it"
            )

    # Steps: dead letters

    def _dead_in(self, shard: int) -> Traversal[QueueEntry]:
        dead = self._plan.in_shard(shard, "DEAD").on_invalid(self._invalid.skip)
        return self.calls.traverse(dead.page_size(_DEAD_PAGE))

    def _next_letters(self, traversal: Traversal[QueueEntry]) -> Steps[list[Message]]:
        """The next dead letters, as whole items: the index has only their keys. Invalid ones are logged."""
        keys = [self._plan.key(entry.entry) for entry in (yield from traversal.step())]
        try:
            entries = yield from self.calls.get_many(self._plan.entries, keys, consistent=True)
        except InvalidItem:
            entries = yield from self._valid_entries(keys)
        return [
            message_of(entry) for entry in entries if entry is not None and entry.state == "DEAD"
        ]

    def _valid_entries(self, keys: list[dict[str, Any]]) -> Steps[list[QueueEntry | None]]:
        """The entries, read one by one, so that an invalid one hides no other."""
        entries = []
        for key in keys:
            try:
                entries.append(
                    (yield from self.calls.get(self._plan.entries, consistent=True, **key))
                )
            except InvalidItem as error:
                self._invalid.skip(error)
        return entries


def _storable(reason: str | None) -> str | None:
    """A reason in a form that can be stored: not too long, and without halves of surrogate pairs."""
    if reason is None:
        return None
    return reason[:_MAX_REASON].encode(errors="replace").decode()


def _require_messages(**numbers: int) -> None:
    """Raise `UsageError` unless each is a number of messages that can be claimed."""
    for name, number in numbers.items():
        if number < 1:
            raise UsageError(f"{name} must be 1 or more, not {number}")


def _rest(seconds: float) -> Steps[list[Message]]:
    yield from wait(seconds)
    return []
