"""Documents that users wrote: each value knows its place, so that an error can name it.

    taken(value, KEY, unread)

A shape says what is read of a value: `str`, `int`, `bool`, `object` for all of it, None for nothing, a list with the
shape of its elements, or `ObjectShape`. What a document has beyond its shape is added to `unread`, never dropped in silence. References are resolved where a value is
read, by the format's own rules: what nobody reads need not be known.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from isotone.errors import UsageError

_LONGEST: Final = 60  # characters of a value in an error
_TRUE: Final = ("true", "True", "TRUE")
_FALSE: Final = ("false", "False", "FALSE")


class RemovedProperty:
    """What a reference resolves to if it removes its property."""


class DocumentValue(NamedTuple):
    """A value in a document, its place, and the file. `resolve` replaces a reference by its value."""

    given: Any
    place: str
    source: str
    resolve: Callable[[DocumentValue], Any] = lambda value: value.given

    @property
    def value(self) -> Any:
        """The value, resolved."""
        return self.resolve(self)

    def with_value(self, given: Any, place: str | None = None) -> DocumentValue:
        """Another value of the same document."""
        return self._replace(given=given, place=self.place if place is None else place)

    def refusal(self, what: str) -> UsageError:
        """The error about this value, which names the file and the place."""
        return UsageError(f"{self.source}: {self.place + ' ' if self.place else ''}{what}")

    def members(self) -> dict[str, DocumentValue]:
        """The members of an object that are present."""
        value = self.value
        if not isinstance(value, dict):
            raise self.refusal(f"must be an object, not {shown(value)}")
        before = f"{self.place}." if self.place else ""
        found = {
            str(name): self.with_value(each, f"{before}{name}") for name, each in value.items()
        }
        return {name: each for name, each in found.items() if each.given is not None}

    def elements(self) -> list[DocumentValue]:
        """The elements of a list."""
        value = self.value
        if not isinstance(value, list):
            raise self.refusal(f"must be a list, not {shown(value)}")
        return [self.with_value(each, f"{self.place}[{at}]") for at, each in enumerate(value)]

    def text(self) -> str:
        """A text; a number is one, too, because some formats write it without quotes."""
        value = self.value
        if isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        raise self.refusal(f"must be a text, not {shown(value)}")

    def integer(self) -> int:
        """A whole number, which may be written as a text."""
        value = self.value
        if isinstance(value, str) and len(value) < 20 and value.lstrip("-").isdecimal():
            return int(value)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise self.refusal(f"must be a whole number, not {shown(value)}")

    def flag(self) -> bool:
        """True or false, which may be written as a text."""
        value = self.value
        if isinstance(value, bool):
            return value
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
        raise self.refusal(f"must be true or false, not {shown(value)}")

    def plain(self) -> Any:
        """The whole value, with everything in it resolved."""
        value = self.value
        if isinstance(value, dict):
            members = {name: each.plain() for name, each in self.members().items()}
            return {name: each for name, each in members.items() if each is not RemovedProperty}
        if isinstance(value, list):
            return [each for one in self.elements() if (each := one.plain()) is not RemovedProperty]
        return value


class ObjectShape(NamedTuple):
    """The shape of an object: members that it must have, and others that it may have, each with its shape."""

    required: Mapping[str, Any]
    optional: Mapping[str, Any] = {}


_READ: Final[dict[Any, Callable[[DocumentValue], Any]]] = {
    str: DocumentValue.text,
    int: DocumentValue.integer,
    bool: DocumentValue.flag,
    object: DocumentValue.plain,
}


def taken(value: DocumentValue, shape: Any, unread: list[str]) -> Any:
    """What a shape reads of a value; `unread` gets the places of the other members."""
    if isinstance(shape, list):
        return [
            taken(each, shape[0], unread)
            for each in value.elements()
            if each.value is not RemovedProperty
        ]
    if not isinstance(shape, ObjectShape):
        return _READ[shape](value)
    known = {**shape.required, **shape.optional}
    found = {}
    for name, member in value.members().items():
        if name not in known:
            unread.append(member.place)
        elif known[name] is not None and member.value not in (None, RemovedProperty):
            found[name] = taken(member, known[name], unread)
    for name in shape.required:
        if name not in found:
            raise value.refusal(f"lacks {name}")
    return found


def shown(value: Any) -> str:
    """A value in an error."""
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def parsed_json(text: str, source: str) -> Any:
    """The content of a file of JSON; raises `UsageError` that names the line, or a name that is twice in one object."""
    try:
        return json.loads(text, object_pairs_hook=_object_of)
    except RecursionError:
        raise UsageError(f"{source} is nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{source} is not valid JSON: {error}") from None


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"{twice!r} twice in one object")
    return found


# The shapes of CreateTable's request

_TEXT_PAIRS: Final = {"Key": str, "Value": str}
UNITS: Final = ObjectShape({"ReadCapacityUnits": int, "WriteCapacityUnits": int})
KEY: Final = [ObjectShape({"AttributeName": str, "KeyType": str})]
_PROJECTION: Final = ObjectShape({}, {"ProjectionType": str, "NonKeyAttributes": [str]})
_LIMITS: Final = ObjectShape({}, {"MaxReadRequestUnits": int, "MaxWriteRequestUnits": int})
_WARM: Final = ObjectShape({}, {"ReadUnitsPerSecond": int, "WriteUnitsPerSecond": int})
_INDEX: Final = {"IndexName": str, "KeySchema": KEY, "Projection": _PROJECTION}
_GLOBAL: Final = {
    "ProvisionedThroughput": UNITS,
    "OnDemandThroughput": _LIMITS,
    "WarmThroughput": _WARM,
}
_VECTOR: Final = ObjectShape(
    {
        "IndexName": str,
        "VectorAttribute": ObjectShape({"AttributeName": str}),
        "Dimensions": int,
        "DistanceFunction": str,
        "Projection": _PROJECTION,
    },
    {"SearchSchema": [ObjectShape({"AttributeName": str, "SearchSchemaElementType": str})]},
)
TAGS: Final = [ObjectShape(_TEXT_PAIRS)]
REQUEST: Final[dict[str, Any]] = {
    "AttributeDefinitions": [ObjectShape({"AttributeName": str, "AttributeType": str})],
    "KeySchema": KEY,
    "LocalSecondaryIndexes": [ObjectShape(_INDEX)],
    "GlobalSecondaryIndexes": [ObjectShape(_INDEX, _GLOBAL)],
    "VectorIndexes": [_VECTOR],
    "BillingMode": str,
    "ProvisionedThroughput": UNITS,
    "OnDemandThroughput": _LIMITS,
    "WarmThroughput": _WARM,
    "StreamSpecification": ObjectShape({"StreamEnabled": bool}, {"StreamViewType": str}),
    "SSESpecification": ObjectShape({}, {"Enabled": bool, "SSEType": str, "KMSMasterKeyId": str}),
    "TableClass": str,
    "DeletionProtectionEnabled": bool,
    "ResourcePolicy": str,
    "Tags": TAGS,
}
"""The members of a CreateTable request besides the table's name."""


def extra_module(name: str, package: str, purpose: str) -> Any:
    """A module of an extra package; raises `UsageError` that says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UsageError(f"{purpose}, install {package}: pip install 'isotone[schema]'") from None
