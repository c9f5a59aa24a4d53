"""One Chromium for all tests of the folder, started once in each worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="package")
def chrome() -> Iterator[Any]:
    """The browser. Each test opens a context of its own, with its own storage.

    It ends with the last test of the folder: while Playwright runs, its thread can run no other event loop.
    """
    from tests.browser.workbench_page import browser

    with browser() as started:
        yield started
