"""Updates: what they make of an item."""

from __future__ import annotations

from isotone.expressions import update


def test_a_counter_counts() -> None:
    increment = update("SET #c = #c + :one", {"#c": "count"})
    assert increment.apply({"count": {"N": "9"}}, {":one": {"N": "1"}}) == {"count": {"N": "10"}}
