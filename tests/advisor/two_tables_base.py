"""A base of entities in a module of its own."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from isotone import Attr, Entity, Key, field


class Timed(Entity):
    customer: Attr[str] = field()
    at: Attr[datetime] = field()
    status: Attr[Literal["A", "B"]] = field()

    primary = Key("CUSTOMER", customer).sort("ORDER", at, status)  # isotone: ignore[ISO105] few
