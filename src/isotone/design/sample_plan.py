"""How many items a sample has of each entity (items, per, popularity), which item belongs to which, and their values.

Every item follows from the seed, its entity and its number alone. So an item finds the key of another one without any
being in memory, and a sample can be continued in the middle.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import prod
from typing import Any, Final, NamedTuple, Self

from isotone.advisor.simulation.workload import Ranks
from isotone.design.chance import Chance, spread
from isotone.design.relations import EntityRelations, Reference, relations_of
from isotone.design.sample_texts import SampleTexts
from isotone.design.sample_values import (
    DistinctValues,
    Maker,
    SampleSettings,
    distinct_of,
    maker_of,
)
from isotone.errors import UsageError
from isotone.model import Attr, Entity, EntitySchema, Table

UNTIL: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The time at which a sample ends, unless another is given: the same on every day, so that the items are the same."""

ROOTS: Final = 100
"""Items of an entity that belongs to no other, unless their number is given."""
GROUPS: Final = 20
"""Partitions of such an entity, if several of its items share one."""
_YEAR: Final = 365 * 86_400  # seconds
_MOST: Final = 1 << 32  # items of one entity: texts differ in 32 bits
_CHECKED: Final = 500  # keys of each entity that are compared
_SEVERAL: Final = re.compile(r"(\d+)(?:\.\.(\d+))?(?:,zipf(?:=(\d+(?:\.\d+)?))?)?")
_GIVEN: Final = frozenset({"plain", "expires", "created", "created_id"})


class Several(NamedTuple):
    """How many children a parent has: from `low` to `high`; with `skew`, the k-th parent has 1/k ** skew of the most."""

    low: int
    high: int
    skew: float = 0.0

    @classmethod
    def of(cls, given: int | str) -> Self:
        """The number in a text: `9`, `3..40`, `3..40,zipf` or `3..40,zipf=0.8`; raises `UsageError`."""
        found = _SEVERAL.fullmatch(str(given))
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise UsageError(
                f"{given!r} is not a number of items; write 9, 3..40, or 3..40,zipf for a few with the most"
            )
        is_skewed = "zipf" in found[0]
        skew = float(found[3] or 1.0) if is_skewed else 0.0
        return cls(int(found[1]), int(found[2] or found[1]), skew)

    @property
    def text(self) -> str:
        """The text that `of` reads."""
        numbers = str(self.low) if self.low == self.high else f"{self.low}..{self.high}"
        return f"{numbers},zipf={self.skew:g}" if self.skew else numbers

    def of_parent(self, number: int, chance: Chance) -> int:
        """The number of children of one parent; parents in a row have evenly spread numbers, so few tell the average."""
        if not self.skew:
            return self.low + spread(chance.restart(0).bits(), number, self.high - self.low + 1)
        return self.low + int((self.high - self.low) / (number + 1) ** self.skew)


