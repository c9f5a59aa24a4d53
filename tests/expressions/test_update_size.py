"""The size of an update expression, clause by clause: the sizes are those at which updates were seen to be refused."""

from __future__ import annotations

from typing import Any

import pytest

from isotone.expressions import update

VALUES: dict[str, Any] = {
    ":ten": {"S": "x" * 10},
    ":one": {"N": "1"},
    ":number": {"N": "12345"},
    ":set": {"SS": ["abc"]},
    ":list": {"L": []},
    ":null": {"NULL": True},
}


@pytest.mark.parametrize(
    ("clause", "size"),
    [
        ("SET b = :ten", 30),
        ("SET bcd = :ten", 32),
        ("SET #b = :one", 24),  # bü, which has three bytes
        ("SET b = :null", 21),
        ("SET b = c", 36),
        ("SET b = cde", 38),
        ("SET b = m.x", 51),
        ("SET b = m.x.y", 66),
        ("SET b = l[10]", 52),
        ("SET b = if_not_exists(b, :ten)", 85),
        ("SET b = if_not_exists(b, c)", 91),
        ("SET b = :one + :number", 60),
        ("SET b = :one - :number", 63),
        ("SET b = list_append(b, :list)", 76),
        ("SET b = list_append(if_not_exists(l, :list), :list)", 118),
        ("SET m.x = :ten", 35),
        ("SET m.xyz = :ten", 37),
        ("SET m.x.y = :ten", 40),
        ("SET l[10] = :ten", 36),
        ("SET m.x = :ten, m.y = :ten", 70),
        ("REMOVE c", 2),
        ("REMOVE c, d", 4),
        ("REMOVE m.xyz", 9),
        ("REMOVE l[0]", 7),
        ("ADD s :set", 23),
        ("ADD n :one, c :one", 44),
        ("ADD m.n :one", 27),
        ("DELETE s :set", 2),
        ("DELETE m.s :set", 7),
        ("SET z = :one REMOVE c DELETE s :set ADD n :one", 48),
    ],
)
def test_each_clause_has_its_size(clause: str, size: int) -> None:
    found = update(clause, {"#b": "bü"} if "#b" in clause else None).size
    assert found is not None
    assert found.with_values(VALUES) == 3 + size
