"""`store.update`: changes of some fields; decides whether index keys can be derived without reading the item.

Index keys and computed fields are derived from the values after the change (`derived_attributes`). Often these are
known: from the primary key, from the changes (`set`, not `add`), from equalities in `when`, or from a given entity with
a version. Then an update is one UpdateItem. Otherwise the item is read first, and the values used become part of the
write's condition; after a lost race the write is planned again with the current item. So an update never leaves a stale
index key, and reads only if it must.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from isotone.errors import NotFound, UsageError, WriteRefused
from isotone.expressions import nodes
from isotone.model.declaring.changes import AddToField, Change, Compute, SetField
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.declaring.table import VERSION_ATTRIBUTE
from isotone.model.expiry import is_missing
from isotone.model.expression_trees import absent, conjunction, equal, present, update_of
from isotone.model.writing import headroom, uniqueness
from isotone.model.writing.change_validation import validated
from isotone.model.writing.changed_item import (
    applied,
    changed_names,
    new_value,
    rewritten,
    unkeyed,
)
from isotone.model.writing.derived_attributes import (
    Derived,
    KnownValues,
    absent_by,
    derive,
    fields_by_key,
    values_implied_by,
)
from isotone.model.writing.write import (
    MustRead,
    PlannedWrite,
    Write,
    WriteAction,
    action,
    as_it_was,
    as_read,
    condition_node,
    described,
    exists,
    is_older,
    key_of,
    moment,
    other_kind,
    owner_of,
    pins,
    read_version,
    refusal,
    schema_of,
    upgraded_satisfies,
    values_of,
)
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

R = TypeVar("R")
E = TypeVar("E", bound="Entity")


def _by_set(schema: EntitySchema, given: Mapping[str, Any], error: UsageError) -> UsageError:
    """The error for `update(Order, status="SHIPPED", number=1)`, which passes a new value by name."""
    name = next(
        (each for each in given if each in schema.fields and each not in schema.identity), None
    )
    if name is None or schema.fields[name].options.unique:
        return error
    return UsageError(f"{error}; to change it, write {schema.tag}.{name}.set(…)")


class ChangesWrite(Write[R]):
    """A write of changes to an entity, given as the entity or as its class and key."""

    may_move: ClassVar[bool] = False
    _sources: frozenset[str] = frozenset()
    _now: float  # when the plan was made

    def __init__(
        self,
        target: type[Entity] | EntityKey[Any] | Entity,
        changes: Sequence[Change],
        key: Mapping[str, Any],
        when: Condition | None = None,
    ) -> None:
        self.schema: EntitySchema = schema_of(target)
        self.entity: Entity | None = None
        self.when = when
        if isinstance(target, type):
            try:
                self._key, self._identity = self.schema.identify(key), key
            except UsageError as error:
                raise _by_set(self.schema, key, error) from None
        elif isinstance(target, EntityKey):
            self._key, self._identity = key_of(self.schema, target, key), target.fields
        else:
            self.entity = target
            values = self.entity.__dict__
            self._key = key_of(self.schema, self.entity, key)
            self._identity = {name: values[name] for name in self.schema.identity}
        self._given = changes
        self._changes: list[Change] = []

    def prepare(self) -> None:
        given = self.schema.entity.before_update(self._given)
        self._changes = changes = validated(self.schema, given, may_move=self.may_move)
        if Compute in map(type, changes):
            self._changes = [_with_known(each, self._identity) for each in changes]
            self._sources = _sources(self._changes)

    def _all_changes(self) -> list[Change]:
        """The given changes, plus those of the version and the update time."""
        changes, roles = self._changes, self.schema.by_role
        if "version" in roles:
            changes = [*changes, AddToField(roles["version"], 1)]
        if "updated" in roles:
            changes = [*changes, SetField(roles["updated"], moment(self._now))]
        return changes

    def _callers_conditions(self, current: Item | None = None) -> list[nodes.ConditionNode | None]:
        """The conditions: on the version that was read, the caller's, and the transaction's.

        The database cannot test the caller's condition on an item of an older version; `_check_upgraded` does.
        """
        schema, entity = self.schema, self.entity
        when = None if current is not None and is_older(schema, current) else self.when
        return [
            None if entity is None else read_version(schema, entity.__dict__),
            None if when is None else condition_node(schema, when, is_stored=True),
            self.further,
        ]

    def _check_upgraded(self, current: Item) -> None:
        """Raise the refusal if an item of an older version does not satisfy the caller's condition."""
        if not upgraded_satisfies(self.schema, self.when, current):
            failure = self._explain(current)
            if failure is not None:
                raise failure

    def _existing(self) -> Item:
        """The item as last read; raises `NotFound` if there is none."""
        current = self.current
        if current is None or is_missing(self.schema, current, self._now):
            raise self._not_found()
        if self.schema.base is not None and self.schema.kind_of(current) is None:
            raise other_kind(self.schema, self.key, current)
        return current

    def saw(self, item: Item | None) -> None:
        super().saw(item)
        # Indexes and computed fields are those of the item's kind.
        if item is not None and self.schema.has_kinds:
            self.schema = self.schema.kind_of(item) or self.schema

    def _explain(self, item: Item | None) -> WriteRefused | None:
        if is_missing(self.schema, item, self._now):
            return self._not_found()
        return refusal(self, item, {} if self.entity is None else as_read(self.entity))

    def _not_found(self) -> NotFound:
        return NotFound(f"{described(self.schema, self.key)} does not exist")


