"""GetRecords: the records of a shard from a position on, and the position after them."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import msgspec

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.streams import entries, positions, reading, registry
from isotone.engine.streams.entries import Entry
from isotone.engine.streams.positions import sequence_text
from isotone.engine.streams.registry import Stream
from isotone.errors import ResourceNotFoundException, ValidationException
from isotone.operations.action import Answer, action
from isotone.operations.rules.parameters import INVALID
from isotone.operations.shapes.streams import GetRecords
from isotone.operations.streams import stream_of_arn

_NAMES: Final = {
    entries.INSERT: "INSERT",
    entries.MODIFY: "MODIFY",
    entries.REMOVE: "REMOVE",
    entries.EXPIRE: "REMOVE",
}
_TIME_TO_LIVE: Final = {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}


@action("GetRecords")
def run(engine: Engine, request: GetRecords) -> Answer:
    if request.limit is not None and request.limit > limits.STREAM_RECORDS:
        raise ValidationException(
            f"{INVALID}Limit should be less than or equal to {limits.STREAM_RECORDS}"
        )
    iterator = positions.read(request.shard_iterator)
    positions.check_age(engine, iterator)
    with engine.reading:
        stream = stream_of_arn(engine, iterator.arn)
        shard = registry.shard(engine, stream, iterator.shard)
        if shard is None:
            raise ResourceNotFoundException("Requested resource not found: Shard does not exist")
        positions.check_trimmed(shard, iterator.sequence)
        page = reading.page(engine, stream, shard, iterator.sequence, request.limit)
    answer: dict[str, Any] = {
        "Records": [_record(engine, stream, iterator.arn, *each) for each in page.records]
    }
    if page.next is not None:
        made = int(engine.clock.now() * 1000)
        following = iterator._replace(sequence=page.next, made=made)
        answer["NextShardIterator"] = positions.write(following)
    return answer


def _record(
    engine: Engine, stream: Stream, arn: str, sequence: int, entry: Entry
) -> dict[str, Any]:
    change: dict[str, Any] = {
        "ApproximateCreationDateTime": entry.time // 1000,
        "Keys": msgspec.Raw(entry.keys),
    }
    if entry.new:
        change["NewImage"] = msgspec.Raw(entry.new)
    if entry.old:
        change["OldImage"] = msgspec.Raw(entry.old)
    number = sequence_text(sequence)
    change |= {
        "SequenceNumber": number,
        "SizeBytes": entry.size,
        "StreamViewType": stream.view,
    }
    record: dict[str, Any] = {
        "eventID": blake2b(f"{arn}/{number}".encode(), digest_size=16).hexdigest(),
        "eventName": _NAMES[entry.event],
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": engine.region,
        "dynamodb": change,
    }
    if entry.event == entries.EXPIRE:
        record["userIdentity"] = _TIME_TO_LIVE
    return record