_PER_PARENT: Final = Several(1, 10)
# A sample begins a year earlier, and ids count from 1970; items expire up to thirty years later.
_EARLIEST: Final = datetime(1971, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9900, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class SampleRequest:
    """What is asked of a sample: numbers of items, of children per parent, and how unequally members are referred to.

    The names are those of entities. `per` has the child's name, and the parent's or "".
    """

    items: Mapping[str, int] = field(default_factory=dict)
    roots: int = ROOTS
    groups: int = GROUPS
    per: Mapping[tuple[str, str], Several] = field(default_factory=dict)
    popularity: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    until: datetime = UNTIL
    faker: str | None = None

    def __post_init__(self) -> None:
        has_zone = self.until.tzinfo is not None
        if not has_zone or not _EARLIEST <= self.until <= _LATEST:
            raise UsageError(
                f"until={self.until.isoformat()} is not a time with a zone from {_EARLIEST.year} to {_LATEST.year}"
            )

    def known_to(self, targets: Sequence[Table | type[Entity]]) -> SampleRequest:
        """What is asked of the entities that there are, without what is asked of others."""
        names = {schema.entity.__name__ for schema in _schemas_of(targets)}
        return replace(
            self,
            items={name: count for name, count in self.items.items() if name in names},
            per={pair: each for pair, each in self.per.items() if {*pair} <= {*names, ""}},
            popularity={name: each for name, each in self.popularity.items() if name in names},
        )

    def divided(self, by: int) -> SampleRequest:
        """A smaller sample: fewer items, with as many children for each parent."""
        return replace(
            self,
            items={name: -(-count // by) for name, count in self.items.items()},
            roots=-(-self.roots // by),
            groups=-(-self.groups // by),
        )


class EntitySample:
    """The items of one entity: their number, their keys, and their values."""

    def __init__(
        self,
        schema: EntitySchema,
        relations: EntityRelations,
        others: Mapping[str, EntitySample],
        asked: SampleRequest,
        settings: SampleSettings,
    ) -> None:
        self.schema = schema
        self.name: str = schema.entity.__name__
        self.owner: EntitySample | None = (
            None if relations.owner is None else others[relations.owner.target.tag]
        )
        self._asked = asked
        self._settings = settings
        self._others = others
        self._of_owner: Mapping[str, str] = (
            {} if relations.owner is None else relations.owner.fields
        )
        self._references = relations.others
        self._within: dict[str, EntitySample | None] = {
            each.target.tag: self._shared_ancestor(each) for each in relations.others
        }
        """For each entity that fields refer to, the ancestor that both must have; None if any item will do."""
        kinds = [each for each in schema.kinds() if not each.kinds()]
        self._kinds: list[EntitySchema] = kinds or [schema]
        self._key_chance = Chance(asked.seed, self.name, "key")
        self._chance = Chance(asked.seed, self.name, "values")
        self.starts: array[int] = self._numbered()
        self._known_group: tuple[int, dict[str, Any]] = (-1, {})
        self._drawn_for: tuple[int, dict[str, list[int]]] = (-1, {})

    @property
    def count(self) -> int:
        """The number of items."""
        return self.starts[-1]

    # Relations

    def _ancestors(self) -> Iterator[tuple[EntitySample, Mapping[str, str]]]:
        """The owner, its owner, and so on, each with the own fields that hold its key."""
        sample, fields = self.owner, self._of_owner
        while sample is not None:
            yield sample, fields
            above = sample._of_owner
            fields = {own: above[its] for own, its in fields.items() if its in above}
            sample = sample.owner

    def named_by(self, fields: AbstractSet[str]) -> Iterator[EntitySample]:
        """The entities whose whole key these fields hold: the entity itself, what it belongs to, what it refers to."""
        if self.schema.identity.keys() <= fields:
            yield self
        for sample, its in self._ancestors():
            if its.keys() <= fields:
                yield sample
        for each in self._references:
            if each.fields.keys() <= fields:
                yield self._others[each.target.tag]

    def _shared_ancestor(self, reference: Reference) -> EntitySample | None:
        """The ancestor whose key is in the fields of a reference, such as the tenant of a task and of its assignee."""
        shared = reference.fields.keys() & self._of_owner.keys()
        target = self._others.get(reference.target.tag)
        if not shared or target is None:
            return None
        for sample, fields in self._ancestors():
            theirs = {reference.fields[own]: its for own, its in fields.items() if own in shared}
            if fields.keys() == shared and (sample, theirs) in target._ancestors():
                return sample
        return None

    def _number_of(self, ancestor: EntitySample, group: int) -> int:
        """The ancestor of a group of siblings."""
        sample, number = self.owner, group
        while sample is not None and sample is not ancestor:
            number, sample = sample.group_of(number), sample.owner
        return number

    def _under(self, ancestor: EntitySample, number: int) -> range:
        """The items that belong to an ancestor, also indirectly."""
        chain: list[EntitySample] = [self]
        while chain[-1].owner is not None and chain[-1].owner is not ancestor:
            chain.append(chain[-1].owner)
        low, high = number, number + 1
        for sample in reversed(chain):
            low, high = sample.starts[low], sample.starts[high]
        return range(low, high)

    # The key

    @cached_property
    def _key_references(self) -> list[Reference]:
        """References whose fields are a part of the key."""
        return [each for each in self._references if not self._outside(each)]

    def _outside(self, reference: Reference) -> bool:
        """Whether a reference has fields outside the key."""
        return not reference.fields.keys() <= self.schema.identity.keys()

    @cached_property
    def _own_fields(self) -> list[Attr[Any]]:
        """The fields of the key that no other entity decides, in the key's order."""
        decided = {
            *self._of_owner,
            *(name for each in self._key_references for name in each.fields),
        }
        return [each for name, each in self.schema.identity.items() if name not in decided]

    @cached_property
    def group_fields(self) -> list[Attr[Any]]:
        """The fields of the partition, if others tell its items apart: siblings that have no parent among the entities."""
        if self.owner is not None:
            return []
        named = {
            part.field.name for slot in self.schema.primary.partition for part in slot.components
        }
        inside = [each for each in self._own_fields if each.name in named]
        is_several = len(inside) < len(self.schema.identity)
        return inside if is_several else []

    @cached_property
    def _sibling_fields(self) -> list[Attr[Any]]:
        """The fields that tell siblings apart."""
        grouped = {each.name for each in self.group_fields}
        return [each for each in self._own_fields if each.name not in grouped]

    def _distinct(self, fields: Sequence[Attr[Any]]) -> _Combined:
        keys = self.schema.keys.values()
        return _Combined(
            [
                (
                    each.name,
                    distinct_of(each, self._settings, keys),
                    maker_of(each, self._settings, keys),
                )
                for each in fields
            ]
        )

    @cached_property
    def _of_group(self) -> _Combined:
        return self._distinct(self.group_fields)

    @cached_property
    def _of_sibling(self) -> _Combined:
        return self._distinct(self._sibling_fields)

    @property
    def _siblings(self) -> int:
        """The most siblings that keys can tell apart."""
        counts = (self._others[each.target.tag].count for each in self._key_references)
        referred = min(counts, default=1)
        own = self._of_sibling.capacity
        return _MOST if own is None else min(own * referred, _MOST)

    # How many

    def _numbered(self) -> array[int]:
        """The number of the first item of each group of siblings, and the number of all items."""
        name, asked = self.name, self._asked
        total, several = asked.items.get(name), self._several()
        if total is not None and several is not None and not self.group_fields:
            raise UsageError(
                f"{name}: give how many there are, or how many each parent has, not both"
            )
        if total is not None and not 0 <= total < _MOST:
            raise UsageError(f"{name}={total}: give a number from 0 to {_MOST - 1}")
        if self.owner is None and not self.group_fields:
            count = (
                min(asked.roots, self._siblings)
                if total is None
                else self._checked(total, "there can be")
            )
            return array("Q", (0, count))
        chance = Chance(asked.seed, name, "count")
        starts = array("Q", (0,))
        groups = self._of_group.capacity or asked.groups
        for number in range(min(groups, asked.groups) if self.owner is None else self.owner.count):
            starts.append(starts[-1] + self._of_parent(number, several, total, chance))
        if self.owner is None and total is not None:
            return self._filled(total, several, chance)
        return starts

    def _several(self) -> Several | None:
        of = "" if self.owner is None else self.owner.name
        return self._asked.per.get((self.name, of), self._asked.per.get((self.name, "")))

    def _of_parent(
        self, number: int, several: Several | None, total: int | None, chance: Chance
    ) -> int:
        if several is not None:
            self._checked(several.low, "one parent can have")
            return min(several.of_parent(number, chance), self._siblings)
        if total is not None and self.owner is not None:
            each, rest = divmod(total, max(self.owner.count, 1))
            return self._checked(each + (number < rest), "one parent can have")
        return min(_PER_PARENT.of_parent(number, chance), self._siblings)

    def _filled(self, total: int, several: Several | None, chance: Chance) -> array[int]:
        """Groups until there are so many items."""
        starts, number = array("Q", (0,)), 0
        while starts[-1] < total:
            if number == self._of_group.capacity:
                names = ", ".join(each.name for each in self.group_fields)
                raise UsageError(
                    f"{self.name}: {total:,} items need more than the {number} values that {names} can have; give more "
                    f"items for each: {self.name}=100..1000"
                )
            more = max(self._of_parent(number, several, None, chance), 1)
            starts.append(min(starts[-1] + more, total))
            number += 1
        return starts

    def _checked(self, count: int, what: str) -> int:
        if count > self._siblings:
            names = ", ".join(self.schema.identity)
            raise UsageError(
                f"{self.name}: {count:,} items are more than the {self._siblings:,} that {what}, told apart by "
                f"{names}; ask for less"
            )
        return count

    def check_references(self) -> None:
        """Raise `UsageError` if fields that must refer to an item cannot, because there is none."""
        for each in self._references:
            names = [name for name in each.fields if name in self.schema.required]
            if names and self.count and not self._others[each.target.tag].count:
                raise UsageError(
                    f"{self.name}.{names[0]} refers to {each.target.entity.__name__}, and there is none; ask for some, or "
                    f"for {self.name}=0"
                )

    def check(self) -> None:
        """Raise `UsageError` if two items have the same key: a key may hold a value in a rougher form than the field."""
        keys = set()
        for number in range(min(self.count, _CHECKED)):
            key = self.schema.primary.encode(self.identity(number))
            text = repr(key)
            if text in keys:
                raise UsageError(
                    f"{self.name}: two sample items would have the same key, {text}; write its items from code"
                )
            keys.add(text)

    # One item

    def group_of(self, number: int) -> int:
        """The group of siblings that an item is in."""
        return bisect_right(self.starts, number) - 1

    def identity(self, number: int, group: int | None = None) -> dict[str, Any]:
        """The fields of an item's key."""
        of = self.group_of(number) if group is None else group
        ordinal = number - self.starts[of]
        values = dict(self._of_parent_or_group(of))
        chance = self._key_chance.restart(number)
        values |= self._of_sibling.values(ordinal, number, chance)
        for each in self._key_references:
            values |= self._referred(each, self._drawn(of)[each.target.tag][ordinal])
        return values

    def _of_parent_or_group(self, group: int) -> dict[str, Any]:
        """The fields of the key that all siblings of a group have."""
        if self._known_group[0] != group:
            if self.owner is None:
                values = self._of_group.values(group, group, self._key_chance.restart(group))
            else:
                theirs = self.owner.identity(group)
                values = {own: theirs[name] for own, name in self._of_owner.items()}
            self._known_group = (group, values)
        return self._known_group[1]

    def _drawn(self, group: int) -> dict[str, list[int]]:
        """For each entity that the key refers to, which of its members each sibling of a group has."""
        if self._drawn_for[0] != group:
            count = self.starts[group + 1] - self.starts[group]
            own = self._of_sibling.capacity
            drawn = {}
            for each in self._key_references:
                chance = Chance(self._asked.seed, self.name, each.target.tag, group)
                target = self._others[each.target.tag]
                if own is None:
                    drawn[each.target.tag] = [target.member(chance) for _ in range(count)]
                else:
                    wanted = target.members(-(-count // own), chance)
                    drawn[each.target.tag] = [wanted[at // own] for at in range(count)]
            self._drawn_for = (group, drawn)
        return self._drawn_for[1]

    def _referred(self, reference: Reference, member: int) -> dict[str, Any]:
        theirs = self._others[reference.target.tag].identity(member)
        return {own: theirs[name] for own, name in reference.fields.items()}

    def _referred_outside(self, reference: Reference, group: int, chance: Chance) -> dict[str, Any]:
        """Fields outside the key that refer to an item; None in one of five, if they may be."""
        target = self._others[reference.target.tag]
        own = [name for name in reference.fields if name not in self._of_owner]
        is_optional = all(self.schema.is_optional(self.schema.fields[name]) for name in own)
        if is_optional and (not target.count or chance.below(5) == 0):
            return dict.fromkeys(own)
        ancestor = self._within[reference.target.tag]
        near = range(0)
        if ancestor is not None:
            near = target._under(ancestor, self._number_of(ancestor, group))
        member = near.start + chance.below(len(near)) if near else target.member(chance)
        return {
            name: value for name, value in self._referred(reference, member).items() if name in own
        }

    @cached_property
    def _ranks(self) -> Ranks:
        return Ranks(self.count, self._asked.popularity.get(self.name, 0.0))

    def member(self, chance: Chance) -> int:
        """An item that something refers to; popular ones more often."""
        if self.name in self._asked.popularity:
            return self._ranks.pick(chance) - 1
        return chance.below(self.count)

    def members(self, count: int, chance: Chance) -> list[int]:
        """Different items that something refers to."""
        drawn: dict[int, None] = {}
        for _ in range(count):
            member = self.member(chance)
            while member in drawn:
                member = (member + 1) % self.count
            drawn[member] = None
        return list(drawn)

    def moment(self, number: int) -> datetime:
        """When an item was written: the last of the sample at its end, the first a year before."""
        left = _YEAR * (self.count - number) // self.count
        return self._settings.until - timedelta(seconds=left)

    def entities(self, start: int = 0) -> Iterator[tuple[Entity, datetime]]:
        """The items from a number on, each with the time at which it was written."""
        group = self.group_of(start) if start else 0
        for number in range(start, self.count):
            while number >= self.starts[group + 1]:
                group += 1
            yield self._entity(number, group), self.moment(number)

    def _entity(self, number: int, group: int) -> Entity:
        schema = self._kinds[number % len(self._kinds)]
        chance = self._chance.restart(number)
        values = {name: make(chance) for name, make in self._makers[schema.tag]}
        for name, distinct in self._unique:
            values[name] = distinct.value(number, number)
        for each in self._references:
            if self._outside(each):
                values |= self._referred_outside(each, group, chance)
        values |= self.identity(number, group)
        written = {name: values.pop(name) for name in self._written_later if name in values}
        entity = schema.entity(**values)
        for name, value in written.items():
            setattr(entity, name, value)
        return entity

    @cached_property
    def _written_later(self) -> list[str]:
        """Fields that the library sets when the entity is written, unless they have a value."""
        roles = ("created", "created_id")
        return [each.name for each in self.schema.fields.values() if each.options.role in roles]

    @cached_property
    def _unique(self) -> list[tuple[str, DistinctValues]]:
        return [
            (each.name, distinct_of(each, self._settings, self.schema.keys.values()))
            for each in self.schema.unique
            if each.name not in self.schema.identity
        ]

    @cached_property
    def _makers(self) -> dict[str, list[tuple[str, Maker]]]:
        """For each kind, how its fields outside the primary key get their values."""
        decided = {*self.schema.identity, *(name for name, _ in self._unique)}
        decided |= {name for each in self._references for name in each.fields}
        return {schema.tag: self._makers_of(schema, decided) for schema in self._kinds}

    def _makers_of(self, schema: EntitySchema, decided: set[str]) -> list[tuple[str, Maker]]:
        found = []
        for name, each in schema.fields.items():
            if name in decided or each.options.role not in _GIVEN:
                continue
            make = maker_of(each, self._settings, schema.keys.values())
            if make is not None:
                found.append((name, make))
        return found


class _Combined:
    """Distinct values of several fields together: one counts without end and the others vary, or all count as digits."""

    def __init__(self, fields: Sequence[tuple[str, DistinctValues, Maker | None]]) -> None:
        self._fields = fields
        endless = [name for name, distinct, _ in fields if distinct.capacity is None]
        self._counter = endless[-1] if endless else None
        self.capacity: int | None = (
            None if endless else prod(distinct.capacity or 0 for _, distinct, _ in fields)
        )

    def values(self, ordinal: int, number: int, chance: Chance) -> dict[str, Any]:
        """The values with an ordinal."""
        found: dict[str, Any] = {}
        if self._counter is not None:
            for name, distinct, make in self._fields:
                if name == self._counter or make is None:
                    found[name] = distinct.value(ordinal, number)
                else:
                    found[name] = make(chance)
            return found
        for name, (capacity, value), _ in reversed(self._fields):
            ordinal, digit = divmod(ordinal, capacity or 1)
            found[name] = value(digit, digit)
        return found


class SampleData:
    """A whole sample: each entity after those that its key refers to."""

    def __init__(
        self, targets: Sequence[Table | type[Entity]], asked: SampleRequest | None = None
    ) -> None:
        asked = asked or SampleRequest()
        schemas = _schemas_of(targets)
        relations = relations_of(schemas)
        settings = SampleSettings(asked.until, SampleTexts(asked.faker))
        _check_names(asked, [each.entity.__name__ for each in schemas])
        self.of: dict[str, EntitySample] = {}
        """The samples of the entities, by tag, in the order in which they are written."""
        for schema in sorted(schemas, key=lambda each: len(each.identity)):
            made = EntitySample(schema, relations[schema.tag], self.of, asked, settings)
            self.of[schema.tag] = made
        _check_parents(asked, self.of.values())
        for each in self.of.values():
            each.check_references()
            each.check()

    @property
    def tables(self) -> list[Table]:
        """The tables of the entities."""
        return list(
            {each.schema.table.name: each.schema.table for each in self.of.values()}.values()
        )

    @property
    def count(self) -> int:
        """The number of all items."""
        return sum(each.count for each in self.of.values())

    def entities(self, start: int = 0) -> Iterator[tuple[Entity, datetime]]:
        """The items from a number on, parents before their children."""
        for each in self.of.values():
            if start < each.count:
                yield from each.entities(start)
            start = max(start - each.count, 0)


def _schemas_of(targets: Sequence[Table | type[Entity]]) -> list[EntitySchema]:
    """The entities of the targets, without their kinds."""
    found: dict[str, EntitySchema] = {}
    for target in targets:
        schemas = target.entities.values() if isinstance(target, Table) else [_schema_of(target)]
        for schema in schemas:
            root = schema.root
            if found.setdefault(root.tag, root) is not root:
                raise UsageError(
                    f"two entities have the tag {root.tag!r}, in {root.table.name} and in "
                    f"{found[root.tag].table.name}; make samples of one table after the other"
                )
    return list(found.values())


def _schema_of(target: Any) -> EntitySchema:
    schema: EntitySchema | None = getattr(target, "__schema__", None)
    if schema is None:
        raise UsageError(f"{target!r} is neither a table nor an entity of one")
    return schema


def _check_names(asked: SampleRequest, names: Sequence[str]) -> None:
    """Raise `UsageError` for an entity that is not there."""
    given = [*asked.items, *asked.popularity]
    given += [name for pair in asked.per for name in pair if name]
    for name in given:
        if name not in names:
            raise UsageError(f"there is no entity {name!r}; there are {', '.join(names)}")


def _check_parents(asked: SampleRequest, samples: Any) -> None:
    """Raise `UsageError` for a parent that the entity does not belong to, and for a number per parent without one."""
    for each in samples:
        own = "" if each.owner is None else each.owner.name
        for child, parent in asked.per:
            if child != each.name or parent in ("", own):
                if child == each.name and not own and not each.group_fields:
                    raise UsageError(
                        f"{child} belongs to no other entity, so give how many there are: {child}=100"
                    )
                continue
            belongs = f"{child} belongs to {own}" if own else f"{child} belongs to no other entity"
            raise UsageError(f"{belongs}, not to {parent}")
