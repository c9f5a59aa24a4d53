"""What mypy says of the cases, of the examples and of the Python of the pages: one run for all.

Optional values are taken in pages as if they were there: a page asserts what it has just written.
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
from typing import NamedTuple

from tests.docs.pages import PAGES, ROOT, Block, Page

CASES = sorted((Path(__file__).parent / "cases").glob("*.py"))
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))

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

# Each section declares its classes again. It is checked by itself, after the first block of the page.
IN_SECTIONS = {"docs/design/structures.md", "docs/migrating.md"}

_FOUND = re.compile(r"^(?P<path>.+?):(?P<line>\d+): error: (?P<message>.*)$", re.MULTILINE)


class Finding(NamedTuple):
    """One error that mypy reports."""

    path: Path
    line: int
    message: str


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


def check(folder: Path) -> list[Finding]:
    """Write the pages' modules into a folder, and check them with the cases and the examples."""
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
        [sys.executable, "-m", "mypy", *options, "pages", *map(str, [*CASES, *EXAMPLES])],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return [
        Finding((folder / error["path"]).resolve(), int(error["line"]), error["message"])
        for error in _FOUND.finditer(run.stdout)
    ]
