"""Codecs of fields, and hidden and read-only fields."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import itertools
import json
import zlib
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

import isotone
from isotone import (
    ULID,
    Attr,
    Codec,
    Entity,
    Global,
    Index,
    Key,
    Number,
    Patch,
    Table,
    computed,
    desc,
    field,
)
from isotone.errors import ConditionFailed, InvalidEntity, InvalidItem, UsageError

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})
nonces = itertools.count()


class Money:
    """A class of the program's own, which pydantic does not know."""

    def __init__(self, text: str) -> None:
        amount, self.currency = text.split(" ")
        self.amount = Decimal(amount)

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and str(self) == str(other)

    __hash__ = None  # type: ignore[assignment] # equal by value


class Profile(BaseModel):
    name: str
    likes: list[str] = []


def sealed(text: str) -> bytes:
    """An "encryption" that never returns the same."""
    return f"{next(nonces):08}".encode() + bytes(each ^ 1 for each in text.encode())


def opened(raw: bytes) -> str:
    return bytes(each ^ 1 for each in raw[8:]).decode()


packed: Codec[str, bytes] = Codec(
    lambda text: zlib.compress(text.encode()), lambda raw: zlib.decompress(raw).decode()
)
secret: Codec[str, bytes] = Codec(sealed, opened, deterministic=False)
money: Codec[Money, str] = Codec(str, Money)
profile: Codec[Profile, str] = Codec(Profile.model_dump_json, Profile.model_validate_json)
joined: Codec[set[str], str] = Codec(
    lambda tags: ",".join(sorted(tags)), lambda text: set(text.split(","))
)
grade: Codec[str, str] = Codec(
    {"gold": "1", "silver": "2", "bronze": "3"}.__getitem__,
    {"1": "gold", "2": "silver", "3": "bronze"}.__getitem__,
    ordered=True,
)


class Member(Entity, table=shop):
    number: Attr[int] = field(max=999)
    letter: Attr[str] = field(codec=packed, default="")
    pin: Attr[str | None] = field(codec=secret, hidden=True, default=None)
    fee: Attr[Money | None] = field(codec=money, default=None)
    profile: Attr[Profile | None] = field(codec=profile, default=None)
    tags: Attr[set[str]] = field(codec=joined, default_factory=set)
    level: Attr[str] = field(codec=grade, default="gold")
    account: Attr[str] = field(read_only=True, default="none")
    token: Attr[ULID] = field(read_only=True, default_factory=ULID.new)
    label: Attr[str] = computed(lambda member: f"{member.level} {member.fee}")

    primary = Key("MEMBER").sort("MEMBER", number)
    by_level = Index("GSI1", "LEVEL").sort(desc(level), number)


@pytest.fixture
def store() -> Any:
    with isotone.connect(":memory:") as store:
        store.create_tables(shop)
        yield store


def item(store: Any, number: int = 1) -> dict[str, Any]:
    key = {"PK": {"S": "MEMBER"}, "SK": {"S": f"MEMBER#{number:03}"}}
    found: dict[str, Any] = store.backend.execute("GetItem", {"TableName": "shop", "Key": key})[
        "Item"
    ]
    return found


def full(number: int = 1, **more: Any) -> Member:
    values: dict[str, Any] = {
        "letter": "dear " * 50,
        "pin": "1234",
        "fee": Money("9.90 EUR"),
        "profile": Profile(name="Ann", likes=["tea"]),
        "tags": {"b", "a"},
        "level": "silver",
    }
    return Member(number=number, **values | more)


# Storing


def test_values_are_stored_as_encoded_and_read_as_declared(store: Any) -> None:
    member = store.put(full())
    stored = item(store)
    assert stored["fee"] == {"S": "9.90 EUR"}
    assert stored["profile"] == {"S": '{"name":"Ann","likes":["tea"]}'}
    assert stored["tags"] == {"S": "a,b"}
    assert stored["level"] == {"S": "2"}
    assert stored["letter"].keys() == stored["pin"].keys() == {"B"}
    assert len(stored["letter"]["B"]) < 50
    assert stored["GSI1SK"]["S"] != "silver#001"
    assert store.get(Member, number=1) == member
    assert store.all(Member.primary.scan()) == [member]


def test_none_and_empty_sets_are_absent(store: Any) -> None:
    member = store.put(Member(number=1))
    assert not {"pin", "fee", "profile", "tags"} & item(store).keys()
    assert store.get(Member, number=1) == member
    changed = store.update(Member, *Member.changes(fee=Money("1 EUR"), tags={"x"}), number=1)
    assert (changed.fee, changed.tags, changed.label) == (Money("1 EUR"), {"x"}, "gold 1 EUR")
    changed = store.update(Member, Member.fee.set(None), Member.tags.set(set()), number=1)
    assert (changed.fee, changed.tags, changed.label) == (None, set(), "gold None")
    assert not {"fee", "tags"} & item(store).keys()


