"""A table is brought to what its entities write now, while programs read and write it."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, desc, field, raw, upgrade, version
from isotone.errors import InProgress, KeysChanged, NotUnique, StorageError, UsageError
from isotone.model.undo_log import UndoLog

INDEXES = {"GSI1": Global("GSI1PK", "GSI1SK")}


def items(desk: Any, table: str = "shop") -> list[Any]:
    """All items, but not those of the library."""
    found: list[Any] = []
    start: dict[str, Any] = {}
    while True:
        page = desk.backend.execute("Scan", {"TableName": table, **start})
        found += [each for each in page["Items"] if not each["_type"]["S"].startswith("_")]
        if "LastEvaluatedKey" not in page:
            return sorted(found, key=lambda item: (item["PK"]["S"], item["SK"]["S"]))
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def put_item(desk: Any, item: dict[str, Any]) -> None:
    desk.backend.execute("PutItem", {"TableName": "shop", "Item": item})


def order(*, indexed: bool) -> Any:
    """A program with orders, without an index or with one."""

    class Order(Entity, table=Table("shop", indexes=INDEXES)):
        customer: Attr[str] = field()
        number: Attr[int] = field(max=999, alert=None)
        total: Attr[Decimal] = field(default=Decimal(0), max=9_999, scale=2, alert=None)

        primary = Key("CUSTOMER", customer).sort("ORDER", number)
        if indexed:
            by_total = Index("GSI1", "ORDERS").sort(total)

    return Order


def test_an_item_that_the_service_refuses_is_counted(desk: Any) -> None:
    def person(*, indexed: bool) -> Any:
        class Person(Entity, table=Table("shop", indexes=INDEXES)):
            number: Attr[int] = field(max=9)
            team: Attr[str] = field()
            primary = Key("PERSON").sort(number)
            if indexed:
                by_team = Index("GSI1", team).sort("TEAM")

        return Person

    old, new = person(indexed=False), person(indexed=True)
    desk.store.create_tables(old.__schema__.table)
    for number, team in enumerate(["", "red"]):
        desk.store.put(old(number=number, team=team))
    done = isotone.connect(desk.backend).rewrite(new)
    assert (done.rewritten, done.invalid) == (1, 1)
    assert "empty string" in str(done.failures[0])


def test_a_new_index_is_filled(desk: Any) -> None:
    old, new = order(indexed=False), order(indexed=True)
    desk.store.create_tables(old.__schema__.table)
    for number in range(5):
        desk.store.put(old(customer="ann", number=number, total=number))
    store = isotone.connect(desk.backend)
    with pytest.raises(KeysChanged, match=r"store\.rewrite"):
        store.all(new.by_total.where())
    before = items(desk)
    trial = store.rewrite(new, dry_run=True)
    assert (trial.seen, trial.rewritten, trial.kinds) == (5, 5, {"index_missing": 5})
    assert trial.is_dry_run
    assert items(desk) == before
    assert "GSI1SK: nothing → '0000.00'" in str(trial.examples[0])
    done = store.rewrite(new, segments=3)
    assert (done.seen, done.rewritten, done.is_clean, done.is_complete) == (5, 5, True, True)
    assert [each.number for each in store.all(new.by_total.where())] == [0, 1, 2, 3, 4]
    assert store.verify(new).is_clean
    assert store.rewrite(new).rewritten == 0


def test_items_that_cannot_be_read_are_counted(desk: Any) -> None:
    new = order(indexed=True)
    store = desk.store
    store.create_tables(new.__schema__.table)
    for number in range(3):
        store.put(new(customer="ann", number=number))
    for number, total in ((3, {"S": "much"}), (4, {"N": "99999"})):
        key = {
            "PK": {"S": "CUSTOMER#ann"},
            "SK": {"S": f"ORDER#{number:03}"},
            "_type": {"S": "Order"},
        }
        fields = {"customer": {"S": "ann"}, "number": {"N": str(number)}, "total": total}
        put_item(desk, {**key, **fields})
    done = store.rewrite(new)
    assert (done.seen, done.rewritten, done.invalid, done.is_clean) == (5, 0, 2, False)
    assert {each.key["SK"] for each in done.failures} == {"ORDER#003", "ORDER#004"}
    assert any("field 'total' has {'S': 'much'}" in str(each) for each in done.failures)


class Legacy(Entity, table=Table("shop"), tag="Person"):
    """What wrote the names in one attribute."""

    person_id: Attr[str] = field()
    name: Attr[str] = field()
    age: Attr[str] = field(default="7")

    primary = Key("PERSON", person_id).sort("PERSON")


class Person(Entity, table=Table("shop"), tag="Person"):
    person_id: Attr[str] = field()
    first: Attr[str] = field()
    last: Attr[str] = field(default="")
    age: Attr[int] = field()

    primary = Key("PERSON", person_id).sort("PERSON")


def split(item: dict[str, Any]) -> dict[str, Any]:
    first, _, last = item.pop("name").partition(" ")
    return {**item, "first": first, "last": last, "age": int(item["age"])}


def test_a_function_splits_merges_and_retypes(desk: Any) -> None:
    desk.store.create_tables(Legacy.__schema__.table)
    for number in range(4):
        desk.store.put(Legacy(person_id=str(number), name=f"Ann Lee{number}", age=str(number)))
    desk.store.put(Person(person_id="new", first="Bo", age=3))
    unreadable = desk.store.rewrite(Person)
    assert (unreadable.invalid, unreadable.rewritten) == (4, 0)
    done = desk.store.rewrite(Person, change=split)
    assert (done.seen, done.rewritten, done.is_clean) == (5, 4, True)
    assert desk.store.get(Person, person_id="2") == Person(
        person_id="2", first="Ann", last="Lee2", age=2
    )
    assert all("name" not in item for item in items(desk))
    assert (
        desk.store.rewrite(Person, change=split).rewritten == 0
    )  # it takes what is not as declared
    assert desk.store.verify(Person).is_clean


def test_a_function_that_fails_changes_nothing(desk: Any) -> None:
    desk.store.create_tables(Legacy.__schema__.table)
    desk.store.put(Legacy(person_id="1", name="Ann"))
    before = items(desk)
    done = desk.store.rewrite(Person, change=lambda item: item["nothing"])
    assert done.invalid == 1
    assert "KeyError('nothing')" in str(done.failures[0])
    nothing: Any = lambda item: None  # noqa: E731
    assert "end it with `return item`" in str(
        desk.store.rewrite(Person, change=nothing).failures[0]
    )
    assert items(desk) == before


class Second(Entity, table=Table("shop"), tag="Person", version=2):
    person_id: Attr[str] = field()
    first: Attr[str] = field()

    primary = Key("PERSON", person_id).sort("PERSON")

    @staticmethod
    @upgrade(1)
    def rename(item: dict[str, Any]) -> dict[str, Any]:
        item["first"] = item.pop("name")
        return item


def test_items_of_an_older_version_are_upgraded(desk: Any) -> None:
    desk.store.create_tables(Legacy.__schema__.table)
    desk.store.put(Legacy(person_id="1", name="Ann"))
    done = desk.store.rewrite(Second)
    assert done.kinds["older_version"] == 1
    (item,) = items(desk)
    assert (item["_v"], item["first"], "name" in item) == ({"N": "2"}, {"S": "Ann"}, False)


def test_rows_without_a_tag_get_it(desk: Any) -> None:
    desk.store.create_tables(Person.__schema__.table)
    put_item(
        desk,
        {"PK": {"S": "PERSON#1"}, "SK": {"S": "PERSON"}, "first": {"S": "A"}, "age": {"N": "1"}},
    )
    done = desk.store.rewrite(Person)
    assert done.kinds == {"untagged": 1, "implied": 1}
    (item,) = items(desk)
    assert (item["_type"], item["person_id"]) == ({"S": "Person"}, {"S": "1"})


class Account(Entity, table=Table("shop")):
    mail: Attr[str] = field()
    name: Attr[str] = field(default="")

    primary = Key("ACCOUNT", mail).sort("ACCOUNT")


class UniqueAccount(Entity, table=Table("shop"), tag="Account"):
    mail: Attr[str] = field()
    name: Attr[str] = field(default="", unique=True)

    primary = Key("ACCOUNT", mail).sort("ACCOUNT")


def test_values_of_a_field_that_became_unique_are_claimed(desk: Any) -> None:
    desk.store.create_tables(Account.__schema__.table)
    for mail, name in (("a", "ann"), ("b", "bob"), ("c", "ann")):
        desk.store.put(Account(mail=mail, name=name))
    done = desk.store.rewrite(UniqueAccount)
    assert (done.rewritten, done.conflicts) == (2, 1)
    assert "'ann' is taken" in str(done.failures[0])
    with pytest.raises(NotUnique):
        desk.store.create(UniqueAccount(mail="d", name="bob"))
    again = desk.store.rewrite(UniqueAccount)
    assert (again.rewritten, again.conflicts) == (0, 1)


@pytest.mark.parametrize("way", ["update", "put", "replace", "delete", "transaction"])
def test_of_two_items_with_one_unique_value_either_can_be_changed(desk: Any, way: str) -> None:
    desk.store.create_tables(Account.__schema__.table)
    for mail in ("a", "b"):
        desk.store.put(Account(mail=mail, name="ann"))
    (failure,) = desk.store.rewrite(UniqueAccount).failures
    mail = failure.key["PK"].removeprefix("ACCOUNT#")
    change = UniqueAccount.name.set("bob")
    if way == "update":
        desk.store.update(UniqueAccount, change, mail=mail)
    elif way == "put":
        desk.store.put(UniqueAccount(mail=mail, name="bob"))
    elif way == "replace":
        desk.store.replace(UniqueAccount(mail=mail, name="bob"))
    elif way == "delete":
        desk.store.delete(UniqueAccount, mail=mail)
    else:
        with desk.store.transaction() as tx:
            tx.update(UniqueAccount, change, mail=mail)
            tx.put(UniqueAccount(mail="c", name="eve"))
    assert desk.store.verify(UniqueAccount).is_clean
    assert desk.store.rewrite(UniqueAccount).is_clean
    with pytest.raises(NotUnique):
        desk.store.create(UniqueAccount(mail="d", name="ann"))


# Another tag, another key


def purchase(phase: str) -> Any:
    """The entity before, during and after it gets another tag and another key."""
    table = Table("shop", indexes=INDEXES)
    was: dict[str, Any] = {"was_tag": "Purchase"} if phase == "during" else {}

    class Order(Entity, table=table, tag="Purchase" if phase == "before" else "Order", **was):  # type: ignore[call-arg]
        customer: Attr[str] = field()
        number: Attr[int] = field(max=99_999, alert=None)
        stars: Attr[int] = field(default=0, max=9)
        note: Attr[str | None] = field(default=None)
        revision: Attr[int] = version()

        if phase == "before":
            primary = Key("CUSTOMER", customer, separator="|").sort("ORDER", raw(number))
            by_stars = Index("GSI1", customer).sort(stars)
        elif phase == "during":
            primary = (
                Key("ORDERS", customer)
                .sort("ORDER", desc(number))
                .was(Key("CUSTOMER", customer, separator="|").sort("ORDER", raw(number)))
            )
            by_stars = (
                Index("GSI1", customer).sort("S", stars, number).was(Key(customer).sort(stars))
            )
        else:
            primary = Key("ORDERS", customer).sort("ORDER", desc(number))
            by_stars = Index("GSI1", customer).sort("S", stars, number)

    return Order


def test_a_changed_tag_and_key_are_read_under_both_forms(desk: Any) -> None:
    before, during, after = map(purchase, ("before", "during", "after"))
    desk.store.create_tables(before.__schema__.table)
    for number in (9, 10, 100):
        desk.store.put(before(customer="ann", number=number, stars=number % 3))
    store = isotone.connect(desk.backend)
    assert store.get(during, customer="ann", number=10).stars == 1
    store.put(during(customer="ann", number=11))
    assert store.update(during, during.stars.set(7), customer="ann", number=9).revision == 2
    mine = store.page(during.primary.where(during.customer == "ann"), size=10)
    assert [each.number for each in mine] == [100, 11, 10, 9]
    stars = store.all(during.by_stars.where(during.customer == "ann"))
    assert [each.number for each in stars] == [11, 10, 100, 9]
    gone = store.delete(during, customer="ann", number=100)
    assert gone is not None
    assert gone.number == 100
    done = store.rewrite(during)
    assert (done.seen, done.rewritten) == (3, 1)
    assert {item["_type"]["S"] for item in items(desk)} == {"Order"}
    final = isotone.connect(desk.backend)
    assert [each.number for each in final.all(after.primary.where(after.customer == "ann"))] == [
        11,
        10,
        9,
    ]
    assert final.verify(after).is_clean
    with pytest.raises(KeysChanged):
        isotone.connect(desk.backend).all(before.primary.where(before.customer == "ann"))


def test_previous_declarations_without_meaning_are_refused() -> None:
    with pytest.raises(UsageError, match="not made of the same fields"):

        class Other(Entity, table=Table("one")):
            a: Attr[str] = field()
            b: Attr[str] = field()
            primary = Key("A", a).sort("B").was(Key("B", b).sort("B"))

    with pytest.raises(UsageError, match="begin the new key with another literal"):

        class Swapped(Entity, table=Table("two")):
            a: Attr[str] = field()
            b: Attr[str] = field()
            primary = Key("X", a).sort("Y", b).was(Key("X", b).sort("Y", a))

    with pytest.raises(UsageError, match="keep the stored tag: tag='Old'"):

        class Tagged(Entity, table=Table("three"), was_tag="Old"):
            a: Attr[str] = field(unique=True)
            primary = Key("X", a).sort("Y")

    with pytest.raises(UsageError, match="is the present tag"):

        class Same(Entity, table=Table("four"), was_tag="Same"):
            a: Attr[str] = field()
            primary = Key("X", a).sort("Y")

    with pytest.raises(UsageError, match="declare both indexes"):

        class Moved(
            Entity,
            table=Table("five", indexes={"GSI1": Global("A", "B"), "GSI2": Global("C", "D")}),
        ):
            a: Attr[str] = field()
            primary = Key("X", a).sort("Y")
            other = Index("GSI1", a).sort("Y").was(Index("GSI2", a).sort("Y"))


# Undoing


def test_a_rewrite_is_undone(desk: Any, tmp_path: Path) -> None:
    before, during = purchase("before"), purchase("during")
    desk.store.create_tables(before.__schema__.table)
    for number in range(20):
        desk.store.put(before(customer="ann", number=number))
    stored = items(desk)
    log = tmp_path / "orders.undo"
    store = isotone.connect(desk.backend)
    assert store.rewrite(during, undo=log).rewritten == 20
    store.update(during, during.note.set("since"), customer="ann", number=7)
    with log.open("ab") as file:
        file.write(b'{"table": "shop", "it')  # torn by a crash
    undone = store.undo(log)
    assert (undone.changed, undone.restored) == (1, 20)  # 19 items, and the record of the keys
    assert undone.examples
    assert [each for each in items(desk) if each["_type"]["S"] == "Purchase"] == [
        each for each in stored if each["number"] != {"N": "7"}
    ]
    assert store.undo(log).unmade == 20
    old = isotone.connect(desk.backend)
    assert len(old.all(before.primary.where(before.customer == "ann"))) == 19


def test_the_undo_of_a_conflict_finds_the_item_as_before(desk: Any, tmp_path: Path) -> None:
    """Of items that get one new key, one is moved. The others stay, and have not changed since."""
    shown = order(indexed=False)
    desk.store.create_tables(shown.__schema__.table)
    for total in "123":
        item = {"customer": {"S": "ann"}, "number": {"N": "1"}, "total": {"N": total}}
        key = {"PK": {"S": f"FORMER#{total}"}, "SK": {"S": "1"}, "_type": {"S": "Order"}}
        put_item(desk, {**item, **key})
    stored = items(desk)
    log = tmp_path / "orders.undo"
    done = desk.store.rewrite(shown, undo=log)
    assert (done.rewritten, done.conflicts) == (1, 2)
    undone = desk.store.undo(log)
    assert (undone.changed, undone.unmade) == (0, 2)
    assert items(desk) == stored


@pytest.mark.parametrize("taken", ["deleted", "moved", "emptied"])
def test_a_rewrite_ends_when_its_undo_log_is_taken_away(
    desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    monkeypatch.setattr("isotone.model.rewriting._ITEMS_A_PAGE", 10)
    old, new = order(indexed=False), order(indexed=True)
    desk.store.create_tables(old.__schema__.table)
    for number in range(60):
        desk.store.put(old(customer="ann", number=number))
    log = tmp_path / "orders.undo"
    seen: list[int] = []

    def take_away(done: Any) -> None:
        seen.append(done.rewritten)
        if taken == "emptied":
            os.truncate(log, 0)
        elif log.exists():
            log.rename(tmp_path / "moved") if taken == "moved" else log.unlink()

    with pytest.raises(StorageError, match=r"orders\.undo was deleted, replaced or changed"):
        isotone.connect(desk.backend).rewrite(new, undo=log, progress=take_away)
    indexed = [each for each in items(desk) if "GSI1PK" in each]
    assert seen == [len(indexed)], "nothing is written without a line in the log"
    assert len(indexed) < 60


@pytest.mark.parametrize("undone", ["whole", "in part"])
def test_a_rewrite_that_was_undone_begins_again(
    desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undone: str
) -> None:
    monkeypatch.setattr("isotone.model.rewriting._ITEMS_A_PAGE", 10)
    old, new = order(indexed=False), order(indexed=True)
    desk.store.create_tables(old.__schema__.table)
    for number in range(60):
        desk.store.put(old(customer="ann", number=number))
    log = tmp_path / "orders.undo"

    def stop(done: Any) -> None:
        if getattr(done, "rewritten", 0) >= 30 or getattr(done, "restored", 0) >= 5:
            raise Stopped

    with pytest.raises(Stopped):
        isotone.connect(desk.backend).rewrite(new, undo=log, progress=stop)
    if undone == "whole":
        assert isotone.connect(desk.backend).undo(log).restored >= 30
    else:
        with pytest.raises(Stopped):
            isotone.connect(desk.backend).undo(log, progress=stop)
    store = isotone.connect(desk.backend)
    assert store.rewrite(new).is_clean
    assert store.verify(new).is_clean
    assert len(store.all(new.by_total.where())) == 60
    assert all("GSI1PK" in item for item in items(desk))


def test_a_rewrite_of_a_copy_begins_again(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy has the item with the position, but another engine may scan in another order."""
    monkeypatch.setattr("isotone.model.rewriting._ITEMS_A_PAGE", 10)
    old, new = order(indexed=False), order(indexed=True)
    desk.store.create_tables(old.__schema__.table)
    for number in range(60):
        desk.store.put(old(customer="ann", number=number))

    def stop(done: Any) -> None:
        if done.rewritten >= 30:
            raise Stopped

    with pytest.raises(Stopped):
        isotone.connect(desk.backend).rewrite(new, progress=stop)
    with isotone.open(":memory:") as copied:
        store = isotone.connect(copied)
        store.create_tables(old.__schema__.table)
        for item in desk.backend.execute("Scan", {"TableName": "shop"})["Items"]:
            copied.execute("PutItem", {"TableName": "shop", "Item": item})
        seen = store.rewrite(new).seen
    assert seen == 60
    assert isotone.connect(desk.backend).rewrite(new).seen == 60


