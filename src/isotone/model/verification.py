"""`store.verify`: reads tables and counts items that differ from what their entities would write now.

    verification = store.verify(shop)
    print(verification)                          # a table for people
    verification.is_clean                        # for programs
    Path("verify.json").write_text(verification.to_json())

It only reads. A walk inspects each page item by item (`inspection`). Then the page's unique values are compared with
their markers: each item must own its markers, and the owner of each marker must have its value.

Items change while a table is read: a missing marker may have been deleted together with its item, which was read
earlier. So both are read again, and only an item that is unchanged is a finding.

An interrupted verification has a position: `store.verify(shop, resume=verification)` continues there, and adds to the
findings. Its size does not grow with the number of items: equal findings are counted together, with a few items as
examples.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, get_args

import msgspec

from isotone.clock import Clock
from isotone.errors import UsageError
from isotone.model.declaring.declaration import OWNER_ATTRIBUTE
from isotone.model.declaring.table import Table
from isotone.model.expiry import has_expired
from isotone.model.finding_kinds import FINDING_KINDS, HIDING_VALUES, Kind
from isotone.model.inspection import Inspection, Inspector, ItemFinding
from isotone.model.key_records import model_digest
from isotone.model.walking import Walk, WalkProgress, describe
from isotone.model.writing import uniqueness
from isotone.model.writing.write import key_in, schema_of
from isotone.tables.batch_reads import fetch
from isotone.tables.steps import Steps
from isotone.text_table import aligned, cell, pluralized
from isotone.values.json import from_wire, item_from_wire
from isotone.values.types import AttributeValue, Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

VerificationProgress = Callable[["Verification"], None]
Target = Table | type["Entity"]
_Counted = tuple[str, str | None, Kind, str | None]  # table, entity, kind and name of a finding

# Most names per kind and entity, in case a program uses data as attribute names
_MOST_NAMES: Final = 100
_OTHERS: Final = "(others)"
_NO_ENTITY: Final = "(none)"
_WIDEST: Final = 100  # width of the last column, which shows an example
# Reads of an item that keeps changing; after that, a program is clearly writing it
_LOOKS: Final = 3


# What was found


@dataclass(frozen=True, slots=True)
class Example:
    """An example of a finding: `key` is the item's primary key, `found` what it has, `declared` what it should have.

    `item_key` and `stored` are the first two, as DynamoDB JSON.
    """

    item_key: Item
    stored: AttributeValue | None = None
    declared: str | None = None

    @property
    def key(self) -> dict[str, Any]:
        """The primary key as plain values."""
        return item_from_wire(self.item_key)

    @property
    def found(self) -> Any:
        """What the item has, as a plain value; None if it lacks the attribute."""
        return None if self.stored is None else from_wire(self.stored)

    def __str__(self) -> str:
        parts = [" ".join(str(next(iter(each.values()))) for each in self.item_key.values())]
        if self.stored is not None:
            parts.append(f"has {_text(self.stored)}")
        if self.declared is not None:
            parts.append(f"declared {self.declared}")
        return ", ".join(parts)


def _text(value: AttributeValue) -> str:
    """A stored value as text: numbers by their digits, a map by its members."""
    ((code, content),) = value.items()
    if code == "N":
        return str(content)
    if code == "M":
        members = ", ".join(f"{name}={_text(each)}" for name, each in content.items())
        return members or "nothing"
    return repr(from_wire(value))


@dataclass(frozen=True, slots=True)
class FindingCount:
    """How many items of an entity have the same finding.

    `kind` says what is wrong; `name` says with what: a field, a key, an attribute, or the tag of unrecognized items.
    `entity` is the entity's tag; None for items of no declared entity.
    """

    table: str
    entity: str | None
    kind: Kind
    name: str | None
    count: int
    examples: tuple[Example, ...] = ()

    KINDS: ClassVar[tuple[Kind, ...]] = get_args(Kind)
    """All kinds of findings."""

    @property
    def is_notice(self) -> bool:
        """Whether this is only advice: the items are as the entity would write them."""
        return FINDING_KINDS[self.kind].is_notice

    @property
    def meaning(self) -> str:
        """What is wrong, in a few words."""
        return FINDING_KINDS[self.kind].meaning

    @property
    def advice(self) -> str:
        """What to do about it, in one sentence."""
        entity = self.entity or "the entity"
        return FINDING_KINDS[self.kind].advice.format(entity=entity, name=self.name or "it")

    def __str__(self) -> str:
        of = ".".join(filter(None, (self.entity, self.name)))
        return f"{pluralized(self.count, 'item')}: {self.kind} {of}".rstrip()


@dataclass(frozen=True, slots=True)
class Verification:
    """The findings so far in the verified tables.

    `items` counts all items read, `seen` those of each entity, by tag. `position` is a JSON value for `store.verify(…,
    resume=…)`. `progress` is that of the table being read.
    """

    findings: tuple[FindingCount, ...] = ()
    seen: Mapping[str, int] = field(default_factory=dict)
    items: int = 0
    units: float = 0.0
    is_complete: bool = False
    position: Any = None
    progress: WalkProgress | None = None

    @property
    def is_clean(self) -> bool:
        """Whether all items read so far are as their entities would write them now."""
        return all(finding.is_notice for finding in self.findings)

    def count(self, kind: Kind) -> int:
        """The number of findings of a kind."""
        return sum(finding.count for finding in self.findings if finding.kind == kind)

    def to_json(self) -> str:
        """The verification as JSON text, for `from_json` or other programs; without `progress`."""
        return msgspec.json.encode(replace(self, progress=None)).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Verification:
        """Read what `to_json` wrote; raises `UsageError` for any other text."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise UsageError(
                f"the text is not a verification ({error}); give what to_json() returned"
            ) from None

    def __str__(self) -> str:
        lines = [self._summary()]
        if self.findings:
            lines += ["", self._table(), "", *self._advice()]
        return "\n".join(lines)

    def _summary(self) -> str:
        places = [] if self.position is None else self.position["tables"]
        tables = ", ".join(each["table"] for each in places) or "nothing"
        entities = ", ".join(f"{count:,} {tag}" for tag, count in sorted(self.seen.items()))
        return (
            f"{tables}: {self._result()} in {pluralized(self.items, 'item')}"
            f"{f' ({entities})' if entities else ''}, {pluralized(self.units, 'unit', form=',.0f')}"
            f"{'' if self.is_complete else '; not complete'}"
        )

    def _result(self) -> str:
        wrong = sum(each.count for each in self.findings if not each.is_notice)
        notices = sum(each.count for each in self.findings if each.is_notice)
        texts = [pluralized(wrong, "finding")] if wrong else []
        texts += [pluralized(notices, "notice")] if notices else []
        return " and ".join(texts) or "all is as declared"

    def _table(self) -> str:
        header = ("items", "entity", "finding", "of", "for example")
        rows = [
            (
                f"{finding.count:,}",
                cell(finding.entity or _NO_ENTITY),
                finding.kind,
                cell(finding.name or ""),
                cell(str(finding.examples[0]), _WIDEST) if finding.examples else "",
            )
            for finding in self.findings
        ]
        return aligned(header, rows, right={0})

    def _advice(self) -> Iterator[str]:
        """A line for each kind of finding in each entity."""
        for finding in self.findings:
            of = ".".join(filter(None, (finding.entity or _NO_ENTITY, finding.name)))
            yield f"{of}, {finding.kind}: {finding.advice}"


