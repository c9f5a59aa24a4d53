"""Every parameter of every action, with values that it is not made for: botocore is the oracle.

What botocore refuses is refused in its words; what it sends is sent, byte for byte of the JSON. Where botocore itself
fails with another exception, ours is a `ParamValidationError`, or the value is sent as it should be.
"""

from __future__ import annotations

import enum
import io
import json
from base64 import b64encode
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from botocore.model import ServiceModel, Shape
from botocore.serialize import create_serializer
from botocore.validate import ParamValidator
from tests.service_model import NOT_SUPPORTED, REQUIRED_WITHOUT_THEM, document

import isotone
from isotone.client.exceptions import ParamValidationError
from isotone.client.parameters import encode_request
from isotone.errors import ApiError, IsotoneError

MODEL = ServiceModel(document("dynamodb"))
SERIALIZER = create_serializer("json", include_validation=False)


class Markup(str):
    """A str that changes what its methods return, as those of template engines do."""

    def __str__(self) -> str:
        return "escaped"

    def __add__(self, other: str) -> Markup:
        return Markup("escaped")

    def encode(self, *_: Any) -> bytes:
        raise AssertionError("the text itself is sent")


class Color(str, enum.Enum):  # noqa: UP042
    RED = "red"


class Word(enum.StrEnum):
    ONE = "one"


class Level(enum.IntEnum):
    LOW = 1


class Count(int): ...


class Names(list[str]): ...


class Attributes(dict[str, Any]): ...


ITEM: dict[str, Any] = {"a": {"S": "x"}}
LONE = "\ud800"

VALUES: dict[str, Any] = {
    "nothing": None,
    "a flag": True,
    "a number": 1,
    "zero": 0,
    "a negative number": -1,
    "a huge number": 2**70,
    "a fraction": 1.5,
    "no number": float("nan"),
    "infinity": float("inf"),
    "no text": "",
    "text": "x",
    "half a surrogate pair": LONE,
    "a NUL": "a\0b",
    "bytes": b"\xff",
    "a bytearray": bytearray(b"x"),
    "a file": io.BytesIO(),
    "an empty list": [],
    "a list": ["x"],
    "a list of numbers": [1],
    "a tuple": ("x",),
    "an empty dict": {},
    "a dict": {"a": "b"},
    "a value": {"S": "x"},
    "an item": ITEM,
    "keys that are numbers": {1: ITEM["a"]},
    "a key that is nothing": {None: ITEM["a"]},
    "a set": {"x"},
    "a frozenset": frozenset({"x"}),
    "a str of a template engine": Markup("x"),
    "a member of an enum of texts": Color.RED,
    "a member of a StrEnum": Word.ONE,
    "a member of an IntEnum": Level.LOW,
    "a subclass of int": Count(3),
    "a subclass of list": Names(["x"]),
    "a subclass of dict": Attributes(ITEM),
    "an OrderedDict": OrderedDict(ITEM),
    "a defaultdict": defaultdict(dict, ITEM),
    "a Counter": Counter(),
    "a ChainMap": ChainMap(ITEM),
    "a UserDict": UserDict(ITEM),
    "a mappingproxy": MappingProxyType(ITEM),
    "an integer of numpy": np.int64(1),
    "a float of numpy": np.float64(1.5),
    "a flag of numpy": np.bool_(True),
    "a text of numpy": np.str_("x"),
    "bytes of numpy": np.bytes_(b"x"),
    "an array": np.array([1]),
    "a Decimal": Decimal(1),
    "a Fraction": Fraction(1, 2),
    "a datetime": datetime(2026, 1, 1, tzinfo=UTC),
    "a date": date(2026, 1, 1),
    "a class": dict,
    "an object": object(),
    "a range": range(3),
    "an iterator": iter(()),
    "a surrogate in an item": {"a": {"S": LONE}},
    "a surrogate in a name": {"a" + LONE: {"S": "x"}},
    "a surrogate in a binary": {"a": {"B": LONE}},
    "a number that is no text": {"a": {"N": np.float64(1)}},
    "a binary that is an enum": {"a": {"B": Level.LOW}},
    "a flag that is a number": {"a": {"BOOL": 1}},
    "a set of Python": {"a": {"SS": {"x"}}},
    "subclasses inside": {"a": {"M": Attributes(x={"S": Markup("y")})}},
    "an item of nothing": {"a": None},
    "two types at once": {"a": {"S": "x", "N": "1"}},
    "no type": {"a": {}},
}

Path = tuple[str, ...]


def members_of(shape: Shape, within: Path = (), above: Path = ()) -> Iterator[tuple[Path, Shape]]:
    """Each member at any depth, and where it is."""
    yield within, shape
    if shape.name in above:
        return
    above = (*above, shape.name)
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            if name not in NOT_SUPPORTED:
                yield from members_of(member, (*within, name), above)
    elif shape.type_name == "list":
        yield from members_of(shape.member, (*within, "[]"), above)
    elif shape.type_name == "map":
        yield from members_of(shape.value, (*within, "{}"), above)


