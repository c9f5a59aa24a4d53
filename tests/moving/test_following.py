"""Live copies: whatever is written meanwhile, both sides end with the same items."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.moving.tables import NAME, create, fill, items, key_of, order, two_files, write_at_random

import isotone
from isotone.backends.interface import Native, Request, Response
from isotone.errors import ChangesLost, UsageError
from isotone.moving import Progress, copy, diff

VIEWS = ("NEW_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY", "OLD_IMAGE", None)


class Interleaved(Native):
    """A backend that lets others write before and after each of its requests."""

    def __init__(self, database: isotone.Database, between: Callable[[], None]) -> None:
        self._database = database
        self._between = between

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        self._between()
        response = self._database.execute(operation, request)
        self._between()
        return response


@settings(max_examples=examples(90), deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(VIEWS),
    st.integers(0, 80),
    st.sampled_from([1, 3]),
    st.integers(1, 4),
)
def test_a_copy_with_a_writer_at_work_ends_equal(
    seed: int, view: str | None, count: int, segments: int, shards: int
) -> None:
    rng = random.Random(seed)
    writes = rng.randrange(300)

    def write() -> None:
        nonlocal writes
        for _ in range(rng.choice((0, 0, 1, 3))):
            if writes:
                writes -= 1
                write_at_random(source, rng, 90)

    stream = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": view}}
    with (
        TemporaryDirectory() as folder,
        isotone.open(stream_shards=shards) as source,
        isotone.open() as target,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("isotone.moving.copying._ITEMS_A_SENT_PAGE", 7)
        patch.setattr("isotone.moving.copying._IDLE", 0.0)
        patch.setattr("isotone.tables.jobs.TICK", 0.001)
        create(source, **(stream if view else {}))
        fill(source, count)
        state = Path(folder) / "state.json"
        busy = Interleaved(source, write)
        first = copy(busy, target, segments=segments, live=True, state=state)
        assert not first.is_complete
        for _ in range(rng.randrange(30)):
            write_at_random(source, rng, 90)
        done = copy(source, target, cut_over=True, state=state)
        assert done.is_complete
        assert done.is_equal
        assert items(source) == items(target)


def test_a_page_that_is_older_than_a_change_loses() -> None:
    """The order that would resurrect a deleted item: page read, item deleted, page written."""
    with isotone.open() as source, isotone.open() as target:
        create(source)
        fill(source, 40)
        state = {"reads": 0}

        class Late(Native):
            def execute(
                self, operation: str, request: Request, deadline: float | None = None
            ) -> Response:
                response = source.execute(operation, request)
                if operation == "Scan" and "Limit" in request and request["Limit"] > 1:
                    state["reads"] += 1
                    for item in response["Items"][:10]:
                        source.execute("DeleteItem", {"TableName": NAME, "Key": key_of(item)})
                    for item in response["Items"][10:20]:
                        new = {**item, "total": {"N": "7"}}
                        source.execute("PutItem", {"TableName": NAME, "Item": new})
                return response

        assert copy(Late(), target, segments=1, live=True).tables[NAME].lag == 0.0
        assert state["reads"]
        assert items(target) == items(source)
        assert len(items(target)) == 30


def test_a_live_copy_continues_and_is_cut_over(tmp_path: Path) -> None:
    ends = (tmp_path / "source.db", tmp_path / "target.db")
    state = tmp_path / "state.json"
    expiry = {"Enabled": True, "AttributeName": "gone"}
    with isotone.open(ends[0]) as source:
        create(source)
        fill(source, 200)
        source.execute("UpdateTimeToLive", {"TableName": NAME, "TimeToLiveSpecification": expiry})
    with isotone.open(ends[0]) as source:
        first = copy(*ends, live=True, state=state)
        assert not first.is_complete
        assert state.exists()
        with pytest.raises(UsageError, match="is live"):
            copy(*ends, state=state)
        for number in range(50):
            source.execute("PutItem", {"TableName": NAME, "Item": order(number, total=5)})
        source.execute("DeleteItem", {"TableName": NAME, "Key": key_of(order(60))})
        second = copy(*ends, live=True, state=state)
        assert second.tables[NAME].items == 200
        before = first.tables[NAME].changes
        assert second.tables[NAME].changes == before + 51, "only what is new is applied"
        source.execute("DeleteItem", {"TableName": NAME, "Key": key_of(order(61))})
        over = copy(*ends, cut_over=True, state=state)
        assert over.is_complete
        assert over.is_equal
        assert not state.exists()
    with two_files(tmp_path) as (source, target):
        assert items(source) == items(target)
        answer = target.execute("DescribeTimeToLive", {"TableName": NAME})
        assert answer["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
    assert diff(*ends).is_equal


def test_a_cut_over_of_sides_that_differ_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    with isotone.open() as source, isotone.open() as target:
        create(source)
        fill(source, 30)
        copy(source, target, live=True, state=state)
        target.execute("PutItem", {"TableName": NAME, "Item": order(99)})
        done = copy(source, target, cut_over=True, state=state)
        assert not done.is_complete
        assert not done.is_equal
        (example,) = done.comparisons[NAME].examples
        assert (example.source, example.target) == (None, order(99))
        target.execute("DeleteItem", {"TableName": NAME, "Key": key_of(order(99))})
        assert copy(source, target, cut_over=True, state=state).is_complete


def test_following_follows_until_the_caller_has_enough() -> None:
    with isotone.open() as source, isotone.open() as target:
        create(source)
        fill(source, 30)
        rounds: list[Progress] = []

        def until(progress: Progress) -> bool:
            rounds.append(progress)
            source.execute("PutItem", {"TableName": NAME, "Item": order(len(rounds), total=9)})
            return len(rounds) >= 20

        done = copy(source, target, live=True, until=until)
        assert len(rounds) == 20
        assert done.tables[NAME].items == 30
        assert done.tables[NAME].changes > 10
        assert rounds[-1].phase == "follow"


def test_a_pause_longer_than_the_stream_keeps_changes_is_reported(tmp_path: Path) -> None:
    """A shard of which nothing was read yet may have lost its first changes, and nothing in the stream tells it."""
    state = tmp_path / "state.json"
    with isotone.open() as source, isotone.open() as target:
        create(source)
        fill(source, 30)
        copy(source, target, live=True, state=state)
        saved = json.loads(state.read_text())
        position = saved["entries"][NAME]["stream"]
        assert position["waiting"]
        del saved["sum"]  # of the entries as they were
        position["noted"] = time.time() - 23 * 3600
        state.write_text(json.dumps(saved))
        copy(source, target, live=True, state=state)
        kept = json.loads(state.read_text())["entries"][NAME]["stream"]["noted"]
        assert kept > time.time() - 60  # the stream was read to its end
        position["noted"] = time.time() - 25 * 3600
        state.write_text(json.dumps(saved))
        with pytest.raises(ChangesLost, match="24 hours"):
            copy(source, target, live=True, state=state)


def test_changes_that_were_dropped_are_reported(tmp_path: Path) -> None:
    clock = isotone.ManualClock(1_800_000_000)
    state = tmp_path / "state.json"
    with isotone.open(clock=clock) as source, isotone.open() as target:
        create(source)
        fill(source, 30)
        copy(source, target, live=True, state=state)
        source.execute("PutItem", {"TableName": NAME, "Item": order(1, total=9)})
        for _ in range(10):
            clock.advance(4 * 3600)
            source.finish_maintenance()
            source.execute("PutItem", {"TableName": NAME, "Item": order(2, total=9)})
        with pytest.raises(ChangesLost, match="24 hours"):
            copy(source, target, live=True, state=state)


@pytest.mark.parametrize("later", [0, 1, 3, 9])
@pytest.mark.parametrize("is_running", [False, True])
def test_a_source_that_was_restored_is_reported(
    tmp_path: Path, later: int, is_running: bool
) -> None:
    """Its next changes have the sequence numbers of those that were undone, and would be skipped."""
    source, target, kept = (str(tmp_path / name) for name in ("source.db", "target.db", "kept.db"))
    state = tmp_path / "state.json"

    def write(numbers: range) -> None:
        with isotone.open(source) as database:
            for number in numbers:
                item = order(number, total=9)
                database.execute("PutItem", {"TableName": NAME, "Item": item})

    def restore_and_write() -> None:
        isotone.restore(kept, source, force=True)
        write(range(200, 200 + later))

    with isotone.open(source) as database:
        create(database)
        fill(database, 30)
    assert copy(source, target, live=True, state=state).is_caught_up
    isotone.backup(source, kept)
    write(range(100, 103))
    assert copy(source, target, live=True, state=state).is_caught_up
    rounds: list[Progress] = []

    def until(progress: Progress) -> bool:
        rounds.append(progress)
        if len(rounds) == 8:
            restore_and_write()
        return len(rounds) > 30

    if not is_running:
        restore_and_write()
    with pytest.raises(ChangesLost, match="the source was restored to an earlier state"):
        copy(source, target, live=True, state=state, until=until if is_running else None)
    Path(target).unlink()
    assert copy(source, target, live=True, state=state).is_caught_up
    assert copy(source, target, cut_over=True, state=state).is_equal


@pytest.mark.parametrize("is_enabled_again", [False, True])
def test_a_stream_that_was_disabled_is_reported(tmp_path: Path, is_enabled_again: bool) -> None:
    state = tmp_path / "state.json"
    with isotone.open() as source, isotone.open() as target:
        create(source)
        fill(source, 30)
        copy(source, target, live=True, state=state)
        stream: dict[str, Any] = {"StreamEnabled": False}
        source.execute("UpdateTable", {"TableName": NAME, "StreamSpecification": stream})
        source.execute("PutItem", {"TableName": NAME, "Item": order(1, total=9)})
        if is_enabled_again:
            stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
            source.execute("UpdateTable", {"TableName": NAME, "StreamSpecification": stream})
        with pytest.raises(ChangesLost, match="the stream was disabled"):
            copy(source, target, live=True, state=state)


def test_shards_that_divide_are_followed_in_order(tmp_path: Path) -> None:
    clock = isotone.ManualClock(1_800_000_000)
    rng = random.Random(4)
    state = tmp_path / "state.json"
    with isotone.open(clock=clock, stream_shards=2) as source, isotone.open() as target:
        create(source)
        fill(source, 60)
        copy(source, target, live=True, state=state)
        for _ in range(4):
            for _ in range(60):
                write_at_random(source, rng, 80)
            clock.advance(4 * 3600 + 1)
            source.finish_maintenance()
        copy(source, target, live=True, state=state)
        assert items(source) == items(target)
        for _ in range(30):
            write_at_random(source, rng, 80)
        assert copy(source, target, cut_over=True, state=state).is_complete
        assert items(source) == items(target)


def test_empty_maps_survive_the_stream() -> None:
    with isotone.open() as source, isotone.open() as target:
        create(source)
        copy_of: dict[str, Any] = {**order(1), "map": {"M": {"inner": {"L": [{"M": {}}]}}}}
        copy(source, target, live=True)
        source.execute("PutItem", {"TableName": NAME, "Item": copy_of})
        copy(source, target, live=True, into_existing=True)
        assert items(target) == items(source)
