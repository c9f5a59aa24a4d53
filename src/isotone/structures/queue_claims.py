"""Claims of a queue: which message a consumer gets next, how it avoids races; the last attempt, then `bury`.

Each claim reads the first due entries of a shard, by priority, and writes one after the other, on the condition that
its due time is as it was read. A consumer that loses a race chooses at random among more entries for a while, so that
consumers do not all compete for the first one.

An item that is not a valid message is skipped and logged. A message whose time of the `put` alone is invalid is buried by
the claim that finds it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import random
import uuid
from collections.abc import Callable
from typing import Final

from isotone.errors import ConditionFailed, InvalidItem, IsotoneError, LeaseLost, NotFound
from isotone.model import Calls, Query, Steps
from isotone.structures.queue_messages import (
    Message,
    QueueEntry,
    QueueMessage,
    QueuePlan,
    in_place,
    message_of,
)
from isotone.structures.structure import after

Bury = Callable[[Message, str], Steps[None]]
"""Makes a message a dead letter, for a reason."""

_LOGGER: Final = logging.getLogger("isotone.queue")
_UNACKNOWLEDGED: Final = "no consumer acknowledged it in any of its attempts"
_EXTRA_CANDIDATES: Final = 5  # further candidates that a claim reads
_CANDIDATE_STEP: Final = 8  # the number of candidates is rounded up to a multiple of this
_CONTENTION_STEP: Final = 8  # candidates added after a lost race; one less after a won one
_MAX_CONTENTION: Final = 64
_MAX_REPORTED: Final = 1000  # invalid items that a consumer logs


class InvalidMessages:
    """Logs each invalid item once; the messages after it are still read."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._logged: set[str] = set()

    def skip(self, error: InvalidItem) -> None:
        """Log an invalid item, unless it was logged before."""
        text = str(error)
        if text not in self._logged and len(self._logged) < _MAX_REPORTED:
            self._logged.add(text)
            _LOGGER.error("queue %r has an item that is not a valid message: %s", self._queue, text)


