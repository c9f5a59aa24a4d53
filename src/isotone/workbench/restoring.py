"""Put back, in a comparison: restores items, each on the condition that it is unchanged since the comparison.

An item that another program has written meanwhile is left alone and reported. Undo is the same in the other direction.
Only differing attributes are written, so attributes that were added meanwhile stay. An item that will be deleted, or
that has more changes than fit into an update, is read first, because no condition can say that an item has no other
attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, Final, NamedTuple

import msgspec

from isotone.backends.interface import Backend
from isotone.errors import ConditionalCheckFailedException, IsotoneError
from isotone.moving import KeyDifference
from isotone.moving.item_identity import canonical
from isotone.tables.pace import Pace
from isotone.tables.scan import json_length
from isotone.tables.threads import in_threads
from isotone.values.types import Item

_TOGETHER: Final = 100  # writes that a database in this process commits at once
_BYTES: Final = 4 << 20  # bytes of their items
_AT_ONCE: Final = 8  # parallel writes to an engine elsewhere
_TESTED: Final = 90  # attributes; a condition may have 300 operators, and 4 KB of text

_encode: Final = msgspec.json.Encoder().encode

Write = tuple[str, dict[str, Any]]
Outcome = bool | BaseException
"""Whether a change was made, or the error that prevented it."""


class ItemToRestore(NamedTuple):
    """An item to write: its number, its key, its current and its wanted state; None stands for no item."""

    number: int
    key: Item
    present: Item | None
    wanted: Item | None


def write_changes(
    backend: Backend, table: str, changes: Iterable[ItemToRestore], pace: Pace
) -> Iterator[list[tuple[ItemToRestore, bool]]]:
    """Write changes in groups; yields each with True, or with False if another program has changed the item.

    An error is raised after the other changes of its group.
    """
    send = _sender(_Target(backend, table, pace))
    for part in _parts(changes):
        outcomes = list(zip(part, send(part), strict=True))
        yield [(change, is_made) for change, is_made in outcomes if isinstance(is_made, bool)]
        for _, error in outcomes:
            if isinstance(error, BaseException):
                raise error


def _parts(changes: Iterable[ItemToRestore]) -> Iterator[list[ItemToRestore]]:
    part, size = list[ItemToRestore](), 0
    for change in changes:
        part.append(change)
        size += sum(json_length(item) for item in (change.present, change.wanted) if item)
        if len(part) == _TOGETHER or size > _BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def write_of(table: str, change: ItemToRestore) -> Write:
    """The request for one change, with its condition."""
    _, key, present, wanted = change
    terms = _Terms()
    (partition, *_) = key
    if present is None:
        terms.test(f"attribute_not_exists({terms.name(partition)})")
        assert wanted is not None
        return "PutItem", {"TableName": table, "Item": wanted, **terms.members()}
    terms.test(f"attribute_exists({terms.name(partition)})")
    differing = _differing(change)
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


def _differing(change: ItemToRestore) -> Mapping[str, Any]:
    return KeyDifference(change.key, change.present, change.wanted).attributes


class _Terms:
    """The condition of a write, and the names and values that it uses."""

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
        """Test that an attribute has this value, or (None) that it is absent."""
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
        """The members of the request."""
        found: dict[str, Any] = {
            "ConditionExpression": " AND ".join(self._tests),
            "ExpressionAttributeNames": {text: name for name, text in self._names.items()},
        }
        return {**found, "ExpressionAttributeValues": self._values} if self._values else found

    def _value(self, value: Any) -> str:
        text = f":{len(self._values)}"
        self._values[text] = value
        return text


class _Target(NamedTuple):
    """The table that is written to."""

    backend: Backend
    table: str
    pace: Pace

    def item(self, key: Item) -> Item | None:
        """The current item."""
        request = {"TableName": self.table, "Key": key, "ConsistentRead": True}
        return self.pace.execute(self.backend, "GetItem", request).get("Item")

    def was_changed(self, change: ItemToRestore) -> bool:
        """Whether an item has changed in a way that the condition of the write does not detect."""
        if change.present is None:
            return False
        if change.wanted is not None and len(_differing(change)) <= _TESTED:
            return False
        return not _is_same(self.item(change.key), change.present)

    def outcome(self, change: ItemToRestore, answer: object) -> Outcome:
        """The outcome of a change, given the answer to its write; None: it was not sent."""
        if answer is not None and not isinstance(answer, ConditionalCheckFailedException):
            return answer if isinstance(answer, Exception) else True
        try:  # a request that was sent twice finds its own change
            return _is_same(self.item(change.key), change.wanted)
        except IsotoneError as error:
            return error


def _sender(target: _Target) -> Callable[[Sequence[ItemToRestore]], Sequence[Outcome]]:
    """A function that writes changes."""
    backend, table, pace = target
    send_many = getattr(backend, "send_many", None)
    if send_many is None:

        def one(change: ItemToRestore) -> Outcome:
            try:
                is_sent = not target.was_changed(change)
                answer = pace.execute(backend, *write_of(table, change)) if is_sent else None
            except ConditionalCheckFailedException as error:
                return target.outcome(change, error)
            return target.outcome(change, answer)

        return lambda changes: in_threads(one, changes, _AT_ONCE)

    def together(changes: Sequence[ItemToRestore]) -> Sequence[Outcome]:
        pace.wait()
        is_sent = [not target.was_changed(change) for change in changes]
        writes = [write_of(table, change) for change in compress(changes, is_sent)]
        answers = iter(send_many([(action, _encode(body)) for action, body in writes]))
        return [
            target.outcome(change, next(answers) if was_sent else None)
            for change, was_sent in zip(changes, is_sent, strict=True)
        ]

    return together


def _is_same(one: Item | None, other: Item | None) -> bool:
    if one is None or other is None:
        return one is other
    return canonical(one) == canonical(other)
