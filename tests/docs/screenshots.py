"""Takes the screenshots of the workbench that the pages show, from the demo: `python -m tests.docs.screenshots [NAME…]`.

Needs Chromium and Pillow. Look at each picture before you commit it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import boto3
from playwright.sync_api import Page
from tests.browser.workbench_page import Workbench, browser

FOLDER: Final = Path(__file__).parents[2] / "docs" / "pictures"

_taken: Final[dict[str, tuple[int, int, str, Callable[[Workbench, Any], None]]]] = {}


def screenshot(
    width: int, height: int, scheme: str = "light"
) -> Callable[[Callable[[Workbench, Any], None]], None]:
    """Declare a screenshot that is named like its function, which brings the page there."""

    def declare(shown: Callable[[Workbench, Any], None]) -> None:
        _taken[shown.__name__.replace("_", "-")] = width, height, scheme, shown

    return declare


def address(table: str, view: str = "items", **query: Any) -> str:
    """The address of a view. Keys and conditions are written as JSON."""
    given = {
        name: each if isinstance(each, str) else json.dumps(each, separators=(",", ":"))
        for name, each in query.items()
    }
    return f"#/t/{table}/{view}?{urlencode(given)}"


REPOSITORY: Final = ["S:REPO#octo#hello"]


@screenshot(1360, 720)
def workbench_range(bench: Workbench, client: Any) -> None:
    bench.open(address("github", pk=REPOSITORY, sk=["begins_with", "S:ISSUE#0014"]))
    bench.wait_for_items(3)
    bench.page.locator(".row.item:not(.outside)").nth(1).click()


@screenshot(1480, 800, "dark")
def workbench_sparse_index(bench: Workbench, client: Any) -> None:
    bench.open(address("subscriptions", beside="admins"))
    bench.wait_for_items(10)


@screenshot(1360, 720)
def workbench_explain(bench: Workbench, client: Any) -> None:
    condition = [["status", "=", json.dumps({"S": "PLACED"})]]
    bench.open(address("orders", pk=["S:CUSTOMER#2b5a41c0"], filter=condition))
    bench.settle()
    bench.page.get_by_role("button", name="Explain", exact=True).click()
    bench.page.locator("dialog .figures, dialog").first.wait_for()


@screenshot(1180, 800)
def workbench_form(bench: Workbench, client: Any) -> None:
    bench.open(address("github", pk=REPOSITORY, sk=["begins_with", "S:ISSUE#0014"]))
    bench.wait_for_items(3)
    bench.page.locator(".row.item:not(.outside)").nth(1).click()
    bench.page.locator(".inspector").get_by_role("button", name="Edit").click()
    form = bench.page.locator("form.entity, .inspector form").first
    form.get_by_label("title").fill("Speed up the lexer")
    form.get_by_label("number").fill("200000")


@screenshot(1360, 720)
def workbench_snapshots(bench: Workbench, client: Any) -> None:
    bench.open(address("github", "snapshots"))
    bench.page.get_by_text("No snapshot yet").wait_for()
    bench.page.keyboard.press("n")
    bench.page.keyboard.type("before the migration")
    bench.page.keyboard.press("Enter")
    bench.page.locator(".snapshot strong").wait_for()
    change(client)
    bench.page.keyboard.press("Enter")
    bench.until("document.querySelectorAll('.difference').length > 5")
    bench.page.locator(".difference").nth(2).click()


@screenshot(1280, 900)
def tour(bench: Workbench, client: Any) -> None:
    bench.open("#/tour/sparse-by-kind")
    bench.until("document.querySelectorAll('.drawn.read').length > 0")


@screenshot(1400, 760)
def workbench_simulation(bench: Workbench, client: Any) -> None:
    bench.open("#/simulation")
    bench.page.wait_for_selector(".simulation .charts")


@screenshot(1440, 1300)
def workbench_metrics(bench: Workbench, client: Any) -> None:
    bench.open("#/metrics")
    for _ in range(3):
        bench.page.get_by_role("button", name="Send sample requests").click()
        bench.page.wait_for_timeout(4000)


def change(client: Any) -> None:
    """What happens to the repositories between a snapshot and now."""
    partition = {"PK": {"S": "REPO#octo#hello"}}
    numbers = (28, 41, 49, 69, 140)
    for number in numbers:
        client.update_item(
            TableName="github",
            Key={**partition, "SK": {"S": f"ISSUE#{number:05}"}},
            UpdateExpression="SET closed_at = :day, labels = :labels",
            ExpressionAttributeValues={
                ":day": {"S": "2026-11-22"},
                ":labels": {"SS": ["bug", "good first issue"]},
            },
        )
    client.delete_item(TableName="github", Key={**partition, "SK": {"S": "STAR#joe"}})
    client.put_item(
        TableName="github", Item={**partition, "SK": {"S": "STAR#zoe"}, "user": {"S": "zoe"}}
    )


@contextmanager
def served() -> Iterator[tuple[str, Any]]:
    """The demo, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        demo = subprocess.Popen(
            [sys.executable, "-m", "isotone", "demo", "--no-open"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
        assert demo.stdout is not None
        try:
            line = next(each for each in demo.stdout if "http://" in each)
            url = "http://" + line.partition("http://")[2].split("/")[0].split()[0]
            keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
            yield url, boto3.client("dynamodb", endpoint_url=url, region_name="us-east-1", **keys)
        finally:
            demo.terminate()
            demo.wait()


def take(page: Page, name: str, client: Any, url: str, shown: Callable[..., Any]) -> None:
    """Take a screenshot when its notices are gone, and store it in few colours, which takes a third of the bytes."""
    from PIL import Image

    bench = Workbench(page, url)
    shown(bench, client)
    bench.settle()
    bench.until("document.querySelector('.notices').childElementCount === 0")
    page.wait_for_timeout(500)
    file = FOLDER / f"{name}.png"
    page.screenshot(path=file)
    with Image.open(file) as picture:
        few = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
        few.save(file, optimize=True)
    print(f"{file.name}: {file.stat().st_size // 1024} KB")


def main(names: list[str]) -> None:
    with served() as (url, client), browser() as chrome:
        for name in names or list(_taken):
            width, height, scheme, shown = _taken[name]
            context = chrome.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            take(context.new_page(), name, client, url, shown)
            context.close()


if __name__ == "__main__":
    main(sys.argv[1:])
