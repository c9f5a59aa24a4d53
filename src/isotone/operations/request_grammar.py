"""Request structures as shapes, with the rule and sentence of each constraint, by which a wrong request is explained.

A request structure is the only description of a request. msgspec compiles it to the fast decoder, `shape_of` to
this tree. So the two accept the same requests, and `serialization` and `request_validation` only add AWS's
errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from isotone.operations.request_members import NAME_PATTERN, AttributeValue, Structure

_INTEGER_MAX: Final = 2**31 - 1
_ARN_LENGTH: Final = 1024


class Constraint(msgspec.Struct, frozen=True):
    """One rule on a member, and its sentence in an error; `told` is the whole entry, if it is not the usual."""

    sentence: str
    holds: Callable[[Any], bool]
    told: str | None = None


Constraints: TypeAlias = tuple[Constraint, ...]


class Scalar(msgspec.Struct, frozen=True):
    """Text, a number or a flag; `java` is the type name in the service's errors."""

    java: str
    constraints: Constraints = ()


class Value(msgspec.Struct, frozen=True):
    """An attribute value. Its content is checked later, by `values`."""

    constraints: Constraints = ()


class Sequence(msgspec.Struct, frozen=True):
    """A list."""

    member: Shape
    constraints: Constraints = ()


class Mapping(msgspec.Struct, frozen=True):
    """A map from names to values of one shape."""

    key: Scalar
    value: Shape
    constraints: Constraints = ()


class Member(msgspec.Struct, frozen=True):
    """A member of a structure; those that are `checked_last` have their own sentences."""

    name: str
    shape: Shape
    required: bool
    checked_last: bool = False


class Record(msgspec.Struct, frozen=True):
    """A structure."""

    name: str
    members: dict[str, Member]
    constraints: Constraints = ()


Shape: TypeAlias = Scalar | Value | Sequence | Mapping | Record


@cache
def shape_of(structure: type[Structure]) -> Record:
    """The tree of a request structure; cached."""
    hints = get_type_hints(structure, include_extras=True)
    members = {}
    for field in msgspec.structs.fields(structure):
        annotation = _required_part(hints[field.name])
        last = _extra(annotation).get("checked") == "last"
        members[field.encode_name] = Member(
            field.encode_name, _shape(annotation), field.required, checked_last=last
        )
    return Record(structure.__name__, members)


def text_constraints(meta: msgspec.Meta) -> Constraints:
    """The rules of a text, in the order in which the service reports violations."""
    rules = []
    if meta.pattern is not None:
        rules.append(_pattern(meta.pattern.removeprefix("^").removesuffix(r"\Z")))
    return (*rules, *_length(meta))


def _shape(annotation: Any) -> Shape:
    annotation, meta = _split(annotation)
    if annotation == AttributeValue:
        return Value()
    return _BUILDERS[get_origin(annotation) or _family(annotation)](annotation, meta)


def _text(_: Any, meta: msgspec.Meta) -> Scalar:
    kind = (meta.extra or {}).get("checked")
    if kind in _NAME_RULES:
        return Scalar("String", _NAME_RULES[kind])
    return Scalar("String", text_constraints(meta))


def _enum(annotation: Any, meta: msgspec.Meta) -> Scalar:
    values = get_args(annotation)
    sentence = f"Member must satisfy enum value set: [{', '.join(values)}]"
    return Scalar("String", _told((Constraint(sentence, frozenset(values).__contains__),), meta))


def _told(rules: Constraints, meta: msgspec.Meta) -> Constraints:
    """The rules of a member that has an entry of its own in the list of faults."""
    entry = (meta.extra or {}).get("told")
    if entry is None:
        return rules
    return tuple(
        msgspec.structs.replace(rule, told=entry.format(sentence=rule.sentence)) for rule in rules
    )


def _number(_: Any, meta: msgspec.Meta) -> Scalar:
    java = "Integer" if meta.le is not None and meta.le <= _INTEGER_MAX else "Long"
    return Scalar(java, _told(_range(meta), meta))


def _decimal(_: Any, meta: msgspec.Meta) -> Scalar:
    return Scalar((meta.extra or {}).get("java", "Timestamp"))


def _flag(_: Any, __: msgspec.Meta) -> Scalar:
    return Scalar("Boolean")


