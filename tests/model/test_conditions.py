"""Conditions that could not mean what was written say so; those that can, find it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pytest

import isotone
from isotone import Attr, Condition, Entity, Key, Store, Table, field
from isotone.errors import UsageError

parcels = Table("parcels")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ID = UUID(int=7)


class Grade(Enum):
    LOW = "low"
    HIGH = "high"


class Parcel(Entity, table=parcels):
    number: Attr[int] = field(max=999, alert=2)
    weight: Attr[Decimal] = field(default=Decimal(1))
    name: Attr[str] = field(default="parcel")
    is_open: Attr[bool] = field(default=False)
    days: Attr[set[date]] = field(default_factory=lambda: {NOON.date()})
    grades: Attr[list[Grade]] = field(default_factory=lambda: [Grade.HIGH])
    ids: Attr[set[UUID]] = field(default_factory=lambda: {ID})
    ratio: Attr[list[float]] = field(default_factory=lambda: [1.5])
    seen: Attr[dict[str, datetime]] = field(default_factory=lambda: {"last": NOON})
    address: Attr[dict[str, str]] = field(default_factory=lambda: {"city": "Ghent"})

    primary = Key("PARCELS").sort("PARCEL", number)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with isotone.connect() as store:
        store.create_tables(parcels)
        store.put(Parcel(number=1))
        yield store


@pytest.mark.parametrize(
    "condition",
    [
        Parcel.days.contains(NOON.date()),
        Parcel.grades.contains(Grade.HIGH),
        Parcel.ids.contains(ID),
        Parcel.ratio.contains(1.5),
        Parcel.seen["last"] == NOON,
        Parcel.seen["last"].between(NOON, NOON),
        Parcel.seen["last"].begins_with("2026-01"),
        Parcel.grades[0] == Grade.HIGH,
        Parcel.address["city"].is_in(["Ghent", "Bruges"]),
        Parcel.address["city"].contains("hen"),
        Parcel.address["city"].size == 5,
        Parcel.address["city"].size != 4,
        Parcel.name.size != 5,
    ],
    ids=lambda condition: str(condition.node())[:70],
)
def test_a_value_is_compared_as_it_is_kept(store: Store, condition: Condition) -> None:
    everything = Parcel.primary.where()
    assert len(store.all(everything.filter(condition))) == 1
    assert store.all(everything.filter(~condition)) == []


ANY: Any = Parcel


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            lambda: ANY.name.contains(ANY.number),
            r"<field number>, which is not a value; two fields",
        ),
        (lambda: ANY.weight == ANY.name, "stored differently, a Decimal and a str"),
        (lambda: ANY.address["city"] == ANY.number, "stored differently, a str and an int"),
        (lambda: ANY.grades.contains(ANY.name), "which is not a value"),
        (lambda: ANY.name.is_in([]), "1 to 100 values, not 0; no item can satisfy it"),
        (lambda: ANY.name.is_in(map(str, range(101))), r"not 101; join several by \|"),
        (lambda: ANY.name.is_in("abc"), r"write is_in\(\['abc'\]\)"),
        (lambda: ANY.address["city"].is_in([]), "not 0"),
        (lambda: ANY.weight.begins_with("1"), r"stored as N, for which begins_with is never true"),
        (lambda: ANY.is_open.contains(True), "stored as BOOL"),
        (lambda: ANY.name.contains(3), "stored as S, which never contains 3; give a string"),
        (lambda: ANY.days.contains(3), "stored as SS, which never contains 3; give a string"),
        (lambda: ANY.address["city"].contains(b"x"), "never contains b'x'; give a string"),
        (lambda: ANY.number.size, "stored as N"),
        (lambda: ANY.name.size == "5", "compared with an int, not with '5'"),
        (lambda: ANY.name.size == ANY.name, "name.size is a number, and name is a str"),
    ],
)
def test_what_could_never_be_meant_is_refused(wrong: Callable[[], Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        wrong()


@pytest.mark.parametrize("named", [Parcel.days, Parcel.address["city"], Parcel.name.size])
def test_python_s_own_in_and_for_are_refused(named: Any) -> None:
    with pytest.raises(TypeError, match=r"write \.contains\("):
        assert "x" in named
    with pytest.raises(TypeError, match="not iterable"):
        list(named)


# Literals

choices = Table("choices")


class Choice(Entity, table=choices):
    kind: Attr[Literal["x", "y"]] = field()
    rank: Attr[Literal[1, 2]] = field()
    flag: Attr[Literal[True]] = field(default=True)

    primary = Key("KIND", kind).sort("RANK", rank)


@pytest.mark.parametrize("wrong", [["x"], {"x": 1}, {"x"}, "z", 1, True])
def test_only_its_values_fit_a_literal(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"field 'kind': .* one of 'x', 'y' is expected"):
        Choice.kind == wrong  # noqa: B015
    with pytest.raises(UsageError, match=r"field 'kind': .* one of 'x', 'y' is expected"):
        Choice.kind.is_in([wrong])


def test_a_flag_is_not_the_number_that_it_equals() -> None:
    with pytest.raises(
        UsageError, match="field 'rank': True is a bool, but one of 1, 2 is expected"
    ):
        Choice.rank == True  # noqa: B015, E712
    wrong: Any = 1
    with pytest.raises(UsageError, match="field 'flag': 1 is an int, but one of True is expected"):
        Choice.flag == wrong  # noqa: B015
    assert repr(Choice.rank == 1) == "rank == 1"
