"""Checks the arguments of structures: wrong types, names and durations raise `UsageError` before any request.

The error names the parameter. A call whose argument types were accepted before costs one lookup in a set.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import (
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from isotone.errors import UsageError
from isotone.model import resolve_alias

M = TypeVar("M", bound=Callable[..., Any])

_CENTURY: Final = 100 * 366 * 86_400  # seconds; longer spans leave the range of dates
_MOST_SHAPES: Final = 256  # cached accepted calls of one method


def require_positive(**lengths: float | None) -> None:
    """Raise `UsageError` unless each duration is more than 0 seconds."""
    for name, seconds in lengths.items():
        if seconds is not None and not (_is_number(seconds) and 0 < seconds <= _CENTURY):
            raise UsageError(
                f"{name} must be more than 0 seconds, and at most a century, not {seconds!r}"
            )


def require_non_negative(**lengths: float | None) -> None:
    """Raise `UsageError` unless each duration is 0 seconds or more."""
    for name, seconds in lengths.items():
        if seconds is not None and not (_is_number(seconds) and 0 <= seconds <= _CENTURY):
            raise UsageError(
                f"{name} must be 0 seconds or more, and at most a century, not {seconds!r}"
            )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def validated(method: M) -> M:
    """Check the arguments of a method that is not an `@operation`."""
    parameters = MethodParameters(method)

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        parameters.check(f"{type(self).__name__}.{method.__name__}", args, kwargs)
        return method(self, *args, **kwargs)

    return cast("M", call)  # the same signature


def checked(make: Callable[..., None]) -> Callable[..., None]:
    """Check the arguments of a constructor; its own errors come first."""
    parameters = MethodParameters(make)

    @functools.wraps(make)
    def make_and_check(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            make(self, *args, **kwargs)
        except (AttributeError, TypeError):
            parameters.check(type(self).__name__, args, kwargs)
            raise
        parameters.check(type(self).__name__, args, kwargs)

    return make_and_check


class MethodParameters:
    """The parameters of a method, and the types that their arguments may have."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self._hints: Mapping[str, Any] | None = None
        self._shapes: set[tuple[object, ...]] = set()
        kinds = inspect.Parameter
        parameters = list(inspect.signature(method).parameters.values())[1:]
        named = [parameter for parameter in parameters if parameter.kind is not kinds.VAR_KEYWORD]
        self._takes_any_name = len(named) < len(parameters)
        self._names = [parameter.name for parameter in named]
        self._defaults = {parameter.name: parameter.default for parameter in named}
        self._rest = next(
            (parameter.name for parameter in named if parameter.kind is kinds.VAR_POSITIONAL), None
        )
        self._positional = [
            parameter.name
            for parameter in named
            if parameter.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        ]

    def check(self, call: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raise `UsageError` for the first argument whose type differs from the declared one."""
        shape: tuple[object, ...] = (*map(type, args),)
        if kwargs:
            shape = (*shape, *kwargs, *map(type, kwargs.values()))
        if shape in self._shapes:
            return
        names = self._positional[: len(args)]
        if self._rest is not None:
            names += [self._rest] * (len(args) - len(names))
        given = [*zip(names, args, strict=False), *kwargs.items()]
        for name, value in given:
            self._check_one(call, name, value)
        if not any(_depends_on_value(self._hint(name)) for name, _ in given):
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            self._shapes.add(shape)

    def _check_one(self, call: str, name: str, value: Any) -> None:
        if name not in self._defaults and not self._takes_any_name:
            close = difflib.get_close_matches(name, self._names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it takes {', '.join(self._names)}"
            raise UsageError(f"{call} has no parameter {name!r}; {hint}")
        wanted = self._hint(name)
        if value is not self._defaults.get(name) and not _fits(value, wanted):
            raise UsageError(
                f"{call}({name}={value!r}): {name} takes {_spelled(wanted)}, not {_actual(value, wanted)}"
            )

    def _hint(self, name: str) -> Any:
        if self._hints is None:
            self._hints = _hints_of(self._method)
        return self._hints.get(name, Any)


def _hints_of(method: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return get_type_hints(method)
    except (NameError, AttributeError, TypeError):  # only type checkers can read them
        return {}


def _spelled(wanted: Any) -> str:
    """A type as in source code, with its aliases replaced."""
    wanted = resolve_alias(wanted)
    if get_origin(wanted) in (Union, UnionType):
        return " | ".join(map(_spelled, get_args(wanted)))
    if get_origin(wanted) is Literal:
        return " | ".join(map(repr, get_args(wanted)))
    if wanted is type(None):
        return "None"
    is_bare = isinstance(wanted, type) and get_origin(wanted) is None
    text = str(wanted.__name__ if is_bare else wanted)
    return text.replace("typing.", "").replace("collections.abc.", "")


def _actual(value: Any, wanted: Any) -> str:
    """The wrong argument in words: its value if only certain values are accepted, else its type."""
    return repr(value) if value is None or _depends_on_value(wanted) else type(value).__name__


def _depends_on_value(wanted: Any) -> bool:
    """Whether the type accepts some values of a class and refuses others, as `Literal` does."""
    wanted = resolve_alias(wanted)
    return get_origin(wanted) is Literal or (
        get_origin(wanted) in (Union, UnionType) and any(map(_depends_on_value, get_args(wanted)))
    )


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value has a type; the contents of containers are not checked."""
    wanted = resolve_alias(wanted)
    origin = get_origin(wanted)
    if origin is Literal:
        return value in get_args(wanted)
    if origin is type:
        return isinstance(value, type)
    if origin in (Union, UnionType):
        return any(_fits(value, member) for member in get_args(wanted))
    plain = dict if is_typeddict(wanted) else origin or wanted
    if plain is Any or not isinstance(plain, type) or getattr(plain, "_is_protocol", False):
        return True
    if isinstance(value, str) and issubclass(plain, Iterable) and plain is not str:
        # A str counts as a sequence of characters only if single characters are accepted.
        return issubclass(str, plain) and get_args(wanted)[:1] in ((), (str,), (Any,))
    if plain in (int, float):
        is_number = isinstance(value, int | plain) or hasattr(value, "__index__")  # numpy's
        return is_number and not isinstance(value, bool)
    return isinstance(value, plain)
