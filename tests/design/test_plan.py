"""A plan says what changes in a live table; applying it changes that and no more, and survives a kill at any request."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.intercepted_backend import InterceptedBackend

import isotone
from isotone import Attr, Entity, Global, Index, Key, Local, Store, Table, expires, field
from isotone.design import apply, plan_of
from isotone.design.plan import PlanStep
from isotone.errors import KeysChanged, UsageError
from isotone.prices import US_EAST_1

ORDERS = 30

was = Table("desk", indexes={"OLD": Global("OLDPK", "OLDSK"), "GSI2": Global("GSI2PK", "GSI2SK")})


class WasOrder(Entity, table=was, tag="Order"):
    number: Attr[int] = field(max=999)
    status: Attr[str] = field()

    primary = Key("ORDER", number).sort("ORDER")
    old = Index("OLD", "STATUS", status).sort(number)
    second = Index("GSI2", "STATUS", status).sort(number)


class WasNote(Entity, table=was, tag="Note"):
    number: Attr[int] = field(max=999)

    primary = Key("NOTE", number).sort("NOTE")


desk = Table(
    "desk",
    stream="NEW_IMAGE",
    indexes={
        "GSI1": Global("GSI1PK", "GSI1SK"),
        "GSI2": Global("GSI2PK", "GSI2SK", projection="KEYS_ONLY"),
    },
)


class Order(Entity, table=desk):
    number: Attr[int] = field(max=99_999)
    status: Attr[str] = field()
    ends: Attr[datetime | None] = expires(default=None)

    primary = Key("ORDER", number).sort("ORDER")
    by_status = Index("GSI1", "STATUS", status).sort(number)
    second = Index("GSI2", "STATUS", status).sort(number)


class Note(Entity, table=desk):
    number: Attr[int] = field(max=999)

    primary = Key("NOTE", number).sort("NOTE")


class Extra(Entity, table=Table("extra")):
    number: Attr[int] = field(max=999)

    primary = Key("EXTRA", number).sort("EXTRA")


extra = Extra.__schema__.table
BOTH = (desk, extra)


def fill(store: Store) -> None:
    """What the former program left."""
    store.create_tables(was)
    store.put_many(WasOrder(number=n, status="OPEN") for n in range(ORDERS))
    store.put_many(WasNote(number=n) for n in range(5))


@pytest.fixture
def database() -> Any:
    with isotone.open(":memory:") as made:
        with isotone.connect(made) as store:
            fill(store)
        yield made


def kinds(store: Store) -> list[tuple[str, str, str]]:
    return [(step.kind, step.name, step.needs) for step in plan_of(store, *BOTH).steps]


STEPS = [
    ("create table", "", ""),
    ("enable stream", "NEW_IMAGE", ""),
    ("enable expiry", "_expires", ""),
    ("add index", "GSI1", ""),
    ("replace index", "GSI2", "--drop-indexes"),
    ("rewrite", "Order", ""),
    ("drop index", "OLD", "--drop-indexes"),
]


def test_a_plan_has_a_step_for_each_difference(database: Any) -> None:
    store = isotone.connect(database)
    before = database.execute("Scan", {"TableName": "desk"})["Items"]
    assert kinds(store) == STEPS
    plan = plan_of(store, *BOTH)
    (rewrite,) = [step for step in plan.steps if step.kind == "rewrite"]
    assert rewrite.items == ORDERS
    assert "width" in rewrite.why
    # An order moves to its new key in a transaction, for twice the units: out of the table and of two indexes, and into
    # the table and three indexes.
    assert rewrite.writes == ORDERS * 2 * (3 + 4)
    assert rewrite.cost == US_EAST_1.on_demand(reads=rewrite.reads, writes=rewrite.writes)
    assert plan.cost == sum(step.cost for step in plan.steps)
    assert "needs --drop-indexes" in str(plan)
    assert database.execute("Scan", {"TableName": "desk"})["Items"] == before
    assert not plan.blocked


def test_the_units_of_a_plan_are_those_of_the_work(database: Any) -> None:
    """The estimate of a rewrite is what the rewrite costs, saved positions aside."""
    apply_all_but_the_rewrite(database)
    store = isotone.connect(database)
    (rewrite,) = [step for step in plan_of(store, desk).steps if step.kind == "rewrite"]
    seen: list[isotone.Observation] = []
    isotone.connect(database, observe=[isotone.at_end(seen.append)]).rewrite(Order)
    units = sum(each.units for each in seen if each.operation == "TransactWriteItems")
    assert units == pytest.approx(rewrite.writes, rel=0.1)


def apply_all_but_the_rewrite(database: Any) -> None:
    with isotone.connect(database) as store:
        store.add_indexes(desk)


def test_nothing_is_dropped_without_being_told(database: Any) -> None:
    store = isotone.connect(database)
    applied = apply(store, *BOTH)
    assert [step.kind for step in applied.done] == [
        "create table",
        "enable stream",
        "enable expiry",
        "add index",
        "rewrite",
    ]
    assert [each.partition(":")[0] for each in applied.left] == [
        "replace index GSI2 (desk)",
        "drop index OLD (desk)",
    ]
    names = {"GSI1", "GSI2", "OLD"}
    described = database.execute("DescribeTable", {"TableName": "desk"})["Table"]
    assert {each["IndexName"] for each in described["GlobalSecondaryIndexes"]} == names
    finished = apply(store, *BOTH, drop_indexes=True)
    assert [step.kind for step in finished.done] == ["replace index", "drop index"]
    assert is_as_declared(database)


def is_as_declared(database: Any) -> bool:
    """Whether everything is as the model says, with every item of before, readable by its index."""
    with isotone.connect(database, report=None) as store:
        assert kinds(store) == []
        assert store.differences(*BOTH) == []
        found = store.verify(*BOTH)
        assert {each.kind for each in found.findings} <= {"undeclared_index", "unknown_attribute"}
        assert len(store.all(Order.by_status.where(Order.status == "OPEN"))) == ORDERS
        assert len(store.all(Order.second.where(Order.status == "OPEN").select(Order.number))) == (
            ORDERS
        )
        assert len(store.all(Note.primary.scan())) == 5
        described = database.execute("DescribeTable", {"TableName": "desk"})["Table"]
        assert {each["IndexName"] for each in described["GlobalSecondaryIndexes"]} == {
            "GSI1",
            "GSI2",
        }
        assert described["StreamSpecification"]["StreamEnabled"]
        assert not [
            item
            for item in database.execute("Scan", {"TableName": "desk"})["Items"]
            if item["PK"]["S"].startswith("_rewriting")
        ]
    return True


def test_applying_twice_changes_nothing(database: Any) -> None:
    store = isotone.connect(database)
    assert len(apply(store, *BOTH, drop_indexes=True).done) == len(STEPS)
    again = apply(store, *BOTH, drop_indexes=True)
    assert (again.done, again.left) == ((), ())
    assert str(again) == "nothing was to be done"
    assert str(plan_of(store, *BOTH)) == "the tables are as declared"


class Killed(BaseException):
    """The end of a process."""


WRITES = {
    "CreateTable",
    "UpdateTable",
    "UpdateTimeToLive",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "TransactWriteItems",
    "BatchWriteItem",
}


@pytest.mark.parametrize("is_lost", [False, True], ids=["before", "after"])
def test_a_kill_at_any_write_is_continued(is_lost: bool) -> None:
    """Before or after each request that writes: another process applies the rest."""
    at = 0
    while True:
        at += 1
        left = at

        def die(operation: str, _: Any) -> None:
            nonlocal left
            left -= operation in WRITES
            if left == 0 and operation in WRITES:
                raise Killed

        with isotone.open(":memory:") as database:
            with isotone.connect(database) as store:
                fill(store)
            hooks: dict[str, Any] = {"after": die} if is_lost else {"before": die}
            dying = isotone.connect(InterceptedBackend(database, **hooks))
            try:
                apply(dying, *BOTH, drop_indexes=True)
            except Killed:
                with isotone.connect(database) as store:
                    apply(store, *BOTH, drop_indexes=True)
                assert is_as_declared(database)
            else:
                break
    assert at > 10


def test_a_process_that_is_killed_in_each_step_is_continued(tmp_path: Path) -> None:
    """`kill -9` of the process, in the middle of each kind of step, on one file."""
    file = tmp_path / "desk.db"
    with isotone.connect(str(file)) as store:
        fill(store)
    program = textwrap.dedent(
        """
        import os, sys
        import isotone
        from isotone.design import apply
        from tests.design.test_plan import BOTH

        def die(step, text):
            if step.kind == sys.argv[2] and (step.kind != "rewrite" or text != "begins"):
                os.kill(os.getpid(), 9)

        with isotone.connect(sys.argv[1]) as store:
            apply(store, *BOTH, drop_indexes=True, progress=die)
        """
    )
    root = Path(__file__).parents[2]
    for kind, *_ in STEPS:
        ended = subprocess.run(
            [sys.executable, "-c", program, str(file), kind],
            cwd=root,
            env={"PYTHONPATH": f"{root / 'src'}:{root}", "PATH": ""},
            capture_output=True,
            check=False,
        )
        assert ended.returncode == -9, ended.stderr.decode()
        with isotone.connect(str(file)) as store:
            assert kind in [step.kind for step in plan_of(store, *BOTH).steps] or kind == "rewrite"
    with isotone.open(str(file)) as database:
        with isotone.connect(database) as store:
            apply(store, *BOTH, drop_indexes=True)
        assert is_as_declared(database)


def test_a_rewrite_that_cannot_correct_all_is_left(database: Any) -> None:
    with isotone.connect(database) as store:
        apply(store, desk)
    item = {
        "PK": {"S": "ORDER#00077"},
        "SK": {"S": "ORDER"},
        "_type": {"S": "Order"},
        "number": {"S": "seventy-seven"},
        "status": {"S": "OPEN"},
    }
    database.execute("PutItem", {"TableName": "desk", "Item": item})
    store = isotone.connect(database)
    applied = apply(store, desk)
    assert not applied.done
    (left,) = [each for each in applied.left if each.startswith("rewrite Order")]
    assert "1 invalid" in left
    assert "seventy-seven" in left


def test_what_no_step_can_change() -> None:
    with isotone.open(":memory:") as database:
        with isotone.connect(database) as store:
            store.create_tables(
                Table("one", partition="id", sort=None),
                Table("two"),
                Table("three", stream="KEYS_ONLY"),
            )

        one, two = Table("one"), Table("two", indexes={"local": Local("LSK")})
        three = Table("three", stream="NEW_IMAGE")

        class One(Entity, table=one):
            name: Attr[str] = field()
            primary = Key("ONE", name).sort("ONE")

        class Two(Entity, table=two):
            name: Attr[str] = field()
            total: Attr[int] = field(max=9)
            primary = Key("TWO", name).sort("TWO")
            local = Index("local", "TWO", name).sort(total)

        class Three(Entity, table=three):
            name: Attr[str] = field()
            primary = Key("THREE", name).sort("THREE")

        store = isotone.connect(database)
        plan = plan_of(store, One, Two, Three)
        assert plan.steps == ()
        texts = "\n".join(plan.blocked)
        assert (
            "table 'one' has the key id (HASH), declared is PK (HASH), SK (RANGE); a key" in texts
        )
        assert (
            "index 'local' of table 'two' does not exist; a local index is made only with" in texts
        )
        assert "table 'three' has a stream of KEYS_ONLY, declared is NEW_IMAGE; disable" in texts
        assert apply(store, One, Two, Three).left == plan.blocked


def test_programs_of_the_model_read_after_it_is_applied(database: Any) -> None:
    with isotone.connect(database) as store, pytest.raises(KeysChanged):
        store.get(Order, number=3)
    with isotone.connect(database) as store:
        apply(store, desk)
        assert store.get(Order, number=3) is not None


def test_a_target_that_is_no_table(database: Any) -> None:
    nothing: Any = "desk"
    with pytest.raises(UsageError, match="'desk' is neither a table nor an entity of one"):
        plan_of(isotone.connect(database), nothing)


@pytest.mark.parametrize("option", ["undo", "units_per_second"])
def test_what_a_rewrite_would_refuse_is_refused_before_the_first_step(
    database: Any, tmp_path: Path, option: str
) -> None:
    notes = tmp_path / "notes"
    notes.write_text("not an undo log\n")
    options: dict[str, Any] = {"undo": notes} if option == "undo" else {"units_per_second": 0}
    with isotone.connect(database) as store:
        before = [str(step) for step in plan_of(store, desk).steps]
        with pytest.raises(UsageError, match=r"is not an undo log|units_per_second=0 would"):
            apply(store, desk, **options)
        assert [str(step) for step in plan_of(store, desk).steps] == before
    assert notes.read_text() == "not an undo log\n"


@pytest.mark.parametrize("units", [0, -1, float("nan")])
def test_a_plan_with_no_units(database: Any, units: float) -> None:
    with isotone.connect(database) as store, pytest.raises(UsageError, match="units_per_second="):
        plan_of(store, desk, units_per_second=units)


def test_a_step_names_itself() -> None:
    assert (
        str(PlanStep("add index", "desk", "GSI1", "it does not exist")) == "add index GSI1 (desk)"
    )
