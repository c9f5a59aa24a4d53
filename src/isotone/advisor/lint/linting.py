"""`isotone.lint`: checks models, tables with data, and observed requests; applies suppressions (ISO001, ISO002)."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Iterable, Sequence
from types import ModuleType
from typing import Any, overload

from isotone.advisor.lint.catalogue import RULES
from isotone.advisor.lint.data_checks import check_data, check_observations, check_query
from isotone.advisor.lint.finding import FindingPlace, LintFinding, LintReport, Suppressed
from isotone.advisor.lint.model_checks import check_table
from isotone.advisor.lint.settings import Settings
from isotone.advisor.lint.sources import Suppression, place_of_value, suppressions_of
from isotone.advisor.table_sample import read_sample
from isotone.errors import ResourceNotFoundException, UsageError
from isotone.model import AsyncStore, Entity, EntitySchema, Read, Steps, Store, Table
from isotone.tables.description import list_tables

DEFAULT_SAMPLE = 10_000

Target = ModuleType | Table | type[Entity] | str
"""A module, a table, an entity, or the name of a table in the store."""


@overload
def lint(
    *targets: Target,
    store: None = None,
    settings: Settings | None = None,
    observations: Sequence[Any] = (),
    sample: int = DEFAULT_SAMPLE,
) -> LintReport: ...
@overload
def lint(
    *targets: Target,
    store: Store,
    settings: Settings | None = None,
    observations: Sequence[Any] = (),
    sample: int = DEFAULT_SAMPLE,
) -> LintReport: ...
@overload
def lint(
    *targets: Target,
    store: AsyncStore,
    settings: Settings | None = None,
    observations: Sequence[Any] = (),
    sample: int = DEFAULT_SAMPLE,
) -> Coroutine[Any, Any, LintReport]: ...
def lint(
    *targets: Target,
    store: Any = None,
    settings: Settings | None = None,
    observations: Sequence[Any] = (),
    sample: int = DEFAULT_SAMPLE,
) -> Any:
    """Find what will hurt: in models, in the tables of a store, and in the requests that were observed.

    `targets` are modules, tables, entities, or names of tables. With a store, their items are checked, too; without
    targets, the items of all tables. `observations` are the requests of a program (`isotone.at_end`). Cost: with a
    store, a scan of `sample` items of each table. With an `AsyncStore`, await the result.

    >>> print(isotone.lint(Order))
    no findings in shop
    """
    if store is None and not targets and not observations:
        raise UsageError("lint needs something to check: a module, a table, an entity, or store=…")
    if store is None and (names := [each for each in targets if isinstance(each, str)]):
        raise UsageError(
            f"{names[0]!r} is the name of a table, which only a store has; give store=…"
        )
    linting = _Linting(settings or Settings(), sample)
    steps = linting.run(targets, observations, store)
    return _without_store(steps) if store is None else store.run(steps)


def _without_store(steps: Steps[LintReport]) -> LintReport:
    """The report of steps that send no request."""
    try:
        next(steps)
    except StopIteration as end:
        report: LintReport = end.value
        return report
    raise AssertionError("a model is checked without requests")


class _Linting:
    """One run: collects findings, then separates the suppressed ones."""

    def __init__(self, settings: Settings, sample: int) -> None:
        self._settings = settings
        self._sample = sample
        self._found: list[LintFinding] = []
        self._modules: tuple[str, ...] = ()
        self._whole: frozenset[str] = frozenset()
        self._checked: list[str] = []

    def run(
        self, targets: Sequence[Any], observations: Sequence[Any], store: Any
    ) -> Steps[LintReport]:
        tables, names, modules = _targets(targets)
        self._modules = modules
        self._whole = frozenset(each.__name__ for each in targets if isinstance(each, ModuleType))
        for table in tables:
            self._checked.append(table.name)
            self._found += check_table(table, modules, self._settings)
        if store is not None:
            names = [*names, *(table.name for table in tables)]
            if not targets:
                names = yield from list_tables()
            yield from self._check_data(names, {table.name for table in tables})
            yield from self._check_queries(store, modules)
        self._found += check_observations(observations, self._settings.thresholds)
        return self._report()

    def _check_data(self, names: Iterable[str], modelled: set[str]) -> Steps[None]:
        for name in names:
            try:
                contents = yield from read_sample(name, self._sample)
            except UsageError:
                if name in modelled:  # the store may have only part of the model's tables
                    continue
                raise
            if name not in self._checked:
                self._checked.append(name)
            self._found += check_data(contents, self._settings.thresholds)

    def _check_queries(self, store: Any, modules: Sequence[str]) -> Steps[None]:
        """Check the queries that are assigned to names in modules."""
        calls = getattr(store, "calls", store)
        for module in modules:
            for name, value in [*vars(sys.modules[module]).items()]:
                if not isinstance(value, Read):
                    continue
                place = place_of_value(value, name, tuple(modules))
                thresholds = self._settings.thresholds
                try:
                    self._found += yield from check_query(
                        calls, value, place, self._sample, thresholds
                    )
                except (UsageError, ResourceNotFoundException):
                    continue  # the store lacks its table or its index

    def _report(self) -> LintReport:
        comments = suppressions_of(self._modules)
        kept: list[LintFinding] = []
        suppressed: list[Suppressed] = []
        used: set[Suppression] = set()
        for finding in self._selected(self._found):
            covering = [each for each in comments if each.covers(finding.place, finding.code)]
            used.update(covering)
            if covering:
                suppressed.append(Suppressed(finding, covering[0].reason, in_source=True))
            else:
                kept.append(finding)
        kept += self._selected(self._of_suppressions(comments, used))
        ignored = self._settings.ignore
        suppressed += [
            Suppressed(each, ignored[each.code]) for each in kept if each.code in ignored
        ]
        kept = [each for each in kept if each.code not in ignored]
        kept.sort(key=lambda each: (each.place, each.code))
        return LintReport(tuple(kept), tuple(suppressed), tuple(self._checked))

    def _selected(self, findings: Iterable[LintFinding]) -> list[LintFinding]:
        """The findings with selected codes, without repetitions."""
        return [each for each in dict.fromkeys(findings) if each.code in self._settings.select]

    def _is_judged(self, suppression: Suppression) -> bool:
        """Whether this run could have found what a comment suppresses: its code is selected, and its data was read."""
        if suppression.module not in self._whole:
            return False  # only some of its tables were checked
        asked = self._settings.select - (set() if self._settings.engines else {"ISO501"})
        return all(
            code in asked and RULES[code].where != "data"
            for code in suppression.codes
            if code in RULES
        )

    def _of_suppressions(
        self, comments: Sequence[Suppression], used: set[Suppression]
    ) -> Iterable[LintFinding]:
        """The findings about suppressions without a reason, and about those that suppress nothing."""
        for each in comments:
            place = FindingPlace(each.file, each.line)
            if not each.reason:
                yield _no_reason(place, ", ".join(each.codes))
            unknown = [code for code in each.codes if code not in RULES]
            if unknown or not each.codes or (each not in used and self._is_judged(each)):
                yield LintFinding(
                    "ISO002",
                    place,
                    f"ignore[{', '.join(each.codes)}] "
                    + (
                        f"names {unknown[0]}, which is not a code."
                        if unknown
                        else "suppresses nothing."
                    ),
                    "It would hide a fault that comes later.",
                    "Remove the comment, or correct the code.",
                )
        for code, reason in self._settings.ignore.items():
            if not reason.strip():
                yield _no_reason(FindingPlace(name="pyproject.toml"), code)


def _no_reason(place: FindingPlace, codes: str) -> LintFinding:
    return LintFinding(
        "ISO001",
        place,
        f"ignore[{codes}] has no reason.",
        "Nobody can tell later whether it still holds.",
        "Write the reason after it.",
    )


def _targets(targets: Sequence[Any]) -> tuple[list[Table], list[str], tuple[str, ...]]:
    """The tables of the targets, other names of tables, and the modules that declare them."""
    tables: dict[Table, None] = {}
    names: list[str] = []
    modules: dict[str, None] = {}
    for target in targets:
        if isinstance(target, str):
            names.append(target)
            continue
        found = list(_tables_of(target))
        if not found:
            # a module that has only structures
            if isinstance(target, ModuleType) and any(_tables_in(target)):
                modules[target.__name__] = None
                continue
            raise UsageError(
                f"{target!r} has no table; give a module, a Table, an entity, or the name of a table"
            )
        tables.update(dict.fromkeys(found))
        if isinstance(target, ModuleType):
            modules[target.__name__] = None
        for table in found:
            modules.update(dict.fromkeys(_modules_of(table)))
    known = tuple(module for module in modules if module in sys.modules)
    return [*tables], names, known


def _modules_of(table: Table) -> Iterable[str]:
    """The modules that declare a table's entities or their base classes."""
    for schema in table.entities.values():
        for cls in schema.entity.__mro__:
            if cls.__module__ != "builtins" and not cls.__module__.startswith("isotone."):
                yield cls.__module__


def _tables_of(target: Any) -> Iterable[Table]:
    if isinstance(target, Table):
        return [target]
    if isinstance(target, ModuleType):
        return [table for table in _tables_in(target) if not _is_of_library(table)]
    schema = getattr(target, "__schema__", None) if isinstance(target, type) else None
    return [schema.table] if isinstance(schema, EntitySchema) else []


def _tables_in(module: ModuleType) -> dict[Table, None]:
    """The tables that a module's names refer to, including those of structures."""
    values = [each for each in vars(module).values() if not isinstance(each, ModuleType | str)]
    return dict.fromkeys(table for each in values for table in _tables_of(each))


def _is_of_library(table: Table) -> bool:
    """Whether a table is the default table of a structure that a module has imported."""
    modules = {schema.entity.__module__ for schema in table.entities.values()}
    return bool(modules) and all(module.startswith("isotone.") for module in modules)
