"""What a declared type is, behind the names that it was given.

    UserId = NewType("UserId", str)             is str
    Name = Annotated[str, MaxLen(80)]           is str, and pydantic sees to the rest
    type State = Literal["ON", "OFF"]           is the Literal
    Literal["ON", None]                         is Literal["ON"] | None

An alias that is defined by itself stays as it is, and is left to pydantic.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal, Optional, get_args, get_origin

_UNIONS = (typing.Union, types.UnionType)


def plain_type(annotation: Any) -> Any:
    """The type that an annotation is a name of, without what it was annotated with."""
    while True:
        inner = _behind(annotation)
        if inner is annotation:
            return annotation
        annotation = inner


def present_type(annotation: Any) -> Any:
    """The same without None, which a field of it may have."""
    plain = plain_type(annotation)
    rest = [each for each in get_args(plain) if each is not type(None)]
    if get_origin(plain) in _UNIONS and len(rest) == 1:
        return present_type(rest[0])
    return plain


def is_optional(annotation: Any) -> bool:
    """Whether a field of this type may have None."""
    plain = plain_type(annotation)
    return get_origin(plain) in _UNIONS and any(
        each is type(None) or is_optional(each) for each in get_args(plain)
    )


def choices(annotation: Any) -> tuple[Any, ...] | None:
    """The values of an enum or a Literal in the order of their declaration; None of any other type."""
    present = present_type(annotation)
    if get_origin(present) is Literal:
        return get_args(present)
    return tuple(present) if isinstance(present, type) and issubclass(present, Enum) else None


def named(annotation: Any) -> Any:
    """What a NewType or an alias stands for; the annotation itself where it is none, or holds itself."""
    if isinstance(annotation, typing.NewType):
        return annotation.__supertype__
    # There are two classes of this name, Python's from 3.12 on and that of typing_extensions.
    if type(annotation).__name__ == "TypeAliasType" and not _holds(
        annotation.__value__, annotation
    ):
        return annotation.__value__
    return annotation


def _behind(annotation: Any) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        return arguments[0]
    if origin is Literal and None in arguments and len(arguments) > 1:
        rest = tuple(each for each in arguments if each is not None)
        return Optional[Literal[rest]]  # noqa: UP045 - made at run time
    return named(annotation)


def _holds(annotation: Any, alias: Any) -> bool:
    return any(
        each is alias or isinstance(each, str | typing.ForwardRef)
        for each in _parts(annotation, ())
    )


def _parts(annotation: Any, within: tuple[Any, ...]) -> Iterator[Any]:
    """An annotation and all that it is made of, aliases followed once."""
    yield annotation
    if get_origin(annotation) is Literal:
        return
    if type(annotation).__name__ == "TypeAliasType" and annotation not in within:
        yield from _parts(annotation.__value__, (*within, annotation))
    for each in get_args(annotation)[: 1 if get_origin(annotation) is typing.Annotated else None]:
        yield from _parts(each, within)
