"""Encodes the keyword arguments of a call as a request, with botocore's checks (`ParamValidationError`).

The declared `request_types` are compiled into `msgspec` structs when an action is first used. A well-formed request is
checked and encoded in C. Only if that fails does Python code walk the request, which accepts everything that botocore
accepts, and reports all faults at once in botocore's words.

msgspec accepts more than botocore: a set for a list, any mapping for a dict, and numpy's numbers. So `_check_list`
checks lists, and the caller's own objects are encoded, because msgspec encodes only dicts.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Protocol,
    Required,
    TypeVar,
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
# msgspec reads a struct's annotations at its first use, and crashes if two threads do that at once.
_compiling: Final = threading.Lock()

S = TypeVar("S")


class _Listed(Generic[S]):
    """The type of a list or a tuple. Its elements are checked as elements of the list in the struct `S`."""


def encode_request(operation: str, request: Mapping[str, Any]) -> bytes:
    """Encode a request; raises a `ParamValidationError` that names every fault."""
    struct = _struct(operation)
    try:
        _convert(request, struct, builtin_types=_KEEP_BYTES, dec_hook=_check_list)
        return _encode(request)
    except Exception:  # noqa: BLE001 - an object in the request may raise anything; it is not used again
        return _encode_slowly(operation, request)


def _encode_slowly(operation: str, request: Mapping[str, Any]) -> bytes:
    """Encode a request that botocore accepts beyond the declared types, or raise its faults."""
    try:
        plain = _plain_request(request_type(operation), request)
    except RecursionError:
        raise parameter_error("The request is nested too deeply, or contains itself") from None
    # Like botocore: half a surrogate pair is sent, and the service refuses it.
    return json.dumps(plain, separators=(",", ":"), default=_base64).encode()


def _base64(value: bytes) -> str:
    """The text that is sent for a binary value."""
    return b64encode(value).decode()


def _check_list(listed: Any, value: Any) -> Any:
    """Check a value of the type `_Listed`; returns an instance that nothing uses."""
    if not isinstance(value, list | tuple):
        raise TypeError(value)
    (struct,) = listed.__args__  # like `get_args`, in a third of the time
    if struct is _Texts and {*map(type, value)} == _ONLY_STR:
        return _CHECKED
    _convert({"elements": value}, struct, builtin_types=_KEEP_BYTES, dec_hook=_check_list)
    return _CHECKED


_CHECKED: Final[_Listed[Any]] = _Listed()
_ONLY_STR: Final = {str}


def request_type(operation: str) -> Any:
    """The request type of an action."""
    return getattr(request_types, f"{operation}Input")


@cache
def _struct(operation: str) -> Any:
    """The compiled request type of an action."""
    with _compiling:
        struct = _compile(request_type(operation))
        _read_annotations(struct)
    return struct


def _read_annotations(struct: Any) -> None:
    """Make msgspec read the annotations of a struct now."""
    msgspec.json.Decoder(struct, dec_hook=_check_list)


class _Texts(Struct):
    elements: list[str]


class _Blobs(Struct):
    elements: list[bytes]


class _Values(Struct):
    elements: list[_Value]


class _Value(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """`AttributeValue`, compiled by hand because it contains itself."""

    S: str | UnsetType = UNSET
    N: str | UnsetType = UNSET
    B: bytes | UnsetType = UNSET
    SS: _Listed[_Texts] | UnsetType = UNSET
    NS: _Listed[_Texts] | UnsetType = UNSET
    BS: _Listed[_Blobs] | UnsetType = UNSET
    M: dict[str, _Value] | UnsetType = UNSET
    L: _Listed[_Values] | UnsetType = UNSET
    NULL: bool | UnsetType = UNSET
    BOOL: bool | UnsetType = UNSET


@cache
def _compile(hint: Any) -> Any:
    """The type that `msgspec` checks for a declared type."""
    if hint is AttributeValue:
        for struct in (_Texts, _Blobs, _Values):
            _read_annotations(struct)
        return _Value
    if is_typeddict(hint):
        return _compile_structure(hint)
    if hint is datetime:
        return int  # other times take the slow path, which converts them to whole seconds
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _compile_bounded(arguments[0], arguments[1])
    if origin is Mapping:
        return dict[_compile(arguments[0]), _compile(arguments[1])]  # type: ignore[misc] # made at run time
    if origin is Sequence:
        return _compile_list(arguments[0])
    return hint


def _compile_bounded(hint: Any, bounds: msgspec.Meta) -> Any:
    if get_origin(hint) is Sequence:
        return _compile_list(get_args(hint)[0], bounds)
    return Annotated[_compile(hint), bounds]


def _compile_list(element: Any, *bounds: msgspec.Meta) -> Any:
    elements: Any = list[_compile(element)]  # type: ignore[misc] # made at run time
    if bounds:
        elements = Annotated[(elements, *bounds)]
    struct = msgspec.defstruct("Elements", [("elements", elements)])
    _read_annotations(struct)
    return _Listed[struct]  # type: ignore[valid-type] # made at run time


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


# Faults, and values that botocore accepts beyond the declared types


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
    accepted, names, convert = _KINDS[kind]
    if not isinstance(value, accepted):
        _refuse_type(value, path, names, faults)
        return None
    if bounds is not None:
        _check_bounds(bounds, value, path, faults)
    return convert(hint, value, path, faults)


def _refuse_type(value: Any, path: str, names: str, faults: list[str]) -> None:
    faults.append(
        f"Invalid type for parameter {_label(path)}, value: {value}, "
        f"type: {type(value)}, valid types: {names}"
    )


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
class _Readable(Protocol):
    def read(self) -> Any: ...


@runtime_checkable
class _Wrapped(Protocol):
    """boto3's `Binary`."""

    @property
    def value(self) -> Any: ...


