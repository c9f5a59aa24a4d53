"""Checks request members against the API's constraints: "1 validation error detected: …".

`item_validation` later checks whether an item fits its table. If the service lists several violations, it counts all
and shows the first ten, each with the value as Java prints it and the path of the member. `checks.orders` decides which
constraints of an action are listed together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from isotone.errors import ValidationException
from isotone.operations.request_grammar import (
    AttributeValueShape,
    Constraints,
    ListShape,
    Mapping,
    MemberShape,
    Scalar,
    Shape,
    StructureShape,
    decapitalized,
)
from isotone.values.shape import decode_base64, known_members

_LISTED: Final = 10
_NULL: Final = "Member must not be null"
# Members that the service's internal model has and its public one lacks.
_VALUE_MEMBERS: Final = (
    *("s", "n", "b", "iNT", "dECIMAL", "dOUBLE", "sS", "nS", "bS", "iNTSET", "dECIMALSET"),
    *("dOUBLESET", "m", "l", "nULL", "bOOL"),
)
_WITH_PROFILE: Final = frozenset(
    {"PutRequest", "DeleteRequest", "Get", "Put", "Delete", "Update", "ConditionCheck"}
)


def error_of(document: Any, shape: StructureShape) -> ValidationException | None:
    """The error for all violated constraints of a document that `serialization` has accepted."""
    problems = list(_record(document, shape, ""))
    return detected(*problems) if problems else None


def violations(value: Any, shape: Shape, path: str) -> Iterator[str]:
    """A sentence for each constraint that `value`, or a value inside it, violates."""
    if value is None:
        yield problem("null", path, _NULL)
        return
    yield from (
        problem(f"'{java_text(value, shape)}'", path, rule.sentence)
        for rule in shape.constraints
        if not rule.holds(value)
    )
    yield from _INSIDE[type(shape)](value, shape, path)


def detected(*problems: str) -> ValidationException:
    """The error with a count of its problems: "2 validation errors detected: …"."""
    counted = "1 validation error" if len(problems) == 1 else f"{len(problems)} validation errors"
    return ValidationException(f"{counted} detected: {'; '.join(problems[:_LISTED])}")


def problem(value: str, path: str, sentence: str) -> str:
    """One entry of the list: the value, its path, and the constraint that it violates."""
    return f"Value {value} at '{path}' failed to satisfy constraint: {sentence}"


def _nothing(_: Any, __: Shape, ___: str) -> Iterator[str]:
    yield from ()


def _sequence(value: Any, shape: ListShape, path: str) -> Iterator[str]:
    if isinstance(shape.member, Scalar):
        if not all(_fits(member, shape.member.constraints) for member in value):
            sentence = f"Member must satisfy constraint: {_bracketed(shape.member.constraints)}"
            yield problem(f"'{java_text(value, shape)}'", path, sentence)
        return
    for place, member in enumerate(value, 1):
        yield from violations(member, shape.member, f"{path}.{place}.member")


def _mapping(value: Any, shape: Mapping, path: str) -> Iterator[str]:
    if not all(_fits(key, shape.key.constraints) for key in value):
        sentence = f"Map keys must satisfy constraint: {_bracketed(shape.key.constraints)}"
        yield problem(f"'{java_text(value, shape)}'", path, sentence)
    if not all(_fits(member, shape.value.constraints) for member in value.values()):
        sentence = f"Map value must satisfy constraint: {_bracketed(shape.value.constraints)}"
        yield problem(f"'{java_text(value, shape)}'", path, sentence)
    for key, member in value.items():
        yield from _INSIDE[type(shape.value)](member, shape.value, f"{path}.{key}.member")


def _record(value: Any, shape: StructureShape, path: str) -> Iterator[str]:
    for member in shape.listed:
        yield from of_member(value, member, path)


def of_member(document: Any, member: MemberShape, path: str = "") -> Iterator[str]:
    """A sentence for each constraint that a member of a structure violates."""
    content = document.get(member.name)
    if not member.checked_last and (content is not None or member.required):
        yield from violations(
            content, member.shape, f"{path}.{decapitalized(member.name)}".lstrip(".")
        )


_INSIDE: Final[dict[type, Callable[[Any, Any, str], Iterator[str]]]] = {
    Scalar: _nothing,
    AttributeValueShape: _nothing,
    ListShape: _sequence,
    Mapping: _mapping,
    StructureShape: _record,
}


def _fits(value: Any, constraints: Constraints) -> bool:
    return value is not None and all(rule.holds(value) for rule in constraints)


def _bracketed(constraints: Constraints) -> str:
    """The rules on the members of a collection; the maximum length comes first here."""
    return f"[{', '.join(sorted((rule.sentence for rule in constraints), key=_rank))}]"


def _rank(sentence: str) -> int:
    return next(place for place, words in enumerate(("less", "greater", "")) if words in sentence)


def java_text(value: Any, shape: Shape) -> str:
    """A value as the service's Java classes print it."""
    if value is None:
        return "null"
    match shape:
        case Scalar():
            return str(value).lower() if isinstance(value, bool) else str(value)
        case AttributeValueShape():
            return _value_text(value)
        case ListShape():
            return f"[{', '.join(java_text(member, shape.member) for member in value)}]"
        case Mapping():
            entries = (f"{key}={java_text(item, shape.value)}" for key, item in value.items())
            return f"{{{', '.join(entries)}}}"
        case StructureShape():
            members = [
                f"{decapitalized(name)}={java_text(value.get(name), member.shape)}"
                for name, member in shape.members.items()
            ]
            if shape.name in _WITH_PROFILE:
                members.append("workloadProfileName=null")
            return f"{shape.name}({', '.join(members)})"


def _value_text(value: Any) -> str:
    texts = {
        decapitalized(code): _content_text(code, content)
        for code, content in known_members(value).items()
    }
    members = ", ".join(f"{name}={texts.get(name, 'null')}" for name in _VALUE_MEMBERS)
    return f"AttributeValue({members})"


def _content_text(code: str, content: Any) -> str:
    match code:
        case "B":
            size = len(decode_base64(content))
            return f"java.nio.HeapByteBuffer[pos=0 lim={size} cap={size}]"
        case "M":
            entries = (f"{name}={_value_text(each or {})}" for name, each in content.items())
            return f"{{{', '.join(entries)}}}"
        case "L":
            return f"[{', '.join(_value_text(each or {}) for each in content)}]"
        case "SS" | "NS" | "BS":
            return f"[{', '.join(_content_text(code[0], each) for each in content)}]"
    return str(content).lower() if isinstance(content, bool) else str(content)
