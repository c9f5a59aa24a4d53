"""Runs only when asked to: `ISOTONE_ORACLE=1 pytest tests/oracle`, after `local.py fetch`.

One DynamoDB Local process serves the whole session; the tests leave no table in it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.oracle import local, optional_dynamodb_local
from tests.oracle.endpoints import Isotone

collect_ignore_glob = [] if optional_dynamodb_local.WANTED else ["test_*.py"]


@pytest.fixture(scope="session")
def theirs() -> Iterator[local.Endpoint]:
    with optional_dynamodb_local.dynamodb_local() as server:
        yield server


@pytest.fixture(scope="session")
def ours() -> Iterator[Isotone]:
    with Isotone() as service:
        yield service
