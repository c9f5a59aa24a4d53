"""Run command lines in this process, on a file with one table."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from isotone.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def isotone(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `isotone` with the given words."""

    def run(*words: object) -> Outcome:
        try:
            code = main([str(word) for word in words])
        except SystemExit as leaving:  # argparse
            code = int(leaving.code or 0)
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def filled_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that each test gets a copy of."""
    file = tmp_path_factory.mktemp("cli") / "shop.db"
    index = "--index=by_status=status,placed_at"
    assert main(["create", str(file), "Orders", "customer", "placed_at", index]) == 0
    for day in range(1, 6):
        item = (
            f'{{"customer": "ann", "placed_at": "2026-01-{day:02}", "total": {day}.50, '
            f'"status": "{("OPEN", "PAID")[day % 2]}"}}'
        )
        assert main(["put", str(file), "Orders", item]) == 0
    return file


@pytest.fixture
def shop(filled_shop: Path, tmp_path: Path) -> Path:
    """A file with a table of orders."""
    return Path(shutil.copy(filled_shop, tmp_path / "shop.db"))
