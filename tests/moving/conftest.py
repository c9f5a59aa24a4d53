"""DynamoDB Local, and states of copies that are kept with the test's files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.oracle import optional_dynamodb_local


@pytest.fixture(autouse=True)
def _states_of_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="session")
def dynamodb_local() -> Iterator[str]:
    """The address of Amazon's own DynamoDB Local."""
    with optional_dynamodb_local.dynamodb_local() as server:
        yield server.url


@pytest.fixture
def frequent_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs report after each chunk, which is small, so that a test can stop them there however fast the machine is."""
    monkeypatch.setattr("isotone.tables.jobs.TICK", 0.0001)
    monkeypatch.setattr("isotone.moving.exporting._ITEMS_A_PAGE", 200)
    monkeypatch.setattr("isotone.moving.importing._ROWS", 200)