@given(st.text(), st.none() | st.text(), st.sets(st.text("abc", min_size=1)))
def test_any_value_comes_back(letter: str, pin: str | None, tags: set[str]) -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(shop)
        member = store.put(full(letter=letter, pin=pin, tags=tags))
        assert store.get(Member, number=1) == member


def test_an_async_store_has_the_same(store: Any) -> None:
    async def talk() -> None:
        async with isotone.aconnect(":memory:") as store:
            await store.create_tables(shop)
            member = await store.put(full())
            assert await store.get(Member, number=1) == member

    asyncio.run(talk())


def test_a_value_that_cannot_be_encoded_names_its_field(store: Any) -> None:
    class Odd(Entity, table=Table("odd")):
        number: Attr[int] = field(max=9)
        value: Attr[Any] = field(codec=Codec(lambda value: value, lambda value: value))

        primary = Key("ODD").sort("ODD", number)

    store.create_tables(Odd.__schema__.table)
    for value in (1.5, ["x"], True):
        with pytest.raises(
            UsageError, match=r"field 'value': .* return a str, bytes, an int or a Dec"
        ):
            store.put(Odd(number=1, value=value))
    for value in ("x", b"x", 1, Decimal("1.5")):
        store.put(Odd(number=1, value=value))
        assert store.get(Odd, number=1).value == value
    with pytest.raises(InvalidEntity, match="fee is 5: Input should be an instance of Money"):
        full(fee=5)


def test_a_stored_value_that_cannot_be_decoded_is_invalid(store: Any) -> None:
    store.put(full())
    wrong = item(store) | {"fee": {"S": "nothing"}}
    store.backend.execute("PutItem", {"TableName": "shop", "Item": wrong})
    with pytest.raises(InvalidItem, match="field 'fee'"):
        store.get(Member, number=1)


# Conditions and keys


