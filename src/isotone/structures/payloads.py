"""What a function is given and gives, as JSON: to compare it with another time, and to keep it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

from isotone.errors import UsageError
from isotone.model.entity import Entity

_LARGEST: Final = 350_000  # bytes of a result; an item has 400 KB, and a key up to two


def returned(function: Callable[..., Any]) -> Any:
    """The type that a function says it returns."""
    try:
        return typing.get_type_hints(function).get("return", Any)
    except NameError as error:
        raise UsageError(
            f"what {getattr(function, '__name__', function)!r} returns is not known, and so not as what a "
            f"kept result is to be read: {error}; import it, outside of `if TYPE_CHECKING`"
        ) from None


def _json(value: Any, **options: Any) -> str:
    """A value as JSON, by pydantic; raises `TypeError` or `ValueError`."""
    from pydantic_core import to_jsonable_python

    return json.dumps(to_jsonable_python(value, fallback=_of_entity), **options)


def _of_entity(value: Any) -> Any:
    if isinstance(value, Entity):
        return value.to_dict()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def fingerprint_of(payload: Any) -> str | None:
    """The same for equal payloads; None where nothing is said."""
    if payload is None:
        return None
    try:
        text = _json(_ordered(payload), sort_keys=True)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the payload cannot be compared with that of another time: {error}; say what must be the same "
            "by payload=…"
        ) from None
    return hashlib.sha256(text.encode()).hexdigest()


def _ordered(value: Any) -> Any:
    """A payload with its sets in an order, which without it is another one in each process."""
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


def result_of(text: str | None, kind: Any) -> Any:
    """A kept result as its type; None where it could not be kept."""
    if text is None:
        return None
    value = json.loads(text)
    if kind is Any or kind is None:
        return value
    if isinstance(kind, type) and issubclass(kind, Entity):
        return kind(**value)
    from pydantic import TypeAdapter

    return TypeAdapter(kind).validate_python(value)
