"""When an item expires, it does so at a whole second, which is all that TimeToLive stores."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import isotone
from isotone import Attr, Entity, Global, Index, Key, ManualClock, Table, expires, field
from isotone.errors import AlreadyExists, InvalidEntity, UsageError

web = Table("web", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

ENDS = datetime(2040, 1, 1, 12, 0, 0, 999_999, tzinfo=UTC)


class Session(Entity, table=web):
    token: Attr[str] = field()
    note: Attr[str] = field(default="")
    ends: Attr[datetime | None] = expires(default=None)

    primary = Key("SESSION", token).sort("SESSION")
    by_end = Index("GSI1", "SESSIONS").sort(ends, note)


class Ticket(Entity, table=web):
    number: Attr[int] = field(max=9)
    ends: Attr[datetime] = expires()

    primary = Key("TICKET", number).sort("TICKET")


def test_keys_made_of_an_expiry_are_the_same_before_and_after_it_is_read() -> None:
    clock = ManualClock(datetime(2039, 1, 1, tzinfo=UTC))
    with isotone.connect(clock=clock) as store:
        store.create_tables(web)
        put = store.put(Session(token="a", ends=ENDS))
        assert put == store.get(Session, token="a")
        store.update(Session, Session.note.set("read"), token="a")
        (read,) = store.all(Session.by_end.where(Session.ends == put.ends))
        assert (read.ends, read.note) == (ENDS.replace(microsecond=0), "read")
        later = datetime(2041, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
        moved = store.update(Session, Session.ends.set(later), token="a")
        assert store.all(Session.by_end.where(Session.ends >= moved.ends)) == [moved]


def test_an_expiry_that_is_not_optional_is_wanted() -> None:
    with pytest.raises(InvalidEntity, match="Ticket: ends is missing"):
        Ticket(number=1)  # type: ignore[call-arg]
    assert Session(token="a").ends is None


def test_tables_of_one_base_expire_by_one_attribute() -> None:
    class Kept(Entity):
        name: Attr[str] = field()
        until: Attr[datetime] = expires()

        primary = Key("KEPT", name).sort("KEPT")

    class Here(Kept, table=Table("here", ttl="until_then")): ...

    class There(Kept, table=Table("there", ttl="until_then")): ...

    with pytest.raises(UsageError, match=r"declare Table\(ttl='until_then'\)"):

        class Elsewhere(Kept, table=Table("elsewhere")): ...


class Invitation(Entity, table=web):
    code: Attr[str] = field()
    note: Attr[str] = field(default="")
    ends: Attr[datetime | None] = expires(default=ENDS)

    primary = Key("INVITATION", code).sort("INVITATION")


def test_null_in_the_place_of_an_expiry_is_none() -> None:
    with isotone.connect(clock=ManualClock(datetime(2039, 1, 1, tzinfo=UTC))) as store:
        store.create_tables(web)
        store.put(
            Invitation(code="a", ends=None)
        )  # written as NULL, because absence is the default
        assert store.update(Invitation, Invitation.note.set("x"), code="a").note == "x"
        assert store.upsert(Invitation, Invitation.note.set("y"), code="a").note == "y"
        assert store.replace(Invitation(code="a", ends=None, note="z")).note == "z"
        with pytest.raises(AlreadyExists):
            store.create(Invitation(code="a", ends=None))


def test_an_optional_expiry_may_be_left_out_even_without_a_default() -> None:
    class Note(Entity, table=Table("notes")):
        name: Attr[str] = field()
        until: Attr[datetime | None] = expires()

        primary = Key("NOTE", name).sort("NOTE")

    note = Note(name="a")  # type: ignore[call-arg] # checkers know a default from the declaration alone
    assert note.until is None
