"""The service's wording of a request's faults, action by action.

Since the middle of 2026 the service has two generations of checks. The rest of this package raises errors in the
words of the older one, which is still behind batches of writes and transactions. Here they are put into those of
the newer one, for the actions that it serves:

- an error in the parameters of a single write, found before its table is read, is counted like a broken
  constraint: "1 validation error detected: …"; so is a Select that contradicts the rest of a Query or Scan;
- a wrong value of a placeholder is told without the placeholder, unless the value is an empty set, or has several types
  and is that of an update or a delete;
- the members of a set with duplicates are shown in quotes.

The sources are recorded in `tests/oracle/known.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from isotone.errors import ValidationException
from isotone.operations.item_validation import INVALID, TOO_LARGE
from isotone.operations.request_expressions import VALUES_WITHOUT_EXPRESSIONS
from isotone.values.attribute_validation import DUPLICATE_NUMBERS, MANY_TYPES, NO_TYPE
from isotone.values.number import NOT_A_NUMBER

COUNTED: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
NEWER: Final = COUNTED | {"GetItem", "Query", "Scan", "BatchGetItem"}

_COUNT: Final = "1 validation error detected: "
_OF_PLACEHOLDER: Final = re.compile(
    r"ExpressionAttributeValues contains invalid value: "
    r"(?!.*(?:may not be empty|should not be empty))(.*) for key :\w+",
    re.DOTALL,
)
_DUPLICATES: Final = re.compile(
    r"(.*Input collection )\[(.*)\]( |of type BS )contains duplicates\.", re.DOTALL
)
_SEVERAL_TYPES: Final = f"ExpressionAttributeValues contains invalid value: {MANY_TYPES}"
_UNCOUNTED: Final = (
    NO_TYPE,
    MANY_TYPES,
    "ExpressionAttributeNames contains invalid key",
    "ExpressionAttributeValues contains invalid key",
    TOO_LARGE,
    _COUNT,
)
"""How an error in the parameters begins that is not counted."""
_COUNTED_IN_READS: Final = (
    "Cannot specify the AttributesToGet",
    "Cannot specify the ProjectionExpression",
    "Must specify the AttributesToGet or ProjectionExpression",
    "ALL_PROJECTED_ATTRIBUTES can be used only",
)
"""How the errors of a Query or Scan begin that are counted: those of a Select that contradicts the rest."""


def worded(action: str, error: ValidationException, *, in_parameters: bool) -> ValidationException:
    """The error in the words that the service has for it in an action.

    `in_parameters` tells an error that was found before a table was read.
    """
    if action not in NEWER:
        return error
    message = error.message
    if action in ("UpdateItem", "DeleteItem") and message.startswith(_SEVERAL_TYPES):
        return error
    if action in COUNTED and message.startswith(VALUES_WITHOUT_EXPRESSIONS):
        message = VALUES_WITHOUT_EXPRESSIONS
    for pattern, rewrite in _REWRITES:
        found = pattern.fullmatch(message)
        if found is not None:
            message = rewrite(found)
    if action in COUNTED:
        is_counted = in_parameters and not message.startswith(_UNCOUNTED)
    else:
        is_counted = message.startswith(_COUNTED_IN_READS)
    if is_counted:
        message = _COUNT + message
    return error if message == error.message else ValidationException(message, **error.members)


def _quoted(found: re.Match[str]) -> str:
    before, members, kind = found.groups()
    separator = ", " if kind == " " else ","
    listed = separator.join(map(json.dumps, members.split(", ")))
    return f"{before}[{listed}]{kind}contains duplicates."


_REWRITES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (_OF_PLACEHOLDER, lambda found: found[1]),
    (_DUPLICATES, _quoted),
    (re.compile(DUPLICATE_NUMBERS), lambda _: f"{INVALID}{DUPLICATE_NUMBERS}."),
    (re.compile(NOT_A_NUMBER), lambda _: f"{NOT_A_NUMBER}: "),
)
