"""The plan that brings a live table to what a model declares: its steps in order, what each costs, and how long it takes.

    plan = plan_of(store, shop)
    print(plan)
    for step in plan.steps: ...                     # create table, add index, rewrite, drop index

A plan reads descriptions, the record of keys, and a sample of items. It is made again after every step, so a step that
was interrupted is found again, and what is done is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from msgspec import structs

from isotone.advisor.table_sample import TableSample, entry_of, read_sample
from isotone.advisor.write_costs import estimate_write, plan_of_write
from isotone.backends.capabilities import Capabilities
from isotone.errors import InvalidItem, ResourceNotFoundException, UsageError
from isotone.model import (
    FINDING_KINDS,
    Call,
    Difference,
    Entity,
    EntitySchema,
    Steps,
    Store,
    Table,
    changes_of_keys,
    check_units,
    connect,
    expiry_attribute,
    expiry_difference,
    findings_without_reading,
    is_rewrite_interrupted,
    table_differences,
)
from isotone.prices import US_EAST_1, Prices
from isotone.tables.description import TableDescription, describe_table
from isotone.text_table import aligned, pluralized
from isotone.values.size import item_size, read_units, write_units
from isotone.values.types import Item

StepKind = Literal[
    "create table",
    "enable stream",
    "enable expiry",
    "add index",
    "replace index",
    "rewrite",
    "drop index",
]

DEFAULT_SAMPLE: Final = 1000
PACE: Final = 1000.0
"""Units a second that an estimate of the duration takes for granted, unless fewer are allowed."""
_REASONS: Final = 3  # that are shown of a step


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan: what is done to which table, why, to how many items, for how many units."""

    kind: StepKind
    table: str
    name: str
    """The index or the entity; the attribute of an expiry; the view of a stream."""
    why: str
    items: int = 0
    reads: float = 0.0
    writes: float = 0.0
    cost: float = 0.0
    seconds: float = 0.0
    needs: str = ""
    """The option without which the step is left out."""

    def __str__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"{self.kind}{name} ({self.table})"