def test_equality_is_asked_of_the_encoded_value(store: Any) -> None:
    store.put(full())
    store.put(full(2, fee=Money("5 EUR"), letter="hi"))
    scan = Member.primary.scan()
    assert [each.number for each in store.all(scan.filter(Member.fee == Money("5 EUR")))] == [2]
    assert [each.number for each in store.all(scan.filter(Member.letter != "hi"))] == [1]
    assert [each.number for each in store.all(scan.filter(Member.tags == {"a", "b"}))] == [1, 2]
    found = store.all(scan.filter(Member.fee.is_in([Money("9.90 EUR"), Money("1 EUR")])))
    assert [each.number for each in found] == [1]
    with pytest.raises(ConditionFailed):
        store.update(Member, Member.level.set("gold"), number=1, when=Member.fee == Money("1 EUR"))
    assert store.all(scan.filter(Member.pin.missing())) == []
    assert len(store.all(scan.filter(Member.pin != None))) == 2  # noqa: E711


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda: Member.fee > Money("1 EUR"), "'fee' has a codec, so what is stored has no order"),
        (lambda: Member.letter.between("a", "b"), "has no order; write =="),
        (lambda: Member.letter.begins_with("dear"), "cannot be asked for begins_with"),
        (lambda: Member.tags.contains("a"), "cannot be asked for contains"),
        (lambda: Member.letter.size > 3, "cannot be asked for size"),
        (lambda: Member.profile["name"], "sees nothing inside"),
        (lambda: Member.pin == "1234", "'pin' is encoded differently each time"),
        (lambda: Member.pin.is_in(["1234"]), "encoded differently each time"),
        (lambda: Member.level == "tin", r"'level': a str cannot be encoded: KeyError\('tin'\)"),
        (lambda: Member.tags.add({"x"}), r"cannot change a part of it; write \.set"),
        (lambda: Member.tags.discard({"x"}), "cannot change a part of it"),
        (lambda: Member.letter.append(["x"]), "cannot change a part of it"),
        (lambda: Member.account == Member.letter, "stored differently"),
        (lambda: Member.letter < Member.account, "has no order"),
    ],
)
def test_what_the_database_cannot_answer_is_refused(ask: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        ask()


def test_an_ordered_codec_sorts_in_keys(store: Any) -> None:
    for number, level in enumerate(["silver", "bronze", "gold", "silver"]):
        store.put(full(number, level=level))
    everyone = Member.by_level.where()
    assert [each.level for each in store.all(everyone)] == ["bronze", "silver", "silver", "gold"]
    assert [each.number for each in store.all(Member.by_level.where(Member.level == "silver"))] == [
        0,
        3,
    ]
    some = Member.by_level.where(Member.level < "bronze")
    assert [each.level for each in store.all(some)] == ["silver", "silver", "gold"]
    filtered = Member.primary.scan().filter(Member.level >= "silver")
    assert sorted(each.level for each in store.all(filtered)) == ["bronze", "silver", "silver"]
    changed = store.update(Member, Member.level.set("gold"), number=0)
    assert store.all(everyone)[2] == changed


def declared(members: dict[str, Any], kind: Any = str) -> Any:
    names: dict[str, Any] = {"pk": field(), **members}
    names["__annotations__"] = {"pk": Attr[str]} | dict.fromkeys(members, Attr[kind])
    names["primary"] = Key("A", names["pk"]).sort("B", *members.values())
    return type("Thing", (Entity,), names, table=Table("things"))


def test_a_codec_without_order_is_no_part_of_a_key() -> None:
    with pytest.raises(UsageError, match=r"'text' has a codec.*declare Codec\(…, ordered=True\)"):
        declared({"text": field(codec=packed)})
    with pytest.raises(UsageError, match="a codec that encodes equal values alike"):
        Codec(str, str, ordered=True, deterministic=False)

    with pytest.raises(UsageError, match=r"'name' has a codec.*declare Codec\(…, ordered=True\)"):

        class Coded(Entity, table=Table("bare", partition="name", sort=None)):
            name: Attr[str] = field(codec=packed)
            primary = Key(name)


HOURS = "%Y-%m-%d %H"
hours: Codec[datetime, str] = Codec(
    lambda at: at.astimezone(UTC).strftime(HOURS),
    lambda text: datetime.strptime(text, HOURS).replace(tzinfo=UTC),
    ordered=True,
)
cents: Codec[Decimal, int] = Codec(
    lambda price: int(price * 100), lambda n: Decimal(n) / 100, ordered=True
)
offers = Table(
    "offers", partition="shop", sort=Number("price"), indexes={"by_hour": Global("shop", "at")}
)


class Offer(Entity, table=offers):
    """An offer whose coded fields are the table's own key attributes."""

    shop: Attr[str] = field()
    price: Attr[Decimal] = field(codec=cents)
    at: Attr[datetime | None] = field(default=None, codec=hours)

    primary = Key(shop).sort(price)
    by_hour = Index("by_hour", shop).sort(at)


@given(
    st.dictionaries(st.integers(1, 3000), st.none() | st.integers(0, 100), max_size=9),
    st.integers(0, 3000),
    st.integers(0, 100),
)
def test_an_ordered_codec_writes_a_key_attribute(
    hours_by_cents: dict[int, int | None], least: int, hour: int
) -> None:
    def at(number: int) -> datetime:
        return datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=number)

    with isotone.connect(":memory:") as store:
        store.create_tables(offers)
        made = [
            Offer(shop="a", price=Decimal(price) / 100, at=None if number is None else at(number))
            for price, number in sorted(hours_by_cents.items())
        ]
        store.put_many(made)
        here = Offer.shop == "a"
        dearer = Offer.primary.where(here, Offer.price >= Decimal(least) / 100)
        assert store.all(dearer) == [offer for offer in made if offer.price * 100 >= least]
        later = Offer.by_hour.where(here, Offer.at > at(hour))
        dated = [offer for offer in made if offer.at is not None and offer.at > at(hour)]
        assert {offer.price for offer in store.all(later)} == {offer.price for offer in dated}
        for offer in made:
            assert store.get(Offer, shop="a", price=offer.price) == offer
            moved = store.update(offer, Offer.at.set(at(hour)))
            assert store.first(Offer.by_hour.where(here, Offer.at == at(hour))) is not None
            assert moved.at == at(hour)
        assert store.verify(offers).is_clean


def test_a_codec_that_writes_another_type_than_the_key_attribute_is_refused() -> None:
    class Wrong(Entity, table=Table("wrong", partition="name", sort=None)):
        name: Attr[int] = field(codec=Codec(int, int, ordered=True))
        primary = Key(name)

    with isotone.connect(":memory:") as store:
        store.create_tables(Wrong.primary.schema.table)
        with pytest.raises(UsageError, match="is of type S, but the codec of field 'name' wrote"):
            store.put(Wrong(name=7))


@pytest.mark.parametrize("option", ["epoch", "zone", "case", "in_order", "unique"])
def test_a_codec_says_alone_how_a_value_is_stored(option: str) -> None:
    value: Any = {"case": "lower", "zone": __import__("datetime").UTC}.get(option, True)
    with pytest.raises(UsageError, match=f"leave {option}=… out"):
        declared({"text": field(codec=grade, **{option: value})})
    with pytest.raises(UsageError, match="is not a codec; write Codec"):
        declared({"text": field(codec=str)})  # type: ignore[arg-type] # what is refused


