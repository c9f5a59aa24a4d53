"""Results of idempotent calls: how they are stored as JSON and read as their type, and which are refused.

Payloads are not stored; fingerprints show whether two calls had equal payloads.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
import math
import reprlib
from collections.abc import Awaitable, Callable, Mapping
from decimal import Context, Decimal
from typing import Any, Final, get_args, get_origin, get_type_hints

from isotone.errors import UsageError
from isotone.model import Entity

_EXACT: Final = Context(prec=1000)
_MAX_RESULT: Final = 350_000  # bytes; an item has 400 KB, and a key up to two


def kind_of(function: Callable[..., Any], given: Any = Any) -> Any:
    """The type of results; raises `UsageError` if there is none."""
    kind = _returned(function) if given is Any or given is None else given
    reader(kind)
    return kind


def _returned(function: Callable[..., Any]) -> Any:
    """The annotated return type of a function or coroutine function; Any without an annotation."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        return function
    called = function if inspect.isroutine(function) else type(function).__call__
    try:
        kind = get_type_hints(called).get("return", Any)
    except (AttributeError, NameError, SyntaxError, TypeError) as error:
        raise UsageError(
            f"the return type of {getattr(function, '__name__', function)!r} cannot be read: {error}; import "
            "it outside of `if TYPE_CHECKING`, or give result=…"
        ) from None
    origin = get_origin(kind)
    is_awaited = isinstance(origin, type) and issubclass(origin, Awaitable)
    return get_args(kind)[-1] if is_awaited else kind


def is_async(*functions: Callable[..., Any]) -> bool:
    """Whether one of the functions, or of the callable objects, must be awaited."""
    calls = [*functions, *(type(each).__call__ for each in functions)]
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in calls
    )


def arguments(signature: inspect.Signature, /, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The arguments of a call by name, with defaults, without `self`."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return {name: value for name, value in bound.arguments.items() if name not in ("self", "cls")}


def _json(value: Any, **options: Any) -> str:
    """A value as JSON, encoded by pydantic; raises `TypeError` or `ValueError`."""
    from pydantic_core import to_jsonable_python

    if isinstance(value, Entity):
        value = value.to_dict()
    return json.dumps(to_jsonable_python(value, fallback=_of_entity), **options)


def _of_entity(value: Any) -> Any:
    if isinstance(value, Entity):
        return value.to_dict()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def fingerprint_of(payload: Any) -> str:
    """A fingerprint, the same for equal payloads; empty for None."""
    if payload is None:
        return ""
    try:
        text = _json(_ordered(payload), sort_keys=True)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the payload cannot be compared with an earlier one: {error}; give what must be equal as "
            "payload=…"
        ) from None
    return hashlib.sha256(text.encode()).hexdigest()


def _ordered(value: Any) -> Any:
    """A payload with its sets in a fixed order, and with equal numbers written alike."""
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        return int(value)
    if isinstance(value, Decimal):
        return value.normalize(_EXACT)  # a database returns 9.90 as 9.9
    if isinstance(value, Entity):
        value = value.to_dict()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    elif hasattr(value, "model_dump"):  # a model of pydantic's
        value = value.model_dump()
    if isinstance(value, Mapping):
        return {name: _ordered(each) for name, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(_json(_ordered(each), sort_keys=True) for each in value)
    return [_ordered(each) for each in value] if isinstance(value, list | tuple) else value


def written(result: Any) -> str:
    """A result in its stored form; raises `UsageError` if it cannot be stored."""
    try:
        text = _json(result)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the result cannot be stored: {error}") from None
    if len(text.encode()) > _MAX_RESULT:
        raise UsageError("the result is too large to be stored; return less")
    return text


def storable(result: Any, kind: Any) -> str:
    """A result in its stored form; also raises `UsageError` if it would be read back as another value."""
    text = written(result)
    read = result_of(text, kind)
    if read != result or (kind is Any and type(read) is not type(result)):
        raise UsageError(
            f"the result cannot be stored: {reprlib.repr(result)} would be {reprlib.repr(read)} the next time; "
            "give its exact type as result=…, or by an annotation: `def work() -> tuple[int, str]`"
        )
    return text


def result_of(text: str | None, kind: Any) -> Any:
    """A stored result as its declared type; raises `UsageError` if it has another type, or could not be stored."""
    if text is None:
        raise UsageError(
            "the work was done, but its result could not be stored; forget(…) lets it be done again"
        )
    try:
        return reader(kind)(text)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the stored result, {reprlib.repr(text)}, is not a {kind}") from error


@functools.lru_cache(maxsize=256)
def reader(kind: Any) -> Callable[[str], Any]:
    """The decoder for results of a type; raises `UsageError` for a type that JSON cannot represent."""
    if kind is Any:
        return json.loads
    if isinstance(kind, type) and issubclass(kind, Entity):
        return lambda text: kind(**json.loads(text))
    from pydantic import PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(kind).validate_json
    except PydanticUserError as error:
        complaint = str(error).partition(". ")[0]
        raise UsageError(
            f"a result cannot be stored as {kind}: {complaint}; give a type that pydantic reads, or an "
            "Entity, as result=…"
        ) from None
