"""A type that was given a name works wherever it works without one."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NewType, TypeAlias

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, computed, desc, field, in_order
from isotone.errors import UsageError
from isotone.model.declaring.wire_types import plain_type


class Level(Enum):
    LOW = "low"
    HIGH = "high"
    MID = "mid"


class Place(BaseModel):
    street: str


UserId = NewType("UserId", str)
Account = NewType("Account", UserId)
Number = NewType("Number", int)
Moment = NewType("Moment", datetime)
Name = Annotated[str, Field(max_length=5)]
Price: TypeAlias = Decimal
State = TypeAliasType("State", Literal["WAITING", "DONE", "ABORTED"])
Rank = TypeAliasType("Rank", Level | None)
Json = TypeAliasType("Json", "dict[str, Json] | str")  # type: ignore[misc]

named = Table("named", indexes={"by_rank": Global("RPK", "RSK"), "by_state": Global("SPK", "SSK")})


class User(Entity, table=named):
    user_id: Attr[UserId] = field()
    account: Attr[Account] = field()
    number: Attr[Number] = field(max=999, alert=2)
    at: Attr[Moment] = field()
    name: Attr[Name] = field()
    nick: Attr[Name | None] = field()
    price: Attr[Price] = field(max=99, scale=2, alert=2)
    state: Attr[State] = field()
    rank: Attr[Rank] = field(default=None)  # type: ignore[valid-type]
    mood: Attr[Literal["GOOD", "BAD", None]] = field(default=None)
    ids: Attr[set[UserId]] = field(default_factory=set)
    by_id: Attr[dict[UserId, Number]] = field(default_factory=dict)
    place: Attr[Place] = field(default_factory=lambda: Place(street="a"))
    label: Attr[UserId] = computed(lambda user: UserId(f"{user.user_id}!"))

    primary = Key("USER", user_id, account).sort(desc(number), at, name, price)
    by_rank = Index("by_rank", "RANK").sort(in_order(rank), number)
    by_state = Index("by_state", "STATE").sort(desc(in_order(state)), in_order(mood))


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def user(number: int, **more: Any) -> User:
    given: dict[str, Any] = {
        "user_id": "u",
        "account": "a",
        "number": number,
        "at": NOON,
        "name": "Ann",
        "price": Decimal("1.50"),
        "state": "DONE",
    }
    return User(**{**given, **more})


def test_what_has_a_name_is_written_and_read_as_what_it_names() -> None:
    with isotone.connect() as store:
        store.create_tables(named)
        one = store.put(user(1, nick="A", ids={"x"}, by_id={"x": 2}, rank=Level.MID, mood="BAD"))
        where = User.primary.where(User.user_id == UserId("u"), User.account == "a")  # type: ignore[arg-type]
        assert store.all(where) == [one]
        assert (one.label, User.by_id.wire.code, User.ids.wire.code) == ("u!", "M", "SS")
        assert (User.at.wire.code, User.number.wire.code, User.rank.wire.code) == ("S", "N", "S")


def test_an_optional_enum_or_literal_has_its_order() -> None:
    with isotone.connect() as store:
        store.create_tables(named)
        for number, rank in enumerate([Level.MID, None, Level.LOW, Level.HIGH]):
            store.put(user(number, rank=rank, mood=None if number == 2 else "GOOD"))
        ranked = store.all(User.by_rank.where())
        assert [each.rank for each in ranked] == [Level.LOW, Level.HIGH, Level.MID]
        assert [each.number for each in store.all(User.by_rank.where(User.rank > Level.LOW))] == [
            3,
            0,
        ]
        assert store.count(User.by_state.where(User.state == "DONE", User.mood == "GOOD")) == 3
        loaded = store.load(User.primary.scan()).sorted_by(in_order(User.rank))
        assert [each.rank for each in loaded] == [Level.LOW, Level.HIGH, Level.MID, None]
        cleared = store.update(user(0), User.rank.remove())
        assert cleared.rank is None
        assert store.count(User.by_rank.where()) == 2


@pytest.mark.parametrize(
    "ask",
    [
        lambda: User.user_id == 5,
        lambda: User.account == 5,
        lambda: User.number > "5",
        lambda: User.at > "2026",
        lambda: User.name == 5,
        lambda: User.state == "OTHER",
        lambda: User.rank == "low",
        lambda: User.mood == "UGLY",
        lambda: User.place == {"street": 5},
        lambda: User.place.set("street").action(),
    ],
)
def test_a_value_of_another_type_is_refused(ask: Any) -> None:
    with pytest.raises(UsageError, match=r"^field .* is expected"):
        ask()


def test_values_are_validated_as_what_the_name_says() -> None:
    with pytest.raises(UsageError, match=r"name is 'Barbara'.* at most 5"):
        user(1, name="Barbara")
    with pytest.raises(UsageError, match=r"at is .*no time zone"):
        user(1, at=datetime(2026, 1, 1))
    with pytest.raises(UsageError, match="state is 'OTHER'"):
        user(1, state="OTHER")
    assert user(1).nick is None


def test_an_alias_that_holds_itself_is_left_to_pydantic() -> None:
    assert plain_type(Json) is Json