@dataclass(frozen=True, slots=True)
class DesignPlan:
    """The steps that make live tables what a model declares, and what no step can change."""

    steps: tuple[PlanStep, ...]
    blocked: tuple[str, ...]
    prices: Prices
    sampled: int = 0
    """The items that were read for it."""

    @property
    def cost(self) -> float:
        """The price of all units."""
        return sum(step.cost for step in self.steps)

    @property
    def seconds(self) -> float:
        """How long it takes, about."""
        return sum(step.seconds for step in self.steps)

    def __str__(self) -> str:
        if not self.steps and not self.blocked:
            return "the tables are as declared"
        lines = []
        if self.steps:
            lines += [aligned(_HEADER, [_cells(step) for step in self.steps], right={3, 4, 5, 6})]
            lines += [
                f"in all: {self.cost:,.2f} {self.prices.currency} on demand in {self.prices.region}, about "
                f"{_duration(self.seconds)}"
            ]
        lines += [f"no step can change: {each}" for each in self.blocked]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON values."""
        steps = [{name: getattr(step, name) for name in PlanStep.__slots__} for step in self.steps]
        return {
            "steps": steps,
            "blocked": list(self.blocked),
            "cost": self.cost,
            "currency": self.prices.currency,
            "seconds": self.seconds,
            "sampled": self.sampled,
        }


_HEADER: Final = ("step", "table", "why", "items", "units", "cost", "takes")


def _cells(step: PlanStep) -> list[str]:
    units = step.reads + step.writes
    why = f"{step.why}; needs {step.needs}" if step.needs else step.why
    return [
        f"{step.kind} {step.name}".strip(),
        step.table,
        why,
        f"{step.items:,}" if step.items else "",
        f"{units:,.0f}" if units else "",
        f"{step.cost:,.2f}" if units else "",
        _duration(step.seconds) if units else "",
    ]


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def plan_of(
    store: Store,
    *targets: Table | type[Entity],
    sample: int = DEFAULT_SAMPLE,
    units_per_second: float | None = None,
    prices: Prices = US_EAST_1,
) -> DesignPlan:
    """What would change if live tables were made as a model declares them; writes nothing.

    Compares descriptions, the record of keys, and `sample` items with their entities. Durations are at 1,000 units a
    second, or at `units_per_second`. Cost: the scan of the sample, and a few reads.

    >>> print(plan_of(isotone.connect(":memory:"), Order.__schema__.table).steps[0])
    create table (shop)
    """
    check_units(units_per_second)
    planning = _Planning(sample, min(units_per_second or PACE, PACE), prices, store.clock.now())
    return store.run(planning.plan(tables_of(targets), store.capabilities))


def tables_of(targets: Sequence[Table | type[Entity]]) -> list[Table]:
    """The tables of the targets."""
    found = {}
    for target in targets:
        schema = getattr(target, "__schema__", None)
        table = target if isinstance(target, Table) else None if schema is None else schema.table
        if table is None:
            raise UsageError(f"{target!r} is neither a table nor an entity of one")
        found[table.name] = table
    return list(found.values())


def declared_shape(table: Table) -> TableDescription:
    """The description of a table as it is declared: one in memory is made, and described."""
    with connect(":memory:") as store:
        store.create_tables(table)
        return store.run(describe_table(table.name))


def _with_others(declared: TableDescription, live: TableDescription) -> TableDescription:
    """The declared table with the other indexes that it has: writes cost units in them, too, until they are dropped."""
    others = [each for each in live.indexes if each.name not in declared.index_names]
    return structs.replace(declared, indexes=(*declared.indexes, *others))


class _Planning:
    """One plan in the making."""

    def __init__(self, sample: int, pace: float, prices: Prices, now: float) -> None:
        self._most = sample
        self._now = now
        self._pace = pace
        self._prices = prices
        self._sampled = 0

    def plan(self, tables: Sequence[Table], capabilities: Capabilities) -> Steps[DesignPlan]:
        steps: list[PlanStep] = []
        blocked: list[str] = []
        for table in tables:
            found, never = yield from self._of_table(table, capabilities)
            steps += found
            blocked += never
        steps.sort(key=lambda step: _ORDER.index(step.kind))
        return DesignPlan(tuple(steps), tuple(blocked), self._prices, self._sampled)

    def _of_table(
        self, table: Table, capabilities: Capabilities
    ) -> Steps[tuple[list[PlanStep], list[str]]]:
        try:
            live = yield from describe_table(table.name)
        except ResourceNotFoundException:
            return [PlanStep("create table", table.name, "", "it does not exist")], []
        differences = list(table_differences(table, live, capabilities))
        blocked = [str(each) + advice for each in differences if (advice := _advice(each, table))]
        if any(each.index is None for each in differences if "has the key" in each.what):
            return [], blocked
        steps = [*_stream_step(table, live)]
        if capabilities.expiry:
            found, never = yield from _expiry_step(table)
            steps += found
            blocked += never
        contents = yield from read_sample(table.name, self._most)
        self._sampled += len(contents.items)
        declared = declared_shape(table)
        steps += self._index_steps(table, live, differences, contents, declared)
        steps += yield from self._rewrites(table, contents, _with_others(declared, live))
        return steps, blocked

    # Indexes

    def _index_steps(
        self,
        table: Table,
        live: TableDescription,
        differences: Sequence[Difference],
        contents: TableSample,
        declared: TableDescription,
    ) -> Iterator[PlanStep]:
        present = live.all_indexes
        changed: dict[str, list[str]] = {}
        for each in differences:
            if each.index is not None and each.index in present:
                changed.setdefault(each.index, []).append(each.what)
        for name, index in declared.all_indexes.items():
            if index.kind == "local":
                continue
            if name in changed:
                why = "; ".join(changed[name])
                added = self._added(table, index, contents, declared, why)
                yield replace(added, kind="replace index", needs="--drop-indexes")
            elif name not in present:
                yield self._added(table, index, contents, declared, "it does not exist")
            elif present[name].status != "ACTIVE":
                yield PlanStep("add index", table.name, name, f"it is {present[name].status}")
        for name, index in present.items():
            if name not in declared.all_indexes and index.kind != "local":
                why = "no entity of the model is read by it"
                yield PlanStep("drop index", table.name, name, why, needs="--drop-indexes")

    def _added(
        self,
        table: Table,
        index: Any,
        contents: TableSample,
        declared: TableDescription,
        why: str,
    ) -> PlanStep:
        """The step that adds an index: a write for each item that has its key already."""
        entries = []
        if index.kind == "global":
            entries = [entry_of(declared, index, item) for item in contents.items]
        sizes = [write_units(item_size(entry)) for entry in entries if entry is not None]
        times = contents.count / len(contents.items) if contents.items else 0.0
        step = PlanStep("add index", table.name, index.name, why, round(len(sizes) * times))
        return self._priced(step, 0.0, sum(sizes) * times)

    # Items

    def _rewrites(
        self, table: Table, contents: TableSample, declared: TableDescription
    ) -> Steps[list[PlanStep]]:
        changes = yield from changes_of_keys(table)
        different = self._different(table, contents)
        steps = []
        for schema in table.entities.values():
            if schema.base is not None:
                continue  # a kind is rewritten with the entity that it extends
            whole = (schema, *schema.kinds())
            reasons = [each for kind in whole for each in changes.get(kind.tag, ())]
            if (yield from is_rewrite_interrupted(schema)):
                reasons.append("a rewrite was interrupted")
            own = [each for kind in whole for each in different.get(kind.tag, ())]
            if reasons or own:
                steps.append(self._rewrite_of(schema, reasons, own, contents, declared))
        return steps

    def _different(
        self, table: Table, contents: TableSample
    ) -> dict[str, list[tuple[Item, list[str]]]]:
        """The sampled items that a rewrite would correct, by the tag of their entity, with the kinds of findings."""
        found: dict[str, list[tuple[Item, list[str]]]] = {}
        inspected = findings_without_reading(table, contents.items, self._now)
        for item, findings in zip(contents.items, inspected, strict=True):
            kinds = [each.kind for each in findings if _is_corrected(each.kind)]
            entity = next((each.entity for each in findings if each.entity), None)
            if kinds and entity is not None:
                found.setdefault(entity, []).append((item, list(dict.fromkeys(kinds))))
        return found

    def _rewrite_of(
        self,
        schema: EntitySchema,
        reasons: Sequence[str],
        different: Sequence[tuple[Item, list[str]]],
        contents: TableSample,
        declared: TableDescription,
    ) -> PlanStep:
        kinds = Counter(kind for _, found in different for kind in found)
        counted = [
            f"{kind}: {pluralized(count, 'item')} of {len(contents.items):,}"
            for kind, count in kinds.items()
        ]
        times = contents.count / len(contents.items) if contents.items else 0.0
        step = PlanStep(
            "rewrite",
            schema.table.name,
            schema.entity.__name__,
            _shortened([*reasons, *counted]),
            round(len(different) * times),
        )
        reads = read_units(round(contents.item_bytes * contents.count), True)
        writes = sum(_units_of_rewrite(schema, item, declared) for item, _ in different)
        return self._priced(step, reads, writes * times)

    def _priced(self, step: PlanStep, reads: float, writes: float) -> PlanStep:
        cost = self._prices.on_demand(reads=reads, writes=writes)
        seconds = (reads + writes) / self._pace
        return replace(step, reads=reads, writes=writes, cost=cost, seconds=seconds)


def _shortened(reasons: Sequence[str]) -> str:
    """The first reasons, and how many there are besides."""
    more = len(reasons) - _REASONS
    return "; ".join(reasons[:_REASONS]) + (f"; and {more} more" if more > 0 else "")


_ORDER: Final = get_args(StepKind)
"""What adds comes first, and what programs may still read is dropped last; only a replaced index is gone for a while."""


def _advice(difference: Difference, table: Table) -> str:
    """What to do about a difference that no step changes; empty if one does."""
    if difference.index is None:
        if "stream" in difference.what:
            return "; disable the stream first, when nothing reads it any more"
        return "; a key is for ever: make another table and copy the items (isotone copy)"
    index = table.indexes.get(difference.index)
    if index is not None and index.kind == "local":
        return "; a local index is made only with its table: declare a Global one, or make another table"
    return ""


def _stream_step(table: Table, live: TableDescription) -> Iterator[PlanStep]:
    if table.stream and not live.stream:
        yield PlanStep("enable stream", table.name, table.stream, "it has none")


def _expiry_step(table: Table) -> Steps[tuple[list[PlanStep], list[str]]]:
    wanted = expiry_attribute(table)
    if wanted is None or (yield from expiry_difference(table, may_lack=False)) is None:
        return [], []
    what = yield from expiry_difference(table, may_lack=True)
    if what is not None:
        return [], [f"table {table.name!r} {what}; disable that expiry first"]
    return [PlanStep("enable expiry", table.name, wanted, "nothing expires")], []


def _is_corrected(kind: Any) -> bool:
    known = FINDING_KINDS[kind]
    return not known.is_notice and known.rewrite in ("corrects", "attempts")


def _key_of(item: Item, shape: TableDescription) -> Item:
    return {name: item[name] for name in shape.key.names if name in item}


def _units_of_rewrite(schema: EntitySchema, item: Item, shape: TableDescription) -> float:
    """The units of writing an item as its entity would write it now; those of its present size if it cannot be read."""
    try:
        kind = schema.kind_of(item) or schema
        after = kind.to_item(vars(kind.from_item(item, require_all_fields=True)))
    except (InvalidItem, UsageError):
        return write_units(item_size(item))
    moves = _key_of(item, shape) != _key_of(after, shape)
    units = _units(shape, "PutItem", {"Item": after}, None if moves else item, moves)
    if moves:
        units += _units(shape, "DeleteItem", {"Key": _key_of(item, shape)}, item, moves)
    return units


def _units(
    shape: TableDescription,
    operation: str,
    members: Mapping[str, Any],
    stored: Item | None,
    moves: bool,
) -> float:
    """The units of one write, by the item that is stored; twice as many in the transaction that moves an item."""
    request = {"TableName": shape.name, **members}
    steps = estimate_write(plan_of_write(operation, request, shape, 2 if moves else 1), shape)
    asked = next(steps)
    assert isinstance(asked, Call)
    try:
        steps.send({} if stored is None else {"Item": stored})
    except StopIteration as end:
        cost = end.value[0]
        return float(cost.units)
    raise AssertionError("an estimate of a write reads one item")
