"""`store.rewrite` and `store.widen`: rewrite items that are not as declared; saves how far it is, and resumes.

    store.rewrite(Order, dry_run=True)                           # what would be rewritten, with examples
    store.rewrite(Order, progress=print, undo="orders.undo")
    store.undo("orders.undo")

A walk over the table compares each item with what a put would write now (`inspection`). An item that differs is written
conditionally; if it has changed meanwhile, it is compared again. After each page the position is saved in the table, so
that an interrupted rewrite can continue.

Once all items are as declared, the table's key record says so (`key_records`). Until then, reads by changed keys raise
`KeysChanged`, unless `was` declares the previous form.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from decimal import Decimal
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import msgspec

from isotone.clock import Clock
from isotone.errors import (
    AlreadyExists,
    Contended,
    InvalidItem,
    NotUnique,
    TransactionCanceledException,
    TransactionFailed,
    UsageError,
    ValidationException,
)
from isotone.model.finding_kinds import IGNORED_BY_REWRITE, NOTICES, REFUSED_BY_REWRITE
from isotone.model.inspection import Inspector, ItemFinding
from isotone.model.key_records import KeyRecords, forms, model_digest
from isotone.model.undo_log import UndoLog
from isotone.model.walking import Walk, WalkProgress, describe
from isotone.model.writing import uniqueness
from isotone.model.writing.executor import execute, execute_together
from isotone.model.writing.item_rewrite import ChangeItem, Rewrite
from isotone.model.writing.write import key_in, read_item, schema_of
from isotone.tables.batch_reads import fetch
from isotone.tables.retries import write_when_free
from isotone.tables.steps import Call, Steps
from isotone.text_table import pluralized
from isotone.values.json import item_from_wire
from isotone.values.types import Item, is_same_item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

MARK: Final = "_rewriting"
_EXAMPLES: Final = 5
_ITEMS_A_PAGE: Final = 200  # the position is saved after each page
_WRITES_TOGETHER: Final = 20  # items in one transaction, which allows 100 writes

# Errors of a single item: another program has changed it meanwhile, or the service does not accept it.
_NOT_WRITTEN: Final = (InvalidItem, UsageError, ValidationException, TransactionCanceledException)


@dataclass(frozen=True, slots=True)
class RewriteExample:
    """An item that was (or would be) rewritten: before and after, as plain values."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    kinds: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = [*self.before, *(self.after.keys() - self.before.keys())]
        changes = [
            f"{name}: {_shown(self.before, name)} → {_shown(self.after, name)}"
            for name in sorted(names)
            if self.before.get(name, ...) != self.after.get(name, ...)
        ]
        return ", ".join(changes)


def _shown(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name, ...)
    if value is ...:
        return "nothing"
    return str(value) if isinstance(value, Decimal) else repr(value)


