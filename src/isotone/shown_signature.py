"""The signature of a function as `help()` and editors show it: results, not steps; parameters, not `Unpack[…]`.

A store's operation is a generator of steps, and annotated so for type checkers; its caller wants to see the result.
Type aliases are shown as the types that they stand for. A boto3-shaped method takes `**request`; it is shown with the
names of its parameters.

The text is made on demand, so importing the package costs nothing more. `inspect` follows `__wrapped__` until an object
has a `__signature__`, so a method's `__wrapped__` is a `ShownSignature`.
"""

from __future__ import annotations

import re
import sys
import types
import typing
from collections.abc import Callable
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    ForwardRef,
    Literal,
    Required,
    TypeVar,
    Union,
)

if TYPE_CHECKING:
    import inspect
    from collections.abc import Iterator

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_RESULTS: Final = (
    (r"(?s)Steps\[(.*)\]", "{}"),
    (r"(?s)Batches\[(.*)\]", "Iterator[{}]"),
)
_RUNNER_PARAMETER: Final = r"\[[MK]_co\]"  # type checkers need it, readers do not
_UNPACKED: Final = r"Unpack\[([\w.]+)\]"
_STEPS_ALIASES: Final = r"(?:Steps|Batches)\["  # aliases that callers write
_DOTTED: Final = r"\b(?:\w+\.)+(?=\w)"
_TRANSPARENT: Final = (Annotated, Required)


class ShownSignature:
    """Stands between a method and its function, and gives `inspect` the signature to show."""

    __slots__ = ("_function",)

    def __init__(self, function: types.FunctionType) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    @property
    def __wrapped__(self) -> types.FunctionType:
        """The function itself, for `inspect.getsource`; a copy, because the original may lead here."""
        source = self._function
        copy = types.FunctionType(
            source.__code__, source.__globals__, source.__name__, source.__defaults__
        )
        copy.__kwdefaults__ = source.__kwdefaults__
        copy.__annotations__ = source.__annotations__
        copy.__qualname__, copy.__module__ = source.__qualname__, source.__module__
        copy.__doc__ = source.__doc__
        return copy

    @property
    def __signature__(self) -> inspect.Signature:
        import inspect

        declared = inspect.signature(self.__wrapped__)
        names = self._function.__globals__
        parameters = [
            shown
            for parameter in declared.parameters.values()
            for shown in _parameters(parameter, names)
        ]
        result = declared.return_annotation
        if isinstance(result, str):
            result = _written(_result(result), names)
        return declared.replace(parameters=parameters, return_annotation=result)


class _Text(str):
    """An annotation that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _result(annotation: str) -> str:
    """What a call returns, given the annotation of its steps."""
    for pattern, result in _RESULTS:
        if found := re.fullmatch(pattern, annotation):
            return result.format(found[1])
    return annotation


def _parameters(parameter: inspect.Parameter, names: dict[str, Any]) -> Iterator[inspect.Parameter]:
    """A parameter as it is shown; a declared request is shown as one parameter per member."""
    annotation = parameter.annotation
    if not isinstance(annotation, str):
        yield parameter
    elif found := re.fullmatch(_UNPACKED, annotation):
        yield from _members(eval(found[1], names))
    else:
        yield parameter.replace(annotation=_written(annotation, names))


def _members(request: Any) -> Iterator[inspect.Parameter]:
    """The members of a TypedDict as keyword arguments, required ones first; `...` as the default of optional ones."""
    import inspect

    def is_optional(name: str) -> bool:
        return not declared[name].startswith("Required[")

    references = request.__annotations__
    declared: dict[str, str] = {name: each.__forward_arg__ for name, each in references.items()}
    for name in sorted(declared, key=is_optional):
        module = sys.modules[references[name].__forward_module__ or request.__module__]
        yield inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=_written(declared[name], vars(module)),
            default=_Text("...") if is_optional(name) else inspect.Parameter.empty,
        )


def _written(annotation: str, names: dict[str, Any]) -> _Text:
    """An annotation with its aliases resolved; unchanged if it names steps, or types that only type checkers import."""
    annotation = re.sub(_RUNNER_PARAMETER, "", annotation)
    if re.match(_STEPS_ALIASES, annotation):
        return _Text(annotation)
    try:
        return _Text(_text(eval(annotation, names)))
    except NameError:
        return _Text(re.sub(_DOTTED, "", annotation))


def _text(kind: Any) -> str:
    """A type as source code, without module names."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is None or kind is type(None):
        return "None"
    if isinstance(kind, str | ForwardRef):
        return re.sub(_DOTTED, "", kind if isinstance(kind, str) else kind.__forward_arg__)
    if kind is ... or isinstance(kind, list):
        return "..." if kind is ... else f"[{', '.join(map(_text, kind))}]"
    if origin is None:
        return str(getattr(kind, "__name__", re.sub(_DOTTED, "", repr(kind))))
    if origin in _TRANSPARENT:
        return _text(arguments[0])
    if origin in (Union, types.UnionType):
        return " | ".join(map(_text, arguments))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    return f"{_text(origin)}[{', '.join(map(_text, arguments))}]"


def show_signature(method: Callable[..., Any], function: Any) -> None:
    """Make `inspect.signature` of a method show the signature of the function that it runs."""
    method.__wrapped__ = ShownSignature(function)  # type: ignore[attr-defined] # of a function


def shown(function: F) -> F:
    """Make `inspect.signature` show a function as its callers need it."""
    show_signature(function, getattr(function, "__wrapped__", function))
    return function


def show_signatures(kind: type[T]) -> type[T]:
    """Make `inspect.signature` show the methods that a class defines itself as their callers need them."""
    for name, member in vars(kind).items():
        method = member.__func__ if isinstance(member, staticmethod) else member
        if not isinstance(method, types.FunctionType) or name.startswith("_"):
            continue
        function = getattr(method, "__wrapped__", method)
        if isinstance(function, types.FunctionType):  # otherwise it is already shown
            show_signature(method, function)
    return kind
