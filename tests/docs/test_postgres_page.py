"""The commands and the program of docs/postgres.md, on a server that the test starts."""

from __future__ import annotations

import doctest

from tests.docs.pages import PAGES
from tests.docs.test_examples import run, sessions, tidy
from tests.postgres_server import needs_postgres, shared

ADDRESS = "postgresql://shop@db.internal/app?schema=shop"


@needs_postgres
def test_the_page_runs() -> None:
    (page,) = (page for page in PAGES if page.name == "docs/postgres.md")
    address = shared().new_address()
    checker = doctest.OutputChecker()
    blocks = list(page.blocks("console"))
    assert blocks
    for block in blocks:
        for command, shown in sessions(block.text):
            code, printed = run(command.replace(ADDRESS, address))
            printed = tidy(printed.replace(address, ADDRESS))
            assert checker.check_output(tidy(shown), printed, doctest.ELLIPSIS), printed
            assert code == 0, command
    for block in page.blocks("python"):
        exec(compile(block.text.replace(ADDRESS, address), str(page.path), "exec"), {})
