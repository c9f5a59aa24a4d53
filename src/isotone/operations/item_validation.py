"""Checks items and keys against the schemas of table and indexes: "Type mismatch for key …", "Item size has exceeded …".

`request_validation` has already checked the form of the request. The engine only reports whether something fits; this
module finds the reason, on the slow path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from isotone import limits
from isotone.engine.layout import Keyspace
from isotone.engine.table_indexes import SecondaryIndex, StoredTable
from isotone.engine.table_schema import KeyPart, KeySchema
from isotone.errors import ApiError, ValidationException
from isotone.expressions import CompiledUpdate, KeyRange
from isotone.operations.request_expressions import Binding
from isotone.operations.vector_validation import check_vectors
from isotone.values.attribute_validation import AttributeValue, Item, canonical_item
from isotone.values.size import value_size

INVALID: Final = "One or more parameter values were invalid: "
TOO_LARGE: Final = "Item size has exceeded the maximum allowed size"
MISMATCH: Final = "The provided key element does not match the schema"
_EMPTY: Final = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute "
    "cannot contain an empty {kind} value. Key: {name}"
)
_KINDS: Final = {"S": "string", "B": "binary"}
_SIZES: Final = {
    "HASH": f"{INVALID}Size of hashkey has exceeded the maximum size limit of{{limit}} bytes",
    "RANGE": f"{INVALID}Aggregated size of all range keys has exceeded the size limit of {{limit}} bytes",
}
_INDEX_SIZES: Final = {"HASH": "hashkey", "RANGE": "rangekey"}


class Sentences(NamedTuple):
    """The messages for an attribute that cannot be an index key (wrong type, empty, too long), and for an item that is
    too large.
    """

    type: str
    empty: str
    size: str
    item_size: str


_PUT: Final = Sentences(
    type=f"{INVALID}Type mismatch for Index Key {{name}} "
    "Expected: {type} Actual: {actual} IndexName: {index}",
    empty="One or more parameter values are not valid. A value specified for a secondary index key "
    "is not supported. The AttributeValue for a key attribute cannot contain an empty {kind} value. "
    "IndexName: {index}, IndexKey: {name}",
    size=f"{INVALID}Size of {{key}} has exceeded the maximum size limit of{{limit}} bytes",
    item_size=TOO_LARGE,
)
_UPDATE: Final = Sentences(
    type=_PUT.type,
    empty="One or more parameter values are not valid. The update expression attempted to update "
    "a secondary index key to a value that is not supported. "
    "The AttributeValue for a key attribute cannot contain an empty {kind} value.",
    size="The update expression attempted to update the secondary index key "
    "beyond allowed size limits",
    item_size="Item size to update has exceeded the maximum allowed size",
)


_OF_REQUEST: Final = ("One or more parameter values are not valid. ", TOO_LARGE)


def check_update_size(update: CompiledUpdate | None, binding: Binding) -> None:
    """Refuse an update expression that is larger than an item may be, even if the resulting item is not."""
    size = None if update is None else update.size
    if size is None:
        return
    most = size.fixed + len(size.values) * binding.size
    if most > limits.ITEM_SIZE and size.with_values(binding.values) > limits.ITEM_SIZE:
        raise ValidationException(_UPDATE.item_size)


def is_of_request(error: ApiError) -> bool:
    """Whether an error refuses the whole request, even if it occurs in one entry of a transaction.

    This holds for an empty key value and for an item that is too large. A key of a wrong type, or an update that does
    not fit the stored item, cancels the transaction instead.
    """
    return error.message.startswith(_OF_REQUEST)


def requested_key(keyspace: Keyspace, key: dict[str, Any]) -> tuple[bytes, Item]:
    """The physical key and the canonical attributes of a request's `Key`."""
    if len(key) == keyspace.length:
        plain = keyspace.plain_key(key)
        if plain is not None:
            return plain, key
    canonical, _ = canonical_item(key)
    if not keyspace.fits(canonical) or len(canonical) != keyspace.length:
        raise _misfit(keyspace, canonical)
    return keyspace.key(canonical), canonical


def _misfit(keyspace: Keyspace, key: Item) -> ValidationException:
    """The error for a `Key` that does not fit a table: first for its number of attributes, then for each attribute."""
    schema = keyspace.schema
    if len(key) != keyspace.length:
        return ValidationException(MISMATCH)
    for part, kind, limit in _limited_parts(schema):
        value = key.get(part.name, {})
        if part.type not in value:
            return ValidationException(MISMATCH)
        error = _value_error(part, value, kind, limit)
        if error is not None:
            return error
    raise AssertionError("the key fits the table")


def _value_error(
    part: KeyPart, value: AttributeValue, kind: str, limit: int
) -> ValidationException | None:
    """The error for a key attribute of the right type that is empty or too long."""
    if not value[part.type]:
        return empty_key(part.name, part.type)
    if value_size(value) > limit:
        return ValidationException(_SIZES[kind].format(limit=limit))
    return None


