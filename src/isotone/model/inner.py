"""What lies inside a field, or is measured of it: `Order.address["city"]`, `Order.lines.size`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotone.model import changes
from isotone.model.conditions import Comparison, Condition, PathElements, SizeComparison, Test

if TYPE_CHECKING:
    from isotone.model.fields import Attr


class Inner:
    """Something inside a field: `Order.address["city"]`, `Order.lines[0]["price"]`."""

    __slots__ = ("_field", "_path")

    def __init__(self, field: Attr[Any], path: PathElements) -> None:
        self._field = field
        self._path = path

    def __getitem__(self, element: str | int) -> Inner:
        return Inner(self._field, (*self._path, element))

    def _compare(self, operator: str, *values: Any) -> Condition:
        return Comparison(self._field, operator, values, self._path)

    def __eq__(self, other: Any) -> Condition:  # type: ignore[override]
        return self._compare("=", other)

    def __ne__(self, other: Any) -> Condition:  # type: ignore[override]
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


class Size:
    """The size of a field, to be compared."""

    __slots__ = ("_field",)

    def __init__(self, field: Attr[Any]) -> None:
        self._field = field

    def __eq__(self, other: int) -> Condition:  # type: ignore[override]
        return SizeComparison(self._field, "=", other)

    def __lt__(self, other: int) -> Condition:
        return SizeComparison(self._field, "<", other)

    def __le__(self, other: int) -> Condition:
        return SizeComparison(self._field, "<=", other)

    def __gt__(self, other: int) -> Condition:
        return SizeComparison(self._field, ">", other)

    def __ge__(self, other: int) -> Condition:
        return SizeComparison(self._field, ">=", other)

    __hash__ = object.__hash__
