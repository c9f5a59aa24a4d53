"""Nested values: what `User.home["zip"]` or `Order.lines[0]` may hold, according to the field's type.

`inside(annotation, element)` is the place of a member or an element. It raises `UsageError` if the type does not have
it. Where the type says nothing (`Any`, a class with its own serializer), a place may hold anything.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import difflib
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from isotone.errors import UsageError
from isotone.model.declaring.wire_types import (
    ANYTHING,
    WireType,
    is_scalar,
    plain,
    plain_type,
    wire_type,
)

_LISTS: Final = (list, tuple, collections.abc.Sequence, collections.abc.MutableSequence)
_MAPS: Final = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_SETS: Final = (set, frozenset)


@dataclasses.dataclass(frozen=True)
class Place:
    """What a nested place may hold.

    `is_required`: the value around it cannot exist without it. `assign` is set if a pydantic model has its own
    validators for the member.
    """

    annotation: Any
    is_required: bool = False
    is_computed: bool = False
    assign: Callable[[Any], Any] | None = None

    @cached_property
    def wire(self) -> WireType:
        """How values at this place are written."""
        return ANYTHING if self.annotation is Any else wire_type(self.annotation)


UNKNOWN: Final = Place(Any)


def inside(annotation: Any, element: str | int) -> Place:
    """The place of a member or an element in a value of this type; raises `UsageError` if there is none."""
    if _writes_itself(annotation):
        return UNKNOWN
    kind = plain_type(annotation)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal or (origin is None and isinstance(kind, type) and is_scalar(kind)):
        raise UsageError(f"is {_named(kind)}, with nothing inside, so also not {element!r}")
    if origin is None and isinstance(kind, type) and issubclass(kind, (*_LISTS, *_MAPS, *_SETS)):
        members = _members(kind)
        if members is not None:
            return _member(kind, members, element)
        origin = next(each for each in (*_LISTS, *_MAPS, *_SETS) if issubclass(kind, each))
    if origin in (Union, typing.get_origin(int | str)):
        return _in_either(arguments, element)
    if origin is tuple and arguments and arguments[-1] is not ...:
        return _element_of(kind, arguments, element)
    if origin in _LISTS:
        if not isinstance(element, int) or element < 0:
            raise UsageError(f"is a list, whose elements have a number from 0, not {element!r}")
        return Place(arguments[0] if arguments else Any)
    if origin in _MAPS:
        return _in_map(arguments or (str, Any), element)
    if origin in _SETS:
        raise UsageError(
            "is a set, whose members have no place; write .contains(…), .add({…}) or .set(…)"
        )
    members = _members(kind) if isinstance(kind, type) else None
    return UNKNOWN if members is None else _member(kind, members, element)


def is_map_of_texts(annotation: Any) -> bool:
    """Whether a type is a dict with arbitrary string keys, whose members all have the same type."""
    kind = plain_type(annotation)
    names = get_args(kind)[:1]
    return get_origin(kind) in _MAPS and names in ((str,), (Any,))


def _named(kind: Any) -> str:
    name = getattr(kind, "__name__", repr(kind))
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _writes_itself(annotation: Any) -> bool:
    """Whether an annotation has its own serializer, so that its type does not tell what an item contains."""
    from pydantic import PlainSerializer, WrapSerializer

    metadata = getattr(annotation, "__metadata__", ())
    return any(isinstance(each, PlainSerializer | WrapSerializer) for each in metadata)


def _in_either(arguments: tuple[Any, ...], element: str | int) -> Place:
    """The place in a union: in any of the types that have it."""
    places, reasons = [], []
    for argument in arguments:
        if argument is type(None):
            continue
        try:
            places.append(inside(argument, element))
        except UsageError as error:
            reasons.append(error)
    if not places:
        raise reasons[0]
    if len(places) == 1:
        return places[0]
    types: Any = Union[tuple(place.annotation for place in places)]  # noqa: UP007 - made at run time
    is_required = all(place.is_required for place in places)
    return Place(types, is_required, any(place.is_computed for place in places))


def _element_of(kind: Any, types: tuple[Any, ...], element: str | int) -> Place:
    """The place in a tuple of a fixed length."""
    if not isinstance(element, int) or not 0 <= element < len(types):
        raise UsageError(
            f"has {len(types)} elements, with numbers from 0 to {len(types) - 1}, and not {element!r}"
        )
    return Place(types[element], is_required=True)


def _in_map(arguments: tuple[Any, ...], element: str | int) -> Place:
    names, values = arguments
    if not isinstance(element, str):
        raise UsageError(f"is a map, whose members are named by a string, not by {element!r}")
    if plain_type(names) is not str and names is not Any:
        from pydantic import TypeAdapter, ValidationError

        adapter = TypeAdapter(names)
        try:
            written = plain(adapter.dump_python(adapter.validate_python(element)))
        except ValidationError:
            raise UsageError(f"has no {element!r}, which is not a key of the map") from None
        if str(written) != element:
            raise UsageError(f"has no {element!r}; its key is written as {str(written)!r}")
    return Place(values)


# Classes with members


def _members(kind: type) -> dict[str, Place] | None:
    """A class's members by their names in an item; None if the class does not declare them."""
    if typing.is_typeddict(kind) or hasattr(kind, "__required_keys__"):
        required = kind.__required_keys__  # type: ignore[attr-defined] # as all TypedDicts have
        return {name: _qualified(hint, name in required) for name, hint in _hints(kind).items()}
    if issubclass(kind, tuple):
        names = getattr(kind, "_fields", None)
        hints = _hints(kind)
        return (
            None if names is None else {name: Place(hints.get(name, Any), True) for name in names}
        )
    if hasattr(kind, "__pydantic_decorators__") and hasattr(kind, "model_fields"):
        return _members_of_model(kind)
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        return {
            each.name: Place(
                hints[each.name],
                each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING,
            )
            for each in dataclasses.fields(kind)
        }
    return None


