"""What a structure is made with, and called with, against what its signatures say.

Options are looked at when a structure is made. The arguments of its operations are looked at once a call
has failed over one of them, so that calls that are right pay nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from isotone.errors import UsageError
from isotone.model.declaring.annotations import named

SLIPS: Final = TypeError, AttributeError
"""What an argument of a wrong type ends in, sooner or later."""


def checked(make: Callable[..., None]) -> Callable[..., None]:
    """A constructor that refuses what its signature does not allow, where it has no words of its own."""

    @functools.wraps(make)
    def make_and_look(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            make(self, *args, **kwargs)
        except SLIPS:
            check(make, type(self).__name__, (self, *args), kwargs)
            raise
        check(make, type(self).__name__, (self, *args), kwargs)

    return make_and_look


def check(
    function: Callable[..., Any], call: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Refuse the first argument whose type is not the one declared for it."""
    signature, hints = _declared(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:  # Python itself says what is missing or too much
        return
    for name, value in _flat(signature, given):
        if name in hints and not _fits(value, hints[name]):
            was = "None" if value is None else type(value).__name__
            raise UsageError(
                f"{call}({name}={value!r}): {name} takes {_worded(hints[name])}, not {was}"
            )


@functools.cache
def _declared(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    try:
        hints = get_type_hints(function)
    except NameError:  # a name that only type checkers know
        hints = {}
    return inspect.signature(function), hints


def _flat(signature: inspect.Signature, given: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every argument with the name of its parameter; those of `*members` one by one."""
    for name, value in given.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            yield from ((name, each) for each in value)
        elif kind is not inspect.Parameter.VAR_KEYWORD:
            yield name, value


def _worded(wanted: Any) -> str:
    """A type as one would write it, with what its aliases stand for."""
    wanted = named(wanted)
    if get_origin(wanted) in (Union, UnionType):
        return " | ".join(map(_worded, get_args(wanted)))
    if get_origin(wanted) is Literal:
        return " | ".join(map(repr, get_args(wanted)))
    if wanted is type(None):
        return "None"
    is_bare = isinstance(wanted, type) and get_origin(wanted) is None
    return (
        str(wanted.__name__ if is_bare else wanted)
        .replace("typing.", "")
        .replace("collections.abc.", "")
    )


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value is of a type, as far as that shows without looking into it."""
    wanted = named(wanted)
    origin = get_origin(wanted)
    if origin is Literal:
        return value in get_args(wanted)
    if origin is type:
        return isinstance(value, type)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(wanted))
    plain = origin or wanted
    if plain is Any or not isinstance(plain, type) or getattr(plain, "_is_protocol", False):
        return True
    if plain in (int, float):
        return isinstance(value, int | plain) and not isinstance(value, bool)
    return isinstance(value, plain)
