"""Every example runs once at each kind of address, and its output is read as its reader would read it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from tests.cluster import Cluster
from tests.examples.printed import Printed, run
from tests.oracle import local

import isotone
from isotone.server import running_server

MEMORY = ":memory:"
_CLUSTERS: dict[str, Cluster] = {}
"""The clusters of which no server was killed yet, by address."""


ADDRESSES = ["memory", "file", "http", "cluster"]
if os.environ.get("ISOTONE_ORACLE"):
    ADDRESSES.append("dynamodb-local")


@pytest.fixture(scope="session", params=ADDRESSES)
def address(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Where the example keeps its tables."""
    if request.param == "memory":
        yield MEMORY
    elif request.param == "file":
        yield str(tmp_path_factory.mktemp("examples") / "examples.db")
    elif request.param == "http":
        with isotone.open(MEMORY) as database, running_server(database) as url:
            yield url
    elif request.param == "cluster":
        with Cluster(tmp_path_factory.mktemp("cluster") / "examples.db") as cluster:
            _CLUSTERS[cluster.url] = cluster
            yield cluster.url
    else:
        if not local.is_here():
            pytest.skip("DynamoDB Local is not here: python tests/oracle/local.py fetch")
        with local.DynamoDBLocal() as server:
            yield server.url


@pytest.fixture(scope="session")
def outputs() -> dict[tuple[str, str], Printed]:
    """What was printed, by example and address."""
    return {}


@pytest.fixture
def example(address: str, outputs: dict[tuple[str, str], Printed]) -> Callable[[str], Printed]:
    """Gives what an example prints at the address; it runs there once."""

    def printed(name: str) -> Printed:
        if (name, address) not in outputs:
            done = sum(at == address for _, at in outputs)
            if address in _CLUSTERS and done == 3:
                _CLUSTERS.pop(address).kill(1)  # all that follows runs on the two that are left
            outputs[name, address] = run(name, address)
        return outputs[name, address]

    return printed