def _hints(kind: type) -> Mapping[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _qualified(hint: Any, is_required: bool) -> Place:
    """A member of a TypedDict. The class itself does not see `NotRequired` in a string annotation."""
    while (qualifier := getattr(get_origin(hint), "_name", None)) in _QUALIFIERS:
        if qualifier != "ReadOnly":
            is_required = qualifier == "Required"
        (hint,) = get_args(hint)
    return Place(hint, is_required)


_QUALIFIERS: Final = frozenset({"Required", "NotRequired", "ReadOnly"})


def _members_of_model(model: Any) -> dict[str, Place] | None:
    decorators = model.__pydantic_decorators__
    if decorators.model_serializers or getattr(model, "__pydantic_root_model__", False):
        return None
    by_alias = model.model_config.get("serialize_by_alias", False)
    own = {name for each in decorators.field_validators.values() for name in each.info.fields}
    is_free = not (decorators.model_validators or model.model_config.get("frozen"))
    serialized = {
        name for each in decorators.field_serializers.values() for name in each.info.fields
    }
    members: dict[str, Place] = {}
    for name, info in model.model_fields.items():
        written = info.serialization_alias if by_alias and info.serialization_alias else name
        annotation: Any = info.annotation
        if info.metadata:
            annotation = Annotated[(annotation, *info.metadata)]
        if serialized & {name, "*"}:
            annotation = Any
        assign = _assignment(model, name) if is_free and own & {name, "*"} else None
        members[written] = Place(annotation, info.is_required(), assign=assign)
    for name, info in model.model_computed_fields.items():
        members[name] = Place(info.return_type, is_required=True, is_computed=True)
    return None if model.model_config.get("extra") == "allow" else members


def _assignment(model: Any, name: str) -> Callable[[Any], Any]:
    def assign(value: Any) -> Any:
        shell = model.model_construct()
        model.__pydantic_validator__.validate_assignment(shell, name, value)
        return getattr(shell, name)

    return assign


def _member(kind: type, members: dict[str, Place], element: str | int) -> Place:
    if issubclass(kind, tuple):
        return _element_of(kind, tuple(each.annotation for each in members.values()), element)
    if isinstance(element, str) and element in members:
        return members[element]
    close = difflib.get_close_matches(str(element), members, n=1)
    known = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(map(repr, members))}"
    raise UsageError(f"has no {element!r}; {known}")
