"""Every action and every parameter of the service model: known to us, or an exception that is listed here.

The model is that of `tests/service_model`. An exception that is no longer one fails the test, too: remove its line.
Constraints are compared as the request structures state them; their sentences are tested elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest
from tests.service_model import SERVICES, Model, model

from isotone.operations import api
from isotone.operations.action import ACTIONS
from isotone.operations.request_grammar import (
    AttributeValueShape,
    ListShape,
    Mapping,
    Scalar,
    Shape,
    StructureShape,
    shape_of,
)

NOT_ANSWERED: Final[dict[str, str]] = {}
"""The actions that are refused with UnknownOperationException."""

_ACCOUNTS: Final = (
    "global tables of several accounts, and disassociation: docs/compatibility.md, 41"
)
NOT_KNOWN: Final = dict.fromkeys(
    (
        "CreateTable.GlobalTableSourceArn",
        "CreateTable.GlobalTableSettingsReplicationMode",
        "UpdateTable.GlobalTableSettingsReplicationMode",
        "UpdateTable.DisassociationProtectionEnabled",
    ),
    _ACCOUNTS,
)
"""The parameters that are ignored."""

_LEGACY: Final = "legacy conditions are checked as a whole, in the service's own words"
STATED_OTHERWISE: Final = {
    ("TableArn", "min"): "a name has 3 to 255 characters unless it is an ARN",
    ("TableArn", "max"): "a name has 3 to 255 characters unless it is an ARN",
    ("TableArn", "pattern"): "a name that is not an ARN has a pattern",
    ("ComparisonOperator", "enum"): _LEGACY,
    ("KeySchema", "max"): "a key has two attributes, that of a global index up to eight",
    ("IndexName", "min"): "reads look an index up by any name",
    ("IndexName", "max"): "reads look an index up by any name",
    ("IndexName", "pattern"): "reads look an index up by any name",
    ("AutoScalingRoleArn", "pattern"): "control characters are not refused",
    ("AutoScalingPolicyName", "pattern"): "control characters are not refused",
    ("ImportNextToken", "pattern"): "a token that is not ours is refused in other words",
    ("AttributeDefinitions", "required"): "may be left out only with GlobalTableSourceArn",
    ("KeySchema", "required"): "may be left out only with GlobalTableSourceArn",
}
"""Constraints of shapes that differ from the model for a reason."""


class Finding(NamedTuple):
    """One difference between a request structure and the model."""

    path: str
    what: str
    shape: str
    theirs: Any = None
    ours: Any = None


_BOUND: Final = re.compile(r"(greater|less) than or equal to (-?\d+)")
_KINDS: Final = {
    AttributeValueShape: ("structure",),
    ListShape: ("list",),
    Mapping: ("map",),
    StructureShape: ("structure",),
}
_RULES: Final = ("enum", "min", "max", "pattern", "words")


def _rules(shape: Shape) -> dict[str, Any]:
    """The constraints of our shape, named as in the model; `words` is a rule with words of its own."""
    found: dict[str, Any] = {}
    for rule in shape.constraints:
        kind, colon, text = rule.sentence.partition(": ")
        bound = _BOUND.search(rule.sentence)
        if "enum value set" in kind:
            found["enum"] = sorted(text.strip("[]").split(", "))
        elif bound:
            found["min" if bound[1] == "greater" else "max"] = int(bound[2])
        else:
            found["pattern" if colon else "words"] = text
    return found


def _compared(
    known: Model, name: str, shape: Shape, path: str, inside: frozenset[str]
) -> Iterator[Finding]:
    """Each difference of a shape and of what it contains."""
    theirs = known.shapes[name]
    kinds = (shape.java.lower(),) if isinstance(shape, Scalar) else _KINDS[type(shape)]
    if theirs["type"] not in kinds or isinstance(shape, AttributeValueShape) != (
        name == "AttributeValue"
    ):
        yield Finding(path, "type", name, theirs["type"], kinds)
        return
    ours = _rules(shape)
    for rule in _RULES:
        wanted = theirs.get(rule)
        if wanted and rule == "enum":
            wanted = sorted(wanted)
        if wanted and rule == "pattern":  # which is always about the whole text
            wanted = wanted.removeprefix("^").removesuffix("$")
        if wanted != ours.get(rule) and not (rule == "min" and not wanted and rule not in ours):
            yield Finding(path, rule, name, wanted, ours.get(rule))
    if isinstance(shape, StructureShape) and name not in inside:
        yield from _members(known, name, shape, path, inside | {name})
    elif isinstance(shape, ListShape):
        yield from _compared(known, theirs["member"], shape.member, f"{path}[]", inside)
    elif isinstance(shape, Mapping):
        yield from _compared(known, theirs["key"], shape.key, f"{path}{{key}}", inside)
        yield from _compared(known, theirs["value"], shape.value, f"{path}{{}}", inside)


def _members(
    known: Model, name: str, shape: StructureShape, path: str, inside: frozenset[str]
) -> Iterator[Finding]:
    theirs = known.shapes[name]
    for member, of in theirs["members"].items():
        if member not in shape.members:
            yield Finding(f"{path}.{member}", "unknown", of)
            continue
        ours, required = shape.members[member], member in theirs.get("required", ())
        if ours.required != required:
            yield Finding(f"{path}.{member}", "required", of, required, ours.required)
        yield from _compared(known, of, ours.shape, f"{path}.{member}", inside)
    for member in shape.members.keys() - theirs["members"].keys():
        yield Finding(f"{path}.{member}", "not in the model", "")


def _findings() -> list[Finding]:
    return [
        finding
        for service in SERVICES
        for action in sorted(model(service).operations)
        if action in ACTIONS
        for finding in _compared(
            model(service),
            model(service).input_of(action),
            shape_of(ACTIONS[action].request),
            action,
            frozenset(),
        )
    ]


FINDINGS: Final = _findings()


def test_every_action_is_answered() -> None:
    named = {action for service in SERVICES for action in model(service).operations}
    assert api.ACTIONS is ACTIONS
    assert set(ACTIONS) - named == set(), "actions that the service does not have"
    assert named - set(ACTIONS) - set(NOT_ANSWERED) == set(), "actions without an answer"
    assert set(NOT_ANSWERED) & set(ACTIONS) == set(), "answered: remove them from NOT_ANSWERED"


def test_every_parameter_is_known() -> None:
    unknown = {finding.path for finding in FINDINGS if finding.what == "unknown"}
    assert unknown - set(NOT_KNOWN) == set(), "parameters that are ignored"
    assert set(NOT_KNOWN) - unknown == set(), "known: remove them from NOT_KNOWN"


def test_no_parameter_is_our_own() -> None:
    assert [each for each in FINDINGS if each.what in ("not in the model", "type")] == []


def test_constraints_are_those_of_the_model() -> None:
    stated = [each for each in FINDINGS if each.what in (*_RULES, "required")]
    unexplained = [each for each in stated if (each.shape, each.what) not in STATED_OTHERWISE]
    assert unexplained == []
    unused = set(STATED_OTHERWISE) - {(each.shape, each.what) for each in stated}
    assert unused == set(), "stated as in the model: remove them from STATED_OTHERWISE"


def test_a_difference_is_found() -> None:
    """The comparison sees what it is made for."""
    known = model("dynamodb")
    shape = shape_of(ACTIONS["ListTables"].request)
    for_other = _compared(known, "CreateBackupInput", shape, "X", frozenset())
    found = {(each.path, each.what) for each in for_other}
    assert {("X.TableName", "unknown"), ("X.Limit", "not in the model")} <= found
    assert [*_compared(known, "ListTablesInput", shape, "X", frozenset())] == []
    limit = shape.members["Limit"].shape
    other = {each.what for each in _compared(known, "ScanSegment", limit, "X", frozenset())}
    assert other == {"min", "max"}
    assert {each.what for each in _compared(known, "TableName", limit, "X", frozenset())} == {
        "type"
    }


@pytest.mark.parametrize("service", SERVICES)
def test_the_extract_is_whole(service: str) -> None:
    known = model(service)
    for shape in known.shapes.values():
        inside = [*shape.get("members", {}).values()]
        inside += [shape[part] for part in ("member", "key", "value") if part in shape]
        assert {name for name in inside if name not in known.shapes} == set()
    for operation in known.operations.values():
        assert {operation["input"], *operation["errors"]} <= set(known.shapes)
