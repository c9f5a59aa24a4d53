"""Reads a command line of AWS's own tool as an action with its request; nothing is executed.

>>> action_of("aws dynamodb query --table-name shop --no-scan-index-forward --limit 5")
AwsCommand(action='Query', request={'TableName': 'shop', 'ScanIndexForward': False, 'Limit': 5})

It knows the options of the actions that read and write items. What it does not know is refused, never left out. Only
options that say where the tables are and how the answer is shown are ignored. What the tool refuses is refused too, such as
a value of a switch.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
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
_OBJECTS: Final = (
    *("Key", "Item", "ExpressionAttributeNames", "ExpressionAttributeValues", "ExclusiveStartKey"),
    *("RequestItems", "KeyConditions", "QueryFilter", "ScanFilter", "Expected", "AttributeUpdates"),
)
_LISTS_OF_TEXTS: Final = ("AttributesToGet",)
_LISTS_OF_OBJECTS: Final = ("TransactItems", "Statements", "TransactStatements", "Parameters")
# These may stand anywhere, also before the operation.
_NO_VALUE: Final = (
    *("--no-paginate", "--no-cli-pager", "--no-sign-request", "--no-verify-ssl", "--debug"),
)
_ONE_VALUE: Final = (
    *("--endpoint-url", "--region", "--output", "--profile", "--query", "--color", "--ca-bundle"),
    *("--page-size", "--cli-read-timeout", "--cli-connect-timeout"),
)
_SHELL: Final = ("|", "||", "&&", ";", "&", ">", ">>", "<")
_CONTINUED: Final = re.compile(r"\\\r?\n")  # a line that goes on in the next


class AwsCommand(NamedTuple):
    """An action, and its request."""

    action: str
    request: dict[str, Any]


def action_of(text: str) -> AwsCommand:
    """The action and the request of `aws dynamodb …`; raises `UsageError` that says what is wrong with it."""
    words = _without_ignored(_words(text))
    if words[:2] != ["aws", "dynamodb"] or len(words) < 3:
        raise UsageError("a command begins with 'aws dynamodb' and an operation, such as query")
    action = ACTIONS.get(words[2])
    if action is None:
        raise UsageError(
            f"{words[2]!r} is no operation on items; the operations are: {', '.join(ACTIONS)}"
        )
    whole: Mapping[str, Any] = {}
    request: dict[str, Any] = {}
    rest = words[:2:-1]
    while rest:
        option, value = _option(rest.pop())
        if option == "--cli-input-json":
            whole = _object(_value(option, value, rest), option)
            continue
        name, member = _member(option, value, rest)
        if name in request:
            raise UsageError(f"{option} is given twice")
        request[name] = member
    return AwsCommand(action, {**whole, **request})


def _words(text: str) -> list[str]:
    """The words of a command line, as a shell divides it."""
    try:
        return shlex.split(_CONTINUED.sub(" ", text))
    except ValueError as error:
        raise UsageError(f"this is not a command line: {error}") from None


def _without_ignored(words: list[str]) -> list[str]:
    """The words without the options that change nothing in the request."""
    kept = []
    rest = words[::-1]
    while rest:
        word = rest.pop()
        option, value = _option(word)
        if option in _NO_VALUE:
            _no_value(option, value)
        elif option in _ONE_VALUE:
            _value(option, value, rest)
        else:
            kept.append(word)
    return kept


def _option(word: str) -> tuple[str, str | None]:
    """An option, and the value that is written with it: `--name=value`."""
    if not word.startswith("--"):
        return word, None
    option, equals, value = word.partition("=")
    return option, value if equals else None


def _no_value(option: str, value: str | None) -> None:
    if value is not None:
        raise UsageError(
            f"{option} takes no value; a switch is turned on by --name, and off by --no-name"
        )


def _value(option: str, value: str | None, rest: list[str]) -> str:
    """The value of an option; `rest` has the words that follow, the next one last."""
    if value is not None:
        return value
    if not rest:
        raise UsageError(f"{option} has no value")
    return rest.pop()


def _values(option: str, value: str | None, rest: list[str]) -> list[str]:
    """The values of an option that takes several: all words up to the next option."""
    values = [_value(option, value, rest)]
    while value is None and rest and not rest[-1].startswith("--") and rest[-1] not in _SHELL:
        values.append(rest.pop())
    return values


def _member(option: str, value: str | None, rest: list[str]) -> tuple[str, Any]:
    """The member of the request that an option sets, and its value."""
    if option in _SHELL:
        raise UsageError(f"a command is one call of aws, without {option!r}")
    if not option.startswith("--"):
        raise UsageError(
            f"{option!r} is no option; quote a value that has spaces, in single quotes"
        )
    name = option[2:]
    is_on = not (name.startswith("no-") and _pascal(name[3:]) in _SWITCHES)
    member = _pascal(name if is_on else name[3:])
    if member in _SWITCHES:
        _no_value(option, value)
        return member, is_on
    if member in _LISTS:
        return member, _list(_values(option, value, rest), _LISTS[member], option)
    read = _READ.get(member)
    if read is None:
        raise UsageError(f"{option} is no option that is known here")
    return member, read(_value(option, value, rest), option)


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


def _list(values: list[str], read: Callable[[str, str], Any], option: str) -> Any:
    """A list: in JSON as one value, or each member as a value."""
    if len(values) == 1 and values[0].lstrip().startswith("["):
        return _json(values[0], option)
    return [read(value, option) for value in values]


_READ: Final[Mapping[str, Callable[[str, str], Any]]] = {
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(_OBJECTS, _object),
}
_LISTS: Final[Mapping[str, Callable[[str, str], Any]]] = {
    **dict.fromkeys(_LISTS_OF_TEXTS, _text),
    **dict.fromkeys(_LISTS_OF_OBJECTS, _object),
}
