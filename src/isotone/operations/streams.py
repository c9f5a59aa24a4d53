"""The API of DynamoDB Streams: iterators (ExpiredIteratorException, trimmed positions), and the JSON of a record.

GetShardIterator returns an iterator, which contains the position of a reader. It is opaque to clients: the stream's
ARN, a version, and a text with a checksum, so that forged or damaged texts are refused. GetRecords reads from an
iterator on, and returns the next one.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode, b64encode
from hashlib import blake2b
from itertools import islice
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from isotone import limits
from isotone.clock import milliseconds
from isotone.engine import stream_lag, streams
from isotone.engine.engine import Engine
from isotone.engine.stream_records import (
    EXPIRE,
    INSERT,
    MODIFY,
    REMOVE,
    StreamRecord,
    first_since,
    last_sequence,
    read_page,
)
from isotone.engine.streams import Stream, StreamShard
from isotone.errors import (
    ExpiredIteratorException,
    ResourceNotFoundException,
    TrimmedDataAccessException,
    ValidationException,
)
from isotone.operations.action import ActionRule, Answer, action
from isotone.operations.descriptions import key_elements
from isotone.operations.item_validation import INVALID
from isotone.operations.request_members import (
    NAME_PATTERN,
    ApiStructure,
    EntityName,
    PositiveInteger,
    Timestamp,
)
from isotone.operations.request_validation import detected, problem
from isotone.operations.table_lookup import table_arn

StreamArn = Annotated[str, Meta(min_length=37, max_length=1024)]
ShardId = Annotated[str, Meta(min_length=28, max_length=65)]
SequenceNumber = Annotated[str, Meta(min_length=21, max_length=40)]
ShardIterator = Annotated[str, Meta(min_length=1, max_length=2048)]
ShardIteratorType = Literal[
    "AFTER_SEQUENCE_NUMBER", "LATEST", "AT_SEQUENCE_NUMBER", "TRIM_HORIZON", "AT_TIMESTAMP"
]


class ListStreams(ApiStructure, frozen=True):
    """Ask for the streams of one table or of all, a page at a time."""

    table_name: EntityName | None = None
    limit: PositiveInteger | None = None
    exclusive_start_stream_arn: StreamArn | None = None


class ShardFilter(ApiStructure, frozen=True):
    """Selects shards to describe: the children of one shard."""

    type: Literal["CHILD_SHARDS"] | None = None
    shard_id: ShardId | None = None


class DescribeStream(ApiStructure, frozen=True):
    """Ask for a stream's state and shards, a page at a time."""

    stream_arn: StreamArn
    limit: PositiveInteger | None = None
    exclusive_start_shard_id: ShardId | None = None
    shard_filter: ShardFilter | None = None


class GetShardIterator(ApiStructure, frozen=True):
    """Ask for a position in a shard."""

    stream_arn: StreamArn
    shard_id: ShardId
    shard_iterator_type: ShardIteratorType
    sequence_number: SequenceNumber | None = None
    timestamp: Timestamp | None = None


class GetRecords(ApiStructure, frozen=True):
    """Read the records of a shard from a position on."""

    shard_iterator: ShardIterator
    limit: PositiveInteger | None = None


STREAM_NOT_FOUND: Final = "Requested resource not found: Stream: {arn} not found"
NO_STREAM: Final = "Requested resource not found: Stream does not exist"
_NO_SHARD: Final = "Requested resource not found: Shard does not exist"
_EVENT_NAMES: Final = {INSERT: "INSERT", MODIFY: "MODIFY", REMOVE: "REMOVE", EXPIRE: "REMOVE"}
_TIME_TO_LIVE: Final = {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}
_SEQUENCE_BASE: Final = 10**20  # added so that all numbers have 21 digits, like the service's


def _at_most(most: int, sentence: str) -> ActionRule:
    def check(request: ListStreams | DescribeStream | GetRecords) -> None:
        if request.limit is not None and request.limit > most:
            raise ValidationException(f"{INVALID}Limit {sentence} {most}")

    return ActionRule(f"a Limit above {most:,}", check)


def _check_start(request: ListStreams) -> None:
    if request.exclusive_start_stream_arn is not None:
        _parts_of(request.exclusive_start_stream_arn)


