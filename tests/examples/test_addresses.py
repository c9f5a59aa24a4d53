"""Every program of examples/ prints the same on every backend: a file, a server, a cluster, DynamoDB Local."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from tests.examples.conftest import ADDRESSES
from tests.examples.printed import NAMES, Printed

import isotone

Example = Callable[[str], Printed]

# How often each runs there: twice where a second run finds what the first one has left, in one way or another.
RUNS = {"file": 2, "http": 1, "cluster": 1, "dynamodb-local": 2}
ELSEWHERE = [(kind, RUNS[kind]) for kind in ADDRESSES if kind != "memory"]


@pytest.mark.parametrize(("address", "runs"), ELSEWHERE, indirect=["address"], scope="session")
@pytest.mark.parametrize("name", NAMES)
def test_every_address_gives_the_same(
    example: Example, example_there: Example, address: str, runs: int, name: str
) -> None:
    """What it prints; and what it writes is what it declares."""
    expected = example(name).text
    for _ in range(runs):
        assert example_there(name).text == expected
    with isotone.connect(address) as store:
        names = store.backend.execute("ListTables", {})["TableNames"]
        for each in vars(sys.modules[name]).values():
            if isinstance(each, isotone.Table) and each.entities and each.name in names:
                assert store.verify(each).findings == ()
