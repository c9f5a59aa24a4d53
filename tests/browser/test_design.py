"""The design of a model in a real Chromium: read, sized, saved as files, and followed while its module is edited."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.browser.chromium import needs_chromium
from tests.cli.test_seeding import MODULE

pytestmark = needs_chromium
pytest.importorskip("playwright")

from tests.browser.workbench_page import Workbench as Page  # noqa: E402

import isotone  # noqa: E402
from isotone.cli.design_page import LiveDesign  # noqa: E402
from isotone.cli.design_process import DesignedModule  # noqa: E402
from isotone.cli.workbench import PagesAlone  # noqa: E402
from isotone.demo import samples  # noqa: E402
from isotone.demo.tour import Tour  # noqa: E402
from isotone.design import SheetRequest  # noqa: E402
from isotone.server import running_server  # noqa: E402
from isotone.workbench import Workbench  # noqa: E402

SHEET = "document.querySelector('.sheet[aria-busy=false]')"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of the sample tables, with their designs."""
    with isotone.open() as database:
        samples.load(database)
        pages = Workbench(
            database,
            target=":memory:",
            tables=samples.tables(),
            tour=Tour(database).calls,
            design=samples.design(),
        )
        with running_server(database, pages=pages) as url:
            yield url


@pytest.fixture
def open_page(chrome: Any) -> Iterator[Callable[..., Page]]:
    """Opens a page of a width; when the test is over, nothing may have gone wrong on it."""
    opened: list[Page] = []

    def open_page(url: str, address: str = "", width: int = 1440, **options: Any) -> Page:
        context = chrome.new_context(viewport={"width": width, "height": 900}, **options)
        opened.append(Page(context.new_page(), url))
        opened[-1].open(address)
        return opened[-1]

    yield open_page
    for page in opened:
        page.check()
        page.page.context.close()


@contextlib.contextmanager
def live() -> Iterator[str]:
    """The address of the module `shop`."""
    module = DesignedModule("shop", SheetRequest())
    with contextlib.closing(LiveDesign(module, lambda _: None)) as pages:
        pages.start()
        with running_server(PagesAlone(), pages=pages) as url:
            yield url


def drawn(page: Page, place: int = 0) -> list[str]:
    """The texts of a picture."""
    script = """(place) => [...document.querySelectorAll('.python-svg')[place].shadowRoot.querySelectorAll('text')]
        .map((each) => each.textContent)"""
    found: list[str] = page.page.evaluate(script, place)
    return found


def saved(page: Page, button: str) -> tuple[str, str]:
    """The name and the text of the file that a button downloads."""
    with page.page.expect_download() as downloading:
        page.page.get_by_role("button", name=button).click()
    file = downloading.value
    return file.suggested_filename, Path(file.path()).read_text(encoding="utf-8")


def test_the_designs_of_the_tour_are_a_view(open_page, url):
    page = open_page(url, "#/tour")
    page.page.get_by_role("link", name="Design", exact=True).click()
    page.until(f"{SHEET} !== null")
    assert {"Repository", "PullRequest", "3 entities share it"} <= set(drawn(page))
    assert any(text.startswith("numbers") for text in drawn(page))
    page.page.locator("select").select_option("shop")
    page.until("location.hash.includes('part=shop')")
    page.until("document.querySelector('.design header h2').innerText === 'shop'")
    page.until(f"{SHEET}?.innerText.includes('Purchase.put')")
    assert {"Customer", "Purchase", "Product", "Review"} <= set(drawn(page))
    assert page.page.locator(".drawings figure").count() >= 1
    page.page.get_by_role("link", name="All items of shop").click()
    page.wait_for_items()


def test_a_size_is_changed_and_the_sheet_follows(open_page, url):
    page = open_page(url, "#/design?part=github")
    page.until(f"{SHEET} !== null")
    before = page.page.locator(".summary").inner_text()
    page.page.get_by_label("Repository in all").fill("2k")
    page.page.keyboard.press("Enter")
    page.until("document.querySelector('.summary').innerText.includes('2,000 Repository')")
    assert page.page.locator(".summary").inner_text() != before
    assert "HOT" not in page.page.locator(".sheet").inner_text()
    rate = page.page.get_by_label("Calls a second of Issue.put")
    rate.fill("2M")
    rate.press("Enter")
    page.until("document.querySelectorAll('tr.hot .hot-mark').length === 1")
    page.page.get_by_label("reads of each pattern").fill("often")
    page.page.keyboard.press("Enter")
    page.until(
        "document.querySelector('.design .failure')?.innerText.includes(\"'often' is not a number\")"
    )
    page.page.get_by_label("reads of each pattern").fill("3")
    page.page.keyboard.press("Enter")
    page.until("document.querySelector('.design .failure') === null")
    # All of it is in the address.
    page.page.reload()
    page.until("document.querySelectorAll('tr.hot .hot-mark').length === 1")
    assert page.page.get_by_label("Repository in all").input_value() == "2k"
    page.page.go_back()
    page.until("!location.hash.includes('reads=3')")


