"""Every input parameter of every action has an effect, is recorded and described again, or is listed as ignored.

The proof is a session that sends every parameter (`tests/operations/session`): it is played without one parameter, or with another
value of it. If nothing differs, the parameter is ignored. If only members of its own name differ, it is recorded.
Otherwise it has an effect, or what is wrong with it is refused.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import pytest
from tests.operations.session import CHAPTERS, FILES, Chapter, Exchange, play
from tests.operations.test_service_model import NOT_KNOWN
from tests.service_model import model, service_of

from isotone.operations.action import ACTIONS

_UNITS: Final = "throughput is reported, and throttled by faults: docs/compatibility.md, 4 and 11"
_OWNER: Final = "buckets have no owners and keys: docs/compatibility.md, 32"
RECORDED: Final = {
    "*OnDemandThroughput*": _UNITS,
    "*WarmThroughput*": _UNITS,
    "*ProvisionedThroughput*": _UNITS,
    "UpdateGlobalTableSettings.*CapacityUnits": _UNITS,
    "*AutoScaling*": "nothing scales by itself: docs/compatibility.md, 24",
    "UpdateTable.ReplicaUpdates[].*.GlobalSecondaryIndexes": _UNITS,
    "*KMSMasterKeyId": "encryption is described: docs/compatibility.md, 11",
    "*SSEType": "encryption is described: docs/compatibility.md, 11",
    "*S3BucketOwner": _OWNER,
    "*S3SseKmsKeyId": _OWNER,
    "StartBulkPutItems.MaxWriteRequestUnits": "docs/compatibility.md, 35",
    "StartBulkPutItems.PerformanceTier": "docs/compatibility.md, 35",
    "CreateTable.Tags*": "tags are there to be listed",
    "TagResource.Tags*": "tags are there to be listed",
    "CreateBackup.BackupName": "a name, which need not be unique",
}
"""The parameters that are validated, stored and described, without another effect; `*` is any text."""

IGNORED: Final = {
    **NOT_KNOWN,
    "UpdateTable.ReplicaUpdates[].Disassociate": "docs/compatibility.md, 41",
    "UpdateTable.ReplicaUpdates[].Disassociate.*": "docs/compatibility.md, 41",
    "PutResourcePolicy.ConfirmRemoveSelfResourceAccess": "docs/compatibility.md, 23",
    "DisableKinesisStreamingDestination.EnableKinesisStreamingConfiguration*": (
        "validated; it tells how to enable, which this does not: docs/compatibility.md, 24"
    ),
    "*SSESpecification*.SSEType": "AES256 is refused, so KMS may as well be left out",
    "RestoreTableToPointInTime.GlobalSecondaryIndexOverride[].WarmThroughput.*": (
        "refused, whatever its members are"
    ),
    "ListTagsOfResource.NextToken": "no response has one, so none is known",
}
"""The parameters that make no difference."""

Edit = Callable[[str, dict[str, Any]], dict[str, Any]]


class Member(NamedTuple):
    """A member of a structure in a request, and where it is."""

    path: str
    structure: dict[str, Any]
    name: str
    shape: str
    is_required: bool


def members(action: str, request: Any) -> Iterator[Member]:
    """Every member of a request, at any depth; what is in an attribute value is data."""
    known = model(service_of(action))
    yield from _members(known.shapes, known.input_of(action), request, action)


def _members(shapes: dict[str, Any], name: str, value: Any, path: str) -> Iterator[Member]:
    shape = shapes[name]
    match shape["type"], value:
        case "structure", dict() if name != "AttributeValue":
            for key, inner in list(value.items()):
                of = shape["members"][key]
                where = f"{path}.{key}"
                yield Member(where, value, key, of, key in shape.get("required", ()))
                yield from _members(shapes, of, inner, where)
        case "list", list():
            for inner in value:
                yield from _members(shapes, shape["member"], inner, f"{path}[]")
        case "map", dict():
            for inner in value.values():
                yield from _members(shapes, shape["value"], inner, f"{path}{{}}")


def paths(action: str) -> set[str]:
    """Every path of a parameter in the model."""
    known = model(service_of(action))

    def walk(name: str, path: str, inside: frozenset[str]) -> Iterator[str]:
        shape = known.shapes[name]
        if name in inside or name == "AttributeValue":
            return
        for member, of in shape.get("members", {}).items():
            yield f"{path}.{member}"
            yield from walk(of, f"{path}.{member}", inside | {name})
        for part, mark in (("member", "[]"), ("value", "{}")):
            if part in shape:
                yield from walk(shape[part], f"{path}{mark}", inside)

    return set(walk(known.input_of(action), action, frozenset()))


@cache
def exchanges(chapter: Chapter) -> list[Exchange]:
    return play(chapter)


@cache
def sent() -> dict[str, list[Chapter]]:
    """Every parameter of the session, and the chapters that send it, the shortest first."""
    found: dict[str, dict[Chapter, None]] = {}
    for chapter in sorted(CHAPTERS, key=lambda chapter: len(exchanges(chapter))):
        for exchange in exchanges(chapter):
            if exchange.action != FILES:
                for member in members(exchange.action, exchange.request):
                    found.setdefault(member.path, {})[chapter] = None
    return {path: list(chapters) for path, chapters in found.items()}


def without(path: str) -> Edit:
    """Leaves the parameter out; one that is required has another value."""

    def edit(member: Member) -> None:
        if member.is_required:
            _change(member)
        else:
            del member.structure[member.name]

    return _editing(path, edit)


def instead(path: str) -> Edit:
    """Gives the parameter another value."""
    return _editing(path, _change)


def _editing(path: str, edit: Callable[[Member], None]) -> Edit:
    action = re.split(r"\W", path)[0]

    def edited(called: str, request: dict[str, Any]) -> dict[str, Any]:
        if called != action:
            return request
        request = copy.deepcopy(request)
        for member in list(members(action, request)):
            if member.path == path and member.name in member.structure:
                edit(member)
        return request

    return edited


def _change(member: Member) -> None:
    action = re.split(r"\W", member.path)[0]
    shape = model(service_of(action)).shapes[member.shape]
    value = member.structure[member.name]
    if "enum" in shape:
        member.structure[member.name] = next(each for each in shape["enum"] if each != value)
    elif isinstance(value, bool):
        member.structure[member.name] = not value
    elif isinstance(value, int | float):
        member.structure[member.name] = value + 1
    elif isinstance(value, str):
        member.structure[member.name] = value + "x"
    else:
        del member.structure[member.name]


def use_of(path: str) -> str:
    """Whether a parameter has an "effect", or is "recorded" or "ignored"."""
    for edit in (without(path), instead(path)):
        found = set()
        for chapter in sent()[path]:
            found.add(_use_in(chapter, path, edit))
            if "effect" in found:
                return "effect"
        if "recorded" in found:
            return "recorded"
    return "ignored"


def _use_in(chapter: Chapter, path: str, edit: Edit) -> str:
    expected = iter(exchanges(chapter))
    name = path.rpartition(".")[2]
    found = {"ignored"}

    def is_enough(exchange: Exchange) -> bool:
        found.add(_use(next(expected), exchange, name))
        return "effect" in found

    played = play(chapter, edit, is_enough)
    if "effect" in found or len(played) < len(exchanges(chapter)):
        return "effect"
    return "recorded" if "recorded" in found else "ignored"


def _use(one: Exchange, other: Exchange, name: str) -> str:
    if one.body == other.body and (one.error is None) == (other.error is None):
        return "ignored" if one.error is None or one.response == other.response else "effect"
    if one.error is not None or other.error is not None:
        return "effect"
    differing = list(_differing(one.response, other.response, ()))
    return "recorded" if all(name in place for place in differing) else "effect"


def _differing(one: Any, other: Any, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The places where two documents differ."""
    match one, other:
        case dict(), dict():
            for key in sorted(one.keys() | other.keys()):
                if key in one and key in other:
                    yield from _differing(one[key], other[key], (*place, key))
                else:
                    yield (*place, key)
        case list(), list() if len(one) == len(other):
            for first, second in zip(one, other, strict=True):
                yield from _differing(first, second, place)
        case _ if one != other:
            yield place


