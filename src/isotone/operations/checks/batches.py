"""The checks of batches and transactions, one layer each for `orders`; the rules are in `batches`, `transactions`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isotone.errors import ValidationException
from isotone.expressions import check_placeholders
from isotone.expressions.messages import EMPTY
from isotone.operations import batches, legacy, transactions
from isotone.operations.checks.first_fault import Check, RefusedRequest
from isotone.operations.checks.values import check_content
from isotone.operations.request_expressions import (
    Binding,
    check_mixed,
    check_names_are_used,
    given,
)
from isotone.operations.table_lookup import open_table
from isotone.values.attribute_validation import EMPTY_NAME


def _each(check_entry: Callable[[Any], object]) -> Check:
    """A check of each table's entry in a BatchGetItem."""

    def check(asked: RefusedRequest) -> None:
        for entry in asked.request.request_items.values():
            check_entry(entry)

    return check


def _names(entry: Any) -> None:
    if "" in (entry.attributes_to_get or ()):
        raise ValidationException(EMPTY_NAME)


def _expression(entry: Any) -> None:
    if entry.projection_expression == "":
        raise ValidationException(f"Invalid ProjectionExpression: {EMPTY}")


attributes_have_names: Check = _each(_names)
"""No name in AttributesToGet is empty."""
expressions_are_not_empty: Check = _each(_expression)
"""No ProjectionExpression is empty."""
names_have_expressions: Check = _each(lambda entry: check_names_are_used(entry, batches.BATCH_GET))
"""ExpressionAttributeNames need an expression."""
placeholders_are_well_formed: Check = _each(
    lambda entry: check_placeholders(entry.expression_attribute_names, None)
)
"""The keys of ExpressionAttributeNames, and the names, have the right form."""
attributes_differ: Check = _each(
    lambda entry: legacy.refuse_repeated_names(entry.attributes_to_get or ())
)
"""No name occurs twice in AttributesToGet."""
projections_are_sound: Check = _each(
    lambda entry: Binding(entry.expression_attribute_names, None).projection(
        entry.projection_expression
    )
)
"""Each ProjectionExpression is valid by itself."""
placeholders_are_used: Check = _each(batches.projection_of)
"""Every placeholder is used."""


def entries_are_not_mixed(asked: RefusedRequest) -> None:
    """No entry has both parameters, and entries do not mix them."""
    entries = asked.request.request_items.values()
    for entry in entries:
        check_mixed(
            given(entry, batches.BATCH_GET.legacy), given(entry, batches.BATCH_GET.expressions)
        )
    batches.check_entries_are_not_mixed(entries)


def keys_are_few(asked: RefusedRequest) -> None:
    """There are not too many keys over all tables."""
    batches.check_count_of_keys(asked.request)


def keys_are_written_once(asked: RefusedRequest) -> None:
    """No key is written twice. Keys that are equal but spelled differently are found when the table is read."""
    for entry in asked.request.request_items.values():
        for place, key in enumerate(entry.keys):
            if key in entry.keys[:place]:
                raise ValidationException(batches.DUPLICATES)


def tables_exist(asked: RefusedRequest) -> None:
    """Each table exists."""
    for name in asked.request.request_items:
        open_table(asked.engine, name)


def keys_fit(asked: RefusedRequest) -> None:
    """Each key fits its table, and none occurs twice."""
    for name, entry in asked.request.request_items.items():
        batches.keys_of(asked.engine, name, entry)


def _writes(asked: RefusedRequest) -> Iterator[batches.WriteRequest]:
    for writes in asked.request.request_items.values():
        yield from writes


def writes_are_sound(asked: RefusedRequest) -> None:
    """Each write is either a put or a delete, with a valid item or key."""
    for write in _writes(asked):
        batches.check_write(write)
        if write.put_request is not None:
            check_content(write.put_request.item, sized=True)
        elif write.delete_request is not None:
            check_content(write.delete_request.key, sized=False)


def writes_are_few(asked: RefusedRequest) -> None:
    """There are not too many writes over all tables."""
    batches.check_count_of_writes(asked.request)


def entries_have_one_action(asked: RefusedRequest) -> None:
    """Each entry of a transaction is exactly one put, update, delete or check."""
    for entry in asked.request.transact_items:
        transactions.entry_of(entry)
