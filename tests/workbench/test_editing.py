"""Items that are edited through their entities: what the page asks, and what is stored afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.workbench.every_type import Customer, Order, full, order, shop
from tests.workbench.page import Browserless

import isotone
from isotone.model import Store
from isotone.server import running_server
from isotone.workbench import Workbench


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    with isotone.open() as database:
        yield database


@pytest.fixture
def store(database: isotone.Database) -> Iterator[Store]:
    """A store of the model; when the test is over, `verify` finds nothing in what was edited."""
    store = isotone.connect(database)
    store.create_tables(shop)
    yield store
    verification = store.verify(shop)
    assert verification.is_clean, str(verification)


@pytest.fixture
def page(database: isotone.Database, store: Store) -> Iterator[Browserless]:
    pages = Workbench(database, target=":memory:", tables=[shop])
    with running_server(database, pages=pages) as url:
        yield Browserless(url)


def items(database: isotone.Database, tag: str = "Order") -> list[Any]:
    found = database.execute("Scan", {"TableName": "shop"})["Items"]
    return [each for each in found if each["_type"]["S"] == tag]


def only(database: isotone.Database, tag: str = "Order") -> Any:
    (item,) = items(database, tag)
    return item


def save(page: Browserless, item: Any, **values: Any) -> Any:
    return page.call("edit_save", {"table": "shop", "item": item, "values": values})


def create(page: Browserless, entity: str, values: Any) -> Any:
    return page.call("edit_save", {"table": "shop", "entity": entity, "values": values})


def form(page: Browserless, item: Any) -> Any:
    return page.call("edit_form", {"table": "shop", "item": item})


# The description


def test_a_model_describes_the_inputs_of_its_fields(page: Browserless) -> None:
    entities = page.call("model", {"table": "shop"})["model"]["entities"]
    fields = {each["name"]: each for each in entities[0]["fields"]}
    inputs = {name: each["input"] for name, each in fields.items()}
    assert inputs["status"] == {"kind": "choice", "choices": ["OPEN", "PAID", "SENT"]}
    assert inputs["size"] == {"kind": "choice", "choices": ["SMALL", "LARGE"]}
    assert inputs["count"] == {"kind": "integer", "min": "1", "max": "99"}
    assert inputs["total"] == {"kind": "decimal", "min": "0"}
    assert inputs["placed"] == {"kind": "instant"}
    assert inputs["due"] == {"kind": "date", "optional": True}
    assert inputs["tags"] == {"kind": "set", "item": {"kind": "text"}}
    assert inputs["extra"]["kind"] == "raw"
    assert [each["name"] for each in inputs["lines"]["item"]["members"]] == [
        "sku",
        "price",
        "added",
    ]
    assert inputs["address"]["members"][1] == {
        "name": "number",
        "required": True,
        "kind": "integer",
        "min": "1",
    }
    assert [name for name, each in fields.items() if each["required"]] == [
        "customer",
        "placed",
        "total",
        "invoice",
    ]
    assert fields["placed"]["keys"] == ["primary", "open"]
    assert fields["placed"]["about"] == "when the customer ordered"
    assert fields["placed"]["identifies"]
    assert fields["invoice"]["unique"]
    assert fields["status"]["default"] == "OPEN"
    maintained = {name: each["set_by"] for name, each in fields.items() if each["set_by"]}
    assert maintained.keys() == {"version", "made", "changed", "label"}


# Creating and changing


def test_an_entity_of_every_type_is_created_and_its_form_has_the_same_values(page, database):
    answer = create(page, "Order", full())
    item = only(database)
    assert answer == {"item": item}
    shown = form(page, item)
    assert shown["findings"] == []
    assert shown["faults"] == {}
    differing = {
        "placed": "2026-09-02T08:00:00Z",
        "until": "2099-01-01T00:00:00Z",
        "token": full()["token"],
    }
    assert {name: shown["values"][name] for name in full()} == {**full(), **differing}
    assert shown["values"]["version"] == "1"
    assert item["GSI1PK"] == {"S": "STATUS#PAID"}


@pytest.mark.parametrize("name", [name for name in full() if name not in ("customer", "placed")])
def test_each_field_is_changed_alone(page, database, store, name):
    store.put(order())
    before = only(database)
    answer = save(page, before, **{name: full()[name]})
    after = only(database)
    assert answer == {"item": after}
    assert after["version"] == {"N": "2"}
    assert after["changed"] != before["changed"]
    assert form(page, after)["values"][name] == full()[name]
    changed = {each for each in {*before, *after} if before.get(each) != after.get(each)}
    derived = {"status": {"GSI1PK"}, "total": {"label"}, "invoice": set()}
    assert changed == {Order.__schema__.fields[name].attribute, "version", "changed"} | derived.get(
        name, set()
    )


def test_a_number_is_computed_with_as_it_is_stored(page, database):
    create(page, "Order", {**full(), "total": "12.50"})
    assert only(database)["label"] == {"S": "bob: 12.5"}
    save(page, only(database), total="3.00")
    assert only(database)["label"] == {"S": "bob: 3"}


def test_an_optional_value_is_removed(page, database, store):
    store.put(order(note="fragile"))
    save(page, only(database), note=None)
    assert "note" not in only(database)


def test_a_changed_key_moves_the_item(page, database, store):
    store.put(order())
    answer = save(page, only(database), customer="bob")
    assert answer["item"]["PK"] == {"S": "CUSTOMER#bob"}
    assert only(database) == answer["item"]


def test_refusals_stand_beside_their_fields_in_the_librarys_words(page, database, store):
    store.put(order())
    item = only(database)
    refused = save(page, item, count="200", total="much", status="OPNE", photo="?")["refused"]
    assert refused["fields"].keys() == {"count", "total", "status", "photo"}
    assert "less than or equal to 99" in refused["fields"]["count"]
    assert "valid decimal" in refused["fields"]["total"]
    assert "'OPEN', 'PAID' or 'SENT'" in refused["fields"]["status"]
    assert "Base64" in refused["fields"]["photo"]
    assert only(database) == item
    nested = save(page, item, lines=[{"sku": "a", "price": "x"}], address={"street": "x"})[
        "refused"
    ]
    assert nested["fields"]["lines"].startswith("[0]['price']")
    assert nested["fields"]["address"].startswith("['number']")
    no_zone = save(page, item, placed="2026-09-01T10:00")["refused"]
    assert "no time zone" in no_zone["fields"]["placed"]


@pytest.mark.parametrize(("name", "value"), [("tags", 5), ("lines", "x"), ("lines", [7])])
def test_values_of_another_form_are_refused_beside_their_field(page, database, store, name, value):
    store.put(order())
    refused = save(page, only(database), **{name: value})["refused"]
    assert name in refused["fields"]


def test_what_is_missing_is_refused(page):
    refused = create(page, "Order", {"customer": "ann"})["refused"]
    assert refused["code"] == "InvalidEntity"
    assert refused["fields"] == dict.fromkeys(("placed", "total", "invoice"), "is missing")


def test_a_value_that_must_be_there_cannot_be_removed(page, database, store):
    store.put(order())
    refused = save(page, only(database), total=None, count=None)["refused"]
    assert refused["fields"] == {"total": "is missing", "count": "is missing"}


def test_a_unique_value_is_held(page, database, store):
    store.put(order())
    refused = create(page, "Order", {**full(), "invoice": "I-1"})["refused"]
    assert "taken" in refused["fields"]["invoice"]
    key = {name: only(database)[name] for name in ("PK", "SK")}
    assert refused["taken_by"] == key
    create(page, "Order", full())
    first = next(each for each in items(database) if each["invoice"] == {"S": "I-1"})
    assert "taken" in save(page, first, invoice="I-2")["refused"]["fields"]["invoice"]


def test_an_entity_that_is_there_is_not_created_again(page, database, store):
    store.put(order())
    values = {"customer": "ann", "placed": "2026-09-01T12:30:00Z", "total": "1", "invoice": "I-9"}
    refused = create(page, "Order", values)["refused"]
    assert refused["code"] == "AlreadyExists"
    assert refused["taken_by"] == {name: only(database)[name] for name in ("PK", "SK")}


# Two editors


def test_the_second_editor_is_told_with_both_versions(page, database, store):
    store.put(order())
    seen = only(database)
    save(page, seen, note="mine")
    now = only(database)
    refused = save(page, seen, total="1")["refused"]
    assert refused["code"] == "VersionConflict"
    assert "read as version 1, but is now version 2" in refused["message"]
    assert refused["item"] == now == only(database)
    assert save(page, now, total="1")["item"] == only(database)


def test_the_second_editor_is_told_without_a_version(page, database, store):
    store.put(Customer(login="ann", name="Ann"))
    seen = only(database, "Customer")
    save(page, seen, city="Rome")
    refused = save(page, seen, name="Anna")["refused"]
    assert refused["code"] == "ConditionFailed"
    assert refused["changed"]
    assert refused["item"] == only(database, "Customer")


def test_a_change_beside_the_model_is_not_overwritten(page, database, store):
    store.put(order())
    seen = only(database)
    raw = {**seen, "note": {"S": "raw"}}
    database.execute("PutItem", {"TableName": "shop", "Item": raw})
    assert save(page, seen, total="1")["refused"]["item"] == raw
    assert page.call("edit_delete", {"table": "shop", "item": seen})["refused"]["changed"]
    assert only(database) == raw


def test_an_item_that_was_deleted_is_told(page, database, store):
    store.put(order())
    seen = only(database)
    page.call("edit_delete", {"table": "shop", "item": seen})
    refused = save(page, seen, total="1")["refused"]
    assert (refused["code"], refused["item"]) == ("NotFound", None)


# Undo


def test_each_change_is_undone_through_the_model(page, database, store):
    def undo(item: Any, before: Any) -> Any:
        return page.call("edit_undo", {"table": "shop", "item": item, "before": before})

    created = create(page, "Order", full())["item"]
    values = {"status": "OPEN", "invoice": "I-3", "note": None, "customer": "eve", "tags": []}
    changed = save(page, created, **values)["item"]
    undone = undo(changed, created)["item"]
    own = {"version", "changed"}
    assert {name: each for name, each in undone.items() if name not in own} == {
        name: each for name, each in created.items() if name not in own
    }
    assert undone["version"] == {"N": "3"}
    page.call("edit_delete", {"table": "shop", "item": undone})
    assert items(database) == []
    assert store.verify(shop).is_clean  # the unique value was released
    again = undo(None, undone)["item"]
    assert only(database) == again
    undo(again, None)
    assert items(database) == []
    seen = create(page, "Order", full())["item"]
    save(page, seen, note="somebody else")
    assert undo(seen, None)["refused"]["changed"]


# What does not fit


def damage(database: isotone.Database, item: Any, **attributes: Any) -> Any:
    damaged = {**item, **attributes}
    database.execute("PutItem", {"TableName": "shop", "Item": damaged})
    return damaged


def test_items_that_do_not_fit_carry_a_mark(page, database, store):
    store.put(order())
    request = {"TableName": "shop"}
    clean = page.execute("Scan", request, keys=["PK"], whole=True)
    assert clean["findings"] == [[] for _ in clean["response"]["Items"]]
    damaged = damage(
        database, only(database), status={"S": "SENT"}, total={"N": "7"}, odd={"S": "?"}
    )
    answer = page.execute("Scan", request, keys=["PK"], whole=True)
    place = answer["response"]["Items"].index(damaged)
    words = answer["findings"][place]
    assert len(words) == 3
    assert words[0] == "label: not what the function of a computed field returns"
    assert "findings" not in page.execute("Scan", request, keys=["PK"])
    page.call("edit_repair", {"table": "shop", "item": damaged, "without": ["odd"]})


def test_an_item_is_repaired(page, database, store):
    store.put(order())
    damaged = damage(
        database, only(database), status={"S": "SENT"}, total={"N": "7"}, odd={"S": "?"}
    )
    marker = next(each for each in items(database, "_unique"))
    key = {name: marker[name] for name in ("PK", "SK")}
    database.execute("DeleteItem", {"TableName": "shop", "Key": key})
    found = {each["kind"]: each for each in form(page, damaged)["findings"]}
    assert {kind: each["repair"] for kind, each in found.items()} == {
        "computed": "write",
        "index_orphaned": "write",
        "unknown_attribute": "remove",
        "marker_missing": "write",
    }
    answer = page.call("edit_repair", {"table": "shop", "item": damaged, "without": ["odd"]})
    assert answer["item"] == only(database)
    assert form(page, answer["item"])["findings"] == []


def test_a_repair_removes_no_declared_attribute(page, database, store):
    store.put(order())
    seen = damage(database, only(database), odd={"S": "?"})
    for without, told in (
        (["odd", "status"], "Order declares status; a repair removes only attributes that it does"),
        (["PK"], "Order declares PK;"),
        ("odd", "without='odd' is not a list of attributes"),
        ([1], "without=[1] is not a list of attributes"),
    ):
        answer = page.call("edit_repair", {"table": "shop", "item": seen, "without": without})
        assert told in answer["refused"]["message"]
        assert only(database) == seen
    page.call("edit_repair", {"table": "shop", "item": seen, "without": ["odd"]})
    assert "odd" not in only(database)


def test_an_invalid_value_is_shown_and_repaired_by_the_form(page, database, store):
    store.put(order())
    damaged = damage(database, only(database), status={"S": "OPNE"}, count={"S": "many"})
    shown = form(page, damaged)
    assert shown["values"]["status"] == "OPNE"
    assert "OPNE" in shown["faults"]["status"]
    assert shown["values"]["count"] == "many"
    refused = save(page, damaged, status="PAID")["refused"]
    assert refused["fields"].keys() == {"count"}
    assert "item" in save(page, damaged, status="PAID", count="2")


# Drafts


def test_keys_and_computed_fields_follow_what_is_typed(page):
    def draft(**values: Any) -> Any:
        return page.call("edit_draft", {"table": "shop", "entity": "Order", "values": values})

    def text(parts: Any) -> dict[str, str]:
        return {name: "".join(text for text, _ in each) for name, each in parts.items()}

    empty = draft()
    assert empty["missing"] == ["customer", "placed", "total", "invoice"]
    primary, index = empty["keys"]
    assert text(primary["parts"]) == {"PK": "CUSTOMER#{customer}", "SK": "ORDER#{placed}"}
    assert text(index["parts"]) == {"GSI1PK": "STATUS#OPEN", "GSI1SK": "PLACED#{placed}"}
    some = draft(placed="2026-09-01T14:30:00+02:00", status=None)["keys"][1]["parts"]
    assert text(some) == {
        "GSI1PK": "STATUS#{status}",
        "GSI1SK": "PLACED#2026-09-01T12:30:00.000000Z",
    }
    more = draft(customer="ann", placed="2026-09-01T12:30:00Z", total="3", status="SENT", count="0")
    primary, index = more["keys"]
    item = Order.__schema__.primary.encode(order().__dict__)
    assert text(primary["parts"]) == {name: each["S"] for name, each in item.items()}
    assert index["left_out"] == "only if status != 'SENT'"
    assert more["computed"] == {"label": "ann: 3"}
    assert more["missing"] == ["invoice"]
    assert more["faults"].keys() == {"count"}


# Several at once


def test_a_bulk_edit_is_seen_before_it_is_made(page, database, store):
    store.put(order())
    store.put(order(customer="bob", invoice="I-2"))
    store.put(Customer(login="ann", name="Ann"))
    all_items = items(database) + items(database, "Customer")
    given = {"table": "shop", "values": {"status": "PAID"}, "items": all_items}
    first, second, third = page.call("edit_preview", given)["previews"]
    assert first["after"]["GSI1PK"] == {"S": "STATUS#PAID"}
    assert first["after"]["version"] == {"N": "2"}
    assert second["refused"] is None
    assert "no field 'status'" in third["refused"]
    assert items(database) == all_items[:2]
    wrong = page.call("edit_preview", {**given, "values": {"status": "?"}})["previews"][0]
    assert "'OPEN', 'PAID' or 'SENT'" in wrong["fields"]["status"]


def test_a_unique_value_makes_a_save_a_transaction_with_the_record_of_the_value(page, database):
    values = {"customer": "ann", "placed": "2026-09-01T10:00:00Z", "total": "5", "invoice": "I-9"}
    given = {"table": "shop", "entity": "Order", "values": values, "item": None}
    created = page.call("edit_request", given)
    assert items(database) == []
    explained = page.call("explain", created)["explanation"]
    # A unit each for the item, its entry and the record of the value, doubled by the transaction.
    assert explained["operation"] == "TransactWriteItems"
    assert explained["estimate"]["units"] == 6
    seen = page.call("edit_save", given)["item"]
    total = page.call("edit_request", {**given, "item": seen, "values": {"total": "6"}})
    assert [*map(list, total["request"]["TransactItems"])] == [["Put"], ["Put"]]
    invoice = page.call("edit_request", {**given, "item": seen, "values": {"invoice": "I-3"}})
    assert [*map(list, invoice["request"]["TransactItems"])] == [["Put"], ["Put"], ["Delete"]]
    assert items(database) == [seen]
    plain = {"table": "shop", "entity": "Customer", "item": None}
    assert (
        page.call("edit_request", {**plain, "values": {"login": "ann", "name": "Ann"}})["action"]
        == "PutItem"
    )


def test_the_cost_of_a_deletion_has_the_records_of_unique_values(page, database, store):
    store.put(order())
    store.put(Customer(login="ann", name="Ann"))
    (bought,), (customer,) = items(database), items(database, "Customer")
    given = {"table": "shop", "delete": True}
    sent = page.call("edit_request", {**given, "item": bought})
    assert sent["action"] == "TransactWriteItems"
    assert [*map(list, sent["request"]["TransactItems"])] == [["Delete"], ["Delete"]]
    assert page.call("edit_request", {**given, "item": customer})["action"] == "DeleteItem"
    assert items(database) == [bought]


# Who may not


def test_safe_mode_and_tables_without_a_model(database, store):
    store.put(order())
    item = only(database)
    pages = Workbench(database, target=":memory:", tables=[shop], writable=False)
    with running_server(database, pages=pages) as url:
        page = Browserless(url)
        assert save(page, item, total="1")["error"]["code"] == "SafeMode"
        assert form(page, item)["findings"] == []
        assert "--model" in page.call("edit_form", {"table": "x", "item": item})["error"]["message"]
        marker = items(database, "_unique")[0]
        error = form(page, marker)["error"]
        assert "the library's own" in error["message"]
