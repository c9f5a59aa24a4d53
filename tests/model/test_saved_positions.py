"""Positions of walks that earlier versions have saved are continued: the literals are theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest

import isotone
from isotone import Attr, Entity, Key, Store, Table, Verification, field
from isotone.model.walking import Walk
from isotone.tables.steps import Call, Steps
from isotone.values.types import Item

notes = Table("notes")


class Note(Entity, table=notes):
    group: Attr[str] = field()
    number: Attr[int] = field(max=9_999, alert=None)
    text: Attr[str] = field(default="")
    primary = Key("GROUP", group).sort("NOTE", number)


@pytest.fixture
def store() -> Store:
    """The table that was walked over: 40 notes in 7 groups, read in two segments.

    One that was met has been deleted since: a walk that begins again counts 39.
    """
    store = isotone.connect(":memory:", check_keys=False)
    store.create_tables(notes)
    store.put_many(
        Note(group=str(number % 7), number=number) for number in range(40) if number != 1
    )
    return store


POSITION = """{"table": "notes", "segments": [
{"after": {"PK": {"S": "GROUP#4"}, "SK": {"S": "NOTE#0039"}}, "is_over": false},
{"after": {"PK": {"S": "GROUP#3"}, "SK": {"S": "NOTE#0003"}}, "is_over": false}],
"seen": 24, "units": 4.0}"""
LEFT = sorted(number for number in range(40) if number % 7 in (0, 3, 5) and number != 3)
"""The groups 1, 2, 4 and 6, and the first note of group 3, were read before."""

VERIFICATION = """{"findings":[],"seen":{"Note":24},"items":24,"units":4.0,"is_complete":false,"position":
{"tables":[{"table":"notes","entities":null,"walk":{"table":"notes","segments":
[{"after":{"PK":{"S":"GROUP#4"},"SK":{"S":"NOTE#0039"}},"is_over":false},
{"after":{"PK":{"S":"GROUP#3"},"SK":{"S":"NOTE#0003"}},"is_over":false}],"seen":24,"units":4.0},
"is_over":false}]},"progress":null}"""

REWRITING = (
    '{"of":[{"primary":{"PK":"GROUP#{group: Text}","SK":"NOTE#{number: Natural width=4}"}},1,null],'
    '"walk":{"table":"notes","segments":[{"after":{"PK":{"S":"GROUP#4"},"SK":{"S":"NOTE#0039"}},"is_over":false},'
    '{"after":{"PK":{"S":"GROUP#3"},"SK":{"S":"NOTE#0003"}},"is_over":false}],"seen":24,"units":4.0},'
    '"counts":{"seen":24,"rewritten":0,"conflicts":0,"invalid":0},"kinds":{}}'
)


def test_a_walk_is_continued(store: Store) -> None:
    met: list[int] = []

    def visit(items: list[Item]) -> Steps[None]:
        met.extend(int(item["number"]["N"]) for item in items)
        return
        yield Call("", {})

    walk = Walk(notes, position=json.loads(POSITION))
    assert walk.position == json.loads(POSITION)
    while not walk.is_over:
        store.run(walk.step(visit))
    assert sorted(met) == LEFT
    assert walk.progress.seen == 40
    assert walk.progress.units > 4.0
    over: dict[str, Any] = {"after": None, "is_over": True}
    units = walk.progress.units
    ended = {"table": "notes", "segments": [over, over], "seen": 40, "units": units}
    assert walk.position == ended


def test_a_verification_is_continued(store: Store) -> None:
    found = store.verify(notes, resume=Verification.from_json(VERIFICATION))
    assert found.is_complete
    assert found.items == 40
    assert found.seen == {"Note": 40}
    assert found.is_clean


def test_a_rewrite_is_continued(store: Store) -> None:
    record = {
        "PK": {"S": "_rewriting#Note"},
        "SK": {"S": "_rewriting"},
        "_type": {"S": "_rewriting"},
        "state": {"S": REWRITING},
    }
    store.backend.execute("PutItem", {"TableName": "notes", "Item": record})
    done = store.rewrite(Note)
    assert done.is_complete
    assert done.seen == 40