def test_the_diagram_and_the_sheet_are_saved_as_files(open_page, url):
    page = open_page(url, "#/design?part=github")
    page.until(f"{SHEET} !== null")
    name, svg = saved(page, "Download SVG")
    assert name == "github.svg"
    root = ElementTree.fromstring(svg)
    assert "prefers-color-scheme:dark" in "".join(
        root.itertext()
    )  # by itself it follows the reader
    name, text = saved(page, "Download CSV")
    assert name == "github-patterns.csv"
    rows = list(csv.DictReader(io.StringIO(text)))
    heads = """() => [...document.querySelectorAll('.sheet tbody th')].map((each) => each.firstChild.textContent)"""
    assert [row["pattern"] for row in rows] == page.page.evaluate(heads)
    name, text = saved(page, "Download Markdown")
    assert name == "github-patterns.md"
    assert text.startswith("| pattern |")


def test_a_saved_module_is_followed(open_page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = tmp_path / "shop.py"
    module.write_text(MODULE)
    with live() as url:
        page = open_page(url)
        page.until("location.hash === '#/design'")
        page.until(f"{SHEET} !== null")
        assert {"Customer", "Order"} <= set(drawn(page))
        page.page.get_by_label("Customer in all").fill("30")
        page.page.keyboard.press("Enter")
        page.until("document.querySelector('.summary').innerText.includes('30 Customer')")
        module.write_text(MODULE.replace("Order", "Purchase"))
        page.until(f"{SHEET}?.innerText.includes('Purchase.put')")
        assert {"Customer", "Purchase"} <= set(drawn(page))
        assert "30 Customer" in page.page.locator(".summary").inner_text()
        module.write_text(MODULE + "\nclass (\n")
        page.until("document.querySelector('.fault') !== null")
        line = MODULE.count("\n") + 2
        fault = page.page.locator(".fault").inner_text()
        assert f"shop.py:{line}" in fault
        assert "SyntaxError" in fault
        assert "class (" in fault
        assert {"Customer", "Purchase"} <= set(drawn(page))
        assert page.serious_faults() == []
        page.page.get_by_role("link", name="All items of shop").click()
        page.wait_for_items()
        assert page.page.locator(".fault").count() == 1  # on every view
        module.write_text(MODULE.replace("Customer", "Client"))
        page.until("document.querySelector('.fault') === null")
        page.until(
            "[...document.querySelectorAll('.row .entity')].some((each) => each.innerText === 'Client')"
        )


def test_a_module_that_is_broken_at_first(open_page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = tmp_path / "shop.py"
    module.write_text("import nothing_like_this\n")
    with live() as url:
        page = open_page(url)
        page.until("document.querySelector('.fault')?.innerText.includes('shop.py:1')")
        page.until("document.querySelector('.empty h2')?.innerText === 'shop cannot be loaded yet'")
        module.write_text(MODULE)
        page.until(f"{SHEET} !== null")
        assert {"Customer", "Order"} <= set(drawn(page))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_the_design_fits_every_screen_and_reader(open_page, url, width, theme):
    page = open_page(url, "#/design?part=github", width, color_scheme=theme)
    page.until(f"{SHEET} !== null")
    assert page.serious_faults() == []
    assert page.page.evaluate(
        "(() => { const all = document.querySelector('.document'); return all.scrollWidth <= all.clientWidth; })()"
    )
    # Every text of the pictures lies in its picture, and in the box that is drawn around it.
    cut = page.page.evaluate(
        """() => [...document.querySelectorAll('.python-svg')].flatMap((each) => {
            const svg = each.shadowRoot.querySelector('svg'), edge = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text')].filter((text) => {
                const at = text.getBoundingClientRect();
                const boxes = [...text.closest('g')?.querySelectorAll('rect.group') ?? []].map((box) => box.getBoundingClientRect());
                const around = boxes.filter((box) => box.left <= at.left && at.left < box.right && box.top <= at.top && at.bottom <= box.bottom);
                return at.right > edge.right || at.bottom > edge.bottom || around.some((box) => at.right > box.right);
            }).map((text) => text.textContent);
        })"""
    )
    assert cut == []
    # A theme that the reader chooses changes the pictures, too.
    colour = "getComputedStyle(document.querySelector('.python-svg').shadowRoot.querySelector('text')).fill"
    before = page.page.evaluate(colour)
    page.page.keyboard.press("t")
    page.until(f"{colour} !== {before!r}")