@action(
    "ListStreams",
    before=(
        _at_most(limits.LIST_STREAMS, "cannot be greater than the maximum allowed size:"),
        ActionRule("an ExclusiveStartStreamArn that is not that of a stream", _check_start),
    ),
)
def list_streams(engine: Engine, request: ListStreams) -> Answer:
    """The streams of one table or of all, including deleted tables, a page at a time."""
    limit = request.limit or limits.LIST_STREAMS
    after = request.exclusive_start_stream_arn or ""
    with engine.reading_beside as engine:
        by_arn = {
            stream_arn(engine, stream): stream
            for stream in streams.known(engine, request.table_name)
        }
    page = list(islice((arn for arn in sorted(by_arn) if arn > after), limit + 1))
    answer: dict[str, Any] = {
        "Streams": [
            {"StreamArn": arn, "TableName": by_arn[arn].table, "StreamLabel": by_arn[arn].label}
            for arn in page[:limit]
        ]
    }
    if len(page) > limit:
        answer["LastEvaluatedStreamArn"] = page[limit - 1]
    return answer


def _check_filter_type(request: DescribeStream) -> None:
    if request.shard_filter is not None and request.shard_filter.type is None:
        raise detected(problem("'null'", "shardFilter.type", "Member must be CHILD_SHARDS"))


def _check_filter_shard(request: DescribeStream) -> None:
    if request.shard_filter is not None and request.shard_filter.shard_id is None:
        raise ValidationException(f"{INVALID}ShardId must be passed for a ShardFilter of this type")


def _check_filter_alone(request: DescribeStream) -> None:
    if request.shard_filter is not None and request.exclusive_start_shard_id is not None:
        raise ValidationException(
            "ShardFilter and ExclusiveStartShardId both should not be specified in the request."
        )


@action(
    "DescribeStream",
    before=(
        _at_most(limits.DESCRIBED_SHARDS, "cannot be greater than the maximum:"),
        ActionRule("a ShardFilter without Type", _check_filter_type),
        ActionRule("a ShardFilter without ShardId", _check_filter_shard),
        ActionRule("ShardFilter together with ExclusiveStartShardId", _check_filter_alone),
    ),
)
def describe_stream(engine: Engine, request: DescribeStream) -> Answer:
    """A stream's settings and its shards, oldest first, a page at a time."""
    limit = request.limit or limits.DESCRIBED_SHARDS
    with engine.reading_beside as engine:
        stream = stream_of_arn(engine, request.stream_arn)
        shards = streams.shards(engine, stream)
    after = request.exclusive_start_shard_id or ""
    wanted = _filtered(sorted(shards, key=lambda shard: shard.id), request.shard_filter)
    page = [shard for shard in wanted if shard.id > after]
    description: dict[str, Any] = {
        "StreamArn": stream_arn(engine, stream),
        "StreamLabel": stream.label,
        "StreamStatus": "ENABLED" if stream.disabled is None else "DISABLED",
        "StreamViewType": stream.view,
        "CreationRequestDateTime": stream.created,
        "TableName": stream.table,
        "KeySchema": key_elements(stream.keys),
        "Shards": [_described(shard) for shard in page[:limit]],
    }
    if len(page) > limit:
        description["LastEvaluatedShardId"] = page[limit - 1].id
    return {"StreamDescription": description}


def _filtered(shards: list[StreamShard], wanted: ShardFilter | None) -> list[StreamShard]:
    """The shards that a filter selects: the children of one shard."""
    if wanted is None:
        return shards
    return [shard for shard in shards if shard.parent and shard.parent == wanted.shard_id]


def _described(shard: StreamShard) -> dict[str, Any]:
    numbers = {"StartingSequenceNumber": sequence_text(shard.first)}
    if shard.last is not None:
        numbers["EndingSequenceNumber"] = sequence_text(shard.last)
    described: dict[str, Any] = {"ShardId": shard.id, "SequenceNumberRange": numbers}
    if shard.parent is not None:
        described["ParentShardId"] = shard.parent
    return described