def _sequence(annotation: Any, meta: msgspec.Meta) -> Sequence:
    return Sequence(_shape(get_args(annotation)[0]), _length(meta))


def _mapping(annotation: Any, meta: msgspec.Meta) -> Mapping:
    key, value = map(_shape, get_args(annotation))
    assert isinstance(key, Scalar)
    return Mapping(key, value, _length(meta))


def _record(annotation: Any, _: msgspec.Meta) -> Record:
    return shape_of(annotation)


_BUILDERS: Final[dict[Any, Callable[[Any, msgspec.Meta], Shape]]] = {
    str: _text,
    int: _number,
    float: _decimal,
    bool: _flag,
    list: _sequence,
    dict: _mapping,
    Literal: _enum,
    Structure: _record,
}


def _family(annotation: type) -> type:
    return Structure if issubclass(annotation, Structure) else annotation


def _required_part(annotation: Any) -> Any:
    """X of `X | None`."""
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (part for part in get_args(annotation) if part is not NoneType)
    return annotation


def _split(annotation: Any) -> tuple[Any, msgspec.Meta]:
    if get_origin(annotation) is Annotated:
        bare, meta = get_args(annotation)
        return bare, meta
    return annotation, msgspec.Meta()


def _extra(annotation: Any) -> dict[str, Any]:
    return _split(annotation)[1].extra or {}


def _length(meta: msgspec.Meta) -> Constraints:
    rules = []
    if meta.min_length is not None:
        rules.append(at_least(meta.min_length))
    if meta.max_length is not None:
        rules.append(at_most(meta.max_length))
    return tuple(rules)


def _range(meta: msgspec.Meta) -> Constraints:
    """A bound that is the limit of the Java type is not a rule: larger values are clamped."""
    rules = []
    low, high = meta.ge, meta.le
    if low is not None and low > -(2**31):
        rules.append(_bound("greater", low, lambda value: value >= low))
    if high is not None and high < _INTEGER_MAX:
        rules.append(_bound("less", high, lambda value: value <= high))
    return tuple(rules)


def _bound(side: str, bound: float, holds: Callable[[Any], bool]) -> Constraint:
    return Constraint(f"Member must have value {side} than or equal to {bound}", holds)


def _pattern(pattern: str) -> Constraint:
    matches = re.compile(pattern).fullmatch
    sentence = f"Member must satisfy regular expression pattern: {pattern}"
    return Constraint(sentence, lambda text: matches(text) is not None)


def at_least(length: int) -> Constraint:
    """The rule on the minimum length of a text, list or map."""
    sentence = f"Member must have length greater than or equal to {length}"
    return Constraint(sentence, lambda value: len(value) >= length)


def at_most(length: int) -> Constraint:
    """The rule on the maximum length of a text, list or map."""
    sentence = f"Member must have length less than or equal to {length}"
    return Constraint(sentence, lambda value: len(value) <= length)


def _unless_arn(rule: Constraint) -> Constraint:
    def holds(text: str) -> bool:
        return rule.holds(text) or (text.startswith("arn:") and len(text) <= _ARN_LENGTH)

    return Constraint(rule.sentence, holds)


def _if_long_enough(rule: Constraint) -> Constraint:
    """The rule for names that no rule on the length refuses."""

    def holds(text: str) -> bool:
        return not 3 <= len(text) <= 255 or rule.holds(text)

    return Constraint(rule.sentence, holds)


# The rules of a data-plane call on a name that is not an ARN: all that are broken are told.
NAME_CONSTRAINTS: Final[Constraints] = tuple(
    _unless_arn(rule) for rule in (_pattern(NAME_PATTERN), at_least(3), at_most(255))
)
# Of the TableName of a single write or read, one is told; an empty name in words of its own.
_SINGLE_NAME: Final[Constraints] = (
    Constraint(
        "",
        bool,
        "Value at 'TableName' failed to satisfy constraint: "
        "Member must have length greater than or equal to 1",
    ),
    Constraint(at_least(3).sentence, lambda text: not text or len(text) >= 3),
    _unless_arn(at_most(255)),
    _unless_arn(_if_long_enough(_pattern(NAME_PATTERN))),
)
_NAME_RULES: Final[dict[Any, Constraints]] = {
    "name": _SINGLE_NAME,
    "name of an entry": (*NAME_CONSTRAINTS[1:], NAME_CONSTRAINTS[0]),
}
