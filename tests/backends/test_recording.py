from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from isotone.backends.interface import InThread, Tape
from isotone.backends.recording import AsyncRecorder, Player, Recorder, TapeWriter
from isotone.errors import (
    ConditionalCheckFailedException,
    InProgress,
    StorageError,
    UsageError,
)


def record(path: Path, answers: list[Any], requests: list[dict[str, Any]]) -> list[Any]:
    writer = TapeWriter(path)
    recorder = Recorder(Tape(answers), writer)
    found = [_answer(recorder, request) for request in requests]
    writer.close()
    return found


def _answer(backend: Any, request: dict[str, Any]) -> Any:
    try:
        return backend.execute("GetItem", request)
    except ConditionalCheckFailedException as error:
        return error.code, error.message, error.members, error.status


def test_a_tape_answers_as_the_engine_did(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "orders.jsonl"
    refused = ConditionalCheckFailedException("no", Item={"a": {"S": "é"}})
    asked = [{"k": 1}, {"k": 2}, {"k": 1}]
    recorded = record(path, [{"n": 1}, refused, {"n": 3}], asked)
    player = Player(path)
    assert [_answer(player, request) for request in asked] == recorded
    assert player.unused == 0


def test_different_requests_may_come_in_another_order(tmp_path: Path) -> None:
    path = tmp_path / "tape"
    record(path, [{"n": 1}, {"n": 2}, {"n": 3}], [{"k": 1}, {"k": 2}, {"k": 1}])
    player = Player(path)
    assert [_answer(player, {"k": k})["n"] for k in (2, 1, 1)] == [2, 1, 3]


def test_the_order_of_members_and_tokens_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "tape"
    record(path, [{"n": 1}], [{"a": 1, "b": 2, "ClientRequestToken": "x"}])
    assert _answer(Player(path), {"ClientRequestToken": "y", "b": 2, "a": 1}) == {"n": 1}


def test_a_request_that_is_not_on_the_tape(tmp_path: Path) -> None:
    path = tmp_path / "tape"
    record(path, [{"n": 1}], [{"k": 1}])
    player = Player(path)
    with pytest.raises(
        UsageError, match=r'no answer left for GetItem \{"k":2\}; .* delete the tape'
    ):
        player.execute("GetItem", {"k": 2})
    assert player.unused == 1


def test_a_file_that_is_no_tape(tmp_path: Path) -> None:
    for content in (b"", b'{"other": 1}\n', b"SQLite format 3\0", b'{"isotone tape": 1}\n{"oper'):
        (tmp_path / "tape").write_bytes(content)
        with pytest.raises(UsageError, match="is not a tape of Isotone's"):
            Player(tmp_path / "tape")


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "7",
        "{}",
        '{"operation": "GetItem"}',
        '{"operation": "GetItem", "request": {}}',
        '{"operation": "GetItem", "request": [], "response": {}}',
        '{"operation": "GetItem", "request": {}, "error": {}}',
    ],
)
def test_a_line_that_is_no_call(tmp_path: Path, line: str) -> None:
    path = tmp_path / "tape.jsonl"
    path.write_text(f'{{"isotone tape": 1}}\n{line}\n')
    with pytest.raises(UsageError, match=r"line 2 of the tape .*tape\.jsonl is no call"):
        Player(path)


def test_a_tape_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "tape"
    writer = TapeWriter(path)
    Recorder(Tape([{"n": 1}]), writer).execute("GetItem", {"k": 1})
    assert not path.exists()
    writer.close()
    writer.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0] == {"isotone tape": 1}
    assert lines[1] == {"operation": "GetItem", "request": {"k": 1}, "response": {"n": 1}}
    assert list(tmp_path.iterdir()) == [path]


def test_a_tape_is_written_by_one_program_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "tape"
    writer = TapeWriter(path)
    with pytest.raises(InProgress, match=r"is writing .*tape\.part: wait"):
        TapeWriter(path)
    _answer(Recorder(Tape([{"n": 1}]), writer), {"k": 1})
    writer.close()
    assert _answer(Player(path), {"k": 1}) == {"n": 1}


def test_awaited_answers_are_recorded_as_well(tmp_path: Path) -> None:
    path = tmp_path / "tape"
    writer = TapeWriter(path)
    refused = ConditionalCheckFailedException("no")
    recorder = AsyncRecorder(InThread(Tape([{"n": 1}, refused])), writer)

    async def ask() -> None:
        assert await recorder.execute("GetItem", {"k": 1}) == {"n": 1}
        with pytest.raises(ConditionalCheckFailedException):
            await recorder.execute("GetItem", {"k": 2})

    asyncio.run(ask())
    writer.close()
    player = Player(path)
    assert _answer(player, {"k": 1}) == {"n": 1}
    assert _answer(player, {"k": 2})[:2] == ("ConditionalCheckFailedException", "no")


@pytest.mark.skipif(os.name == "nt", reason="Windows does not delete an open file")
def test_a_tape_whose_draft_is_taken_away_is_none(tmp_path: Path) -> None:
    tape, draft = TapeWriter(tmp_path / "tape"), tmp_path / "tape.part"
    tape.answered("GetItem", {"k": 1}, {})
    draft.unlink()
    draft.write_text("something else")
    with pytest.raises(StorageError, match=r"tape\.part was deleted, replaced or changed"):
        tape.close()
    assert not (tmp_path / "tape").exists()
