"""Claiming: one consumer gets a message, and many do not all fight for the first.

An entry is claimed by making it due when the claim runs out, on the condition that it is still due when it was
seen to be. Who loses one takes the next of the candidates that were read, and for a while begins with any of
the first few.
"""

from __future__ import annotations

import contextlib
import functools
import random
import uuid
from typing import TYPE_CHECKING, Any, Final

from isotone.errors import ConditionFailed, IsotoneError, LeaseLost
from isotone.model import Query, Steps
from isotone.structures.queue import groups, outcomes
from isotone.structures.queue.entities import Message, QueueEntry, in_place, message_of

if TYPE_CHECKING:
    from isotone.structures.queue.queue import Queue

_SPREAD: Final = 5  # further candidates that a claim reads, for when others are faster
_ELBOWED: Final = 8  # among how many more to choose when another was faster; one less when none was
_MOST_CROWDED: Final = 64
_UNACKNOWLEDGED: Final = "nobody acknowledged it, in any of its attempts"


class Claims:
    """The claims of one consumer, which knows how crowded it was."""

    def __init__(self, queue: Queue[Any]) -> None:
        self._queue = queue
        self._crowd = 0  # how many beyond the first to choose among
        # Or as many as those who put declare, once such a message is seen.
        self._levels = queue.priorities
        # Making a query takes longer than asking it in memory.
        self._first = functools.lru_cache(maxsize=256)(self._asked)

    def claim(self, most: int, hold: float) -> Steps[list[Message]]:
        """Up to so many messages, of the highest priority first, of shards in turn."""
        queue, found = self._queue, list[Message]()
        begin, levels = random.randrange(queue.shards), self._levels
        try:
            for priority in reversed(range(levels)):
                for step in range(queue.shards):
                    shard = (begin + step) % queue.shards
                    yield from self._claim_in(shard, priority, most, hold, found)
                    if len(found) >= most:
                        return found
            # What waits for its time may have hidden the rest.
            if self._levels > levels and not found:
                return (yield from self.claim(most, hold))
        except IsotoneError:
            if not found:
                raise  # else what is claimed already is not to wait until its claim runs out
        return found

    def _claim_in(
        self, shard: int, priority: int, most: int, hold: float, found: list[Message]
    ) -> Steps[None]:
        """Claim the first that are due; where others claim as well, any of the first few."""
        is_highest = priority == self._levels - 1
        several = most - len(found) + max(_SPREAD, self._crowd)
        query = self._first(shard, priority, is_highest, several)
        now, entries = self._queue._after(0), (yield from self._queue.calls.all(query))
        if entries:
            self._levels = max(self._levels, entries[0].priority + 1)
        candidates = [each for each in entries if each.due <= now]
        while candidates and len(found) < most:
            place = random.randrange(min(self._crowd + 1, len(candidates)))
            message = yield from self._take(candidates.pop(place), hold)
            if message is None:
                self._crowd = min(self._crowd + _ELBOWED, _MOST_CROWDED)
                continue
            self._crowd = max(self._crowd - 1, 0)
            if message.attempts <= self._queue.attempts:
                found.append(message)
                continue
            with contextlib.suppress(LeaseLost):  # who has it by now sees to it
                reason = message.reason or _UNACKNOWLEDGED
                yield from outcomes.buried(self._queue, message, reason)

    def _asked(self, shard: int, priority: int, is_highest: bool, most: int) -> Query[QueueEntry]:
        """The first entries of a priority; with the highest one those above it, which were not declared."""
        field = QueueEntry.priority
        which = field >= priority if is_highest else field == priority
        return self._queue._in(shard, "READY", which).limit(most)

    def _take(self, entry: QueueEntry, hold: float) -> Steps[Message | None]:
        """Claim an entry that was due; None where another consumer has."""
        queue, receipt = self._queue, uuid.uuid4().hex
        changes = QueueEntry.due.set(queue._after(hold)), QueueEntry.claim.set(receipt)
        as_seen = in_place(entry) & (QueueEntry.due == entry.due)
        key = queue._key(entry.entry, entry.kind)
        try:
            taken = yield from queue.calls.update(
                queue._entries, *changes, QueueEntry.attempts.add(1), when=as_seen, **key
            )
        except ConditionFailed as refused:
            if refused.current is None or refused.current.claim != receipt:
                return None
            taken = refused.current  # ours: only the answer was lost
        if taken.kind == "MESSAGE":
            return message_of(taken)
        head = yield from groups.first(queue, taken.entry)
        return None if head is None else message_of(taken, head)
