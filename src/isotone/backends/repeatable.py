"""For Alternator: which requests may go to another node after a lost answer, because repeating them changes nothing.

After a lost answer it is unknown whether the request was executed. Reads can be repeated. So can writes whose effect
and answer do not depend on the stored item: puts and deletes without a condition, updates that only set values,
batches, and transactions, which carry a token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from isotone.backends.interface import Request, as_text

_READING: Final = ("Get", "BatchGet", "TransactGet", "Query", "Scan", "Search", "List", "Describe")
_TABLES: Final = frozenset(("CreateTable", "DeleteTable", "UpdateTable", "UpdateTimeToLive"))
"""They take effect once; a second request gets an error that says so."""
_TAGS: Final = frozenset(("TagResource", "UntagResource"))
_CONDITIONS: Final = ("ConditionExpression", "Expected")
_PATH: Final = r"[\w#.]+"
_VALUE: Final = rf"{_PATH}\s*=\s*:\w+"
_ONLY_SETS: Final = re.compile(
    rf"\s*(SET\s+{_VALUE}(\s*,\s*{_VALUE})*\s*|REMOVE\s+{_PATH}(\s*,\s*{_PATH})*\s*){{1,2}}",
    re.IGNORECASE,
)


def is_repeatable(operation: str, request: Request) -> bool:
    """Whether a second execution of a request changes nothing and has the same answer.

    >>> is_repeatable("PutItem", {"TableName": "t", "Item": {}})
    True
    >>> is_repeatable("UpdateItem", {"TableName": "t", "UpdateExpression": "ADD n :one"})
    False
    """
    if operation.startswith(_READING) or operation in _TABLES or operation in _TAGS:
        return True
    if operation in ("BatchWriteItem", "TransactWriteItems"):
        return True
    if operation in ("ExecuteStatement", "BatchExecuteStatement"):
        return all(map(_is_select, request.get("Statements", (request,))))
    if operation not in ("PutItem", "DeleteItem", "UpdateItem") or _depends(request):
        return False
    return operation != "UpdateItem" or _only_sets(request)


def _is_select(statement: Mapping[str, Any]) -> bool:
    return str(statement.get("Statement", "")).lstrip().upper().startswith("SELECT")


def _depends(request: Request) -> bool:
    """Whether the effect or the answer of a write depends on the stored item."""
    returned = request.get("ReturnValues", "NONE")
    return any(request.get(each) for each in _CONDITIONS) or returned in ("ALL_OLD", "UPDATED_OLD")


def _only_sets(request: Request) -> bool:
    if "AttributeUpdates" in request:
        return False
    text = as_text(request).get("UpdateExpression", "")
    return not text or _ONLY_SETS.fullmatch(text) is not None
