"""A durable queue: each message is claimed by one consumer at a time, and tried again where that fails.

    mails = Queue(store, "mails")
    mails.put({"to": "ann@example.com"})
    for message in mails.consume():
        with mails.handling(message):
            send(**message.body)

A message is there until it is acknowledged. Who claims one has it for `hold` seconds; then it is claimed
again, by whoever comes. After so many attempts it is put aside, as a dead letter.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from isotone.errors import AlreadyExists, ConditionFailed, TransactionFailed, UsageError
from isotone.model.declaring.table import Table
from isotone.model.ids import uuid7
from isotone.model.steps import Pause, Steps
from isotone.structures.operation import Batches, S, iteration, operation
from isotone.structures.queue.entities import (
    MOST_PRIORITIES,
    MOST_SHARDS,
    Message,
    QueueCounts,
    QueueEntry,
    layout,
    shortened,
)
from isotone.structures.queue.handling import Handling
from isotone.structures.queue.steps import QueueSteps, is_held, known

QUEUES: Final = layout()
_TOGETHER: Final = 90  # messages of a group that one transaction puts
_PAGE: Final = 25
_FIRST_PAUSE: Final = 0.05  # seconds between two looks at an empty queue; doubled, with jitter


def _patient(attempts: int) -> float:
    """Seconds to wait before a message is tried again: 1, 2, 4 … up to a quarter of an hour."""
    return float(min(2 ** (attempts - 1), 900))


class Queue(QueueSteps[S]):
    """Messages to be done, each by one consumer.

    `hold` is for how many seconds a claim holds, `attempts` how often a message is tried before it is a dead
    letter, `retry_after` for how many seconds one that failed waits, by the number of its attempts. `shards`
    spread it over so many partitions, `priorities` is how many levels there are, `remember` for how many
    seconds tokens are kept.
    """

    def __init__(
        self,
        store: S,
        name: str,
        *,
        hold: float = 60.0,
        attempts: int = 5,
        retry_after: Callable[[int], float] = _patient,
        shards: int = 1,
        priorities: int = 1,
        remember: float = 300.0,
        table: Table | None = None,
    ) -> None:
        super().__init__(store, name, table or QUEUES)
        if not (1 <= shards <= MOST_SHARDS and 1 <= priorities <= MOST_PRIORITIES):
            raise UsageError(
                f"a queue has 1 to {MOST_SHARDS} shards and 1 to {MOST_PRIORITIES} priorities, not "
                f"{shards} and {priorities}"
            )
        if hold <= 0 or attempts < 1:
            raise UsageError(
                f"a message is held for more than 0 seconds and tried once or more, not {hold:g} and {attempts}"
            )
        self.hold = hold
        self.attempts = attempts
        self.retry_after = retry_after
        self.shards = shards
        self.priorities = priorities
        self.remember = remember

    @staticmethod
    def layout(name: str = "queues") -> Table:
        """A table in which queues can live; its index has what claiming and counting have to know."""
        return layout(name)

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
        """Put a message, and give its id.

        It can be claimed after `delay` seconds; a higher `priority` comes first. Messages of a `group` are done
        one after the other, in the order in which they were put. With a `token` that was used before, nothing
        is put, and the id is that of the message which was. Cost: one write; of a group a read and a
        transaction of two writes; with a token a transaction, of one more.
        """
        self._check(delay, priority, group)
        if group is not None:
            ids = yield from self._append(group, [(str(uuid7()), body)], token)
            return ids[0]
        entry = self._fresh(body, delay, priority)
        if token is None:
            with contextlib.suppress(AlreadyExists):  # ours: only the answer was lost
                yield from self.calls.create(entry)
            return entry.entry
        together = self.calls.transaction()
        together.create(self._token(token, entry.entry))
        together.create(entry)
        try:
            yield from together.commit()
        except TransactionFailed as failed:
            return known(failed, 0)
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
        """Put messages, and give their ids: 25 to a request; of a group, 90 to a transaction.

        Cost: a write for each; of a group, two. Where it fails, a part may have been put.
        """
        self._check(delay, priority, group)
        if group is None:
            entries = [self._fresh(body, delay, priority) for body in bodies]
            yield from self.calls.put_many(entries)
            return [each.entry for each in entries]
        messages = [(str(uuid7()), body) for body in bodies]
        for at in range(0, len(messages), _TOGETHER):
            yield from self._append(group, messages[at : at + _TOGETHER])
        return [message for message, _ in messages]

    def _check(self, delay: float, priority: int, group: str | None) -> None:
        if not 0 <= priority < self.priorities:
            raise UsageError(
                f"queue {self.name!r} has priorities 0 to {self.priorities - 1}, not {priority}; "
                "declare Queue(priorities=…)"
            )
        if group is not None and (delay or priority):
            raise UsageError(
                "a message of a group comes when those before it are done: it has no delay and no priority"
            )

    # Claiming

    @operation
    def claim(self, most: int = 1, *, hold: float | None = None) -> Steps[list[Message]]:
        """Have up to so many messages for oneself, for `hold` seconds; none where none is due.

        Cost: a query for each shard and priority until there are enough, and a write for each message; of a
        group, a read of its next message as well. A write more where another consumer was faster.
        """
        return (yield from self._claim(most, self.hold if hold is None else hold))

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
        """Messages as they come: `for message in queue.consume()`, or `async for`.

        Looks again at most `poll` seconds after it found nothing. Ends when `until()` is true, or when there
        was nothing for `idle` seconds. With a larger `batch`, some are held that are not worked on yet.
        """
        held, idled, pause = self.hold if hold is None else hold, 0.0, min(_FIRST_PAUSE, poll)
        while not until():
            found = yield self._claim(batch, held)
            if found:
                idled, pause = 0.0, min(_FIRST_PAUSE, poll)
                continue
            if idle is not None and idled >= idle:
                return
            nap = random.uniform(pause / 2, pause)
            yield _rest(nap)
            idled, pause = idled + nap, min(pause * 2, poll)

    def handling(self, message: Message, *, keep: bool = False) -> Handling[S]:
        """A `with` or `async with` block that handles a message: acknowledged at its end.

        Where it raises, the message is given back with the error as its reason, to be tried after
        `retry_after`; the error is logged to `isotone.queue`, and the program goes on behind the block. What is
        no `Exception` (an interruption, a cancellation) goes on out of it. With `keep`, the message is held for
        as long as the block runs: it is extended in the background, three times within `hold`.
        """
        return Handling(self, message, keep=keep)

    # What becomes of a message that was claimed

    @operation
    def acknowledge(self, message: Message) -> Steps[None]:
        """The message is done, and goes. Cost: one write; of a group, a transaction of two.

        Raises `LeaseLost` where it was not held long enough, and somebody else has claimed it. A dead letter
        is deleted.
        """
        if message.receipt is None:
            key = {"queue": self.name, "kind": "MESSAGE", "entry": message.id}
            with contextlib.suppress(ConditionFailed):  # gone, or to be tried anew
                yield from self.calls.delete(self._entries, when=QueueEntry.state == "DEAD", **key)
            return
        if message.group is not None:
            yield from self._advance(message)
            return
        try:
            yield from self.calls.delete(
                self._entries, when=is_held(message), queue=self.name, **message.key
            )
        except ConditionFailed as refused:
            if refused.current is not None:  # else it is done: maybe only the answer was lost
                raise self._lost(message) from None

    @operation
    def extend(self, message: Message, hold: float | None = None) -> Steps[Message]:
        """Hold a message for so many seconds from now; the message as it is then. Cost: one write."""
        until = self._after(self.hold if hold is None else hold)
        yield from self._reschedule(message, until)
        return replace(message, until=until)

    @operation
    def give_back(
        self, message: Message, *, delay: float = 0.0, reason: str | None = None
    ) -> Steps[None]:
        """Let the message be claimed again, after so many seconds; a group waits for it. Cost: one write.

        It becomes a dead letter where that was the last of its attempts.
        """
        if message.attempts >= self.attempts:
            yield from self._bury(message, reason)
            return
        changes = [QueueEntry.claim.remove(), QueueEntry.reason.set(shortened(reason))]
        yield from self._reschedule(message, self._after(delay), *changes)

    @operation
    def bury(self, message: Message, reason: str | None = None) -> Steps[None]:
        """Make the message a dead letter at once. Cost: one write; of a group, a transaction of three."""
        yield from self._bury(message, reason)

    # Dead letters, and how it is going

    @iteration
    def dead_letters(self) -> Batches[Message]:
        """The dead letters, of each shard by priority and age. Cost: a query for 25, and a read of each."""
        for shard in range(self.shards):
            traversal = self.calls.traverse(self._in(shard, "DEAD").page_size(_PAGE))
            while not traversal.is_over:
                yield self._next_dead(traversal.step())

    def _next_dead(self, step: Steps[list[QueueEntry]]) -> Steps[list[Message]]:
        return (yield from self._dead((yield from step)))

    @operation
    def redrive(self, most: int | None = None) -> Steps[int]:
        """Have dead letters tried anew, those of a group behind its others; how many.

        Cost: a query for 25, and a read and a write for each.
        """
        moved, began = 0, self._after(0)
        for shard in range(self.shards):
            traversal = self.calls.traverse(self._in(shard, "DEAD").page_size(_PAGE))
            while not traversal.is_over:
                for message in (yield from self._next_dead(traversal.step())):
                    if most is not None and moved >= most:
                        return moved
                    if message.until <= began:  # else it has failed again meanwhile
                        moved += yield from self._revive(message)
        return moved

    @operation
    def counts(self) -> Steps[QueueCounts]:
        """How many messages there are, in which state. Cost: a query of all of the index's small entries."""
        counts = QueueCounts()
        for shard in range(self.shards):
            traversal = self.calls.traverse(self._in(shard, "READY"))
            while not traversal.is_over:
                for entry in (yield from traversal.step()):
                    counts.add(entry, self._after(0))
            counts.dead += yield from self.calls.count(self._in(shard, "DEAD"))
        return counts


def _rest(seconds: float) -> Steps[list[Message]]:
    yield Pause(seconds)
    return []
