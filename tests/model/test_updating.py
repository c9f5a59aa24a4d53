"""Updates: what they may change, what follows, what they cost, and what refuses them."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from isotone import (
    Attr,
    Change,
    Entity,
    Global,
    Index,
    Key,
    Table,
    computed,
    expires,
    field,
    updated,
    upgrade,
    version,
)
from isotone.errors import (
    ConditionFailed,
    Contended,
    NotFound,
    NotUnique,
    UsageError,
    ValidationException,
    VersionConflict,
)

shop = Table(
    "shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "GSI2": Global("GSI2PK", "GSI2SK")}
)


class Order(Entity, table=shop):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=99_999, alert=1)
    status: Attr[Literal["PLACED", "SHIPPED"]] = field()
    placed: Attr[datetime] = field()
    total: Attr[Decimal] = field(default=Decimal(0))
    note: Attr[str | None] = field(default=None)
    address: Attr[dict[str, str]] = field(default_factory=dict)
    weight: Attr[Annotated[int, Field(ge=0)]] = field(default=0)

    primary = Key("CUSTOMER", customer).sort("ORDER", number)
    by_status = Index("GSI1", "CUSTOMER", customer).sort(status, placed)


class Member(Entity, table=shop):
    org: Attr[str] = field()
    name: Attr[str] = field()
    role: Attr[str] = field(default="Member")
    email: Attr[str | None] = field(default=None, unique=True)

    primary = Key("ORG", org).sort("MEMBER", name)
    admins = Index("GSI1", "ORG", org, when=role == "Admin").sort("ADMIN", name)


class Page(Entity, table=shop):
    slug: Attr[str] = field()
    text: Attr[str] = field(default="")
    words: Attr[int] = computed(lambda page: len(page.text.split()))
    views: Attr[int] = field(default=0)
    revision: Attr[int] = version()
    changed: Attr[datetime | None] = updated()

    primary = Key("PAGE", slug).sort("PAGE")
    recent = Index("GSI1", "PAGES").sort(changed)


class Token(Entity, table=shop):
    name: Attr[str] = field()
    uses: Attr[int] = field(default=0)
    until: Attr[datetime | None] = expires()

    primary = Key("TOKEN", name).sort("TOKEN")


PLACED = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = {"customer": "c", "number": 1}


@pytest.fixture
def shopping(desk: Any) -> Any:
    desk.store.create_tables(shop)
    desk.store.put(Order(**KEY, status="PLACED", placed=PLACED, address={"city": "Ulm"}))
    return desk


def change_order(desk: Any, *changes: Change, **more: Any) -> Any:
    return desk.store.update(Order, *changes, **KEY, **more)


def operations(desk: Any, *changes: Change, **more: Any) -> list[str]:
    """What changing the order asks for."""
    asked: list[str] = desk.operations(lambda: change_order(desk, *changes, **more))
    return asked


def test_what_touches_no_index_is_one_write(shopping: Any) -> None:
    both = (Order.total.add(Decimal("2.5")), Order.note.set("x"))
    assert operations(shopping, *both) == ["UpdateItem"]
    after = change_order(shopping, Order.address["city"].set("Bonn"))
    assert (after.total, after.note, after.address) == (Decimal("2.5"), "x", {"city": "Bonn"})


def test_part_of_an_index_key_costs_a_read(shopping: Any) -> None:
    assert operations(shopping, Order.status.set("SHIPPED")) == ["GetItem", "UpdateItem"]
    item = shopping.item(Order(**KEY, status="PLACED", placed=PLACED))
    assert item["GSI1SK"] == {"S": "SHIPPED#2026-01-01T12:00:00.000000Z"}


def test_the_log_says_why_an_update_reads(shopping: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "isotone.writes")
    change_order(shopping, Order.note.set("x"))
    assert caplog.messages == []
    change_order(shopping, Order.status.set("SHIPPED"))
    assert caplog.messages == [
        "update of Order CUSTOMER#c, ORDER#00001 reads the item first, to know the value of 'placed'"
    ]


def test_known_values_save_the_read(shopping: Any) -> None:
    later = PLACED + timedelta(days=1)
    both = (Order.status.set("SHIPPED"), Order.placed.set(later))
    assert operations(shopping, *both) == ["UpdateItem"]
    shipped = Order.status == "SHIPPED"
    assert operations(shopping, Order.placed.set(PLACED), when=shipped) == ["UpdateItem"]
    item = shopping.item(Order(**KEY, status="PLACED", placed=PLACED))
    assert item["GSI1SK"] == {"S": "SHIPPED#2026-01-01T12:00:00.000000Z"}


def test_a_condition_that_fails_shows_what_is_stored(shopping: Any) -> None:
    with pytest.raises(ConditionFailed) as failure:
        change_order(shopping, Order.note.set("x"), when=Order.total > 5)
    assert failure.value.current.placed == PLACED


def test_nothing_is_updated_that_is_not_there(shopping: Any) -> None:
    for change in (Order.note.set("x"), Order.status.set("SHIPPED")):
        with pytest.raises(NotFound, match="ORDER#00002 does not exist"):
            shopping.store.update(Order, change, customer="c", number=2)


def test_what_has_expired_is_not_there(shopping: Any) -> None:
    token = Token(name="t", until=PLACED)
    shopping.store.put(token)
    shopping.store.update(Token, Token.uses.add(1), name="t")
    shopping.clock.set(PLACED)
    with pytest.raises(NotFound):
        shopping.store.update(Token, Token.uses.add(1), name="t")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([], "no change was given; write one such as Order.status.set"),
        (
            [Order.number.set(2)],
            r"part of the primary key .* store\.move\(Order, Order\.number\.set",
        ),
        ([Order.note.set("a"), Order.note.remove()], "'note' is changed twice"),
        ([Order.address.set({}), Order.address["a"].set("b")], "'address' is changed twice"),
        ([Order.status.remove()], "'status' cannot be removed: every Order has one"),
        ([Order.weight.set(-1)], "weight is -1: Input should be greater than or equal to 0"),
        ([Order.status.set("LOST")], "'PLACED' or 'SHIPPED'"),
        ([Page.text.set("x")], "'text' is not a field of Order"),
    ],
)
def test_what_cannot_be_changed_is_said(shopping: Any, changes: list[Change], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        shopping.store.update(Order, *changes, **KEY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Page.words.set(3), "computed from other fields"),
        (Page.revision.set(3), "each write raises it"),
        (Page.changed.set(PLACED), "each write sets it"),
    ],
)
def test_what_the_library_fills_in_is_not_changed_by_hand(
    shopping: Any, change: Change, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        shopping.store.update(Page, change, slug="a")


def test_an_update_moves_to_the_top_of_an_index_in_the_same_write(shopping: Any) -> None:
    shopping.store.put(Page(slug="a"))
    shopping.clock.advance(60)
    after = shopping.store.update(Page, Page.text.set("one two"), slug="a")
    assert (after.words, after.revision) == (2, 2)
    assert shopping.item(after)["GSI1SK"] == {"S": "2026-01-01T00:01:00.000000Z"}


def test_an_entity_with_a_version_is_updated_as_it_was_read(shopping: Any) -> None:
    page = shopping.store.put(Page(slug="a", text="one"))
    asked = shopping.operations(lambda: shopping.store.update(page, Page.views.add(1)))
    assert asked == ["UpdateItem"]  # its other values are known to be so
    with pytest.raises(VersionConflict, match="read as version 1, but is now version 2"):
        shopping.store.update(page, Page.views.add(1))


def test_a_sparse_index_is_entered_and_left_in_the_same_write(shopping: Any) -> None:
    ann = shopping.store.put(Member(org="o", name="ann"))
    assert "GSI1PK" not in shopping.item(ann)
    key = {"org": "o", "name": "ann"}

    def give(role: str) -> list[str]:
        change = Member.role.set(role)
        asked: list[str] = shopping.operations(lambda: shopping.store.update(Member, change, **key))
        return asked

    assert give("Admin") == ["UpdateItem"]
    assert shopping.item(ann)["GSI1SK"] == {"S": "ADMIN#ann"}
    assert give("Member") == ["UpdateItem"]
    assert not {"GSI1PK", "GSI1SK"} & shopping.item(ann).keys()


def test_unique_values_change_hands(shopping: Any) -> None:
    shopping.store.create(Member(org="o", name="ann", email="a@x"))
    shopping.store.create(Member(org="o", name="bob", email="b@x"))
    with pytest.raises(NotUnique, match="email 'b@x' is taken by ORG#o, MEMBER#bob"):
        shopping.store.update(Member, Member.email.set("b@x"), org="o", name="ann")
    after = shopping.store.update(Member, Member.email.set("c@x"), org="o", name="ann")
    assert after.email == "c@x"
    shopping.store.update(Member, Member.email.set("a@x"), org="o", name="bob")
    shopping.store.update(Member, Member.email.remove(), org="o", name="ann")
    shopping.store.create(Member(org="o", name="cat", email="c@x"))


def test_a_unique_value_is_given_up_as_it_was_last_written(shopping: Any) -> None:
    key = {"org": "o", "name": "ann"}
    shopping.store.create(Member(**key, email="a@x"))
    shopping.before["TransactWriteItems"] = lambda: shopping.store.update(
        Member, Member.email.set("b@x"), **key
    )
    shopping.store.update(Member, Member.email.set("c@x"), **key)
    for name, email in (("bob", "a@x"), ("cat", "b@x")):
        shopping.store.create(Member(org="o", name=name, email=email))
    with pytest.raises(NotUnique):
        shopping.store.create(Member(org="o", name="dan", email="c@x"))


@pytest.mark.parametrize("overtaken", ["GetItem", "UpdateItem"])
def test_a_unique_value_that_comes_in_between_is_given_up_as_well(
    shopping: Any, overtaken: str
) -> None:
    """An update that reads no unique value must not remove one that it has not read."""
    key = {"org": "o", "name": "ann"}
    shopping.store.create(Member(**key))
    shopping.before[overtaken] = lambda: shopping.store.put(Member(**key, email="a@x"))
    shopping.store.update(Member, Member.email.remove(), **key)
    shopping.store.create(Member(org="o", name="bob", email="a@x"))
    assert shopping.store.verify(shop).is_clean


def test_an_item_of_an_older_version_is_written_whole(shopping: Any) -> None:
    old = Table("shop")

    class Person(Entity, table=old):
        code: Attr[str] = field()
        full: Attr[str] = field()
        age: Attr[int] = field(default=0)

        primary = Key("PERSON", code).sort("PERSON")

    shopping.store.put(Person(code="1", full="Ann Lee"))
    new = Table("shop", indexes=shop.indexes)

    class PersonNow(Entity, table=new, tag="Person", version=2):
        code: Attr[str] = field()
        first: Attr[str] = field()
        last: Attr[str] = field()
        age: Attr[int] = field(default=0)

        primary = Key("PERSON", code).sort("PERSON")
        by_name = Index("GSI2", "PERSON").sort(last, first)

        @staticmethod
        @upgrade(1)
        def split(item: dict[str, Any]) -> dict[str, Any]:
            item["first"], item["last"] = item.pop("full").split(" ")
            return item

    after = shopping.store.update(PersonNow, PersonNow.age.add(1), code="1")
    assert (after.first, after.last, after.age) == ("Ann", "Lee", 1)
    assert shopping.item(after) == PersonNow.__schema__.to_item(after.__dict__)
    asked = shopping.operations(
        lambda: shopping.store.update(PersonNow, PersonNow.age.add(1), code="1")
    )
    assert asked == ["UpdateItem"]


def test_an_update_that_is_always_overtaken_gives_up(shopping: Any, pauses: list[float]) -> None:
    days = iter(range(1, 100))

    def overtake() -> None:
        later = Order.placed.set(PLACED + timedelta(days=next(days)))
        shopping.backend.execute(
            "UpdateItem",
            {
                "TableName": "shop",
                "Key": {"PK": {"S": "CUSTOMER#c"}, "SK": {"S": "ORDER#00001"}},
                "UpdateExpression": "SET placed = :v",
                "ExpressionAttributeValues": {":v": Order.placed.encode(later.value)},  # type: ignore[attr-defined]
            },
        )
        shopping.before["UpdateItem"] = overtake

    shopping.before["UpdateItem"] = overtake
    with pytest.raises(Contended, match="during each of 12 attempts"):
        change_order(shopping, Order.status.set("SHIPPED"))


def test_hooks_see_the_changes(shopping: Any) -> None:
    class Doc(Entity, table=shop):
        name: Attr[str] = field()
        text: Attr[str] = field(default="")
        edits: Attr[int] = field(default=0)

        primary = Key("DOC", name).sort("DOC")

        @classmethod
        def before_update(cls, changes: Any) -> Any:
            return [*changes, cls.edits.add(1)]

    shopping.store.put(Doc(name="a"))
    after = shopping.store.update(Doc, Doc.text.set("x"), name="a")
    assert (after.text, after.edits) == ("x", 1)


class Case(Entity, table=Table("shop", indexes=shop.indexes)):
    code: Attr[str] = field()
    closed: Attr[bool] = field(default=False)

    primary = Key("CASE", code).sort("CASE")
    waiting = Index("GSI1", "WAITING", when=closed == False).sort("CASE", code)  # noqa: E712


class CaseNow(Entity, table=Table("shop", indexes=shop.indexes), tag="Case", version=2):
    code: Attr[str] = field()
    closed: Attr[bool] = field(default=False)
    notes: Attr[int] = field(default=0)

    primary = Key("CASE", code).sort("CASE")
    waiting = Index("GSI1", "WAITING", when=closed == False).sort("CASE", code)  # noqa: E712

    @staticmethod
    @upgrade(1)
    def count_notes(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "notes": 0}


def test_what_is_added_to_an_item_of_an_older_version_is_not_lost(shopping: Any) -> None:
    shopping.store.put(Case(code="1"))
    key = Case.__schema__.primary_key({"code": "1"})
    shopping.before["PutItem"] = lambda: shopping.backend.execute(
        "UpdateItem",
        {
            "TableName": "shop",
            "Key": key,
            "UpdateExpression": "SET notes = :n",
            "ExpressionAttributeValues": {":n": {"N": "3"}},
        },
    )
    asked = shopping.operations(
        lambda: shopping.store.update(CaseNow, CaseNow.closed.set(True), code="1")
    )
    assert asked.count("PutItem") == 2  # the first is refused


def test_an_item_of_an_older_version_leaves_an_index_by_its_first_update(shopping: Any) -> None:
    shopping.store.put(Case(code="1"))
    close = [CaseNow.closed.set(True)]
    after = shopping.store.update(CaseNow, *close, code="1")
    assert shopping.item(after) == CaseNow.__schema__.to_item(after.__dict__)


class Contact(Entity, table=shop):
    code: Attr[str] = field()
    company: Attr[str] = field()
    domain: Attr[str] = computed(lambda contact: contact.company.lower())
    name: Attr[str] = field(unique=(domain,))
    nick: Attr[str | None] = field(default=None)
    shout: Attr[str | None] = computed(lambda contact: contact.nick and contact.nick.upper())

    primary = Key("CONTACT", code).sort("CONTACT")


def test_a_unique_value_within_a_computed_one_moves_with_it(shopping: Any) -> None:
    shopping.store.create(Contact(code="1", company="Acme", name="ann"))
    shopping.store.update(Contact, Contact.company.set("Other"), code="1")
    shopping.store.create(Contact(code="2", company="Acme", name="ann"))
    with pytest.raises(NotUnique):
        shopping.store.create(Contact(code="3", company="Other", name="ann"))


def test_an_update_with_unique_values_gives_the_entity_as_it_is_stored(shopping: Any) -> None:
    shopping.store.create(Contact(code="1", company="Acme", name="ann", nick="a"))
    changes = [Contact.name.set("bob"), Contact.nick.remove()]
    after = shopping.store.update(Contact, *changes, code="1")
    assert (after.name, after.nick, after.shout) == ("bob", None, None)


class Letter(Entity, table=shop):
    code: Attr[str] = field()
    lines: Attr[list[str]] = field(default_factory=list)
    tags: Attr[set[str]] = field(default_factory=set)
    notes: Attr[dict[str, Any]] = field(default_factory=dict)

    primary = Key("LETTER", code).sort("LETTER")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Letter.lines.append("abc"), r"append and prepend take a list, not 'abc'"),  # type: ignore[arg-type]
        (Letter.lines.prepend({"a": 1}), r"append and prepend take a list"),  # type: ignore[arg-type]
        (Letter.tags.add(set()), "an empty set changes nothing"),
        (Letter.tags.discard(set()), "an empty set changes nothing"),
        (
            Letter.tags.add("x"),
            r"'tags': add takes a number or a set.*'x'; for one member of a set, write",
        ),  # type: ignore[arg-type]
        (Letter.lines.add(["x"]), r"'lines': add takes a number or a set.*\.append"),
        (Letter.lines.discard(["x"]), r"'lines': add takes a number or a set"),
    ],
)
def test_changes_that_cannot_be_meant_are_refused(
    shopping: Any, change: Change, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        shopping.store.update(Letter, change, code="1")


def test_a_condition_is_about_the_entity_that_is_written(shopping: Any) -> None:
    store, foreign = shopping.store, Member.name == "ann"
    order = Order(**KEY, status="PLACED", placed=PLACED)
    for write in (
        lambda: store.update(Order, Order.note.set("x"), when=foreign, **KEY),
        lambda: store.put(order, when=foreign),
        lambda: store.delete(Order, when=foreign, **KEY),
    ):
        with pytest.raises(UsageError, match="'name' in the condition is not a field of Order"):
            write()


def test_a_path_through_what_is_not_there_is_explained(shopping: Any) -> None:
    shopping.store.put(Letter(code="1"))
    change = Letter.notes["first"]["bold"].set(True)
    with pytest.raises(ValidationException) as refused:
        shopping.store.update(Letter, change, code="1")
    assert "set the whole map or list first" in str(refused.value)


def test_a_unique_value_has_room_in_a_key(shopping: Any) -> None:
    ann = Member(org="o", name="ann", email="a" * 2048)
    with pytest.raises(UsageError, match="'email' is too long to be unique"):
        shopping.store.put(ann)


def test_adding_inside_a_field_adds_to_what_is_there_or_to_nothing(desk: Any) -> None:
    """AWS documents ADD for whole attributes alone, so the sum is set."""
    tallies = Table("tallies")

    class Tally(Entity, table=tallies):
        name: Attr[str] = field()
        by_color: Attr[dict[str, int]] = field(default_factory=dict)

        primary = Key("TALLY", name).sort("TALLY")

    desk.store.create_tables(tallies)
    desk.store.put(Tally(name="a", by_color={"red": 1}))
    added = (Tally.by_color["red"].add(2), Tally.by_color["blue"].add(5))
    after = desk.store.update(Tally, *added, name="a")
    assert after.by_color == {"red": 3, "blue": 5}
    assert "ADD" not in desk.asked[-1][1]["UpdateExpression"]
