"""Plays a chapter of a session: requests in order, on a database of its own, and what answers them.

All that is random or depends on the time of day is fixed, so that two plays of a chapter are equal.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest import mock

import isotone
from isotone.backends import embedded
from isotone.errors import ApiError

Request = dict[str, Any]
Edit = Callable[[str, Request], Request]

FILES: Final = "files"
"""The action of an exchange that is the content of files."""

START: Final = 1_700_000_000.0
HOME, AWAY = "us-east-1", "eu-west-1"
KINESIS: Final = "arn:aws:kinesis:us-east-1:000000000000:stream/changes"
UNITS: Final = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}
MOST: Final = {"MaxReadRequestUnits": 70, "MaxWriteRequestUnits": 80}
WARM: Final = {"ReadUnitsPerSecond": 15_000, "WriteUnitsPerSecond": 6_000}
ALL: Final = {"ProjectionType": "ALL"}
STREAM: Final = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
KEY: Final = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "alias/mine"}


@dataclass
class Exchange:
    """A request that was answered, by a response or by an error."""

    action: str
    request: Request
    body: bytes = b""
    error: ApiError | None = None

    @property
    def response(self) -> Any:
        """The response, or the body of the error."""
        if self.error is not None:
            return {"__type": self.error.code, "message": self.error.message, **self.error.members}
        return json.loads(self.body or b"{}")


class _Ended(Exception):
    """The chapter does not go on: a request that was changed has failed, or enough was seen."""


@dataclass
class Player:
    """Calls actions and keeps the exchanges: `play("PutItem", TableName=…)` returns the response."""

    database: isotone.Database
    clock: isotone.ManualClock
    folder: Path
    edit: Edit | None = None
    is_enough: Callable[[Exchange], bool] = lambda _: False
    exchanges: list[Exchange] = field(default_factory=list)

    def __call__(self, action: str, /, **request: Any) -> Any:
        exchange = self._exchange(self.database, action, request)
        if exchange.error is not None and self.edit is not None:
            raise _Ended
        if exchange.error is not None:
            raise exchange.error
        return exchange.response

    def away(self, action: str, /, **request: Any) -> Any:
        """Call an action in another region."""
        exchange = self._exchange(self.database.region(AWAY), action, request)
        return exchange.response

    def refused(self, code: str, action: str, /, **request: Any) -> None:
        """Call an action that must fail."""
        exchange = self._exchange(self.database, action, request)
        found = exchange.error.code if exchange.error else None
        assert self.edit is not None or found == code, (action, request, exchange.response)

    def _exchange(self, database: Any, action: str, request: Request) -> Exchange:
        if self.edit is not None:
            request = self.edit(action, request)
        exchange = Exchange(action, request)
        try:
            body = database.send(action, json.dumps(request).encode())
            exchange.body = body.replace(str(self.folder).encode(), b"FOLDER")
        except ApiError as error:
            exchange.error = error
        self._append(exchange)
        return exchange

    def _append(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        if self.is_enough(exchange):
            raise _Ended

    def table(self, name: str = "tab", keys: str = "p s:N", **more: Any) -> Any:
        """Create a table; `keys` is like "p s:N", string where no type is given."""
        types = {**types_of(keys), **more.pop("types", {})}
        definitions = [{"AttributeName": n, "AttributeType": t} for n, t in types.items()]
        call = more.pop("call", self)
        return call(
            "CreateTable",
            TableName=name,
            AttributeDefinitions=definitions,
            KeySchema=key_schema(keys),
            **{"BillingMode": "PAY_PER_REQUEST", **more},
        )

    def file(self, bucket: str, key: str, content: bytes) -> None:
        """Put an object into a bucket."""
        path = self.folder / bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def files(self, bucket: str) -> None:
        """Keep what the files of a bucket contain, as one more exchange; manifests repeat the request."""
        found = {
            path.relative_to(self.folder).as_posix(): _text(path)
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
            and path.is_relative_to(self.folder / bucket)
            and "manifest" not in path.name
        }
        self._append(Exchange(FILES, {}, json.dumps(found).encode()))

    def work(self) -> None:
        """Do all background work."""
        self.database.finish_maintenance()


def _text(path: Path) -> str:
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("latin-1")


def types_of(keys: str) -> dict[str, str]:
    parts = (part.partition(":") for part in keys.split())
    return {name: kind or "S" for name, _, kind in parts}


def key_schema(keys: str) -> list[dict[str, str]]:
    kinds = zip(types_of(keys), ("HASH", "RANGE"), strict=False)
    return [{"AttributeName": name, "KeyType": kind} for name, kind in kinds]


def index(name: str, keys: str, **more: Any) -> dict[str, Any]:
    return {"IndexName": name, "KeySchema": key_schema(keys), "Projection": ALL, **more}


def vectors(name: str = "near", **more: Any) -> dict[str, Any]:
    return {
        "IndexName": name,
        "VectorAttribute": {"AttributeName": "v"},
        "SearchSchema": [
            {"AttributeName": "g", "SearchSchemaElementType": "HASH"},
            {"AttributeName": "y", "SearchSchemaElementType": "INLINE_FILTER"},
        ],
        "Dimensions": 2,
        "DistanceFunction": "EUCLIDEAN",
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["z"]},
        **more,
    }


def s(text: str) -> dict[str, str]:
    return {"S": text}


def n(number: float) -> dict[str, str]:
    return {"N": str(number)}


def vector(*elements: float) -> dict[str, Any]:
    return {"L": [n(each) for each in elements]}


INCLUDE: Final = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["z"]}
VALUES: Final = {
    "p": s("a"),
    "s": n(1),
    "b": {"B": "AAEC"},
    "ss": {"SS": ["x", "y"]},
    "ns": {"NS": ["1", "2"]},
    "bs": {"BS": ["AAEC", "/w=="]},
    "m": {"M": {"l": {"L": [{"BOOL": True}, {"NULL": True}]}}},
}
METRICS: Final = {"ReturnConsumedCapacity": "INDEXES", "ReturnItemCollectionMetrics": "SIZE"}
UNLESS: Final = {
    "ConditionExpression": "#x = :x",
    "ExpressionAttributeNames": {"#x": "x"},
    "ExpressionAttributeValues": {":x": n(9)},
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}


def indexed(play: Player, **more: Any) -> None:
    """A table with a local, a global and a vector index."""
    play.table(
        types={"g": "S", "l": "S", "y": "N"},
        LocalSecondaryIndexes=[index("local", "p l")],
        GlobalSecondaryIndexes=[index("global", "g")],
        VectorIndexes=[vectors()],
        **more,
    )


FULL: Final = {**VALUES, "g": s("g"), "l": s("l"), "v": vector(1, 2), "y": n(3), "z": s("z")}


def search(play: Player, table: str) -> None:
    """The nearest items of a group."""
    play(
        "SearchVectors",
        TableName=table,
        IndexName="near",
        SearchVector=[n(1), n(7)],
        TopK=2,
        SearchConditionExpression="g = :g",
        ExpressionAttributeValues={":g": s("g")},
    )


def tab(**more: Any) -> Request:
    return {
        "TableName": "tab",
        "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
        "KeySchema": key_schema("p"),
        "BillingMode": "PAY_PER_REQUEST",
        **more,
    }


def scaling(least: int) -> Request:
    tracking = {
        "DisableScaleIn": True,
        "ScaleInCooldown": 60,
        "ScaleOutCooldown": 70,
        "TargetValue": 55.5,
    }
    return {
        "MinimumUnits": least,
        "MaximumUnits": 90,
        "AutoScalingDisabled": False,
        "AutoScalingRoleArn": "arn:aws:iam::000000000000:role/scaling",
        "ScalingPolicyUpdate": {
            "PolicyName": "follow",
            "TargetTrackingScalingPolicyConfiguration": tracking,
        },
    }


NO_SCALING: Final = {"AutoScalingDisabled": True}


def scaled(settings: Request) -> Request:
    return {
        "TableName": "tab",
        "GlobalSecondaryIndexUpdates": [
            {"IndexName": "global", "ProvisionedWriteCapacityAutoScalingUpdate": settings}
        ],
        "ProvisionedWriteCapacityAutoScalingUpdate": settings,
    }


Chapter = Callable[[Player], None]


@contextmanager
def _repeatable() -> Iterator[None]:
    """No threads, and no random identities."""
    count = itertools.count(1)
    with (
        mock.patch.object(embedded.Database, "_wake_if_wanted", return_value=None),
        mock.patch.object(uuid, "uuid4", side_effect=(uuid.UUID(int=each) for each in count)),
        mock.patch.object(os, "urandom", lambda size: next(count).to_bytes(size, "big")),
    ):
        yield


def play(
    chapter: Chapter,
    edit: Edit | None = None,
    is_enough: Callable[[Exchange], bool] = lambda _: False,
) -> list[Exchange]:
    """The exchanges of a chapter.

    `edit` changes requests on their way; then the chapter ends with the first exchange that it cannot follow. It also
    ends with the first that `is_enough`.
    """
    clock = isotone.ManualClock(START)
    with (
        TemporaryDirectory() as folder,
        _repeatable(),
        isotone.open(":memory:", clock=clock, regions=True, s3=folder) as database,
    ):
        player = Player(database, clock, Path(folder), edit, is_enough)
        try:
            chapter(player)
        except (_Ended, LookupError, TypeError):
            if edit is None:
                raise
        return player.exchanges
