"""From a query to the request that is sent, and from the items that come back to the entities meant.

The request holds all that DynamoDB can judge. Three things it cannot, or not without cost, are judged
here: an item of another kind in the same collection, a bound that BETWEEN includes, an expired item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from isotone.errors import MalformedKey, UsageError
from isotone.expressions import nodes
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.keys import BoundKey
from isotone.model.declaring.schema import VERSION_ATTRIBUTE, EntitySchema
from isotone.model.reading.bounds import KeyBounds
from isotone.model.reading.intervals import Restriction, text_of
from isotone.model.reading.projecting import key_attributes, projected_attributes, projected_fields
from isotone.model.rendering import conjunction, expressions, unexpired
from isotone.values.types import AttributeValue, Item

if TYPE_CHECKING:
    from isotone.model.entity import Entity
    from isotone.model.reading.patterns import Query, Read, Scan

Found = tuple["Entity", Item]


def query(read: Query[Any]) -> dict[str, Any]:
    """The Query request of a query; raises `UsageError` for one that is known to find nothing."""
    if read.is_empty:
        raise UsageError(f"the conditions on {read.name} exclude one another, so nothing is asked")
    request = _request(read)
    if read.backward:
        request["ScanIndexForward"] = False
    return request


def scan(read: Scan[Any]) -> dict[str, Any]:
    """The Scan request of a scan."""
    request = _request(read)
    if read.part is not None:
        request["Segment"], request["TotalSegments"] = read.part
    return request


def can_be_counted(read: Read[Any]) -> bool:
    """Whether the database can judge all that decides which items are meant.

    A filter of a query cannot look at the key that is queried by, nor one of a scan at the form of a key,
    which tells kinds apart that have no tag.
    """
    has = projected_attributes(read.table, read.index)
    judged = {read.table.tag} | {schema.by_role["expires"].attribute for schema in _mortal(read)}
    if has is not None and not has >= judged:
        return False
    bounds = _bounds(read)
    if bounds is None:
        return len(read.table.entities) == 1
    keyed = {each.name for each in read.table.layout(read.index).attributes}
    return not bounds.excluded and keyed.isdisjoint(judged)


def counting(read: Read[Any], now: float) -> dict[str, Any]:
    """The request that counts, with everything judged by the database."""
    request = dict(read.request())
    further = [_of_kind(read)]
    further += (
        []
        if read.with_expired
        else [unexpired(schema.by_role["expires"].attribute, now) for schema in _mortal(read)]
    )
    for name in ("ProjectionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"):
        request.pop(name, None)
    return {**request, **_expressions(replace(read, selected=None), further), "Select": "COUNT"}


class Selection:
    """Which items of a read are meant, and how they become entities."""

    def __init__(self, read: Read[Any]) -> None:
        self._table = read.table
        self._by_tag = {schema.tag: schema for schema in read.schemas}
        self._keyed = tuple(zip(read.schemas, read.keys, strict=True))
        self.is_whole = projected_attributes(read.table, read.index) is None
        self._is_alone = len(read.table.entities) == 1
        bounds = _bounds(read)
        self._excluded = () if bounds is None else bounds.excluded
        mortal = () if read.with_expired else _mortal(read)
        self._expiry = {schema.by_role["expires"].attribute for schema in mortal}
        self._only = {
            schema.tag: _wanted(read, schema, projected_fields(schema, key))
            for schema, key in self._keyed
        }

    def entities(self, items: Iterable[Item], now: float) -> Iterator[Found]:
        """The entities that are meant, each with its item."""
        for item in items:
            if self._excluded and self._is_excluded(item):
                continue
            if self._expiry and self._has_expired(item, now):
                continue
            schema = self._schema_of(item)
            if schema is not None:
                only = self._only[schema.tag]
                yield schema.from_item(item, only=only, is_whole=self.is_whole, insists=True), item

    def _schema_of(self, item: Item) -> EntitySchema | None:
        tag = item.get(self._table.tag)
        if tag is not None:
            return self._by_tag.get(tag.get("S", ""))
        # No tag: the table is older than the library, or the index does not project it.
        if self._is_alone:
            return self._keyed[0][0]
        return next((schema for schema, key in self._keyed if _fits(schema, key, item)), None)

    def _is_excluded(self, item: Item) -> bool:
        return any(text_of(item[name]) in texts for name, texts in self._excluded)

    def _has_expired(self, item: Item, now: float) -> bool:
        return any(has_expired(item.get(name), now) for name in self._expiry)


def has_expired(expiry: Any, now: float) -> bool:
    """Whether the value of a TimeToLive attribute says that its item is to be gone."""
    return expiry is not None and "N" in expiry and float(expiry["N"]) <= now


def _fits(schema: EntitySchema, key: BoundKey, item: Item) -> bool:
    """Whether the item's keys are of the form that the entity's are."""
    try:
        for slot in (*schema.primary.slots, *key.slots):
            slot.parse(item[slot.attribute.name])
    except (MalformedKey, KeyError):
        return False
    return True


def _wanted(
    read: Read[Any], schema: EntitySchema, available: frozenset[str] | None
) -> frozenset[str] | None:
    """The fields to be read of an item; None for all."""
    if read.selected is not None:
        return read.selected & schema.fields.keys()
    return available


def _mortal(read: Read[Any]) -> list[EntitySchema]:
    return [schema for schema in read.schemas if "expires" in schema.by_role]


# Requests


def _request(read: Read[Any]) -> dict[str, Any]:
    request: dict[str, Any] = {"TableName": read.table.name}
    if read.index is not None:
        request["IndexName"] = read.index
    request.update(_expressions(read))
    if read.items_a_page is not None:
        request["Limit"] = read.items_a_page
    if read.is_consistent:
        request["ConsistentRead"] = True
    request["ReturnConsumedCapacity"] = "TOTAL"
    return request


def _expressions(read: Read[Any], further: Sequence[nodes.ConditionNode] = ()) -> dict[str, Any]:
    bounds, paths = _bounds(read), _paths(read)
    if bounds is not None and not (further or read.filters or paths):
        return _of_key(bounds)
    return expressions(
        KeyConditionExpression=_key_node(read),
        FilterExpression=conjunction([*_filter_nodes(read), *further]),
        ProjectionExpression=None if paths is None else nodes.ProjectionNode(paths),
    )


def _bounds(read: Read[Any]) -> KeyBounds | None:
    """The bounds of a query; None for a scan."""
    return getattr(read, "bounds", None)


def _key_node(read: Read[Any]) -> nodes.ConditionNode | None:
    bounds = _bounds(read)
    if bounds is None:
        return None
    return conjunction([restriction.node() for restriction in bounds.restrictions])


def _of_key(bounds: KeyBounds) -> dict[str, Any]:
    """The members of a request that has no expression but its key condition.

    What the text says follows from attributes and operators alone, so it is written once for each
    kind of query.
    """
    shape = tuple((r.attribute, r.operator, len(r.operands)) for r in bounds.restrictions)
    operands = [operand for r in bounds.restrictions for operand in r.operands]
    values = {f":v{place}": operand for place, operand in enumerate(operands)}
    members = {**_of_shape(shape), "ExpressionAttributeValues": values}
    if "ExpressionAttributeNames" in members:  # a copy, which whoever gets the request may change
        members["ExpressionAttributeNames"] = dict(members["ExpressionAttributeNames"])
    return members


@lru_cache(maxsize=512)
def _of_shape(shape: tuple[tuple[str, str, int], ...]) -> dict[str, Any]:
    some: AttributeValue = {"S": ""}
    members = expressions(
        KeyConditionExpression=conjunction(
            [Restriction(name, operator, (some,) * count).node() for name, operator, count in shape]
        )
    )
    del members["ExpressionAttributeValues"]
    return members


def _filter_nodes(read: Read[Any]) -> Iterator[nodes.ConditionNode]:
    for condition in read.filters:
        yield _scoped(read, condition)


def _scoped(read: Read[Any], condition: Condition) -> nodes.ConditionNode:
    """A condition that only judges the entities whose fields it is on."""
    owner = owner_of(condition, read.schemas)
    if len(read.schemas) == 1:
        return condition.node()
    of_another = nodes.Comparison("<>", _tag_path(read), nodes.Literal({"S": owner.tag}))
    return nodes.Or((of_another, condition.node()))


def _of_kind(read: Read[Any]) -> nodes.ConditionNode:
    tags = tuple(nodes.Literal({"S": schema.tag}) for schema in read.schemas)
    untagged = nodes.Call("attribute_not_exists", (_tag_path(read),))
    return nodes.Or((nodes.In(_tag_path(read), tags), untagged))


def _tag_path(read: Read[Any]) -> nodes.Path:
    return nodes.Path((read.table.tag,))


def _paths(read: Read[Any]) -> tuple[nodes.Path, ...] | None:
    """The attributes to bring: the selected ones, and those that reading itself needs."""
    has = projected_attributes(read.table, read.index)
    is_upgraded = has is None and any(schema.version > 1 for schema in read.schemas)
    if read.selected is None or is_upgraded:
        return None  # an upgrade looks at the whole item
    names = dict.fromkeys(_own_attributes(read, has))
    for schema, key in zip(read.schemas, read.keys, strict=True):
        there = projected_fields(schema, key)
        for name in sorted(read.selected & schema.fields.keys()):
            attribute = schema.fields[name].attribute
            # What a local index does not have is fetched from the table; a key tells the rest.
            if has is None or attribute in has or (there is not None and name not in there):
                names[attribute] = None
    return tuple(nodes.Path((name,)) for name in names)


def _own_attributes(read: Read[Any], has: frozenset[str] | None) -> list[str]:
    """The attributes that reading itself needs, as far as an index has them."""
    names = [*key_attributes(read.table, read.index), read.table.tag, VERSION_ATTRIBUTE]
    names += [schema.by_role["expires"].attribute for schema in _mortal(read)]
    return [name for name in names if has is None or name in has]


# Whose fields a condition is on


def owner_of(condition: Condition, schemas: tuple[EntitySchema, ...]) -> EntitySchema:
    """The schema, among those read, whose fields a condition is on."""
    if not isinstance(condition, Condition):
        raise UsageError(f"{condition!r} is no condition; write one such as Order.number == 157")
    fields = list(condition.fields())
    for schema in schemas:
        if all(schema.fields.get(each.name) is each for each in fields):
            return schema
    names = ", ".join(dict.fromkeys(each.name for each in fields))
    raise UsageError(
        f"the condition is on {names}, which {'is' if len(fields) == 1 else 'are'} not of "
        f"{titles(schemas)}; use that class's own fields"
    )


def titles(schemas: tuple[EntitySchema, ...]) -> str:
    """The names of the entities, for a message."""
    return " or ".join(schema.entity.__name__ for schema in schemas)
