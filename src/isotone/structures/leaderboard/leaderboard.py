"""Leaderboards: who is first in a window of time, read as the first entries of an index.

An entry is one item of a member, whose place in the index is its window and its score. The score of a sum
or a running average follows from what is in the same item, and is known only to whoever has read it: such an
event is one conditional write, which holds the entry to the revision that was read, and is made again from a
new reading where another writer was faster. So sums and counts are exact, and an entry never stands
elsewhere than its own score says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Final

from isotone.errors import OutOfRange, UsageError
from isotone.model import Global, Query, Steps, Table
from isotone.structures.exact import exact
from isotone.structures.leaderboard import reading, writing
from isotone.structures.leaderboard.board import Board
from isotone.structures.leaderboard.entry import (
    Best,
    Digits,
    Entry,
    LeaderboardEntry,
    LeaderboardToken,
    NamedLeaderboardEntry,
    Score,
    Tally,
    Ties,
    joined,
)
from isotone.structures.leaderboard.reading import Standing, Standings
from isotone.structures.leaderboard.writing import TooLate
from isotone.structures.operation import S, Structure, operation
from isotone.structures.windows import Every, Window, Windows, instant

_MOST_DIGITS: Final = 38


@dataclass(frozen=True, slots=True)
class ScoreEvent:
    """Something that counts for a member: `value` is the sum of `count` things."""

    member: str
    value: int | float | Decimal
    count: int = 1
    at: datetime | None = None


class Leaderboard(Structure[S]):
    """Members ranked by a score, in windows of time.

        board = Leaderboard(store, score="average", best="lowest", window="quarter-hour")
        board.record("000187", 373, count=2)
        board.top(10)

    `name`: none for the only board of a table. `score`: the sum of all values, their average, the best or
    the last of them. `digits` and `scale`: how many digits a score has before and behind its point where
    it is ranked. `history`: keep an entry for every window, not only for the newest of each member.
    `expire_after`: how long after its window an entry expires. `ahead`: how far an event may be ahead of
    the store's clock; one of next year would take its member off the board till then. `shards`: over how
    many partitions the board is spread. `ties`: after two firsts comes a third (`standard`) or a second
    (`dense`). `ranked`: ranks and numbers in a few reads, for more with each write.
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
        ahead: timedelta = timedelta(minutes=5),
        shards: int = 1,
        ties: Ties = "standard",
        ranked: bool = False,
        table: Table | None = None,
    ) -> None:
        super().__init__(store, table or LEADERBOARDS)
        self.name = name
        _check(name, shards, digits, scale)
        if expire_after is not None and expire_after < timedelta(0):
            raise UsageError(f"expire_after={expire_after!r} is before the window's end")
        if ranked and expire_after is not None and window == "all time":
            raise UsageError("the ranks of all time cannot expire; give the board a window")
        has_groups = name is not None or shards > 1
        self.windows = Windows(window, day_starts=day_starts, zone=zone)
        kind = [self.windows.name, best if score == "best" else score, f"{digits}.{scale} digits"]
        kind += ["history"] * history + [f"ranked by the {best}"] * ranked
        self.board = Board(
            calls=self.calls,
            entries=self.kept(NamedLeaderboardEntry if has_groups else LeaderboardEntry),
            tokens=self.kept(LeaderboardToken),
            name=name or "",
            score=score,
            best=best,
            ties=ties,
            digits=Digits(digits, scale),
            keeps_history=history,
            expire_after=expire_after,
            shards=shards,
            is_ranked=ranked,
            kind=", ".join(kind),
        )
        self._ahead = ahead

    @staticmethod
    def layout(name: str = "leaderboards") -> Table:
        """A table for leaderboards; one that has these keys and this index will do."""
        return Table(name, indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

    # Writing

    @operation
    def record(
        self,
        member: str,
        value: int | float | Decimal,
        *,
        count: int = 1,
        at: datetime | None = None,
        once: str | None = None,
        remember: timedelta = timedelta(days=1),
    ) -> Steps[Decimal | None]:
        """Count an event; gives the member's score in its window, as it is ranked.

        `value` is the sum of `count` things. An event that is sent again with the same `once` counts once
        for each member, for as long as that is remembered. None where the event came too late: the member has been seen in
        a newer window, and the board keeps no history, or the window has expired.

        Cost: a consistent read and a write (of an item, and of its entry in the index), both again where
        another writer came in between; of the best or the last, the write alone. With `once`, a read and a
        transaction of two items; `ranked`, of up to nine. Raises `Contended` where others do not stop
        writing the same member.
        """
        tally = self._tally(ScoreEvent(member, value, count, at))
        token = None if once is None else self._token(once, member, remember)
        window = self.windows.at(tally.at)
        try:
            entry = yield from writing.add(self.board, member, window, tally, token)
        except TooLate:
            return None
        return None if entry is None else self.board.score_of(entry)

    @operation
    def record_many(
        self,
        events: Iterable[ScoreEvent],
        *,
        once: str | None = None,
        remember: timedelta = timedelta(days=1),
    ) -> Steps[int]:
        """Count many events; gives how many came too late.

        Those of one member in one window are added up first. Given again with the same `once`, whatever of
        the same events was counted is not counted again: so a batch that was interrupted is repeated. Cost:
        that of `record` for each member and window, not for each event. Raises `OutOfRange` where a score
        does not fit its digits, when all others are written.
        """
        tallies: dict[tuple[str, Window, bool], Tally] = {}
        numbers: Counter[tuple[str, Window, bool]] = Counter()
        for event in events:
            tally = self._tally(event)
            of = event.member, self.windows.at(tally.at), event.at is not None
            if of in tallies:
                tally = joined(tallies[of], tally, self.board.score, self.board.best)
            tallies[of] = tally
            numbers[of] += 1
        late, refused = 0, None
        for of, tally in sorted(tallies.items(), key=lambda each: each[0][1].start):
            member, window, has_time = of
            # What has no time of its own may be given again when the next window has begun.
            text = f"{once}#{window.label if has_time else 'NOW'}"
            token = None if once is None else self._token(text, member, remember)
            try:
                yield from writing.add(self.board, member, window, tally, token)
            except TooLate:
                late += numbers[of]
            except OutOfRange as error:
                refused = error
        if refused is not None:
            raise refused
        return late

    @operation
    def remove(self, member: str, *, at: datetime | None = None) -> Steps[bool]:
        """Take a member off the board; of one with history, off a window. Cost: a read and a write."""
        return (yield from writing.remove(self.board, member, self._window(at)))

    @operation
    def drop_ranks(self, *, at: datetime) -> Steps[None]:
        """Delete the ranks of a window that is over, of a board that is `ranked`: they do not expire."""
        if self.board.is_ranked:
            yield from self.board.ranking(self._window(at).label).clear()

    def _tally(self, event: ScoreEvent) -> Tally:
        if not isinstance(event, ScoreEvent):
            raise UsageError(f"{event!r} is no event: one is ScoreEvent(member, value)")
        if not isinstance(event.count, int) or event.count < 1:
            raise UsageError(f"an event counts for 1 or more, not for {event.count!r}")
        count = event.count if self.board.score in ("sum", "average") else 1
        now = self.board.now()
        at = now if event.at is None else instant(event.at)
        if at > now + self._ahead:
            raise UsageError(
                f"the event of {event.member!r} at {at} is ahead of the clock, which shows {now}; set the "
                "clock that it comes from, or make the board with a longer ahead="
            )
        return Tally(exact(event.value, "a score"), count, at)

    def _token(self, text: str, member: str, remember: timedelta) -> LeaderboardToken:
        if remember <= timedelta(0):
            raise UsageError(f"remember={remember!r} is over at once; give a timedelta above 0")
        gone_at = self.board.now() + remember
        return self.board.tokens(board=self.board.name, token=text, member=member, gone_at=gone_at)

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
        window = self._window(at).label if cursor is None or at is not None else None
        return (yield from reading.page(self.board, window, size, cursor))

    @operation
    def standing(self, member: str, *, at: datetime | None = None) -> Steps[Standing | None]:
        """Where a member stands; None where it is not on the board in that window.

        Cost: a read, and a count of all that are better, which reads them, or, where the board is `ranked`
        and the ties are standard, an item for each level of a tree.
        """
        entry = yield from self._find(member, at)
        return None if entry is None else (yield from reading.standing(self.board, entry))

    @operation
    def around(
        self, member: str, number: int = 2, *, at: datetime | None = None
    ) -> Steps[list[Standing]]:
        """A member with so many before it and so many behind it; nothing where it is not on the board.

        Cost: a read, two queries of `number` items for each shard, and the rank of the first of them.
        """
        entry = yield from self._find(member, at)
        return [] if entry is None else (yield from reading.around(self.board, entry, number))

    @operation
    def count(self, *, at: datetime | None = None) -> Steps[int]:
        """How many members are on the board in a window. Cost: a read of all of them; `ranked`, of one item."""
        window = self._window(at)
        if self.board.is_over(window, self.board.now()):
            return 0  # whatever is not deleted yet
        return (yield from reading.count(self.board, window.label))

    @operation
    def history(
        self, member: str, windows: int = 24, *, at: datetime | None = None
    ) -> Steps[list[tuple[Window, Decimal | None]]]:
        """A member's score in each of the last windows, the newest first. Cost: a read for each."""
        if not self.board.keeps_history:
            raise UsageError(
                "the board keeps only the newest window of each member; make it with history=True"
            )
        found = self.windows.last(windows, at or self.board.now())
        keys = [self.board.key(member, window) for window in found]
        entries = yield from self.calls.get_many(self.board.entries, keys)
        scores = [None if entry is None else self.board.score_of(entry) for entry in entries]
        return list(zip(found, scores, strict=True))

    def _find(self, member: str, at: datetime | None) -> Steps[Entry | None]:
        """The entry of a member in the window of an instant."""
        window = self._window(at)
        entry = yield from self.board.find(member, window)
        return entry if entry is not None and entry.window == window.label else None

    def _window(self, at: datetime | None) -> Window:
        return self.windows.at(at or self.board.now())


LEADERBOARDS: Final = Leaderboard.layout()


def _check(name: str | None, shards: int, digits: int, scale: int) -> None:
    if name is not None and (not name or "#" in name):
        raise UsageError(
            f"{name!r} cannot name a board: a name has one character or more, and no #"
        )
    for what, least, number in (("shards", 1, shards), ("digits", 1, digits), ("scale", 0, scale)):
        if number < least:
            raise UsageError(f"a board has {what}={least} or more, not {number}")
    if digits + scale > _MOST_DIGITS:
        raise UsageError(f"a score has at most {_MOST_DIGITS} digits, not {digits} and {scale}")