@dataclass(frozen=True, slots=True)
class RewriteFailure:
    """An item that could not be rewritten: its primary key, and why."""

    key: Mapping[str, Any]
    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The progress of `rewrite` or `widen`: entities seen, and entities rewritten.

    An entity whose primary key was rewritten is seen again if it moved to where the walk had not been yet.
    `conflicts` counts entities that were not rewritten because their new key or a unique value belongs to another item;
    `invalid` counts those that cannot be read, or that `change` rejected. `failures` has examples of both. As long as
    there are any, the table's key record is not updated. `kinds` counts the findings (as in `store.verify`) in the
    rewritten items. A dry run writes nothing, and `rewritten` counts what would be written.
    """

    seen: int = 0
    rewritten: int = 0
    conflicts: int = 0
    is_complete: bool = False
    invalid: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict, compare=False)
    examples: tuple[RewriteExample, ...] = field(default=(), compare=False)
    failures: tuple[RewriteFailure, ...] = field(default=(), compare=False)
    is_dry_run: bool = False
    progress: WalkProgress | None = field(default=None, compare=False, repr=False)

    @property
    def is_clean(self) -> bool:
        """Whether all items seen are now as declared."""
        return not self.conflicts and not self.invalid

    def to_json(self) -> str:
        """The result as a JSON text."""
        return msgspec.json.encode(replace(self, progress=None), enc_hook=_plain).decode()

    def __str__(self) -> str:
        verb = "would be rewritten" if self.is_dry_run else "rewritten"
        parts = [f"{self.rewritten:,} of {pluralized(self.seen, 'item')} {verb}"]
        if self.conflicts:
            parts.append(pluralized(self.conflicts, "conflict"))
        if self.invalid:
            parts.append(f"{self.invalid:,} invalid")
        text = ", ".join(parts)
        return text if self.is_complete else f"{text}; not complete"


def _plain(value: Any) -> Any:
    """A value that JSON lacks, as text; sets become lists."""
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else str(value)


RewritingProgress = Callable[[Rewritten], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteOptions:
    """The options of `store.rewrite`."""

    change: ChangeItem | None = None
    dry_run: bool = False
    units_per_second: float | None = None
    segments: int = 1
    undo: str | PathLike[str] | None = None
    progress: RewritingProgress | None = None


def widen(
    entity: type[Entity],
    clock: Clock,
    records: KeyRecords,
    progress: RewritingProgress | None = None,
) -> Steps[Rewritten]:
    """See `Operations.widen`."""
    schema = schema_of(entity)
    if schema.previous is None:
        raise UsageError(
            f"no key of {schema.tag} is being widened; declare field(max=<new>, was=<previous>) first"
        )
    return rewrite(entity, clock, records, RewriteOptions(progress=progress))


def rewrite(
    entity: type[Entity], clock: Clock, records: KeyRecords, options: RewriteOptions
) -> Steps[Rewritten]:
    """See `Operations.rewrite`."""
    schema = schema_of(entity)
    whole = (schema, *schema.kinds())
    description = yield from describe(schema.table)  # raises if the table has another key
    for each in whole:
        yield from records.check_tag(each)  # otherwise it would find no item, and accept the keys
    identity = description.identity
    saved = None if options.dry_run else (yield from _load(schema, options, identity))
    walk = Walk(
        schema.table,
        segments=options.segments,
        units_per_second=options.units_per_second,
        position=None if saved is None else saved.walk,
        items_a_page=_ITEMS_A_PAGE,
        description=description,
    )
    with ExitStack() as stack:
        log = None
        if options.undo is not None and not options.dry_run:
            log = stack.enter_context(UndoLog(options.undo))
        visiting = _Visiting(schema, clock, walk, options, log, saved)
        while not walk.is_over:
            yield from walk.step(visiting.visit)
            state = visiting.state(is_complete=walk.is_over)
            if not options.dry_run:
                yield from _save(schema, options, identity, walk, state)
            if walk.is_over and state.is_clean and not options.dry_run:
                for each in whole:
                    yield from _accept(each, records, log)
            if options.progress is not None:
                options.progress(state)
    return visiting.state(is_complete=True)


def _accept(schema: EntitySchema, records: KeyRecords, log: UndoLog | None) -> Steps[None]:
    """Record that the items have the declared keys."""
    before, after = yield from records.accept(schema)
    if log is not None and before != after:
        log.add_and_sync(schema.table.name, [(key_in(schema, after), before or None, after)])


class _Visiting:
    """Rewrites the items of each page in a walk."""

    def __init__(
        self,
        schema: EntitySchema,
        clock: Clock,
        walk: Walk,
        options: RewriteOptions,
        log: UndoLog | None,
        saved: _SavedRewrite | None,
    ) -> None:
        self._schema = schema
        self._clock = clock
        self._walk = walk
        self._options = options
        self._log = log
        self._inspector = Inspector(schema.table)
        self._by_tag = {tag: each for each in (*schema.kinds(), schema) for tag in each.tags}
        self._lock = threading.Lock()  # pages of several segments arrive at the same time
        self._counts = Counter({} if saved is None else saved.counts)
        self._kinds = Counter({} if saved is None else saved.kinds)
        self._examples: list[RewriteExample] = []
        self._failures: list[RewriteFailure] = []

    def state(self, *, is_complete: bool) -> Rewritten:
        """The progress so far."""
        with self._lock:
            return Rewritten(
                **{name: self._counts[name] for name in _COUNTS},
                kinds=dict(self._kinds),
                examples=tuple(self._examples),
                failures=tuple(self._failures),
                is_complete=is_complete,
                is_dry_run=self._options.dry_run,
                progress=self._walk.progress,
            )

    def visit(self, items: list[Item]) -> Steps[None]:
        """Rewrite a page's items that are not as declared."""
        now = self._clock.now()
        known = [(item, self._kind_of(item)) for item in items]
        own = [(item, schema) for item, schema in known if schema is not None]
        inspected = [self._inspector.inspect_as(schema, item, now) for item, schema in own]
        unclaimed = yield from self._unclaimed(
            [(item, list(each.claims)) for (item, _), each in zip(own, inspected, strict=True)]
        )
        self._count("seen", len(own))
        writes: list[tuple[Rewrite, Item, _Kinds]] = []
        for (item, schema), (_, findings, _), is_unclaimed in zip(
            own, inspected, unclaimed, strict=True
        ):
            wrong = [each for each in findings if each.kind not in NOTICES]
            write = self._write(schema, item, wrong, claims_values=is_unclaimed)
            if write is not None:
                kinds: list[str] = [each.kind for each in wrong]
                kinds += ["marker_missing"] * is_unclaimed
                writes.append((write, item, tuple(dict.fromkeys(kinds))))
        if self._log is not None:
            for write, *_ in writes:
                write.log_ahead(now, self._log.add)
            if writes and _can_save(self._schema):
                self._log.add_position(self._schema.table.name, _key(self._schema))
            self._log.sync()
        if self._options.dry_run:
            for each in writes:
                self._note(*each)
            return
        alone = [each for each in writes if not each[0].is_transaction]
        together = [each for each in writes if each[0].is_transaction]
        for start in range(0, len(together), _WRITES_TOGETHER):
            yield from self._execute_together(together[start : start + _WRITES_TOGETHER])
        for each in alone:
            yield from self._execute(*each)

    def _kind_of(self, item: Item) -> EntitySchema | None:
        """The schema of an item: the entity or a kind of it; None for other items."""
        tag = self._schema.table.tag
        if tag in item:  # a program may have several classes with the same tag
            return self._by_tag.get(item[tag].get("S", ""))
        return self._schema if self._inspector.entity_of(item) is self._schema else None

    def _write(
        self, schema: EntitySchema, item: Item, wrong: list[ItemFinding], *, claims_values: bool
    ) -> Rewrite | None:
        """The write that rewrites an item; None if it is as declared, or cannot be written."""
        kinds = {each.kind for each in wrong}
        change = self._options.change if wrong else None
        if not claims_values and change is None and kinds <= IGNORED_BY_REWRITE:
            return None
        log = None if self._log is None else self._log.add_and_sync
        write = Rewrite(schema, item, change, claims_values=claims_values, log=log)
        try:
            if kinds & REFUSED_BY_REWRITE:
                text = "; ".join(f"{each.kind}: {each.declared}" for each in wrong)
                raise schema.invalid(item, text)
            is_same = is_same_item(write.outcome(item), item)
        except (InvalidItem, UsageError) as error:
            self._fail("invalid", item, str(error))
            return None
        return None if is_same and not claims_values else write

    def _execute_together(self, writes: list[tuple[Rewrite, Item, _Kinds]]) -> Steps[None]:
        """Execute several writes in one transaction; if it is refused, one by one."""
        steps = execute_together([write for write, *_ in writes], self._clock)
        try:
            results = yield from _metered(steps, self._walk)
        except (TransactionFailed, Contended, *_NOT_WRITTEN):
            for each in writes:
                yield from self._execute(*each)
        else:
            for each, is_rewritten in zip(writes, results, strict=True):
                if is_rewritten:
                    self._note(*each)

    def _execute(self, write: Rewrite, item: Item, kinds: _Kinds) -> Steps[None]:
        try:
            is_rewritten = yield from _metered(execute(write, self._clock), self._walk)
        except (AlreadyExists, NotUnique) as error:
            self._fail("conflicts", item, str(error))
        except _NOT_WRITTEN as error:
            self._fail("invalid", item, str(error))
        else:
            if is_rewritten:
                self._note(write, item, kinds)

    def _unclaimed(self, claims: list[tuple[Item, list[str]]]) -> Steps[list[bool]]:
        """For each item, whether a marker of its unique values is missing. Cost: one read for each value."""
        schema = self._schema
        keys = [uniqueness.marker_key(schema, text) for _, texts in claims for text in texts]
        markers = yield from fetch(schema.table.name, keys, consistent=True, count=self._walk.count)
        owners = iter([uniqueness.owner_in(marker) for marker in markers])
        return [
            [next(owners) for _ in texts] != [key_in(schema, item)] * len(texts)
            for item, texts in claims
        ]

    # Counting

    def _count(self, name: str, number: int = 1) -> None:
        with self._lock:
            self._counts[name] += number

    def _note(self, write: Rewrite, item: Item, kinds: _Kinds) -> None:
        with self._lock:
            self._counts["rewritten"] += 1
            self._kinds.update(kinds)
            if len(self._examples) < _EXAMPLES:
                before = item if write.current is None else write.current
                after = write.outcome(before)
                self._examples.append(
                    RewriteExample(item_from_wire(before), item_from_wire(after), kinds)
                )

    def _fail(self, name: str, item: Item, reason: str) -> None:
        with self._lock:
            self._counts[name] += 1
            if len(self._failures) < _EXAMPLES:
                key = item_from_wire(key_in(self._schema, item))
                self._failures.append(RewriteFailure(key, reason))


