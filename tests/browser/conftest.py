"""One Chromium for all tests of a module, started once in each worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    """The browser. Each test opens a context of its own, with its own storage.

    It ends with the last test of the module: while Playwright runs, its thread can run no other event loop.
    """
    from tests.browser.workbench_page import browser

    with browser() as started:
        yield started