def test_what_is_encoded_differently_each_time_is_as_a_put_would_write_it(store: Any) -> None:
    store.put(full())
    report = store.verify(Member)
    assert (report.items, list(report.findings)) == (2, [])  # one is the record of the keys
    before = item(store)
    assert store.rewrite(Member).rewritten == 0
    assert item(store) == before


# Hidden


def test_what_is_hidden_is_not_shown() -> None:
    member = full()
    assert "1234" not in repr(member)
    assert "pin" not in member.model_dump()
    assert "1234" not in member.model_dump_json(exclude={"fee"})
    assert "pin" not in TypeAdapter(list[Member]).dump_python([member])[0]
    assert "pin" not in dataclasses.asdict(member)
    printed = io.StringIO()
    isotone.show([member], file=printed)
    assert "1234" not in printed.getvalue()
    assert member.to_dict()["pin"] == "1234"
    assert dataclasses.replace(member, level="gold") == member.replace(level="gold")
    assert dataclasses.replace(member, level="gold").pin == "1234"
    with pytest.raises(InvalidEntity) as raised:
        full(pin=5)
    assert str(raised.value) == "Member: pin Input should be a valid string"
    assert repr(Account.password == "hush") == "password == …"


class Account(Entity, table=shop):
    name: Attr[str] = field()
    password: Attr[str] = field(hidden=True)

    primary = Key("ACCOUNT", name).sort("ACCOUNT")


def test_what_is_hidden_may_be_given() -> None:
    member = Member.model_validate({"number": 1, "pin": "1234"})
    assert member.pin == "1234"
    schema = Member.model_json_schema()["properties"]
    assert schema["pin"]["writeOnly"] is True
    assert "pin" not in Member.model_json_schema(mode="serialization")["properties"]
    assert TypeAdapter(Patch[Member]).validate_python({"pin": "1"}) == {"pin": "1"}
    assert TypeAdapter(Patch[Member]).dump_python(Patch(Member, {"pin": "1", "level": "gold"})) == {
        "level": "gold"
    }
    assert "pin" not in repr(Patch(Member, {"pin": "1"}))


# Read-only


def test_what_is_read_only_is_set_when_the_entity_is_made(store: Any) -> None:
    member = store.put(full(account="a1"))
    assert (member.account, store.get(Member, number=1).account) == ("a1", "a1")
    for call in (
        lambda: store.update(Member, Member.account.set("a2"), number=1),
        lambda: store.update(Member, Member.account.remove(), number=1),
        lambda: Member.changes(account="a2"),
    ):
        with pytest.raises(UsageError, match=r"account.* cannot be changed: it is read-only"):
            call()
    made = store.upsert(Member, Member.account.set_default("a3"), number=2)
    again = store.upsert(Member, Member.account.set_default("a4"), number=2)
    assert (made.account, again.account) == ("a3", "a3")


def test_input_does_not_set_what_is_read_only() -> None:
    given = {"number": 1, "account": "forged", "token": "forged"}
    one, two = Member.model_validate(given), Member.model_validate(given)
    assert one.account == "none"
    assert one.token != two.token
    properties = Member.model_json_schema()["properties"]
    assert properties["account"]["readOnly"]
    assert properties["token"]["readOnly"]
    with pytest.raises(ValidationError, match="Extra inputs"):
        TypeAdapter(Patch[Member]).validate_python({"account": "x"})


def test_what_only_the_program_can_set_makes_input_incomplete() -> None:
    class Deed(Entity, table=Table("deeds")):
        number: Attr[int] = field(max=9)
        owner: Attr[str] = field(read_only=True)

        primary = Key("DEED").sort("DEED", number)

    assert Deed(number=1, owner="ann").model_dump() == {"number": 1, "owner": "ann"}
    for values in ({"number": 1}, {"number": 1, "owner": "ann"}):
        with pytest.raises(ValidationError, match="owner\n  the field is read-only"):
            Deed.model_validate(values)
    assert Deed.model_json_schema()["properties"]["owner"]["readOnly"]


# JSON


def test_a_class_that_pydantic_does_not_know_is_in_json_as_it_is_encoded() -> None:
    member = full()
    assert member.model_dump(mode="json")["fee"] == "9.90 EUR"
    read = Member.model_validate_json(
        '{"number": 1, "fee": "9.90 EUR", "profile": {"name": "Ann"}}'
    )
    assert (read.fee, read.profile) == (Money("9.90 EUR"), Profile(name="Ann"))
    assert json.loads(member.model_dump_json())["profile"] == {"name": "Ann", "likes": ["tea"]}
    with pytest.raises(ValidationError, match="not a Money"):
        Member.model_validate({"number": 1, "fee": "x"})