_Kinds = tuple[str, ...]


def _metered(steps: Steps[Any], walk: Walk) -> Steps[Any]:
    """The steps of a write, with their units added to the walk's."""
    answer: Any = None
    failure: Exception | None = None
    while True:
        try:
            step = steps.send(answer) if failure is None else steps.throw(failure)
        except StopIteration as end:
            return end.value
        failure = None
        if isinstance(step, Call):
            step = Call(step.operation, {**step.request, "ReturnConsumedCapacity": "TOTAL"})
        try:
            answer = yield step
        except Exception as error:  # noqa: BLE001 - it belongs to the write
            failure = error
        else:
            walk.count(answer)


# The saved position


_COUNTS: Final = ("seen", "rewritten", "conflicts", "invalid")


class _SavedRewrite(msgspec.Struct):
    """The saved position. `of` identifies the rewrite, `table` the table."""

    of: Any
    walk: Any
    counts: dict[str, int]
    kinds: dict[str, int]
    # The table's identity: a copy contains this item, too, perhaps in another order
    table: str = ""
    model: str = ""  # a digest of the entity and its kinds; none in positions of earlier versions


def _identity(schema: EntitySchema, options: RewriteOptions) -> Any:
    """Identifies a rewrite: only one of the same keys, with the same function, may continue it."""
    change = options.change
    name = None if change is None else getattr(change, "__qualname__", type(change).__name__)
    return msgspec.to_builtins([forms(schema), schema.version, name])


