"""Runs only when asked to: `ISOTONE_ORACLE=1 pytest tests/oracle`, after `local.py fetch`.

One DynamoDB Local process serves the whole session; the tests leave no table in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.oracle import local
from tests.oracle.sides import Isotone

collect_ignore_glob = [] if os.environ.get("ISOTONE_ORACLE") else ["test_*.py"]


@pytest.fixture(scope="session")
def theirs() -> Iterator[local.Endpoint]:
    if not local.is_here():
        pytest.skip("DynamoDB Local is not here: python tests/oracle/local.py fetch")
    with local.DynamoDBLocal() as server:
        yield server


@pytest.fixture(scope="session")
def ours() -> Iterator[Isotone]:
    with Isotone() as service:
        yield service