@action("GetShardIterator")
def get_shard_iterator(engine: Engine, request: GetShardIterator) -> Answer:
    """A position in a shard, from which GetRecords reads."""
    arn = request.stream_arn
    with engine.reading_beside as engine:
        stream = stream_of_arn(engine, arn, NO_STREAM)
        shard = shard_of(engine, stream, request.shard_id)
        sequence = _start(engine, stream, shard, request)
    return {
        "ShardIterator": _text_of(Iterator(arn, shard.number, sequence, milliseconds(engine.clock)))
    }


def shard_of(engine: Engine, stream: Stream, shard_id: str) -> StreamShard:
    """The shard of a stream with an id."""
    for shard in streams.shards(engine, stream):
        if shard.id == shard_id:
            return shard
    raise ResourceNotFoundException(_NO_SHARD)


@action(
    "GetRecords",
    before=(_at_most(limits.STREAM_RECORDS, "should be less than or equal to"),),
)
def get_records(engine: Engine, request: GetRecords) -> Answer:
    """The records of a shard from a position on, and the position after them."""
    iterator = _iterator_in(request.shard_iterator)
    if milliseconds(engine.clock) - iterator.made > limits.ITERATOR_LIFETIME * 1000:
        raise ExpiredIteratorException(
            "The shard iterator has expired and can no longer be used to retrieve stream records. "
            "A shard iterator expires 15 minutes after it is retrieved using the GetShardIterator action."
        )
    with engine.reading_beside as reader:
        stream = stream_of_arn(reader, iterator.arn)
        shard = streams.shard(reader, stream, iterator.shard)
        if shard is None:
            raise ResourceNotFoundException(_NO_SHARD)
        _refuse_trimmed(shard, iterator.sequence)
        page = read_page(
            reader,
            stream.tree,
            shard.number,
            iterator.sequence,
            request.limit,
            closed=shard.last is not None,
        )
    stream_lag.note(engine, stream, shard, page.next)
    answer: dict[str, Any] = {
        "Records": [
            _shown(engine, stream, iterator.arn, sequence, record)
            for sequence, record in page.records
        ]
    }
    if page.next is not None:
        following = iterator._replace(sequence=page.next, made=milliseconds(engine.clock))
        answer["NextShardIterator"] = _text_of(following)
    return answer


def _shown(
    engine: Engine, stream: Stream, arn: str, sequence: int, record: StreamRecord
) -> dict[str, Any]:
    change: dict[str, Any] = {
        "ApproximateCreationDateTime": record.time // 1000,
        "Keys": msgspec.Raw(record.keys),
    }
    if record.new:
        change["NewImage"] = msgspec.Raw(record.new)
    if record.old:
        change["OldImage"] = msgspec.Raw(record.old)
    number = sequence_text(sequence)
    change |= {
        "SequenceNumber": number,
        "SizeBytes": record.size,
        "StreamViewType": stream.view,
    }
    shown: dict[str, Any] = {
        "eventID": blake2b(f"{arn}/{number}".encode(), digest_size=16).hexdigest(),
        "eventName": _EVENT_NAMES[record.event],
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": engine.region,
        "dynamodb": change,
    }
    if record.event == EXPIRE:
        shown["userIdentity"] = _TIME_TO_LIVE
    return shown


def stream_arn(engine: Engine, stream: Stream) -> str:
    """The ARN of a stream."""
    return f"{table_arn(engine, stream.table)}/stream/{stream.label}"


def stream_of_arn(engine: Engine, arn: str, refusal: str = STREAM_NOT_FOUND) -> Stream:
    """The stream of an ARN. It is enabled, or was within the last day."""
    stream = streams.find(engine, *_parts_of(arn))
    if stream is None or stream_arn(engine, stream) != arn:
        raise ResourceNotFoundException(refusal.format(arn=arn))
    return stream


_ARN: Final = re.compile(
    rf"arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]+:table/({NAME_PATTERN})/stream/([0-9T:.-]+)"
)


def _parts_of(arn: str) -> tuple[str, str]:
    """The table and the label of a stream's ARN."""
    parts = _ARN.fullmatch(arn)
    if parts is None:
        raise ValidationException("Invalid StreamArn")
    return parts[1], parts[2]


# Positions and iterators

_VERSION: Final = "1"
_PAYLOAD: Final = struct.Struct(">IQQ")
_CHECKSUM: Final = 4


