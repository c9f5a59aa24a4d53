"""Histories of random requests, valid and wrong, get the same answers; `ISOTONE_FUZZ` is how many requests."""

from __future__ import annotations

import os
import random
from typing import Any

from tests.oracle.endpoints import Answer, Isotone
from tests.oracle.fuzz import QUICK, Placed, differs, look_of, player, run, shrunk
from tests.oracle.local import Endpoint
from tests.oracle.requests import Drawn
from tests.oracle.scripts import n, s


def test_random_histories(theirs: Endpoint) -> None:
    start = random.randrange(2**32) if "ISOTONE_FUZZ" in os.environ else 1
    report = run(int(os.environ.get("ISOTONE_FUZZ", QUICK)), start, theirs)
    assert not report.times, f"seed {start}: {report}"
    assert report.accepted > sum(report.asked.values()) / 4


class Forgetful(Isotone):
    """A side with a defect: it executes no DeleteItem."""

    def ask(self, operation: str, request: dict[str, Any] | bytes) -> Answer:
        return (200, {}) if operation == "DeleteItem" else super().ask(operation, request)


def test_a_difference_is_found_and_shrunk() -> None:
    key = {"p": s("b"), "s": n(2)}
    history = [
        Drawn("ListTables", {}, 0),
        Drawn("PutItem", {"TableName": "tab", "Item": {**key, "a": s("x")}}, 0),
        Drawn("Scan", {"TableName": "tab"}, 0),
        Drawn("DeleteItem", {"TableName": "tab", "Key": key}, 0),
        Drawn("ListTables", {}, 0),
        Drawn("GetItem", {"TableName": "tab", "Key": key, "ConsistentRead": True}, 0),
    ]
    with Isotone() as right, Forgetful() as wrong:
        theirs, ours = Placed(right), Placed(wrong)
        play = player(theirs, ours)
        found = play(history)
        assert found is not None
        short = shrunk(history, look_of(found), play)
        assert [drawn.action for drawn in short] == ["PutItem", "DeleteItem", "GetItem"]
        assert short[-1].request == {"TableName": "tab", "Key": key}
        assert play([history[-1]]) is None
        assert differs(theirs, theirs, history[1]) is None
