"""Wrong declarations."""
# fmt: off

from __future__ import annotations

from isotone import Attr, Entity, Index, Key, Table, desc, field

table = Table("tab", partition="PK", sort="SK")


class Wrong(Entity, table="t"):  # E: expected "Table | None"
    a: Attr[str] = field()
    primary = Key("A", a).sort("B")


class Thing(Entity, table=table):
    a: Attr[str] = field()
    b: Attr[int] = field(maximum=3)  # E: argument "maximum"
    c: Attr[str] = field(case="title")  # E: Literal['title']
    d: Attr[str] = field(precision="hours")  # E: Literal['hours']

    primary = Key("A", a).sort("B", 3)  # E: expected "str | Attr[Any] | Component"
    by_b = Index(a, b)  # E: expected "str"
    by_c = Index("GSI1", "C").sort(desc("c"))  # E: expected "Attr[Any] | Component"


Table("tab", indexes=["GSI1"])  # E: expected "Mapping[str, IndexLayout]"
Table("tab", sort=3)  # E: expected "str | KeyAttribute | None"
