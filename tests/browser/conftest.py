"""One Chromium for all tests of a module, started once in each worker; and the workbench of the sample tables in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.workbench.sample_tables import load

import isotone
from isotone.server import running_server
from isotone.workbench import Workbench as Pages

if TYPE_CHECKING:
    from tests.browser.workbench_page import Workbench


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    """The browser. Each test opens a context of its own, with its own storage.

    It ends with the last test of the module: while Playwright runs, its thread can run no other event loop.
    """
    from tests.browser.workbench_page import browser

    with browser() as started:
        yield started


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    """The sample tables."""
    with isotone.open() as database:
        load(database)
        yield database


@pytest.fixture
def url(database: isotone.Database) -> Iterator[str]:
    """The address of their server."""
    with running_server(database, pages=Pages(database, target=":memory:")) as url:
        yield url


@pytest.fixture
def bench(chrome: Any, url: str) -> Iterator[Workbench]:
    """Their workbench; when the test is over, nothing may have gone wrong on it."""
    from tests.browser.workbench_page import Workbench

    context = chrome.new_context(viewport={"width": 1440, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    bench = Workbench(context.new_page(), url)
    yield bench
    bench.check()
    context.close()
