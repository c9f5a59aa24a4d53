"""Leaderboards: the best members in a window of time; numbers their ranks, with ties, pages and shards.

An entry is one item of a member; its index key is its window and its score. A sum or an average
depends on the stored item, so such an event is a read and a conditional write, repeated if another writer was
faster. Each write leaves a mark on the entry: a refused writer that finds its own mark has already written, and
only the response was lost. The best or the last of all values needs no read: one conditional update replaces a
worse or older value. An event that must count once is written in one transaction with its token; a board with
ranks changes its ranking in the same transaction, and always reads the entry. So sums and counts are exact, and
the index key of an entry always matches its score.

A board has one partition, or several (shards); a hash of a member's name selects its shard. A page is merged
from the first entries of each shard. A cursor has the position in each shard, and the last rank.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from itertools import takewhile
from typing import Any, Final, NamedTuple, overload

from isotone.errors import (
    AlreadyExists,
    ConditionFailed,
    Contended,
    InvalidCursor,
    NotFound,
    OutOfRange,
    TransactionFailed,
    UsageError,
)
from isotone.model import Calls, Global, Query, Stats, Steps, Table, Transaction
from isotone.structures.exact_numbers import exact
from isotone.structures.leaderboard_entries import (
    Best,
    BoardEntry,
    Digits,
    LeaderboardToken,
    Score,
    Tally,
    entry_kind,
    joined,
)
from isotone.structures.leaderboard_options import (
    AHEAD,
    Board,
    LeaderboardOptions,
    Ties,
    valid_name,
)
from isotone.structures.ranking import Overtaken, after_score, before_score
from isotone.structures.sharding import MergedStreams, MergeOrder, Position, Stream, merged
from isotone.structures.structure import S, Structure, operation
from isotone.structures.time_windows import ALL_TIME, Every, Window, Windows, instant
from isotone.structures.waits_and_retries import retry_on_conflict

_MARK_LENGTH: Final = 8  # hexadecimal digits: enough to differ from other writers' marks
_ADVICE: Final = "collect events and write them with record_many(), or try again later"
_ORDER: Final[MergeOrder[BoardEntry]] = MergeOrder(
    position=lambda entry: (entry.order, entry.place),
    fields=lambda position: {"order": position[0], "place": position[1]},
)


@dataclass(frozen=True, slots=True)
class ScoreEvent:
    """An event of a member: `value` is the sum of `count` things."""

    member: str
    value: int | float | Decimal
    count: int = 1
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """A member's rank and score: `score` is rounded as in the ranking, `total` and `count` are exact."""

    rank: int
    member: str
    score: Decimal
    total: Decimal
    count: int