class Update(ChangesWrite[E]):
    """Change some fields of an entity."""

    def plan(self, now: float) -> PlannedWrite:
        """The update. Its outcome is the item afterwards, unless only the response can tell."""
        self._now = now
        changes = self._all_changes()
        if self.is_seen:
            return self._plan_from_item(changes)
        return PlannedWrite([self._plan_without_item(changes)])

    # Without reading

    def _plan_without_item(self, changes: Sequence[Change]) -> WriteAction:
        """The write, if everything that it needs is known; otherwise raises `MustRead`."""
        if _touches_unique_values(self.schema, changes):
            raise MustRead("the unique values to release")
        if self.schema.has_special_kinds:
            raise MustRead("the kind of the item")
        known = KnownValues(self._known_values(changes))
        derived = derive(self.schema, known, changes)
        version = self.schema.version
        own = equal(VERSION_ATTRIBUTE, {"N": str(version)}) if version > 1 else None
        if known.used:
            own = conjunction([own, *self._key_conditions(changes, derived, known)])
        if self._sources:
            own = conjunction([own, *self._source_conditions()])
        headroom.watch(self.schema, known)
        return self._update_action(changes, derived, self._condition(own))

    def _key_conditions(
        self, changes: Sequence[Change], derived: Derived, known: KnownValues
    ) -> list[nodes.ConditionNode]:
        """Conditions that refuse the write if an index key contains a value that the plan does not know.

        Such a value is unchanged, has no attribute, and its key is being removed; or the caller's condition says that
        its attribute is missing. After the refusal, the item is read.
        """
        schema = self.schema
        conditions: list[nodes.ConditionNode] = []
        if derived.removed:
            written = changed_names(changes) | self._identity.keys() | schema.computations.keys()
            for name, fields in fields_by_key(schema).items():
                unchanged = fields - written if name in derived.removed else ()
                if unchanged:
                    there = [present(schema.fields[each].attribute) for each in sorted(unchanged)]
                    conditions.append(nodes.Or((absent(name), nodes.And(tuple(there)))))
        for name in sorted(self._absent_by_condition(changes) & known.used):
            conditions += [absent(key) for key in schema.keys_with(name)]
        return conditions

    def _source_conditions(self) -> list[nodes.ConditionNode]:
        """Conditions that refuse the write if a value to compute with is stored only in an index key.

        After the refusal, the item is read.
        """
        schema = self.schema
        conditions: list[nodes.ConditionNode] = []
        for name in sorted(self._sources):
            in_no_key = conjunction([absent(key) for key in schema.keys_with(name)])
            if in_no_key is not None:
                there = present(schema.fields[name].attribute)
                conditions.append(nodes.Or((there, in_no_key)))
        return conditions

    def _absent_by_condition(self, changes: Sequence[Change]) -> set[str]:
        """The unchanged fields whose attributes are missing according to the caller's condition."""
        return set() if self.when is None else absent_by(self.when) - changed_names(changes)

    def _known_values(self, changes: Sequence[Change]) -> dict[str, Any]:
        """The values after the changes, as far as they are known without a read."""
        known = {} if self.when is None else values_implied_by(self.when)
        known |= self._identity
        if self.entity is not None:
            known = {**as_read(self.entity), **known}  # guaranteed by the condition on the version
        for change in changes:
            name = change.field.name
            if type(change) is SetField and not change.path:  # no calls here: a hot path
                known[name] = change.value
            elif not change.path and change.is_known:
                known[name] = new_value(self.schema, change)
            else:
                known.pop(name, None)
        return known

    # From the item

    def _plan_from_item(self, changes: Sequence[Change]) -> PlannedWrite:
        schema, current = self.schema, self._existing()
        item = schema.upgraded(current)
        after = applied(changes, unkeyed(schema, item, changes))
        readable = schema.from_invalid_item(after, require_all_fields=True)
        known = KnownValues(readable.__dict__)
        derived = derive(schema, known, changes)
        markers: list[WriteAction] = []
        touched: set[str] = set()  # and unique values, including those whose markers are missing
        if _touches_unique_values(schema, changes):
            touched = {field.attribute for field in uniqueness.fields_of(schema)}
            before = values_of(schema, current)
            markers = uniqueness.changes(schema, self.key, before, known, self._now)
        if item is not current:
            target = rewritten(schema, after)
            return PlannedWrite([self._rewrite(target, current), *markers], target)
        settled = self._settled(changes, derived, item, after)
        result = {**after, **settled.derived.attributes}
        for name in settled.derived.removed:
            result.pop(name, None)
        if markers:
            used = current.keys() | after.keys()
        else:
            used = self._attributes_used(known.used | settled.lost, changes, current)
            used |= self._attributes_of_sources(current)
        headroom.watch(schema, known)
        condition = self._condition(pins(schema, current, used | touched))
        update = self._update_action(settled.changes, settled.derived, condition)
        return PlannedWrite([update, *markers], result)

    def _settled(
        self, changes: Sequence[Change], derived: Derived, item: Item, after: Item
    ) -> _Settled:
        """What to write if some values are stored only in index keys.

        The database cannot find such a value, so a change that builds on it is replaced by its result. If the last key
        with the value is removed, the value is written as an attribute.
        """
        schema = self.schema
        removed = derived.removed - schema.unread_keys(after).keys()
        attributes = derived.attributes
        only_in_keys = schema.held_by_keys(item).keys() - self._identity.keys()
        if not only_in_keys:
            return _Settled(changes, Derived(attributes, removed), set())
        remaining = {name: value for name, value in item.items() if name not in removed}
        still_in_keys = schema.held_by_keys({**remaining, **attributes}).keys()
        lost = only_in_keys - still_in_keys - changed_names(changes)
        replaced = {
            change.field.name
            for change in changes
            if not change.is_known and only_in_keys & _built_upon(change)
        }
        names = {schema.fields[name].attribute for name in lost | replaced}
        return _Settled(
            [change for change in changes if change.field.name not in replaced],
            Derived(
                attributes | {name: after[name] for name in names & after.keys()},
                removed | (names - after.keys()),
            ),
            lost,
        )

    def _attributes_used(
        self, names: set[str], changes: Sequence[Change], current: Item
    ) -> set[str]:
        """The attributes with these fields' values, unless another condition covers them."""
        schema = self.schema
        implied = self._known_values(changes).keys() | schema.computations.keys()
        used = {VERSION_ATTRIBUTE}
        for name in names - implied:
            used.add(attribute := schema.fields[name].attribute)
            if attribute not in current:
                used.update(schema.keys_with(name))
        for name in names & self._absent_by_condition(changes):
            used.update(schema.keys_with(name))
        return used

    def _attributes_of_sources(self, current: Item) -> set[str]:
        """The attributes with which the database computes, or the keys that contain their values."""
        schema, used = self.schema, set[str]()
        for name in self._sources:
            attribute = schema.fields[name].attribute
            used.update(
                (attribute,) if attribute in current else (attribute, *schema.keys_with(name))
            )
        return used

    # Requests

    def _update_action(
        self, changes: Sequence[Change], derived: Derived, condition: nodes.ConditionNode | None
    ) -> WriteAction:
        actions = [change.action() for change in changes]
        if derived.attributes:
            actions += [
                nodes.Set(nodes.Path((name,)), nodes.Literal(value))
                for name, value in derived.attributes.items()
            ]
        if derived.removed:
            actions += [nodes.Remove(nodes.Path((name,))) for name in sorted(derived.removed)]
        update = update_of(actions)
        return action(
            "Update", self.schema, self._explain, condition, Key=self._key, UpdateExpression=update
        )

    def _rewrite(self, item: Item, current: Item) -> WriteAction:
        """Put the whole item in the current version, because an older version of the entity wrote it."""
        schema = self.schema
        self._check_upgraded(current)
        headroom.watch(schema, schema.from_item(item).__dict__)
        same = as_it_was(schema, current)
        condition = conjunction(
            [exists(schema, self._now), *self._callers_conditions(current), same]
        )
        return action("Put", schema, self._explain, condition, Item=item)

    def _condition(self, own: nodes.ConditionNode | None) -> nodes.ConditionNode | None:
        """The condition of the update; `own` is the plan's part of it."""
        schema = self.schema
        if self.entity is None and self.when is None and self.further is None and own is None:
            return exists(schema, self._now)
        must_exist = (
            schema.stored if "expires" not in schema.by_role else (exists(schema, self._now),)
        )
        return conjunction([*must_exist, *self._callers_conditions(), own])

    def _explain(self, item: Item | None) -> WriteRefused | None:
        if (
            item is not None
            and not self.is_seen
            and not is_missing(self.schema, item, self._now)
            and _must_be_read(self.schema, item)
        ):
            return None
        return super()._explain(item)

    def finish(self, plan: PlannedWrite, attributes: Item | None) -> E:
        item: Item | None = attributes or plan.outcome
        schema = self.schema
        found: Any = None
        if item is not None:
            owner = owner_of(schema, item) if schema.has_kinds else schema
            found = owner.from_invalid_item(item, require_all_fields=True)
        changed: E = found  # typed this way because cast() would be a call
        return changed