def request_with(path: Path, value: Any) -> Any:
    if not path:
        return value
    inner = request_with(path[1:], value)
    return {"[]": [inner], "{}": {"k": inner}}.get(path[0], {path[0]: inner})


def requests() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each parameter with each value. What is inside of a parameter is tried once, in the first action that has it."""
    seen: set[tuple[str, ...]] = set()
    for operation in MODEL.operation_names:
        shape = MODEL.operation_model(operation).input_shape
        needed = {name: [] for name in REQUIRED_WITHOUT_THEM.get(operation, ())}
        for path, member in members_of(shape):
            known = (shape.name if len(path) < 2 else "", *path[-2:], member.name)
            if path and known not in seen:
                seen.add(known)
                for name, value in VALUES.items():
                    yield operation, name, {**needed, **request_with(path, value)}


def answer_of_botocore(operation: str, request: dict[str, Any]) -> tuple[str, Any] | None:
    """None if it raises something else."""
    model = MODEL.operation_model(operation)
    try:
        report = ParamValidator().validate(request, model.input_shape)
        if report.has_errors():
            return "refused", report.generate_report()
        return "sent", json.loads(SERIALIZER.serialize_to_request(request, model)["body"])
    except Exception:  # noqa: BLE001 - whatever it is, it is not what we answer
        return None


def our_answer(operation: str, request: dict[str, Any]) -> tuple[str, Any]:
    try:
        return "sent", json.loads(encode_request(operation, request))
    except ParamValidationError as error:
        return "refused", str(error).removeprefix("Parameter validation failed:\n")


def test_every_parameter_takes_and_refuses_what_botocore_does() -> None:
    tried = 0
    for operation, name, request in requests():
        expected, found = answer_of_botocore(operation, request), our_answer(operation, request)
        tried += 1
        if expected is not None:
            # As text, because True == 1 in Python. A text that is no binary ends botocore when it is encoded.
            known = {"half a surrogate pair", "a surrogate in a binary"}
            assert json.dumps(found) == json.dumps(expected) or (
                name in known and "half a surrogate pair" in found[1]
            ), ascii((operation, name, request))
    assert tried > 10_000


def test_files_and_binaries_are_sent_where_botocore_fails() -> None:
    files = {"a": {"B": io.BytesIO(b"x")}, "b": {"B": io.StringIO("y")}, "c": {"B": Markup("z")}}
    sent = json.loads(encode_request("PutItem", {"TableName": "t", "Item": files}))
    texts = {
        name: b64encode(text).decode() for name, text in (("a", b"x"), ("b", b"y"), ("c", b"z"))
    }
    assert sent["Item"] == {name: {"B": text} for name, text in texts.items()}
    for wrong in (LONE, io.StringIO(LONE)):
        with pytest.raises(ParamValidationError, match="half a surrogate pair"):
            encode_request("PutItem", {"TableName": "t", "Item": {"a": {"B": wrong}}})


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    with isotone.open() as database:
        database.client().create_table(
            TableName="tab",
            KeySchema=[{"AttributeName": "a", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "a", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield database


@pytest.mark.parametrize("name", VALUES)
def test_no_value_gets_past_the_checks_of_the_database(
    database: isotone.Database, name: str
) -> None:
    """Without the client's check, too: an error of Isotone, or what is stored is what was given."""
    value = VALUES[name]
    for item in (value, {"a": value}, {"a": {"S": "x"}, "b": value}, {"a": {"S": value}}):
        for put in (
            database.execute,
            lambda action, request: database.client().put_item(**request),
        ):
            try:
                put("PutItem", {"TableName": "tab", "Item": item})
            except IsotoneError:
                assert database.execute("Scan", {"TableName": "tab"})["Items"] == []
                continue
            (stored,) = database.execute("Scan", {"TableName": "tab"})["Items"]
            assert stored == item
            database.execute("DeleteItem", {"TableName": "tab", "Key": {"a": stored["a"]}})
    assert database.check() == []


def test_a_request_that_contains_itself_or_is_very_deep_is_refused(
    database: isotone.Database,
) -> None:
    client = database.client()
    around: dict[str, Any] = {}
    around["M"] = {"x": around}
    deep: dict[str, Any] = {"S": "x"}
    for _ in range(5000):
        deep = {"L": [deep]}
    for value in (around, deep):
        with pytest.raises(ParamValidationError, match="nested too deeply"):
            client.put_item(TableName="tab", Item={"a": {"S": "x"}, "b": value})


def test_half_a_surrogate_pair_is_refused_by_the_service(database: isotone.Database) -> None:
    with pytest.raises(ApiError):
        database.client().put_item(TableName="tab", Item={"a": {"S": LONE}})
