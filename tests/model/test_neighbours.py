"""Entities of one table whose primary keys only their values could confuse: a partition of literals is reserved."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone import Attr, Entity, Global, Index, Key, Store, Table, field, raw, written
from isotone.errors import OutOfRange, UsageError
from isotone.structures import Leaderboard

AT = datetime(2022, 8, 13, tzinfo=UTC)
_numbers = count()


class SpeedOfService:
    """The rows of a restaurant's stores and their leaderboard, in one table with the keys that are there."""

    def __init__(self, *, is_raw: bool = True, board_first: bool = False) -> None:
        self.table = Table(
            f"speed-{next(_numbers)}", indexes={"GSI1": Global("gsipk-1", "gsisk-1")}
        )
        self.is_raw = is_raw
        if board_first:
            self.board = self._board()
        self.car = self._car()
        if not board_first:
            self.board = self._board()

    def _car(self) -> Any:
        class Car(Entity, table=self.table):
            store: Attr[str] = field()
            at: Attr[datetime] = field()
            lane: Attr[str] = field()

            primary = Key(raw(store)).sort(written(at, "%Y-%m-%d %H:%M:%S"), raw(lane))

        return Car

    def _board(self) -> Any:
        is_raw = self.is_raw

        class Board(Entity, table=self.table):
            store: Attr[str] = field()
            day: Attr[str] = field()
            quarter: Attr[int] = field(max=95)
            average: Attr[int] = field(max=999_999)

            primary = Key("LEADERBOARD").sort(raw(store) if is_raw else store)
            fastest = Index("GSI1", "LEADERBOARD").sort(raw(day), raw(quarter), average)

        return Board

    def store(self) -> Store:
        store = isotone.connect(":memory:")
        store.create_tables(self.table)
        return store


forms = pytest.mark.parametrize(
    ("is_raw", "board_first"), [(True, False), (True, True), (False, False), (False, True)]
)


@forms
def test_rows_by_store_and_their_leaderboard_are_in_one_table(
    is_raw: bool, board_first: bool
) -> None:
    shape = SpeedOfService(is_raw=is_raw, board_first=board_first)
    with shape.store() as store:
        store.put(shape.car(store="000187", at=AT, lane="LANE1"))
        for number, average in ("000187", 201), ("000042", 187), ("000003", 201):
            store.put(shape.board(store=number, day="2022-08-13", quarter=2, average=average))
        keys = {
            (item["PK"]["S"], item["SK"]["S"], item.get("gsisk-1", {}).get("S"))
            for item in store.backend.execute("Scan", {"TableName": shape.table.name})["Items"]
            if item["PK"]["S"] != "_keys"
        }
        # As the founding text writes them.
        assert keys == {
            ("000187", "2022-08-13 00:00:00#LANE1", None),
            ("LEADERBOARD", "000187", "2022-08-13#2#000201"),
            ("LEADERBOARD", "000042", "2022-08-13#2#000187"),
            ("LEADERBOARD", "000003", "2022-08-13#2#000201"),
        }
        ten = store.page(
            shape.board.fastest.where(shape.board.day == "2022-08-13", shape.board.quarter == 2),
            size=10,
        )
        assert ten[0].store == "000042"
        assert ten.stats.scanned == 3
        assert store.verify(shape.table).is_clean


@forms
def test_the_value_that_would_share_the_partition_is_refused(
    is_raw: bool, board_first: bool
) -> None:
    shape = SpeedOfService(is_raw=is_raw, board_first=board_first)
    message = (
        r"store='LEADERBOARD' makes the partition key 'LEADERBOARD', which is reserved for Board; give another "
        r"value, or begin the key with a literal of its own: Key\('PREFIX', store\)"
    )
    with shape.store() as store:
        for call in (
            lambda: store.put(shape.car(store="LEADERBOARD", at=AT, lane="LANE1")),
            lambda: store.put_many([shape.car(store="LEADERBOARD", at=AT, lane="LANE1")]),
            lambda: store.get(shape.car, store="LEADERBOARD", at=AT, lane="LANE1"),
            lambda: store.all(shape.car.primary.where(shape.car.store == "LEADERBOARD")),
        ):
            with pytest.raises(OutOfRange, match=message):
                call()
        store.put(shape.board(store="LEADERBOARD", day="2022-08-13", quarter=2, average=1))
        store.put(shape.car(store="LEADERBOARDS", at=AT, lane="LANE1"))
        assert len(store.all(shape.board.primary.where())) == 1


