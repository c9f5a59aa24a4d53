"""Which fields a condition can compare with each other, or an update copy to each other: those stored alike.

DynamoDB compares and copies stored values and knows no Python types: a datetime may be a text in one field and a number
in another. So both fields must be stored alike. A field whose type says nothing (`Any`) is always accepted.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from isotone.errors import UsageError
from isotone.model.declaring.wire_types import choices, is_optional, present_type, type_text

if TYPE_CHECKING:
    from isotone.model.declaring.fields import Attr

PathElements = tuple[str | int, ...]

EPOCH: Final = "seconds since the epoch"
EXPIRY: Final = "whole seconds since the epoch"
_MOMENTS: Final = (EPOCH, EXPIRY)
_NUMBERS: Final = (int, Decimal, float)
"""Each can be assigned to the ones after it, except a float to a Decimal, because a float is not exact."""


class StoredForm(NamedTuple):
    """How a field or a place in it is stored, and whether it may be None or missing."""

    kind: Any
    optional: bool = False
    missing: bool = False

    def __str__(self) -> str:
        if isinstance(self.kind, tuple):
            return f"a datetime of zone {self.kind[1]}"
        name = self.kind if isinstance(self.kind, str) else type_text(self.kind)
        return f"{'an' if name[0] in 'aeiou' else 'a'} {name}" if name not in _MOMENTS else name


def form_at(field: Attr[Any], path: PathElements) -> StoredForm | None:
    """The stored form of a field or of a place inside it; None if its type does not determine one."""
    if path:
        annotation = field.place(path).annotation
        return (
            None
            if annotation is Any
            else StoredForm(present_type(annotation), is_optional(annotation))
        )
    options, optional = field.options, is_optional(field.annotation)
    if options.codec is not None:
        return StoredForm(options.codec, optional)
    if options.role == "expires":
        return StoredForm(EXPIRY, optional)
    if options.epoch:
        return StoredForm(EPOCH, optional)
    if options.zone is not None:
        return StoredForm((datetime, options.zone), optional)
    present = present_type(field.annotation)
    return None if present in (Any, object) else StoredForm(present, optional)


def form_of(value: Any) -> StoredForm:
    """The stored form of a number or a timedelta that is added."""
    if type(value) in (*_NUMBERS, timedelta):
        return StoredForm(type(value))
    raise UsageError(f"{value!r} cannot be added or subtracted: the database adds numbers")


def check_comparable(left: StoredForm | None, right: StoredForm | None, both: str) -> None:
    """Raise `UsageError` unless equal values of the two forms are stored equally."""
    if left is None or right is None or _compared_as(left.kind) == _compared_as(right.kind):
        return
    raise UsageError(
        f"{both} are stored differently, {left} and {right}, so the database cannot compare them; read the "
        "entity and compare its values"
    )


def _compared_as(kind: Any) -> Any:
    if kind in _MOMENTS:
        return _MOMENTS
    values = choices(kind)
    types = {type(value) for value in values} if values else {kind}
    if types <= {*_NUMBERS}:
        return _NUMBERS
    if all(isinstance(each, type) and issubclass(each, str) for each in types) and (
        values is None or not isinstance(kind, type)
    ):
        return str  # texts, subclasses of str, and Literals of texts; an enum only equals itself
    return kind


def check_assignable(
    target: StoredForm | None, source: StoredForm | None, both: str, source_name: str
) -> None:
    """Raise `UsageError` unless the source always has a value, and every value of it is valid in the target."""
    if source is not None and source.missing:
        raise UsageError(
            f"{both}: {source_name} may have no value, which the database cannot copy; write "
            f"{source_name}.or_else(…)"
        )
    if target is None or source is None:
        return
    if not _is_part_of(source.kind, target.kind):
        raise UsageError(
            f"{both}: {source} is not stored as {target}, so the database cannot copy it; read the entity and "
            "set the value"
        )
    if source.optional and not target.optional:
        raise UsageError(f"{both}: {source_name} may have no value; write {source_name}.or_else(…)")


def _is_part_of(source: Any, target: Any) -> bool:
    """Whether every value of one kind is also a value of another, and is stored alike."""
    if source == target or (source == EXPIRY and target == EPOCH):
        return True
    if target in _NUMBERS:
        values = choices(source)
        kinds = {type(value) for value in values} if values else {source}
        allowed = {int: (int,), Decimal: (int, Decimal), float: _NUMBERS}[target]
        return kinds <= {*allowed}
    if choices(target) is not None:
        return False  # a text need not be one of the Literal's
    return target is str and _compared_as(source) is str


def sum_of(left: StoredForm | None, right: StoredForm | None, both: str) -> StoredForm | None:
    """The form of a sum or a difference; raises `UsageError` for what the database cannot add."""
    if left is None or right is None:
        return left or right
    for each in (left, right):
        if each.optional:
            raise UsageError(f"{both} adds a field that may have no value; write .or_else(…) of it")
    kinds = {left.kind, right.kind}
    if kinds <= {*_NUMBERS}:
        return StoredForm(float if float in kinds else Decimal if Decimal in kinds else int)
    if right.kind is timedelta and left.kind in (timedelta, *_MOMENTS):
        return left
    raise UsageError(
        f"{both} adds {left} and {right}; the database adds numbers, and spans of time to each other and to a "
        "datetime with epoch=True"
    )
