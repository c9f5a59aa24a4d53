"""Keyword arguments to the bytes of a request.

The request types in `item_requests`, `table_requests` and `stream_requests` are compiled into `msgspec` structs when an
action is first used. A well-formed request is then checked, its binary values turned into base64 and
the whole encoded, without Python code running for any of its parts. Only what that refuses is walked by
`parameter_faults`, which accepts what botocore also accepts and names every fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Final, get_args, get_origin, is_typeddict

import msgspec
from msgspec import UNSET, Struct, UnsetType

from isotone.backends import item_requests, stream_requests, table_requests
from isotone.backends.item_requests import AttributeValue
from isotone.backends.parameter_faults import members, plain_request, required

_encode: Final = msgspec.json.Encoder().encode
_convert: Final = msgspec.convert
_BYTES_STAY: Final = (bytes,)
_CONTAINERS: Final[dict[Any, Any]] = {Mapping: dict, Sequence: list}


def encode_request(operation: str, request: Mapping[str, Any]) -> bytes:
    """The body of a request; raises a `ParamValidationError` that names every fault."""
    shape = _COMPILED[operation]
    if shape is None:
        return _encode(request)
    try:
        return _encode(_convert(request, shape, builtin_types=_BYTES_STAY))
    except msgspec.ValidationError:
        return _encode(plain_request(_declared(operation), request))


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


class _Compiled(dict[str, Any]):
    """Struct types by action, each made when it is first asked for; None where none is declared."""

    def __missing__(self, operation: str) -> Any:
        shape = _declared(operation)
        self[operation] = compiled = None if shape is None else _compile(shape)
        return compiled


_COMPILED: Final = _Compiled()


def _declared(operation: str) -> Any:
    name = operation + "Input"
    modules = (item_requests, table_requests, stream_requests)
    return next((vars(each)[name] for each in modules if name in vars(each)), None)


@cache
def _compile(hint: Any) -> Any:
    """The type by which `msgspec` checks a declared one."""
    if hint is AttributeValue:
        return _Value
    if is_typeddict(hint):
        return _compile_structure(hint)
    if hint is datetime:
        return float
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