class QueueClaims:
    """The claims of one consumer.

    `attempts` is how often a message is delivered; the next claim after that passes it to `bury`. Items in `invalid`
    are skipped.
    """

    def __init__(
        self,
        calls: Calls,
        plan: QueuePlan,
        priorities: int,
        attempts: int,
        bury: Bury,
        invalid: InvalidMessages,
    ) -> None:
        self._calls = calls
        self._plan = plan
        self._attempts = attempts
        self._bury = bury
        self._contention = 0  # number of entries beyond the first to choose among
        self._declared = priorities
        self._levels = priorities  # raised while messages show that other processes declare more
        self._invalid = invalid
        self._candidates = functools.lru_cache(maxsize=256)(self._candidates_of)

    def claim(self, most: int, hold: float) -> Steps[list[Message]]:
        """Claim messages, of the highest priority first, from the shards in turn."""
        claimed: list[Message] = []
        try:
            yield from self._sweep(most, hold, claimed)
        except IsotoneError as error:
            if not claimed:
                raise
            # The messages are already claimed, so return them; if the error lasts, a later claim
            # raises it.
            _LOGGER.warning(
                "a claim of %r ended after %d of %d messages",
                *(self._plan.queue, len(claimed), most),
                exc_info=error,
            )
        return claimed

    def _sweep(self, most: int, hold: float, claimed: list[Message]) -> Steps[None]:
        """Claim from each priority and shard, until there are enough messages."""
        shards, levels, seen = self._plan.shards, self._levels, self._declared
        begin = random.randrange(shards)
        for priority in reversed(range(levels)):
            for step in range(shards):
                shard, is_highest = (begin + step) % shards, priority == levels - 1
                query = self._candidates(
                    shard, priority, is_highest, self._number_to_read(most, claimed)
                )
                now, entries = after(self._calls, 0), (yield from self._calls.all(query))
                if entries:
                    seen = max(seen, entries[0].priority + 1)
                due = [entry for entry in entries if entry.due <= now]
                yield from self._claim_of(due, most, hold, claimed)
                self._levels = max(seen, priority + 1)  # the levels above are empty
                if len(claimed) >= most:
                    return
        # Messages of undeclared higher priorities that are not due may have hidden the rest.
        if seen > levels and not claimed:
            yield from self._sweep(most, hold, claimed)

    def _number_to_read(self, most: int, claimed: list[Message]) -> int:
        """How many entries to read. Only a few different numbers, so that cached queries are reused."""
        wanted = most - len(claimed) + max(_EXTRA_CANDIDATES, self._contention)
        return -(-wanted // _CANDIDATE_STEP) * _CANDIDATE_STEP

    def _claim_of(
        self, candidates: list[QueueEntry], most: int, hold: float, claimed: list[Message]
    ) -> Steps[None]:
        """Claim the first of these entries; under contention, any of the first few."""
        while candidates and len(claimed) < most:
            place = random.randrange(min(self._contention + 1, len(candidates)))
            try:
                taken = yield from self._take(candidates.pop(place), hold)
            except InvalidItem as error:
                self._invalid.skip(error)
                continue
            self._note_race(is_won=taken is not None)
            if taken is None:
                continue
            try:
                message = yield from self._message_in(taken)
            except InvalidItem as error:
                self._invalid.skip(error)
                if taken.attempts > self._attempts:
                    yield from self._bury_invalid(taken, error)
                continue
            if message is None:
                continue
            if message.attempts <= self._attempts:
                claimed.append(message)
            else:
                yield from self._bury_if_held(message, message.reason or _UNACKNOWLEDGED)

    def _candidates_of(
        self, shard: int, priority: int, is_highest: bool, most: int
    ) -> Query[QueueEntry]:
        """The first entries of a priority; the highest includes undeclared ones above it.

        Cached, because building a query takes longer than running it in memory.
        """
        level = QueueEntry.priority
        where = level >= priority if is_highest else level == priority
        return self._plan.in_shard(shard, "READY", where).on_invalid(self._invalid.skip).limit(most)

    def _note_race(self, *, is_won: bool) -> None:
        """Choose among more entries after a lost race, and among fewer after a won one."""
        if is_won:
            self._contention = max(self._contention - 1, 0)
        else:
            self._contention = min(self._contention + _CONTENTION_STEP, _MAX_CONTENTION)

    def _take(self, entry: QueueEntry, hold: float) -> Steps[QueueEntry | None]:
        """Claim an entry; None if another consumer has claimed it."""
        receipt = uuid.uuid4().hex
        changes = [QueueEntry.due.set(after(self._calls, hold)), QueueEntry.claim.set(receipt)]
        as_read = in_place(entry) & (QueueEntry.due == entry.due)
        key = self._plan.key(entry.entry, entry.kind)
        try:
            return (
                yield from self._calls.update(
                    self._plan.entries, *changes, QueueEntry.attempts.add(1), when=as_read, **key
                )
            )
        except ConditionFailed as refused:
            if refused.current is None or refused.current.claim != receipt:
                return None
            taken: QueueEntry = refused.current  # the response to the first request was lost
            return taken

    def _message_in(self, taken: QueueEntry) -> Steps[Message | None]:
        """The message of a claimed entry; for a group its first one, None if the group has none."""
        if taken.kind == "MESSAGE":
            return message_of(taken)
        head = yield from self._calls.first(self._plan.first_of(taken.entry))
        if head is not None:
            return message_of(taken, head)
        # The items of the messages were deleted by other means. The group ends, so that a new one
        # can begin.
        _LOGGER.warning("group %r of %r has no messages; it ends", taken.entry, self._plan.queue)
        as_claimed = (QueueEntry.claim == taken.claim) & (QueueEntry.last == taken.last)
        with contextlib.suppress(ConditionFailed):  # a message was put meanwhile
            group = self._plan.group_key(taken.entry)
            yield from self._calls.delete(group, when=as_claimed)
        return None

    def _bury_if_held(self, message: Message, reason: str) -> Steps[None]:
        with contextlib.suppress(LeaseLost):  # another consumer has it
            yield from self._bury(message, reason)

    def _bury_invalid(self, taken: QueueEntry, error: InvalidItem) -> Steps[None]:
        """Bury a message whose time of the `put` is invalid, at the time of the claim; the reason has the value.

        A message with other invalid attributes stays as it is, and its claims are skipped.
        """
        if error.field != "put_at":
            return
        plan, now = self._plan, after(self._calls, 0)
        try:
            if taken.kind == "MESSAGE":
                is_held = QueueEntry.claim == taken.claim
                taken = yield from self._calls.update(
                    plan.entries, QueueEntry.put_at.set(now), when=is_held, **plan.key(taken.entry)
                )
            else:
                numbers = plan.first_of(taken.entry).select(QueueMessage.number)
                head = yield from self._calls.first(numbers)
                if head is None:
                    return
                key = plan.message_key(taken.entry, head.number)
                yield from self._calls.update(plan.messages, QueueMessage.put_at.set(now), **key)
            message = yield from self._message_in(taken)
        except (ConditionFailed, NotFound):  # another consumer has it
            return
        except InvalidItem as further:
            self._invalid.skip(further)
            return
        if message is not None:
            yield from self._bury_if_held(message, str(error))
