"""Requests with one or two faults, made from the service model: every member of every action, each kind of fault.

    python -m tests.oracle.faults Action…            what Isotone and the witnesses say, where they differ
    python -m tests.oracle.faults --pairs Action…    requests with two faults: which of them is reported

The service model is that of `tests/service_model`.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final

from tests.oracle.endpoints import RawApi
from tests.oracle.scripts import INDEXED, Request, n, s
from tests.oracle.witnesses import shown, witnesses
from tests.service_model import Model, model

Path_ = tuple[str | int, ...]
ABSENT: Final = object()

STREAMED: Final[Request] = {
    **INDEXED,
    "TableName": "tab",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}
KEY: Final[Request] = {"p": s("a"), "s": n(1)}
ITEM: Final[Request] = {**KEY, "x": s("x"), "g": s("g"), "r": n(1)}
_VALUES: Final = {"ExpressionAttributeValues": {":v": s("a")}}
_TAGS: Final = [{"Key": "k", "Value": "v"}]

BASES: Final[dict[str, Request]] = {
    "PutItem": {"TableName": "tab", "Item": ITEM},
    "GetItem": {"TableName": "tab", "Key": KEY},
    "DeleteItem": {"TableName": "tab", "Key": KEY},
    "UpdateItem": {
        "TableName": "tab",
        "Key": KEY,
        "UpdateExpression": "SET y = :v",
        **_VALUES,
    },
    "Query": {"TableName": "tab", "KeyConditionExpression": "p = :v", **_VALUES},
    "Scan": {"TableName": "tab"},
    "BatchGetItem": {"RequestItems": {"tab": {"Keys": [KEY]}}},
    "BatchWriteItem": {"RequestItems": {"tab": [{"PutRequest": {"Item": ITEM}}]}},
    "TransactGetItems": {"TransactItems": [{"Get": {"TableName": "tab", "Key": KEY}}]},
    "TransactWriteItems": {
        "TransactItems": [
            {"Put": {"TableName": "tab", "Item": ITEM}},
            {"Delete": {"TableName": "tab", "Key": {"p": s("b"), "s": n(1)}}},
        ]
    },
    "CreateTable": {**STREAMED, "TableName": "new"},
    "UpdateTable": {"TableName": "tab", "DeletionProtectionEnabled": False},
    "DeleteTable": {"TableName": "new"},
    "DescribeTable": {"TableName": "tab"},
    "ListTables": {},
    "UpdateTimeToLive": {
        "TableName": "tab",
        "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"},
    },
    "DescribeTimeToLive": {"TableName": "tab"},
    "TagResource": {"ResourceArn": "TABLE_ARN", "Tags": _TAGS},
    "UntagResource": {"ResourceArn": "TABLE_ARN", "TagKeys": ["k"]},
    "ListTagsOfResource": {"ResourceArn": "TABLE_ARN"},
    "DescribeLimits": {},
    "DescribeEndpoints": {},
    "ListStreams": {},
    "DescribeStream": {"StreamArn": "STREAM_ARN"},
    "GetShardIterator": {
        "StreamArn": "STREAM_ARN",
        "ShardId": "SHARD_ID",
        "ShardIteratorType": "TRIM_HORIZON",
    },
    "GetRecords": {"ShardIterator": "ITERATOR"},
}
"""A valid request of each action; texts in capitals stand for what each side has of its own."""

STREAMS: Final = ("ListStreams", "DescribeStream", "GetShardIterator", "GetRecords")


def sample(model: Model, name: str) -> Any:
    """A valid value of a shape, as far as the model tells; required members only."""
    shape = model.shapes[name]
    kind = shape["type"]
    if name == "AttributeValue":
        return s("a")
    if kind == "structure":
        return {
            member: sample(model, shape["members"][member]) for member in shape.get("required", [])
        }
    if kind == "list":
        return [sample(model, shape["member"])]
    if kind == "map":
        return {"tab": sample(model, shape["value"])}
    if kind == "string":
        return shape["enum"][0] if "enum" in shape else "a" * max(3, shape.get("min", 1))
    if kind == "boolean":
        return True
    return max(1, shape.get("min", 1))


def wrong_values(model: Model, name: str) -> Iterator[tuple[str, Any]]:
    """Each kind of value that a member of this shape may not have, with its label."""
    shape = model.shapes[name]
    kind = shape["type"]
    of_types: dict[str, Any] = {
        "a text": "text",
        "a number": 5,
        "a fraction": 1.5,
        "a flag": True,
        "a list": ["a"],
        "a map": {"a": "a"},
    }
    own = {
        "string": "a text",
        "boolean": "a flag",
        "list": "a list",
        "map": "a map",
        "structure": "a map",
    }.get(kind, "a number")
    for label, value in of_types.items():
        if label != own:
            yield label, value
    if kind == "string":
        yield "empty", ""
        if "enum" in shape:
            yield "no such value", "XXX"
            return
        yield "bad characters", "a;c"
        yield "short", "a" * (max(2, shape.get("min", 2)) - 1)
        yield "long", "a" * (shape.get("max", 255) + 1)
    elif kind in ("integer", "long"):
        yield "zero", 0
        yield "negative", -1
        yield "large", shape.get("max", 10**12) + 1
        yield "huge", 10**20
    elif kind == "list":
        yield "empty", []
        yield "null in it", [None]
        yield "too many", [sample(model, shape["member"])] * (shape.get("max", 100) + 1)
    elif kind in ("map", "structure"):
        yield "empty", {}


def members(
    model: Model, action: str, base: Request, depth: int = 3
) -> Iterator[tuple[Path_, str]]:
    """The path and the shape of every member of a request, to a depth of structures."""

    def inside(path: Path_, name: str, value: Any, left: int) -> Iterator[tuple[Path_, str]]:
        shape = model.shapes[name]
        if name == "AttributeValue" or left == 0:
            return
        if shape["type"] == "structure":
            for member, each in shape["members"].items():
                yield (*path, member), each
                content = value.get(member) if isinstance(value, dict) else None
                yield from inside((*path, member), each, content, left - 1)
        elif shape["type"] == "list":
            for place, content in enumerate(value if isinstance(value, list) and value else [None]):
                yield (*path, place), shape["member"]
                yield from inside((*path, place), shape["member"], content, left)
        elif shape["type"] == "map":
            key, content = next(iter(value.items())) if value else ("tab", None)
            yield (*path, key), shape["value"]
            yield from inside((*path, key), shape["value"], content, left)

    yield from inside((), model.input_of(action), base, depth)


def replaced(model: Model, action: str, request: Request, path: Path_, value: Any) -> Request:
    """The request with another value at a path; what is missing on the way is filled with samples."""
    request = copy.deepcopy(request)
    place: Any = request
    name = model.input_of(action)
    for element in path[:-1]:
        name = _shape_at(model, name, element)
        if isinstance(place, list):
            if not place:
                place.append(sample(model, name))
        elif place.get(element) is None:
            place[element] = sample(model, name)
        place = place[element]
    last: Any = path[-1]
    if value is ABSENT:
        if isinstance(place, dict):
            place.pop(last, None)
        else:
            del place[last:]
    elif isinstance(place, list):
        place[last : last + 1] = [value]
    else:
        place[last] = value
    return request


def _shape_at(model: Model, name: str, element: str | int) -> str:
    shape = model.shapes[name]
    found: str = (
        shape["members"][element]
        if shape["type"] == "structure"
        else shape["member" if shape["type"] == "list" else "value"]
    )
    return found


def single_faults(model: Model, action: str) -> Iterator[tuple[str, Request]]:
    """Every request of an action with one fault."""
    base = BASES[action]
    for path, name in members(model, action, base):
        where = ".".join(map(str, path))
        yield f"{where}: absent", replaced(model, action, base, path, ABSENT)
        for label, value in wrong_values(model, name):
            yield f"{where}: {label}", replaced(model, action, base, path, value)


REPRESENTATIVE: Final = ("empty", "no such value", "short", "zero", "large", "a list", "a map")


def double_faults(model: Model, action: str) -> Iterator[tuple[str, Request]]:
    """Requests with one fault in each of two members of the request."""
    base = BASES[action]
    faults: list[tuple[Path_, str, Any]] = []
    for path, name in members(model, action, base, depth=1):
        kinds = dict(wrong_values(model, name))
        faults.extend((path, label, kinds[label]) for label in REPRESENTATIVE if label in kinds)
        if path[0] in base:
            faults.append((path, "absent", ABSENT))
    for (path, label, value), (other, other_label, other_value) in combinations(faults, 2):
        if path[0] != other[0]:
            request = replaced(model, action, base, path, value)
            yield (
                f"{path[0]}: {label} + {other[0]}: {other_label}",
                replaced(model, action, request, other, other_value),
            )


class Prepared:
    """A side with its table, and the names that it gave: its ARNs, a shard and an iterator."""

    def __init__(self, side: RawApi) -> None:
        self.side = side
        self.names: dict[str, str] = {}
        self.prepare()

    def prepare(self) -> None:
        """Make the table that requests refer to, if a request deleted it."""
        self.side.ask("DeleteTable", {"TableName": "new"})
        if self.side.ask("DescribeTable", {"TableName": "tab"})[0] == 200:
            return
        made = self.side.ask("CreateTable", STREAMED)[1]["TableDescription"]
        self.side.ask("PutItem", {"TableName": "tab", "Item": ITEM})
        arn = made["LatestStreamArn"]
        described = self.side.ask("DescribeStream", {"StreamArn": arn})[1]
        shard = described["StreamDescription"]["Shards"][0]["ShardId"]
        position = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
        iterator = self.side.ask("GetShardIterator", position)[1].get("ShardIterator", "")
        self.names = {
            "TABLE_ARN": made["TableArn"],
            "STREAM_ARN": arn,
            "SHARD_ID": shard,
            "ITERATOR": iterator,
        }

    def ask(self, action: str, request: Request) -> str:
        """The answer in one line, with the side's own names replaced."""
        text = json.dumps(request)
        for name, own in self.names.items():
            text = text.replace(f'"{name}"', json.dumps(own))
        answer = self.side.ask(action, text.encode())
        if answer[0] == 200:
            self.prepare()
            return "OK"
        said = shown(answer)
        for name, own in self.names.items():
            said = said.replace(own, name)
        return said


def main(arguments: list[str]) -> int:
    """The command line of this file."""
    make = double_faults if "--pairs" in arguments else single_faults
    actions = [each for each in arguments if not each.startswith("--")] or list(BASES)
    dynamodb, streams = model("dynamodb"), model("dynamodbstreams")
    with witnesses() as sides:
        prepared = {name: Prepared(side) for name, side in sides.items()}
        for action in actions:
            asked = differing = 0
            if action == "DeleteTable":
                for each in prepared.values():
                    each.side.ask("CreateTable", BASES["CreateTable"])
            for label, request in make(streams if action in STREAMS else dynamodb, action):
                answers = {name: each.ask(action, request) for name, each in prepared.items()}
                asked += 1
                ours = answers.pop("isotone")
                if ours not in answers.values():
                    differing += 1
                    print(f"{action} {label}\n    isotone  {ours[:700]}")
                    for name, answer in answers.items():
                        print(f"    {name:8} {answer[:700]}")
            print(f"{action}: {asked} requests, {differing} of which no witness answers as we do\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
