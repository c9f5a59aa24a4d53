"""What begins so: a text or bytes, whatever values the field itself can have."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

import pytest

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, field
from isotone.errors import UsageError

things = Table("things", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Grade(Enum):
    LOW = "low"
    LOWER = "lower"
    HIGH = "high"


class Thing(Entity, table=things):
    number: Attr[int] = field(max=9, alert=2)
    status: Attr[Literal["CANCELLED", "CANCELLED_BY_SHOP", "SHIPPED"]] = field()
    grade: Attr[Grade] = field()

    primary = Key("THING").sort(grade, number)
    by_status = Index("GSI1", "THING").sort(status, number)


def numbers(*things: Thing) -> list[int]:
    return [each.number for each in things]


def test_an_enum_and_a_literal_can_begin_with_a_text_that_is_none_of_their_values() -> None:
    with isotone.connect() as store:
        store.create_tables(things)
        store.put(Thing(number=1, status="CANCELLED", grade=Grade.HIGH))
        store.put(Thing(number=2, status="CANCELLED_BY_SHOP", grade=Grade.LOW))
        store.put(Thing(number=3, status="SHIPPED", grade=Grade.LOWER))
        cancelled, low = Thing.status.begins_with("CANC"), Thing.grade.begins_with("lo")
        assert numbers(*store.all(Thing.by_status.where(cancelled))) == [1, 2]
        assert numbers(*store.all(Thing.primary.where().filter(cancelled))) == [1, 2]
        assert numbers(*store.all(Thing.primary.where(low))) == [2, 3]
        assert numbers(*store.all(Thing.by_status.where().filter(low))) == [2, 3]
        assert numbers(*store.load(Thing.primary.where()).where(low)) == [2, 3]


@pytest.mark.parametrize("prefix", [3, None, Grade.LOW])
def test_nothing_else_begins(prefix: Any) -> None:
    with pytest.raises(UsageError, match=r"begins_with takes a string or bytes, not .*between"):
        Thing.grade.begins_with(prefix)
