"""Two tables, comments above declarations, and keys that a base class declares."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from tests.advisor.two_tables_base import Timed

from isotone import Attr, Entity, EntityKey, Key, Table, field

open_orders = Table("two_open", stream="NEW_IMAGE")  # isotone: ignore[ISO501] copied elsewhere
closed_orders = Table("two_closed")
Given = EntityKey[Any]


def checked(entity: type[Any]) -> type[Any]:
    return entity


class OpenOrder(Timed, table=open_orders):
    pass


class ClosedOrder(Entity, table=closed_orders):
    customer: Attr[str] = field()
    at: Attr[datetime] = field()
    status: Attr[Literal["A", "B"]] = field()

    # isotone: ignore[ISO105] always read whole
    # Orders are few.

    primary = Key("CUSTOMER", customer).sort("ORDER", at, status)


# isotone: ignore[ISO103] as the old program wrote them
@checked
class Login(Entity, table=closed_orders):
    email: Attr[str] = field()

    primary = Key("LOGIN", email).sort("LOGIN")


late = ClosedOrder.primary.where(ClosedOrder.customer == "a").filter(ClosedOrder.status == "A")