def _blob(hint: Any, value: Any, path: str, faults: list[str]) -> bytes:
    """The bytes that botocore sends for a binary value; text is encoded as UTF-8."""
    content = value
    if isinstance(value, _Readable):
        content = value.read()
    elif isinstance(value, _Wrapped) and not isinstance(value, str | bytes):
        content = value.value
    if isinstance(content, str):
        try:
            return str.encode(content)
        except UnicodeEncodeError:
            faults.append(
                f"Invalid value for parameter {_label(path)}, value: {content}: half a surrogate pair"
            )
    elif isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    else:
        _refuse_type(value, path, _BINARY_NAMES, faults)
    return b""


def _seconds(hint: Any, value: Any, path: str, faults: list[str]) -> int:
    """The number that botocore sends for a time: whole seconds; a datetime without a zone is local."""
    try:
        if not isinstance(value, datetime):
            try:
                return int(float(value))  # including numpy's numbers and numbers as text
            except (TypeError, ValueError):
                value = datetime.fromisoformat(value)
        return int(value.timestamp())
    except (TypeError, ValueError, OverflowError, OSError):
        _refuse_type(value, path, _TIME_NAMES, faults)
        return 0


def _integer(value: int) -> int:
    """An int without the methods of a subclass, such as an IntEnum; a bool is sent as it is."""
    return value if isinstance(value, bool) else int.__int__(value)


def _float(value: float | Decimal) -> float:
    """A plain float; a bool is sent as it is."""
    return value if isinstance(value, bool) else float(value)


def _scalar(convert: Callable[[Any], Any]) -> _Conversion:
    return lambda hint, value, path, faults: convert(value)


_Conversion = Callable[[Any, Any, str, list[str]], Any]
_NESTED: Final[dict[str, Any]] = {"M": AttributeMap, "L": Sequence[AttributeValue]}
_TIME_NAMES: Final = f"{datetime}, timestamp-string"
_BINARY: Final = (bytes, bytearray, memoryview, str, _Readable, _Wrapped)
_BINARY_NAMES: Final = f"{bytes}, {bytearray}, file-like object"

# For each kind of declared type: the accepted Python types, botocore's name for them, and the
# conversion.
_KINDS: Final[dict[Any, tuple[Any, str, _Conversion]]] = {
    dict: (dict, str(dict), _structure),
    Mapping: (dict, str(dict), _mapping),
    Sequence: ((list, tuple), f"{list}, {tuple}", _sequence),
    str: (str, str(str), _scalar(str.__str__)),
    int: (int, str(int), _scalar(_integer)),
    float: ((float, Decimal, int), f"{float}, {Decimal}, {int}", _scalar(_float)),
    bool: (bool, str(bool), _scalar(bool)),
    datetime: (object, _TIME_NAMES, _seconds),
    bytes: (_BINARY, _BINARY_NAMES, _blob),
}