def test_undoing_restores_unique_values(desk: Any, tmp_path: Path) -> None:
    def account(phase: str) -> Any:
        class Account(Entity, table=Table("shop")):
            name: Attr[str] = field()
            mail: Attr[str] = field(unique=True)
            primary = (
                Key("ACCOUNT", name).sort("A")
                if phase == "before"
                else Key("USER", name).sort("A").was(Key("ACCOUNT", name).sort("A"))
            )

        return Account

    before, during = account("before"), account("during")
    desk.store.create_tables(before.__schema__.table)
    desk.store.put(before(name="ann", mail="a@x"))
    scan = lambda: sorted(map(str, desk.backend.execute("Scan", {"TableName": "shop"})["Items"]))  # noqa: E731
    stored = scan()
    assert desk.store.rewrite(during, undo=tmp_path / "log").rewritten == 1
    assert scan() != stored
    desk.store.undo(tmp_path / "log")
    assert scan() == stored
    with pytest.raises(UsageError, match="there is no undo log"):
        desk.store.undo(tmp_path / "none")
    (tmp_path / "text").write_text("hello\n")
    with pytest.raises(UsageError, match="is not an undo log"):
        desk.store.undo(tmp_path / "text")


@pytest.mark.parametrize("size", [100, 20_000], ids=["waits in the buffer", "is written at once"])
def test_a_full_disk_names_the_undo_log(tmp_path: Path, size: int) -> None:
    limits = pytest.importorskip("resource")
    before = limits.getrlimit(limits.RLIMIT_FSIZE)
    key = {"PK": {"S": "a"}}
    limits.setrlimit(limits.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match="log") as caught, UndoLog(tmp_path / "log") as log:
            log.add_and_sync("shop", [(key, None, {**key, "text": {"S": "x" * size}})])
    finally:
        limits.setrlimit(limits.RLIMIT_FSIZE, before)
    assert caught.value.filename == str(tmp_path / "log")


