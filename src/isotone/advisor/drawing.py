"""`isotone.draw`: chooses which collections and items of tables a drawing has, and marks what a query reads."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, overload

from isotone.advisor.collection_drawing import CollectionDrawing
from isotone.advisor.drawn_collections import (
    DrawnCollection,
    DrawnItem,
    DrawnKeyPart,
    DrawnView,
    Gap,
    KeyParts,
    State,
)
from isotone.advisor.key_names import KeyNames
from isotone.advisor.read_plan import ReadPlan, plan_of_read
from isotone.advisor.table_sample import (
    DEFAULT_SAMPLE,
    TableSample,
    collections,
    in_order,
    read_sample,
)
from isotone.errors import UsageError
from isotone.inference import is_own
from isotone.model import (
    AsyncStore,
    Calls,
    Entity,
    EntitySchema,
    Pattern,
    Read,
    Steps,
    Store,
    Table,
)
from isotone.tables.description import KeyDescription
from isotone.values.types import Item

MOST_ITEMS: Final = 12
MOST_COLLECTIONS: Final = 5

Drawn = Table | type[Entity] | Pattern[Any] | Read[Any] | str


@overload
def draw(
    store: Store,
    what: Drawn,
    *,
    tables: Iterable[Table] = (),
    items: int = MOST_ITEMS,
    collections: int = MOST_COLLECTIONS,
    attributes: Iterable[str] = (),
    sample: int = DEFAULT_SAMPLE,
) -> CollectionDrawing: ...
@overload
def draw(
    store: AsyncStore,
    what: Drawn,
    *,
    tables: Iterable[Table] = (),
    items: int = MOST_ITEMS,
    collections: int = MOST_COLLECTIONS,
    attributes: Iterable[str] = (),
    sample: int = DEFAULT_SAMPLE,
) -> Coroutine[Any, Any, CollectionDrawing]: ...
@overload
def draw(
    store: Calls,
    what: Drawn,
    *,
    tables: Iterable[Table] = (),
    items: int = MOST_ITEMS,
    collections: int = MOST_COLLECTIONS,
    attributes: Iterable[str] = (),
    sample: int = DEFAULT_SAMPLE,
) -> Steps[CollectionDrawing]: ...
def draw(
    store: Any,
    what: Drawn,
    *,
    tables: Iterable[Table] = (),
    items: int = MOST_ITEMS,
    collections: int = MOST_COLLECTIONS,
    attributes: Iterable[str] = (),
    sample: int = DEFAULT_SAMPLE,
) -> Any:
    """Draw item collections: a table with its indexes, one of its keys, or a query with the range that it reads.

    `what` is a `Table`, the name of a table, an entity, a key such as `Order.by_status`, or a query. At most
    `collections` collections with `items` items each are shown, and of each item the `attributes`, or its first ones.
    `tables` name the parts of keys if `what` is a name. Reads `sample` items by a scan. With an `AsyncStore`, await the
    result.

    >>> drawing = isotone.draw(store, Order.by_status.where(Order.customer_id == "2b5a41c0"))
    >>> drawing.views[0].title
    'GSI1'
    """
    if not hasattr(store, "run"):
        raise UsageError(f"{store!r} is not a store; make one by isotone.connect(…)")
    for name, value in (("items", items), ("collections", collections), ("sample", sample)):
        if type(value) is not int or value < 1:
            raise UsageError(f"{name}={value!r} is not a number to draw; give 1 or more")
    return store.run(_drawn(what, tuple(tables), items, collections, tuple(attributes), sample))


def _drawn(
    what: Drawn,
    tables: tuple[Table, ...],
    items: int,
    groups: int,
    shown: tuple[str, ...],
    most: int,
) -> Steps[CollectionDrawing]:
    if isinstance(what, Read):
        contents = yield from read_sample(what.table.name, most)
        plan = plan_of_read(what, contents.shape)
        view = read_view(contents, plan, KeyNames([what.table, *tables], shown), items)
        return CollectionDrawing((view,))
    name, models, views = _target(what)
    contents = yield from read_sample(name, most)
    indexes = views if views is not None else (None, *(i.name for i in contents.shape.indexes))
    names = KeyNames([*models, *tables], shown)
    return CollectionDrawing(
        tuple(plain_view(contents, index, names, items, groups) for index in indexes)
    )


def _target(what: Any) -> tuple[str, list[Table], tuple[str | None, ...] | None]:
    """The name of a table, its model, and the views to draw; None for all."""
    if isinstance(what, str):
        return what, [], None
    if isinstance(what, Table):
        return what.name, [what], None
    if isinstance(what, Pattern):
        return what.schema.table.name, [what.schema.table], (what.key.index,)
    schema = getattr(what, "__schema__", None) if isinstance(what, type) else None
    if isinstance(schema, EntitySchema):
        return schema.table.name, [schema.table], (None,)
    raise UsageError(
        f"{what!r} cannot be drawn; give a Table, an entity, a key such as Order.primary, or a query"
    )


def plain_view(
    contents: TableSample, index: str | None, names: KeyNames, most: int, groups: int
) -> DrawnView:
    """A table or an index with its first collections."""
    key = contents.shape.key_of(index)
    entries = [entry for entry in contents.in_order(index) if not _is_own(key, entry)]
    found = list(collections(key, entries).values())
    drawn = tuple(
        _collection(contents, index, names, group, most, lambda _: "") for group in found[:groups]
    )
    hidden = len(found) - len(drawn) if contents.is_whole else None
    return _view(contents, index, drawn, hidden=hidden)


def read_view(
    contents: TableSample,
    plan: ReadPlan,
    names: KeyNames,
    most: int,
    known: Sequence[Item] | None = None,
) -> DrawnView:
    """The collections that a request reads, with its range marked. `known` are all entries of the range, if known."""
    index = plan.index
    key = contents.shape.key_of(index)
    entries = contents.in_order(index)
    if known is not None:
        entries = [entry for entry in entries if not plan.is_in_range(entry)]
        entries = in_order(contents.shape, index, [*entries, *known])
    read = {id(entry) for entry in plan.select_from(entries)}

    def state(entry: Item) -> State:
        if id(entry) not in read:
            return ""
        return "returned" if plan.keeps(entry) else "dropped"

    groups = {
        partition: each
        for partition, each in collections(key, entries).items()
        if not _is_own(key, each[0]) or (plan.operation != "Scan" and plan.is_in_partition(each[0]))
    }
    shown = [each for each in groups.values() if plan.is_in_partition(each[0])][:MOST_COLLECTIONS]
    names = names.with_first(() if plan.filter is None else plan.filter.attributes)
    drawn = tuple(
        _collection(
            contents,
            index,
            names,
            each,
            most,
            state,
            plan.place_in(each),
            is_range_whole=known is not None,
            is_whole=known is not None and not plan.terms,  # the range is the collection
        )
        for each in shown
    )
    hidden = len(groups) - len(drawn) if contents.is_whole else None
    direction = None if plan.operation != "Query" else "backward" if plan.backward else "forward"
    return _view(contents, index, drawn, hidden=hidden, direction=direction)


def _view(
    contents: TableSample,
    index: str | None,
    drawn: tuple[DrawnCollection, ...],
    *,
    hidden: int | None,
    direction: Any = None,
) -> DrawnView:
    shape = contents.shape
    key = shape.key_of(index)
    own = sum(_is_own(shape.key, item) for item in contents.items)
    absent = 0
    if index is not None and contents.is_whole and shape.index(index).kind == "global":
        absent = len(contents.items) - own - len(contents.entries(index))
    return DrawnView(
        shape.name,
        index,
        " · ".join(key.partition_names),
        " · ".join(key.sort_names),
        drawn,
        direction,
        hidden,
        max(absent, 0),
    )


def _collection(
    contents: TableSample,
    index: str | None,
    names: KeyNames,
    entries: Sequence[Item],
    most: int,
    state: Callable[[Item], State],
    empty_at: int | None = None,
    *,
    is_range_whole: bool = False,
    is_whole: bool = False,
) -> DrawnCollection:
    """A collection; `empty_at` is the position of its range if no item lies in it.

    `is_whole`: the entries are all of its items, though this is not seen from the sample. `is_range_whole`: they are
    all that are read.
    """
    shape = contents.shape
    key = shape.key_of(index)
    keys = {None: shape.key} | {each.name: each.key for each in shape.indexes}

    def joined(part: tuple[str, ...], item: Item) -> KeyParts:
        found: list[DrawnKeyPart] = []
        for name in part:
            found += [DrawnKeyPart(" · ")] if found else []
            found += names.parts(shape.name, index, name, item)
        return tuple(found)

    own = tuple(entries[0][part.name] for part in key.partition)
    is_whole = is_whole or contents.has_all_of(index, own)
    states = [state(entry) for entry in entries]
    place = None if any(states) else empty_at
    rows: list[DrawnItem | Gap] = []
    last = -1
    for position in [*_shown(states, most, place), len(entries)]:
        if place is not None and last < place <= position:
            if place > last + 1:
                rows.append(Gap(place - last - 1))
            rows.append(Gap(0))
            last = place - 1
        if position > last + 1:
            left_out = states[last + 1 : position]
            read = sum(map(bool, left_out))
            are_read = read == len(left_out)
            is_known = is_whole or (is_range_whole and are_read)
            unknown = Gap(None, read * are_read, least=len(left_out))
            rows.append(Gap(len(left_out), read) if is_known else unknown)
        if position < len(entries):
            entry = entries[position]
            rows.append(
                DrawnItem(
                    joined(key.sort_names, entry),
                    names.kind(shape.name, entry),
                    names.attributes(shape.name, index, keys, entry),
                    states[position],
                )
            )
        last = position
    if not is_whole:
        rows.append(Gap(None))
    # The first item that is read names the partition key: of a parent and its children, in every collection the same.
    named_by = entries[next((place for place, each in enumerate(states) if each), 0)]
    return DrawnCollection(joined(key.partition_names, named_by), tuple(rows))


def _shown(states: Sequence[State], most: int, empty_at: int | None) -> list[int]:
    """The positions of the items to show: first those in the range and their neighbours, then the others."""
    count = len(states)
    if count <= most:
        return [*range(count)]
    read = [position for position, state in enumerate(states) if state]
    first, last = (read[0], read[-1]) if read else (empty_at or 0, (empty_at or 0) - 1)
    wanted = [*range(first, last + 1)]
    if len(wanted) > most - 2:
        head = (most - 2 + 1) // 2
        wanted = [*wanted[:head], *wanted[len(wanted) - (most - 2 - head) :]]
    chosen = set(wanted)
    for distance in range(1, count + 1):
        for position in (first - distance, last + distance):
            if len(chosen) < most and 0 <= position < count:
                chosen.add(position)
    return sorted(chosen)


def _is_own(key: KeyDescription, entry: Item) -> bool:
    """Whether the library itself wrote an item, for its own records."""
    return is_own(entry[key.partition[0].name])
