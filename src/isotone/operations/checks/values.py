"""The checks of a request's attribute values, one layer each for `orders`; their texts in older and newer actions.

A source lists the maps from names to values in a request, in document order, each with its member. The newer actions
and the older ones (batches of writes, transactions) have different messages for a bad number, a duplicate in a set, and
a bad placeholder value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from isotone import limits
from isotone.errors import ValidationException
from isotone.operations.checks.first_fault import Check, RefusedRequest
from isotone.operations.item_validation import INVALID, check_size
from isotone.values.attribute_validation import (
    DUPLICATE_NUMBERS,
    EMPTY_NAME,
    EMPTY_SET,
    MANY_TYPES,
    NO_TYPE,
    TOO_DEEP,
    canonical_item,
    canonical_value,
)
from isotone.values.number import NOT_A_NUMBER, check_as_int
from isotone.values.size import item_size
from isotone.values.value_layers import (
    check_decoded,
    check_names,
    check_nesting,
    check_sets,
    has_several_types,
)

Values: TypeAlias = Mapping[str, Any]
Source: TypeAlias = Callable[[RefusedRequest], Iterator[tuple[str, Values]]]
"""The maps of values in a request, each with the name of its member."""

PLACEHOLDERS: Final = "ExpressionAttributeValues"

_EMPTY_SETS: Final = frozenset(EMPTY_SET.values())


# Sources


def of(*members: str) -> Source:
    """Members of the request itself."""

    def source(asked: RefusedRequest) -> Iterator[tuple[str, Values]]:
        for name, value in asked.document.items():
            if name in members:
                yield name, value

    return source


def of_updates(asked: RefusedRequest) -> Iterator[tuple[str, Values]]:
    """The values of AttributeUpdates, and those of the members `Key` and `ExpressionAttributeValues`."""
    for name, value in asked.document.items():
        if name in ("Key", PLACEHOLDERS):
            yield name, value
        elif name == "AttributeUpdates":
            yield (
                name,
                {each: change["Value"] for each, change in value.items() if "Value" in change},
            )


def of_batch_get(asked: RefusedRequest) -> Iterator[tuple[str, Values]]:
    """The keys of a BatchGetItem."""
    for entry in (asked.document.get("RequestItems") or {}).values():
        for key in filter(None, entry.get("Keys") or ()):
            yield "Key", key


def of_batch_write(asked: RefusedRequest) -> Iterator[tuple[str, Values]]:
    """The items and keys of a BatchWriteItem."""
    for writes in (asked.document.get("RequestItems") or {}).values():
        for write in filter(None, writes):
            for request, member in (("PutRequest", "Item"), ("DeleteRequest", "Key")):
                if write.get(request) and member in write[request]:
                    yield member, write[request][member]


def of_transaction(*members: str) -> Source:
    """The items, keys or placeholder values in the entries of a transaction."""

    def source(asked: RefusedRequest) -> Iterator[tuple[str, Values]]:
        for entry in filter(None, asked.document.get("TransactItems") or ()):
            for content in entry.values():
                for name, value in content.items():
                    if name in members:
                        yield name, value

    return source


# Messages


def newer(error: ValidationException) -> ValidationException:
    """A fault of a value with the message of the newer actions: members of a set are quoted, and sorted up to the
    duplicate.
    """
    message = error.message
    if error.repeated_set:
        message = _quoted(message, error.repeated_set)
    elif message == DUPLICATE_NUMBERS:
        message = f"{INVALID}{DUPLICATE_NUMBERS}."
    elif message == NOT_A_NUMBER:
        message = f"{NOT_A_NUMBER}: "
    return error if message == error.message else ValidationException(message)


def _quoted(message: str, members: Sequence[str]) -> str:
    """The message with the members of the set in quotes, those before the first repeated one sorted."""
    repeat = next(position for position, each in enumerate(members) if each in members[:position])
    separator = "," if "of type BS" in message.rpartition("]")[2] else ", "
    quoted = separator.join(map(json.dumps, [*sorted(members[:repeat]), *members[repeat:]]))
    return message.replace(f"[{', '.join(members)}]", f"[{quoted}]", 1)


def of_placeholder(name: str, error: ValidationException) -> ValidationException:
    """A fault of a placeholder value, with the message of the older actions."""
    return ValidationException(
        f"ExpressionAttributeValues contains invalid value: {error.message} for key {name}"
    )


def newly(check: Check) -> Check:
    """A layer whose value faults have the messages of the newer actions."""

    def reworded(asked: RefusedRequest) -> None:
        try:
            check(asked)
        except ValidationException as error:
            raise newer(error) from None

    return reworded


# Layers


def decoded(source: Source) -> Check:
    """What the service finds while it decodes values: types, numbers, false NULLs."""

    def check(asked: RefusedRequest) -> None:
        for _, values in source(asked):
            for value in values.values():
                check_decoded(value)

    return newly(check)


def decoded_as_before(source: Source, *, with_placeholder: bool = True) -> Check:
    """The same for the older actions. `with_placeholder`: a fault is reported with its placeholder."""

    def check(asked: RefusedRequest) -> None:
        for member, values in source(asked):
            for name, value in values.items():
                try:
                    check_decoded(value, check_number=check_as_int)
                except ValidationException as error:
                    if member == PLACEHOLDERS and with_placeholder:
                        raise of_placeholder(name, error) from None
                    raise

    return check


def named(source: Source, *, nested: bool = True) -> Check:
    """No attribute has an empty name."""

    def check(asked: RefusedRequest) -> None:
        for member, values in source(asked):
            if member == PLACEHOLDERS:
                check_names({name: value for name, value in values.items() if name})
            else:
                check_names(values, nested=nested)

    return check


def without_empty_sets(source: Source) -> Check:
    """No value is or contains an empty set."""

    def check(asked: RefusedRequest) -> None:
        for _, values in source(asked):
            check_sets(values)

    return check


def nesting(source: Source) -> Check:
    """No value is nested too deeply."""

    def check(asked: RefusedRequest) -> None:
        for _, values in source(asked):
            for value in values.values():
                check_nesting(value)

    return check


def content(source: Source, *, sized: bool = False) -> Check:
    """All other faults in a value, such as an empty set or one with duplicates; `sized`: also the size of an item."""

    def check(asked: RefusedRequest) -> None:
        for member, values in source(asked):
            check_content(values, sized=sized and member == "Item")

    return check


def check_content(values: Values, *, sized: bool) -> None:
    """Check an item or a key completely, in document order; nesting comes before empty names in maps."""
    try:
        _, size = canonical_item(dict(values))
    except ValidationException as error:
        if error.message == EMPTY_NAME:
            for value in values.values():
                check_nesting(value)
        raise
    if sized:
        check_size(size)


def newer_content(source: Source) -> Check:
    """The same with the messages of the newer actions."""

    return newly(content(source))


def placeholders(*, empty_sets_named: bool = True, types_named: bool = False) -> Check:
    """Placeholder values. A fault is reported without the placeholder, with two exceptions.

    `empty_sets_named`: a value that is an empty set; `types_named`: a value without a type, or with several.
    """

    def is_named(message: str, value: Any) -> bool:
        if message in (NO_TYPE, MANY_TYPES):
            return types_named
        return empty_sets_named and message in _EMPTY_SETS and [] in value.values()

    def check(asked: RefusedRequest) -> None:
        size = 0
        for name, value in (asked.document.get(PLACEHOLDERS) or {}).items():
            try:
                size += canonical_value(value)[1]
            except ValidationException as error:
                if is_named(error.message, value):
                    raise of_placeholder(name, error) from None
                raise newer(error) from None
        check_size_of_values(size)

    return check


def placeholders_as_before(asked: RefusedRequest) -> None:
    """Placeholder values; faults are reported with the placeholder."""
    size = 0
    for name, value in (asked.document.get(PLACEHOLDERS) or {}).items():
        try:
            size += canonical_value(value)[1]
        except ValidationException as error:
            raise of_placeholder(name, error) from None
    check_size_of_values(size)


def check_size_of_values(size: int) -> None:
    """Refuse placeholder values that are too large together."""
    if size > limits.EXPRESSION_VALUES_SIZE:
        raise ValidationException("ExpressionAttributeValues size exceeds the maximum allowed size")


def item_is_small(asked: RefusedRequest) -> None:
    """An item is no larger than any table allows."""
    check_size(item_size(canonical_item(asked.request.item)[0]))


def has_a_value_of_several_types(asked: RefusedRequest) -> bool:
    """Whether a value of the request has several types, which the newer checks cannot decode."""
    return any(
        has_several_types(value)
        for _, values in of("Item", "Key", PLACEHOLDERS)(asked)
        for value in values.values()
    )


_DEEPEST: Final = 127
"""How many nested objects and arrays the newer checks decode."""


def is_deep(asked: RefusedRequest) -> bool:
    """Whether the request's JSON is nested more deeply than the newer checks can decode: a value in more than 62 lists."""
    pending: list[tuple[int, Any]] = [(1, asked.document)]
    while pending:
        level, each = pending.pop()
        if level > _DEEPEST:
            return True
        parts = each.values() if isinstance(each, dict) else each
        pending += [(level + 1, part) for part in parts if isinstance(part, (dict, list))]
    return False


def shallow(asked: RefusedRequest) -> None:
    """The request's JSON is not nested too deeply to decode."""
    if is_deep(asked):
        raise ValidationException(TOO_DEEP)