class _Tally:
    """Counts findings, and keeps `examples` items of each."""

    def __init__(self, examples: int, before: Verification | None = None) -> None:
        self._examples = examples
        self._counts: Counter[_Counted] = Counter()
        self._kept: dict[_Counted, list[Example]] = {}
        self._names: Counter[_Counted] = Counter()
        self.seen: Counter[str] = Counter()
        if before is not None:
            self.seen.update(before.seen)
            for each in before.findings:
                pluralized = (each.table, each.entity, each.kind, each.name)
                self._count(pluralized, each.count)
                self._kept[pluralized].extend(each.examples)

    def add(self, table: str, finding: ItemFinding, item_key: Item) -> None:
        """Count one finding of an item."""
        pluralized = (table, finding.entity, finding.kind, finding.name)
        if pluralized not in self._counts and self._names[*pluralized[:3], None] >= _MOST_NAMES:
            pluralized = (*pluralized[:3], _OTHERS)
        self._count(pluralized, 1)
        if len(self._kept[pluralized]) < self._examples:
            self._kept[pluralized].append(Example(item_key, finding.found, finding.declared))

    def _count(self, pluralized: _Counted, number: int) -> None:
        if pluralized not in self._counts:
            self._kept[pluralized] = []
            self._names[*pluralized[:3], None] += 1
        self._counts[pluralized] += number

    def findings(self) -> tuple[FindingCount, ...]:
        """The counts by table and entity, most frequent first."""
        found = [
            FindingCount(*pluralized, count, tuple(self._kept[pluralized]))
            for pluralized, count in self._counts.items()
        ]
        found.sort(key=lambda each: (each.table, each.entity or "", -each.count, each.kind))
        return tuple(found)