def listed(path: str, reasons: dict[str, str]) -> set[str]:
    """The entries of a list that a path matches."""
    texts = {each: ".*".join(map(re.escape, each.split("*"))) for each in reasons}
    return {each for each, text in texts.items() if re.fullmatch(text, path)}


@cache
def uses(action: str) -> dict[str, str]:
    """The use of every parameter of an action."""
    return {path: use_of(path) for path in sorted(sent()) if re.split(r"\W", path)[0] == action}


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_every_parameter_has_an_effect_or_is_listed(action: str) -> None:
    unsent = {path for path in paths(action) if path not in sent() and not listed(path, IGNORED)}
    assert unsent == set(), "parameters that the session does not send"
    found = uses(action)
    recorded = {path for path, use in found.items() if use == "recorded"}
    ignored = {path for path, use in found.items() if use == "ignored"}
    assert {path for path in recorded if not listed(path, RECORDED)} == set()
    assert {path for path in ignored if not listed(path, IGNORED)} == set()


def test_the_lists_name_only_what_has_no_effect() -> None:
    """Each entry is about some parameter of the model, which the session does not show to have more than it says."""
    every = {path for action in ACTIONS for path in paths(action)}
    for reasons in (RECORDED, IGNORED):
        matched = {entry for path in every for entry in listed(path, reasons)}
        assert set(reasons) - matched == set()
    ignored = {path for path in every if listed(path, IGNORED) and path in sent()}
    assert {path for path in ignored if use_of(path) == "effect"} == set()


def test_the_proof_distinguishes_the_three() -> None:
    assert use_of("PutItem.ReturnValues") == "effect"
    assert use_of("CreateBackup.BackupName") == "recorded"
    assert use_of("PutResourcePolicy.ConfirmRemoveSelfResourceAccess") == "ignored"