def _model(schema: EntitySchema) -> str:
    return model_digest((schema, *schema.kinds()))


def _load(
    schema: EntitySchema, options: RewriteOptions, identity: str
) -> Steps[_SavedRewrite | None]:
    """The position that an interrupted rewrite saved; None if there is none, or it is of another rewrite or table."""
    if not _can_save(schema):
        return None
    item = yield from read_item(schema, _key(schema))
    if item is None or "state" not in item:
        return None
    saved = msgspec.json.decode(item["state"]["S"], type=_SavedRewrite)
    is_same = (
        saved.of == _identity(schema, options)
        and saved.table in ("", identity)
        and saved.model in ("", _model(schema))
    )
    return saved if is_same else None


def is_interrupted(schema: EntitySchema) -> Steps[bool]:
    """Whether a rewrite of an entity has saved a position from which it continues."""
    if not _can_save(schema):
        return False
    item = yield from read_item(schema, _key(schema))
    return item is not None and "state" in item


def _save(
    schema: EntitySchema, options: RewriteOptions, identity: str, walk: Walk, state: Rewritten
) -> Steps[None]:
    """Save the position, or delete it when the rewrite is complete."""
    if not _can_save(schema):
        return
    table, key = {"TableName": schema.table.name}, _key(schema)
    if walk.is_over:
        yield from write_when_free(Call("DeleteItem", {**table, "Key": key}))
        return
    counts = {name: getattr(state, name) for name in _COUNTS}
    saved = _SavedRewrite(
        _identity(schema, options),
        walk.position,
        counts,
        dict(state.kinds),
        identity,
        _model(schema),
    )
    text = msgspec.json.encode(saved).decode()
    item: Item = {**key, schema.table.tag: {"S": MARK}, "state": {"S": text}}
    yield from write_when_free(Call("PutItem", {**table, "Item": item}))


def _can_save(schema: EntitySchema) -> bool:
    return all(attribute.type == "S" for attribute in schema.table.keys.attributes)


def _key(schema: EntitySchema) -> Item:
    partition, *sort = schema.table.keys.attributes
    text = f"{MARK}#{schema.tag}"
    return {partition.name: {"S": text}, **{attribute.name: {"S": MARK} for attribute in sort}}
