"""Changes of fields, such as `Order.total.add(1)` (set, add, remove …), and the update expressions that they become."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from isotone.errors import UsageError
from isotone.expressions import nodes
from isotone.model.declaring.conditions import PathElements
from isotone.values.json import to_wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isotone.model.declaring.field_arithmetic import Value
    from isotone.model.declaring.fields import Attr


_ZERO: Final = to_wire(0)


class Change:
    """One change of one field, or of a place inside it."""

    # Abstract for type checkers only: ABCMeta would slow down every isinstance.

    field: Attr[Any]
    path: PathElements

    @abstractmethod
    def action(self) -> nodes.Action:
        """The change as an action of an update expression."""

    @property
    def known(self) -> Any:
        """The field's value after the change, if the change alone determines it."""
        raise UsageError(f"only the database knows the new value of {self.field.name!r}")

    @property
    def is_known(self) -> bool:
        """Whether the change alone determines the field's value."""
        return False

    def _path(self) -> nodes.Path:
        path: nodes.Path = self.field.path(*self.path)
        return path

    def _literal(self, value: Any) -> nodes.Literal:
        return nodes.Literal(self.field.encode_at(self.path, value))


@dataclass(frozen=True, slots=True, eq=False)
class _WithValue(Change):
    """A change that takes a value."""

    field: Attr[Any]
    value: Any
    path: PathElements = ()


class SetField(_WithValue):
    """Set a field to a value."""

    __slots__ = ()

    def action(self) -> nodes.Action:
        field, path = self.field, self.path  # no calls of `_path` and `_literal` here: a hot path
        return nodes.Set(field.path(*path), nodes.Literal(field.encode_at(path, self.value)))

    @property
    def is_known(self) -> bool:
        return not self.path

    @property
    def known(self) -> Any:
        return self.value


@dataclass(frozen=True, slots=True, eq=False)
class Compute(Change):
    """Set a field to a value that the database computes from other fields, as they were before the update."""

    field: Attr[Any]
    value: Value[Any]
    path: PathElements = ()

    def action(self) -> nodes.Action:
        return nodes.Set(self._path(), self.value._operand())

    def given(self, values: Mapping[str, Any]) -> Compute:
        """The same change, with fields replaced by their known values."""
        return Compute(self.field, self.value._given(values), self.path)

    def sources(self) -> Iterator[Attr[Any]]:
        """The fields from which the value is computed."""
        return self.value._sources()


class SetDefault(_WithValue):
    """Set a field if the item does not have it yet."""

    __slots__ = ()

    def action(self) -> nodes.Action:
        current = nodes.Call("if_not_exists", (self._path(), self._literal(self.value)))
        return nodes.Set(self._path(), current)


@dataclass(frozen=True, slots=True, eq=False)
class RemoveField(Change):
    """Remove an attribute."""

    field: Attr[Any]
    path: PathElements = ()

    def action(self) -> nodes.Action:
        return nodes.Remove(self._path())

    @property
    def is_known(self) -> bool:
        return not self.path

    @property
    def known(self) -> Any:
        return None


class AddToField(_WithValue):
    """Add to a number, or members to a set."""

    __slots__ = ()

    def action(self) -> nodes.Action:
        path, added = self._path(), self._literal(self.value)
        start = _ZERO if self.path else self.field.fallback or _ZERO
        # ADD counts from 0, and AWS documents it for top-level attributes only.
        if "N" in added.value and (self.path or start != _ZERO):
            now = nodes.Call("if_not_exists", (path, nodes.Literal(start)))
            return nodes.Set(path, nodes.Arithmetic("+", now, added))
        return nodes.Add(path, added)


class Discard(_WithValue):
    """Remove members from a set."""

    __slots__ = ()

    def action(self) -> nodes.Action:
        return nodes.Delete(self._path(), self._literal(self.value))


@dataclass(frozen=True, slots=True, eq=False)
class Extend(Change):
    """Add elements at the end or the beginning of a list."""

    field: Attr[Any]
    values: Any
    path: PathElements = ()
    at_end: bool = True

    def action(self) -> nodes.Action:
        added = nodes.Literal(self.field.encode_at(self.path, list(self.values)))
        now = nodes.Call("if_not_exists", (self._path(), nodes.Literal(to_wire([]))))
        operands = (now, added) if self.at_end else (added, now)
        return nodes.Set(self._path(), nodes.Call("list_append", operands))
