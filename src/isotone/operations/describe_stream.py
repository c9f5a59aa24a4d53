"""DescribeStream: what a stream records, and its shards, the oldest first, a page at a time."""

from __future__ import annotations

from typing import Any

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.streams import registry
from isotone.engine.streams.positions import sequence_text
from isotone.engine.streams.registry import Shard
from isotone.errors import ValidationException
from isotone.operations.action import Answer, action
from isotone.operations.describe import key_elements
from isotone.operations.rules.parameters import INVALID
from isotone.operations.shapes.streams import DescribeStream, ShardFilter
from isotone.operations.streams import stream_arn, stream_of_arn


@action("DescribeStream")
def run(engine: Engine, request: DescribeStream) -> Answer:
    limit = request.limit or limits.DESCRIBED_SHARDS
    if limit > limits.DESCRIBED_SHARDS:
        raise ValidationException(
            f"{INVALID}Limit cannot be greater than the maximum: {limits.DESCRIBED_SHARDS}"
        )
    if request.shard_filter is not None and request.shard_filter.type is None:
        raise ValidationException(
            "1 validation error detected: Value 'null' at 'shardFilter.type' failed to satisfy "
            "constraint: Member must be CHILD_SHARDS"
        )
    with engine.reading:
        stream = stream_of_arn(engine, request.stream_arn)
        shards = registry.shards(engine, stream)
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


def _filtered(shards: list[Shard], wanted: ShardFilter | None) -> list[Shard]:
    """The shards that a filter lets through: the children of one."""
    if wanted is None:
        return shards
    return [shard for shard in shards if shard.parent and shard.parent == wanted.shard_id]


def _described(shard: Shard) -> dict[str, Any]:
    numbers = {"StartingSequenceNumber": sequence_text(shard.first)}
    if shard.last is not None:
        numbers["EndingSequenceNumber"] = sequence_text(shard.last)
    described: dict[str, Any] = {"ShardId": shard.id, "SequenceNumberRange": numbers}
    if shard.parent is not None:
        described["ParentShardId"] = shard.parent
    return described