# Reading the tables


def verify(
    targets: Sequence[Target],
    clock: Clock,
    *,
    segments: int = 1,
    units_per_second: float | None = None,
    examples: int = 3,
    progress: VerificationProgress | None = None,
    resume: Verification | None = None,
) -> Steps[Verification]:
    """See `Operations.verify`."""
    if type(examples) is not int or examples < 0:
        raise UsageError(f"examples={examples!r} is not a number of items; give 0 or more")
    parts = _parts(targets)
    places = _places(parts, resume)
    tally = _Tally(examples, resume)
    done = Verification() if resume is None else resume
    for part, place in zip(parts, places, strict=True):
        description = yield from describe(part.table)
        _check_same_table(place, description.identity)
        schemas = part.table.entities.values()
        verified = [each for each in schemas if not part.entities or each.tag in part.entities]
        _check_same_model(place, model_digest(verified))
        if place.is_over:
            continue
        walk = Walk(
            part.table,
            segments=segments,
            units_per_second=units_per_second,
            position=place.walk,
            description=description,
        )
        before = walk.progress
        visiting = _Visiting(part, walk, clock, tally)
        while not walk.is_over:
            yield from walk.step(visiting.visit)
            place.walk, place.is_over = walk.position, walk.is_over
            now = walk.progress
            report = Verification(
                tally.findings(),
                dict(tally.seen),
                done.items + now.seen - before.seen,
                done.units + now.units - before.units,
                all(each.is_over for each in places),
                {"tables": msgspec.to_builtins(places)},
                now,
            )
            if progress is not None:
                progress(report)
        done = report
    return done


# What to verify


class _VerifiedPart(NamedTuple):
    """A table to read, and the entities to verify; None for all that the program declares."""

    table: Table
    entities: frozenset[str] | None


class _VerifiedSoFar(msgspec.Struct):
    """How far one table has been verified."""

    table: str
    entities: list[str] | None
    walk: Any = None
    is_over: bool = False
    identity: str = ""  # the table's identity, so that a new table with the same name is noticed
    model: str = ""  # a digest of the entities, so that a model that has changed is noticed


def _check_same_table(place: _VerifiedSoFar, identity: str) -> None:
    """Raise `UsageError` if the saved position is of an earlier table with the same name."""
    if place.identity not in ("", identity):
        raise UsageError(
            f"table {place.table!r} is not the one of which the verification to resume has read a part: it was made again; "
            "leave out resume=, or delete the file of --resume"
        )
    place.identity = identity


def _check_same_model(place: _VerifiedSoFar, model: str) -> None:
    """Raise `UsageError` if the saved position is of a verification by another model."""
    if place.model not in ("", model):
        raise UsageError(
            f"the model of table {place.table!r} has changed since the verification to resume has read a part of it; "
            "leave out resume=, or delete the file of --resume"
        )
    place.model = model


def _parts(targets: Sequence[Target]) -> list[_VerifiedPart]:
    """The tables to read, without duplicates."""
    if not targets:
        raise UsageError("verify() needs a table or an entity; write verify(shop)")
    wanted: dict[Table, set[str] | None] = {}
    for target in targets:
        if isinstance(target, Table):
            wanted[target] = None
            continue
        schema = schema_of(target)
        tags = wanted.setdefault(schema.table, set())
        if tags is not None:
            tags.update((schema.tag, *(kind.tag for kind in schema.kinds())))
    return [
        _VerifiedPart(table, None if tags is None else frozenset(tags))
        for table, tags in wanted.items()
    ]


def _places(parts: Sequence[_VerifiedPart], resume: Verification | None) -> list[_VerifiedSoFar]:
    """Where to continue in each table; raises `UsageError` if `resume` has other targets."""
    new = [
        _VerifiedSoFar(part.table.name, None if part.entities is None else sorted(part.entities))
        for part in parts
    ]
    if resume is None:
        return new
    try:
        found = msgspec.convert(resume.position["tables"], list[_VerifiedSoFar])
    except (msgspec.ValidationError, TypeError, KeyError):
        raise UsageError(
            f"resume={resume!r:.100} has no position; give a Verification that store.verify returned"
        ) from None
    if [(each.table, each.entities) for each in found] != [
        (each.table, each.entities) for each in new
    ]:
        names = ", ".join(_name(each) for each in found)
        raise UsageError(
            f"the verification to resume is of {names}, and this one is of {', '.join(map(_name, new))}; "
            "give the same targets in the same order, or leave out resume="
        )
    return found


