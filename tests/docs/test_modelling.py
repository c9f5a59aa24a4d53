"""The pages on entities have all names of the modelling library: public ones, options, methods."""

from __future__ import annotations

import inspect
import re

import pytest
from tests.docs.pages import page

import isotone
from isotone import Query, Scan, Store

ON_ENTITIES = ("modelling", "fields", "reading", "writing", "store", "adopting", "vectors")
TEXT = "\n".join(page(f"docs/{name}.md").text for name in ON_ENTITIES)
SPANS = re.findall(r"`[^`]+`|^```\w*\n.*?^```$", TEXT, re.M | re.S)
OF_THE_MODEL = sorted(
    name
    for name in isotone.__all__
    if isotone._HOMES.get(name, "").startswith(("isotone.model.", "isotone.codec."))
)


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def methods(kind: type) -> set[str]:
    return {name for name in public(kind) if inspect.isfunction(getattr(kind, name))}


def is_mentioned(name: str) -> bool:
    """Whether the name stands in code, inline or in a block."""
    return any(re.search(rf"\b{name}\b", span) for span in SPANS)


def test_every_public_name_of_the_model_is_there() -> None:
    assert [name for name in OF_THE_MODEL if not is_mentioned(name)] == []


@pytest.mark.parametrize("option", sorted(inspect.signature(isotone.field).parameters))
def test_every_option_of_a_field_is_there(option: str) -> None:
    assert f"`{option}`" in page("docs/fields.md").section("Options of `field()`")


# Of the machinery of stores, and `close`, for which the pages use `with`.
UNMENTIONED = {"run", "run_batches", "close"}


def test_every_method_of_a_store_is_there() -> None:
    names = methods(Store) - UNMENTIONED
    assert sorted(name for name in names if f"store.{name}(" not in TEXT) == []


def test_every_method_of_a_query_is_there() -> None:
    names = methods(Query) | methods(Scan)
    assert sorted(name for name in names if f"`.{name}(" not in TEXT) == []


@pytest.mark.parametrize("member", sorted(public(isotone.Stats)))
def test_what_is_counted_is_there(member: str) -> None:
    assert member in ("exhausted", "is_wasteful") or f"`{member}`" in TEXT


INTERNAL = {
    "bind",
    "declare_order",
    "check_order_at",
    "place",
    "wire_at",
    "encode",
    "encode_at",
    "named",
    "path",
    "wire",
    "attribute",
    "name",
}


@pytest.mark.parametrize("member", sorted(methods(isotone.Attr) - INTERNAL))
def test_every_condition_and_change_is_there(member: str) -> None:
    assert f".{member}(" in TEXT
