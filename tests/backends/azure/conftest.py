"""An emulator for the tests of one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.backends.azure import azurite

from isotone.backends.azure_table import AzureTable


@pytest.fixture(scope="session")
def azure_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    reason = azurite.missing()
    if reason is not None:
        pytest.skip(reason)
    with azurite.serve(Path(tmp_path_factory.mktemp("azurite"))) as address:
        yield address


@pytest.fixture
def azure(azure_address: str) -> Iterator[AzureTable]:
    with AzureTable(azure_address) as backend:
        yield backend
