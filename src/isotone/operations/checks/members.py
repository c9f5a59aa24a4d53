"""Constraints of request members (length, pattern, range, enum), and whether they are reported alone or as a list.

An entry is a function from a refused request to the messages about one member. Most use the messages of
`request_validation`; the actions that AWS rewrote in 2026 have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import msgspec

from isotone.errors import ValidationException
from isotone.operations.checks.first_fault import Check, RefusedRequest
from isotone.operations.request_decoding import check_last
from isotone.operations.request_grammar import (
    NAME_CONSTRAINTS,
    Constraint,
    MemberShape,
    Scalar,
    StructureShape,
)
from isotone.operations.request_grammar import Mapping as MappingShape
from isotone.operations.request_validation import (
    detected,
    error_of,
    java_text,
    of_member,
    problem,
)
from isotone.operations.table_lookup import REQUIRED

Constraints: TypeAlias = Callable[[RefusedRequest], Iterator[str]]
"""The constraints of a member: yields the sentence of each that a request breaks."""

_FAILS: Final = "failed to satisfy constraint: "
_NAME, _SHORT, _LONG = NAME_CONSTRAINTS


def member(name: str) -> Constraints:
    """The constraints of a member, with the messages that all actions share."""

    def entry(asked: RefusedRequest) -> Iterator[str]:
        yield from of_member(asked.document, asked.shape.members[name])

    return entry


def placed(name: str) -> Constraints:
    """The constraints of a member without its value: "Value at 'Limit' failed …"."""

    def entry(asked: RefusedRequest) -> Iterator[str]:
        value = asked.document.get(name)
        shape = asked.shape.members[name].shape
        if value is not None:
            yield from (
                f"Value at '{name}' {_FAILS}{rule.sentence}"
                for rule in shape.constraints
                if not rule.holds(value)
            )

    return entry


def one_of(entry: Constraints) -> Constraints:
    """One broken constraint of a member: its length before its pattern, which is listed first."""

    def one(asked: RefusedRequest) -> Iterator[str]:
        yield from [*entry(asked)][-1:]

    return one


def empty_table_name(asked: RefusedRequest) -> Iterator[str]:
    """An empty TableName, which these actions report before all other constraints."""
    if asked.document.get("TableName") == "":
        yield (f"Value at 'TableName' {_FAILS}Member must have length greater than or equal to 1")


def one_of_table_name(asked: RefusedRequest) -> Iterator[str]:
    """The first rule that a TableName breaks."""
    name = asked.document.get("TableName")
    if name is None:
        yield from member("TableName")(asked)
        return
    first = next((rule for rule in (_SHORT, _LONG, _NAME) if not rule.holds(name)), None)
    if first is not None:
        yield problem(f"'{name}'", "tableName", first.sentence)


def all_of_table_name(asked: RefusedRequest) -> Iterator[str]:
    """All rules that a TableName breaks."""
    name = asked.document.get("TableName")
    if name is None:
        yield from member("TableName")(asked)
    else:
        yield from _broken(name, "tableName", NAME_CONSTRAINTS)


def _broken(name: str, path: str, rules: tuple[Constraint, ...]) -> Iterator[str]:
    for rule in rules:
        if not rule.holds(name):
            yield problem(f"'{name}'", path, rule.sentence)


def return_values(asked: RefusedRequest) -> Iterator[str]:
    """A ReturnValues that does not exist; the misspelt value is AWS's."""
    if any(True for _ in member("ReturnValues")(asked)):
        yield (
            "Failed to satisfy constraint: Member must satisfy enum value set: "
            "[ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
        )


def returned_by_put_or_delete(asked: RefusedRequest) -> Iterator[str]:
    """A ReturnValues that exists, but not for a put or a delete."""
    if asked.document.get("ReturnValues") in ("ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"):
        yield "ReturnValues can only be ALL_OLD or NONE"


# Batches


def request_items(asked: RefusedRequest) -> Iterator[str]:
    """RequestItems without any table."""
    if asked.document.get("RequestItems") == {}:
        yield (
            f"Value at 'RequestItems' {_FAILS}Member must have length greater than or equal to 1"
        )


def keys_of_entries(asked: RefusedRequest) -> Iterator[str]:
    """The Keys of a table in BatchGetItem: none, or too many."""
    shape = asked.shape.members["RequestItems"].shape
    assert isinstance(shape, MappingShape)
    assert isinstance(shape.value, StructureShape)
    rules = shape.value.members["Keys"].shape.constraints
    for table, entry in (asked.document.get("RequestItems") or {}).items():
        keys = entry.get("Keys")
        for rule in rules:
            if keys is not None and not rule.holds(keys):
                yield f"Value at 'RequestItems.{table}.member.Keys' {_FAILS}{rule.sentence}"


