"""ListStreams: the streams of one table or of all, also of tables that are no more, a page at a time."""

from __future__ import annotations

from itertools import islice
from typing import Any

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.streams import registry
from isotone.errors import ValidationException
from isotone.operations.action import Answer, action
from isotone.operations.rules.parameters import INVALID
from isotone.operations.shapes.streams import ListStreams
from isotone.operations.streams import stream_arn


@action("ListStreams")
def run(engine: Engine, request: ListStreams) -> Answer:
    limit = request.limit or limits.LIST_STREAMS
    if limit > limits.LIST_STREAMS:
        raise ValidationException(
            f"{INVALID}Limit cannot be greater than the maximum allowed size: {limits.LIST_STREAMS}"
        )
    after = request.exclusive_start_stream_arn or ""
    with engine.reading:
        found = ((stream_arn(engine, each), each) for each in _streams(engine, request))
        page = list(islice(((arn, each) for arn, each in found if arn > after), limit + 1))
    shown = page[:limit]
    answer: dict[str, Any] = {
        "Streams": [
            {"StreamArn": arn, "TableName": stream.table, "StreamLabel": stream.label}
            for arn, stream in shown
        ]
    }
    if len(page) > limit:
        answer["LastEvaluatedStreamArn"] = shown[-1][0]
    return answer


def _streams(engine: Engine, request: ListStreams) -> list[registry.Stream]:
    """The streams in the order of their ARNs, by which a page says where it ended."""
    found = registry.streams(engine, request.table_name)
    return sorted(found, key=lambda stream: stream_arn(engine, stream))
