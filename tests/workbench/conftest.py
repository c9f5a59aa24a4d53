from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.workbench.page import Browserless
from tests.workbench.sample_tables import load

import isotone
from isotone.server import running_server
from isotone.workbench import Workbench


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    with isotone.open() as database:
        load(database)
        yield database


@pytest.fixture
def page(database: isotone.Database) -> Iterator[Browserless]:
    """The workbench of the sample tables."""
    pages = Workbench(database, target=":memory:")
    with running_server(database, pages=pages) as url:
        yield Browserless(url)
