"""Physical keys: where an item, or its entry in an index, lies.

    table entry   hash(partition) · partition · sort
    index entry   hash(partition parts) · partition parts · sort parts · table partition · table sort

Each component is encoded so that it delimits itself and sorts like its value (`codec`). From this
follows that a Scan comes in hash order, that a parallel segment is a range of hashes, that an item
collection is one contiguous range, and that entries with equal index keys live side by side.

A `Keyspace` answers in AWS's words when the attributes it is given do not make a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from isotone import limits
from isotone.codec import after, encode_text, encoder_for, partition_prefix, prefix_range
from isotone.engine.schema import KeyPart, KeySchema
from isotone.errors import ValidationException
from isotone.expressions import KeyRange
from isotone.values.attributes import AttributeValue, Item, canonical_item
from isotone.values.size import value_size

MISMATCH = "The provided key element does not match the schema"
_CONDITION_TYPE = (
    "One or more parameter values were invalid: Condition parameter type does not match schema type"
)
_EMPTY = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute "
    "cannot contain an empty {kind} value. Key: {name}"
)
_SHORT = limits.SORT_KEY_SIZE // 4  # characters that are under every limit in any encoding
_KINDS = {"S": "string", "B": "binary"}

_Component = tuple[str, str, Callable[[str], bytes]]  # an attribute: name, type, encoder

Bounds = tuple[bytes, bytes | None]
"""`low <= key < high`; None is the end of the tree."""


class Keyspace:
    """The physical keys of one table or index."""

    __slots__ = ("_encoders", "_partition", "_single", "_sort", "_text_names", "schema")

    def __init__(self, schema: KeySchema) -> None:
        self.schema = schema
        self._partition = [_component(part) for part in schema.partition]
        self._sort = [_component(part) for part in schema.sort]
        self._encoders = self._partition + self._sort
        self._single = len(self._partition) == 1 and len(self._sort) < 2
        texts = self._single and all(part.type == "S" for part in schema.parts)
        self._text_names = schema.names if texts else ()

    def key(self, item: Mapping[str, AttributeValue]) -> bytes:
        """The key of a canonical item that has all key attributes."""
        if self._single:
            name, kind, encode = self._partition[0]
            key = partition_prefix(encode(item[name][kind]))
            for name, kind, encode in self._sort:
                key += encode(item[name][kind])
            return key
        head = b"".join([encode(item[name][kind]) for name, kind, encode in self._partition])
        tail = b"".join([encode(item[name][kind]) for name, kind, encode in self._sort])
        return partition_prefix(head) + tail

    def suffix(self, item: Mapping[str, AttributeValue]) -> bytes:
        """The key without its hash: what an index entry of this table's item ends with."""
        return b"".join([encode(item[name][kind]) for name, kind, encode in self._encoders])

    def has_key(self, item: Mapping[str, AttributeValue]) -> bool:
        """Whether an item carries every key attribute with its declared type, neither empty nor too long."""
        for name, kind, _ in self._encoders:
            value = item.get(name)
            text = None if value is None else value.get(kind)
            if not text or (len(text) > _SHORT and not self._fits(item)):
                return False
        return True

    def _fits(self, item: Mapping[str, AttributeValue]) -> bool:
        for parts, limit in (
            (self.schema.partition, limits.PARTITION_KEY_SIZE),
            (self.schema.sort, limits.SORT_KEY_SIZE),
        ):
            if any(part.name in item and value_size(item[part.name]) > limit for part in parts):
                return False
        return True

    def requested_key(self, key: dict[str, Any]) -> tuple[bytes, Item]:
        """The physical key and the canonical attributes of a request's `Key`."""
        physical = self._plain_key(key)
        if physical is not None:
            return physical, key
        canonical, _ = canonical_item(key)
        if len(canonical) != len(self._encoders):
            raise ValidationException(MISMATCH)
        for part in self.schema.parts:
            value = canonical.get(part.name)
            if value is None or part.type not in value:
                raise ValidationException(MISMATCH)
        self.check_values(canonical)
        return self.key(canonical), canonical

    def _plain_key(self, key: dict[str, Any]) -> bytes | None:
        """The physical key of a `Key` that is short strings only, as most are; None for any other."""
        if len(key) != len(self._text_names):
            return None
        physical = b""
        for name in self._text_names:
            value = key.get(name)
            if value is None or len(value) != 1:
                return None
            text = value.get("S")
            if type(text) is not str or not 0 < len(text) <= _SHORT:
                return None
            # The hash goes over the partition part alone, which comes first and is one attribute.
            physical = (
                physical + encode_text(text) if physical else partition_prefix(encode_text(text))
            )
        return physical or None

    def check_item(self, item: Item) -> None:
        """Refuse an item that lacks a key attribute, or has one of another type, or an empty one."""
        for name, kind, _ in self._encoders:
            value = item.get(name)
            if value is None:
                raise ValidationException(
                    f"One or more parameter values were invalid: Missing the key {name} in the item"
                )
            if kind not in value:
                raise ValidationException(
                    f"One or more parameter values were invalid: Type mismatch for key {name} "
                    f"expected: {kind} actual: {next(iter(value))}"
                )
        self.check_values(item)

    def check_values(self, item: Mapping[str, AttributeValue]) -> None:
        """Refuse key attributes that are empty or too long."""
        for name, kind, _ in self._encoders:
            text = item[name][kind]
            if not text:
                raise ValidationException(_EMPTY.format(kind=_KINDS[kind], name=name))
            if len(text) > _SHORT:
                self._check_size(item)

    def _check_size(self, item: Mapping[str, AttributeValue]) -> None:
        for part in self.schema.partition:
            if value_size(item[part.name]) > limits.PARTITION_KEY_SIZE:
                raise ValidationException(
                    "One or more parameter values were invalid: Size of hashkey has exceeded "
                    f"the maximum size limit of{limits.PARTITION_KEY_SIZE} bytes"
                )
        if sum(value_size(item[part.name]) for part in self.schema.sort) > limits.SORT_KEY_SIZE:
            raise ValidationException(
                "One or more parameter values were invalid: Aggregated size of all range keys has "
                f"exceeded the size limit of {limits.SORT_KEY_SIZE} bytes"
            )

    def check_condition(self, keys: KeyRange) -> None:
        """Refuse a key condition whose values are not of the key's types, or empty."""
        equal = keys.partition + keys.equal
        for component, value in zip(self._encoders, equal, strict=False):
            _check_operand(component, value)
        for value in keys.operands:  # all of the attribute that follows
            _check_operand(self._encoders[len(equal)], value)

    def prefix(self, partition: Sequence[AttributeValue]) -> bytes:
        """What every key of one item collection begins with."""
        components = zip(partition, self._partition, strict=True)
        return partition_prefix(
            b"".join([encode(value[kind]) for value, (_, kind, encode) in components])
        )

    def bounds(self, keys: KeyRange) -> Bounds:
        """The range `[low, high)` of entries that a key condition selects."""
        base = self.prefix(keys.partition)
        for value, (_, kind, encode) in zip(keys.equal, self._sort, strict=False):
            base += encode(value[kind])
        if keys.operator is None:
            return base, after(base)
        if keys.operator == "begins_with":
            low, high = prefix_range(keys.operands[0])
            return base + low, base + high
        _, kind, encode = self._sort[len(keys.equal)]
        ends = [base + encode(operand[kind]) for operand in keys.operands]
        return _BOUNDS[keys.operator](base, ends)


_BOUNDS: dict[str, Callable[[bytes, list[bytes]], Bounds]] = {
    "<": lambda base, ends: (base, ends[0]),
    "<=": lambda base, ends: (base, after(ends[0])),
    ">": lambda base, ends: (after(ends[0]), after(base)),
    ">=": lambda base, ends: (ends[0], after(base)),
    "BETWEEN": lambda base, ends: (ends[0], after(ends[1])),
}


def _component(part: KeyPart) -> _Component:
    return part.name, part.type, encoder_for(part.type)


def _check_operand(component: _Component, value: AttributeValue) -> None:
    name, kind, _ = component
    text = value.get(kind)
    if text is None:
        raise ValidationException(_CONDITION_TYPE)
    if not text:
        raise ValidationException(_EMPTY.format(kind=_KINDS[kind], name=name))
