"""Boards of every kind, given the same events while time goes on, agree with a dict of sums at every step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.effort import examples

import isotone
from isotone import ManualClock
from isotone.structures import Leaderboard, ScoreEvent

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
EXPIRY = timedelta(minutes=30)

members = st.sampled_from("abcdef")
values = st.integers(-30, 30)
delays = st.integers(0, 40).map(lambda minutes: timedelta(minutes=minutes))


class Seen(NamedTuple):
    """What a member has in a window."""

    total: int = 0
    count: int = 0
    least: int = 1000

    def joined(self, value: int) -> Seen:
        return Seen(self.total + value, self.count + 1, min(self.least, value))


class Boards(RuleBasedStateMachine):
    """One board that keeps the newest windows alone, one with history; each in several forms."""

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock(NOW)
        self.store = isotone.connect(clock=self.clock)
        forms = {
            "plain": (1, False),
            "sharded": (3, False),
            "ranked": (1, True),
            "both": (2, True),
            "best": (2, False),  # of which events are single writes
            "best ranked": (1, True),
        }
        self.boards = {
            (form, history): Leaderboard(
                self.store,
                f"{form}-{history}",
                score="best" if "best" in form else "average",
                best="lowest",
                window="quarter-hour",
                expire_after=EXPIRY,
                history=history,
                shards=shards,
                ranked=ranked,
            )
            for form, (shards, ranked) in forms.items()
            for history in (False, True)
        }
        next(iter(self.boards.values())).create_table()
        self.newest: dict[str, datetime] = {}
        self.latest: dict[str, Seen] = {}
        self.kept: dict[tuple[datetime, str], Seen] = {}

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now(), UTC)

    @staticmethod
    def window(at: datetime) -> datetime:
        return at - (at - NOW) % QUARTER

    def is_over(self, window: datetime) -> bool:
        return window + QUARTER + EXPIRY <= self.now

    def take(self, member: str, value: int, at: datetime) -> tuple[bool, bool]:
        """Count an event; whether it counts where only the newest window is kept, and with history."""
        window = self.window(at)
        if self.is_over(window):
            return False, False
        seen = self.kept.get((window, member), Seen())
        self.kept[window, member] = seen.joined(value)
        newest = self.newest.get(member)
        if newest is not None and self.is_over(newest):
            newest = None
        if newest is not None and newest > window:
            return False, True
        seen = self.latest[member] if newest == window else Seen()
        self.latest[member] = seen.joined(value)
        self.newest[member] = window
        return True, True

    # What happens

    @rule(minutes=st.integers(1, 25))
    def wait(self, minutes: int) -> None:
        self.clock.advance(timedelta(minutes=minutes))

    @rule(member=members, value=values, delay=delays)
    def record(self, member: str, value: int, delay: timedelta) -> None:
        at = self.now - delay
        counts = self.take(member, value, at)
        for (_, history), board in self.boards.items():
            assert (board.record(member, value, at=at) is not None) == counts[history]

    @rule(events=st.lists(st.tuples(members, values), max_size=8))
    def record_many(self, events: list[tuple[str, int]]) -> None:
        for member, value in events:
            self.take(member, value, self.now)
        for board in self.boards.values():
            assert board.record_many([ScoreEvent(*event) for event in events]) == 0

    @rule(member=members)
    def remove(self, member: str) -> None:
        window = self.window(self.now)
        newest = self.newest.pop(member, None)
        was = {
            False: newest is not None and not self.is_over(newest),
            True: self.kept.pop((window, member), None) is not None,
        }
        for (_, history), board in self.boards.items():
            assert board.remove(member) == was[history]

    # What is seen

    def expected(self, window: datetime, form: str, history: bool) -> dict[str, Decimal]:
        found = {
            member: seen for (of, member), seen in self.kept.items() if of == window and history
        }
        if not history:
            found = {
                member: self.latest[member] for member, of in self.newest.items() if of == window
            }
        if self.is_over(window):
            found = {}
        return {
            member: Decimal(
                seen.least if "best" in form else (2 * seen.total + seen.count) // (2 * seen.count)
            )
            for member, seen in found.items()
        }

    @rule()
    def look(self) -> None:
        self.check(0, 1)

    def check(self, *windows: int) -> None:
        """The boards of so many windows ago are what the dicts say."""
        for back in windows:
            at = self.now - back * QUARTER
            for (form, history), board in self.boards.items():
                scores = self.expected(self.window(at), form, history)
                ordered = sorted((score, member) for member, score in scores.items())
                ranks = [1 + sum(other < score for other, _ in ordered) for score, _ in ordered]
                top = board.top(20, at=at)
                assert [(each.score, each.member) for each in top] == ordered
                assert [each.rank for each in top] == ranks
                assert board.count(at=at) == len(ordered)
                for rank, (_, member) in list(zip(ranks, ordered, strict=True))[:2]:
                    standing = board.standing(member, at=at)
                    assert standing is not None
                    assert standing.rank == rank

    def teardown(self) -> None:
        if hasattr(self, "store"):
            with self.store:
                self.check(0, 1, 2, 3, 4)


Boards.TestCase.settings = settings(
    max_examples=examples(20), stateful_step_count=20, deadline=None
)
TestBoards = Boards.TestCase
