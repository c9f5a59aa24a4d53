"""`parent.primary.children(…)`: keys that put a child entity into the collection of its parent, before or after it.

    class Organization(Entity, table=app):
        name: Attr[str] = field()
        primary = Key("ORG", name).sort("ORG", name)

    class Team(Entity, table=app):
        primary = Organization.primary.children(organization).before("TEAM", name)     # #TEAM#…

    class User(Entity, table=app):
        primary = Organization.primary.children(organization).after("USER", name)      # USER#…

The literal at the start of a sort key determines where the kind sorts. A literal that would sort on the wrong side of
the parent gets a prefix: `#` sorts below every letter and digit, `~` above. `reading.families` reads a parent with its
children.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from isotone.codec import readable
from isotone.errors import UsageError
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.keys import (
    BoundKey,
    Index,
    Key,
    Part,
    component_of,
    groups_alike,
    partition_in_words,
)

if TYPE_CHECKING:
    from isotone.model.declaring.table import Table
    from isotone.model.reading.access_patterns import Pattern

_LOWEST: Final = "#"
_HIGHEST: Final = "~"


class Children:
    """Makes keys for entities that are stored in another entity's collections."""

    def __init__(self, parent: Pattern[Any], fields: tuple[Attr[Any], ...]) -> None:
        self._parent = parent
        self._declared = _declaration(parent)
        self._partition = tuple(_substituted(parent, self._declared.partition, fields))

    def before(self, *parts: Part) -> Key:
        """A key that sorts its entities before the parent."""
        return self._key(parts, _LOWEST, lambda own, parent: self._beyond(own) <= parent)

    def after(self, *parts: Part) -> Key:
        """A key that sorts its entities after the parent."""
        return self._key(parts, _HIGHEST, lambda own, parent: self._beyond(parent) <= own)

    def _beyond(self, literal: str) -> str:
        """A text that sorts above all keys beginning with a literal."""
        return readable.beyond(literal + self._declared.sort_separator)

    def _key(self, parts: tuple[Part, ...], prefix: str, is_placed: Any) -> Key:
        parent = _leading_literal(self._declared.sorted_by, f"the sort key of {self._parent}")
        own = _leading_literal(parts, "the sort key of its children")
        if not is_placed(own, parent):
            own = prefix + own
        if not is_placed(own, parent):
            raise UsageError(
                f"this kind cannot sort on that side of its parent: the sort key of {self._parent} begins with "
                f"{parent!r}; begin it with a letter"
            )
        index, separator = self._parent.key.index, self._declared.separator
        if index is None:
            key = Key(*self._partition, separator=separator)
        else:
            key = Index(index, *self._partition, separator=separator)
        key.parent = self._parent
        return key.sort(own, *parts[1:], separator=self._declared.sort_separator)


def check(declared: Key, bound: BoundKey, table: Table) -> None:
    """Raise `UsageError` if the items of a child's key would not be in the collections of its parent."""
    parent = declared.parent
    if parent is None:
        return
    if parent.schema.table is not table:
        raise UsageError(
            f"key {bound.name!r} is of children of {parent}, which is in table {parent.schema.table.name!r}; "
            "declare both in one table"
        )
    if not groups_alike(parent.key, bound):
        raise UsageError(
            f"key {bound.name!r}: {parent} groups by {partition_in_words(parent.key)}, and its children by "
            f"{partition_in_words(bound)}, so none would be beside its parent; fields in children(…) need the type "
            "of the parent's, and the same max="
        )


def _declaration(pattern: Pattern[Any]) -> Key:
    """The key as declared in the class statement."""
    for base in pattern.entity.__mro__:
        key = vars(base).get(pattern.key.name)
        if isinstance(key, Key):
            return key
    raise UsageError(f"{pattern} is not declared by a key of its class")


def _substituted(
    pattern: Pattern[Any], parts: tuple[Part, ...], fields: tuple[Attr[Any], ...]
) -> Iterable[Part]:
    """The parts, with the pattern's fields replaced by other fields."""
    places = [part for part in parts if not isinstance(part, str)]
    if len(places) != len(fields):
        names = ", ".join(component_of(part).field.name for part in places) or "nothing"
        raise UsageError(
            f"{pattern} groups by {names}, so its children need {len(places)} fields in their place, "
            f"not {len(fields)}"
        )
    rest = iter(fields)
    return [
        part if isinstance(part, str) else replace(component_of(part), field=next(rest))
        for part in parts
    ]


def _leading_literal(parts: tuple[Part, ...], what: str) -> str:
    if parts and isinstance(parts[0], str):
        return parts[0]
    raise UsageError(f"{what} must begin with a literal, which keeps the kinds apart")
