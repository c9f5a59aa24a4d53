from __future__ import annotations

import asyncio

import pytest

import isotone
from isotone.backends.interface import Backend, InThread, Tape
from isotone.errors import ResourceNotFoundException, UsageError


def test_a_tape_plays_its_answers_in_order() -> None:
    tape: Backend = Tape([{"TableNames": []}, ResourceNotFoundException("gone")])
    assert tape.execute("ListTables", {}) == {"TableNames": []}
    with pytest.raises(ResourceNotFoundException, match="gone"):
        tape.execute("DescribeTable", {"TableName": "t"})
    with pytest.raises(UsageError, match="no answer left for Scan, call 3"):
        tape.execute("Scan", {})


def test_a_backend_can_be_awaited() -> None:
    tape = Tape([{"TableNames": ["t"]}])
    assert asyncio.run(InThread(tape).execute("ListTables", {"Limit": 1})) == {"TableNames": ["t"]}
    assert tape.asked == [("ListTables", {"Limit": 1})]


def test_a_database_in_the_process_is_a_backend() -> None:
    with isotone.open() as database:
        backend: Backend = database
        assert backend.execute("ListTables", {"Limit": 1}) == {"TableNames": []}
        with pytest.raises(ResourceNotFoundException):
            backend.execute("DescribeTable", {"TableName": "music"})
