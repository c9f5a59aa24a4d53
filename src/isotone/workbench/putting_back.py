"""Puts items back to what they were: each on the condition that it still is as the comparison found it.

What somebody has written meanwhile is not lost: such an item is left alone and told. Undo is the same in the other direction.
Only the attributes that differ are written, so others that were added meanwhile stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from isotone.backends.interface import Backend
from isotone.errors import ConditionalCheckFailedException
from isotone.moving import KeyDifference
from isotone.moving.item_identity import canonical
from isotone.moving.pacing import Pace
from isotone.values.types import Item

_TOGETHER: Final = 100  # writes of a database in this process that are committed at once
_AT_ONCE: Final = 8  # writes to an engine elsewhere
_TESTED: Final = 90  # attributes; the service takes 300 operators in a condition, and 4 KB of text

_encode: Final = msgspec.json.Encoder().encode

Write = tuple[str, dict[str, Any]]


class Change(NamedTuple):
    """An item to write: its number, its key, what it should be now, and what it shall be; None where there is no item."""

    number: int
    key: Item
    present: Item | None
    wanted: Item | None


def write_changes(
    backend: Backend, table: str, changes: Iterable[Change], pace: Pace
) -> Iterator[list[tuple[Change, bool]]]:
    """Write changes, some at a time; yields them with whether they were made. The others were changed by somebody else."""
    waiting = iter(changes)
    with _sender(backend, pace) as send:
        while part := list(islice(waiting, _TOGETHER)):
            made = send([write_of(table, change) for change in part])
            yield [
                (change, is_made or _is_there(backend, table, change, pace))
                for change, is_made in zip(part, made, strict=True)
            ]


def write_of(table: str, change: Change) -> Write:
    """The request for one change, with its condition."""
    _, key, present, wanted = change
    terms = _Terms()
    (partition, *_) = key
    if present is None:
        terms.test(f"attribute_not_exists({terms.name(partition)})")
        assert wanted is not None
        return "PutItem", {"TableName": table, "Item": wanted, **terms.members()}
    terms.test(f"attribute_exists({terms.name(partition)})")
    differing = KeyDifference(key, present, wanted).attributes
    others = [name for name in present if name not in differing]
    tested = [name for name in (*differing, *others) if name not in key][:_TESTED]
    if wanted is None:
        for name in tested:
            terms.expect(name, present.get(name))
        return "DeleteItem", {"TableName": table, "Key": key, **terms.members()}
    for name in tested:
        if name in differing:
            terms.expect(name, present.get(name))
    if len(differing) > _TESTED:
        return "PutItem", {"TableName": table, "Item": wanted, **terms.members()}
    update = terms.update({name: wanted.get(name) for name in differing})
    return "UpdateItem", {
        "TableName": table,
        "Key": key,
        "UpdateExpression": update,
        **terms.members(),
    }


class _Terms:
    """The condition of a write, with the names and values that it uses."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: Item = {}
        self._tests: list[str] = []

    def name(self, attribute: str) -> str:
        """The placeholder of an attribute's name."""
        return self._names.setdefault(attribute, f"#{len(self._names)}")

    def test(self, text: str) -> None:
        """Add a test."""
        self._tests.append(text)

    def expect(self, attribute: str, value: Any) -> None:
        """Test that an attribute has this value; None: that it is absent."""
        name = self.name(attribute)
        self.test(
            f"attribute_not_exists({name})" if value is None else f"{name} = {self._value(value)}"
        )

    def update(self, attributes: dict[str, Any]) -> str:
        """The update expression that sets attributes, and removes those that are None."""
        made = [
            f"{self.name(each)} = {self._value(value)}"
            for each, value in attributes.items()
            if value
        ]
        gone = [self.name(each) for each, value in attributes.items() if not value]
        parts = [f"SET {', '.join(made)}"] if made else []
        return " ".join([*parts, f"REMOVE {', '.join(gone)}"] if gone else parts)

    def members(self) -> dict[str, Any]:
        """The members of a request."""
        found: dict[str, Any] = {
            "ConditionExpression": " AND ".join(self._tests),
            "ExpressionAttributeNames": {text: name for name, text in self._names.items()},
        }
        return {**found, "ExpressionAttributeValues": self._values} if self._values else found

    def _value(self, value: Any) -> str:
        text = f":{len(self._values)}"
        self._values[text] = value
        return text


@contextmanager
def _sender(backend: Backend, pace: Pace) -> Iterator[Callable[[Sequence[Write]], list[bool]]]:
    """A function that sends writes, and returns of each whether its condition was true; raises any other error."""
    send_many = getattr(backend, "send_many", None)
    if send_many is not None:

        def together(writes: Sequence[Write]) -> list[bool]:
            pace.wait()
            return [
                _is_made(answer)
                for answer in send_many([(action, _encode(body)) for action, body in writes])
            ]

        yield together
        return

    def one(write: Write) -> bool:
        try:
            pace.execute(backend, *write)
        except ConditionalCheckFailedException as error:
            return _is_made(error)
        return True

    with ThreadPoolExecutor(_AT_ONCE, "isotone-put-back") as pool:
        yield lambda writes: list(pool.map(one, writes))


def _is_made(answer: Any) -> bool:
    if isinstance(answer, ConditionalCheckFailedException):
        return False
    if isinstance(answer, Exception):
        raise answer
    return True


def _is_there(backend: Backend, table: str, change: Change, pace: Pace) -> bool:
    """Whether the item is what it shall be already: a request that was sent again finds its own change."""
    request = {"TableName": table, "Key": change.key, "ConsistentRead": True}
    item = pace.execute(backend, "GetItem", request).get("Item")
    if item is None or change.wanted is None:
        return item is None and change.wanted is None
    return canonical(item) == canonical(change.wanted)
