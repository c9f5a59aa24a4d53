"""Random lives of workers: members come, die, fail and are slow, answers get lost, shards split and grow
old, streams end and begin anew, writes go on.

Whatever happens, each change is handled at least once, its effect is made once, and the effects of one
partition key come in the order of its changes.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.effort import examples
from tests.structures.working import bench, settle

import isotone
from isotone import ManualClock
from isotone.engine import streams
from isotone.errors import ConnectionFailed
from isotone.structures import Context
from isotone.structures.worker_members import WorkerMember

AUTHORS = "abc"


class Losing:
    """A backend that does what it is asked, and of which the next answers get lost."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.lose = 0

    def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
        response = self.backend.execute(operation, request)
        if self.lose:
            self.lose -= 1
            raise ConnectionFailed(f"what came of {operation} is not known")
        return response


class Workers(RuleBasedStateMachine):
    @initialize(split=st.sampled_from([3, 10, 100_000]), one_table=st.booleans())
    def begin(self, split: int, one_table: bool) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(streams, "SHARD_RECORDS", split)
        self.clock = ManualClock(1_800_000_000)
        self.database = isotone.open(clock=self.clock, stream_shards=4)
        self.store = isotone.connect(self.database)
        self.theirs = isotone.connect(self.database)
        self.losing = Losing(self.theirs.backend)
        self.theirs.backend = self.losing  # type: ignore[assignment] - as much of one as is asked for
        self.kit = bench("histories", one_table=one_table, batch=4)
        self.written: dict[str, int] = defaultdict(int)
        self.handled: set[tuple[str, int]] = set()
        self.effects: dict[str, list[int]] = defaultdict(list)
        self.failures = 0
        self.kit.worker.on(self.kit.post, "inserted")(self.note)
        self.kit.worker.create_tables(self.store)
        for author in AUTHORS:
            self.store.put(self.kit.copy(author=author, number=0, times=0))
        self.members: list[WorkerMember] = []
        WorkerMember(
            self.kit.worker.plan, self.store
        ).coordinate()  # from this stream on it goes through all

    def note(self, event: Any, context: Context) -> None:
        post = event.entity
        if self.failures:
            self.failures -= 1
            raise ConnectionError("for now")
        with context.once() as together:
            together.update(
                self.kit.copy,
                self.kit.copy.times.add(1),
                author=post.author,
                number=0,
                when=self.kit.copy.times == post.number,  # only in order
            )
        self.handled.add((post.author, post.number))

    @rule(author=st.sampled_from(AUTHORS), number=st.integers(1, 6))
    def write(self, author: str, number: int) -> None:
        for _ in range(number):
            self.store.put(self.kit.post(author=author, number=self.written[author]))
            self.written[author] += 1

    @precondition(lambda self: len(self.members) < 4)
    @rule()
    def join(self) -> None:
        self.members.append(WorkerMember(self.kit.worker.plan, self.theirs))

    @precondition(lambda self: self.members)
    @rule(which=st.integers(0, 3), rounds=st.integers(1, 3))
    def turn(self, which: int, rounds: int) -> None:
        member = self.members[which % len(self.members)]
        for _ in range(rounds):
            for step in (member.coordinate, member.work):
                with contextlib.suppress(ConnectionFailed):
                    step()

    @precondition(lambda self: self.members)
    @rule(which=st.integers(0, 3))
    def renew(self, which: int) -> None:
        self.members[which % len(self.members)].renew()

    @precondition(lambda self: self.members)
    @rule(which=st.integers(0, 3))
    def die(self, which: int) -> None:
        self.members.pop(which % len(self.members))

    @precondition(lambda self: self.members)
    @rule(which=st.integers(0, 3))
    def leave(self, which: int) -> None:
        member = self.members.pop(which % len(self.members))
        member.release()
        assert not member.held

    @rule(seconds=st.sampled_from([1, 29, 31, 16 * 60, 4 * 3600]))
    def wait(self, seconds: int) -> None:
        if self.clock.now() + seconds < 1_800_000_000 + 20 * 3600:
            self.clock.advance(seconds)

    @rule()
    def maintain(self) -> None:
        self.database.finish_maintenance()

    @rule()
    def begin_anew(self) -> None:
        client = self.database.client()
        for stream in (
            {"StreamEnabled": False},
            {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        ):
            client.update_table(TableName=self.kit.table.name, StreamSpecification=stream)

    @rule(answers=st.integers(1, 3))
    def lose(self, answers: int) -> None:
        self.losing.lose = answers

    @rule(times=st.integers(1, 2))
    def fail(self, times: int) -> None:
        self.failures = times  # fewer than the attempts that an event gets

    @invariant()
    def nobody_reads_with_another(self) -> None:
        if hasattr(self, "members"):
            held = [shard for member in self.members for shard in member.held.values()]
            safe = [(one.lease.stream, one.lease.shard) for one in held if one.is_safe()]
            assert len(safe) == len(set(safe))

    def teardown(self) -> None:
        if not hasattr(self, "members"):
            return
        try:
            self.failures = 0
            self.clock.advance(31)
            settle([WorkerMember(self.kit.worker.plan, self.store)], rounds=400)
            assert self.kit.worker.dead_letters(self.store) == []
            for author in AUTHORS:
                number = self.written[author]
                assert {(author, n) for n in range(number)} <= self.handled
                assert self.store.get(self.kit.copy, author=author, number=0).times == number
        finally:
            self.patch.undo()
            self.database.close()


Workers.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=30, deadline=None
)
TestWorkers = Workers.TestCase