_texts = st.text("LEADRBO#2-1: ", max_size=12).filter(bool) | st.sampled_from(
    ["LEADERBOARD", "2022-08-13 00:00:00#LANE1", "2022-08-13 00:00:00#LEADERBOARD"]
)
_shape = SpeedOfService()


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(st.booleans(), _texts, _texts), max_size=8))
@example([(True, "LEADERBOARD", "LANE1"), (False, "2022-08-13 00:00:00#LANE1", "x")])
def test_no_value_lets_one_entity_overwrite_the_other(
    writes: list[tuple[bool, str, str]],
) -> None:
    expected: dict[tuple[str, ...], Any] = {}
    with _shape.store() as store:
        for is_car, name, text in writes:
            if is_car:
                entity = _shape.car(store=name, at=AT, lane=text)
                if name == "LEADERBOARD":
                    with pytest.raises(OutOfRange):
                        store.put(entity)
                    continue
                expected["car", name, text] = entity
            else:
                entity = _shape.board(store=name, day=text.replace("#", "-"), quarter=2, average=1)
                expected["board", name] = entity
            store.put(entity)
        for key, entity in expected.items():
            given = {"at": AT, "lane": key[2]} if key[0] == "car" else {}
            assert store.get(type(entity), store=key[1], **given) == entity


def test_a_key_attribute_that_is_a_field_is_checked_too() -> None:
    table = Table("native", partition="store", sort="SK")

    class Config(Entity, table=table):
        name: Attr[str] = field()
        primary = Key("CONFIG").sort(raw(name))

    class Car(Entity, table=table):
        store: Attr[str] = field()
        lane: Attr[str] = field()
        primary = Key(store).sort(raw(lane))

    with isotone.connect(":memory:") as store:
        store.create_tables(table)
        store.put(Car(store="000187", lane="LANE1"))
        with pytest.raises(OutOfRange, match="'CONFIG', which is reserved for Config"):
            store.put(Car(store="CONFIG", lane="LANE1"))


def test_a_class_that_is_defined_again_reserves_its_new_partition_only() -> None:
    shape = SpeedOfService()
    table = shape.table

    class Board(Entity, table=table):
        store: Attr[str] = field()
        primary = Key("BOARD").sort(raw(store))

    with shape.store() as store:
        store.put(shape.car(store="LEADERBOARD", at=AT, lane="LANE1"))
        with pytest.raises(OutOfRange, match="'BOARD', which is reserved for Board"):
            store.put(shape.car(store="BOARD", at=AT, lane="LANE1"))


def test_a_leaderboard_of_the_library_is_in_the_table_of_its_rows() -> None:
    table = Table("rows", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

    class Car(Entity, table=table):
        store: Attr[str] = field()
        at: Attr[datetime] = field()
        lane: Attr[str] = field()

        primary = Key(raw(store)).sort(written(at, "%Y-%m-%d %H:%M:%S"), raw(lane))

    with isotone.connect(":memory:") as store:
        store.create_tables(table)
        board = Leaderboard(store, score="average", best="lowest", table=table)
        store.put(Car(store="000187", at=AT, lane="LANE1"))
        assert board.record("000187", 187) == 187
        with pytest.raises(OutOfRange, match="reserved for LeaderboardEntry"):
            store.put(Car(store="LEADERBOARD", at=AT, lane="LANE1"))


def test_a_partition_with_fields_and_another_literal_is_distinguished_as_before() -> None:
    table = Table("apart")

    class Page(Entity, table=table):
        name: Attr[str] = field()
        primary = Key("PAGE", raw(name)).sort("PAGE")

    # The settings of one page, in its own partition: the sort key tells them apart.
    class Settings(Entity, table=table):
        primary = Key("PAGE#index").sort("SETTINGS")

    with isotone.connect(":memory:") as store:
        store.create_tables(table)
        store.put(Page(name="index"))
    with pytest.raises(UsageError, match="could equal one of"):

        class Data(Entity, table=table):
            primary = Key("PAGE#data").sort("PAGE")


def test_items_of_a_reserved_partition_that_are_there_are_reported() -> None:
    shape = SpeedOfService()
    with shape.store() as store:
        store.backend.execute(
            "PutItem",
            {
                "TableName": shape.table.name,
                "Item": {
                    "PK": {"S": "LEADERBOARD"},
                    "SK": {"S": "2022-08-13 00:00:00#LANE1"},
                    "_type": {"S": "Car"},
                    "store": {"S": "LEADERBOARD"},
                    "at": {"S": "2022-08-13T00:00:00.000000Z"},
                    "lane": {"S": "LANE1"},
                },
            },
        )
        assert [car.store for car in store.all(shape.car.primary.scan())] == ["LEADERBOARD"]
        report = store.verify(shape.table)
        assert report.count("overflow") == 1
        (finding,) = report.findings
        assert "reserved for Board" in str(finding.examples)
