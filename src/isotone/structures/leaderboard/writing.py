"""How events come into a board: read the entry, join the event to it, and write it if it is still the same.

Each event leaves its mark on the entry: who was refused, and finds the own mark, has written it already, and
only the answer was lost. Where an event is to count once whatever happens, its token is written in the same
transaction; where ranks are kept, so is the change of the ranking.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final

from isotone.errors import AlreadyExists, Contended, TransactionFailed
from isotone.model.calls import Calls
from isotone.model.steps import Steps
from isotone.model.writing.carrying import pause_after
from isotone.model.writing.transactions import Transaction
from isotone.structures.leaderboard.board import Board, Rankings
from isotone.structures.leaderboard.entry import JOINS, Entry, Tally
from isotone.structures.ranking.ranking import Overtaken, Ranking
from isotone.structures.windows import ALL_TIME, Window

ATTEMPTS: Final = 200  # of a write that others overtake
_MARK: Final = 8  # hexadecimal digits; it has to differ from that of one other writer alone
_PATIENCE: Final = 4  # who lost more often waits no longer, or those who come later win for ever


@dataclass(frozen=True, slots=True)
class Token:
    """By what an event is known, and for how long."""

    text: str
    remember: timedelta


class TooLate(Exception):
    """The window of an event is over, or its member has been seen in a newer one."""


class LeaderboardWriting:
    """The steps that write to a board."""

    def __init__(self, calls: Calls, board: Board, rankings: Rankings | None) -> None:
        self._calls = calls
        self._board = board
        self._rankings = rankings

    def join(self, one: Tally, other: Tally) -> Tally:
        """Two tallies as one, the older one first."""
        return JOINS[self._board.score, self._board.best](one, other)

    def add(
        self, member: str, window: Window, tally: Tally, token: Token | None = None
    ) -> Steps[Entry | None]:
        """Bring a tally into a member's entry, and give what is there then; raises `TooLate`."""
        mark = uuid.uuid4().hex[:_MARK]
        for number in range(ATTEMPTS):
            try:
                return (yield from self._add(member, window, tally, token, mark))
            except (TransactionFailed, Overtaken, Contended):
                self._forget(window.label)
            yield pause_after(min(number, _PATIENCE))
        raise Contended(
            f"others wrote {member!r} of the board during each of {ATTEMPTS} attempts; collect events "
            "and write them with record_many(), or try again later"
        )

    def _add(
        self, member: str, window: Window, tally: Tally, token: Token | None, mark: str
    ) -> Steps[Entry | None]:
        found = yield from self._find(member, window)
        if found is not None and found.mark == mark:
            return found
        entry = self._after(found, member, window, tally)
        if entry is found and token is None:
            return entry
        together = self._calls.transaction()
        if token is not None:
            gone_at = self._now() + token.remember
            together.create(
                self._board.tokens(board=self._board.name, token=token.text, gone_at=gone_at)
            )
        if entry is not found:
            entry.mark = mark
            together.put(entry)
            yield from self._rank(together, found, entry)
        try:
            yield from together.commit()
        except TransactionFailed as failed:
            if token is not None and isinstance(failed.failures.get(0), AlreadyExists):
                return (yield from self._find(member, window))
            raise
        return entry

    def remove(self, member: str, window: Window) -> Steps[bool]:
        """Take a member's entry away; whether there was one."""
        for number in range(ATTEMPTS):
            found = yield from self._find(member, window)
            if found is None:
                return False
            together = self._calls.transaction()
            together.delete(found)
            try:
                yield from self._rank(together, found, None)
                yield from together.commit()
            except (TransactionFailed, Overtaken, Contended):
                self._forget(found.window)
            else:
                return True
            yield pause_after(min(number, _PATIENCE))
        raise Contended(f"others wrote {member!r} of the board during each of {ATTEMPTS} attempts")

    def _find(self, member: str, window: Window) -> Steps[Entry | None]:
        key = self._board.key(member, window)
        found: Entry | None = yield from self._calls.get(
            self._board.entries, consistent=True, **key
        )
        return found

    def _rank(
        self, together: Transaction, before: Entry | None, after: Entry | None
    ) -> Steps[None]:
        """Add the change of the ranking, or of two where a member enters its next window."""
        if self._rankings is None:
            return
        leaving = None if before is None else self._board.ranking_key(before)
        entering = None if after is None else self._board.ranking_key(after)
        if before is not None and after is not None and before.window != after.window:
            yield from self._change(together, self._rankings.unknown(before.window), leaving, None)
            leaving = None
        window = after.window if after is not None else before.window if before is not None else ""
        yield from self._change(together, self._rankings.of(window), leaving, entering)

    def _change(
        self, together: Transaction, ranking: Ranking, leaving: str | None, entering: str | None
    ) -> Steps[None]:
        try:
            yield from ranking.change(together, leaving=leaving, entering=entering)
        except Overtaken:
            # A ranking that was dropped has nothing that could leave it, and is not begun again.
            if leaving is None or (yield from ranking.size()):
                raise

    def _forget(self, window: str) -> None:
        if self._rankings is not None:
            self._rankings.forget(window)

    # What becomes of an entry

    def _after(self, found: Entry | None, member: str, window: Window, tally: Tally) -> Entry:
        """The entry with the tally in it; the same one where that changes nothing."""
        until = self._board.gone_at(window, tally.at)
        if until is not None and until <= self._now():
            raise TooLate
        revision = 0 if found is None else found.revision
        if found is not None and found.window != window.label:
            if found.began is not None and found.began > window.start:
                raise TooLate
            found = None  # the member enters its next window
        if found is not None:
            known = Tally(found.total, found.count, found.at)
            tally = self.join(known, tally)
            if tally is known:
                return found
        return self._entry(member, window, tally, revision)

    def _entry(self, member: str, window: Window, tally: Tally, revision: int) -> Entry:
        board, score = self._board, Fraction(tally.total)
        if board.score == "average":
            score /= tally.count
        entry: Entry = board.entries(
            **board.key(member, window),
            member=member,
            window=window.label,
            began=None if window is ALL_TIME else window.start,
            order=f"{window.label}#{board.digits.text(score)}",
            total=tally.total,
            count=tally.count,
            at=tally.at,
            until=board.gone_at(window, tally.at),
        )
        entry.__dict__["revision"] = revision  # the put insists on what was read
        return entry

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._calls.clock.now(), UTC)
