"""Items become entities within Azure's limits, and come back exactly."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import Any

import msgspec
import pytest
from azure.data.tables._deserialize import _convert_to_entity
from azure.data.tables._serialize import _add_entity_properties
from hypothesis import given
from hypothesis import strategies as st

from isotone.backends.azure_table.entities import EntityLayout, entity_size
from isotone.errors import InvalidItem, ValidationException
from isotone.values.attribute_validation import canonical_item

LAYOUT = EntityLayout("shop", (("pk", "S"), ("sk", "N")))

scalars = st.one_of(
    st.text(max_size=20).map(lambda text: {"S": text}),
    st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: {"N": str(number)}),
    st.builds(
        lambda digits, places: {"N": f"{digits}e{places}"},
        st.integers(-(10**17), 10**17),
        st.integers(-100, 100),
    ),
    st.floats(-1e100, 1e100, allow_subnormal=False)
    .filter(lambda number: number == 0 or abs(number) > 1e-100)
    .map(lambda number: {"N": repr(number)}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.just({"NULL": True}),
    st.binary(max_size=9).map(lambda raw: {"B": b64encode(raw).decode()}),
    st.lists(st.text(min_size=1), min_size=1, unique=True).map(lambda texts: {"SS": texts}),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda elements: {"L": elements})
        | st.dictionaries(st.text(min_size=1, max_size=9), inner, max_size=3).map(
            lambda members: {"M": members}
        )
    ),
    max_leaves=6,
)
names = st.text(min_size=1, max_size=9) | st.sampled_from(
    [
        "title",
        "_v",
        "RowKey",
        "timestamp",
        "IsotoneJson",
        "IsotoneJson2",
        "IsotoneJsonX",
        "a-b",
        "é",
    ]
)
items = st.dictionaries(names, values, max_size=8).map(
    lambda attributes: canonical_item({**attributes, "pk": {"S": "USER#1"}, "sk": {"N": "-1.5"}})[0]
)


def through_the_sdk(entity: dict[str, Any]) -> Any:
    """An entity as the SDK sends it, and as it reads the same JSON."""
    assert all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) for name in entity)
    return _convert_to_entity(json.loads(json.dumps(_add_entity_properties(entity))))


@given(items)
def test_an_item_comes_back_exactly(item):
    assert LAYOUT.item(through_the_sdk(LAYOUT.entity(item))) == item


def test_what_azure_shows():
    item = {
        "pk": {"S": "USER#1"},
        "sk": {"N": "12"},
        "title": {"S": "Grüße"},
        "likes": {"N": "3"},
        "price": {"N": "12.5"},
        "exact": {"N": "0.12345678901234567"},
        "open": {"BOOL": True},
        "raw": {"B": "AP8="},
        "tags": {"SS": ["a"]},
    }
    entity = LAYOUT.entity(item)
    rest = msgspec.json.decode(entity.pop("IsotoneJson"))
    assert rest == {"exact": item["exact"], "tags": item["tags"]}
    assert entity == {
        "PartitionKey": "USER$h1",
        "RowKey": "p502.12",
        "title": "Grüße",
        "likes": (3, "Edm.Int64"),
        "price": 12.5,
        "open": True,
        "raw": b"\x00\xff",
    }


def test_many_and_large_attributes_share_a_few_properties():
    item = {f"a{at}": {"N": str(at)} for at in range(1000)}
    item |= {"pk": {"S": "x"}, "sk": {"N": "1"}, "text": {"S": "中\U0001f600" * 40_000}}
    entity = LAYOUT.entity(item)
    assert len(entity) <= 252 + 2
    assert (
        max(len(value.encode("utf-16-le")) for value in entity.values() if isinstance(value, str))
        <= 65_536
    )
    assert LAYOUT.item(entity) == item


def test_an_item_that_is_too_large_for_azure_is_refused():
    item = {"pk": {"S": "x"}, "sk": {"N": "1"}, "m": {"L": [{"N": "1"}] * 60_000}}
    with pytest.raises(
        ValidationException, match=r"an item of table 'shop' has 1,\d+,\d+ bytes in Azure"
    ):
        LAYOUT.entity(item)


def test_a_key_that_is_too_long_for_azure_is_refused():
    with pytest.raises(
        ValidationException, match="'pk' of table 'shop' has 600 characters in Azure"
    ):
        LAYOUT.keys_of({"pk": {"S": "x" * 600}, "sk": {"N": "1"}})


def test_an_entity_of_another_program_is_refused_with_its_key():
    with pytest.raises(InvalidItem, match="RowKey 'x#'"):
        LAYOUT.item({"PartitionKey": "a", "RowKey": "x#"})


def test_the_size_of_an_entity_is_that_of_azures_formula():
    entity = {
        "PartitionKey": "ab",
        "RowKey": "c",
        "name": "xyz",
        "n": (1, "Edm.Int64"),
        "b": True,
        "raw": b"1",
    }
    assert entity_size(entity) == 4 + 6 + (8 + 8 + 6 + 4) + (8 + 2 + 8) + (8 + 2 + 1) + (8 + 6 + 5)
