"""Responses in JSON: stored items are spliced in as they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isotone.operations.item_responses import JsonItems, encode_response

ITEMS = ({"a": {"S": "ä"}}, {"a": {"N": "1"}}, {})


@pytest.mark.parametrize("count", range(4))
@pytest.mark.parametrize("others", [{}, {"Count": 2}, {"Count": 2, "LastEvaluatedKey": ITEMS[0]}])
def test_stored_items_are_a_member_like_others(count: int, others: dict[str, Any]) -> None:
    items = ITEMS[:count]
    stored = [json.dumps(item).encode() for item in items]
    answer = {"Items": JsonItems(stored), **others}
    assert json.loads(encode_response(answer)) == {"Items": list(items), **others}
    assert stored == [json.dumps(item).encode() for item in items]
    assert "Items" in answer