_NAMES_OF_ENTRIES: Final = (
    "Map keys must satisfy constraint: "
    f"[{', '.join(rule.sentence for rule in (_LONG, _SHORT, _NAME))}]"
)


def names_as_json(asked: RefusedRequest) -> Iterator[str]:
    """Names in RequestItems that no table can have; the message shows the request as JSON."""
    items = asked.document.get("RequestItems") or {}
    if not all(rule.holds(name) for name in items for rule in NAME_CONSTRAINTS):
        shown = msgspec.json.encode(items, order="sorted").decode()
        yield problem(f"'{shown}'", "requestItems", _NAMES_OF_ENTRIES)


def names_as_java(asked: RefusedRequest) -> Iterator[str]:
    """The same, shown as Java prints objects."""
    items = asked.document.get("RequestItems") or {}
    if not all(rule.holds(name) for name in items for rule in NAME_CONSTRAINTS):
        shown = java_text(items, asked.shape.members["RequestItems"].shape)
        yield problem(f"'{shown}'", "requestItems", _NAMES_OF_ENTRIES)


# Transactions


def transact_items(asked: RefusedRequest) -> Iterator[str]:
    """The number of entries."""
    items, shape = asked.document.get("TransactItems"), asked.shape.members["TransactItems"].shape
    for rule in shape.constraints if items is not None else ():
        if not rule.holds(items):
            yield problem(f"'{java_text(items, shape)}'", "transactItems", rule.sentence)


def names_of_entries(asked: RefusedRequest) -> Iterator[str]:
    """Names of tables in the entries of a transaction."""
    for number, entry in enumerate(asked.document["TransactItems"], 1):
        for kind, content in entry.items():
            path = f"transactItems.{number}.member.{kind[0].lower()}{kind[1:]}.tableName"
            yield from _broken(content["TableName"], path, (_SHORT, _LONG, _NAME))


# Layers


def alone(*entries: Constraints) -> Check:
    """The first broken constraint, reported as a list of one."""

    def check(asked: RefusedRequest) -> None:
        for entry in entries:
            for sentence in entry(asked):
                raise detected(sentence)

    return check


def bare(entry: Constraints) -> Check:
    """The first broken constraint, reported without a list."""

    def check(asked: RefusedRequest) -> None:
        for sentence in entry(asked):
            raise ValidationException(sentence)

    return check


def listed(*entries: Constraints) -> Check:
    """All broken constraints in one list."""

    def check(asked: RefusedRequest) -> None:
        sentences = [sentence for entry in entries for sentence in entry(asked)]
        if sentences:
            raise detected(*sentences)

    return check


def listed_as_before(entry: Constraints) -> Check:
    """Faults in the table name, then all constraints of all other members, with the messages from before 2026."""

    def others(asked: RefusedRequest) -> Iterator[str]:
        for each in asked.shape.listed:
            if each.name != "TableName":
                yield from of_member(asked.document, each)

    return listed(entry, others)


def all_members(asked: RefusedRequest) -> None:
    """All constraints of all members in one list, as before 2026."""
    error = error_of(asked.document, asked.shape)
    if error is not None:
        raise error


def all_members_if_not_decoded(*within: str) -> Check:
    """All constraints of all members in one list, if the newer checks cannot decode the request.

    They cannot if a required member is absent, or if there is another number in place of an `int`. With `within`, also
    if a required member is absent in the structures of these maps.
    """

    def check(asked: RefusedRequest) -> None:
        members = asked.shape.members.values()
        if any(
            (each.required and each.name not in asked.document)
            or _is_no_int(each, asked.given.get(each.name))
            or (
                each.name in within
                and any(" null " in found for found in of_member(asked.document, each))
            )
            for each in members
        ):
            all_members(asked)

    return check


def _is_no_int(member: MemberShape, value: Any) -> bool:
    is_int = isinstance(member.shape, Scalar) and member.shape.java == "Integer"
    return is_int and (
        isinstance(value, float) or (isinstance(value, int) and not _INT[0] <= value <= _INT[1])
    )


_INT: Final = (-(2**31), 2**31 - 1)


def control_name(asked: RefusedRequest) -> None:
    """The TableName of a control-plane action, which has its own messages."""
    check_last(asked.document, asked.shape)


def control_name_is_there(asked: RefusedRequest) -> None:
    """TableName is present."""
    if asked.document.get("TableName") is None:
        raise ValidationException(REQUIRED.format(member="TableName"))
