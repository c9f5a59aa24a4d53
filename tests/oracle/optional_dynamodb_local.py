"""DynamoDB Local for tests of all suites: where `ISOTONE_ORACLE=1` asks for it, and only there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from tests.oracle import local

WANTED: Final = bool(os.environ.get("ISOTONE_ORACLE"))


@contextmanager
def dynamodb_local() -> Iterator[local.DynamoDBLocal]:
    """A process of its own, or a skipped test."""
    if not WANTED:
        pytest.skip("DynamoDB Local runs with ISOTONE_ORACLE=1")
    if not local.is_here():
        pytest.skip("DynamoDB Local is not here: python tests/oracle/local.py fetch")
    with local.DynamoDBLocal() as server:
        yield server
