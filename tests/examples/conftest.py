"""Every example runs at each kind of address. Its output in memory is read as its reader would read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from tests.cluster import Cluster
from tests.examples.printed import Printed, run
from tests.oracle import optional_dynamodb_local

import isotone
from isotone.server import running_server

_RUNS = Counter[str]()
_CLUSTERS: dict[str, Cluster] = {}
"""The clusters of which no server was killed yet, by address."""


ADDRESSES = ["memory", "file", "http", "cluster"]
if optional_dynamodb_local.WANTED:
    ADDRESSES.append("dynamodb-local")


@pytest.fixture(scope="session", params=ADDRESSES)
def address(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Where the example keeps its tables."""
    if request.param == "memory":
        yield ":memory:"
    elif request.param == "file":
        yield str(tmp_path_factory.mktemp("examples") / "examples.db")
    elif request.param == "http":
        with isotone.open() as database, running_server(database) as url:
            yield url
    elif request.param == "cluster":
        with Cluster(tmp_path_factory.mktemp("cluster") / "examples.db") as cluster:
            _CLUSTERS[cluster.url] = cluster
            yield cluster.url
    else:
        with optional_dynamodb_local.dynamodb_local() as server:
            yield server.url


@pytest.fixture(scope="session")
def example() -> Callable[[str], Printed]:
    """Gives what an example prints in memory, where it runs once. At other addresses it prints the same."""
    return cache(lambda name: run(name, ":memory:"))


@pytest.fixture
def example_there(address: str) -> Callable[[str], Printed]:
    """Runs an example at the address; one server of a cluster is killed after the third run."""

    def printed(name: str) -> Printed:
        _RUNS[address] += 1
        if address in _CLUSTERS and _RUNS[address] > 3:
            _CLUSTERS.pop(address).kill(1)  # all that follows runs on the two that are left
        return run(name, address)

    return printed
