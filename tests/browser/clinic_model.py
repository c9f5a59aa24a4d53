"""Animals of a clinic with their visits and vaccinations, for the tests of what its staff do in the workbench."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from isotone import Attr, Entity, Global, Index, Key, Table, field, updated, version

clinic = Table(
    "clinic", indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "GSI2": Global("GSI2PK", "GSI2SK")}
)


class Animal(Entity, table=clinic):
    chip: Attr[str] = field()
    name: Attr[str] = field()
    phone: Attr[str] = field(unique=True)
    weights: Attr[list[Decimal]] = field(default_factory=list)
    contact: Attr[dict[str, str]] = field(default_factory=dict)
    revision: Attr[int] = version()

    primary = Key("ANIMAL", chip).sort("ANIMAL")


class Visit(Entity, table=clinic):
    chip: Attr[str] = field()
    starts_at: Attr[datetime] = field(precision="seconds")
    vet: Attr[str] = field()
    status: Attr[Literal["BOOKED", "WAITING", "TREATED"]] = field(default="BOOKED")
    reason: Attr[str] = field()
    fee: Attr[Decimal] = field(default=Decimal(0), min=0)
    ended_at: Attr[datetime | None] = field(default=None)
    changed_at: Attr[datetime] = updated()

    primary = Animal.primary.children(chip).after("VISIT", starts_at)
    by_vet = Index("GSI1", "VET", vet).sort("VISIT", starts_at)
    by_status = Index("GSI2", "STATUS", status).sort(starts_at)


class Vaccination(Entity, table=clinic):
    chip: Attr[str] = field()
    given_on: Attr[date] = field()
    vaccine: Attr[str] = field()

    primary = Animal.primary.children(chip).before("VACCINATION", given_on)
