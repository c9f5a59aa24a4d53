"""What is wrong with a request's parameters, in botocore's words; and what is odd but acceptable.

Runs only for a request that the compiled check in `parameters` has refused. All faults are collected
before any is reported. What botocore lets through is turned into plain values: text and file objects
for binary values, `bytearray`, `memoryview`, boto3's `Binary`, tuples, subclasses of `str` and `int`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import (
    Annotated,
    Any,
    Final,
    Protocol,
    Required,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
    runtime_checkable,
)

from isotone.backends.failures import parameter_error
from isotone.backends.item_requests import AttributeMap, AttributeValue


def plain_request(shape: Any, request: Mapping[str, Any]) -> Any:
    """The request in plain values; raises one `ParamValidationError` for all that cannot be sent."""
    faults: list[str] = []
    plain = _structure(shape, dict(request), "", faults)
    if faults:
        raise parameter_error("\n".join(faults))
    return plain


@cache
def members(shape: Any) -> dict[str, Any]:
    """A structure's members and their types, in the service's order."""
    return {
        name: get_args(hint)[0] if get_origin(hint) is Required else hint
        for name, hint in get_type_hints(shape, include_extras=True).items()
    }


@cache
def required(shape: Any) -> tuple[str, ...]:
    """The members that a structure must have."""
    hints = get_type_hints(shape, include_extras=True)
    return tuple(name for name, hint in hints.items() if get_origin(hint) is Required)


def _visit(hint: Any, value: Any, path: str, faults: list[str]) -> Any:
    bounds = None
    if get_origin(hint) is Annotated:
        hint, bounds = get_args(hint)
    kind = dict if is_typeddict(hint) else get_origin(hint) or hint
    accepted, names, plain = _KINDS.get(kind, _ANYTHING)
    if not isinstance(value, accepted):
        faults.append(
            f"Invalid type for parameter {_called(path)}, value: {value}, "
            f"type: {type(value)}, valid types: {names}"
        )
        return None
    if bounds is not None:
        _check_bounds(bounds, value, path, faults)
    return plain(hint, value, path, faults)


def _structure(shape: Any, value: dict[str, Any], path: str, faults: list[str]) -> Any:
    known = members(shape)
    faults.extend(
        f'Missing required parameter in {_called(path)}: "{name}"'
        for name in required(shape)
        if name not in value
    )
    faults.extend(
        f'Unknown parameter in {_called(path)}: "{name}", must be one of: {", ".join(known)}'
        for name in value
        if name not in known
    )
    if shape is AttributeValue:
        known = known | _NESTED
    return {
        name: _visit(known[name], member, f"{path}.{name}", faults)
        for name, member in value.items()
        if name in known
    }


def _mapping(hint: Any, value: dict[Any, Any], path: str, faults: list[str]) -> Any:
    keys, values = get_args(hint)
    return {
        _visit(keys, key, f"{path} (key: {key})", faults): _visit(
            values, member, f"{path}.{key}", faults
        )
        for key, member in value.items()
    }


def _sequence(hint: Any, value: Sequence[Any], path: str, faults: list[str]) -> Any:
    (element,) = get_args(hint)
    return [_visit(element, member, f"{path}[{i}]", faults) for i, member in enumerate(value)]


def _check_bounds(bounds: Any, value: Any, path: str, faults: list[str]) -> None:
    if bounds.min_length is not None and len(value) < bounds.min_length:
        faults.append(
            f"Invalid length for parameter {_called(path)}, value: {len(value)}, "
            f"valid min length: {bounds.min_length}"
        )
    if bounds.ge is not None and value < bounds.ge:
        faults.append(
            f"Invalid value for parameter {_called(path)}, value: {value}, "
            f"valid min value: {bounds.ge}"
        )


def _called(path: str) -> str:
    return path.removeprefix(".") or "input"


@runtime_checkable
class _File(Protocol):
    def read(self) -> bytes: ...


@runtime_checkable
class _Wrapped(Protocol):
    """boto3's `Binary`."""

    @property
    def value(self) -> bytes: ...


def _blob(hint: Any, value: Any, path: str, faults: list[str]) -> bytes:
    """What botocore sends for a binary value; text goes as UTF-8."""
    if isinstance(value, _File):
        value = value.read()
    elif isinstance(value, _Wrapped):
        value = value.value
    return value.encode() if isinstance(value, str) else bytes(value)


def _scalar(convert: Callable[[Any], Any]) -> _Plain:
    return lambda hint, value, path, faults: convert(value)


def _timestamp(value: Any) -> float:
    return value.timestamp() if isinstance(value, datetime) else float(value)


_Plain = Callable[[Any, Any, str, list[str]], Any]
_NESTED: Final[dict[str, Any]] = {"M": AttributeMap, "L": Sequence[AttributeValue]}
_BINARY: Final = (bytes, bytearray, memoryview, str, _File, _Wrapped)
_FLOATS: Final = (float, Decimal, int)

# For each kind of declared type: what is accepted, what botocore calls that, how it is made plain.
_KINDS: Final[dict[Any, tuple[Any, str, _Plain]]] = {
    dict: (dict, str(dict), _structure),
    Mapping: (dict, str(dict), _mapping),
    Sequence: ((list, tuple), f"{list}, {tuple}", _sequence),
    str: (str, str(str), _scalar(str.__str__)),
    int: (int, str(int), _scalar(int)),
    bool: (bool, str(bool), _scalar(bool)),
    float: (_FLOATS, ", ".join(map(str, _FLOATS)), _scalar(float)),
    bytes: (_BINARY, f"{bytes}, {bytearray}, file-like object", _blob),
    datetime: ((datetime, int, float), f"{datetime}, timestamp-string", _scalar(_timestamp)),
}
_ANYTHING: Final[tuple[Any, str, _Plain]] = (object, "", _scalar(lambda value: value))
