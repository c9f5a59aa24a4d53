"""The responses of a session that calls every action, against the shapes of the service model.

A member that no response has is listed here with its reason. One that appears after all fails the test: remove its line.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import pytest
from botocore.model import ServiceModel
from botocore.parsers import create_parser
from tests.operations.session import CHAPTERS, FILES, Chapter, Exchange, play
from tests.service_model import document, model, service_of

from isotone.operations.action import ACTIONS

_ACCOUNTS: Final = "global tables of several accounts: docs/compatibility.md, 41"
_KEY: Final = "a key of KMS is never out of reach: docs/compatibility.md, 11"
_FAILURE: Final = "recorded without effect, so it never fails: docs/compatibility.md, 24"
NEVER_SENT: Final = {
    "ReplicaDescription.ReplicaStatusDescription": "a replica never fails",
    "ReplicaDescription.ReplicaStatusPercentProgress": (
        "the items of a new replica are not counted: docs/compatibility.md, 37"
    ),
    "ReplicaDescription.ReplicaInaccessibleDateTime": _KEY,
    "SSEDescription.InaccessibleEncryptionDateTime": _KEY,
    "TableDescription.ArchivalSummary": _KEY,
    "ArchivalSummary.ArchivalDateTime": _KEY,
    "ArchivalSummary.ArchivalReason": _KEY,
    "ArchivalSummary.ArchivalBackupArn": _KEY,
    "TableDescription.DisassociationProtectionEnabled": _ACCOUNTS,
    "DescribeContributorInsightsOutput.FailureException": _FAILURE,
    "FailureException.ExceptionName": _FAILURE,
    "FailureException.ExceptionDescription": _FAILURE,
    "KinesisDataStreamDestination.DestinationStatusDescription": _FAILURE,
    "DisableKinesisStreamingDestination.EnableKinesisStreamingConfiguration": (
        "nothing is being enabled"
    ),
    "DescribeContributorInsights.FailureException": _FAILURE,
    "ListTagsOfResourceOutput.NextToken": "all tags come at once, as those of the service do",
    "ListTagsOfResource.NextToken": "all tags come at once, as those of the service do",
}
"""The members that no response has: as `Shape.Member`, and those of a response also as `Action.Member`."""

_ON_DEMAND: Final = "on-demand tables have 0 units, in the service, too"
BEYOND_BOUNDS: Final = {
    "ProvisionedThroughputDescription.NumberOfDecreasesToday": "the service sends 0, too",
    "ProvisionedThroughput.ReadCapacityUnits": _ON_DEMAND,
    "ProvisionedThroughput.WriteCapacityUnits": _ON_DEMAND,
    "ExecuteTransactionOutput.Responses": "writes have no responses, as in DynamoDB Local",
}
"""The members that may be 0 or empty although the model says otherwise."""

_NUMBERS: Final = ("integer", "long", "double", "float", "timestamp")
_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "blob": str,
    "boolean": bool,
    "integer": int,
    "long": int,
    "double": int | float,
    "float": int | float,
    "timestamp": int | float,
}


class Place(NamedTuple):
    """A member of a structure in a response, the value that it has, and what is wrong with that."""

    member: str
    value: Any
    fault: str | None = None


@cache
def exchanges(chapter: Chapter) -> list[Exchange]:
    return [each for each in play(chapter) if each.action != FILES]


def places(shapes: dict[str, Any], name: str, value: Any, member: str) -> Iterator[Place]:
    """Every member of a response, at any depth."""
    shape = shapes[name]
    yield Place(member, value, _fault(shape, value))
    match shape["type"], value:
        case "structure", dict():
            for absent in set(shape.get("required", ())) - value.keys():
                yield Place(f"{name}.{absent}", None, "required, and absent")
            for key, inner in value.items():
                if key in shape["members"]:
                    yield from places(shapes, shape["members"][key], inner, f"{name}.{key}")
                else:
                    yield Place(f"{name}.{key}", inner, "not in the model")
        case "list", list():
            for inner in value:
                yield from places(shapes, shape["member"], inner, member)
        case "map", dict():
            for inner in value.values():
                yield from places(shapes, shape["value"], inner, member)


def _fault(shape: dict[str, Any], value: Any) -> str | None:
    kind = shape["type"]
    expected = {"structure": dict, "map": dict, "list": list}.get(kind) or _TYPES[kind]
    if not isinstance(value, expected) or isinstance(value, bool) != (kind == "boolean"):
        return f"not of type {kind}"
    if kind == "blob":
        base64.b64decode(value, validate=True)
    if "enum" in shape and value not in shape["enum"]:
        return f"not one of {shape['enum']}"
    size = value if kind in _NUMBERS else len(value) if kind in ("string", "list") else None
    if size is not None and not shape.get("min", -math.inf) <= size <= shape.get("max", math.inf):
        return f"not from {shape.get('min')} to {shape.get('max')}"
    pattern = shape.get("pattern", "")
    # Python has no classes like \p{Cntrl}; they are about names that callers give.
    if kind == "string" and r"\p" not in pattern and not re.search(pattern, value):
        return f"not of the form {pattern}"
    return None


def members_in(exchange: Exchange) -> list[Place]:
    """The members of one response."""
    known = model(service_of(exchange.action))
    output = known.output_of(exchange.action)
    if output is None:
        return []
    found = list(places(known.shapes, output, exchange.response, exchange.action))
    return found + [Place(f"{exchange.action}.{name}", None) for name in exchange.response]


def members_of(action: str) -> set[str]:
    """The members that responses of an action may have, as in NEVER_SENT."""
    known = model(service_of(action))
    output = known.output_of(action)
    found: set[str] = set()
    waiting, done = [output] if output else [], set()
    while waiting:
        name = waiting.pop()
        shape = known.shapes[name]
        if name in done:
            continue
        done.add(name)
        waiting += [shape[part] for part in ("member", "value") if part in shape]
        waiting += shape.get("members", {}).values()
        found |= {f"{name}.{member}" for member in shape.get("members", ())}
    of_response = known.shapes[output]["members"] if output else ()
    return found | {f"{action}.{member}" for member in of_response}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.__name__)
def test_responses_have_the_shapes_of_the_model(chapter: Chapter) -> None:
    faults = {
        (exchange.action, place.member, place.fault, str(place.value)[:80])
        for exchange in exchanges(chapter)
        if exchange.error is None
        for place in members_in(exchange)
        if place.fault and not (place.member in BEYOND_BOUNDS and not place.value)
    }
    assert faults == set()


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.__name__)
def test_botocore_reads_every_member(chapter: Chapter) -> None:
    """What botocore's parser makes of a response has as many members as the response."""
    for exchange in exchanges(chapter):
        newest = ServiceModel(document(service_of(exchange.action)))
        shape = newest.operation_model(exchange.action).output_shape
        status = 200 if exchange.error is None else 400
        response = {"status_code": status, "headers": {}, "body": _body(exchange)}
        parsed = create_parser("json").parse(response, shape)
        parsed.pop("ResponseMetadata", None)
        if exchange.error is not None:
            assert parsed["Error"]["Code"] == exchange.error.code
        else:
            assert _keys(parsed) == _keys(exchange.response)


