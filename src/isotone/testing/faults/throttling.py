"""Throttling by units per second, of a table, of its indexes, and of each partition key.

Each of them has a bucket that is filled at its units per second, and holds the units of `burst` seconds. A request is
admitted if no bucket that it draws on is empty. Its units are taken out afterwards, so a large request leaves a debt,
as in the service. Writes also draw on the buckets of the global indexes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from isotone.backends.interface import Response, as_text
from isotone.backends.request_retries import THROTTLES
from isotone.clock import Clock
from isotone.errors import ApiError, UsageError
from isotone.tables.description import description_of
from isotone.testing.faults.failing import cancelled, transacted
from isotone.testing.faults.rules import (
    Entries,
    InterceptedCall,
    Proceed,
    Rule,
    entries_of,
    table_name,
    tables_of_statement,
    with_entries,
    with_unprocessed,
)

Kind = Literal["Read", "Write"]
ErrorName = Literal[
    "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"
]

_PROVISIONED: Final = "ProvisionedThroughputExceededException"
_ON_DEMAND: Final = "ThrottlingException"
_ACCOUNT: Final = "RequestLimitExceeded"

# AWS's messages, for the table and for an index.
_MESSAGES: Final[Mapping[str, tuple[str, str]]] = {
    _PROVISIONED: (
        "The level of configured provisioned throughput for the table was exceeded. Consider increasing your "
        "provisioning level with the UpdateTable API.",
        "The level of configured provisioned throughput for one or more global secondary indexes of the table was "
        "exceeded. Consider increasing your provisioning level for the under-provisioned global secondary indexes "
        "with the UpdateTable API.",
    ),
    _ON_DEMAND: (
        "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your "
        "table or index so please try again shortly. If exceptions persist, check if you have a hot key: "
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html.",
        "Throughput exceeds the current capacity for one or more global secondary indexes. DynamoDB is "
        "automatically scaling your index so please try again shortly.",
    ),
    _ACCOUNT: (
        "Throughput exceeds the current throughput limit for your account. Please contact AWS Support at "
        "https://aws.amazon.com/support to request a limit increase.",
    )
    * 2,
}
_ERRORS: Final[Mapping[str, Callable[..., ApiError]]] = {
    error.__name__: error for error in THROTTLES
}

_LIMITS: Final = {
    _PROVISIONED: "ProvisionedThroughputExceeded",
    _ON_DEMAND: "MaxOnDemandThroughputExceeded",
    _ACCOUNT: "AccountLimitExceeded",
}
_LEAST: Final[Mapping[Kind, float]] = {"Read": 0.5, "Write": 1.0}
_EQUALITY: Final = re.compile(r"([#\w]+)\s*=\s*(:\w+)")


@dataclass(frozen=True, slots=True)
class Throttled:
    """Why a request is refused: the error, the resource, and the exhausted limit."""

    error: str
    kind: Kind
    resource: str
    is_index: bool = False
    is_key_range: bool = False

    def as_error(self) -> ApiError:
        """The service's error, with its reasons."""
        member = "throttlingReasons" if self.error == _ON_DEMAND else "ThrottlingReasons"
        reasons = [{"reason": self._reason, "resource": self.resource}]
        return _ERRORS[self.error](self._message, **{member: reasons})

    def as_reason(self) -> tuple[str, str]:
        """The code and message in a cancelled transaction."""
        provisioned = self.error == _PROVISIONED
        return "ProvisionedThroughputExceeded" if provisioned else "ThrottlingError", self._message

    def as_statement_error(self) -> dict[str, str]:
        """The error of one statement in the response to a batch."""
        code, message = self.as_reason()
        return {"Code": _ACCOUNT if self.error == _ACCOUNT else code, "Message": message}

    @property
    def _message(self) -> str:
        return _MESSAGES[self.error][self.is_index]

    @property
    def _reason(self) -> str:
        limit = "KeyRangeThroughputExceeded" if self.is_key_range else _LIMITS[self.error]
        return f"{'Index' if self.is_index else 'Table'}{self.kind}{limit}"


@dataclass(frozen=True, slots=True)
class _Bucket:
    """Identifies a bucket: reads or writes of a table, of one of its indexes, or of one of its partition keys."""

    table: str
    kind: Kind
    index: str | None = None
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class _Draw:
    """A bucket that a request draws on, its units per second, and the refusal if it is empty."""

    bucket: _Bucket
    rate: float
    refusal: Throttled


class _Buckets:
    """The levels of all buckets; an unused bucket is full."""

    def __init__(self, burst: float, clock: Clock) -> None:
        self._burst = burst
        self._now = clock.now
        self._levels: dict[_Bucket, tuple[float, float]] = {}  # the level, and when it was measured

    def is_empty(self, bucket: _Bucket, rate: float) -> bool:
        """Whether a bucket has less than the smallest request takes."""
        return self.level(bucket, rate) < min(_LEAST[bucket.kind], rate * self._burst)

    def level(self, bucket: _Bucket, rate: float) -> float:
        now = self._now()
        level, since = self._levels.get(bucket, (rate * self._burst, now))
        level = min(rate * self._burst, level + (now - since) * rate)
        self._levels[bucket] = level, now
        return level

    def take(self, bucket: _Bucket, rate: float, units: float) -> None:
        self._levels[bucket] = self.level(bucket, rate) - units, self._now()


