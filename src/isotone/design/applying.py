"""Applies a plan to live tables: step by step, each made again from what is there, so that an interruption loses nothing.

applied = apply(store, shop)
applied.left                                    # what was left out, and why
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final

from isotone.design.plan import DEFAULT_SAMPLE, DesignPlan, PlanStep, plan_of, tables_of
from isotone.errors import UsageError
from isotone.model import (
    Call,
    Entity,
    EntitySchema,
    IndexProgress,
    Rewritten,
    Steps,
    Store,
    Table,
    check_undo_log,
    ensure_expiry,
    streams,
)
from isotone.tables.description import describe_table
from isotone.tables.retries import poll_pauses

Progress = Callable[[PlanStep, str], object]
"""Called with the step that runs, and how far it is."""

_UPDATES: Final = {"global": "GlobalSecondaryIndexUpdates", "vector": "VectorIndexUpdates"}


@dataclass(frozen=True, slots=True)
class AppliedPlan:
    """The steps that were done, and what is left: steps that need an option or failed, and what no step can change."""

    done: tuple[PlanStep, ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"done: {step}" for step in self.done] or ["nothing was to be done"]
        return "\n".join([*lines, *(f"left: {each}" for each in self.left)])


def apply(
    store: Store,
    *targets: Table | type[Entity],
    drop_indexes: bool = False,
    units_per_second: float | None = None,
    undo: str | PathLike[str] | None = None,
    sample: int = DEFAULT_SAMPLE,
    progress: Progress | None = None,
) -> AppliedPlan:
    """Make live tables what a model declares: create tables, add indexes, enable streams and expiry, rewrite items.

    Nothing is dropped, unless `drop_indexes`: then also indexes that the model does not declare, or declares otherwise.
    The same call continues after an interruption at any point. `units_per_second` and `undo` are those of
    `store.rewrite`, and are checked before the first step. Cost: that of the plan (`plan_of`).

    >>> store = isotone.connect(":memory:")
    >>> print(apply(store, Order.__schema__.table))
    done: create table (shop)
    """
    if undo is not None:
        check_undo_log(undo)
    applying = _Applying(store, targets, drop_indexes, units_per_second, undo, progress)
    done: list[PlanStep] = []
    failed: dict[tuple[str, str, str], str] = {}
    while True:
        plan = plan_of(store, *targets, sample=sample, units_per_second=units_per_second)
        tried = {_identity(each) for each in done} | failed.keys()
        step = next(
            (
                each
                for each in plan.steps
                if (drop_indexes or not each.needs) and _identity(each) not in tried
            ),
            None,
        )
        if step is None:
            return AppliedPlan(tuple(done), tuple(_left(plan, failed, done)))
        reason = applying.execute(step)
        if reason:
            failed[_identity(step)] = reason
        else:
            done.append(step)


def _identity(step: PlanStep) -> tuple[str, str, str]:
    return step.kind, step.table, step.name


def _left(
    plan: DesignPlan, failed: dict[tuple[str, str, str], str], done: Sequence[PlanStep]
) -> list[str]:
    left = []
    for step in plan.steps:
        if (reason := failed.get(_identity(step))) is not None:
            left.append(f"{step}: {reason}")
        elif step.needs:
            left.append(f"{step}: needs {step.needs}")
        else:
            left.append(f"{step}: {step.why}, also after it was done")
    return [*left, *plan.blocked]


class _Applying:
    """Executes steps."""

    def __init__(
        self,
        store: Store,
        targets: Sequence[Table | type[Entity]],
        drop_indexes: bool,
        units_per_second: float | None,
        undo: str | PathLike[str] | None,
        progress: Progress | None,
    ) -> None:
        self._store = store
        self._tables = {table.name: table for table in tables_of(targets)}
        self._drops = drop_indexes
        self._units = units_per_second
        self._undo = undo
        self._progress = progress

    def execute(self, step: PlanStep) -> str:
        """Do a step; returns why something of it is left, or an empty text."""
        self._report(step, "begins")
        table = self._tables[step.table]
        if step.kind == "rewrite":
            return self._rewrite(step, table)
        run: Steps[Any]
        match step.kind:
            case "create table":
                run = self._store.calls.create_tables(table)
            case "enable stream":
                run = streams.ensure_stream(table)
            case "enable expiry":
                run = ensure_expiry(table)
            case "add index":
                run = self._add(step, table)
            case "replace index":
                run = self._replace(step, table)
            case "drop index":
                run = _drop(table, step.name)
        self._store.run(run)
        return ""

    def _add(self, step: PlanStep, table: Table) -> Steps[list[str]]:
        def show(filled: IndexProgress) -> None:
            self._report(step, f"{filled.items:,} of {filled.of_items:,} items")

        return self._store.calls.add_indexes(table, progress=show)

    def _replace(self, step: PlanStep, table: Table) -> Steps[None]:
        yield from _drop(table, step.name)
        yield from self._add(step, table)

    def _rewrite(self, step: PlanStep, table: Table) -> str:
        def show(done: Rewritten) -> None:
            self._report(step, str(done))

        done = self._store.rewrite(
            _schema_of(table, step.name).entity,
            units_per_second=self._units,
            undo=self._undo,
            progress=show,
        )
        return "" if done.is_clean else f"{done}; {'; '.join(map(str, done.failures))}"

    def _report(self, step: PlanStep, text: str) -> None:
        if self._progress is not None:
            self._progress(step, text)


def _schema_of(table: Table, name: str) -> EntitySchema:
    for schema in table.entities.values():
        if schema.entity.__name__ == name and schema.base is None:
            return schema
    raise UsageError(f"table {table.name} has no entity {name}")


def _drop(table: Table, index: str) -> Steps[None]:
    """Drop an index, and wait until it is gone."""
    found = (yield from describe_table(table.name)).all_indexes.get(index)
    if found is not None and found.status != "DELETING":
        updates = [{"Delete": {"IndexName": index}}]
        yield Call("UpdateTable", {"TableName": table.name, _UPDATES[found.kind]: updates})
    pauses = poll_pauses()
    while index in (yield from describe_table(table.name)).all_indexes:
        yield next(pauses)
