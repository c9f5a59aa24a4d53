"""Requests of DynamoDB Streams, which is a service of its own to the SDKs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from isotone.operations.shapes.members import EntityName, PositiveInteger, Structure

StreamArn = Annotated[str, Meta(min_length=37, max_length=1024)]
ShardId = Annotated[str, Meta(min_length=28, max_length=65)]
SequenceNumber = Annotated[str, Meta(min_length=21, max_length=40)]
ShardIterator = Annotated[str, Meta(min_length=1, max_length=2048)]
ShardIteratorType = Literal["AFTER_SEQUENCE_NUMBER", "LATEST", "AT_SEQUENCE_NUMBER", "TRIM_HORIZON"]


class ListStreams(Structure, frozen=True):
    """Ask for the streams of one table or of all, a page at a time."""

    table_name: EntityName | None = None
    limit: PositiveInteger | None = None
    exclusive_start_stream_arn: StreamArn | None = None


class ShardFilter(Structure, frozen=True):
    """Which shards to describe: the children of one."""

    type: Literal["CHILD_SHARDS"] | None = None
    shard_id: ShardId | None = None


class DescribeStream(Structure, frozen=True):
    """Ask for a stream's state and shards, a page at a time."""

    stream_arn: StreamArn
    limit: PositiveInteger | None = None
    exclusive_start_shard_id: ShardId | None = None
    shard_filter: ShardFilter | None = None


class GetShardIterator(Structure, frozen=True):
    """Ask for a position in a shard."""

    stream_arn: StreamArn
    shard_id: ShardId
    shard_iterator_type: ShardIteratorType
    sequence_number: SequenceNumber | None = None


class GetRecords(Structure, frozen=True):
    """Read the records of a shard from a position on."""

    shard_iterator: ShardIterator
    limit: PositiveInteger | None = None
