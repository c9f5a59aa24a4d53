"""`isotone put @FILE`: what is written after a failure is told by line and number, and a further run goes on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

from isotone.backends import embedded


def lines_of(count: int, wrong: dict[int, str]) -> str:
    """Items, one a line, numbered from 1; some lines are wrong."""
    good = (json.dumps({"customer": "bob", "placed_at": f"{n:04}"}) for n in range(1, count + 1))
    return "".join(wrong.get(n, line) + "\n" for n, line in enumerate(good, 1))


def stored(isotone: Run, shop: Path) -> list[str]:
    told = isotone("query", shop, "Orders", "customer=bob", "--all", "--format", "jsonl").out
    return [json.loads(line)["placed_at"] for line in told.splitlines()]


def test_a_line_that_is_no_item_is_found_before_anything_is_written(
    isotone: Run, shop: Path, tmp_path: Path
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(lines_of(60, {40: '{"customer": '}))
    outcome = isotone("put", shop, "Orders", f"@{file}")
    assert outcome.code == 1
    assert outcome.err.startswith("isotone: line 40: ")
    assert outcome.err.endswith("nothing was written\n")
    assert stored(isotone, shop) == []


def test_an_item_that_is_refused_is_reported_by_its_line_and_the_next_run_continues(
    isotone: Run, shop: Path, tmp_path: Path
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(lines_of(60, {40: '{"customer": "bob"}'}))
    outcome = isotone("put", shop, "Orders", f"@{file}")
    assert outcome.code == 1
    assert "line or item 40 of the input; the 39 items before it are written" in outcome.err
    assert outcome.err.endswith("continue with --resume 40\n")
    assert stored(isotone, shop) == [f"{n:04}" for n in range(1, 40)]
    file.write_text(lines_of(60, {1: '{"customer": "bob"}'}))
    again = isotone("put", shop, "Orders", f"@{file}", "--resume", 40)
    assert (again.code, again.out) == (0, "21 items written to Orders\n")
    assert stored(isotone, shop) == [f"{n:04}" for n in range(1, 61)]


def test_items_of_an_array_are_counted(isotone: Run, shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "in.json"
    file.write_text("[" + ",".join(lines_of(30, {28: "[1]"}).splitlines()) + "]")
    assert "item 28: " in isotone("put", shop, "Orders", f"@{file}").err
    file.write_text("[" + ",".join(lines_of(30, {1: '{"placed_at": "x"}'}).splitlines()) + "]")
    assert "nothing is written" in isotone("put", shop, "Orders", f"@{file}").err
    assert isotone("put", shop, "Orders", f"@{file}", "--resume", 2).code == 0
    assert len(stored(isotone, shop)) == 29


def test_the_later_of_two_items_with_one_key_is_kept(
    isotone: Run, shop: Path, tmp_path: Path
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(
        "".join(f'{{"customer": "bob", "placed_at": "1", "n": {n}}}\n' for n in range(3))
    )
    assert isotone("put", shop, "Orders", f"@{file}").code == 0
    assert '"n": 2' in isotone("get", shop, "Orders", "bob", "1", "--line").out


def test_ctrl_c_says_what_is_written(
    isotone: Run, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(lines_of(60, {}))
    execute = embedded.Database.execute

    def interrupted(
        self: embedded.Database, operation: str, request: Any, deadline: float | None = None
    ) -> object:
        if operation == "BatchWriteItem" and stored_by(self) == 25:
            raise KeyboardInterrupt
        return execute(self, operation, request, deadline)

    def stored_by(database: embedded.Database) -> int:
        return database.client().scan(TableName="Orders", Select="COUNT")["Count"] - 5

    monkeypatch.setattr(embedded.Database, "execute", interrupted)
    assert isotone("put", shop, "Orders", f"@{file}") == (
        130,
        "",
        "isotone: interrupted; it stopped at line or item 26 of the input; "
        "the 25 items before it are written; continue with --resume 26\n",
    )


def test_a_table_that_processes_nothing_ends_the_command(
    isotone: Run, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(lines_of(30, {}))
    execute = embedded.Database.execute
    attempts: list[int] = []

    def busy(
        self: embedded.Database, operation: str, request: Any, deadline: float | None = None
    ) -> object:
        if operation != "BatchWriteItem":
            return execute(self, operation, request, deadline)
        attempts.append(len(request["RequestItems"]["Orders"]))
        assert len(attempts) < 50, "the batch is sent for ever"
        return {"UnprocessedItems": request["RequestItems"]}

    pauses: list[float] = []
    monkeypatch.setattr(embedded.Database, "execute", busy)
    monkeypatch.setattr("isotone.tables.runners.time.sleep", pauses.append)
    outcome = isotone("put", shop, "Orders", f"@{file}")
    assert outcome.code == 1
    assert "25 of 25 entries of a batch are not written" in outcome.err
    assert outcome.err.endswith("nothing is written; continue with --resume 1\n")
    assert len(attempts) == len(pauses) + 1


@pytest.mark.parametrize("line", [0, -3, 4])
def test_a_line_that_is_not_there_cannot_be_resumed(
    isotone: Run, shop: Path, tmp_path: Path, line: int
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(lines_of(3, {}))
    assert isotone("put", shop, "Orders", f"@{file}", "--resume", line) == (
        1,
        "",
        f"isotone: --resume {line} is not a line or an item of the input: 1 to 3\n",
    )
