"""The tour in a real Chromium: every chapter by the keyboard, without an error in the console."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.browser.chromium import needs_chromium

pytest.importorskip("playwright.sync_api", reason="there is no Playwright")

from tests.browser.workbench_page import Workbench as Page

import isotone
from isotone.demo import samples
from isotone.demo.tour import CHAPTERS, Tour
from isotone.server import running_server
from isotone.workbench import Workbench

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with isotone.open() as database:
        samples.load(database)
        pages = Workbench(
            database, target=":memory:", tables=samples.tables(), tour=Tour(database).calls
        )
        with running_server(database, pages=pages) as url:
            yield url


@pytest.fixture
def new_page(chrome, url) -> Iterator[Callable[..., Page]]:
    """Opens a page of a width; when the test is over, nothing may have gone wrong on it."""
    opened = []

    def new_page(width: int = 1280, **options: Any) -> Page:
        context = chrome.new_context(viewport={"width": width, "height": 900}, **options)
        opened.append((context, Page(context.new_page(), url)))
        return opened[-1][1]

    yield new_page
    for context, page in opened:
        page.check()
        context.close()


def test_all_chapters_by_the_keyboard(new_page):
    page = new_page()
    page.open()
    page.until("document.querySelector('.tour-hero') !== null")
    for chapter in CHAPTERS:
        page.page.keyboard.press("ArrowRight")
        page.until(f"location.hash === '#/tour/{chapter.name}'")
        # The chapter before stays on the screen until this one is drawn.
        page.until_text(".tour h2", chapter.title)
        page.until("document.querySelectorAll('.drawn.read').length > 0")
        assert page.page.locator(".failure").count() == 0
        if chapter.refuse is not None:
            page.until("document.querySelector('.tour-refused') !== null")
    page.page.keyboard.press("Escape")
    page.until("document.querySelectorAll('.tour-check').length > 0")
    assert page.page.locator(".tour-check").count() == len(CHAPTERS)


def test_parameters_are_in_the_address_and_an_action_is_seen(new_page):
    page = new_page()
    page.open("#/tour/github?relation=stars&newest=3")
    page.until("document.querySelectorAll('.drawn.read').length === 4")
    page.page.locator("select").select_option("forks")
    page.until("location.hash.includes('relation=forks')")
    page.until("document.querySelector('.drawing figcaption').innerText.includes('forks')")
    page.open("#/tour/sparse-by-role")
    page.until("document.querySelectorAll('.drawn.read').length === 2")
    page.page.get_by_role("button", name="Promote a user").click()
    page.until("document.querySelectorAll('.drawn.read').length === 3")


@pytest.mark.parametrize(("width", "theme"), [(320, "light"), (1280, "dark"), (3840, "light")])
def test_the_tour_fits_every_screen_and_reader(new_page, width, theme):
    page = new_page(width, color_scheme=theme)
    for address in ("#/tour", "#/tour/composite-key", "#/tour/filters", "#/tour/leaderboard"):
        page.open(address)
        page.until("document.querySelector('.tour h2') !== null")
        page.settle()
        assert page.page.evaluate(
            "(() => { const tour = document.querySelector('.tour'); return tour.scrollWidth <= tour.clientWidth; })()"
        )
        assert page.serious_faults() == []
