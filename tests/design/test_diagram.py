"""The diagram of a model: everything that is declared is in it, in well-formed XML, the same every time."""

from __future__ import annotations

import importlib.util
from datetime import datetime
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from tests.design import models

from isotone import Attr, Entity, Global, Index, Key, Table, desc, field, lint
from isotone.design import diagram_of
from isotone.errors import UsageError

EXAMPLES = sorted(Path(__file__).parents[2].joinpath("examples").rglob("*.py"))
SVG = "{http://www.w3.org/2000/svg}"


def module_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"diagram_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tables_of(module: ModuleType) -> list[Table]:
    found = {each.name: each for each in vars(module).values() if isinstance(each, Table)}
    return [table for table in found.values() if table.entities]


def texts(svg: str) -> list[str]:
    """The texts that are drawn."""
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]


MODELLED = {
    path.relative_to(path.parents[1]).as_posix(): tables
    for path in EXAMPLES
    if (tables := tables_of(module_of(path)))
}


@pytest.mark.parametrize("example", [*MODELLED, "models"])
def test_all_that_an_example_declares_is_drawn(example: str) -> None:
    tables = tables_of(models) if example == "models" else MODELLED[example]
    diagram = diagram_of(*tables)
    svg = diagram.svg()
    assert svg == diagram_of(*tables).svg()
    shown = texts(svg)
    joined = "\n".join(shown)
    for table in tables:
        assert any(text.startswith(table.name) for text in shown)
        assert all(any(text.startswith(index) for text in shown) for index in table.indexes)
        for schema in table.entities.values():
            assert schema.entity.__name__ in shown
            for key in schema.keys.values():
                if schema.base is None or key.name not in schema.base.keys:
                    assert any(text.split(", ")[0] == key.name for text in shown)
                for slot in key.slots:
                    assert any(slot.attribute.name in text.split(" · ") for text in shown)
                for component in key.components:
                    assert component.field.name in shown  # beside its type
        # The components of sort keys are in the form of the key.
        sorts = {
            component.field.name
            for schema in table.entities.values()
            for key in schema.keys.values()
            for slot in key.sort
            for component in slot.components
        }
        assert all(f"{{{name}}}" in joined for name in sorts)


shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK", projection=("total",))})


class Customer(Entity, table=shop):
    customer_id: Attr[str] = field()

    primary = Key("CUSTOMER", customer_id).sort("CUSTOMER")


class Order(Entity, table=shop):
    owner: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    total: Attr[str | None] = field(default=None)
    placed_at: Attr[datetime] = field()

    primary = Customer.primary.children(owner).after("ORDER", desc(number))
    newest = Index("GSI1", "ORDERS").sort(placed_at)


def test_entities_with_the_same_partition_share_a_collection() -> None:
    (table,) = diagram_of(shop).tables
    items, index = table.places
    (collection,) = items.collections
    assert [(key.entity, key.pattern) for key in collection.keys] == [
        ("Customer", "primary"),
        ("Order", "primary"),
    ]
    assert collection.keys[1].notes == ("number descending",)
    assert [each.entities for each in index.collections] == [["Order"]]
    assert index.about == "global index, with total"
    shown = texts(diagram_of(shop).svg())
    assert shown.count("2 entities share it") == 1
    assert "CUSTOMER#{customer_id}" in shown
    assert "ORDER#{number}" in shown
    assert [each.about for each in table.entities] == ["", "belongs to Customer"]
    assert [each.marks for each in table.entities[1].fields] == [
        ("key",),
        ("key",),
        ("optional",),
        (),
    ]


def test_some_entities_of_a_table() -> None:
    (table,) = diagram_of(Order).tables
    assert [each.name for each in table.entities] == ["Order"]
    assert [each.entities for each in table.places[0].collections] == [["Order"]]
    with pytest.raises(UsageError, match="neither a table nor an entity"):
        diagram_of(int)  # type: ignore[arg-type]


def test_findings_are_beside_what_they_are_about() -> None:
    logs = Table("logs")

    class Line(Entity, table=logs):
        file: Attr[str] = field()
        line_number: Attr[str] = field()

        primary = Key("FILE", file).sort("LINE", line_number)

    report = lint(logs)
    (finding,) = (each for each in report.findings if each.code == "ISO101")
    assert finding.place.name.endswith("Line.line_number")
    (table,) = diagram_of(logs, findings=report.findings).tables
    by_name = {each.name: each for each in table.entities[0].fields}
    assert "ISO101" in by_name["line_number"].findings
    assert by_name["file"].findings == ()
    assert any(
        text.startswith("⚠ ISO101") for text in texts(diagram_of(logs, findings=[finding]).svg())
    )
    assert "⚠" not in diagram_of(logs).svg()


def test_names_are_escaped_and_a_title_is_kept() -> None:
    svg = diagram_of(shop).svg('<"Shop" & Co>')
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == '<"Shop" & Co>'
    title, described = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert title.text == '<"Shop" & Co>'
    assert described is not None
    assert "Order.newest {placed_at}" in (described.text or "")


def test_an_index_that_no_entity_uses() -> None:
    idle = Table("idle", indexes={"GSI1": Global("GSI1PK")})

    class Thing(Entity, table=idle):
        name: Attr[str] = field()
        primary = Key("THING", name).sort("THING")

    assert "no entity has a key in it" in texts(diagram_of(idle).svg())
