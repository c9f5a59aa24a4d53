"""What a function is given and gives, as JSON: to compare it with another time, and to keep it."""

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
_LARGEST: Final = 350_000  # bytes of a result; an item has 400 KB, and a key up to two


def kind_of(function: Callable[..., Any], said: Any = Any) -> Any:
    """The type as which results are read; raises `UsageError` where that cannot be."""
    kind = _returned(function) if said is Any or said is None else said
    reader(kind)
    return kind


def _returned(function: Callable[..., Any]) -> Any:
    """The type of what a function says it returns, or has awaited; Any where it says nothing."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        return function
    told = function if inspect.isroutine(function) else type(function).__call__
    try:
        kind = get_type_hints(told).get("return", Any)
    except (AttributeError, NameError, SyntaxError, TypeError) as error:
        raise UsageError(
            f"what {getattr(function, '__name__', function)!r} returns is not known, and so not as what a "
            f"kept result is to be read: {error}; import it, outside of `if TYPE_CHECKING`"
        ) from None
    origin = get_origin(kind)
    is_awaited = isinstance(origin, type) and issubclass(origin, Awaitable)
    return get_args(kind)[-1] if is_awaited else kind


def is_async(*functions: Callable[..., Any]) -> bool:
    """Whether one of the functions, or of the objects that are called like one, has to be awaited."""
    calls = [*functions, *(type(each).__call__ for each in functions)]
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in calls
    )


def arguments(signature: inspect.Signature, /, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """What a function is given, however that is spelled: by name, with defaults, without `self`."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return {name: each for name, each in bound.arguments.items() if name not in ("self", "cls")}


def _json(value: Any, **options: Any) -> str:
    """A value as JSON, by pydantic; raises `TypeError` or `ValueError`."""
    from pydantic_core import to_jsonable_python

    return json.dumps(to_jsonable_python(value, fallback=_of_entity), **options)


def _of_entity(value: Any) -> Any:
    if isinstance(value, Entity):
        return value.to_dict()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def fingerprint_of(payload: Any) -> str:
    """The same for equal payloads; empty where nothing is said."""
    if payload is None:
        return ""
    try:
        text = _json(_ordered(payload), sort_keys=True)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the payload cannot be compared with that of another time: {error}; say what must be the same "
            "by payload=…"
        ) from None
    return hashlib.sha256(text.encode()).hexdigest()


def _ordered(value: Any) -> Any:
    """A payload with its sets in an order, as each process has another, and equal numbers alike."""
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        return int(value)
    if isinstance(value, Decimal):
        return value.normalize(_EXACT)  # 9.90 comes back from a database as 9.9
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    elif isinstance(value, Entity):
        value = value.to_dict()
    elif hasattr(value, "model_dump"):  # a model of pydantic's
        value = value.model_dump()
    if isinstance(value, Mapping):
        return {name: _ordered(each) for name, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(_json(_ordered(each), sort_keys=True) for each in value)
    return [_ordered(each) for each in value] if isinstance(value, list | tuple) else value


def written(result: Any) -> str:
    """A result as it is kept; raises `UsageError` where that cannot be."""
    try:
        text = _json(result)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the result cannot be kept: {error}") from None
    if len(text.encode()) > _LARGEST:
        raise UsageError("the result is too large to be kept: give less")
    return text


def to_keep(result: Any, kind: Any) -> str:
    """A result as it is kept; raises `UsageError` where something else would be read, too."""
    text = written(result)
    again = result_of(text, kind)
    if again != result or (kind is Any and type(again) is not type(result)):
        raise UsageError(
            f"the result cannot be kept: {reprlib.repr(result)} would be {reprlib.repr(again)} the next time; say "
            "its exact type by result=…, or by an annotation: `def work() -> tuple[int, str]`"
        )
    return text


def result_of(text: str | None, kind: Any) -> Any:
    """A kept result as its type; raises `UsageError` where it is none of these, or could not be kept."""
    if text is None:
        raise UsageError(
            "it was done, but the result could not be kept; forget(…) lets it be done again"
        )
    try:
        return reader(kind)(text)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the result as it is kept, {reprlib.repr(text)}, is no {kind}") from error


@functools.lru_cache(maxsize=256)
def reader(kind: Any) -> Callable[[str], Any]:
    """What reads results of a type; raises `UsageError` where the type has no form in JSON."""
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
            f"a result cannot be kept as {kind}: {complaint}; say by result=… a type that pydantic reads, "
            "or one Entity"
        ) from None