class Iterator(NamedTuple):
    """The position of the next record to read: at or after `sequence`. `made` is in milliseconds."""

    arn: str
    shard: int
    sequence: int
    made: int


def sequence_text(sequence: int) -> str:
    """A sequence number as clients see it."""
    return str(_SEQUENCE_BASE + sequence)


def _sequence_in(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValidationException(f"{INVALID}Invalid SequenceNumber")
    return int(text) - _SEQUENCE_BASE


def _text_of(iterator: Iterator) -> str:
    """An iterator as clients see it."""
    arn, *numbers = iterator
    payload = _PAYLOAD.pack(*numbers)
    return f"{arn}|{_VERSION}|{b64encode(payload + _checksum(arn, payload)).decode()}"


def arn_of_iterator(text: str) -> str:
    """The ARN of the stream that an iterator reads. Raises `ValidationException` for a text that we did not make."""
    return _iterator_in(text).arn


def _iterator_in(text: str) -> Iterator:
    """The iterator in a text. Raises `ValidationException` for a text that we did not make."""
    arn, _, rest = text.partition("|")
    version, _, encoded = rest.partition("|")
    try:
        decoded = b64decode(encoded, validate=True)
    except ValueError:
        decoded = b""
    payload, checksum = decoded[:-_CHECKSUM], decoded[-_CHECKSUM:]
    if version != _VERSION or len(payload) != _PAYLOAD.size or checksum != _checksum(arn, payload):
        raise ValidationException("Invalid ShardIterator")
    return Iterator(arn, *_PAYLOAD.unpack(payload))


def _checksum(arn: str, payload: bytes) -> bytes:
    return blake2b(arn.encode() + payload, digest_size=_CHECKSUM).digest()


def _start(engine: Engine, stream: Stream, shard: StreamShard, request: GetShardIterator) -> int:
    """The sequence number at which an iterator of a type starts."""
    # The latest number that can be in the shard; an open shard may still be empty.
    end = max(last_sequence(engine, stream.tree), shard.first - 1)
    if shard.last is not None:
        end = shard.last
    kind = request.shard_iterator_type
    check_position(request)
    oldest = max(shard.first, shard.trimmed + 1)
    if kind == "TRIM_HORIZON":
        return oldest
    if kind == "LATEST":
        return end + 1
    if kind == "AT_TIMESTAMP":
        time = _time_in(engine, request)
        found = first_since(engine, stream.tree, shard.number, oldest, time)
        return end + 1 if found is None else found
    assert request.sequence_number is not None
    sequence = _sequence_in(request.sequence_number)
    # A shard without records still has a first number.
    if not shard.first <= sequence <= max(end, shard.first):
        raise ValidationException("Invalid SequenceNumber for the shard")
    _refuse_trimmed(shard, sequence)
    return sequence + (kind == "AFTER_SEQUENCE_NUMBER")


def check_position(request: GetShardIterator) -> None:
    """Refuse a sequence number or a time that its type of iterator does not use, and one that is missing."""
    kind = request.shard_iterator_type
    by_number, by_time = kind.endswith("SEQUENCE_NUMBER"), kind == "AT_TIMESTAMP"
    for name, given, wanted in (
        ("SequenceNumber", request.sequence_number, by_number),
        ("Timestamp", request.timestamp, by_time),
    ):
        if given is not None and not wanted:
            raise ValidationException(
                f"{INVALID}{name} should not be passed for this iterator type"
            )
    if by_number and request.sequence_number is None:
        raise ValidationException(f"{INVALID}Invalid SequenceNumber")
    if by_time and request.timestamp is None:
        raise ValidationException(f"{INVALID}Timestamp must be passed for this iterator type")


def _time_in(engine: Engine, request: GetShardIterator) -> int:
    """The time at which an iterator starts, in milliseconds."""
    assert request.timestamp is not None
    time = round(request.timestamp * 1000)
    if time > milliseconds(engine.clock):
        raise ValidationException(f"{INVALID}Timestamp should not be in the future")
    return time


def _refuse_trimmed(shard: StreamShard, sequence: int) -> None:
    """Refuse a position whose records have been dropped."""
    if sequence <= shard.trimmed:
        raise TrimmedDataAccessException("The data you are trying to access has been trimmed")
