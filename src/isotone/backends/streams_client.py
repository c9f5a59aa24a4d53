"""A client shaped like boto3's low-level one for DynamoDB Streams, a service of its own to boto3."""

from __future__ import annotations

from typing import Unpack

from isotone.backends import stream_requests as streams
from isotone.backends.actions import Response
from isotone.backends.client import Caller, Execute, Meta
from isotone.backends.failures import MODELED_BY_STREAMS, ClientExceptions

_METHODS = {
    "describe_stream": "DescribeStream",
    "get_records": "GetRecords",
    "get_shard_iterator": "GetShardIterator",
    "list_streams": "ListStreams",
}


class StreamsClient(Caller):
    """boto3's client of DynamoDB Streams over a function from request bytes to response bytes.

    >>> client = StreamsClient(lambda operation, body: b'{"Streams":[]}')
    >>> client.list_streams(TableName="music")["Streams"]
    []
    """

    __slots__ = ()

    def __init__(self, execute: Execute, *, region_name: str = "us-east-1") -> None:
        super().__init__(
            execute,
            ClientExceptions(MODELED_BY_STREAMS),
            Meta(region_name, f"https://streams.dynamodb.{region_name}.amazonaws.com", _METHODS),
        )

    def list_streams(self, **request: Unpack[streams.ListStreamsInput]) -> Response:
        """Tell the streams of a table or of all, a page at a time."""
        return self._call("ListStreams", request)

    def describe_stream(self, **request: Unpack[streams.DescribeStreamInput]) -> Response:
        """Tell a stream's state and its shards, a page at a time."""
        return self._call("DescribeStream", request)

    def get_shard_iterator(self, **request: Unpack[streams.GetShardIteratorInput]) -> Response:
        """Take a position in a shard."""
        return self._call("GetShardIterator", request)

    def get_records(self, **request: Unpack[streams.GetRecordsInput]) -> Response:
        """Read records from a position on, and the position after them."""
        return self._call("GetRecords", request)

    def can_paginate(self, operation_name: str) -> bool:
        """Whether there is a paginator for a method: boto3 has none for streams."""
        return False
