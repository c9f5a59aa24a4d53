"""Plans the entities of a table: the fields of each kind, the forms of its keys, and notes on guesses.

A key attribute has a *form* made of literals and fields, or is a *plain* field with the whole value. Keys without a
common form are plain. If the keys of two kinds could be equal, the model could not distinguish the kinds. Then texts
are escaped, so that they end at a separator, or both kinds become one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from itertools import combinations
from typing import Any, Final

from isotone.codec import readable
from isotone.inference.field_types import FieldType, may_be_choice, quoted, type_of
from isotone.inference.grouping import Group, Grouping
from isotone.inference.key_forms import KeyForm, ambiguity
from isotone.inference.key_recognition import Aligned, KeyFieldSource, align, is_generic
from isotone.inference.key_styles import is_reversed_time
from isotone.inference.sampling import Sample
from isotone.tables.description import IndexDescription, KeyElement, TableDescription
from isotone.text_table import pluralized
from isotone.values.types import AttributeValue, Item

VERSION: Final = "_v"
_ALIGNED: Final = 300  # keys that are aligned; the others are only compared with the resulting form
_MOST_OTHERS: Final = 0.05  # of the items of a kind that may have keys of another form
_UNSORTED: Final = "not padded in a sort key, which does not sort by it"
_MOST_CONDITION_VALUES: Final = 5


@dataclass
class FieldPlan:
    """A field of an entity: an attribute, or a part that only a key holds."""

    source: str
    type: FieldType
    present: int
    is_null: int = 0
    only_in_key: bool = False
    options: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    hint: str = ""
    is_expiry: bool = False


@dataclass
class IndexPlan:
    """An index that items of an entity are in, and the condition that selects them.

    `title` is what its access pattern is called, if not after the index.
    """

    shape: IndexDescription
    present: int
    condition: tuple[str, tuple[AttributeValue, ...]] | None = None
    note: str = ""
    title: str = ""


@dataclass
class EntityPlan:
    """An entity: its items, fields and keys. `about` begins its docstring, if not the number of items."""

    group: Group
    items: list[Item]
    fields: dict[str, FieldPlan]
    forms: dict[str, KeyForm]
    indexes: list[IndexPlan]
    definitions: list[str]
    left_out: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    about: str = ""

    @property
    def tag(self) -> str | None:
        return self.group.tag


@dataclass
class ModelPlan:
    """The entities of a table, by one way to divide its items."""

    tag: str | None
    entities: list[EntityPlan]
    ambiguous: int = 0

    @property
    def left_out(self) -> int:
        return sum(len(entity.left_out) for entity in self.entities)


class Planner:
    """Plans the entities of one sample."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.table: TableDescription = sample.table
        self.keys: dict[str, str] = sample.table.key_attributes
        self.primary: list[str] = [part.name for part in sample.table.key.parts]
        self.classes: set[str] = set()

    def plan(self, grouping: Grouping) -> ModelPlan:
        """The entities of a grouping; without a tag, those whose keys could be equal are merged."""
        groups = list(grouping.groups)
        entities = [self._entity(group, grouping, len(groups)) for group in groups]
        plan = ModelPlan(grouping.tag, entities)
        self._separate(plan)
        return plan

    def _entity(self, group: Group, grouping: Grouping, kinds: int) -> EntityPlan:
        items = [self.sample.items[number] for number in group.items]
        return _EntityPlanner(self, group, items, grouping.tag, kinds).plan()

    # Kinds whose keys could be equal

    def _separate(self, plan: ModelPlan) -> None:
        """Change entities whose keys could be equal, until no two can be."""
        for _ in range(len(plan.entities) + 2):
            pair = self._ambiguous_pair(plan.entities)
            if pair is None:
                return
            one, other = pair
            if self._escape(one, other):
                continue
            if plan.tag is not None:
                plan.ambiguous += len(one.items) + len(other.items)
                return
            plan.entities.remove(one)
            plan.entities.remove(other)
            numbers = tuple(sorted(one.group.items + other.group.items))
            grouping = Grouping(None, ())
            merged = self._entity(Group(numbers), grouping, max(2, len(plan.entities) + 1))
            merged.notes.append(
                "it is several kinds whose keys have no forms that tell them apart, so it has the fields of all"
            )
            plan.entities.append(merged)

    def _ambiguous_pair(
        self, entities: Sequence[EntityPlan]
    ) -> tuple[EntityPlan, EntityPlan] | None:
        for one, other in combinations(entities, 2):
            if ambiguity(one.forms, other.forms, self.primary) is not None:
                return one, other
        return None

    def _escape(self, one: EntityPlan, other: EntityPlan) -> bool:
        """End the texts of one or both entities at separators; returns whether that distinguishes them."""
        escaped = [{**each.forms, **self._escaped(each)} for each in (one, other)]
        choices = [
            (one.forms, escaped[1]),
            (escaped[0], other.forms),
            (escaped[0], escaped[1]),
        ]
        for ours, theirs in choices:
            if ambiguity(ours, theirs, self.primary) is None:
                one.forms, other.forms = dict(ours), dict(theirs)
                return True
        return False

    def _escaped(self, entity: EntityPlan) -> dict[str, KeyForm]:
        """The forms of the primary key with escaped texts, where they read every key."""
        found = {}
        for name in self.primary:
            form = entity.forms.get(name)
            if form is None:
                continue
            texts = [item[name]["S"] for item in entity.items if "S" in item[name]]
            escaped = form.with_escapes()
            if escaped.template is not None and all(
                escaped.parse(text) is not None for text in texts
            ):
                found[name] = escaped
        return found


