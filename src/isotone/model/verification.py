"""Verifications: what `store.verify` found in tables, counted, with examples and what to do.

    verification = store.verify(shop)
    print(verification)                          # a table for people
    verification.is_clean                        # for programs
    Path("verify.json").write_text(verification.to_json())

A verification that was interrupted has a position: `store.verify(shop, resume=verification)` continues there, and
adds to what was found before. Its size does not depend on the number of items: findings are counted by what they are
about, and a few items of each are kept as examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, get_args

import msgspec

from isotone.columns import aligned, cell
from isotone.errors import UsageError
from isotone.model.findings import NOTICES, Finding, Kind
from isotone.model.walking import WalkProgress
from isotone.values.json import from_wire, item_from_wire
from isotone.values.types import AttributeValue, Item

_MOST_NAMES: Final = 100  # of one kind in one entity: a program may have written data as names
_OTHERS: Final = "(others)"
_NO_ENTITY: Final = "(none)"
_WIDEST: Final = 100  # of an example in a table, its last column


@dataclass(frozen=True, slots=True)
class Example:
    """An item with a finding: `key` is its primary key, `found` what it has, `declared` what it would have.

    `item_key` and `stored` are the first two as DynamoDB JSON.
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
        """What the item has, as a plain value; None if it has nothing."""
        return None if self.stored is None else from_wire(self.stored)

    def __str__(self) -> str:
        parts = [" ".join(str(next(iter(each.values()))) for each in self.item_key.values())]
        if self.stored is not None:
            parts.append(f"has {_text(self.stored)}")
        if self.declared is not None:
            parts.append(f"declared {self.declared}")
        return ", ".join(parts)


def _text(value: AttributeValue) -> str:
    """A stored value for people: numbers by their digits, a map by its members."""
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

    `kind` says what is wrong, `name` with what: a field, a key, an attribute, or the tag of unrecognized items.
    `entity` is the tag of the entity, None for items of no declared entity.
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
        """Whether the items are what the entity would write, and a change is only advised."""
        return self.kind in NOTICES

    @property
    def advice(self) -> str:
        """What to do, in one sentence."""
        entity = self.entity or "the entity"
        return _ADVICE[self.kind].format(entity=entity, name=self.name or "it")

    def __str__(self) -> str:
        of = ".".join(filter(None, (self.entity, self.name)))
        items = "item" if self.count == 1 else "items"
        return f"{self.count:,} {items}: {self.kind} {of}".rstrip()


_REWRITE: Final = "store.rewrite({entity})"
_ADVICE: Final[Mapping[Kind, str]] = {
    "unrecognized": "declare the entity of these items; a class that was renamed needs tag= with its former name",
    "untagged": f"{_REWRITE} adds the tag",
    "previous_tag": f"{_REWRITE} gives these items the present tag",
    "wrong_tag": "put each item again as the entity that its key is of, or delete it",
    "older_version": f"reads upgrade these items; {_REWRITE} writes them in the present version",
    "newer_version": "deploy the newer program; this one neither reads these items nor writes over them",
    "upgrade_failed": "make the @upgrade of {entity} accept these items",
    "invalid": "set {name} by store.update, or declare the type that is stored; until then reads raise InvalidItem",
    "missing": "declare a default for {name}, or add it by an @upgrade; until then reads raise InvalidItem",
    "implied": f"filters and conditions do not see {{name}} in these items; {_REWRITE} writes it",
    "other_form": f"filters and conditions compare {{name}} as it is stored; {_REWRITE} writes the declared form",
    "computed": f"{_REWRITE} computes {{name}} again",
    "key": f"reads by key miss these items; {_REWRITE} moves them to their keys",
    "overflow": "the next put of these items is refused; declare a larger maximum with was=, then widen the keys",
    "headroom": "declare a larger maximum of {name} with was=, then widen the keys",
    "index_missing": f"queries of {{name}} miss these items; {_REWRITE} adds them",
    "index_stale": f"queries of {{name}} find these items in a wrong place; {_REWRITE} corrects them",
    "index_orphaned": f"queries of {{name}} find these items, and must not; {_REWRITE} removes them",
    "undeclared_index": "declare an Index of {entity} that has {name}, or remove the attribute",
    "unknown_attribute": "declare a field for {name}, or remove the attribute",
    "marker_missing": f"nothing keeps others from taking these values of {{name}}; {_REWRITE} reserves them",
    "marker_taken": "another item holds these values of {name}; change one of the two",
    "marker_orphaned": "nobody has these values of {name}, and nobody can take them; delete the markers",
}


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found so far in the tables that are verified.

    `items` counts all items that were read, `seen` those of each entity, by its tag. `position` is where
    `store.verify(…, resume=…)` continues: a JSON value. `progress` is that of the table that is being read.
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
        """Whether all items that were read are what their entities would write now."""
        return all(finding.is_notice for finding in self.findings)

    def count(self, kind: Kind) -> int:
        """The number of findings of a kind."""
        return sum(finding.count for finding in self.findings if finding.kind == kind)

    def to_json(self) -> str:
        """The verification as a JSON text, for `from_json` or other programs; it has no progress."""
        return msgspec.json.encode(replace(self, progress=None)).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Verification:
        """The verification that `to_json` wrote; raises `UsageError` for another text."""
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
            f"{tables}: {self._result()} in {self.items:,} items"
            f"{f' ({entities})' if entities else ''}, {self.units:,.0f} units"
            f"{'' if self.is_complete else '; not complete'}"
        )

    def _result(self) -> str:
        wrong = sum(each.count for each in self.findings if not each.is_notice)
        notices = sum(each.count for each in self.findings if each.is_notice)
        texts = [f"{wrong:,} finding{'s' * (wrong != 1)}"] if wrong else []
        texts += [f"{notices:,} notice{'s' * (notices != 1)}"] if notices else []
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


class Tally:
    """Counts findings; `examples` is how many items are kept of each."""

    def __init__(self, examples: int, before: Verification | None = None) -> None:
        self._examples = examples
        self._counts: Counter[_Place] = Counter()
        self._kept: dict[_Place, list[Example]] = {}
        self._names: Counter[_Place] = Counter()
        self.seen: Counter[str] = Counter()
        if before is not None:
            self.seen.update(before.seen)
            for each in before.findings:
                place = (each.table, each.entity, each.kind, each.name)
                self._count(place, each.count)
                self._kept[place].extend(each.examples)

    def add(self, table: str, finding: Finding, item_key: Item) -> None:
        """Count one finding of an item."""
        place = (table, finding.entity, finding.kind, finding.name)
        if place not in self._counts and self._names[*place[:3], None] >= _MOST_NAMES:
            place = (*place[:3], _OTHERS)
        self._count(place, 1)
        if len(self._kept[place]) < self._examples:
            self._kept[place].append(Example(item_key, finding.found, finding.declared))

    def _count(self, place: _Place, number: int) -> None:
        if place not in self._counts:
            self._kept[place] = []
            self._names[*place[:3], None] += 1
        self._counts[place] += number

    def findings(self) -> tuple[FindingCount, ...]:
        """The counts: by table and entity, the most frequent first."""
        found = [
            FindingCount(*place, count, tuple(self._kept[place]))
            for place, count in self._counts.items()
        ]
        found.sort(key=lambda each: (each.table, each.entity or "", -each.count, each.kind))
        return tuple(found)


_Place = tuple[str, str | None, Kind, str | None]
