"""Encodes the keyword arguments of a call as a request, with botocore's checks.

The declared `request_types` are compiled into `msgspec` structs when an action is first used. A
well-formed request is checked, converted and encoded in C. Only a refused one is walked by Python code,
which accepts what botocore also accepts and reports all other faults at once, in botocore's words.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
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

import msgspec
from msgspec import UNSET, Struct, UnsetType

from isotone.client import request_types
from isotone.client.exceptions import parameter_error
from isotone.client.request_types import AttributeMap, AttributeValue

_encode: Final = msgspec.json.Encoder().encode
_convert: Final = msgspec.convert
_KEEP_BYTES: Final = (bytes,)
# msgspec reads the annotations of a struct at its first use, and crashes if two threads do that at the same time.
_compiling: Final = threading.Lock()
_CONTAINERS: Final[dict[Any, Any]] = {Mapping: dict, Sequence: list}


def encode_request(operation: str, request: Mapping[str, Any]) -> bytes:
    """Encode a request; raises a `ParamValidationError` that names every fault."""
    struct = _struct(operation)
    if struct is None:
        return _encode(request)
    try:
        return _encode(_convert(request, struct, builtin_types=_KEEP_BYTES))
    except msgspec.ValidationError:
        return _encode(_plain_request(declared_type(operation), request))


def declared_type(operation: str) -> Any:
    """The request type of an action, or None if `request_types` has none."""
    return getattr(request_types, operation + "Input", None)


@cache
def _struct(operation: str) -> Any:
    """The compiled request type of an action, or None if it has no declared one."""
    declared = declared_type(operation)
    if declared is None:
        return None
    with _compiling:
        struct = _compile(declared)
        msgspec.json.Decoder(struct)  # msgspec reads the annotations now
    return struct


class _Value(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """`AttributeValue`, compiled by hand because it contains itself."""

    S: str | UnsetType = UNSET
    N: str | UnsetType = UNSET
    B: bytes | UnsetType = UNSET
    SS: list[str] | UnsetType = UNSET
    NS: list[str] | UnsetType = UNSET
    BS: list[bytes] | UnsetType = UNSET
    M: dict[str, _Value] | UnsetType = UNSET
    L: list[_Value] | UnsetType = UNSET
    NULL: bool | UnsetType = UNSET
    BOOL: bool | UnsetType = UNSET


@cache
def _compile(hint: Any) -> Any:
    """The type with which `msgspec` checks a declared one."""
    if hint is AttributeValue:
        return _Value
    if is_typeddict(hint):
        return _compile_structure(hint)
    if hint is datetime:
        return float  # a datetime takes the slow path, which makes a number of it
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Annotated[(_compile(arguments[0]), *arguments[1:])]
    if origin in _CONTAINERS:
        return _CONTAINERS[origin][tuple(_compile(argument) for argument in arguments)]
    return hint


def _compile_structure(shape: Any) -> type[Struct]:
    fields: list[Any] = []
    for name, hint in members(shape).items():
        if name in required(shape):
            fields.append((name, _compile(hint)))
        else:
            fields.append((name, _compile(hint) | UnsetType, UNSET))
    return msgspec.defstruct(
        shape.__name__, fields, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
    )


@cache
def members(shape: Any) -> dict[str, Any]:
    """The members of a structure and their types, in the service's order."""
    return {
        name: get_args(hint)[0] if get_origin(hint) is Required else hint
        for name, hint in get_type_hints(shape, include_extras=True).items()
    }


@cache
def required(shape: Any) -> tuple[str, ...]:
    """The members that a structure must have."""
    hints = get_type_hints(shape, include_extras=True)
    return tuple(name for name, hint in hints.items() if get_origin(hint) is Required)


# Faults, and what botocore accepts beyond the declared types


def _plain_request(shape: Any, request: Mapping[str, Any]) -> Any:
    """Convert a request to plain values; raises one `ParamValidationError` with all faults."""
    faults: list[str] = []
    plain = _structure(shape, dict(request), "", faults)
    if faults:
        raise parameter_error("\n".join(faults))
    return plain


def _visit(hint: Any, value: Any, path: str, faults: list[str]) -> Any:
    bounds = None
    if get_origin(hint) is Annotated:
        hint, bounds = get_args(hint)
    kind = dict if is_typeddict(hint) else get_origin(hint) or hint
    accepted, names, convert = _KINDS.get(kind, _ANYTHING)
    if not isinstance(value, accepted):
        faults.append(
            f"Invalid type for parameter {_label(path)}, value: {value}, "
            f"type: {type(value)}, valid types: {names}"
        )
        return None
    if bounds is not None:
        _check_bounds(bounds, value, path, faults)
    return convert(hint, value, path, faults)


def _structure(shape: Any, value: dict[str, Any], path: str, faults: list[str]) -> Any:
    known = members(shape)
    faults.extend(
        f'Missing required parameter in {_label(path)}: "{name}"'
        for name in required(shape)
        if name not in value
    )
    faults.extend(
        f'Unknown parameter in {_label(path)}: "{name}", must be one of: {", ".join(known)}'
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
            f"Invalid length for parameter {_label(path)}, value: {len(value)}, "
            f"valid min length: {bounds.min_length}"
        )
    if bounds.ge is not None and value < bounds.ge:
        faults.append(
            f"Invalid value for parameter {_label(path)}, value: {value}, "
            f"valid min value: {bounds.ge}"
        )


def _label(path: str) -> str:
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
    """The bytes that botocore sends for a binary value; text is encoded as UTF-8."""
    if isinstance(value, _File):
        value = value.read()
    elif isinstance(value, _Wrapped):
        value = value.value
    return value.encode() if isinstance(value, str) else bytes(value)


def _seconds(hint: Any, value: Any, path: str, faults: list[str]) -> int | float:
    """The number that botocore sends for a time: whole seconds of a datetime; one without a zone is local."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            faults.append(
                f"Invalid type for parameter {_label(path)}, value: {value}, "
                f"type: {str}, valid types: {datetime}, timestamp-string"
            )
            return 0
    return int(value.timestamp()) if isinstance(value, datetime) else value


def _scalar(convert: Callable[[Any], Any]) -> _Conversion:
    return lambda hint, value, path, faults: convert(value)


_Conversion = Callable[[Any, Any, str, list[str]], Any]
_NESTED: Final[dict[str, Any]] = {"M": AttributeMap, "L": Sequence[AttributeValue]}
_TIMES: Final = (datetime, int, float, str)
_BINARY: Final = (bytes, bytearray, memoryview, str, _File, _Wrapped)

# For each kind of declared type: the accepted types, botocore's name for them, the conversion.
_KINDS: Final[dict[Any, tuple[Any, str, _Conversion]]] = {
    dict: (dict, str(dict), _structure),
    Mapping: (dict, str(dict), _mapping),
    Sequence: ((list, tuple), f"{list}, {tuple}", _sequence),
    str: (str, str(str), _scalar(str.__str__)),
    int: (int, str(int), _scalar(int)),
    bool: (bool, str(bool), _scalar(bool)),
    datetime: (_TIMES, f"{datetime}, timestamp-string", _seconds),
    bytes: (_BINARY, f"{bytes}, {bytearray}, file-like object", _blob),
}
_ANYTHING: Final[tuple[Any, str, _Conversion]] = (object, "", _scalar(lambda value: value))
