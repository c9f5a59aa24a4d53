"""Streams as requests name them: by ARN."""

from __future__ import annotations

from isotone.engine.engine import Engine
from isotone.engine.streams import registry
from isotone.engine.streams.registry import Stream
from isotone.errors import ResourceNotFoundException
from isotone.operations.tables import table_arn

STREAM_NOT_FOUND = "Requested resource not found: Stream: {arn} not found"


def stream_arn(engine: Engine, stream: Stream) -> str:
    """The ARN of a stream."""
    return f"{table_arn(engine, stream.table)}/stream/{stream.label}"


def stream_of_arn(engine: Engine, arn: str, refusal: str = STREAM_NOT_FOUND) -> Stream:
    """The stream of an ARN: one that records, or did so within the last day."""
    parts = arn.split("/")  # …:table/NAME/stream/LABEL
    found = registry.find(engine, parts[1], parts[3]) if len(parts) == 4 else None
    if found is None or stream_arn(engine, found) != arn:
        raise ResourceNotFoundException(refusal.format(arn=arn))
    return found
