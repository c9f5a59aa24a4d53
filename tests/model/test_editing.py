"""Edits of one item as a person saw it: what is written, what is refused, and what is not repeated."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal

import pytest

import isotone
from isotone import Attr, Entity, Global, Index, Key, Retries, Table, field
from isotone.errors import (
    AlreadyExists,
    ConditionFailed,
    InvalidItem,
    NotFound,
    UsageError,
    VersionConflict,
)
from isotone.model import (
    Store,
    delete_item,
    edit_item,
    expires,
    item_after,
    item_findings,
    repair_item,
    revert_item,
    schema_of_item,
    version,
)
from isotone.testing.faults import Faults

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Ticket(Entity, table=shop):
    """A ticket with a version, an index, and a unique code."""

    number: Attr[int] = field(max=999)
    state: Attr[Literal["OPEN", "DONE"]] = field(default="OPEN")
    title: Attr[str] = field(default="")
    code: Attr[str | None] = field(default=None, unique=True)
    version: Attr[int] = version()
    until: Attr[datetime | None] = expires()

    primary = Key("TICKET", number).sort("TICKET")
    by_state = Index("GSI1", "STATE", state).sort("TICKET", number)

    hooks: ClassVar[list[str]] = []

    @classmethod
    def before_update(cls, changes: Any) -> Any:
        cls.hooks.append("before_update")
        return changes

    def before_delete(self) -> None:
        self.hooks.append("before_delete")


class Note(Entity, table=shop):
    """A note of which nothing is counted."""

    name: Attr[str] = field()
    text: Attr[str] = field(default="")

    primary = Key("NOTE", name).sort("NOTE")


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    with isotone.open() as database:
        yield database


@pytest.fixture
def store(database: isotone.Database) -> Iterator[Store]:
    store = isotone.connect(database)
    store.create_tables(shop)
    Ticket.hooks.clear()
    yield store
    assert store.verify(shop).is_clean


def stored(database: isotone.Database, entity: Any) -> Any:
    key = entity.__schema__.primary_key(entity.__dict__)
    return database.execute("GetItem", {"TableName": "shop", "Key": key}).get("Item")


def test_an_edit_writes_what_the_entity_demands(database, store):
    seen = stored(database, store.put(Ticket(number=1, code="a")))
    after = edit_item(store, shop, seen, {"state": "DONE", "code": "b"})
    assert after == stored(database, Ticket(number=1))
    assert after["version"] == {"N": "2"}
    assert after["GSI1PK"] == {"S": "STATE#DONE"}
    assert Ticket.hooks == ["before_update"]
    assert store.get(Ticket, code="b").number == 1
    with pytest.raises(VersionConflict, match="read as version 1, but is now version 2"):
        edit_item(store, shop, seen, {"title": "x"})
    moved = edit_item(store, shop, after, {"number": 2})
    assert stored(database, Ticket(number=1)) is None
    assert moved == stored(database, Ticket(number=2))
    store.put(Ticket(number=3))
    with pytest.raises(AlreadyExists):
        edit_item(store, shop, moved, {"number": 3})
    with pytest.raises(UsageError, match="cannot be changed"):
        edit_item(store, shop, moved, {"version": 9})


def test_a_preview_is_what_an_edit_writes_and_writes_nothing(database, store):
    seen = stored(database, store.put(Ticket(number=1)))
    expected = item_after(Ticket.__schema__, seen, {"state": "DONE"}, store.clock.now())
    assert stored(database, Ticket(number=1)) == seen
    assert edit_item(store, shop, seen, {"state": "DONE"}) == expected


def test_every_attribute_is_as_it_was_seen(database, store):
    seen = stored(database, store.put(Note(name="a")))
    store.update(Note, Note.text.set("theirs"), name="a")
    for write in (
        lambda: edit_item(store, shop, seen, {"text": "mine"}),
        lambda: delete_item(store, shop, seen),
    ):
        with pytest.raises(ConditionFailed, match="was changed after it was read") as caught:
            write()
        assert caught.value.current.text == "theirs"
    store.delete(Note, name="a")
    with pytest.raises(NotFound, match="was deleted after it was read"):
        edit_item(store, shop, seen, {"text": "mine"})


def test_a_change_beside_the_library_is_not_overwritten_either(database, store):
    seen = stored(database, store.put(Ticket(number=1)))
    raw = {**seen, "title": {"S": "raw"}}  # the same version
    database.execute("PutItem", {"TableName": "shop", "Item": raw})
    with pytest.raises(ConditionFailed, match="was changed after it was read"):
        edit_item(store, shop, seen, {"state": "DONE"})
    assert stored(database, Ticket(number=1)) == raw


@pytest.mark.parametrize("code", [None, "a"])
def test_a_lost_answer_is_no_conflict(code):
    faults = Faults(retries=Retries(attempts=5, base=0.0, longest=0.0))
    with isotone.open() as database, faults.on(database):
        store = isotone.connect(database)
        store.create_tables(shop)
        seen = stored(database, store.put(Ticket(number=1, code=code)))
        faults.lose_answers(["PutItem", "TransactWriteItems"], times=1)
        after = edit_item(store, shop, seen, {"title": "once"})
        assert after == stored(database, Ticket(number=1))
        assert after["version"] == {"N": "2"}


def test_a_deletion_releases_unique_values_and_is_reverted(database, store):
    seen = stored(database, store.put(Ticket(number=1, code="a")))
    delete_item(store, shop, seen)
    assert Ticket.hooks == ["before_delete"]
    store.put(Ticket(number=2, code="a"))
    with pytest.raises(isotone.errors.NotUnique):
        revert_item(store, shop, None, seen)
    store.delete(Ticket, number=2)
    back = revert_item(store, shop, None, seen)
    assert back == stored(database, Ticket(number=1))
    assert revert_item(store, shop, back, None) is None
    assert stored(database, Ticket(number=1)) is None


def test_an_item_that_a_later_version_wrote_is_not_deleted(database, store):
    seen = stored(database, store.put(Ticket(number=1)))
    later = {**seen, "_v": {"N": "2"}}
    database.execute("PutItem", {"TableName": "shop", "Item": later})
    with pytest.raises(isotone.errors.NewerVersion):
        delete_item(store, shop, later)
    assert stored(database, Ticket(number=1)) == later
    database.execute("PutItem", {"TableName": "shop", "Item": seen})


def test_an_invalid_value_does_not_come_back(database, store):
    seen = stored(database, store.put(Ticket(number=1)))
    invalid = {**seen, "state": {"S": "OPNE"}}
    database.execute("PutItem", {"TableName": "shop", "Item": invalid})
    with pytest.raises(InvalidItem, match="OPNE"):
        edit_item(store, shop, invalid, {"title": "x"})
    after = edit_item(store, shop, invalid, {"state": "DONE"})
    with pytest.raises(InvalidItem, match="OPNE"):
        revert_item(store, shop, after, invalid)


def test_one_item_is_found_and_repaired(database, store):
    seen = stored(database, store.put(Ticket(number=1, code="a")))
    damaged = {**seen, "state": {"S": "DONE"}, "odd": {"N": "1"}}
    database.execute("PutItem", {"TableName": "shop", "Item": damaged})
    marker = {"PK": {"S": "_unique#Ticket#code#a"}, "SK": {"S": "_unique"}}
    database.execute("DeleteItem", {"TableName": "shop", "Key": marker})
    found = item_findings(store, shop, damaged)
    assert [each.kind for each in found] == ["index_stale", "unknown_attribute", "marker_missing"]
    verified = {each.kind for each in store.verify(shop).findings}
    assert {each.kind for each in found} == verified
    once = repair_item(store, shop, damaged)
    assert [each.kind for each in item_findings(store, shop, once)] == ["unknown_attribute"]
    assert "odd" not in repair_item(store, shop, once, ["odd"])
    with pytest.raises(UsageError, match="Ticket declares code, state"):
        repair_item(store, shop, once, ["state", "odd", "code"])


def test_a_repair_overwrites_nobodys_change(database, store):
    """A repair removes what it was shown, not what has taken its place."""
    seen = stored(database, store.put(Ticket(number=1, code="a")))
    damaged = {**seen, "odd": {"N": "1"}}
    changed = {**seen, "odd": {"S": "precious"}}
    database.execute("PutItem", {"TableName": "shop", "Item": changed})
    for without in (["odd"], []):
        with pytest.raises(ConditionFailed, match="was changed after it was read"):
            repair_item(store, shop, damaged, without)
    key = {name: seen[name] for name in ("PK", "SK")}
    request = {"TableName": "shop", "Key": key}
    assert database.execute("GetItem", request)["Item"] == changed
    delete_item(store, shop, changed)
    with pytest.raises(NotFound, match="was deleted after it was read"):
        repair_item(store, shop, damaged, ["odd"])


def test_an_expired_item_is_gone(database, store):
    seen = stored(database, store.put(Ticket(number=1, until=datetime.now(UTC) - timedelta(1))))
    with pytest.raises(NotFound):
        edit_item(store, shop, seen, {"title": "x"})


def test_items_of_no_entity_are_refused():
    with pytest.raises(UsageError, match="the library's own"):
        schema_of_item(shop, {"PK": {"S": "_keys"}, "SK": {"S": "_keys"}, "_type": {"S": "_keys"}})
    with pytest.raises(UsageError, match="of no entity"):
        schema_of_item(shop, {"PK": {"S": "X"}, "SK": {"S": "X"}})


def test_an_item_under_its_previous_key_is_edited_where_it_is(database, store):
    tables = [Table("old"), Table("old")]

    class Before(Entity, table=tables[0], tag="Issue"):
        repo: Attr[str] = field()
        title: Attr[str] = field(default="")
        primary = Key("REPO", repo).sort("ISSUE")

    class During(Entity, table=tables[1], tag="Issue"):
        repo: Attr[str] = field()
        title: Attr[str] = field(default="")
        primary = Key("R", repo).sort("ISSUE").was(Key("REPO", repo).sort("ISSUE"))

    store.create_tables(tables[0])
    store.put(Before(repo="a"))
    later = isotone.connect(database)
    (seen,) = [each for each in _scanned(database, "old") if each["_type"] == {"S": "Issue"}]
    after = edit_item(later, tables[1], seen, {"title": "x"})
    assert after["PK"] == {"S": "R#a"}
    assert [each for each in _scanned(database, "old") if each["_type"] == {"S": "Issue"}] == [
        after
    ]
    assert edit_item(later, tables[1], after, {"title": "y"})["title"] == {"S": "y"}
    store.put(Before(repo="b"))
    repaired = repair_item(later, tables[1], _scanned_one(database, "old", "REPO#b"))
    assert repaired["PK"] == {"S": "R#b"}
    store.put(Before(repo="c"))
    delete_item(later, tables[1], _scanned_one(database, "old", "REPO#c"))
    assert len([each for each in _scanned(database, "old") if each["_type"] == {"S": "Issue"}]) == 2


def _scanned(database, table):
    return database.execute("Scan", {"TableName": table})["Items"]


def _scanned_one(database, table, key):
    (found,) = [each for each in _scanned(database, table) if each["PK"] == {"S": key}]
    return found
