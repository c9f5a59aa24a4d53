"""`delete_all` and `update_all`: delete or update every entity that a query finds; `BulkProgress`.

Each entity is written on its own, on the condition that it still matches the query: it has the same index key, and the
query's filters still hold. An entity that another program has changed meanwhile is left alone and counted as skipped.
An interrupted call can be made again; it finds what is left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isotone.errors import ConditionFailed, NotFound, UsageError
from isotone.expressions import nodes
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition, all_of
from isotone.model.expression_trees import conjunction, present, unchanged
from isotone.model.reading.families import FamilyQuery
from isotone.model.reading.item_selection import Found
from isotone.model.reading.queries import Read, owner_of
from isotone.model.reading.reader import Reader
from isotone.model.writing.change_validation import validated
from isotone.model.writing.put_and_delete import Delete
from isotone.model.writing.updates import Update
from isotone.model.writing.write import Write, condition_node, place_of
from isotone.tables.scan import decoded
from isotone.tables.steps import Steps, Together

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema

Execute = Callable[[Write[Any]], Steps[Any]]
_Plan = Callable[[Found], Write[Any] | None]


@dataclass(frozen=True, slots=True)
class BulkProgress:
    """The progress and the result of `delete_all` or `update_all`.

    `seen` entities were found. `written` were written; `skipped` were changed or deleted meanwhile, or did not satisfy
    `when`.
    """

    seen: int = 0
    written: int = 0
    skipped: int = 0
    is_complete: bool = False


BulkReport = Callable[[BulkProgress], object]


def delete_all(
    reader: Reader,
    read: Read[Any],
    when: Condition | None,
    execute: Execute,
    parallel: int,
    progress: BulkReport | None,
) -> Steps[BulkProgress]:
    """See `Operations.delete_all`."""
    _check(read)

    def plan(found: Found) -> Write[Any]:
        schema, key = _identified(found)
        delete: Write[Any] = Delete(schema.entity, key, _wanted(read, schema, when))
        delete.returned = "NONE"
        delete.further = conjunction(
            [present(schema.table.keys.partition[0].name), _as_found(read, found)]
        )
        return delete

    if when is not None and isinstance(read, FamilyQuery):
        raise UsageError(
            f"{read.name} reads several kinds of entities, and when= is a condition on one; put it in .filter(…)"
        )
    if when is not None:
        condition_node(read.schemas[0], when)
    return (yield from _write_all(reader, read, plan, execute, parallel, progress))


def update_all(
    reader: Reader,
    read: Read[Any],
    changes: Sequence[Change],
    when: Condition | None,
    execute: Execute,
    parallel: int,
    progress: BulkReport | None,
) -> Steps[BulkProgress]:
    """See `Operations.update_all`."""
    _check(read)
    if len(read.schemas) > 1:
        raise UsageError(
            f"{read.name} reads several kinds of entities, and a change is of one; query each by its own key"
        )
    (schema,) = read.schemas
    validated(schema, schema.entity.before_update(changes))
    condition_node(schema, when)
    done: set[bytes] | None = set() if _moves(read, changes) else None

    def plan(found: Found) -> Write[Any] | None:
        _, key = _identified(found)
        if done is not None:
            place = place_of(schema, schema.identify(key))
            if place in done:
                return None
            done.add(place)
        update: Write[Any] = Update(schema.entity, changes, key, _wanted(read, schema, when))
        update.returned = "NONE"
        update.further = _as_found(read, found)
        return update

    return (yield from _write_all(reader, read, plan, execute, parallel, progress))


def _check(read: object) -> None:
    if not isinstance(read, Read):
        raise UsageError(
            f"{read!r} does not say what to write; give a query, such as Order.primary.where(…), or a scan"
        )


def _moves(read: Read[Any], changes: Sequence[Change]) -> bool:
    """Whether the changes may move an entity within the index that is read, so that the query finds it twice."""
    if read.index is None:
        return False
    (schema,), (key,) = read.schemas, read.keys
    own = {name for name, field in schema.fields.items() if field.options.role != "plain"}
    return bool((own | {change.field.name for change in changes}) & key.component_names)


def _identified(found: Found) -> tuple[EntitySchema, dict[str, Any]]:
    """The schema of an entity, and its primary key's fields."""
    entity, _ = found
    schema = entity.__schema__
    return schema, schema.identity_of(entity.__dict__)


def _wanted(read: Read[Any], schema: EntitySchema, when: Condition | None) -> Condition | None:
    """The query's filters on this kind of entity, joined with the caller's condition."""
    filters = [each for each in read.filters if owner_of(each, read.schemas) is schema]
    return all_of((*filters, *(() if when is None else (when,))))


def _as_found(read: Read[Any], found: Found) -> nodes.ConditionNode | None:
    """The condition that the entity still has the index key under which the query found it."""
    if read.index is None:
        return None
    item = decoded(found[1])
    return unchanged([each.name for each in read.table.layout(read.index).attributes], item)


def _write_all(
    reader: Reader,
    read: Read[Any],
    plan: _Plan,
    execute: Execute,
    parallel: int,
    progress: BulkReport | None,
) -> Steps[BulkProgress]:
    if type(parallel) is not int or parallel < 1:
        raise UsageError(f"parallel={parallel!r} writes nothing; give 1 or more")
    keys = {field: None for schema in read.schemas for field in schema.identity.values()}
    traversal = reader.traverse(read.select(*keys))
    outcomes: list[bool] = []  # for each write: whether it was made
    while not traversal.is_over:
        pending = deque(filter(None, map(plan, (yield from traversal.found()))))
        workers = [_work(pending, execute, outcomes) for _ in range(min(parallel, len(pending)))]
        if len(workers) > 1:
            yield Together(tuple(workers))
        elif workers:
            yield from workers[0]
        result = _progress(outcomes, traversal.is_over)
        if progress is not None:
            progress(result)
    return _progress(outcomes, True)


def _progress(outcomes: Sequence[bool], is_complete: bool) -> BulkProgress:
    seen, written = len(outcomes), sum(outcomes)
    return BulkProgress(seen, written, seen - written, is_complete)


def _work(pending: deque[Write[Any]], execute: Execute, outcomes: list[bool]) -> Steps[None]:
    """Make pending writes until none is left. Several threads may share the deque and the list."""
    while True:
        try:
            write = pending.popleft()
        except IndexError:
            return
        try:
            yield from execute(write)
        except (ConditionFailed, NotFound):
            outcomes.append(False)
        else:
            outcomes.append(True)