class _EntityPlanner:
    """Plans one entity."""

    def __init__(
        self, planner: Planner, group: Group, items: list[Item], tag: str | None, kinds: int
    ) -> None:
        self._planner = planner
        self._sample = planner.sample
        self._table = planner.table
        self._keys = planner.keys
        self._primary = planner.primary
        self._group = group
        self._items = items
        self._tag = tag
        self._kinds = kinds
        self._notes: list[str] = []
        self._left_out: list[int] = []
        self._fields: dict[str, FieldPlan] = {}
        self._sources: dict[str, KeyFieldSource] = {}
        self._forms: dict[str, KeyForm] = {}
        self._definitions: list[str] = []

    def plan(self) -> EntityPlan:
        self._plan_fields()
        for name in self._primary:
            self._plan_key(name, is_primary=True)
        indexes = list(self._plan_indexes())
        self._keep_used_fields()
        return EntityPlan(
            self._group,
            self._items,
            self._fields,
            self._forms,
            indexes,
            self._definitions,
            self._left_out,
            self._notes,
        )

    # Fields

    def _plan_fields(self) -> None:
        names = dict.fromkeys(name for item in self._items for name in item)
        for name in names:
            if name == VERSION:
                self._notes.append(
                    f"attribute {VERSION!r} is where Isotone keeps the version of an entity: it is not declared"
                )
            elif name not in self._keys and name != self._tag:
                self._add_field(name)
        for name in names:
            if name in self._keys and name not in self._primary and self._is_ordinary(name):
                self._add_plain(name, is_primary=False)

    def _is_ordinary(self, name: str) -> bool:
        """Whether the attribute of an index key is an ordinary field, and not composed of others."""
        if self._keys[name] != "S":
            return True
        texts = [
            (number, item[name]["S"]) for number, item in enumerate(self._items) if name in item
        ]
        aligned = None if is_generic(name) else self._aligned(name, texts, False)
        return not is_generic(name) and (
            aligned is None or self._is_better_plain(name, aligned, False)
        )

    def _add_field(self, name: str) -> None:
        values = [item.get(name) for item in self._items]
        present = [value for value in values if value is not None and "NULL" not in value]
        kind = type_of(name, present, self._planner.classes)
        plan = FieldPlan(
            name,
            kind,
            len(present),
            is_null=sum(value is not None for value in values) - len(present),
            options=dict(kind.options),
            notes=[("guessed: " if kind.is_guess else "") + kind.note] if kind.note else [],
        )
        self._definitions += kind.definitions
        if name == self._table.ttl:
            self._mark_expiry(plan, present)
        self._fields[name] = plan
        if kind.kind:
            decoded = [
                None if value is None or "NULL" in value else kind.decode(value) for value in values
            ]
            is_index_key = name in self._keys and name not in self._primary
            self._sources[name] = KeyFieldSource(
                name, kind.kind, decoded, is_index_key=is_index_key
            )

    def _mark_expiry(self, plan: FieldPlan, present: Sequence[AttributeValue]) -> None:
        """Declare the attribute of the table's TimeToLive as the expiry, if all its values are whole seconds."""
        if present and all(
            value.get("N", "").isdigit() and len(value["N"]) <= 11 for value in present
        ):
            seconds = type_of("expires_at", present, set())
            if seconds.text == "datetime":
                plan.type, plan.is_expiry = seconds, True
                plan.options, plan.notes = {}, ["items expire by it"]
                return
        plan.notes.append(
            "the table expires items by it, but not all its values are seconds since 1970"
        )

    # Keys

    def _plan_key(self, name: str, *, is_primary: bool) -> None:
        """Find the form of a key attribute; without one it becomes a plain field."""
        if name in self._forms or name in self._fields:
            return
        numbered = [(number, item[name]) for number, item in enumerate(self._items) if name in item]
        texts = [(number, value["S"]) for number, value in numbered if "S" in value]
        aligned = self._aligned(name, texts, is_primary) if self._keys[name] == "S" else None
        if aligned is None or self._is_better_plain(name, aligned, is_primary):
            self._add_plain(name, is_primary)
            return
        self._forms[name] = aligned.form
        for source in aligned.sources:
            self._add_virtual(name, source, is_primary)
        for place in aligned.form.places:
            plan = self._fields[place.source]
            plan.options |= place.style.options
            self._note_tie(plan, name, aligned.ties.get(place.source, ()))
            self._sources[place.source].fixed |= place.style.demands
            is_sort = any(part.name == name for part in self._sort_parts())
            if isinstance(place.style.codec, readable.Unpadded):
                self._note_width(plan, self._sources[place.source].values)
            if is_sort and not place.style.codec.sorts and _UNSORTED not in plan.notes:
                plan.notes.append(_UNSORTED)

    @staticmethod
    def _note_tie(plan: FieldPlan, key: str, others: Sequence[str]) -> None:
        """Note the attributes that have the same values as a field in a key, so that either may be meant."""
        if others:
            plan.notes.append(
                f"guessed: {key} may have {' or '.join(others)} here, which {'has' if len(others) == 1 else 'have'} "
                "the same values"
            )

    @staticmethod
    def _note_width(plan: FieldPlan, values: Sequence[Any]) -> None:
        """Note that numbers without leading zeros may be padded, if all have the same number of digits."""
        widths = {len(str(value)) for value in values if value is not None}
        if len(widths) != 1 or len(set(values)) < 2:
            return
        note = (
            f"all have {max(widths)} digits, so keys may pad them: then declare max= without raw(…)"
        )
        if max(widths) > 1 and note not in plan.notes:
            plan.notes.append(note)

    def _sort_parts(self) -> Iterator[KeyElement]:
        """The attributes that the table or an index sorts by."""
        yield from self._table.key.sort
        for index in self._table.indexes:
            yield from index.key.sort

    def _aligned(self, name: str, texts: list[tuple[int, str]], is_primary: bool) -> Aligned | None:
        """The form of all keys, or of all but a few, which are left out of the model."""
        if not texts or any(not text for _, text in texts):
            return None
        if is_primary and len({_shape(text) for _, text in texts}) > 1:
            most = self._of_most(name, texts)
            if most is not None:
                return most
        sample = texts if len(texts) <= _ALIGNED else texts[:: -(-len(texts) // _ALIGNED)]
        for _ in range(2):
            aligned = self._align(name, sample, is_primary)
            if aligned is None:
                break
            others = self._others(aligned, texts)
            if not others:
                self._complete(aligned, texts)
                return aligned
            sample = [*sample[: _ALIGNED // 2], *others[: _ALIGNED // 2]]
        return None

    def _align(self, name: str, texts: list[tuple[int, str]], is_primary: bool) -> Aligned | None:
        return align(
            texts,
            [*self._sources.values()],
            name,
            len(self._items),
            escapes=self._sample.own > 0,
            is_primary=is_primary,
        )

    def _of_most(self, name: str, texts: list[tuple[int, str]]) -> Aligned | None:
        """The form of all keys but a few, if there is one; the other items are left out."""
        shapes = Counter(_shape(text) for _, text in texts)
        shape, count = shapes.most_common(1)[0]
        if count == len(texts) or count < (1 - _MOST_OTHERS) * len(texts):
            return None
        usual = [(number, text) for number, text in texts if _shape(text) == shape]
        aligned = self._align(name, usual[:_ALIGNED], True)
        if aligned is None or len(aligned.form.parts) == 1:
            return None
        others = self._others(aligned, texts)
        if not others or len(others) > _MOST_OTHERS * len(texts):
            return None
        self._complete(aligned, texts)
        self._left_out += [self._group.items[number] for number, _ in others]
        shown = ", ".join(quoted(text[:60]) for _, text in others[:3])
        self._notes.append(
            f"items that are not modelled, because their {name} has another form: {len(others)} of "
            f"{len(texts)}, such as {shown}"
        )
        return aligned

    def _others(self, aligned: Aligned, texts: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """The keys that do not have a form."""
        known = {
            source.name: source for source in self._sources.values() if not source.is_virtual
        } | {source.name: source for source in self._sources.values()}
        return [
            (number, text)
            for number, text in texts
            if not aligned.form.reads(
                text,
                {
                    place.source: known[place.source].values[number]
                    for place in aligned.form.places
                    if place.source in known
                },
            )
        ]

    def _complete(self, aligned: Aligned, texts: list[tuple[int, str]]) -> None:
        """Fill in the values of new fields for the keys that were not aligned."""
        for number, text in texts:
            values = aligned.form.parse(text) or {}
            for source in aligned.sources:
                source.values[number] = values.get(source.name)

    def _is_better_plain(self, name: str, aligned: Aligned, is_primary: bool) -> bool:
        """Whether a key is one value that is in no attribute, so that a plain field is better."""
        form = aligned.form
        if len(form.parts) == 1 and form.places and aligned.sources:
            return not (is_primary and self._kinds > 1 and aligned.sources[0].kind != "str")
        has_known = len(form.places) > len(aligned.sources)
        is_single = self._kinds == 1 or not is_primary
        return is_single and not is_generic(name) and not has_known and len(form.places) <= 1

    def _add_plain(self, name: str, is_primary: bool) -> None:
        self._add_field(name)
        plan = self._fields[name]
        if plan.type.text.startswith("Literal"):
            # Other values may follow, and are still found by the key.
            plan.type, plan.notes = FieldType("str", "str"), []
        values = [next(iter(item[name].values())) for item in self._items if name in item]
        if self._keys[name] == "N" and plan.type.text == "int":
            titles = {is_reversed_time(int(value)) for value in values}
            if len(titles) == 1 and (title := titles.pop()):
                plan.notes.append(f"guessed: {title}, so that the newest is the first")
        if is_generic(name) and self._keys[name] == "S":
            why = "one text without a form" if is_primary else "a text whose form is not known"
            plan.notes.append(f"{why}: the key attribute as it is")

    def _add_virtual(self, name: str, source: KeyFieldSource, is_primary: bool) -> None:
        self._sources[source.name] = source
        present = sum(value is not None for value in source.values)
        plan = FieldPlan(
            source.name,
            FieldType(_ANNOTATIONS[source.kind], source.kind),
            present,
            only_in_key=True,
            hint=source.hint,
            notes=[f"only in {name}"],
        )
        if source.note:
            plan.notes.append(source.note)
        derived = self._derived(source)
        if derived:
            plan.notes.append(derived)
        self._fields[source.name] = plan

    def _derived(self, source: KeyFieldSource) -> str:
        """A note on the attribute that begins with the same text, such as a time with its day; empty if none does."""
        for other in self._sources.values():
            if other.is_virtual or other.kind not in ("str", "datetime"):
                continue
            pairs = [
                (_day_text(value), _day_text(known) if other.kind == "datetime" else known)
                for value, known in zip(source.values, other.values, strict=True)
                if value is not None and known is not None
            ]
            if pairs and all(own.lower() == known.lower() for own, known in pairs):
                return f"{other.name} in another case: set both"
            if pairs and all(len(own) > 3 and known.startswith(own) for own, known in pairs):
                return f"the beginning of {other.name}: set both"
        return ""

    # Indexes

    def _plan_indexes(self) -> Iterator[IndexPlan]:
        for shape in self._table.indexes:
            own = [part.name for part in shape.key.parts if part.name not in self._primary]
            is_in = [all(name in item for name in own) for item in self._items]
            present = sum(is_in)
            if not present:
                continue
            for name in own:
                self._plan_key(name, is_primary=False)
            plan = IndexPlan(shape, present)
            if not self._explains(own, is_in):
                plan.condition = self._condition(is_in)
                if plan.condition is None:
                    self._make_plain(own)
                    self._notes.append(
                        f"{present} of {pluralized(len(self._items), 'item')} are in index {shape.name}, and no field says "
                        "which: its keys are fields of their own, so set them as the other program does"
                    )
            if plan.condition is not None:
                plan.note = (
                    f"guessed: {present} of {pluralized(len(self._items), 'item')} are in the index"
                )
            yield plan

    def _explains(self, own: Sequence[str], is_in: Sequence[bool]) -> bool:
        """Whether the items in an index are exactly those with a value in each field of its key."""
        sources = {
            place.source
            for name in own
            if name in self._forms
            for place in self._forms[name].places
        }
        plain = [name for name in own if name in self._fields]
        for number, item in enumerate(self._items):
            has_all = all(self._sources[each].values[number] is not None for each in sources)
            has_all = has_all and all(name in item for name in plain)
            if has_all != is_in[number] and not (is_in[number] and not has_all):
                return False
        return True

    def _condition(self, is_in: Sequence[bool]) -> tuple[str, tuple[AttributeValue, ...]] | None:
        """The field and values that exactly the items in an index have."""
        for name, plan in sorted(self._fields.items(), key=self._likelihood):
            if name not in self._sources or plan.only_in_key or name in self._keys:
                continue
            if name in self._in_primary():
                continue
            inside = [
                item.get(name) for item, is_it in zip(self._items, is_in, strict=True) if is_it
            ]
            outside = [
                item.get(name) for item, is_it in zip(self._items, is_in, strict=True) if not is_it
            ]
            values = {repr(value): value for value in inside if value is not None}
            if None in inside or len(values) > _MOST_CONDITION_VALUES or not values:
                continue
            if any(repr(value) in values for value in outside):
                continue
            if not _may_be_condition(plan, len(values), len(inside)):
                continue
            return name, tuple(values[text] for text in sorted(values))
        return None

    def _likelihood(self, named: tuple[str, FieldPlan]) -> tuple[bool, bool]:
        """Sorts likely conditions first."""
        name, plan = named
        used = {place.source for form in self._forms.values() for place in form.places}
        is_choice = plan.type.text == "bool" or plan.type.text.startswith("Literal")
        return name not in used, not (is_choice or may_be_choice(name))

    def _in_primary(self) -> set[str]:
        """The fields in the primary key."""
        forms = [self._forms[name] for name in self._primary if name in self._forms]
        return {place.source for form in forms for place in form.places} | set(self._primary)

    def _make_plain(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self._forms:
                del self._forms[name]
                self._add_plain(name, is_primary=False)

    def _keep_used_fields(self) -> None:
        """Drop the parts of keys that became plain."""
        used = {place.source for form in self._forms.values() for place in form.places}
        for name in list(self._fields):
            if self._fields[name].only_in_key and name not in used:
                del self._fields[name]


def _may_be_condition(plan: FieldPlan, values: int, items: int) -> bool:
    """Whether a field with this few values looks like a condition, not like a coincidence."""
    if plan.type.text == "bool" or plan.type.text.startswith("Literal"):
        return True
    return plan.type.text in ("str", "int") and (values == 1 or 2 * values <= items)


def _day_text(value: Any) -> str:
    """A value as text; a time at midnight as its day."""
    if isinstance(value, datetime) and value.timetz() != time(tzinfo=UTC):
        return value.isoformat()
    return value.strftime("%Y-%m-%d") if isinstance(value, date) else str(value)


def _shape(text: str) -> str:
    """The separators of a text, for comparing keys roughly."""
    return "".join(character for character in text if not character.isalnum())


_ANNOTATIONS: Final = {
    "str": "str",
    "int": "int",
    "Decimal": "Decimal",
    "date": "date",
    "datetime": "datetime",
    "uuid": "UUID",
    "ulid": "ULID",
    "ksuid": "KSUID",
    "bool": "bool",
    "bytes": "bytes",
}