def is_throttle(error: str) -> bool:
    """Whether this is the name of a throttling error."""
    return error in _ERRORS


def throttled_without_units(error: str, call: InterceptedCall) -> ApiError:
    """A throttling error for a fault that counts no units."""
    table = next(iter(sorted(call.tables)), "")
    try:
        arn = call.directly("DescribeTable", {"TableName": table})["Table"]["TableArn"]
    except ApiError:
        arn = table
    return Throttled(error, "Write" if call.is_write else "Read", arn).as_error()


class Throttling(Rule):
    """Refuses requests above the units per second of a table, an index, or a partition key."""

    def __init__(
        self,
        table: str | None,
        *,
        index: str | None,
        reads: float | None,
        writes: float | None,
        partition_reads: float,
        partition_writes: float,
        burst: float,
        error: ErrorName | None,
        clock: Clock,
    ) -> None:
        super().__init__()
        if error is not None and error not in _ERRORS:
            raise UsageError(
                f"{error!r} is not an error of throttling; give one of {sorted(_ERRORS)}"
            )
        self._table = table
        self._index = index
        self._given = {"Read": reads, "Write": writes}
        self._partition = {"Read": partition_reads, "Write": partition_writes}
        self._error = error
        self._buckets = _Buckets(burst, clock)

    def answer(self, call: InterceptedCall, proceed: Proceed) -> Response:
        if not (call.is_read or call.is_write) or not self._concerns(call):
            return proceed(call)
        with self.lock:
            return self._admit(call, proceed)

    def _concerns(self, call: InterceptedCall) -> bool:
        return self._table is None or self._table in call.tables

    def _admit(self, call: InterceptedCall, proceed: Proceed) -> Response:
        kind: Kind = "Write" if call.is_write else "Read"
        refused: dict[int, Throttled] = {}
        entries = _entries(call)
        draws = [self._draws(call, kind, table, entry) for table, entry in entries]
        for place, wanted in enumerate(draws):
            empty = [each for each in wanted if self._buckets.is_empty(each.bucket, each.rate)]
            if empty:
                refused[place] = empty[0].refusal
        if not refused:
            return self._granted(call, draws, proceed)
        self.struck()
        if together := transacted(call):
            reasons = {place: why.as_reason() for place, why in refused.items()}
            raise cancelled(len(together), reasons)
        if "Statements" in call.request:
            return self._answered_in_part(call, draws, refused, proceed)
        if len(refused) == len(entries):
            raise next(iter(refused.values())).as_error()
        taken = [place for place in range(len(entries)) if place not in refused]
        fewer = with_entries(call, [entries[place] for place in taken])
        response = self._granted(fewer, [draws[place] for place in taken], proceed)
        return with_unprocessed(call, response, [entries[place] for place in refused])

    def _answered_in_part(
        self,
        call: InterceptedCall,
        draws: list[list[_Draw]],
        refused: Mapping[int, Throttled],
        proceed: Proceed,
    ) -> Response:
        """The response to a batch of statements: the error of a refused one stands in its place."""
        statements = call.request["Statements"]
        taken = [place for place in range(len(statements)) if place not in refused]
        response: Response = {"Responses": []}
        if taken:
            fewer = {**call.request, "Statements": [statements[place] for place in taken]}
            own = [draws[place] for place in taken]
            response = self._granted(call.with_request(fewer), own, proceed)
        answers = iter(response["Responses"])
        return {
            **response,
            "Responses": [
                {"Error": refused[place].as_statement_error()}
                if place in refused
                else next(answers)
                for place in range(len(statements))
            ],
        }

    def _granted(
        self, call: InterceptedCall, draws: list[list[_Draw]], proceed: Proceed
    ) -> Response:
        """Execute a call, and take its consumed units out of the buckets."""
        asked = call.request.get("ReturnConsumedCapacity") or "NONE"
        response = proceed(call.with_request({**call.request, "ReturnConsumedCapacity": "INDEXES"}))
        self._take(response.get("ConsumedCapacity"), [each for wanted in draws for each in wanted])
        return _with_capacity(response, asked)

    def _draws(
        self, call: InterceptedCall, kind: Kind, table: str, entry: Mapping[str, Any]
    ) -> list[_Draw]:
        """The buckets that an entry of a request draws on."""
        table = table_name(table)
        if self._table is not None and table != self._table:
            return []
        try:
            description = call.directly("DescribeTable", {"TableName": table})["Table"]
        except ApiError:
            return []  # the database reports what is wrong with the table or its name
        wanted: list[_Draw] = []
        index = call.request.get("IndexName")
        globals_ = {
            each["IndexName"]: each for each in description.get("GlobalSecondaryIndexes", ())
        }
        if self._index is None and index not in globals_:
            wanted += self._of(description, None, description, kind)
            wanted += self._of_partition(description, kind, entry)
        concerned = globals_ if kind == "Write" else {index} & globals_.keys()
        for name in concerned:
            if self._index in (None, name):
                wanted += self._of(description, name, globals_[name], kind)
        return wanted

    def _of(
        self, description: Mapping[str, Any], index: str | None, of: Mapping[str, Any], kind: Kind
    ) -> Iterator[_Draw]:
        declared = of.get("ProvisionedThroughput", {}).get(f"{kind}CapacityUnits", 0)
        most = of.get("OnDemandThroughput", {}).get(f"Max{kind}RequestUnits", 0)
        rate = self._given[kind] if index == self._index else None
        if rate is None:
            rate = declared or (most if most > 0 else 0)
        if rate:
            arn = of.get("IndexArn") or description["TableArn"]
            bucket = _Bucket(description["TableName"], kind, index=index)
            yield _Draw(
                bucket, rate, Throttled(self._named(description), kind, arn, index is not None)
            )

    def _of_partition(
        self, description: Mapping[str, Any], kind: Kind, entry: Mapping[str, Any]
    ) -> Iterator[_Draw]:
        attribute = description_of(description).key.names[0]
        value = _partition_value(attribute, entry)
        if value is not None:
            bucket = _Bucket(description["TableName"], kind, partition=json.dumps(value))
            error = self._named(description)
            refusal = Throttled(error, kind, description["TableArn"], is_key_range=True)
            yield _Draw(bucket, self._partition[kind], refusal)

    def _named(self, description: Mapping[str, Any]) -> str:
        if self._error is not None:
            return self._error
        billing = description.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
        return _PROVISIONED if billing == "PROVISIONED" else _ON_DEMAND

    def _take(self, consumed: Any, draws: list[_Draw]) -> None:
        for each in consumed if isinstance(consumed, list) else [consumed] if consumed else []:
            table = table_name(each["TableName"])
            indexes = {
                name: part["CapacityUnits"]
                for name, part in each.get("GlobalSecondaryIndexes", {}).items()
            }
            units = each["CapacityUnits"] - sum(indexes.values())
            own = [draw for draw in draws if draw.bucket.table == table]
            partitions = [draw for draw in own if draw.bucket.partition is not None]
            for draw in partitions:
                self._buckets.take(draw.bucket, draw.rate, units / len(partitions))
            for bucket, rate in {draw.bucket: draw.rate for draw in own}.items():
                if bucket.partition is None:
                    index = bucket.index
                    amount = units if index is None else indexes.get(index, 0.0)
                    self._buckets.take(bucket, rate, amount)