def _name(place: _VerifiedSoFar) -> str:
    return f"{place.table} ({', '.join(place.entities)})" if place.entities else place.table


# Visiting the pages


class _Claim(NamedTuple):
    """A unique value of an item, and the key of the marker that must reserve it."""

    item: Item
    schema: EntitySchema
    text: str
    field: str


class _Held(NamedTuple):
    """A marker, and the owner and value that it names."""

    item: Item
    schema: EntitySchema
    field: str
    text: str


class _Visiting:
    """Inspects the pages of one table."""

    def __init__(self, part: _VerifiedPart, walk: Walk, clock: Clock, tally: _Tally) -> None:
        self._table = part.table
        self._wanted = part.entities
        self._walk = walk
        self._clock = clock
        self._tally = tally
        self._lock = threading.Lock()  # pages of several segments arrive at the same time
        self._made: Inspector | None = None

    @property
    def _inspector(self) -> Inspector:
        if self._made is None:
            description = self._walk.description
            others = description.index_attributes if description else {}
            self._made = Inspector(self._table, others)
        return self._made

    def visit(self, items: list[Item]) -> Steps[None]:
        """Count the findings in a page of items."""
        inspector, now = self._inspector, self._clock.now()
        claims: list[_Claim] = []
        markers: list[_Held] = []
        found: list[tuple[ItemFinding, Item]] = []
        seen: list[str] = []
        for item in items:
            if inspector.is_of_library(item):
                if uniqueness.is_marker(self._key(item)):
                    self._sort_marker(item, markers, found)
                continue
            if not self._is_wanted(inspector, item):
                continue
            schema, findings, texts = inspector.inspect(item, now)
            found += [(finding, item) for finding in findings]
            if schema is not None:
                seen.append(schema.tag)
                claims += [_Claim(item, schema, text, field.name) for text, field in texts.items()]
        self._count(found, seen)
        if claims:
            yield from self._check_claims(claims)
        if markers:
            yield from self._check_markers(markers)

    def _is_wanted(self, inspector: Inspector, item: Item) -> bool:
        """Whether to inspect an item: it is of a wanted entity, or has no tag and no known form of key."""
        if self._wanted is None:
            return True
        schema = inspector.entity_of(item)
        if schema is None:
            return "S" not in item.get(self._table.tag, {})
        return schema.tag in self._wanted

    def _key(self, item: Item) -> Item:
        return {each.name: item[each.name] for each in self._table.keys.attributes}

    def _count(self, found: Iterable[tuple[ItemFinding, Item]], seen: Iterable[str] = ()) -> None:
        with self._lock:
            self._tally.seen.update(seen)
            for finding, item in found:
                self._tally.add(self._table.name, finding, self._key(item))

    def _inspect(self, item: Item) -> Inspection:
        return self._inspector.inspect(item, self._clock.now())

    def _fetch(self, keys: Sequence[Item]) -> Steps[list[Item | None]]:
        return fetch(self._table.name, keys, consistent=True, count=self._walk.count)

    # Markers of unique values

    def _check_claims(self, claims: list[_Claim]) -> Steps[None]:
        """Count the items that do not own the markers of their unique values."""
        for _ in range(_LOOKS):
            suspects = yield from self._unowned_claims(claims)
            if not suspects:
                return
            items = yield from self._fetch([self._key(claim.item) for claim, _ in suspects])
            same, claims = [], []
            for (claim, _), item in zip(suspects, items, strict=True):
                if item == claim.item:
                    same.append(claim)
                elif item is not None and claim.text in self._inspect(item).claims:
                    claims.append(claim._replace(item=item))
            for claim, marker in (yield from self._unowned_claims(same)):
                self._count([(_unclaimed(claim, marker), claim.item)])

    def _unowned_claims(self, claims: list[_Claim]) -> Steps[list[tuple[_Claim, Item | None]]]:
        """The values whose markers belong to no item or another one, each with its marker if it exists."""
        keys = [uniqueness.marker_key(each.schema, each.text) for each in claims]
        markers = yield from self._fetch(keys)
        now = self._clock.now()
        return [
            (claim, marker)
            for claim, marker in zip(claims, markers, strict=True)
            if not _owns(claim, marker, now)
        ]

    def _has_expired(self, marker: Item) -> bool:
        return has_expired(marker.get(self._table.ttl), self._clock.now())

    def _sort_marker(
        self, item: Item, markers: list[_Held], found: list[tuple[ItemFinding, Item]]
    ) -> None:
        """Collect a marker whose owner must be read, or add a finding if nobody can own it."""
        claim = uniqueness.claimed_by(self._table, item)
        if claim is None:
            if self._wanted is None:
                found.append((ItemFinding("unrecognized", None, uniqueness.MARK, None), item))
            return
        schema, field, text = claim
        if self._has_expired(item) or (self._wanted is not None and schema.tag not in self._wanted):
            return
        if field in {each.name for each in schema.unique} and self._owner(item) is not None:
            markers.append(_Held(item, schema, field, text))
        else:
            found.append((_unowned(schema, field, item), item))

    def _owner(self, marker: Item) -> Item | None:
        """The owner's key in a marker; None if it is not a key."""
        owner: Item = marker.get(OWNER_ATTRIBUTE, {}).get("M", {})
        names = {each.name: each.type for each in self._table.keys.attributes}
        is_key = {name: next(iter(value)) for name, value in owner.items()} == names
        return owner if is_key else None

    def _check_markers(self, markers: list[_Held]) -> Steps[None]:
        """Count the markers whose owners do not have the reserved value."""
        for _ in range(_LOOKS):
            suspects = yield from self._unowned_markers(markers)
            if not suspects:
                return
            items = yield from self._fetch([self._key(held.item) for held in suspects])
            same, markers = [], []
            for held, item in zip(suspects, items, strict=True):
                if item == held.item:
                    same.append(held)
                elif item is not None and self._owner(item) is not None:
                    markers.append(held._replace(item=item))
            for held in (yield from self._unowned_markers(same)):
                self._count([(_unowned(held.schema, held.field, held.item), held.item)])

    def _unowned_markers(self, markers: list[_Held]) -> Steps[list[_Held]]:
        """The markers whose owners do not have the value any longer."""
        owners = yield from self._fetch([self._owner(each.item) or {} for each in markers])
        return [
            held
            for held, owner in zip(markers, owners, strict=True)
            if not self._may_own(held, owner)
        ]

    def _may_own(self, held: _Held, owner: Item | None) -> bool:
        if owner is None:
            return False
        inspection = self._inspect(owner)
        return held.text in inspection.claims or any(
            finding.kind in HIDING_VALUES for finding in inspection.findings
        )


