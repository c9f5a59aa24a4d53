"""The parameters of the actions on streams, as boto3's client of DynamoDB Streams takes them.

See `item_requests`.
"""

from __future__ import annotations

from typing import Annotated, Required, TypedDict

from msgspec import Meta

from isotone.backends.item_requests import Name, Positive

StreamArn = Annotated[str, Meta(min_length=37)]
ShardId = Annotated[str, Meta(min_length=28)]
SequenceNumber = Annotated[str, Meta(min_length=21)]
TableName = Annotated[str, Meta(min_length=3)]


class ListStreamsInput(TypedDict, total=False):
    TableName: TableName
    Limit: Positive
    ExclusiveStartStreamArn: StreamArn


class ShardFilter(TypedDict, total=False):
    Type: str
    ShardId: ShardId


class DescribeStreamInput(TypedDict, total=False):
    StreamArn: Required[StreamArn]
    Limit: Positive
    ExclusiveStartShardId: ShardId
    ShardFilter: ShardFilter


class GetShardIteratorInput(TypedDict, total=False):
    StreamArn: Required[StreamArn]
    ShardId: Required[ShardId]
    ShardIteratorType: Required[str]
    SequenceNumber: SequenceNumber


class GetRecordsInput(TypedDict, total=False):
    ShardIterator: Required[Name]
    Limit: Positive