def test_an_undo_log_has_one_writer(desk: Any, tmp_path: Path) -> None:
    class Note(Entity, table=Table("notes")):
        number: Attr[int] = field(max=9)
        primary = Key("NOTE").sort(number)

    desk.store.create_tables(Note.__schema__.table)
    desk.store.put(Note(number=1))
    log = tmp_path / "log"
    with UndoLog(log) as other:
        torn = b'{"table": "shop", "items": [{"key"'
        with log.open("ab") as file:
            file.write(torn)  # the other one has written a part of a line
        with pytest.raises(InProgress, match="another rewrite"):
            desk.store.rewrite(Note, undo=log)
        with pytest.raises(InProgress, match="another rewrite"):
            desk.store.undo(log)
        assert log.read_bytes() == torn
        other.sync()
    assert desk.store.rewrite(Note, undo=log).is_clean
    assert log.read_bytes() == b""


def test_lines_of_an_undo_log_are_json(desk: Any, tmp_path: Path) -> None:
    old, new = order(indexed=False), order(indexed=True)
    desk.store.create_tables(old.__schema__.table)
    desk.store.put(old(customer="ann", number=1))
    isotone.connect(desk.backend).rewrite(new, undo=tmp_path / "log")
    first = json.loads((tmp_path / "log").read_text().splitlines()[0])
    (change,) = first["items"]
    assert (first["table"], change["key"]["SK"]) == ("shop", {"S": "ORDER#001"})
    assert change["after"].keys() - change["before"].keys() == {"GSI1PK", "GSI1SK"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (rb'"N":"1"', b'"N":"7"'),
        (rb'"sum":', b'"sun":'),
        (rb'.*', b'{"table":"shop","items":[]}'),
        (rb'.*', b'{"table":"shop","items":[{"key":{},"before":null,"after":null}]}'),
        (rb'"_type"', b'"\xff"'),
    ],
)  # fmt: skip
def test_a_damaged_line_of_an_undo_log_restores_nothing(
    desk: Any, tmp_path: Path, old: bytes, new: bytes
) -> None:
    before, during = purchase("before"), purchase("during")
    desk.store.create_tables(before.__schema__.table)
    for number in range(3):
        desk.store.put(before(customer="ann", number=number))
    log, rewritten = tmp_path / "log", isotone.connect(desk.backend)
    rewritten.rewrite(during, undo=log)
    lines = log.read_bytes().splitlines()
    number = next(at for at, line in enumerate(lines) if b'"N":"1"' in line)
    sound = lines[number]
    lines[number] = re.sub(old, new, sound, count=1)
    assert lines[number] != sound
    log.write_bytes(b"".join(line + b"\n" for line in lines))
    undo = isotone.connect(desk.backend).undo
    with pytest.raises(
        UsageError, match=rf"line {number + 1} of the undo log '.*' is damaged .*: take"
    ):
        undo(log)
    log.write_bytes(b"".join(line + b"\n" for line in lines if line != lines[number]))
    assert undo(log).changed == 0
    log.write_bytes(sound + b"\n")
    assert undo(log).restored == 1


