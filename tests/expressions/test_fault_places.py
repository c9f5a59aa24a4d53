"""The place of a statement's fault: what is underlined in an editor."""

from __future__ import annotations

import pytest

import isotone
from isotone.errors import ApiError
from isotone.expressions.partiql import fault_place


@pytest.fixture(scope="module")
def database() -> isotone.Database:
    database = isotone.open()
    database.execute(
        "CreateTable",
        {
            "TableName": "songs",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    return database


@pytest.mark.parametrize(
    ("statement", "marked"),
    [
        ("SELEC * FROM songs", "SELEC"),
        ("SELECT * FROM songs WHERE", "WHERE"),
        ("SELECT * FROM songs WHERE pk = ", "="),
        ("SELECT * FROM songs WHERE pk = 'a' AND foo(x)", "foo"),
        ("SELECT * FROM nope WHERE pk = 'a'", "nope"),
        ("SELECT * FROM songs WHERE pk = 'a' ORDER BY year", "year"),
        ("SELECT * FROM songs WHERE pk = 5", "pk"),
        ("SELECT * FROM songs WHERE pk = 'x", "'x"),
        ("SELECT *\nFROM songs\nWHERE pk == 'a'", "="),
        ("SELECT *\nFROM songs\nWHERE begins_with(pk)", "begins_with"),
        ("SELECT COUNT(*) FROM songs", "COUNT"),
        ("SELECT * FROM songs LIMIT 3", "3"),
        ("DELETE FROM songs WHERE x = 1", "WHERE x = 1"),
        ("SELECT * FROM songs WHERE a = ?", "?"),
        ("SELECT * FROM songs\nWHERE pk = 'a' #", "#"),
    ],
)
def test_the_place_of_a_fault(database: isotone.Database, statement: str, marked: str) -> None:
    with pytest.raises(ApiError) as refused:
        database.execute("ExecuteStatement", {"Statement": statement})
    place = fault_place(statement, refused.value.message or str(refused.value))
    assert place is not None
    line = statement.split("\n")[place.line - 1]
    assert line[place.column - 1 :][: place.length] == marked


def test_a_message_that_names_no_part_has_no_place() -> None:
    assert fault_place("UPDATE songs SET a = 1", "The server is busy") is None