def _entries(call: InterceptedCall) -> Entries:
    """The parts of a request that are admitted separately: a table, and members with a key."""
    request = call.request
    if "RequestItems" in request:
        return entries_of(call)
    if "TransactItems" in request:
        return [
            (members["TableName"], members)
            for entry in request["TransactItems"]
            for members in entry.values()
        ]
    statements = request.get("Statements") or request.get("TransactStatements")
    if statements:
        return [(_table_of(each["Statement"]), {}) for each in statements]
    return [(table, request) for table in call.tables]


def _table_of(statement: str) -> str:
    """The table of a statement; empty if it names none, which the database refuses."""
    return min(tables_of_statement(statement), default="")


def _partition_value(attribute: str, entry: Mapping[str, Any]) -> Any:
    """The value of the partition key in a request or an entry; None if there is none, or several."""
    for name in ("PutRequest", "DeleteRequest"):
        entry = entry.get(name, entry)
    for name in ("Item", "Key"):
        if name in entry:
            return entry[name].get(attribute)
    if attribute in entry:
        return entry[attribute]
    if "KeyConditionExpression" in entry and "IndexName" not in entry:
        text = as_text(entry)
        names = text.get("ExpressionAttributeNames", {})
        for name, value in _EQUALITY.findall(text["KeyConditionExpression"]):
            if names.get(name, name) == attribute:
                values = text.get("ExpressionAttributeValues", {})
                return values.get(value)  # None: the database refuses the undefined value
    return None


def _with_capacity(response: Response, asked: str) -> Response:
    """The response with as much of the consumed capacity as the caller asked for."""
    if asked == "INDEXES" or "ConsumedCapacity" not in response:
        return response
    if asked == "NONE":
        return {name: each for name, each in response.items() if name != "ConsumedCapacity"}
    consumed = response["ConsumedCapacity"]
    many = consumed if isinstance(consumed, list) else [consumed]
    short = [{name: each[name] for name in each if name in _TOTAL} for each in many]
    return {**response, "ConsumedCapacity": short if isinstance(consumed, list) else short[0]}


_TOTAL: Final = ("TableName", "CapacityUnits", "ReadCapacityUnits", "WriteCapacityUnits")
