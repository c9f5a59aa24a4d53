"""Reads a command line of AWS's own tool as an action with its request; nothing is executed.

>>> action_of("aws dynamodb query --table-name shop --no-scan-index-forward --limit 5")
AwsCommand(action='Query', request={'TableName': 'shop', 'ScanIndexForward': False, 'Limit': 5})

It knows the options of the actions that read and write items. What it does not know is refused, never left out. Only
options that change how the answer is shown are ignored.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from isotone.errors import UsageError
from isotone.schema.document import parsed_json

ACTIONS: Final = {
    "query": "Query",
    "scan": "Scan",
    "get-item": "GetItem",
    "put-item": "PutItem",
    "update-item": "UpdateItem",
    "delete-item": "DeleteItem",
    "batch-get-item": "BatchGetItem",
    "batch-write-item": "BatchWriteItem",
    "transact-get-items": "TransactGetItems",
    "transact-write-items": "TransactWriteItems",
    "execute-statement": "ExecuteStatement",
    "batch-execute-statement": "BatchExecuteStatement",
    "execute-transaction": "ExecuteTransaction",
}

_TEXTS: Final = (
    *("TableName", "IndexName", "Select", "ConditionExpression", "FilterExpression"),
    *("KeyConditionExpression", "ProjectionExpression", "UpdateExpression", "ReturnValues"),
    *("ReturnConsumedCapacity", "ReturnItemCollectionMetrics", "ConditionalOperator", "Statement"),
    *("ReturnValuesOnConditionCheckFailure", "ClientRequestToken", "NextToken"),
)
_NUMBERS: Final = ("Limit", "Segment", "TotalSegments")
_SWITCHES: Final = ("ConsistentRead", "ScanIndexForward")
_JSON: Final = (
    *("Key", "Item", "ExpressionAttributeNames", "ExpressionAttributeValues", "ExclusiveStartKey"),
    *("RequestItems", "TransactItems", "Statements", "TransactStatements", "Parameters"),
    *("KeyConditions", "QueryFilter", "ScanFilter", "Expected", "AttributeUpdates"),
)
_LISTS: Final = ("AttributesToGet",)
_NO_VALUE: Final = ("--no-paginate", "--no-cli-pager", "--no-sign-request", "--debug")
_ONE_VALUE: Final = (
    *("--endpoint-url", "--region", "--output", "--profile", "--query", "--color"),
    *("--page-size", "--cli-read-timeout", "--cli-connect-timeout"),
)
_SHELL: Final = ("|", "||", "&&", ";", "&", ">", ">>", "<")


class AwsCommand(NamedTuple):
    """An action, and its request."""

    action: str
    request: dict[str, Any]


def action_of(text: str) -> AwsCommand:
    """The action and the request of `aws dynamodb …`; raises `UsageError` that says what is wrong with it."""
    words = _words(text)
    if words[:2] != ["aws", "dynamodb"] or len(words) < 3:
        raise UsageError("a command begins with 'aws dynamodb' and an operation, such as query")
    action = ACTIONS.get(words[2])
    if action is None:
        raise UsageError(
            f"{words[2]!r} is no operation on items; the operations are: {', '.join(ACTIONS)}"
        )
    request: dict[str, Any] = {}
    rest = iter(words[3:])
    for option in rest:
        if option in _NO_VALUE:
            continue
        if option in _ONE_VALUE:
            _next(rest, option)
            continue
        if option == "--cli-input-json":
            request = {**_object(_next(rest, option), option), **request}
            continue
        name, value = _member(option, rest)
        if name in request:
            raise UsageError(f"{option} is given twice")
        request[name] = value
    return AwsCommand(action, request)


def _words(text: str) -> list[str]:
    """The words of a command line, as a shell divides it."""
    try:
        return shlex.split(text.replace("\\\n", " "))
    except ValueError as error:
        raise UsageError(f"this is not a command line: {error}") from None


def _next(rest: Iterator[str], option: str) -> str:
    found = next(rest, None)
    if found is None:
        raise UsageError(f"{option} has no value")
    return found


def _member(option: str, rest: Iterator[str]) -> tuple[str, Any]:
    """The member of the request that an option sets, and its value."""
    if option in _SHELL:
        raise UsageError(f"a command is one call of aws, without {option!r}")
    if not option.startswith("--"):
        raise UsageError(
            f"{option!r} is no option; quote a value that has spaces, in single quotes"
        )
    name, equals, given = option[2:].partition("=")
    if name.startswith("no-") and _pascal(name[3:]) in _SWITCHES:
        return _pascal(name[3:]), False
    member = _pascal(name)
    if member in _SWITCHES:
        return member, True
    read = _READ.get(member)
    if read is None:
        raise UsageError(f"{option} is no option that is known here")
    return member, read(given if equals else _next(rest, option), option)


def _pascal(option: str) -> str:
    return "".join(word.capitalize() for word in option.split("-"))


def _text(text: str, option: str) -> str:
    return text


def _number(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{option} {text!r} is not a number") from None


def _json(text: str, option: str) -> Any:
    if text.startswith("file://"):
        raise UsageError(f"{option} names a file; write its content instead")
    if not text.lstrip().startswith(("{", "[")):
        raise UsageError(
            f'{option} must be JSON, such as \'{{"PK": {{"S": "a"}}}}\'; the short form of the tool is not read'
        )
    return parsed_json(text, option)


def _object(text: str, option: str) -> Mapping[str, Any]:
    found = _json(text, option)
    if not isinstance(found, dict):
        raise UsageError(f"{option} must be a JSON object")
    return found


def _list(text: str, option: str) -> Any:
    return _json(text, option) if text.lstrip().startswith("[") else [text]


_READ: Final = {
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(_JSON, _json),
    **dict.fromkeys(_LISTS, _list),
}
