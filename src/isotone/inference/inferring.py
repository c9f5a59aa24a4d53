"""`isotone.infer` and `isotone model`: infers the model of a table that another program made.

A sample of the items is read and divided into kinds (`grouping`). Each kind becomes an entity with typed fields
(`field_types`) and keys of a recognised form (`key_recognition`), and a module declares them (`module_writer`). Then
the module reads every item of the sample and writes it again (`round_trip_check`). Declarations that change an item are
simplified, and the module is made again, until all items fit or nothing can be simplified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final, overload

from isotone.errors import UsageError
from isotone.inference.field_types import FieldType
from isotone.inference.grouping import Grouping, groupings
from isotone.inference.module_writer import EntityNames, Module, write_module
from isotone.inference.planning import VERSION, EntityPlan, FieldPlan, Planner
from isotone.inference.round_trip_check import Misfit, load, misfits, table_of
from isotone.inference.sampling import Progress, Sample, is_own, read_sample
from isotone.model import AsyncStore, Calls, FindingCount, Steps, Store, Verification
from isotone.text_table import pluralized

DEFAULT_SAMPLE: Final = 10_000
_MOST_ROUNDS: Final = 12
_FEW: Final = 0.05  # of all items, which a model may leave out
_EXPLAINED: Final = ("implied", "other_form")


@dataclass(frozen=True, slots=True)
class InferredEntity:
    """An entity of an inferred module: its class, its tag, its items in the sample, and its fields."""

    name: str
    tag: str | None
    items: int
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """What was guessed or could not be known; `entity` and `field` say where."""

    what: str
    entity: str | None = None
    field: str | None = None

    def __str__(self) -> str:
        where = ".".join(name for name in (self.entity, self.field) if name)
        return f"{where}: {self.what}" if where else self.what


@dataclass(frozen=True, slots=True)
class Inferred:
    """The model of a table: `source` is the text of a Python module.

    `notes` say what was guessed or could not be known. `items` counts the items that were read, `unmodelled` those that
    the module does not read or would write in another form. `is_whole`: the sample has all items of the table.
    `verification` is the result of `store.verify`, with `verify=True`; `unexpected` lists the findings that the notes
    do not explain.
    """

    table: str
    source: str
    entities: tuple[InferredEntity, ...] = ()
    notes: tuple[Note, ...] = ()
    items: int = 0
    unmodelled: int = 0
    is_whole: bool = True
    verification: Verification | None = None
    unexpected: tuple[FindingCount, ...] = ()
    _loaded: list[ModuleType] = field(default_factory=list, repr=False, compare=False)

    @property
    def is_complete(self) -> bool:
        """Whether the module models all items that were read."""
        return not self.unmodelled and not self.unexpected

    def load(self) -> ModuleType:
        """The module, imported: `inferred.load().Order`."""
        if not self._loaded:
            self._loaded.append(load(self.source, self.table))
        return self._loaded[0]


@overload
def infer(
    store: Store,
    table: str,
    *,
    sample: int | None = DEFAULT_SAMPLE,
    verify: bool = False,
    progress: Progress | None = None,
) -> Inferred: ...
@overload
def infer(
    store: AsyncStore,
    table: str,
    *,
    sample: int | None = DEFAULT_SAMPLE,
    verify: bool = False,
    progress: Progress | None = None,
) -> Coroutine[Any, Any, Inferred]: ...
@overload
def infer(
    store: Calls,
    table: str,
    *,
    sample: int | None = DEFAULT_SAMPLE,
    verify: bool = False,
    progress: Progress | None = None,
) -> Steps[Inferred]: ...
def infer(
    store: Any,
    table: str,
    *,
    sample: int | None = DEFAULT_SAMPLE,
    verify: bool = False,
    progress: Progress | None = None,
) -> Any:
    """Infer the model of an existing table from its items; writes nothing.

    Reads up to `sample` items, all of them if it is None. With `verify`, `store.verify` then compares all items of
    the table with the model. `progress` is called with "reading" or "verifying" and the number of items read so far.
    Cost: a scan of the sample, and one of the table to verify. With an `AsyncStore`, await the result.

        inferred = isotone.infer(store, "orders")
        Path("orders.py").write_text(inferred.source)
    """
    if sample is not None and (type(sample) is not int or sample < 1):
        raise UsageError(
            f"sample={sample!r} is not a number of items; give 1 or more, or None for all"
        )
    if not isinstance(table, str):
        raise UsageError(f"infer takes the name of a table, not {table!r}")
    calls: Calls = getattr(store, "calls", store)
    return store.run(_infer(calls, table, sample, verify, progress))


def _infer(
    calls: Calls, table: str, most: int | None, verify: bool, progress: Progress | None
) -> Steps[Inferred]:
    sample = yield from read_sample(table, most, progress)
    best = _best(sample)
    inferred = best.result()
    if not verify or best.is_refused or not inferred.entities:
        return inferred
    tell = None if progress is None else lambda state: progress("verifying", state.items)
    verification = yield from calls.verify(table_of(inferred.load()), progress=tell)
    return best.result(verification)


def _best(sample: Sample) -> _ModelAttempt:
    """The way to divide the items that leaves the fewest items out."""
    best: _ModelAttempt | None = None
    for grouping in groupings(sample):
        attempt = _ModelAttempt(sample, grouping)
        attempt.run()
        if best is None or attempt.unmodelled < best.unmodelled:
            best = attempt
        if best.unmodelled <= _FEW * len(sample.items):
            break
    assert best is not None  # the grouping by keys always exists
    return best


class _ModelAttempt:
    """One way to divide the items, turned into a module that fits as many of them as possible."""

    def __init__(self, sample: Sample, grouping: Grouping) -> None:
        self._sample = sample
        self._planner = Planner(sample)
        self._plan = self._planner.plan(grouping)
        self._module = Module("", "", "")
        self._misfits: list[Misfit] = []
        self._notes: list[Note] = []
        self._refusal = ""
        self._refused: list[str] = []

    @property
    def is_refused(self) -> bool:
        """Whether the model library refuses the declarations."""
        return bool(self._refusal)

    @property
    def unmodelled(self) -> int:
        """The items that the module does not fit; all items if the declarations are refused."""
        if self._refusal:
            return len(self._sample.items)
        return len({misfit.number for misfit in self._misfits})

    def run(self) -> None:
        """Write the module and check it, more simply each time, until it fits."""
        for _ in range(_MOST_ROUNDS):
            self._write()
            if self._refusal:
                if not self._drop_refused():
                    return
            elif not self._misfits or not self._simplify():
                return

    def _write(self) -> None:
        self._refusal, self._misfits = "", []
        self._module = write_module(self._sample, self._plan, [], self._planner.classes)
        try:
            module = load(self._module.source, self._sample.table.name)
        except UsageError as error:
            self._refusal = str(error)
            return
        self._misfits = list(misfits(module, self._sample.items))

    # Simpler declarations

    def _drop_refused(self) -> bool:
        """Declare the refused entity without the forms of its index keys, or leave it out."""
        for names, entity in zip(self._module.names, self._plan.entities, strict=True):
            if self._refusal.startswith(f"{names.name}: "):
                primary = {part.name for part in self._sample.table.key.parts}
                for attribute in entity.forms.keys() - primary:
                    self._simplified(entity, attribute)
                    return True
                self._plan.entities.remove(entity)
                self._refused.append(
                    f"items that are not modelled: {len(entity.items)}, because {self._refusal}"
                )
                return True
        return False

    def _simplify(self) -> bool:
        """Simplify the declarations that do not fit; returns whether that changed anything."""
        counts = Counter(
            (misfit.entity, misfit.attribute)
            for misfit in self._misfits
            if misfit.entity is not None and misfit.attribute is not None
        )
        by_name = {
            names.name: entity
            for names, entity in zip(self._module.names, self._plan.entities, strict=True)
        }
        changes = [
            self._simplified(by_name[str(name)], str(attribute)) for name, attribute in counts
        ]
        return any(changes)

    def _simplified(self, entity: EntityPlan, attribute: str) -> bool:
        primary = {part.name for part in self._sample.table.key.parts}
        if attribute in entity.forms and attribute not in primary:
            index = next(
                (
                    each
                    for each in entity.indexes
                    if any(part.name == attribute for part in each.shape.key.parts)
                ),
                None,
            )
            del entity.forms[attribute]
            entity.fields[attribute] = _text_field(attribute, entity)
            if index is not None:
                index.condition = None
            used = {place.source for form in entity.forms.values() for place in form.places}
            for name in [
                name
                for name, plan in entity.fields.items()
                if plan.only_in_key and name not in used
            ]:
                del entity.fields[name]
            return True
        plan = entity.fields.get(attribute)
        used = {place.source for form in entity.forms.values() for place in form.places}
        if plan is None or plan.type.text == "Any" or attribute in used or attribute in primary:
            return False
        plan.type, plan.options, plan.is_expiry = FieldType("Any"), {}, False
        plan.notes.append("its values fit no type exactly")
        return True

    # The result

    def result(self, verification: Verification | None = None) -> Inferred:
        """The module with its notes, including findings of the verification that the notes do not explain."""
        unexpected = self._unexpected(verification)
        self._notes = self._noted(unexpected)
        introduction = self._introduction()
        module = write_module(self._sample, self._plan, introduction, self._planner.classes)
        entities = tuple(
            InferredEntity(
                names.name,
                entity.tag if self._plan.tag else None,
                len(entity.items),
                tuple(names.fields.values()),
            )
            for names, entity in zip(module.names, self._plan.entities, strict=True)
        )
        return Inferred(
            self._sample.table.name,
            module.source,
            entities,
            tuple(self._notes),
            len(self._sample.items),
            self.unmodelled,
            self._sample.is_whole,
            verification,
            unexpected,
        )

    def _unexpected(self, verification: Verification | None) -> tuple[FindingCount, ...]:
        """The findings that the notes do not explain.

        Explained are items without a tag, fields that are only in keys, and NULL where None is left out.
        """
        if verification is None:
            return ()
        explained: set[tuple[str | None, str | None]] = set()
        for names, entity in zip(self._module.names, self._plan.entities, strict=True):
            tag = self._tag_of(names, entity)
            for plan in entity.fields.values():
                if plan.only_in_key or plan.is_null or plan.present < len(entity.items):
                    explained.add((tag, names.fields[plan.source]))
        return tuple(
            finding
            for finding in verification.findings
            if not finding.is_notice
            and finding.kind != "untagged"
            and not self._is_own(finding)
            and not (finding.kind in _EXPLAINED and (finding.entity, finding.name) in explained)
        )

    def _is_own(self, finding: FindingCount) -> bool:
        """Whether the items are Isotone's own records, which it does not recognise under another tag attribute."""
        if not finding.examples or finding.count > self._sample.own:
            return False
        partition = self._sample.table.key.partition[0].name
        return all(is_own(example.item_key[partition]) for example in finding.examples)

    def _tag_of(self, names: EntityNames, entity: EntityPlan) -> str:
        return entity.tag if self._plan.tag and entity.tag else names.name

    def _introduction(self) -> list[str]:
        sample = self._sample
        count = pluralized(len(sample.items), "item")
        of = f"all {count}" if sample.is_whole else f"{count}, not all of them"
        general = [f"- {note.what}" for note in self._notes if note.entity is None]
        kinds = f" Attribute {self._plan.tag!r} names their kind." if self._plan.tag else ""
        intro = [f"Table {sample.table.name!r}, inferred from {of}.{kinds}"]
        if general:
            intro += ["What is not certain:", "\n".join(general)]
        return intro

    def _noted(self, unexpected: Sequence[FindingCount]) -> list[Note]:
        notes = [Note(what) for what in self._general()]
        notes += [] if unexpected else [Note(what) for what in self._unfit()]
        for finding in unexpected:
            example = f", such as {finding.examples[0]}" if finding.examples else ""
            notes.append(Note(f"verified: {finding}{example}"))
        for names, entity in zip(self._module.names, self._plan.entities, strict=True):
            notes += [Note(what, names.name) for what in entity.notes]
            if len(entity.items) == 1:
                notes.append(
                    Note("it has one item, so little is known about its fields", names.name)
                )
            notes += [
                Note(index.note, names.name, names.keys[index.shape.name])
                for index in entity.indexes
                if index.note
            ]
            for plan in entity.fields.values():
                own = names.fields[plan.source]
                notes += [Note(what, names.name, own) for what in plan.notes]
        return notes

    def _general(self) -> list[str]:
        sample, plan = self._sample, self._plan
        if not sample.items:
            return ["the table is empty: add an entity for each kind of item"]
        found = []
        if not sample.is_whole:
            found.append("other items may have other kinds, attributes and forms of keys")
        untagged = sum(self._module.tag not in item for item in sample.items)
        if untagged:
            count = f"{pluralized(untagged, 'item')} {'lacks' if untagged == 1 else 'lack'}"
            count = "no item has" if untagged == len(sample.items) else count
            found.append(
                f"{count} a tag, so Isotone adds {self._module.tag!r} to each item that it puts"
            )
        if sample.shortened:
            found.append(
                f"of {pluralized(sample.shortened, 'large item')} only a part was looked at"
            )
        if sample.own:
            found.append(f"Isotone's own records are left out: {sample.own}")
        if any(VERSION in item for item in sample.items):
            found.append(
                f"attribute {VERSION!r} must be the version of an entity, 1 if it declares none"
            )
        if sample.table.ttl and not any(
            each.is_expiry for entity in plan.entities for each in entity.fields.values()
        ):
            found.append(
                f"items expire by {sample.table.ttl!r}, which no item has in seconds since 1970"
            )
        if any(each.only_in_key for entity in plan.entities for each in entity.fields.values()):
            found.append(
                "fields that are only in keys are written as attributes, too, when an item is put"
            )
        return found + self._refused

    def _unfit(self) -> list[str]:
        """Why the module does not fit some items: the reasons, each with a count and an example."""
        if self._refusal:
            return [f"the declarations are refused, so this module is a draft: {self._refusal}"]
        by_reason: dict[tuple[str | None, str | None], list[Misfit]] = {}
        for misfit in self._misfits:
            by_reason.setdefault((misfit.entity, misfit.attribute), []).append(misfit)
        found = []
        for (entity, _), of in by_reason.items():
            where = f"{entity}: " if entity else ""
            number = len({misfit.number for misfit in of})
            items = f"{pluralized(number, 'item')} {'does' if number == 1 else 'do'}"
            found.append(f"{where}{items} not fit, such as {self._key(of[0].number)}: {of[0].what}")
        return found

    def _key(self, number: int) -> str:
        item = self._sample.items[number]
        texts = [
            str(next(iter(item[part.name].values())))[:60] for part in self._sample.table.key.parts
        ]
        return " / ".join(texts)


def _text_field(attribute: str, entity: EntityPlan) -> FieldPlan:
    present = sum(attribute in item for item in entity.items)
    note = "a text whose form is not known: the key attribute as it is"
    return FieldPlan(attribute, FieldType("str", "str"), present, notes=[note])
