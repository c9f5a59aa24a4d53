"""What the page says before an entity's item is written without its model."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from isotone import Attr, Entity, Global, Index, Key, Table, field
from isotone.model import computed, updated, version
from isotone.workbench import raw_edits

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Order(Entity, table=shop):
    """Fields that are in keys, one that is unique, one that is computed."""

    customer: Attr[str] = field()
    number: Attr[int] = field(max=9_999)
    status: Attr[Literal["OPEN", "PAID"]] = field()
    note: Attr[str] = field(default="")
    invoice: Attr[str] = field(unique=True)
    version: Attr[int] = version()
    changed: Attr[datetime] = updated()
    label: Attr[str] = computed(lambda order: f"{order.customer} {order.number}")
    primary = Key("CUSTOMER", customer).sort("ORDER", number)
    unpaid = Index("GSI1", "STATUS", status, when=status == "OPEN").sort("NUMBER", number)


class Plain(Entity, table=Table("plain", partition="device", sort="at")):
    """Keys that are the fields themselves."""

    device: Attr[str] = field()
    at: Attr[str] = field()
    primary = Key(device).sort(at)


def test_each_attribute_says_what_its_edit_breaks() -> None:
    said = raw_edits.described(Order.__schema__)
    attributes = said["attributes"]
    assert attributes.keys() == {"customer", "number", "status", "invoice", "GSI1PK", "GSI1SK"}
    of_table, of_index = attributes["number"]
    assert "the table" in of_table
    assert "“PK” and “SK” keep their values" in of_table
    assert "index GSI1" in of_index
    assert "“GSI1PK” and “GSI1SK” keep their values" in of_index
    assert "from “status” and “number”" in attributes["GSI1PK"][0]
    assert "stays reserved" in attributes["invoice"][0]
    assert [each.split()[0] for each in said["always"]] == ["“version”", "“changed”", "“label”"]
    assert "“invoice”" in said["deleted"][0]


def test_nothing_is_said_where_nothing_breaks() -> None:
    assert raw_edits.described(Plain.__schema__) == {"attributes": {}, "always": [], "deleted": []}
