"""Draws the pictures of the pages, from the pages' own code: `python -m tests.docs.pictures`.

A comment above an image says what to draw. It is evaluated after the Python blocks above it:

    <!-- picture: tickets.svg = isotone.draw(store, Ticket) -->
    ![The tickets of a team](pictures/tickets.svg)

Time stands still meanwhile, and random numbers are always the same, so a picture changes only with what it shows.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import re
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from itertools import count
from typing import Any, NamedTuple
from unittest import mock

from tests.docs.pages import PAGES, ROOT, Block, Page

import isotone
import isotone.design  # some pages draw diagrams
from isotone.codec import ids

FOLDER = ROOT / "docs" / "pictures"
NOW = 1_772_355_600.0  # 2026-03-01, 9 o'clock
_MARK = re.compile(
    r"^<!-- picture: (?P<name>[\w-]+\.svg) = (?P<code>.+?) -->\n!\[(?P<title>[^\]]+)\]\((?P<path>[^)]+)\)$",
    re.MULTILINE | re.DOTALL,
)


class Mark(NamedTuple):
    """A picture that a page asks for."""

    name: str
    code: str
    title: str
    path: str
    line: int


def marks(page: Page) -> list[Mark]:
    """The pictures of a page, in order."""
    return [
        Mark(
            each["name"],
            each["code"],
            each["title"],
            each["path"],
            page.text.count("\n", 0, each.start()) + 1,
        )
        for each in _MARK.finditer(page.text)
    ]


ILLUSTRATED = [page for page in PAGES if marks(page)]


def pictures(page: Page) -> dict[str, str]:
    """The pictures of a page by name: runs the blocks of the page up to the last of them."""
    wanted = marks(page)
    steps: list[Block | Mark] = sorted(
        [*_blocks(page, wanted[-1].line), *wanted], key=lambda step: step.line
    )
    namespace: dict[str, Any] = {"__name__": "__main__"}
    drawn: dict[str, str] = {}
    with _fixed_surroundings():
        for step in steps:
            if isinstance(step, Mark):
                drawing = eval(step.code, {**namespace, "isotone": isotone})
                drawn[step.name] = drawing.svg(step.title)
            else:
                text = "\n" * (step.line - 1) + step.text
                exec(compile(text, str(page.path), "exec"), namespace)
    return drawn


def _blocks(page: Page, last: int) -> list[Block]:
    blocks = [block for block in page.blocks("python") if block.line < last]
    return [block for block in blocks if not block.text.startswith("# test_")]


@contextmanager
def _fixed_surroundings() -> Iterator[None]:
    """A folder of its own, one moment, and the same random numbers every time."""
    state, numbers = random.getstate(), count()
    last = {sequence: sequence._number for sequence in ids._SEQUENCES}  # which never goes back
    for sequence in last:
        sequence._number = -1

    own, urandom = threading.get_ident(), os.urandom

    def bytes_of(size: int) -> bytes:
        if threading.get_ident() != own:  # of a database that another test has opened
            return urandom(size)
        text = b"".join(
            hashlib.sha256(str(next(numbers)).encode()).digest() for _ in range(size // 32 + 1)
        )
        return text[:size]

    random.seed(1)
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        mock.patch.object(os, "urandom", bytes_of),
        mock.patch.object(random, "_urandom", bytes_of),
        mock.patch.object(isotone.SystemClock, "now", return_value=NOW),
        warnings.catch_warnings(),
        redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            random.setstate(state)
            for sequence, number in last.items():
                sequence._number = number


def main() -> None:
    """Write all pictures, and remove those that no page shows."""
    FOLDER.mkdir(exist_ok=True)
    drawn = {name: text for page in ILLUSTRATED for name, text in pictures(page).items()}
    for name, text in drawn.items():
        FOLDER.joinpath(name).write_text(text, encoding="utf-8")
    for file in FOLDER.glob("*.svg"):
        if file.name not in drawn:
            file.unlink()


if __name__ == "__main__":
    main()
