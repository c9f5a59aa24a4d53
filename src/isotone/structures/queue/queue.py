"""A durable queue: each message is claimed by one consumer at a time, and tried again where that fails.

    mails = Queue(store, "mails")
    mails.put({"to": "ann@example.com"})
    for message in mails.consume():
        with mails.handling(message):
            send(**message.body)

A message is there until it is acknowledged. Who claims one has it for `hold` seconds; then it is claimed
again, by whoever comes. After so many attempts it is put aside, as a dead letter.

A write that others may overtake has what was seen in its condition; whether a claim is still one's own is a
condition as well, on its receipt. So a consumer that was too slow can change nothing.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from isotone.errors import AlreadyExists, LeaseLost, TransactionFailed, UsageError
from isotone.model import Condition, Query, Steps, Table, Traversal, uuid7
from isotone.structures.arguments import require_non_negative, require_positive, validated
from isotone.structures.leases import LeaseBlock
from isotone.structures.operation import Batches, S, Structure, iteration, operation
from isotone.structures.queue import groups, outcomes
from isotone.structures.queue.bodies import checked, portions
from isotone.structures.queue.claiming import Claims
from isotone.structures.queue.entities import (
    MOST_PRIORITIES,
    MOST_SHARDS,
    Message,
    QueueCounts,
    QueueEntry,
    QueueMessage,
    QueueToken,
    layout,
    message_of,
)
from isotone.structures.retries import poll_intervals, wait

QUEUES: Final = layout()
_DEAD_PAGE: Final = 25  # dead letters, which are read whole


def _patient(attempts: int) -> float:
    """Seconds to wait before a message is tried again: 1, 2, 4 … up to a quarter of an hour."""
    return float(min(2 ** (attempts - 1), 900))


class Queue(Structure[S]):
    """Messages to be done, each by one consumer.

    `hold` is for how many seconds a claim holds, `attempts` how often a message is tried before it is a dead
    letter, `retry_after` for how many seconds one that failed waits, by the number of its attempts. `shards`
    spread it over so many partitions, for all who use it the same. `priorities` is how many levels those who
    put have, `remember` for how many seconds their tokens are kept.
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
        super().__init__(store, table or QUEUES)
        if not (1 <= shards <= MOST_SHARDS and 1 <= priorities <= MOST_PRIORITIES):
            raise UsageError(
                f"a queue has 1 to {MOST_SHARDS} shards and 1 to {MOST_PRIORITIES} priorities, not "
                f"{shards} and {priorities}"
            )
        if attempts < 1:
            raise UsageError(f"a message is tried once or more, not {attempts} times")
        require_positive(hold=hold, remember=remember)
        self.name = name
        self.hold = hold
        self.attempts = attempts
        self.retry_after = retry_after
        self.shards = shards
        self.priorities = priorities
        self.remember = remember
        self._entries = self.kept(QueueEntry)
        self._messages = self.kept(QueueMessage)
        self._tokens = self.kept(QueueToken)
        self._claims = Claims(self)

    layout = staticmethod(layout)

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
            return (yield from groups.append(self, group, [checked(body)], token=token))[0]
        entry = self._fresh(body, delay, priority)
        if token is None:
            with contextlib.suppress(AlreadyExists):  # ours: only the answer was lost
                yield from self.calls.create(entry)
            return entry.entry
        together = self.calls.transaction()
        together.create(entry)
        together.create(self._token(token, entry.entry))
        try:
            yield from together.commit()
        except TransactionFailed as failed:
            return groups.put_before(failed)
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
        """Put messages, and give their ids: 25 to a request; of a group, up to 90 to a transaction.

        Cost: a write for each; of a group, two. Where it fails, a part may have been put.
        """
        self._check(delay, priority, group)
        if isinstance(bodies, str | bytes | dict):
            raise UsageError(f"put_many takes a list of bodies, and put one: not {bodies!r}")
        if group is None:
            entries = [self._fresh(body, delay, priority) for body in bodies]
            yield from self.calls.put_many(entries)
            return [each.entry for each in entries]
        ids: list[str] = []
        for portion in list(portions(map(checked, bodies))):  # all are checked before one is put
            ids += yield from groups.append(self, group, portion)
        return ids

    def _check(self, delay: float, priority: int, group: str | None) -> None:
        require_non_negative(delay=delay)
        if not 0 <= priority < self.priorities:
            raise UsageError(
                f"queue {self.name!r} has priorities 0 to {self.priorities - 1}, not {priority}; "
                "declare Queue(priorities=…)"
            )
        if group is not None and (delay or priority):
            raise UsageError(
                "a message of a group comes when those before it are done: it has no delay and no priority"
            )

    def _fresh(self, body: Any, delay: float, priority: int) -> QueueEntry:
        """The entry of a message that stands for itself."""
        return self._entries(
            **self._key(str(uuid7())),
            shard=random.randrange(self.shards),
            priority=priority,
            due=self._after(delay),
            put_at=self._after(0),
            body=checked(body),
        )

    def _token(self, token: str, message: str) -> QueueToken:
        gone_at = self._after(self.remember)
        return self._tokens(queue=self.name, token=token, message=message, gone_at=gone_at)

    # Claiming

    @operation
    def claim(self, most: int = 1, *, hold: float | None = None) -> Steps[list[Message]]:
        """Have up to so many messages for oneself, for `hold` seconds; none where none is due.

        Cost: a query for each shard and priority until there are enough, and a write for each message; of a
        group, a read of its next message as well. A write more where another consumer was faster.
        """
        require_positive(hold=hold)
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
        """Messages as they come: `for message in queue.consume()`, or `async for`.

        Looks again at most `poll` seconds after it found nothing. Ends when `until()` is true, or when there
        was nothing for `idle` seconds. With a larger `batch`, some are held that are not worked on yet.
        """
        require_positive(hold=hold)
        require_non_negative(poll=poll, idle=idle)
        if batch < 1:
            raise UsageError(f"a batch is of one message or more, not of {batch}")
        held, idled, naps = self.hold if hold is None else hold, 0.0, poll_intervals(poll)
        while not until():
            if (yield self._claims.claim(batch, held)):
                idled, naps = 0.0, poll_intervals(poll)
                continue
            if idle is not None and idled >= idle:
                return
            nap = next(naps)
            yield _rest(nap)
            idled += nap

    # What becomes of a message that was claimed

    @validated
    def handling(
        self, message: Message, *, keep: bool = False, raising: bool = False
    ) -> LeaseBlock[Message, bool, S]:
        """A `with` or `async with` block that handles a message: acknowledged at its end.

        Where it raises, the message is given back with the error as its reason, to be tried after
        `retry_after`; the error is logged to `isotone.queue`, and the program goes on behind the block. What is
        no `Exception` (an interruption, a cancellation) goes on out of it, and with `raising` so does any error,
        which is not logged then. With `keep`, the message is held for as long as the block runs: it is extended
        at its beginning, and then three times within `hold`.
        """
        return LeaseBlock(
            self.store,
            begin=lambda: outcomes.begun(self, message, keep),
            end=lambda error: outcomes.ended(self, message, error, raising),
            renew=(lambda: outcomes.extended(self, message, self.hold)) if keep else None,
            every=self.hold / 3,
        )

    @operation
    def acknowledge(self, message: Message) -> Steps[None]:
        """The message is done, and goes. Cost: one write; of a group, a transaction of two.

        Raises `LeaseLost` where it was not held long enough, and somebody else has claimed it. A dead letter
        is deleted.
        """
        return outcomes.acknowledged(self, message)

    @operation
    def extend(self, message: Message, hold: float | None = None) -> Steps[Message]:
        """Hold a message for so many seconds from now; the message as it is then. Cost: one write."""
        require_positive(hold=hold)
        return outcomes.extended(self, message, self.hold if hold is None else hold)

    @operation
    def give_back(
        self, message: Message, *, delay: float = 0.0, reason: str | None = None
    ) -> Steps[None]:
        """Let the message be claimed again, after so many seconds; a group waits for it. Cost: one write.

        It becomes a dead letter where that was the last of its attempts.
        """
        require_non_negative(delay=delay)
        return outcomes.given_back(self, message, delay, reason)

    @operation
    def bury(self, message: Message, reason: str | None = None) -> Steps[None]:
        """Make the message a dead letter at once. Cost: one write; of a group, a transaction of three."""
        return outcomes.buried(self, message, reason)

    # Dead letters, and how it is going

    @iteration
    def dead_letters(self) -> Batches[Message]:
        """The dead letters, of each shard by priority and age. Cost: a query for 25, and a read of each."""
        for shard in range(self.shards):
            traversal = self._dead_in(shard)
            while not traversal.is_over:
                yield self._letters(traversal)

    @operation
    def redrive(self, most: int | None = None) -> Steps[int]:
        """Have dead letters tried anew, those of a group behind its others; how many.

        Cost: a query for 25, and a read and a write for each.
        """
        moved, began = 0, self._after(0)
        for shard in range(self.shards):
            traversal = self._dead_in(shard)
            while not traversal.is_over:
                for letter in (yield from self._letters(traversal)):
                    if most is not None and moved >= most:
                        return moved
                    if letter.until <= began:  # else it has failed again meanwhile
                        moved += yield from outcomes.revived(self, letter)
        return moved

    def _dead_in(self, shard: int) -> Traversal[QueueEntry]:
        return self.calls.traverse(self._in(shard, "DEAD").page_size(_DEAD_PAGE))

    def _letters(self, traversal: Traversal[QueueEntry]) -> Steps[list[Message]]:
        """The next dead letters as a whole; the index has but their keys."""
        keys = [self._key(each.entry) for each in (yield from traversal.step())]
        found = yield from self.calls.get_many(self._entries, keys, consistent=True)
        return [message_of(each) for each in found if each is not None and each.state == "DEAD"]

    @operation
    def counts(self) -> Steps[QueueCounts]:
        """How many messages there are, in which state. Cost: a query of all of the index's small entries."""
        counts = QueueCounts()
        for shard in range(self.shards):
            traversal = self.calls.traverse(self._in(shard, "READY"))
            while not traversal.is_over:
                entries, now = (yield from traversal.step()), self._after(0)
                for entry in entries:
                    counts.add(entry, now)
            counts.dead += yield from self.calls.count(self._in(shard, "DEAD"))
        return counts

    # What all of it is made of

    def _after(self, seconds: float) -> datetime:
        return datetime.fromtimestamp(self.now(), UTC) + timedelta(seconds=seconds)

    def _key(self, entry: str, kind: str = "MESSAGE") -> dict[str, Any]:
        return {"queue": self.name, "kind": kind, "entry": entry}

    def _in(
        self, shard: int, state: Literal["READY", "DEAD"], *further: Condition
    ) -> Query[QueueEntry]:
        asked = QueueEntry.queue == self.name, QueueEntry.shard == shard
        return self._entries.ready.where(*asked, QueueEntry.state == state, *further)

    def _lost(self, message: Message) -> LeaseLost:
        return LeaseLost(
            f"message {message.id} of {self.name!r} was held until {message.until}, and then claimed by "
            "another consumer, or done: hold it longer, or extend it while it is worked on"
        )


def _rest(seconds: float) -> Steps[list[Message]]:
    yield from wait(seconds)
    return []