def _body(exchange: Exchange) -> bytes:
    if exchange.error is None:
        return exchange.body
    return b'{"__type":"com.amazonaws.dynamodb.v20120810#%s"}' % exchange.error.code.encode()


def _keys(value: Any) -> Any:
    """A document without the values of its leaves."""
    if isinstance(value, dict):
        return {key: _keys(each) for key, each in value.items()}
    return [_keys(each) for each in value] if isinstance(value, list) else None


def test_every_member_of_a_response_is_sent_or_listed() -> None:
    answered = [each for chapter in CHAPTERS for each in exchanges(chapter) if each.error is None]
    assert {each.action for each in answered} == set(ACTIONS)
    sent = {place.member for exchange in answered for place in members_in(exchange)}
    known = {member for action in ACTIONS for member in members_of(action)}
    assert known - sent - set(NEVER_SENT) == set(), "never sent, without a reason"
    assert set(NEVER_SENT) - (known - sent) == set(), "sent: remove them from NEVER_SENT"


def test_a_fault_is_found() -> None:
    """The comparison sees what it is made for."""
    shapes = model("dynamodb").shapes

    def faults(name: str, response: Any) -> set[str]:
        return {each.member for each in places(shapes, name, response, name) if each.fault}

    assert faults("DescribeEndpointsResponse", {}) == {"DescribeEndpointsResponse.Endpoints"}
    assert faults("ListTablesOutput", {"TableNames": ["a\n"]}) == {"ListTablesOutput.TableNames"}
    assert faults("ListTablesOutput", {"Names": []}) == {"ListTablesOutput.Names"}
    assert faults("TimeToLiveDescription", {"TimeToLiveStatus": "ON"}) == {
        "TimeToLiveDescription.TimeToLiveStatus"
    }
    assert faults("RestoreSummary", {"RestoreDateTime": "1", "RestoreInProgress": 1}) == {
        "RestoreSummary.RestoreDateTime",
        "RestoreSummary.RestoreInProgress",
    }
