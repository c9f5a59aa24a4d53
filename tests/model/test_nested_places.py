"""Places inside fields: names, types and values are checked as those of fields are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as member
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

import pytest
from pydantic import BaseModel, Field, computed_field, field_validator
from typing_extensions import TypedDict

import isotone
from isotone import Attr, Entity, Global, Index, Key, Store, Table, field
from isotone.errors import InvalidEntity, UsageError

users = Table("users", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Level(Enum):
    LOW = "low"
    HIGH = "high"


class Pet(BaseModel):
    name: str
    age: Annotated[int, Field(ge=0)] = 0


class Home(BaseModel):
    street: str
    zip: int
    since: datetime | None = None
    level: Level = Level.LOW
    pets: list[Pet] = Field(default_factory=list)

    @field_validator("street")
    @classmethod
    def not_blank(cls, street: str) -> str:
        if not street.strip():
            raise ValueError("a street has a name")
        return street.strip()

    @computed_field
    def label(self) -> str:
        return f"{self.street} {self.zip}"


class Spot(NamedTuple):
    x: int
    y: int


@dataclass
class Car:
    plate: str
    seats: int = 4
    tags: list[str] = member(default_factory=list)


class Prefs(TypedDict):
    theme: Literal["dark", "light"]
    size: NotRequired[int]


class User(Entity, table=users):
    name: Attr[str] = field()
    home: Attr[Home] = field()
    car: Attr[Car | None] = field(default=None)
    prefs: Attr[Prefs | None] = field(default=None)
    spot: Attr[Spot | None] = field(default=None)
    scores: Attr[dict[str, int]] = field(default_factory=dict)
    by_level: Attr[dict[Level, Decimal]] = field(default_factory=dict)
    homes: Attr[list[Home]] = field(default_factory=list)
    either: Attr[Pet | Car | None] = field(default=None)
    anything: Attr[dict[str, Any]] = field(default_factory=dict)
    tags: Attr[set[str]] = field(default_factory=set)

    primary = Key("USER", name).sort("USER")


HOME = Home(street="High Street", zip=1234)


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.connect(":memory:") as store:
        store.create_tables(users)
        store.put(
            User(
                name="ann",
                home=HOME,
                car=Car("X1"),
                prefs={"theme": "dark", "size": 3},
                spot=Spot(1, 2),
                scores={"go": 1},
                by_level={Level.LOW: Decimal(1)},
                homes=[HOME],
                either=Pet(name="rex"),
                anything={"a": {"b": [1]}},
            )
        )
        yield store


WRONG_PLACES = [
    (lambda: User.home["strret"], r"home has no 'strret'; did you mean 'street'\?"),
    (lambda: User.home[0], r"home has no 0.*'street'"),
    (lambda: User.home["zip"]["x"], r"home\['zip'\] is an? int.*nothing inside"),
    (lambda: User.homes[0]["zap"], r"homes\[0\] has no 'zap'; did you mean 'zip'\?"),
    (lambda: User.homes["zip"], r"homes is a list.*a number from 0"),
    (lambda: User.homes[-1], r"homes is a list.*a number from 0"),
    (lambda: User.home["pets"][0]["nmae"], r"home\['pets'\]\[0\] has no 'nmae'.*'name'"),
    (lambda: User.car["plat"], r"car has no 'plat'; did you mean 'plate'\?"),
    (lambda: User.prefs["theem"], r"prefs has no 'theem'; did you mean 'theme'\?"),
    (lambda: User.spot[2], r"spot has 2 elements"),
    (lambda: User.scores[0], r"scores is a map.*a string"),
    (lambda: User.by_level["middle"], r"by_level has no 'middle'"),
    (lambda: User.either["nome"], r"either has no 'nome'"),
    (lambda: User.name["first"], r"name is a str.*nothing inside"),
    (lambda: User.tags[0], r"tags is a set.*contains"),
]


@pytest.mark.parametrize(("make", "message"), WRONG_PLACES, ids=range(len(WRONG_PLACES)))
def test_a_place_that_is_not_there_is_refused(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


WRONG_CHANGES = [
    (lambda: User.home["zip"].set("abc"), r"home\['zip'\] is 'abc': .*integer"),
    (lambda: User.home["zip"].set(None), r"home\['zip'\] is None"),
    (lambda: User.home["street"].set("  "), r"home\['street'\] is '  ': .*a street has a name"),
    (lambda: User.home["label"].set("x"), r"home\['label'\].*computed"),
    (lambda: User.home["pets"][0]["age"].set(-1), r"\['age'\] is -1: .*greater than or equal to 0"),
    (lambda: User.home["pets"].set([{"name": "a", "age": "x"}]), r"home\['pets'\]\[0\]\['age'\]"),
    (lambda: User.home["since"].set(datetime(2026, 1, 1)), r"home\['since'\].*no time zone"),
    (lambda: User.homes.append([{"street": "a"}]), r"homes.*zip"),
    (lambda: User.car["seats"].set("many"), r"car\['seats'\] is 'many'"),
    (lambda: User.prefs["theme"].set("blue"), r"prefs\['theme'\] is 'blue'"),
    (lambda: User.scores["go"].set("x"), r"scores\['go'\] is 'x'"),
    (lambda: User.by_level["low"].set("x"), r"by_level\['low'\] is 'x'"),
    (lambda: User.by_level["low"].set(0.5), r"by_level\['low'\] is 0.5: .*not exact"),
    (lambda: User.spot[0].set("x"), r"spot\[0\] is 'x'"),
    (lambda: User.home["zip"].remove(), r"home\['zip'\] cannot be removed"),
    (lambda: User.car["plate"].remove(), r"car\['plate'\] cannot be removed"),
    (lambda: User.prefs["theme"].remove(), r"prefs\['theme'\] cannot be removed"),
    (lambda: User.spot[1].remove(), r"spot\[1\] cannot be removed"),
    (lambda: User.home["street"].add(1), r"home\['street'\].*add"),
    (lambda: User.home["zip"].add(Decimal("0.5")), r"home\['zip'\].*an int"),
    (lambda: User.home["zip"].add("1"), r"add takes a number or a set"),
]


@pytest.mark.parametrize(("make", "message"), WRONG_CHANGES, ids=range(len(WRONG_CHANGES)))
def test_a_change_that_does_not_fit_is_refused(store: Store, make: Any, message: str) -> None:
    before = store.get(User, name="ann")
    with pytest.raises(UsageError, match=message):
        store.update(User, make(), name="ann")
    assert store.get(User, name="ann") == before


WRONG_CONDITIONS = [
    (lambda: User.home["zip"] == "1234", r"home\['zip'\].*an int"),
    (lambda: User.home["since"] > "2026", r"home\['since'\].*a datetime"),
    (lambda: User.home["level"].is_in(["high"]), r"home\['level'\].*a member of Level"),
    (lambda: User.home["level"] > Level.LOW, r"home\['level'\].*no declared order.*is_in"),
    (lambda: User.home["pets"] > [], r"home\['pets'\].*no order"),
    (lambda: User.prefs["theme"] == "blue", r"prefs\['theme'\].*'dark', 'light'"),
]


@pytest.mark.parametrize(("make", "message"), WRONG_CONDITIONS, ids=range(len(WRONG_CONDITIONS)))
def test_a_condition_with_a_value_of_another_type_is_refused(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


def test_the_condition_of_an_index_is_checked_when_the_class_is_defined() -> None:
    with pytest.raises(UsageError, match=r"Flat: key 'near': .*home has no 'zipp'"):

        class Flat(Entity, table=Table("flats", indexes={"GSI1": Global("a", "b")})):
            name: Attr[str] = field()
            home: Attr[Home] = field()

            primary = Key("F", name).sort("F")
            near = Index("GSI1", "F", when=home["zipp"] == 5).sort(name)


RIGHT: list[tuple[Any, Any, Any]] = [
    (User.home["zip"], "77", 77),
    (User.home["street"], " Low Street ", "Low Street"),
    (User.home["since"], "2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)),
    (User.home["since"], None, None),
    (User.home["level"], "high", Level.HIGH),
    (User.home["pets"], [{"name": "rex", "age": "3"}], [Pet(name="rex", age=3)]),
    (User.homes[0], {"street": "a", "zip": 1}, Home(street="a", zip=1)),
    (User.homes[0]["zip"], 5, 5),
    (User.car["seats"], 2, 2),
    (User.car["tags"], ["a"], ["a"]),
    (User.prefs["theme"], "light", "light"),
    (User.prefs["size"], 7, 7),
    (User.scores["go"], 5, 5),
    (User.scores["new"], 5, 5),
    (User.by_level["high"], "2.50", Decimal("2.50")),
    (User.spot[1], 9, 9),
    (User.either["name"], "max", "max"),
    (User.anything["a"]["b"][0], "x", "x"),
]


@pytest.mark.parametrize(("place", "value", "wanted"), RIGHT, ids=repr)
def test_a_change_of_a_place_is_converted_and_read_back(
    store: Store, place: Any, value: Any, wanted: Any
) -> None:
    after: Any = store.update(User, place.set(value), name="ann")
    assert after == store.get(User, name="ann")
    now = getattr(after, place._field.name)
    for element in place._path:
        if isinstance(element, str) and not isinstance(now, dict):
            now = getattr(now, element)
        else:
            now = now[Level(element) if element in ("low", "high") else element]
    assert now == wanted
    if wanted is not None:
        found = store.all(User.primary.scan().filter(place == wanted))
        assert [user.name for user in found] == ["ann"]


def test_what_may_be_removed_and_added_to(store: Store) -> None:
    after = store.update(
        User,
        User.home["since"].remove(),
        User.prefs["size"].remove(),
        User.scores["go"].add(4),
        User.homes.append([{"street": "b", "zip": "5"}]),
        User.home["zip"].add(1),
        name="ann",
    )
    assert after.prefs == {"theme": "dark"}
    assert after.scores == {"go": 5}
    assert after.homes == [HOME, Home(street="b", zip=5)]
    assert after.home.zip == 1235
    assert store.update(User, User.homes[0].remove(), name="ann").homes == [Home(street="b", zip=5)]


def test_the_message_names_the_place() -> None:
    with pytest.raises(InvalidEntity) as caught:
        isotone.connect(":memory:").update(User, User.home["zip"].set("abc"), name="ann")
    assert caught.value.errors[0]["field"] == "home['zip']"


def test_a_condition_shows_its_place() -> None:
    assert repr(User.homes[0]["zip"] == 5) == "homes[0]['zip'] == 5"
    assert repr(User.anything["a"][0] == 5) == "anything['a'][0] == 5"