def test_a_file_without_an_end_of_a_line_is_no_undo_log(desk: Any, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\xff\xfe anything")
    with pytest.raises(UsageError, match="is not an undo log"):
        desk.store.undo(tmp_path / "log")


# While programs write


class Stopped(Exception):
    pass


def test_a_rewrite_that_was_stopped_continues(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isotone.model.rewriting._ITEMS_A_PAGE", 3)
    before, during = purchase("before"), purchase("during")
    desk.store.create_tables(before.__schema__.table)
    for number in range(40):
        desk.store.put(before(customer="ann", number=number))
    store = isotone.connect(desk)
    rng, stops = random.Random(3), 0

    def stop() -> None:
        raise Stopped

    while True:
        desk.before = {rng.choice(["TransactWriteItems", "Scan"]): stop} if stops < 9 else {}
        try:
            done = store.rewrite(during, segments=1)
        except Stopped:
            stops += 1
        else:
            break
    assert done.is_complete
    assert (stops, len(items(desk))) == (9, 40)
    assert store.verify(during).is_clean


def test_a_rewrite_of_another_model_begins_again(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The items before the saved position are as the model was then."""
    monkeypatch.setattr("isotone.model.rewriting._ITEMS_A_PAGE", 3)

    def note(**fields: Any) -> Any:
        members = {
            "__annotations__": {"number": Attr[int], **dict.fromkeys(fields, Attr[str])},
            "number": (number := field(max=99)),
            **{name: field(default=value) for name, value in fields.items()},
            "primary": Key("NOTE", number).sort("NOTE"),
        }
        return type(Entity)("Note", (Entity,), members, table=Table("notes"))

    old, middle, new = note(), note(a="1"), note(a="1", b="2")
    desk.store.create_tables(old.__schema__.table)
    desk.store.put_many(old(number=number) for number in range(12))

    def stop(_: Any) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        isotone.connect(desk).rewrite(middle, progress=stop)
    assert isotone.connect(desk).rewrite(new).rewritten == 12
    assert isotone.connect(desk).verify(new).is_clean


def test_a_value_that_is_added_meanwhile_is_kept(desk: Any) -> None:
    old, new = order(indexed=False), order(indexed=True)
    desk.store.create_tables(old.__schema__.table)
    desk.store.put(old(customer="ann", number=1))

    def add() -> None:
        desk.backend.execute(
            "UpdateItem",
            {
                "TableName": "shop",
                "Key": {"PK": {"S": "CUSTOMER#ann"}, "SK": {"S": "ORDER#001"}},
                "UpdateExpression": "SET color = :red",
                "ExpressionAttributeValues": {":red": {"S": "red"}},
            },
        )

    store = isotone.connect(desk)
    desk.before["UpdateItem"] = add
    store.rewrite(new)
    (item,) = items(desk)
    assert (item["color"], item["GSI1PK"]) == ({"S": "red"}, {"S": "ORDERS"})


@pytest.mark.parametrize("segments", [1, 4])
def test_nothing_is_lost_while_programs_write(segments: int, tmp_path: Path) -> None:
    before, during, after = map(purchase, ("before", "during", "after"))
    with isotone.open() as database:
        store = isotone.connect(database)
        store.create_tables(before.__schema__.table)
        for number in range(300):
            store.put(before(customer="ann", number=number, stars=number % 10))
        expected: dict[int, int] = {number: number % 10 for number in range(300)}
        counters = dict.fromkeys(range(300), 0)
        is_over = threading.Event()
        failures: list[BaseException] = []

        def write(seed: int) -> None:
            rng, own = random.Random(seed), isotone.connect(database)
            mine = range(seed, 300, 3)
            try:
                while not is_over.is_set():
                    number = rng.choice(mine)
                    if number not in expected:
                        own.put(during(customer="ann", number=number, stars=5))
                        expected[number] = 5
                    elif rng.random() < 0.2:
                        own.delete(during, customer="ann", number=number)
                        del expected[number]
                    else:
                        stars = rng.randrange(10)
                        counters[number] += 1
                        own.update(
                            during,
                            during.stars.set(stars),
                            during.note.set(str(counters[number])),
                            customer="ann",
                            number=number,
                        )
                        expected[number] = stars
            except BaseException as error:  # noqa: BLE001 - raised by the test
                failures.append(error)

        def page() -> None:
            own = isotone.connect(database)
            untouched = set(range(2, 300, 3))
            try:
                while not is_over.is_set():
                    found: list[int] = []
                    cursor = None
                    while True:
                        got = own.page(
                            during.primary.where(during.customer == "ann"), size=40, cursor=cursor
                        )
                        found += [each.number for each in got]
                        if (cursor := got.cursor) is None:
                            break
                    assert found == sorted(set(found), reverse=True)
                    assert untouched <= set(found)
            except BaseException as error:  # noqa: BLE001 - raised by the test
                failures.append(error)

        threads = [threading.Thread(target=write, args=(seed,)) for seed in (0, 1)]
        threads.append(threading.Thread(target=page))
        for thread in threads:
            thread.start()
        try:
            done = isotone.connect(database).rewrite(during, segments=segments)
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
        assert failures == []
        assert done.is_clean
        isotone.connect(database).rewrite(during)  # the last writes of a thread that had just read
        final = isotone.connect(database)
        found = final.all(after.primary.where(after.customer == "ann"))
        assert {each.number: each.stars for each in found} == expected
        assert final.verify(after).is_clean


def test_a_rewrite_is_awaited(tmp_path: Path) -> None:
    old, new = order(indexed=False), order(indexed=True)

    async def run() -> None:
        async with isotone.aconnect(":memory:") as store:
            await store.create_tables(old.__schema__.table)
            await store.put(old(customer="ann", number=1))
            done = await store.rewrite(new, segments=2, undo=tmp_path / "log")
            assert done.rewritten == 1
            assert (await store.undo(tmp_path / "log")).restored == 2

    asyncio.run(run())


def test_a_rewrite_keeps_to_its_budget(desk: Any, pauses: list[float]) -> None:
    old, new = order(indexed=False), order(indexed=True)
    desk.store.create_tables(old.__schema__.table)
    for number in range(60):
        desk.store.put(old(customer="ann", number=number))
    done = isotone.connect(desk.backend).rewrite(new, units_per_second=20)
    assert done.progress is not None
    assert done.progress.units >= 120  # two for each write, of the item and of its index entry
    assert sum(pauses) > 120 / 20 - 2


# Any change


FIELDS = st.fixed_dictionaries(
    {"number": st.integers(0, 99), "stars": st.integers(0, 9), "note": st.sampled_from(["x", "y"])}
)
Shape = Callable[[Any, Any, Any], tuple[Any, Any]]
SHAPES: list[Shape] = [
    lambda n, s, t: (Key("A").sort(n), Index("GSI1", "S").sort(s, n)),
    lambda n, s, t: (Key("A", separator="|").sort("N", raw(n)), Index("GSI1", "T").sort(s)),
    lambda n, s, t: (Key("B", n).sort("B"), Index("GSI1", t).sort(desc(s))),
    lambda n, s, t: (Key("C").sort("C", desc(n)), Index("GSI1", s).sort(t)),
]


def shaped(shape: Shape, tag: str, table: Table) -> Any:
    class Thing(Entity, table=table, tag=tag):
        number: Attr[int] = field(max=99, alert=None)
        stars: Attr[int] = field(max=9)
        note: Attr[str] = field()
        keys = shape(number, stars, note)
        primary, by_other = keys
        del keys

    return Thing


@given(
    st.lists(FIELDS, max_size=12),
    st.lists(st.sampled_from(range(len(SHAPES))), min_size=2, max_size=4),
)
def test_after_any_change_the_table_equals_a_fresh_one(
    rows: list[dict[str, Any]], shapes: list[int]
) -> None:
    rows = list({row["number"]: row for row in rows}.values())
    with isotone.open() as database, isotone.open() as fresh:
        first, *others = (SHAPES[each] for each in shapes)
        entity = shaped(first, "Thing", Table("shop", indexes=INDEXES))
        store = isotone.connect(database)
        store.create_tables(entity.__schema__.table)
        for row in rows:
            store.put(entity(**row))
        for shape in others:
            entity = shaped(shape, "Thing", Table("shop", indexes=INDEXES))
            done = isotone.connect(database).rewrite(entity)
            assert done.is_clean
        wanted = isotone.connect(fresh)
        wanted.create_tables(entity.__schema__.table)
        for row in rows:
            wanted.put(entity(**row))
        scans = [
            sorted(json.dumps(item, sort_keys=True) for item in stored)
            for each in (database, fresh)
            if (stored := each.execute("Scan", {"TableName": "shop"})["Items"]) is not None
        ]
        assert scans[0] == scans[1] or not rows
        assert isotone.connect(database).verify(entity).is_clean
