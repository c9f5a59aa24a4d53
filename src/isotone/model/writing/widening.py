"""Widening: numbers that outgrow the width of their key get a larger one, while the table is in use.

    class Issue(Entity, table=repos):
        number: Attr[int] = field(max=9_999_999, was=99_999)       # 1. declare, in all programs
        ...
    store.widen(Issue, progress=print)                             # 2. rewrite
                                                                   # 3. switch: take `was` out again

From the first step on entities are read under either key (`get`, `all`, `first`, `count`), and brought
under the new one before they are written. The second reads the whole table, and rewrites what it finds
under a former key, each item in a transaction of its own. It keeps its place in the table, and goes on
from there when it is called again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from isotone.clock import Clock
from isotone.errors import AlreadyExists, UsageError
from isotone.expressions import Condition as CompiledCondition
from isotone.expressions import nodes
from isotone.model.declaring.conditions import Condition, all_of
from isotone.model.declaring.former import former_form, former_key, former_of
from isotone.model.reading.bounds import bounds
from isotone.model.reading.queries import Query, Read
from isotone.model.rendering import expressions
from isotone.model.steps import Call, Steps
from isotone.model.writing.carrying import rewrite
from isotone.model.writing.rewriting import rewritten
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")
Q = TypeVar("Q", bound=Read[Any])

MARK: Final = "_widening"
_COUNTS: Final = ("seen", "rewritten", "conflicts")
_ITEMS_A_PAGE: Final = 200  # after which the place is kept


@dataclass(frozen=True, slots=True)
class Widened:
    """How far a widening is: entities seen, and those rewritten of them.

    `conflicts` counts those left under their former key, because the new one has an item already.
    """

    seen: int = 0
    rewritten: int = 0
    conflicts: int = 0
    is_complete: bool = False


WideningProgress = Callable[[Widened], None]


def widen(
    entity: type[Entity], clock: Clock, progress: WideningProgress | None = None
) -> Steps[Widened]:
    """Rewrite all entities of a kind whose keys still have their former width.

    Cost: a scan of the table, and a transaction for each entity rewritten. Where it was stopped it goes
    on when it is called again. Raises `UsageError` where no field of a key declares `was`.
    """
    schema = entity.__schema__
    if former_of(schema) is None:
        raise UsageError(
            f"no key of {schema.tag} is being widened; declare field(max=<new>, was=<former>) first"
        )
    state, place = yield from _load(schema)
    while True:
        response = yield Call("Scan", _page(schema, place))
        for item in response["Items"]:
            state = yield from _rewrite(schema, item, state, clock)
        place = response.get("LastEvaluatedKey")
        state = replace(state, is_complete=place is None)
        yield from _save(schema, state, place)
        if progress is not None:
            progress(state)
        if place is None:
            return state


def _rewrite(schema: EntitySchema, item: Item, state: Widened, clock: Clock) -> Steps[Widened]:
    state = replace(state, seen=state.seen + 1)
    if _is_as_declared(schema, item):
        return state
    key = {each.name: item[each.name] for each in schema.table.keys.attributes}
    try:
        was_there = yield from rewrite(schema, key, item, clock)
    except AlreadyExists:
        return replace(state, conflicts=state.conflicts + 1)
    return replace(state, rewritten=state.rewritten + was_there)


def _is_as_declared(schema: EntitySchema, item: Item) -> bool:
    fresh = rewritten(schema, schema.upgraded(item))
    names = {slot.attribute.name for key in schema.keys.values() for slot in key.slots}
    return all(fresh.get(name) == item.get(name) for name in names)


def _page(schema: EntitySchema, place: Item | None) -> dict[str, Any]:
    tag = nodes.Path((schema.table.tag,))
    kind = nodes.Comparison("=", tag, nodes.Literal({"S": schema.tag}))
    request = {
        "TableName": schema.table.name,
        "Limit": _ITEMS_A_PAGE,
        "ConsistentRead": True,
        **expressions(FilterExpression=kind),
    }
    return request if place is None else {**request, "ExclusiveStartKey": place}


# The place where it goes on


def _load(schema: EntitySchema) -> Steps[tuple[Widened, Item | None]]:
    if not _keeps_its_place(schema):
        return Widened(), None
    request = {"TableName": schema.table.name, "Key": _key(schema), "ConsistentRead": True}
    item = (yield Call("GetItem", request)).get("Item")
    if item is None:
        return Widened(), None
    seen, done, conflicts = (int(item[name]["N"]) for name in _COUNTS)
    return Widened(seen, done, conflicts), item["place"]["M"]


def _save(schema: EntitySchema, state: Widened, place: Item | None) -> Steps[None]:
    """Keep the place, or forget it at the end."""
    if not _keeps_its_place(schema):
        return
    table, key = {"TableName": schema.table.name}, _key(schema)
    if place is None:
        yield Call("DeleteItem", {**table, "Key": key})
        return
    item: Item = {
        **key,
        schema.table.tag: {"S": MARK},
        "place": {"M": place},
        **{name: {"N": str(getattr(state, name))} for name in _COUNTS},
    }
    yield Call("PutItem", {**table, "Item": item})


def _keeps_its_place(schema: EntitySchema) -> bool:
    return all(each.type == "S" for each in schema.table.keys.attributes)


def _key(schema: EntitySchema) -> Item:
    partition, *sort = schema.table.keys.attributes
    text = f"{MARK}#{schema.tag}"
    return {partition.name: {"S": text}, **{each.name: {"S": MARK} for each in sort}}


# Reading under either key


def get_former(schema: EntitySchema, key: Item, *, consistent: bool) -> Steps[Item | None]:
    """The item under its former key; None where there is none, or no key is being widened."""
    former = former_key(schema, key)
    if former is None:
        return None
    request: dict[str, Any] = {"TableName": schema.table.name, "Key": former}
    if consistent:
        request["ConsistentRead"] = True
    item: Item | None = (yield Call("GetItem", request)).get("Item")
    return item


def former_query(read: Read[E]) -> Query[E] | None:
    """The same query of the key as it was; None where it is not being widened."""
    if not isinstance(read, Query) or len(read.keys) != 1:
        return None
    former = former_form(read.keys[0])
    if former is None:
        return None
    query = replace(whole(read), keys=(former,))
    return replace(query, bounds=bounds(former, read.asked))


def whole(read: Q) -> Q:
    """All that a read covers: keys of two widths lie there in no order, so none of them can be the first."""
    return replace(read, selected=None, most_results=None)


def _is_about_widened(condition: Condition) -> bool:
    return any(field.options.was is not None for field in condition.fields())


def check_settled(read: Read[Any]) -> None:
    """Refuse a read in key order, piece by piece, of keys of two widths."""
    if isinstance(read, Query) and any(map(former_form, read.keys)):
        raise UsageError(
            f"{read.name} is being widened, so its keys have two widths and no common order; until "
            "store.widen(…) is through and `was` is taken out, read it with all, first or count"
        )


def merged(read: Query[E], former: Iterable[E], present: Iterable[E]) -> list[E]:
    """What was read under either key, each entity once, in the order of the present key.

    The former has to be read first: then nothing that moves in between is missed.
    """
    (schema,) = read.schemas
    found = {_place(schema, each.__dict__): each for group in (former, present) for each in group}
    entities = list(found.values())
    held = all_of(tuple(each for each in read.asked if _is_about_widened(each)))
    if held is not None:
        matches = CompiledCondition.from_node(held.node()).matches
        entities = [each for each in entities if matches(schema.to_item(each.__dict__), {})]
    for slot in reversed(read.keys[0].sort):
        for component in reversed(slot.components):
            entities.sort(
                key=attrgetter(component.field.name),
                reverse=component.descending != read.backward,
            )
    return entities if read.most_results is None else entities[: read.most_results]


def _place(schema: EntitySchema, values: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(schema.primary_key(values), order="sorted")
