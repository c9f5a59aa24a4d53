"""Suppressions of every kind."""

from __future__ import annotations

from datetime import date, datetime

from isotone import Attr, Entity, Key, Table, field

days = Table("suppressed_days")


class Visit(Entity, table=days):
    day: Attr[date] = field()
    at: Attr[datetime] = field()

    primary = Key("DAY", day).sort(at)  # isotone: ignore[ISO202] a hundred visits a day


class Login(Entity, table=days):
    # isotone: ignore[ISO103]
    email: Attr[str] = field()
    user_name: Attr[str] = field()  # isotone: ignore[ISO202] nothing is wrong here
    handle: Attr[str] = field()  # isotone: ignore[ISO999] no such code

    primary = Key("LOGIN", email).sort(user_name, handle)
