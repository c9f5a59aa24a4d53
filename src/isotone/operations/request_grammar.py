"""Request structures as trees of shapes, with the rule and AWS's message of each constraint, to explain refusals.

A request structure is the only description of a request. msgspec compiles it to the fast decoder, and `shape_of` to
this tree. So both accept the same requests, and `serialization` and `request_validation` only add AWS's errors.
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

from isotone.operations.java_order import hashed
from isotone.operations.request_members import NAME_PATTERN, ApiStructure, AttributeValue

_INTEGER_MAX: Final = 2**31 - 1
_ARN_LENGTH: Final = 1024


class Constraint(msgspec.Struct, frozen=True):
    """A rule on a member, and its text in an error. The decoder enforces it, unless an action does."""

    sentence: str
    holds: Callable[[Any], bool]
    decoding: bool = True


Constraints: TypeAlias = tuple[Constraint, ...]


class Scalar(msgspec.Struct, frozen=True):
    """Text, a number or a boolean; `java` is the type name in the service's errors."""

    java: str
    constraints: Constraints = ()


class AttributeValueShape(msgspec.Struct, frozen=True):
    """An attribute value. Its content is checked later, by `values`."""

    constraints: Constraints = ()


class ListShape(msgspec.Struct, frozen=True):
    """A list."""

    member: Shape
    constraints: Constraints = ()


class Mapping(msgspec.Struct, frozen=True):
    """A map from names to values of one shape."""

    key: Scalar
    value: Shape
    constraints: Constraints = ()


class MemberShape(msgspec.Struct, frozen=True):
    """A member of a structure. Members that are `checked_last` have their own messages."""

    name: str
    shape: Shape
    required: bool
    checked_last: bool = False


class StructureShape(msgspec.Struct, frozen=True):
    """A structure; `listed` has its members in the order in which a list of faults shows them."""

    name: str
    members: dict[str, MemberShape]
    listed: tuple[MemberShape, ...]
    constraints: Constraints = ()


Shape: TypeAlias = Scalar | AttributeValueShape | ListShape | Mapping | StructureShape


@cache
def shape_of(structure: type[ApiStructure]) -> StructureShape:
    """The tree of a request structure; cached."""
    hints = get_type_hints(structure, include_extras=True)
    members = {}
    for field in msgspec.structs.fields(structure):
        annotation = _required_part(hints[field.name])
        last = _extra(annotation).get("checked") == "last"
        members[field.encode_name] = MemberShape(
            field.encode_name, _shape(annotation), field.required, checked_last=last
        )
    return StructureShape(structure.__name__, members, _listed(structure.__name__, members))


# As observed: these structures are not listed in hash table order.
_LISTED: Final = {
    "CreateTable": (
        *("BillingMode", "ProvisionedThroughput", "TableName", "KeySchema"),
        *("AttributeDefinitions", "GlobalSecondaryIndexes", "LocalSecondaryIndexes"),
    ),
    "TransactWriteItem": ("Put", "Update", "Delete", "ConditionCheck"),
    "GlobalSecondaryIndex": ("KeySchema", "Projection", "IndexName", "ProvisionedThroughput"),
}


def _listed(structure: str, members: dict[str, MemberShape]) -> tuple[MemberShape, ...]:
    """The members of a structure in the order in which the service lists their faults: that of Java's `HashMap`.

    The observed lists of Scan, Query, UpdateItem and ProvisionedThroughput have this order.
    """
    names = {decapitalized(name): member for name, member in members.items()}
    first = _LISTED.get(structure, ())
    rest = [names[name] for name in hashed(names) if names[name].name not in first]
    return (*(members[name] for name in first), *rest)


def decapitalized(name: str) -> str:
    """A member as a path in an error spells it: `keySchema`, but `sSESpecification`."""
    return name[0].lower() + name[1:]


def text_constraints(meta: msgspec.Meta) -> Constraints:
    """The rules of a text, in the order in which the service reports violations."""
    rules = []
    if meta.pattern is not None:
        rules.append(_pattern(meta.pattern.removeprefix("^").removesuffix(r"\Z")))
    return (*rules, *_length(meta))


def _shape(annotation: Any) -> Shape:
    annotation, meta = _split(annotation)
    if annotation == AttributeValue:
        return AttributeValueShape()
    return _BUILDERS[get_origin(annotation) or _family(annotation)](annotation, meta)


def _text(_: Any, meta: msgspec.Meta) -> Scalar:
    extra = meta.extra or {}
    checked = extra.get("checked")
    if checked in _NAME_RULES:
        return Scalar("String", _NAME_RULES[checked])
    values = extra.get("enum")
    return Scalar("String", _one_of(values, decoding=False) if values else text_constraints(meta))


def _enum(annotation: Any, _: msgspec.Meta) -> Scalar:
    return Scalar("String", _one_of(get_args(annotation)))


def _one_of(values: tuple[str, ...], *, decoding: bool = True) -> Constraints:
    sentence = f"Member must satisfy enum value set: [{', '.join(values)}]"
    return (Constraint(sentence, frozenset(values).__contains__, decoding),)


def _number(_: Any, meta: msgspec.Meta) -> Scalar:
    java = "Integer" if meta.le is not None and meta.le <= _INTEGER_MAX else "Long"
    return Scalar(java, _range(meta))


def _decimal(_: Any, meta: msgspec.Meta) -> Scalar:
    return Scalar((meta.extra or {}).get("java", "Timestamp"))


def _flag(_: Any, __: msgspec.Meta) -> Scalar:
    return Scalar("Boolean")


def _sequence(annotation: Any, meta: msgspec.Meta) -> ListShape:
    return ListShape(_shape(get_args(annotation)[0]), _length(meta))


def _mapping(annotation: Any, meta: msgspec.Meta) -> Mapping:
    key, value = map(_shape, get_args(annotation))
    assert isinstance(key, Scalar)
    return Mapping(key, value, _length(meta))


def _record(annotation: Any, _: msgspec.Meta) -> StructureShape:
    return shape_of(annotation)


_BUILDERS: Final[dict[Any, Callable[[Any, msgspec.Meta], Shape]]] = {
    str: _text,
    int: _number,
    float: _decimal,
    bool: _flag,
    list: _sequence,
    dict: _mapping,
    Literal: _enum,
    ApiStructure: _record,
}


def _family(annotation: type) -> type:
    return ApiStructure if issubclass(annotation, ApiStructure) else annotation


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
    """A bound equal to the limit of the Java type is not a rule: larger values are clamped."""
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


def unless_arn(rule: Constraint) -> Constraint:
    """The rule for names; an ARN need not satisfy it."""

    def holds(text: str) -> bool:
        return rule.holds(text) or (text.startswith("arn:") and len(text) <= _ARN_LENGTH)

    return Constraint(rule.sentence, holds)


NAME_CONSTRAINTS: Final[Constraints] = tuple(
    unless_arn(rule) for rule in (_pattern(NAME_PATTERN), at_least(3), at_most(255))
)
"""The rules of a table name that is not an ARN."""
_NAME_RULES: Final[dict[Any, Constraints]] = {
    "as a name": NAME_CONSTRAINTS,
    "if empty": (at_least(1),),
    "by a layer": (),
}
