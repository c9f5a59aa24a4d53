"""Tables are refused when they are declared, where DynamoDB would refuse to make them."""

from __future__ import annotations

import pytest

from isotone import Global, Table
from isotone.errors import UsageError


@pytest.mark.parametrize("name", ["ab", "a b c", "größe", "", "x" * 256])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(UsageError, match=r"cannot name a table: .* 3 to 255"):
        Table(name)
    with pytest.raises(UsageError, match=r"cannot name an index: .* 3 to 255"):
        Table("shop", indexes={name: Global("a")})


@pytest.mark.parametrize(
    "name", ["abc", "a.b-c_9", "x" * 255, "arn:aws:dynamodb:eu-west-1:123456789012:table/shop"]
)
def test_what_is_a_name(name: str) -> None:
    assert Table(name).name == name


def test_a_part_of_an_index_key_has_four_attributes_at_most() -> None:
    Global(("a", "b", "c", "d"))
    with pytest.raises(UsageError, match="at most 4 attributes, not 5"):
        Global(("a", "b", "c", "d", "e"))


def test_an_unknown_index_is_named_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"no index 'GSI2' \(it has: GSI1\)"):
        Table("shop", indexes={"GSI1": Global("a")}).layout("GSI2")
