"""Views: a table as of a moment, and what changed between two, read in small pages beside more writes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.operations.conftest import Asker

import isotone
from isotone.engine import history, views
from isotone.engine.engine import Engine
from isotone.engine.layout import item_of
from isotone.errors import UsageError

START = 1_700_000_000
State = dict[str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "delete", "tick"]), st.integers(0, 9)), max_size=60
)


def ms(second: int) -> int:
    return second * 1000


def enable(ask: Asker) -> None:
    wanted = {"PointInTimeRecoveryEnabled": True}
    ask("UpdateContinuousBackups", TableName="tab", PointInTimeRecoverySpecification=wanted)


class Site:
    """A table with recovery, and what it held at each second."""

    def __init__(self, database: isotone.Database, clock: isotone.ManualClock) -> None:
        self.ask = Asker(database, clock)
        self.engine: Engine = database.engine
        self.ask.table()
        enable(self.ask)
        self.clock = clock
        self.present: State = {}
        self.states: dict[int, State] = {START: {}}
        self.written: list[tuple[int, str]] = []
        self.count = 0

    def run(self, steps: list[tuple[str, int]]) -> None:
        for kind, number in steps:
            getattr(self, kind)(f"k{number}")

    def put(self, key: str) -> None:
        self.count += 1
        self.present[key] = self.count
        item = {"p": {"S": key}, "v": {"N": str(self.count)}}
        self.ask("PutItem", TableName="tab", Item=item)
        self.note(key)

    def delete(self, key: str) -> None:
        if self.present.pop(key, None) is not None:
            self.note(key)
        self.ask("DeleteItem", TableName="tab", Key={"p": {"S": key}})

    def tick(self, _: str) -> None:
        self.clock.advance(1)

    def note(self, key: str) -> None:
        self.states[self.now] = dict(self.present)
        self.written.append((self.now, key))

    @property
    def now(self) -> int:
        return int(self.clock.now())

    def at(self, second: int) -> State:
        return self.states[max(each for each in self.states if each <= second)]

    def open(self, second: int | None) -> str:
        with self.engine.writing:
            table = self.engine.catalog.tables["tab"]
            return views.open_table(
                self.engine, table, "test:1", None if second is None else ms(second)
            )

    def page(self, view: str, most: int) -> views.ViewPage:
        with self.engine.writing:
            page = views.read(self.engine, view, most)
            if page.last:
                views.close(self.engine, view)
        return page


def content(records: list[tuple[bytes, bytes]]) -> State:
    return {key: value for _, record in records for key, value in [plain(record)]}


def plain(record: bytes) -> tuple[str, int]:
    item = item_of(record)
    return item["p"]["S"], int(item["v"]["N"])


@settings(max_examples=examples(60), deadline=None)
@given(STEPS, STEPS, st.data(), st.integers(1, 4))
def test_a_view_is_the_table_at_its_moment(
    before: list[Any], beside: list[Any], data: st.DataObject, most: int
) -> None:
    clock = isotone.ManualClock(START)
    with pytest.MonkeyPatch.context() as patch, isotone.open(clock=clock) as database:
        patch.setattr(views, "CATCH_UP", data.draw(st.integers(1, 3)))
        site = Site(database, clock)
        site.run(before)
        second = data.draw(st.none() | st.integers(START, site.now))
        expected = site.at(site.now if second is None else second)
        view = site.open(second)
        records: list[tuple[bytes, bytes]] = []
        while True:
            page = site.page(view, most)
            records += page.records
            assert len(page.records) <= most
            if page.last:
                break
            for _ in range(min(len(beside), 3)):
                site.run([beside.pop()])
        assert content(records) == expected
        keys = [key for key, _ in records]
        assert keys == sorted(set(keys))
        assert database.check() == []


@settings(max_examples=examples(60), deadline=None)
@given(STEPS, STEPS, st.data(), st.integers(1, 4))
def test_the_changes_between_two_moments(
    before: list[Any], beside: list[Any], data: st.DataObject, most: int
) -> None:
    clock = isotone.ManualClock(START)
    with pytest.MonkeyPatch.context() as patch, isotone.open(clock=clock) as database:
        patch.setattr(views, "CATCH_UP", data.draw(st.integers(1, 3)))
        site = Site(database, clock)
        site.run(before)
        since, until = sorted(data.draw(st.tuples(*[st.integers(START, site.now)] * 2)))
        old, new = site.at(since), site.at(until)
        times = {key: second for second, key in site.written if since < second <= until}
        with site.engine.writing:
            table = site.engine.catalog.tables["tab"]
            view = views.open_changes(site.engine, table, "test:1", ms(since), ms(until))
        changes: list[views.ViewChange] = []
        while True:
            with site.engine.writing:
                page = views.read_changes(site.engine, view, most)
                if page.last:
                    views.close(site.engine, view)
            changes += page.changes
            if page.last:
                break
            for _ in range(min(len(beside), 3)):
                site.run([beside.pop()])
        found = {plain(change.any)[0]: change for change in changes}
        assert len(found) == len(changes)
        assert {key: change.time for key, change in found.items()} == {
            key: ms(second) for key, second in times.items()
        }
        for key, change in found.items():
            for record, state in ((change.old, old), (change.new, new)):
                assert (None if record is None else plain(record)[1]) == state.get(key)
        assert database.check() == []


def test_a_view_keeps_the_history_that_it_needs_and_no_longer() -> None:
    clock = isotone.ManualClock(START)
    with isotone.open(clock=clock) as database:
        ask = Asker(database, clock)
        ask.table()
        engine = database.engine
        with engine.writing:
            views_ = [
                views.open_table(engine, engine.catalog.tables["tab"], f"test:{n}") for n in "12"
            ]
            assert views.owned(engine, "test") == views.opened(engine)[0]
            assert views.owned(engine, "other") is None
            assert views.is_read(engine, engine.catalog.tables["tab"].tree)
        tree = engine.catalog.tables["tab"].history
        assert tree is not None
        ask("PutItem", TableName="tab", Item={"p": {"S": "a"}})
        for left, view in enumerate(reversed(views_)):
            assert len(history.pins(engine, tree)) == 2 - left
            with engine.writing:
                assert views.read(engine, view, 5) == views.ViewPage([], last=True)
                views.close(engine, view)
        assert engine.catalog.tables["tab"].history is None
        assert tree not in engine.store.trees()
        assert database.check() == []


def test_a_view_that_was_interrupted_continues_in_another_process(tmp_path: Any) -> None:
    path = tmp_path / "file.db"
    with isotone.open(path) as database:
        ask = Asker(database, isotone.ManualClock())
        ask.table()
        for number in range(10):
            ask("PutItem", TableName="tab", Item={"p": {"S": f"k{number}"}, "v": {"N": "1"}})
        engine = database.engine
        with engine.writing:
            view = views.open_table(engine, engine.catalog.tables["tab"], "test:1")
            first = views.read(engine, view, 4)
    with isotone.open(path) as database:
        ask = Asker(database, isotone.ManualClock())
        for number in range(10):
            ask("DeleteItem", TableName="tab", Key={"p": {"S": f"k{number}"}})
        engine = database.engine
        with engine.writing:
            rest = views.read(engine, view, 10)
            views.close(engine, view)
        assert rest.last
        assert content(first.records + rest.records) == {f"k{number}": 1 for number in range(10)}
        assert database.check() == []


def test_a_view_is_read_as_what_it_is_and_while_it_is_open() -> None:
    clock = isotone.ManualClock(START)
    with isotone.open(clock=clock) as database:
        site = Site(database, clock)
        site.put("a")
        clock.advance(1)
        engine = site.engine
        with engine.writing:
            table = engine.catalog.tables["tab"]
            whole = views.open_table(engine, table, "test:1")
            changes = views.open_changes(engine, table, "test:2", ms(START) - 1, ms(START))
            with pytest.raises(UsageError, match=f"{whole} is not a view of changes"):
                views.read_changes(engine, whole, 10)
            with pytest.raises(UsageError, match=f"{changes} is a view of changes"):
                views.read(engine, changes, 10)
            views.close(engine, whole)
            with pytest.raises(UsageError, match=f"no open view {whole}"):
                views.read(engine, whole, 10)
            views.close(engine, changes)
        assert database.check() == []