def unclaimed_values(
    table: Table, item: Item, inspection: Inspection, clock: Clock
) -> Steps[list[ItemFinding]]:
    """The findings about the unique values of one inspected item. Cost: a read for each value."""
    schema = inspection.entity
    if schema is None:
        return []
    claims = [_Claim(item, schema, text, field.name) for text, field in inspection.claims.items()]
    keys = [uniqueness.marker_key(schema, each.text) for each in claims]
    markers = yield from fetch(table.name, keys, consistent=True)
    now = clock.now()
    return [
        _unclaimed(claim, marker)
        for claim, marker in zip(claims, markers, strict=True)
        if not _owns(claim, marker, now)
    ]


def _owns(claim: _Claim, marker: Item | None, now: float) -> bool:
    """Whether a marker reserves a value for the item that has it."""
    table = claim.schema.table
    return (
        marker is not None
        and marker.get(OWNER_ATTRIBUTE) == {"M": key_in(claim.schema, claim.item)}
        and not has_expired(marker.get(table.ttl), now)
    )


def _unclaimed(claim: _Claim, marker: Item | None) -> ItemFinding:
    """The finding for an item that does not own the marker of its value."""
    item = claim.item
    value = item.get(claim.schema.fields[claim.field].attribute)
    if marker is None or OWNER_ATTRIBUTE not in marker:
        return ItemFinding("marker_missing", claim.schema.tag, claim.field, value)
    owner = " ".join(
        str(next(iter(each.values()))) for each in marker[OWNER_ATTRIBUTE].get("M", {}).values()
    )
    return ItemFinding("marker_taken", claim.schema.tag, claim.field, value, f"held by {owner}")


def _unowned(schema: EntitySchema, field: str, marker: Item) -> ItemFinding:
    """The finding for a marker whose owner does not have the value."""
    return ItemFinding("marker_orphaned", schema.tag, field, marker.get(OWNER_ATTRIBUTE))
