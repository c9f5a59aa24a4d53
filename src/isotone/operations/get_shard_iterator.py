"""GetShardIterator: a position in a shard, from which GetRecords reads."""

from __future__ import annotations

from isotone.engine.engine import Engine
from isotone.engine.streams import positions, registry
from isotone.errors import ResourceNotFoundException
from isotone.operations.action import Answer, action
from isotone.operations.shapes.streams import GetShardIterator
from isotone.operations.streams import stream_of_arn


@action("GetShardIterator")
def run(engine: Engine, request: GetShardIterator) -> Answer:
    arn = request.stream_arn
    with engine.reading:
        stream = stream_of_arn(engine, arn, "Requested resource not found: Stream does not exist")
        shards = registry.shards(engine, stream)
        shard = next((each for each in shards if each.id == request.shard_id), None)
        if shard is None:
            raise ResourceNotFoundException("Requested resource not found: Shard does not exist")
        sequence = positions.start(
            engine, stream, shard, request.shard_iterator_type, request.sequence_number
        )
    made = int(engine.clock.now() * 1000)
    iterator = positions.Iterator(arn, shard.number, sequence, made)
    return {"ShardIterator": positions.write(iterator)}
