"""Random requests: what the action does, and the fault that the layers of its order find, agree."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isotone
from isotone.errors import ApiError, ValidationException
from isotone.operations.api import ACTIONS
from isotone.operations.checks.first_fault import first_fault
from isotone.operations.checks.orders import order_of
from isotone.operations.request_decoding import decode
from isotone.operations.request_grammar import (
    AttributeValueShape,
    ListShape,
    Mapping,
    Scalar,
    Shape,
    StructureShape,
    shape_of,
)

ATTRIBUTE_VALUES = st.sampled_from([{"S": "x"}, {"N": "1"}, {"BOOL": True}, {"L": []}, {}])
ODD = st.sampled_from([None, True, 0, -1, 1.5, 2**70, "", "ab", "a;", "x" * 300, [], {}, [None]])


def documents(shape: Shape) -> st.SearchStrategy[Any]:
    """Requests that are mostly right, with something odd here and there."""
    likely = plausible(shape)  # made once: made for each branch, it would be made 3^depth times
    return st.one_of(likely, likely.map(_same), likely.map(_same), ODD)


def _same(value: Any) -> Any:
    """Make another strategy of the same values: of equal branches, Hypothesis counts one."""
    return value


def plausible(shape: Shape) -> st.SearchStrategy[Any]:
    match shape:
        case StructureShape():
            members = {member.name: documents(member.shape) for member in shape.members.values()}
            required = {m.name for m in shape.members.values() if m.required}
            return st.fixed_dictionaries(
                {name: members[name] for name in required},
                optional={name: members[name] for name in members if name not in required},
            )
        case ListShape():
            return st.lists(documents(shape.member), max_size=3)
        case Mapping():
            return st.dictionaries(
                st.sampled_from(["abc", "defg", "a", "", "abc\n"]),
                documents(shape.value),
                max_size=2,
            )
        case AttributeValueShape():
            return ATTRIBUTE_VALUES
        case Scalar():
            return scalar(shape)


def scalar(shape: Scalar) -> st.SearchStrategy[Any]:
    for rule in shape.constraints:
        if "enum" in rule.sentence:
            values = rule.sentence.partition("[")[2].rstrip("]")
            return st.sampled_from([*values.split(", "), "nonsense"])
    return {
        "String": st.sampled_from(
            ["abc", "table-name", "arn:aws:dynamodb:eu:1:table/abc", "a", "abc\n"]
        ),
        "Boolean": st.booleans(),
        "Integer": st.integers(-1, 101),
        "Long": st.integers(-1, 10),
        "Double": st.floats(allow_nan=False, allow_infinity=False),
        "Timestamp": st.one_of(
            st.integers(-1, 2**31), st.floats(allow_nan=False, allow_infinity=False)
        ),
    }[shape.java]


@cache
def bodies(operation: str) -> st.SearchStrategy[bytes]:
    return documents(shape_of(ACTIONS[operation].request)).map(msgspec.json.encode)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, bytes]:
    operation = draw(st.sampled_from(sorted(ACTIONS)))
    return operation, draw(bodies(operation))


@settings(deadline=None)
@given(requests())
def test_the_layers_find_no_fault_in_a_request_that_succeeds(request_: tuple[str, bytes]) -> None:
    operation, body = request_
    with isotone.open(":memory:") as database:
        engine = database._api.engine  # what `first_fault` reads
        order = order_of(operation)
        fault = first_fault(engine, operation, ACTIONS[operation].request, body, order)
        refused = _refusal(database, operation, body)
    if refused is None:
        assert fault is None
    elif isinstance(refused, ValidationException) and fault is not None:
        assert refused.message == fault.message


def _refusal(database: isotone.Database, operation: str, body: bytes) -> ApiError | None:
    try:
        database.send(operation, body)
    except ApiError as error:
        return error
    return None


@settings(deadline=None)
@given(st.sampled_from(sorted(ACTIONS)), st.binary(max_size=40))
def test_random_bytes_raise_api_errors_only(operation: str, body: bytes) -> None:
    with contextlib.suppress(ApiError):
        decode(ACTIONS[operation].request, body)


@pytest.mark.parametrize("opening", [b'{"a":', b"[", b'{"Item":{"a":{"M":'])
def test_nesting_without_end_is_refused(opening: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        decode(ACTIONS["PutItem"].request, opening * 100_000)
    assert caught.value.code == "SerializationException"
