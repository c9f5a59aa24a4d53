"""The signature of a function as `help()` and editors show it: results instead of steps, parameters, not `Unpack[…]`.

An operation of a store is a generator of steps, annotated so for type checkers; its caller sees what it returns.
Names of type aliases are those of their modules; a reader needs what they stand for. A boto3-shaped method takes
`**request`; a reader needs the names of its parameters.

The text is made when somebody asks for it: importing the package costs nothing more. `inspect` follows `__wrapped__` until
an object has a `__signature__`, so that attribute of a method is a `ShownSignature`.
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
    (re.compile(r"Steps\[(.*)\]", re.DOTALL), "{}"),
    (re.compile(r"Batches\[(.*)\]", re.DOTALL), "Iterator[{}]"),
)
_KIND_OF_HOST: Final = re.compile(r"\[[MK]_co\]")  # which type checkers need, and readers do not
_UNPACKED: Final = re.compile(r"Unpack\[([\w.]+)\]")
_OF_STEPS: Final = re.compile(r"(?:Steps|Batches)\[")  # aliases that callers write
_DOTTED: Final = re.compile(r"\b(?:\w+\.)+(?=\w)")
_TRANSPARENT: Final = (Annotated, Required)


class ShownSignature:
    """Stands between a method and its function for `inspect`."""

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
    """What a call returns, for an annotation of the steps that it runs."""
    for pattern, result in _RESULTS:
        if found := pattern.fullmatch(annotation):
            return result.format(found[1])
    return annotation


def _parameters(parameter: inspect.Parameter, names: dict[str, Any]) -> Iterator[inspect.Parameter]:
    """A parameter as it is shown; one for each member of a declared request."""
    annotation = parameter.annotation
    if not isinstance(annotation, str):
        yield parameter
    elif found := _UNPACKED.fullmatch(annotation):
        yield from _members(eval(found[1], names))
    else:
        yield parameter.replace(annotation=_written(annotation, names))


def _members(request: Any) -> Iterator[inspect.Parameter]:
    """The members of a TypedDict as keyword arguments, those that are required first; `...` if one may be left out."""
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
    """An annotation with its aliases written out; as it is, if it names steps, or what only type checkers import."""
    annotation = _KIND_OF_HOST.sub("", annotation)
    if _OF_STEPS.match(annotation):
        return _Text(annotation)
    try:
        return _Text(_text(eval(annotation, names)))
    except NameError:
        return _Text(_DOTTED.sub("", annotation))


def _text(kind: Any) -> str:
    """A type as one writes it, without the modules of its names."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is None or kind is type(None):
        return "None"
    if isinstance(kind, str | ForwardRef):
        return _DOTTED.sub("", kind if isinstance(kind, str) else kind.__forward_arg__)
    if kind is ... or isinstance(kind, list):
        return "..." if kind is ... else f"[{', '.join(map(_text, kind))}]"
    if origin is None:
        return str(getattr(kind, "__name__", _DOTTED.sub("", repr(kind))))
    if origin in _TRANSPARENT:
        return _text(arguments[0])
    if origin in (Union, types.UnionType):
        return " | ".join(map(_text, arguments))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    return f"{_text(origin)}[{', '.join(map(_text, arguments))}]"


def show_signature(method: Callable[..., Any], function: Any) -> None:
    """Let `inspect.signature` of a method show that of the function which it runs."""
    method.__wrapped__ = ShownSignature(function)  # type: ignore[attr-defined] # of a function


def shown(function: F) -> F:
    """Let `inspect.signature` show a function as its callers need it."""
    show_signature(function, getattr(function, "__wrapped__", function))
    return function


def show_signatures(kind: type[T]) -> type[T]:
    """Let `inspect.signature` show the methods of a class, those that it defines itself, as callers need them."""
    for name, member in vars(kind).items():
        method = member.__func__ if isinstance(member, staticmethod) else member
        if not isinstance(method, types.FunctionType) or name.startswith("_"):
            continue
        function = getattr(method, "__wrapped__", method)
        if isinstance(function, types.FunctionType):  # otherwise it has been done
            show_signature(method, function)
    return kind
