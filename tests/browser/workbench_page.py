"""The workbench in a real Chromium: a page that fails the test for every error in its console."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.browser.chromium import NO_PAGES_OF_ITS_OWN, chromium

import isotone
from isotone import Store, Table
from isotone.server import running_server
from isotone.workbench import Workbench as Pages

AXE = Path(__file__).parents[2] / "workbench/node_modules/axe-core/axe.min.js"

WAIT_SECONDS = 60
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", NO_PAGES_OF_ITS_OWN)


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=[*_ARGUMENTS])
        try:
            yield started
        finally:
            started.close()


class Workbench:
    """A page of the workbench, and what it did."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.errors: list[str] = []
        self.asked: set[str] = set()
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.asked.add("/".join(request.url.split("/")[:3])))
        page.set_default_timeout(WAIT_SECONDS * 1000)

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.errors.append(text)

    def open(self, address: str = "") -> None:
        self.page.goto(f"{self.url}/workbench/{address}")

    @property
    def rows(self) -> Any:
        return self.page.locator(".pane").first.locator(".row.item")

    def items(self) -> list[str]:
        """The sort keys that are drawn, from the top."""
        script = """() => [...document.querySelectorAll(".pane:first-child .row.item")]
            .map((row) => [row.getBoundingClientRect().top, row.querySelector(".sort-cell").innerText])
            .sort((one, other) => one[0] - other[0]).map((each) => each[1])"""
        found: list[str] = self.page.evaluate(script)
        return found

    def wait_for_items(self, count: int = 1) -> None:
        self.until(f"document.querySelectorAll('.row.item:not(.outside)').length >= {count}")

    def until(self, condition: str) -> None:
        """Wait for a condition in JavaScript. Playwright's own wait evaluates it in the page, whose policy forbids it."""
        end = time.monotonic() + WAIT_SECONDS
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, f"this never was so: {condition}"
            self.page.wait_for_timeout(20)

    def until_text(self, selector: str, text: str) -> None:
        """Wait until the first element of a selector says this, and nothing else."""
        self.until(f"document.querySelector({selector!r})?.innerText === {json.dumps(text)}")

    def press(self, button: str) -> None:
        self.page.get_by_role("button", name=button, exact=True).click()

    def form(self, name: str) -> Any:
        found = self.page.get_by_role("form", name=name)
        found.wait_for()
        return found

    def said(self, text: str) -> None:
        """Wait until the line at the bottom says this."""
        self.page.locator(".notice").filter(has_text=text).wait_for()

    def add_filter(self, attribute: str, value: str) -> None:
        """Add a filter to the query that stands in the form, which is not sent yet."""
        self.press("+ Filter")
        self.page.get_by_label("Attribute", exact=True).last.fill(attribute)
        self.page.get_by_label("Value", exact=True).last.fill(value)

    def settle(self) -> None:
        """Wait until nothing is being read, and all is drawn."""
        self.page.wait_for_load_state("networkidle")

    def serious_faults(self) -> list[str]:
        """What axe-core finds, of serious or critical impact."""
        if not AXE.exists():
            pytest.skip("axe-core is not installed: run `npm ci` in workbench")
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        results = self.page.evaluate("axe.run(document)")
        return [
            f"{each['id']}: {node['target']} {node['failureSummary']}"
            for each in results["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]

    def check(self) -> None:
        """Nothing went wrong, and nothing but the own server was asked."""
        assert not self.errors, "\n".join(self.errors)
        assert self.asked <= {self.url}


@contextlib.contextmanager
def windows(
    chrome: Any, store: Store, tables: Sequence[Table], address: str, *, height: int = 900
) -> Iterator[Callable[..., Workbench]]:
    """Open views of a model's tables, each in a window of its own; in the end, nothing may have gone wrong in any."""
    pages = Pages(store.backend, target=":memory:", tables=list(tables))
    opened: list[tuple[Any, Workbench]] = []

    def open_view(address: str = address, width: int = 1440, **more: Any) -> Workbench:
        context = chrome.new_context(viewport={"width": width, "height": height}, **more)
        bench = Workbench(context.new_page(), url)
        opened.append((context, bench))
        bench.open(address)
        return bench

    with isotone.open() as nothing, running_server(nothing, pages=pages) as url:
        yield open_view
        for context, bench in opened:
            bench.check()
            context.close()