@dataclass(frozen=True, slots=True)
class Standings(Sequence[Standing]):
    """Members in order; `cursor` is None if nothing follows, `stats` is the cost of the read."""

    window: str
    items: list[Standing]
    cursor: str | None
    stats: Stats

    @overload
    def __getitem__(self, place: int) -> Standing: ...
    @overload
    def __getitem__(self, place: slice) -> list[Standing]: ...
    def __getitem__(self, place: int | slice) -> Standing | list[Standing]:
        return self.items[place]

    def __iter__(self) -> Iterator[Standing]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Leaderboard(Structure[S]):
    """Members ranked by a score, in windows of time.

        board = Leaderboard(store, score="average", best="lowest", window="quarter-hour")
        board.record("000187", 373, count=2)
        board.top(10)

    `name`: None for the only board of a table. `score`: the sum of all values, their average, the best or
    the last of them. `digits`, `scale`: the digits of a ranked score before and after its point. `history`:
    keeps an entry for every window, not only for the newest one of each member. `expire_after`: when an entry
    expires, from the end of its window. `ahead`: how far an event may be ahead of the store's clock; an event
    of next year would take its member off the board until then. `shards`: the number of partitions. `ties`: after
    two firsts comes a third (`standard`) or a second (`dense`). `ranked`: ranks and counts take a few reads,
    and writes cost more.
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
        ahead: timedelta = AHEAD,
        shards: int = 1,
        ties: Ties = "standard",
        ranked: bool = False,
        table: Table | None = None,
    ) -> None:
        super().__init__(store, table or LEADERBOARDS)
        if ranked:
            self.require(
                "transactions", "leave out ranked=True: standing() then counts the members before"
            )
        self.name = name
        self.windows: Windows = Windows(window, day_starts=day_starts, zone=zone)
        self.board: Board = Board(
            calls=self.calls,
            entries=self.bind(entry_kind(valid_name(name), shards)),
            tokens=self.bind(LeaderboardToken),
            declarations=self.bind(LeaderboardOptions),
            name=valid_name(name),
            score=score,
            best=best,
            ties=ties,
            windows=self.windows,
            digits=Digits(digits, scale),
            keeps_history=history,
            expire_after=expire_after,
            ahead=ahead,
            shards=shards,
            is_ranked=ranked,
        )

    @staticmethod
    def layout(name: str = "leaderboards") -> Table:
        """A table for leaderboards; any table with these keys and this index can be used."""
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
        """Count an event; returns the member's score in its window, rounded as in the ranking.

        `value` is the sum of `count` things; `at` is their time, now by default. `once`: a name of the
        event, which then counts once for each member, however often it is sent within `remember`. Returns None
        if the event is too late: its window has expired, or the member has been seen in a newer window and
        the board keeps no history.

        Cost: a consistent read and a write (of an item, and of its entry in the index), both again if another
        writer was faster; for the best or the last, the write alone. With `once`, a read and a transaction of
        two items; with `ranked`, of up to nine. Raises `Contended` if others keep writing the same member.
        """
        tally = self._tally(ScoreEvent(member, value, count, at))
        token = None if once is None else self._token(once, member, remember)
        try:
            entry = yield from self._add(member, self.windows.at(tally.at), tally, token)
        except _TooLate:
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
        """Count many events; returns how many were too late.

        Events of one member in one window are added up first. `once`: a name of the batch; if it is sent again
        within `remember`, no event is counted twice, so an interrupted batch can be repeated.
        Cost: that of `record` for each member and window, not for each event. Raises `OutOfRange` if a score
        does not fit its digits, after all others are written.
        """
        tallies: dict[tuple[str, Window, bool], Tally] = {}
        numbers: Counter[tuple[str, Window, bool]] = Counter()
        for event in events:
            tally = self._tally(event)
            group = event.member, self.windows.at(tally.at), event.at is not None
            if group in tallies:
                tally = joined(tallies[group], tally, self.board.score, self.board.best)
            tallies[group] = tally
            numbers[group] += 1
        late, refused = 0, None
        for group, tally in sorted(tallies.items(), key=lambda pair: pair[0][1].start):
            member, window, has_time = group
            # Events without a time may be sent again in the next window.
            text = f"{once}#{window.label if has_time else 'NOW'}"
            token = None if once is None else self._token(text, member, remember)
            try:
                yield from self._add(member, window, tally, token)
            except _TooLate:
                late += numbers[group]
            except OutOfRange as error:
                refused = error
        if refused is not None:
            raise refused
        return late

    @operation
    def remove(self, member: str, *, at: datetime | None = None) -> Steps[bool]:
        """Remove a member from the board; with history, from a window. Cost: a read and a write."""
        window = self._window(at)

        def attempt() -> Steps[bool]:
            entry = yield from self.board.find(member, window)
            if entry is not None:
                yield from self._write(entry, None)
            return entry is not None

        return retry_on_conflict(attempt, f"{member!r} of the board", _ADVICE)

    @operation
    def drop_ranks(self, *, at: datetime) -> Steps[None]:
        """Delete the ranks of a past window: the ranks of a `ranked` board do not expire."""
        if self.board.is_ranked:
            yield from self.board.ranking(self._window(at).label).clear()

    # Reading

    def queries(self, *, at: datetime | None = None) -> list[Query[Any]]:
        """The queries of `top` in the window of `at` (now), one for each shard, for `isotone.show`.

        >>> request = board.queries()[0].request()
        """
        label = self._window(at).label
        return [self.board.query(shard, label) for shard in range(self.board.shards)]

    @operation
    def top(
        self, size: int = 10, *, at: datetime | None = None, cursor: str | None = None
    ) -> Steps[Standings]:
        """The best `size` members of the window of `at` (now), or those after a cursor.

        Cost: a query that reads `size` items, for each shard; `stats` has it.
        """
        window = self._window(at).label if not cursor or at is not None else None
        return self._page(window, size, cursor)

    @operation
    def standing(self, member: str, *, at: datetime | None = None) -> Steps[Standing | None]:
        """A member's standing in the window of `at` (now); None if it is not on the board.

        Cost: a read, and a count that reads all better members; `ranked` with standard ties, an item for each
        level of a tree.
        """
        entry = yield from self._find(member, at)
        if entry is None:
            return None
        place = _BoardPosition(0, (yield from self._rank(entry)), entry.order)
        (standing,), _ = self._numbered([entry], place)
        return standing

    @operation
    def around(
        self, member: str, number: int = 2, *, at: datetime | None = None
    ) -> Steps[list[Standing]]:
        """A member with `number` before it and `number` after it; empty if it is not on the board.

        Cost: a read, two queries of `number` items for each shard, and the rank of the first of them.
        """
        entry = yield from self._find(member, at)
        if entry is None:
            return []
        here = [_ORDER.position(entry)] * self.board.shards
        after = yield from self._merged(entry.window, number, here)
        before = yield from self._merged(entry.window, number, here, best_first=False)
        near = [*reversed(before.items), entry, *after.items]
        # The index may still have the member's old entry, or already a newer one.
        rows = [row for row in near if row is entry or row.member != entry.member]
        standings, _ = self._numbered(rows, (yield from self._place_before(rows)))
        return standings

    @operation
    def count(self, *, at: datetime | None = None) -> Steps[int]:
        """The number of members in the window of `at` (now). Cost: reads all of them; `ranked`, one item."""
        window = self._window(at)
        yield from self.board.check_options()
        if self.board.is_over(window, self.board.now()):
            return 0  # although some entries may not have been deleted yet
        if self.board.is_ranked:
            return (yield from self.board.ranking(window.label).size())
        return (yield from self._count(window.label))

    @operation
    def history(
        self, member: str, windows: int = 24, *, at: datetime | None = None
    ) -> Steps[list[tuple[Window, Decimal | None]]]:
        """A member's score in each of the last `windows`, the newest first. Cost: a read for each."""
        if not self.board.keeps_history:
            raise UsageError(
                "the board keeps only the newest window of each member; create it with history=True"
            )
        last = self.windows.last(windows, at or self.board.now())
        keys = [self.board.key(member, window) for window in last]
        entries = yield from self.calls.get_many(self.board.entries, keys)
        if not any(entries):
            yield from self.board.check_options()
        scores = [None if entry is None else self.board.score_of(entry) for entry in entries]
        return list(zip(last, scores, strict=True))

    # Shared by operations

    def _find(self, member: str, at: datetime | None) -> Steps[BoardEntry | None]:
        """A member's entry in the window of `at`."""
        window = self._window(at)
        entry = yield from self.board.find(member, window)
        return entry if entry is not None and entry.window == window.label else None

    def _window(self, at: datetime | None) -> Window:
        return self.windows.at(at or self.board.now())

    def _merged(
        self, window: str, size: int, positions: Sequence[Position], *, best_first: bool = True
    ) -> Steps[MergedStreams[BoardEntry]]:
        """The first entries of all shards after a position in each."""
        streams: list[Stream[BoardEntry]] = []
        for shard in range(self.board.shards):
            query = self.board.query(shard, window)
            streams.append((query if best_first else query.reversed(), self.board.group(shard)))
        descending = (self.board.best == "highest") == best_first
        return merged(self.calls, streams, _ORDER, size, positions=positions, descending=descending)

    def _page(self, window: str | None, size: int, cursor: str | None) -> Steps[Standings]:
        board, place, positions = self.board, _BoardPosition(), list[Position]()
        if cursor:
            label, *state, positions = self.calls.unseal(cursor, **board.identity)
            if window not in (None, label):
                raise InvalidCursor(f"the cursor belongs to window {label}, not to {window}")
            window, place = label, _BoardPosition(*state)
        assert window is not None
        page = yield from self._merged(window, size, positions)
        if not page.items and cursor is None:
            yield from board.check_options()
        standings, place = self._numbered(page.items, place)
        further = None
        if not page.is_over:
            further = self.calls.seal([window, *place, page.positions], **board.identity)
        return Standings(window, standings, further, page.stats)

    def _numbered(
        self, entries: Iterable[BoardEntry], place: _BoardPosition
    ) -> tuple[list[Standing], _BoardPosition]:
        """The standings of entries that follow a position, and the position after them."""
        standings = []
        for entry in entries:
            rank, taken = place.rank, place.taken + 1
            if entry.order != place.order:
                rank = taken if self.board.ties == "standard" else rank + 1
            place = _BoardPosition(taken, rank, entry.order)
            score = self.board.score_of(entry)
            standings.append(Standing(rank, entry.member, score, entry.total, entry.count))
        return standings, place

    def _place_before(self, rows: Sequence[BoardEntry]) -> Steps[_BoardPosition]:
        """The position before some rows, which may start anywhere on the board."""
        first = rows[0]
        rank = yield from self._rank(first)
        equal = len(list(takewhile(lambda row: row.order == first.order, rows)))
        ahead = 0  # entries before the first row with the same score
        if equal < len(rows) and self.board.ties == "standard":
            ahead = (yield from self._count_equal(first)) - equal
        return _BoardPosition(rank - 1 + ahead, rank, first.order)

    def _rank(self, entry: BoardEntry) -> Steps[int]:
        """An entry's rank. Reads all better entries; from a ranking, an item for each level."""
        board = self.board
        if board.is_ranked and board.ties == "standard":
            bound = before_score(board.ranked_score(entry))
            return 1 + (yield from board.ranking(entry.window).rank(bound))
        better = board.digits.better(board.score_text(entry), board.best)
        if better is None:
            return 1
        if board.ties == "standard":
            return 1 + (yield from self._count(entry.window, better))
        scores: set[str] = set()
        for shard in range(board.shards):
            query = board.query(shard, entry.window, better).select(BoardEntry.order)
            scores.update(item.order for item in (yield from self.calls.all(query)))
        return 1 + len(scores)

    def _count_equal(self, entry: BoardEntry) -> Steps[int]:
        """The number of entries with an entry's score."""
        if self.board.is_ranked:
            score = self.board.ranked_score(entry)
            return self.board.ranking(entry.window).count(before_score(score), after_score(score))
        text = self.board.score_text(entry)
        return self._count(entry.window, (text, text))

    def _count(self, window: str, between: tuple[str, str] | None = None) -> Steps[int]:
        """The number of entries, all or between two scores; reads them."""
        number = 0
        for shard in range(self.board.shards):
            number += yield from self.calls.count(self.board.query(shard, window, between))
        return number

    # Writing an event

    def _tally(self, event: ScoreEvent) -> Tally:
        if not isinstance(event, ScoreEvent):
            raise UsageError(f"{event!r} is not an event; write ScoreEvent(member, value)")
        if not isinstance(event.count, int) or event.count < 1:
            raise UsageError(f"the count of an event must be 1 or more, not {event.count!r}")
        count = event.count if self.board.score in ("sum", "average") else 1
        now = self.board.now()
        at = now if event.at is None else instant(event.at)
        if at > now + self.board.ahead:
            raise UsageError(
                f"the event of {event.member!r} at {at} is ahead of the clock, which shows {now}; correct the "
                "sender's clock, or give the board a longer ahead="
            )
        return Tally(exact(event.value, "a score"), count, at)

    def _token(self, text: str, member: str, remember: timedelta) -> LeaderboardToken:
        if remember <= timedelta(0):
            raise UsageError(
                f"remember={remember!r} is not a length of time; give a timedelta above 0"
            )
        gone_at = self.board.now() + remember
        return self.board.tokens(board=self.board.name, token=text, member=member, gone_at=gone_at)

    def _add(
        self, member: str, window: Window, tally: Tally, token: LeaderboardToken | None
    ) -> Steps[BoardEntry | None]:
        """Add a tally to a member's entry, and return the entry; raises `_TooLate`.

        If the token exists, nothing is counted; None if the entry of that event no longer exists.
        """
        if self.board.is_over(window, tally.at):
            raise _TooLate
        mark = uuid.uuid4().hex[:_MARK_LENGTH]
        needs_read = token is not None or self.board.is_ranked
        is_blind = self.board.score in ("best", "last") and not needs_read

        def attempt() -> Steps[BoardEntry | None]:
            if is_blind:
                return self._overwrite(member, window, tally)
            return self._join(member, window, tally, token, mark)

        return (yield from retry_on_conflict(attempt, f"{member!r} of the board", _ADVICE))

    def _overwrite(self, member: str, window: Window, tally: Tally) -> Steps[BoardEntry]:
        """Replace a worse or older value, or that of an earlier window, in one update."""
        board = self.board
        order = f"{window.label}#{board.digits.text(tally.total)}"
        changes = [
            BoardEntry.order.set(order),
            BoardEntry.total.set(tally.total),
            BoardEntry.at.set(tally.at),
        ]
        if board.score == "last":
            gives_way = BoardEntry.at <= tally.at
        elif board.best == "highest":
            gives_way = BoardEntry.total < tally.total
        else:
            gives_way = BoardEntry.total > tally.total
        if not board.keeps_history and window is not ALL_TIME:
            changes += [BoardEntry.window.set(window.label), BoardEntry.began.set(window.start)]
            gives_way = ((BoardEntry.window == window.label) & gives_way) | (
                BoardEntry.began < window.start
            )
        if board.expire_after is not None:
            changes.append(BoardEntry.until.set(board.gone_at(window, tally.at)))
        when, key = (BoardEntry.options == board.options) & gives_way, board.key(member, window)
        try:
            entry: BoardEntry = yield from self.calls.update(
                board.entries, *changes, when=when, **key
            )
        except NotFound:
            yield from board.declare()
            return (yield from self.calls.create(self._entry(member, window, tally)))
        except ConditionFailed as refused:
            entry = board.checked(refused.current)
            if entry.window != window.label:
                raise _TooLate from None
        return entry

    def _join(
        self,
        member: str,
        window: Window,
        tally: Tally,
        token: LeaderboardToken | None,
        mark: str,
    ) -> Steps[BoardEntry | None]:
        """Read the entry, add the tally, and write it if it is unchanged."""
        before = yield from self.board.find(member, window)
        if before is None:
            yield from self.board.declare()
        elif before.mark == mark:
            return before
        entry = self._after(before, member, window, tally)
        if entry is before and token is None:
            return entry
        if entry is not before:
            entry.mark = mark
        try:
            yield from self._write(before, entry, token)
        except TransactionFailed as failed:
            if token is None or not isinstance(failed.reason_of(type(token)), AlreadyExists):
                raise
            # It was counted before, perhaps in an earlier window.
            current = yield from self.board.find(member, window)
            return current if current is not None and current.window == window.label else None
        return entry

    def _after(
        self, before: BoardEntry | None, member: str, window: Window, tally: Tally
    ) -> BoardEntry:
        """The entry with the tally added; the same object if that changes nothing."""
        if before is not None and before.window == window.label:
            known = Tally(before.total, before.count, before.at)
            tally = joined(known, tally, self.board.score, self.board.best)
            if tally is known:
                return before
        elif before is not None and before.began is not None and before.began > window.start:
            raise _TooLate
        entry = self._entry(member, window, tally)
        # The put requires the revision that was read.
        entry.__dict__["revision"] = 0 if before is None else before.revision
        return entry

    def _entry(self, member: str, window: Window, tally: Tally) -> BoardEntry:
        board, score = self.board, Fraction(tally.total)
        if board.score == "average":
            score /= tally.count
        entry: BoardEntry = board.entries(
            **board.key(member, window),
            options=board.options,
            member=member,
            window=window.label,
            began=None if window is ALL_TIME else window.start,
            order=f"{window.label}#{board.digits.text(score)}",
            total=tally.total,
            count=tally.count,
            at=tally.at,
            until=board.gone_at(window, tally.at),
        )
        return entry

    def _write(
        self,
        before: BoardEntry | None,
        after: BoardEntry | None,
        token: LeaderboardToken | None = None,
    ) -> Steps[None]:
        """Replace or delete an entry, together with what changes with it: a token, and ranks."""
        if token is None and not self.board.is_ranked:
            yield from _changed(self.calls, before, after)
            return
        tx = self.calls.transaction()
        if token is not None:
            tx.create(token)
        if after is not before:
            _changed(tx, before, after)
        yield from self._commit(tx, before, after)

    def _commit(
        self, tx: Transaction, before: BoardEntry | None, after: BoardEntry | None
    ) -> Steps[None]:
        """Commit, together with the entry's changes in its rankings."""
        try:
            if self.board.is_ranked and before is not after:
                yield from self._rank_again(tx, before, after)
            yield from tx.commit()
        except (TransactionFailed, Contended):
            for entry in (before, after):
                if entry is not None and self.board.is_ranked:
                    self.board.ranking(entry.window, renewed=True)
            raise

    def _rank_again(
        self, tx: Transaction, before: BoardEntry | None, after: BoardEntry | None
    ) -> Steps[None]:
        """Change the ranking of an entry, or two rankings if the member moves to a newer window."""
        moves: dict[str, dict[str, Any]] = {}
        for way, entry in (("leaving", before), ("entering", after)):
            if entry is not None:
                moves.setdefault(entry.window, {})[way] = self.board.ranking_key(entry)
        for window, keys in moves.items():
            # The ranking of the old window may have been dropped, so its cached nodes are not used.
            ranking = self.board.ranking(window, renewed="entering" not in keys)
            try:
                yield from ranking.change(tx, **keys)
            except Overtaken as overtaken:
                # A dropped ranking no longer has the key, and must not be created again.
                if "leaving" not in keys or (yield from ranking.size()):
                    raise Contended(f"others changed {overtaken}") from None


def _changed(to: Calls | Transaction, before: BoardEntry | None, after: BoardEntry | None) -> Any:
    """The write of an entry: `to` is the calls, which return its steps, or a transaction, which collects it."""
    if after is not None:
        return to.put(after)
    assert before is not None
    return to.delete(before)


class _BoardPosition(NamedTuple):
    """A position on a board: the number of members before it, and the rank and order of the last of them."""

    taken: int = 0
    rank: int = 0
    order: str = ""


class _TooLate(Exception):
    """The window of an event has expired, or its member has been seen in a newer one."""


LEADERBOARDS: Final = Leaderboard.layout()
