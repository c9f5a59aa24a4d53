"""What lies inside a field, or is measured of it: `Order.address["city"]`, `Order.lines.size`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from isotone.errors import UsageError
from isotone.model.declaring import changes
from isotone.model.declaring.conditions import (
    Comparison,
    Condition,
    Named,
    PathElements,
    SizeComparison,
    Test,
    checked,
    listed,
    place_in,
)
from isotone.model.declaring.wire import plain
from isotone.values.json import to_wire

if TYPE_CHECKING:
    from isotone.model.declaring.fields import Attr


class Inner(Named):
    """Something inside a field: `Order.address["city"]`, `Order.lines[0]["price"]`."""

    __slots__ = ("_field", "_path")

    def __init__(self, field: Attr[Any], path: PathElements) -> None:
        self._field = field
        self._path = path

    def __getitem__(self, element: str | int) -> Inner:
        return Inner(self._field, (*self._path, element))

    def _compare(self, operator: str, *values: Any) -> Condition:
        return Comparison(self._field, operator, checked(self, *values), self._path)

    def __eq__(self, other: Any) -> Condition:  # type: ignore[override] # makes a condition
        return self._compare("=", other)

    def __ne__(self, other: Any) -> Condition:  # type: ignore[override] # makes a condition
        return self._compare("<>", other)

    def __lt__(self, other: Any) -> Condition:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Condition:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Condition:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Condition:
        return self._compare(">=", other)

    __hash__ = object.__hash__

    def between(self, low: Any, high: Any) -> Condition:
        return self._compare("between", low, high)

    def is_in(self, values: Iterable[Any]) -> Condition:
        return self._compare("in", *listed(self, values))

    def begins_with(self, prefix: str | bytes) -> Condition:
        return self._compare("begins_with", prefix)

    def contains(self, value: Any) -> Condition:
        (value,) = checked(self, value)
        return Test(self._field, "contains", (to_wire(plain(value)),), self._path)

    @property
    def size(self) -> Size:
        return Size(self._field, self._path)

    def exists(self) -> Condition:
        return Test(self._field, "attribute_exists", (), self._path)

    def missing(self) -> Condition:
        return Test(self._field, "attribute_not_exists", (), self._path)

    def set(self, value: Any) -> changes.Change:
        return changes.Set(self._field, value, self._path)

    def remove(self) -> changes.Change:
        return changes.Remove(self._field, self._path)

    def add(self, value: Any) -> changes.Change:
        return changes.Add(self._field, value, self._path)

    def __repr__(self) -> str:
        return f"<field {place_in(self._field, self._path)}>"


class Size(Named):
    """The size of a field, or of something inside of it, to be compared."""

    __slots__ = ("_field", "_path")

    def __init__(self, field: Attr[Any], path: PathElements = ()) -> None:
        self._field = field
        self._path = path

    def _compare(self, operator: str, size: int) -> Condition:
        if type(size) is not int:
            raise UsageError(f"{self!r} is compared with an int, not with {size!r}")
        return SizeComparison(self._field, operator, size, self._path)

    def __eq__(self, other: int) -> Condition:  # type: ignore[override] # makes a condition
        return self._compare("=", other)

    def __ne__(self, other: int) -> Condition:  # type: ignore[override] # makes a condition
        return self._compare("<>", other)

    def __lt__(self, other: int) -> Condition:
        return self._compare("<", other)

    def __le__(self, other: int) -> Condition:
        return self._compare("<=", other)

    def __gt__(self, other: int) -> Condition:
        return self._compare(">", other)

    def __ge__(self, other: int) -> Condition:
        return self._compare(">=", other)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<size of {place_in(self._field, self._path)}>"
