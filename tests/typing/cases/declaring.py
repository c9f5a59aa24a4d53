"""Wrong declarations."""
# fmt: off

from __future__ import annotations

from isotone import (
    Attr,
    Entity,
    Index,
    Key,
    Table,
    VectorIndex,
    desc,
    field,
    raw,
    since_epoch,
    vector,
    written,
)

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
    by_d = Key("A", a, separator=1)  # E: expected "str"
    by_e = Index("GSI1", "A", separator="_").sort(a, separator=2)  # E: expected "str | None"
    by_f = Key("A", raw("a"))  # E: expected "Attr[Any] | Component"
    by_i = Key("A", written(a))  # E: Missing positional argument "pattern"
    by_g = Key("A", since_epoch(a, "hours"))  # E: Literal['seconds', 'milliseconds', 'microseconds']
    by_h = Key("A", since_epoch(a, digits="10"))  # E: expected "int | None"
    by_j = VectorIndex("a")  # E: expected "Attr[Any]"
    by_k = VectorIndex(a, metric="l2")  # E: Literal['cosine', 'euclidean', 'dot_product']
    by_l = VectorIndex(a, partition="b")  # E: expected "Attr[Any] | None"
    by_m = vector("384")  # E: expected "int"


Table("tab", indexes=["GSI1"])  # E: expected "Mapping[str, IndexLayout]"
Table("tab", sort=3)  # E: expected "str | KeyAttribute | None"
