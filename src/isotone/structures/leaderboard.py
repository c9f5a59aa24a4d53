"""Leaderboards: who is first in a window of time, read as the first entries of an index.

An entry is one item of a member, whose place in the index is its window and its score. The score of a
running average follows from the sum and the count in the same item, and is known only to whoever has read
them: an event is therefore one conditional write, which holds the entry to the revision that was read,
and is made again from a new reading where another writer was faster. So sums and counts are exact, and an
entry never stands elsewhere than its own score says.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, get_args

from isotone.errors import Contended, UsageError, VersionConflict
from isotone.model.patterns import Query
from isotone.model.steps import Pause, Steps
from isotone.model.table import Global, Table
from isotone.structures.leaderboard_entry import (
    JOINS,
    Best,
    Digits,
    Entry,
    LeaderboardEntry,
    NamedLeaderboardEntry,
    Score,
    Standing,
    Standings,
    Tally,
    Ties,
    exact,
)
from isotone.structures.leaderboard_reading import Board, LeaderboardReading
from isotone.structures.operation import S, Structure, operation
from isotone.structures.windows import ALL_TIME, Every, Window, Windows

ATTEMPTS: Final = 64  # of a write that others overtake
_LONGEST_PAUSE: Final = 0.25  # seconds


@dataclass(frozen=True, slots=True)
class ScoreEvent:
    """Something that counts for a member: `value` is the sum of `count` things."""

    member: str
    value: int | Decimal
    count: int = 1
    at: datetime | None = None


class Leaderboard(Structure[S]):
    """Members ranked by a score, in windows of time.

        board = Leaderboard(store, score="average", best="lowest", window="quarter-hour")
        board.record("store:187", 373, count=2)
        board.top(10)

    `name`: none for the only board of a table. `score`: the sum of all values, their average, the best or
    the last of them. `digits` and `scale`: how many digits a score has before and behind its point where
    it is ranked. `history`: keep an entry for every window, not only for the newest of each member.
    `expire_after`: how long after its window an entry expires. `shards`: over how many partitions the
    board is spread. `ties`: after two firsts comes a third (`standard`) or a second (`dense`). `ranked`:
    ranks in a few reads, for a transaction with each write.
    """

    def __init__(
        self,
        store: S,
        name: str | None = None,
        *,
        score: Score = "sum",
        best: Best = "highest",
        window: Every = "all time",
        day_starts: time = time(0),
        zone: tzinfo = UTC,
        digits: int = 6,
        scale: int = 0,
        history: bool = False,
        expire_after: timedelta | None = None,
        shards: int = 1,
        ties: Ties = "standard",
        table: Table | None = None,
    ) -> None:
        super().__init__(store, table or Leaderboard.layout())
        _check(name, score, best, shards, ties)
        self.score: Score = score
        self.keeps_history = history
        self.expire_after = expire_after
        self.windows = Windows(window, day_starts=day_starts, zone=zone)
        has_groups = name is not None or shards > 1
        kind = NamedLeaderboardEntry if has_groups else LeaderboardEntry
        self.board = Board(
            name or "", self.kept(kind), has_groups, shards, best, ties, Digits(digits, scale)
        )
        self._reading = LeaderboardReading(self.calls, self.board)

    @staticmethod
    def layout(name: str = "leaderboards") -> Table:
        """A table for leaderboards; one that has these keys and this index will do."""
        return Table(name, indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

    @operation
    def create_table(self) -> Steps[None]:
        """Make the table, where it is not there."""
        yield from self.calls.create_tables(self.table)

    # Writing

    @operation
    def record(
        self, member: str, value: int | Decimal, *, count: int = 1, at: datetime | None = None
    ) -> Steps[Decimal | None]:
        """Count an event; gives the member's score in its window, as it is ranked.

        `value` is the sum of `count` things. None where the event came too late: the member has been seen
        in a newer window, and the board keeps no history. Cost: a consistent read and a write (of an item,
        and of its entry in the index); both again where another writer came in between. Raises
        `Contended` where that does not end.
        """
        return (yield from self._record(ScoreEvent(member, value, count, at)))

    @operation
    def record_many(self, events: Iterable[ScoreEvent]) -> Steps[int]:
        """Count many events; gives how many came too late.

        Those of one member in one window are added up first. Cost: a read and a write for each member and
        window, not for each event.
        """
        tallies: dict[tuple[str, Window], Tally] = {}
        numbers: dict[tuple[str, Window], int] = {}
        for event in events:
            tally = self._tally(event)
            of = event.member, self.windows.at(tally.at)
            tallies[of] = self._join(tallies[of], tally) if of in tallies else tally
            numbers[of] = numbers.get(of, 0) + 1
        late = 0
        for (member, window), tally in sorted(tallies.items(), key=lambda each: each[1].at):
            if (yield from self._add(member, window, tally)) is None:
                late += numbers[member, window]
        return late

    @operation
    def remove(self, member: str, *, at: datetime | None = None) -> Steps[bool]:
        """Take a member off the board; of one with history, off a window. Cost: one write."""
        key = self._key(member, self._window(at))
        return (yield from self.calls.delete(self.board.entries, **key)) is not None

    def _record(self, event: ScoreEvent) -> Steps[Decimal | None]:
        tally = self._tally(event)
        entry = yield from self._add(event.member, self.windows.at(tally.at), tally)
        return None if entry is None else self.board.digits.score(self.board.score_text(entry))

    def _tally(self, event: ScoreEvent) -> Tally:
        if event.count < 1:
            raise UsageError(f"an event counts for 1 or more, not for {event.count}")
        count = event.count if self.score in ("sum", "average") else 1
        return Tally(exact(event.value), count, event.at or self._now())

    def _add(self, member: str, window: Window, tally: Tally) -> Steps[Entry | None]:
        """Bring a tally into a member's entry; None where it is too late."""
        key = self._key(member, window)
        for attempt in range(ATTEMPTS):
            found = yield from self.calls.get(self.board.entries, consistent=True, **key)
            entry = self._after(found, member, window, tally)
            if entry is found or entry is None:
                return entry
            try:
                yield from self.calls.put(entry)
            except VersionConflict:
                longest = min(_LONGEST_PAUSE, 0.002 * 2**attempt)
            else:
                return entry
            yield Pause(random.uniform(0, longest))
        raise Contended(
            f"others wrote {member!r} of the board during each of {ATTEMPTS} attempts; collect events "
            "and write them with record_many(), or try again later"
        )

    def _after(
        self, found: Entry | None, member: str, window: Window, tally: Tally
    ) -> Entry | None:
        """The entry with the tally in it; the same one where that changes nothing."""
        revision = 0 if found is None else found.revision
        if found is not None and found.window != window.label:
            if found.began is not None and found.began > window.start:
                return None
            found = None  # the member enters its next window
        if found is not None:
            known = Tally(found.total, found.count, found.at)
            tally = self._join(known, tally)
            if tally is known:
                return found
        return self._entry(member, window, tally, revision)

    def _join(self, one: Tally, other: Tally) -> Tally:
        return JOINS[self.score, self.board.best](one, other)

    def _entry(self, member: str, window: Window, tally: Tally, revision: int) -> Entry:
        score = Fraction(tally.total)
        if self.score == "average":
            score /= tally.count
        until = None
        if self.expire_after is not None:
            until = (tally.at if window is ALL_TIME else window.end) + self.expire_after
        entry: Entry = self.board.entries(
            **{"group": None, **self._key(member, window)},
            member=member,
            window=window.label,
            began=None if window is ALL_TIME else window.start,
            order=f"{window.label}#{self.board.digits.text(score)}",
            total=tally.total,
            count=tally.count,
            at=tally.at,
            until=until,
        )
        entry.__dict__["revision"] = revision
        return entry

    # Reading

    def queries(self, *, at: datetime | None = None) -> list[Query[Entry]]:
        """What `top` asks in the window of an instant (now), one for each shard: to be looked at.

        >>> board.queries()[0].request()  # doctest: +SKIP
        """
        label = self._window(at).label
        return [self.board.query(shard, label) for shard in range(self.board.shards)]

    @operation
    def top(
        self, size: int = 10, *, at: datetime | None = None, cursor: str | None = None
    ) -> Steps[Standings]:
        """The best of the window of an instant (now), or those behind a cursor.

        Cost: one query that reads `size` items; over several shards, one each: `stats` tells.
        """
        if cursor is not None:
            window = None if at is None else self.windows.at(at).label
            return (yield from self._reading.further(cursor, size, window))
        return (yield from self._reading.first(self._window(at).label, size))

    @operation
    def standing(self, member: str, *, at: datetime | None = None) -> Steps[Standing | None]:
        """Where a member stands; None where it is not on the board in that window.

        Cost: a read, and a count of all that are better, which reads them.
        """
        entry = yield from self._find(member, self._window(at))
        if entry is None:
            return None
        return self.board.standing((yield from self._reading.rank(entry)), entry)

    @operation
    def around(
        self, member: str, number: int = 2, *, at: datetime | None = None
    ) -> Steps[list[Standing]]:
        """A member with so many before it and so many behind it; nothing where it is not on the board.

        Cost: a read, two queries of `number` items for each shard, and the rank of the first of them.
        """
        entry = yield from self._find(member, self._window(at))
        return [] if entry is None else (yield from self._reading.around(entry, number))

    @operation
    def count(self, *, at: datetime | None = None) -> Steps[int]:
        """How many members are on the board in a window. Cost: a read of all of them."""
        return (yield from self._reading.count(self._window(at).label))

    @operation
    def history(
        self, member: str, windows: int = 24, *, at: datetime | None = None
    ) -> Steps[list[tuple[Window, Decimal | None]]]:
        """A member's score in each of the last windows, the newest first. Cost: a read for each."""
        if not self.keeps_history:
            raise UsageError(
                "the board keeps only the newest window of each member; make it with history=True"
            )
        found = self.windows.last(windows, at or self._now())
        keys = [self._key(member, window) for window in found]
        entries = yield from self.calls.get_many(self.board.entries, keys)
        return [
            (
                window,
                None if entry is None else self.board.digits.score(self.board.score_text(entry)),
            )
            for window, entry in zip(found, entries, strict=True)
        ]

    def _find(self, member: str, window: Window) -> Steps[Entry | None]:
        key = self._key(member, window)
        found: Entry | None = yield from self.calls.get(self.board.entries, consistent=True, **key)
        return found if found is not None and found.window == window.label else None

    def _key(self, member: str, window: Window) -> dict[str, Any]:
        place = f"{window.label}#{member}" if self.keeps_history else member
        return self.board.key(member, place)

    def _window(self, at: datetime | None) -> Window:
        return self.windows.at(at or self._now())

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.now(), UTC)


def _check(name: str | None, score: str, best: str, shards: int, ties: str) -> None:
    if name is not None and (not name or "#" in name):
        raise UsageError(
            f"{name!r} cannot name a board: a name has one character or more, and no #"
        )
    choices = (("score", score, Score), ("best", best, Best), ("ties", ties, Ties))
    for option, value, known in choices:
        if value not in get_args(known):
            raise UsageError(f"{option}={value!r} is none of {', '.join(get_args(known))}")
    if shards < 1:
        raise UsageError(f"a board has 1 shard or more, not {shards}")
