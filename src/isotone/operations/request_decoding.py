"""Decodes a request from JSON or a mapping into its structure, or raises the service's error.

msgspec decodes a valid request in one pass. If it refuses the request, the request is read again, slowly: its types are
checked (`serialization`), then the constraints on its members (`request_validation`), then the table name of a
control-plane call. A request that passes these checks is valid after all, in a form that the service accepts. The order
of the action (`checks.first_fault`) decides which of several errors is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from threading import Lock
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from isotone.errors import SerializationException
from isotone.operations import request_validation, serialization, strict_json, table_lookup
from isotone.operations.long_requests import MOST_REFUSED, raise_if_long
from isotone.operations.request_grammar import StructureShape, shape_of
from isotone.operations.request_members import ApiStructure
from isotone.values.request_body import REFUSED, parsed_body

Request = TypeVar("Request", bound=ApiStructure)

# msgspec crashes the process (SIGSEGV) if a thread uses a structure while another one compiles it.
_COMPILING: Final = Lock()


def decode(shape: type[Request], body: bytes) -> Request:
    """The request in a JSON body. Raises the ApiError that the service would answer."""
    try:
        decoded: Request = decoders[shape].decode(body)
    except REFUSED:
        return of_checked(shape, _checked(shape, body))
    return decoded


class _Decoders(dict[type[ApiStructure], msgspec.json.Decoder[Any]]):
    """The compiled fast decoder of each request structure. Cheaper to look up than with a cached function."""

    def __missing__(self, shape: type[ApiStructure]) -> msgspec.json.Decoder[Any]:
        with _COMPILING:
            decoder = self[shape] = msgspec.json.Decoder(shape)
        return decoder


decoders: Final = _Decoders()


def decode_mapping(shape: type[Request], request: Mapping[str, Any]) -> Request:
    """The request in a mapping, whose expressions may be trees. Raises the same errors as `decode`."""
    accepting: type[Request] = accepting_trees(shape)
    try:
        request_: Request = msgspec.convert(request, accepting)
    except REFUSED:
        return of_checked(accepting, _checked(shape, request))
    return request_


def of_checked(shape: type[Request], document: Any) -> Request:
    """The request in a document without faulty members."""
    try:
        request: Request = msgspec.convert(document, shape)
    except REFUSED:  # a value that JSON cannot represent
        raise SerializationException from None
    return request


def _checked(shape: type[ApiStructure], request: bytes | Mapping[str, Any]) -> dict[str, Any]:
    """The document of a request that msgspec refused; raises the error of the service, unless it accepts it."""
    document, grammar = typed(shape, request), shape_of(shape)
    error = request_validation.error_of(document, grammar)
    if error is not None:
        raise error
    check_last(document, grammar)
    return document


def typed(shape: type[ApiStructure], request: bytes | Mapping[str, Any]) -> dict[str, Any]:
    """The document of a request with the types of its structure, whatever other faults it has."""
    if isinstance(request, bytes):
        raise_if_long(len(request) > MOST_REFUSED)
    given = parsed_body(request) if isinstance(request, bytes) else request
    if not isinstance(given, Mapping):
        raise SerializationException
    grammar = shape_of(shape)
    try:
        if shape.is_strict:
            body = (
                request if isinstance(request, bytes) else msgspec.json.encode(given, enc_hook=str)
            )
            strict_json.check(body, grammar)
        document: dict[str, Any] = serialization.with_types_of(dict(given), grammar)
    except RecursionError:
        raise SerializationException from None
    return document


def check_last(document: dict[str, Any], grammar: StructureShape) -> None:
    """Refuse the table name of a control-plane call, which has its own messages."""
    for member in grammar.members.values():
        if member.checked_last:
            table_lookup.check_control_name(member.name, document.get(member.name))


@cache
def accepting_trees(shape: type[Request]) -> type[Request]:
    """The same structure, in which all expression members, at any depth, also accept trees."""
    with _COMPILING:
        accepting = _accepting_trees(shape)
        # compiles it here; `msgspec.convert` would compile it without the lock
        msgspec.json.Decoder(accepting)
    return accepting


@cache
def _accepting_trees(shape: type[Request]) -> type[Request]:
    hints = get_type_hints(shape, include_extras=True)
    changed = {
        name: Any if name.endswith("_expression") else _with_trees(hint)
        for name, hint in hints.items()
    }
    if changed == hints:
        return shape
    fields = [
        (field.name, changed[field.name], *([] if field.required else [field.default]))
        for field in msgspec.structs.fields(shape)
    ]
    return msgspec.defstruct(  # type: ignore[return-value] # a subclass of `shape`
        shape.__name__, fields, bases=(shape,), frozen=True, gc=False, kw_only=True
    )


def _with_trees(hint: Any) -> Any:
    if isinstance(hint, type) and issubclass(hint, ApiStructure):
        return _accepting_trees(hint)
    arguments = get_args(hint)
    changed = tuple(map(_with_trees, arguments))
    if changed == arguments:
        return hint
    origin = get_origin(hint)
    if origin is UnionType:
        origin = Union
    return Annotated[changed] if origin is Annotated else origin[changed]
