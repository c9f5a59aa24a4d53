"""What a structure is made with, and called with, against what its signatures say.

A wrong type is refused before anything is sent, by the name of its parameter. Types that have been found
right for a parameter are remembered, so that a call that is right pays a look into a set for each argument.
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
from isotone.model import named

M = TypeVar("M", bound=Callable[..., Any])

_CENTURY: Final = 100 * 366 * 86_400  # seconds; dates have an end


def some_seconds(**lengths: float | None) -> None:
    """Refuse a length of time that is not more than 0 seconds."""
    for name, seconds in lengths.items():
        if seconds is not None and not (_is_number(seconds) and 0 < seconds <= _CENTURY):
            raise UsageError(
                f"{name} is more than 0 seconds, and at most a century: not {seconds!r}"
            )


def any_seconds(**lengths: float | None) -> None:
    """Refuse a length of time that is less than 0 seconds."""
    for name, seconds in lengths.items():
        if seconds is not None and not (_is_number(seconds) and 0 <= seconds <= _CENTURY):
            raise UsageError(f"{name} is 0 seconds or more, and at most a century: not {seconds!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def looked_at(method: M) -> M:
    """A method that is no operation, and refuses what its signature does not allow."""
    expected = Parameters(method)

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        expected.check(f"{type(self).__name__}.{method.__name__}", args, kwargs)
        return method(self, *args, **kwargs)

    return cast("M", call)  # the same signature


def checked(make: Callable[..., None]) -> Callable[..., None]:
    """A constructor that refuses what its signature does not allow; its own words come first."""
    expected = Parameters(make)

    @functools.wraps(make)
    def make_and_check(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            make(self, *args, **kwargs)
        except (AttributeError, TypeError):
            expected.check(type(self).__name__, args, kwargs)
            raise
        expected.check(type(self).__name__, args, kwargs)

    return make_and_check


class Parameters:
    """The parameters of a method, and of which types their arguments may be."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self._hints: Mapping[str, Any] | None = None
        self._right: dict[str, set[type]] = {}
        own = list(inspect.signature(method).parameters.values())[1:]
        kinds = inspect.Parameter
        self._positional = [
            each.name
            for each in own
            if each.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        ]
        self._rest = next((each.name for each in own if each.kind is kinds.VAR_POSITIONAL), None)
        self._names = [each.name for each in own if each.kind is not kinds.VAR_KEYWORD]
        self._defaults = {each.name: each.default for each in own}
        self._takes_any = any(each.kind is kinds.VAR_KEYWORD for each in own)

    def check(self, call: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Refuse the first argument whose type is not the one declared for it."""
        right = self._right
        for name, value in zip(self._positional, args, strict=False):
            if type(value) not in right.get(name, ()):
                self._look(call, name, value)
        if self._rest is not None:
            for value in args[len(self._positional) :]:
                if type(value) not in right.get(self._rest, ()):
                    self._look(call, self._rest, value)
        for name, value in kwargs.items():
            if type(value) not in right.get(name, ()):
                self._look(call, name, value)

    def _look(self, call: str, name: str, value: Any) -> None:
        """Judge a name or a type that was not met yet."""
        if name not in self._names and not self._takes_any:
            close = difflib.get_close_matches(name, self._names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it takes {', '.join(self._names)}"
            raise UsageError(f"{call} takes no {name}; {hint}")
        if self._hints is None:
            self._hints = _hints_of(self._method)
        wanted = self._hints.get(name, Any)
        if value is not self._defaults.get(name) and not _fits(value, wanted):
            was = "None" if value is None else type(value).__name__
            raise UsageError(f"{call}({name}={value!r}): {name} takes {_worded(wanted)}, not {was}")
        if not _has_choices(wanted):
            self._right.setdefault(name, set()).add(type(value))


def _hints_of(method: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return get_type_hints(method)
    except (NameError, AttributeError, TypeError):  # what only type checkers can read
        return {}


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
    text = str(wanted.__name__ if is_bare else wanted)
    return text.replace("typing.", "").replace("collections.abc.", "")


def _has_choices(wanted: Any) -> bool:
    """Whether it depends on the value, not on its type alone, what fits."""
    wanted = named(wanted)
    return get_origin(wanted) is Literal or (
        get_origin(wanted) in (Union, UnionType) and any(map(_has_choices, get_args(wanted)))
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
    plain = dict if is_typeddict(wanted) else origin or wanted
    if plain is Any or not isinstance(plain, type) or getattr(plain, "_is_protocol", False):
        return True
    if isinstance(value, str) and issubclass(plain, Iterable) and plain is not str:
        # A text is taken for its letters where texts are wanted one by one.
        return issubclass(str, plain) and get_args(wanted)[:1] in ((), (str,), (Any,))
    if plain in (int, float):
        is_number = isinstance(value, int | plain) or hasattr(value, "__index__")  # numpy's, too
        return is_number and not isinstance(value, bool)
    return isinstance(value, plain)
