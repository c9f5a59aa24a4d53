"""The Python of the pages is well typed, but for what they show to be refused.

Optional values are taken as if they were there: a page asserts what it has just written.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from bisect import bisect
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, Block, Page

# Strict for the library, so that `test_typing` and this share what mypy keeps of it.
CONFIGURATION = """
[mypy]
strict = True

[mypy-pages.*]
strict_optional = False
strict_equality = False
disallow_untyped_defs = False
disallow_incomplete_defs = False
disallow_untyped_calls = False

[mypy-boto3.*,botocore.*,aioboto3.*]
ignore_missing_imports = True
"""

# What a page writes wrongly, to show what is said.
SHOWN = {
    ("docs/tutorial.md", '"nmae"'),
    ("docs/testing.md", "botocore"),
    ("docs/cookbook.md", '"tenant"'),
}

# Each section declares its classes again. It is checked by itself, after the first block of the page.
IN_SECTIONS = {"docs/migrating.md"}

_FOUND = re.compile(r"^pages/(?P<file>[^:]+):(?P<line>\d+): error: (?P<message>.*)$", re.MULTILINE)


def code_of(blocks: Iterable[Block]) -> str:
    """The Python of blocks on the lines where it stands."""
    lines: list[str] = []
    for block in blocks:
        if not block.text.startswith("# test_"):
            lines += [""] * (block.line - 1 - len(lines))
            lines += block.text.splitlines()
    return "\n".join(lines) + "\n"


def modules_of(page: Page) -> dict[str, str]:
    """The modules that a page is checked as, by the names of their files."""
    name = re.sub(r"\W", "_", page.name.removesuffix(".md"))
    blocks = list(page.blocks("python"))
    if page.name not in IN_SECTIONS:
        return {f"{name}.py": code_of(blocks)}
    first, *others = blocks
    headings = [
        number for number, line in enumerate(page.text.splitlines(), 1) if line[:3] == "## "
    ]
    sections = groupby(others, key=lambda block: bisect(headings, block.line))
    return {f"{name}_{number}.py": code_of([first, *section]) for number, section in sections}


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[int, str]]]:
    """What mypy says of each page's module, by line."""
    folder: Path = tmp_path_factory.mktemp("pages")
    (folder / "mypy.ini").write_text(CONFIGURATION, encoding="utf-8")
    package = folder / "pages"
    package.mkdir()
    (package / "__init__.py").touch()
    for page in PAGES:
        for name, code in modules_of(page).items():
            (package / name).write_text(code, encoding="utf-8")
    cache = ROOT / ".mypy_cache" / "typing"
    options = ["--config-file=mypy.ini", "--no-error-summary", f"--cache-dir={cache}"]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "pages"],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found: dict[str, list[tuple[int, str]]] = {}
    for error in _FOUND.finditer(run.stdout):
        found.setdefault(error["file"], []).append((int(error["line"]), error["message"]))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_well_typed(page: Page, faults: dict[str, list[tuple[int, str]]]) -> None:
    wrong = [
        f"{page.name}:{line}: {message}"
        for module in modules_of(page)
        for line, message in faults.get(module, [])
        if not any(page.name == name and words in message for name, words in SHOWN)
    ]
    assert not wrong, "\n".join(wrong)