class _Settled(NamedTuple):
    """The changes and derived attributes to write, and the fields whose last keys are removed."""

    changes: Sequence[Change]
    derived: Derived
    lost: set[str]


class Touch(Update[E]):
    """Write only what every write sets: the update time, and the version."""

    def __init__(
        self, target: type[Entity] | EntityKey[Any] | Entity, key: Mapping[str, Any]
    ) -> None:
        super().__init__(target, (), key)

    def prepare(self) -> None:
        if not self.schema.by_role.keys() & {"updated", "version"}:
            raise UsageError(
                f"{self.schema.tag} has neither an updated() nor a version() field, so touch would change "
                "nothing; declare one, or set a field by update"
            )


def _must_be_read(schema: EntitySchema, item: Item) -> bool:
    """Whether an update must read the item: it has an older version, values only in keys, or unreadable keys."""
    return (
        schema.upgraded(item) is not item
        or not schema.held_by_keys(item).keys() <= schema.identity.keys()
        or bool(schema.unread_keys(item))
    )


def _with_known(change: Change, values: Mapping[str, Any]) -> Change:
    """The change, with fields that no write changes replaced by their values, so that less must be known."""
    return change.given(values) if isinstance(change, Compute) else change


def _sources(changes: Sequence[Change]) -> frozenset[str]:
    """The fields from which the database computes new values."""
    computing = [change for change in changes if isinstance(change, Compute)]
    return frozenset(field.name for change in computing for field in change.sources())


def _built_upon(change: Change) -> set[str]:
    """The fields on which a new value depends."""
    sources = {field.name for field in change.sources()} if isinstance(change, Compute) else set()
    return {change.field.name, *sources}


def _touches_unique_values(schema: EntitySchema, changes: Sequence[Change]) -> bool:
    """Whether changing these fields changes markers of unique values."""
    if not schema.unique:
        return False
    fields = {field.name for field in uniqueness.fields_of(schema)}
    if "expires" in schema.by_role:
        fields.add(schema.by_role["expires"].name)
    # A computed field may depend on any changed field.
    return bool(fields & (changed_names(changes) | schema.computations.keys()))
