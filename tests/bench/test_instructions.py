"""The requests whose instructions are counted are answered; valgrind is not needed to see that."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import instructions
from isotone.operations.long_requests import this_thread


@pytest.mark.parametrize("name", instructions.PATHS)
def test_each_path_answers_its_requests(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_FOLDER", str(tmp_path))
    # A path is for a process of its own: it changes these two.
    monkeypatch.setattr("isotone.operations.served_queries.BUSY", 1000.0)
    monkeypatch.setattr(this_thread, "raises_if_long", False)
    call = instructions.PATHS[name]()
    for _ in range(3):
        call()
