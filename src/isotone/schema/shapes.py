"""Shapes: tables of data that say where each member of a format's document stands in a definition.

    found = read_shape(TABLE, value)
    document = write_shape(TABLE, found)

One table serves both directions. A shape is `str`, `int`, `bool`, `object` for a whole value, a function that reads a
`DocumentValue`, a list with the shape of its elements, or `ObjectShape`. A member of an object stands under its own
name, or where `At` says; None in place of a shape stands for a member that changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from isotone.schema.document import DocumentValue, RemovedProperty


def _same(value: Any) -> Any:
    return value


class At(NamedTuple):
    """A member that stands elsewhere: `path` has the names of the members that lead there, with dots between them.

    An empty path is the object itself. `read` converts what the shape has read; `write` is its inverse, and gives None
    for what is not written. What several members read into one place is merged.
    """

    path: str
    shape: Any = str
    read: Callable[[Any], Any] = _same
    write: Callable[[Any], Any] = _same


class ObjectShape(NamedTuple):
    """The shape of an object: members that it must have, and others that it may have."""

    required: Mapping[str, Any]
    optional: Mapping[str, Any] = {}

    def members(self) -> dict[str, At | None]:
        """Each member with its place."""
        known = {**self.required, **self.optional}
        return {
            name: shape if shape is None or isinstance(shape, At) else At(name, shape)
            for name, shape in known.items()
        }


_READERS: Final[dict[Any, Callable[[DocumentValue], Any]]] = {
    str: DocumentValue.text,
    int: DocumentValue.integer,
    bool: DocumentValue.flag,
    object: DocumentValue.plain,
}


def read_shape(shape: Any, value: DocumentValue) -> Any:
    """What a shape reads of a value; members that the shape does not have are noted."""
    if isinstance(shape, list):
        elements = [each for each in value.elements() if each.value is not RemovedProperty]
        return [read_shape(shape[0], each) for each in elements]
    if not isinstance(shape, ObjectShape):
        return _READERS.get(shape, shape)(value)
    known, given = shape.members(), value.members()
    for name, member in given.items():
        if name not in known:
            member.note(f"{member.place} is not read")
    present = {
        name: at
        for name, at in known.items()
        if at is not None and name in given and given[name].value not in (None, RemovedProperty)
    }
    for name in shape.required:
        if name not in present:
            raise value.refusal(f"lacks {name}")
    found: dict[str, Any] = {}
    for name, at in present.items():
        inner = at.read(read_shape(at.shape, given[name]))
        for step in reversed(at.path.split(".") if at.path else ()):
            inner = {step: inner}
        found = merged(found, inner)
    return found


def write_shape(shape: Any, found: Any) -> Any:
    """The document that a shape reads as this; what is absent or empty is left out."""
    if isinstance(shape, list):
        return [write_shape(shape[0], each) for each in found]
    if not isinstance(shape, ObjectShape):
        return found
    document = {}
    for name, at in shape.members().items():
        given = None if at is None else _given(at, found)
        if at is not None and given is not None:
            document[name] = write_shape(at.shape, given)
    return {name: each for name, each in document.items() if each not in (None, [], {})}


def _given(at: At, found: Any) -> Any:
    """What stands at a place, for its shape to write."""
    for step in at.path.split(".") if at.path else ():
        found = found.get(step)
        if found is None:
            return None
    return at.write(found)


def merged(one: Any, other: Any) -> Any:
    """Two objects with the members of both, or two lists one after the other; of two scalars the other."""
    if isinstance(one, dict) and isinstance(other, dict):
        both = {name: merged(one[name], other[name]) for name in one if name in other}
        return {**one, **other, **both}
    return one + other if isinstance(one, list) and isinstance(other, list) else other