def require_key(keyspace: Keyspace, item: Mapping[str, AttributeValue]) -> None:
    """Refuse an item whose key does not fit a table, with the messages of batches."""
    key = {name: item[name] for name in keyspace.schema.names if name in item}
    if not keyspace.fits(key):
        raise _misfit(keyspace, key)


def check_size(size: int) -> None:
    """Refuse a new item that is too large for any table."""
    if size > limits.ITEM_SIZE:
        raise ValidationException(TOO_LARGE)


def checked_key(table: StoredTable, item: Item, size: int) -> bytes:
    """The key of an item. Refuses an item that does not fit this table or one of its indexes."""
    key = table.keyspace.plain_key(item)
    if key is None:
        if not table.keyspace.fits(item):
            raise _key_error(table.keyspace, item)
        key = table.keyspace.key(item)
    if table.vectors:
        check_vectors(table, item, {}, _PUT.empty)
    _check(table, item, size, _PUT)
    return key


def check_updated(table: StoredTable, before: Item, item: Item, size: int) -> None:
    """Refuse an updated item that does not fit this table or one of its indexes."""
    if table.vectors:
        check_vectors(table, item, before, _UPDATE.empty)
    _check(table, item, size, _UPDATE)


def _check(table: StoredTable, item: Item, size: int, sentences: Sentences) -> None:
    for index in table.secondary:
        if not index.keyspace.accepts(item):
            # The service checks global indexes first.
            for each in sorted(table.secondary, key=lambda index: index.kind != "global"):
                _check_index(each, item, sentences)
    if table.local and size * (1 + len(table.local)) > limits.ITEM_SIZE:
        size = table.weight(item, size)
    if size > limits.ITEM_SIZE:
        raise ValidationException(sentences.item_size)


def _key_error(keyspace: Keyspace, item: Mapping[str, AttributeValue]) -> ValidationException:
    """The error for an item that does not fit the key of a table."""
    for part, kind, limit in _limited_parts(keyspace.schema):
        value = item.get(part.name)
        if value is None:
            return ValidationException(f"{INVALID}Missing the key {part.name} in the item")
        if part.type not in value:
            return ValidationException(
                f"{INVALID}Type mismatch for key {part.name} "
                f"expected: {part.type} actual: {next(iter(value))}"
            )
        error = _value_error(part, value, kind, limit)
        if error is not None:
            return error
    raise AssertionError("the item fits the key")


def key_value_error(keyspace: Keyspace, item: Mapping[str, AttributeValue]) -> ValidationException:
    """The error for key attributes of the right types, one of which is empty or too long."""
    return _key_error(keyspace, item)


def _limited_parts(schema: KeySchema) -> Iterator[tuple[KeyPart, str, int]]:
    """The attributes of a key, each with its kind and its largest size."""
    for part in schema.partition:
        yield part, "HASH", limits.PARTITION_KEY_SIZE
    for part in schema.sort:
        yield part, "RANGE", limits.SORT_KEY_SIZE


def empty_key(name: str, kind: str) -> ValidationException:
    """The error for an empty key value; `kind` is its type."""
    return ValidationException(_EMPTY.format(kind=_KINDS[kind], name=name))


def _check_index(index: SecondaryIndex, item: Item, sentences: Sentences) -> None:
    """Refuse an item with an attribute that cannot be an index key. A missing attribute is allowed."""
    for part, kind, limit in _limited_parts(index.schema.keys):
        value = item.get(part.name)
        if value is None:
            continue
        if part.type not in value:
            refusal = sentences.type
        elif not value[part.type]:
            refusal = sentences.empty
        elif value_size(value) > limit:
            refusal = sentences.size
        else:
            continue
        raise ValidationException(
            refusal.format(
                index=index.name,
                name=part.name,
                type=part.type,
                actual=next(iter(value)),
                kind=_KINDS.get(part.type),
                key=_INDEX_SIZES[kind],
                limit=limit,
            )
        )


def check_key_condition(keyspace: Keyspace, keys: KeyRange) -> None:
    """Refuse a key condition whose values are empty or have other types than the key."""
    parts = keyspace.parts
    equal = keys.partition + keys.equal
    for part, value in zip(parts, equal, strict=False):
        _check_operand(part, value)
    for value in keys.operands:  # all belong to the next attribute
        _check_operand(parts[len(equal)], value)


def check_compared(keyspace: Keyspace, name: str, value: AttributeValue) -> None:
    """Refuse a value that is compared with a key attribute but is empty or has another type."""
    for part in keyspace.schema.parts:
        if part.name == name:
            _check_operand(part, value)


def _check_operand(part: KeyPart, value: AttributeValue) -> None:
    text = value.get(part.type)
    if text is None:
        raise ValidationException(f"{INVALID}Condition parameter type does not match schema type")
    if not text:
        raise empty_key(part.name, part.type)
