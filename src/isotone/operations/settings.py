"""The actions on expiry (TTL), tags, account limits and endpoints."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from isotone.engine import backfill
from isotone.engine.engine import Engine
from isotone.engine.table_schema import TableSchema, TimeToLive
from isotone.errors import ValidationException
from isotone.operations import replicas
from isotone.operations.action import NO_BODY, Answer, action
from isotone.operations.request_grammar import NAME_PATTERN
from isotone.operations.request_members import (
    ControlTableName,
    Flag,
    ResourceArn,
    Structure,
    Tag,
    TagKey,
)
from isotone.operations.table_lookup import (
    changed_table,
    described_table,
    partition_of,
    table_of_arn,
)
from isotone.operations.tag_validation import check_tag_count, check_tags


class TimeToLiveSpecification(Structure, frozen=True):
    """The attribute with an item's expiry."""

    enabled: Flag
    attribute_name: Annotated[str, Meta(min_length=1, max_length=255)]


class UpdateTimeToLive(Structure, frozen=True):
    """Turn expiry on or off."""

    table_name: ControlTableName
    time_to_live_specification: TimeToLiveSpecification


class DescribeTimeToLive(Structure, frozen=True):
    """Ask whether items expire, and by which attribute."""

    table_name: ControlTableName


class TagResource(Structure, frozen=True):
    """Add or replace tags."""

    resource_arn: ResourceArn
    tags: list[Tag]


class UntagResource(Structure, frozen=True):
    """Remove tags."""

    resource_arn: ResourceArn
    tag_keys: list[TagKey]


class ListTagsOfResource(Structure, frozen=True):
    """Ask for a table's tags."""

    resource_arn: ResourceArn
    next_token: str | None = None


class DescribeLimits(Structure, frozen=True):
    """Ask for the account's capacity limits."""


class DescribeEndpoints(Structure, frozen=True):
    """Ask where to send requests."""


_TABLE_ARN: Final = re.compile(rf"arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]+:table/{NAME_PATTERN}")
_TAGS_PAGE: Final = 10
_ENDPOINT_MINUTES: Final = 1440


# Expiry


@action("DescribeTimeToLive")
def describe_time_to_live(engine: Engine, request: DescribeTimeToLive) -> Answer:
    with engine.reading:
        ttl = described_table(engine, request.table_name).schema.ttl
    described: dict[str, Any] = {"TimeToLiveStatus": "DISABLED" if ttl is None else "ENABLED"}
    if ttl is not None:
        described["AttributeName"] = ttl.attribute
    return {"TimeToLiveDescription": described}


@action("UpdateTimeToLive", starts_work=True)
def update_time_to_live(engine: Engine, request: UpdateTimeToLive) -> Answer:
    wanted = request.time_to_live_specification
    with engine.writing:
        schema = changed_table(engine, request.table_name).schema
        _check_time_to_live(schema.ttl, wanted)
        _set_time_to_live(engine, schema, wanted)
        if replicas.follows(schema):
            for region, replica in replicas.others(engine, schema):
                with region.writing:
                    _set_time_to_live(region, replica, wanted)
    specification = {"AttributeName": wanted.attribute_name, "Enabled": wanted.enabled}
    return {"TimeToLiveSpecification": specification}


def _set_time_to_live(engine: Engine, schema: TableSchema, wanted: TimeToLiveSpecification) -> None:
    if wanted.enabled:
        _enable(engine, schema, wanted.attribute_name)
    elif schema.ttl is not None:
        engine.catalog.save(msgspec.structs.replace(schema, ttl=None))
        backfill.drop(engine, schema.ttl.tree)


def _check_time_to_live(ttl: TimeToLive | None, wanted: TimeToLiveSpecification) -> None:
    if ttl is None and not wanted.enabled:
        raise ValidationException("TimeToLive is already disabled")
    if ttl is not None and ttl.attribute != wanted.attribute_name:
        raise ValidationException(
            f"TimeToLive is active on a different AttributeName: current AttributeName is {ttl.attribute}"
        )
    if ttl is not None and wanted.enabled:
        raise ValidationException("TimeToLive is already enabled")


def _enable(engine: Engine, schema: TableSchema, attribute: str) -> None:
    tree = engine.catalog.new_tree("x")
    backfill.begin(engine, schema.name, tree)
    engine.catalog.save(msgspec.structs.replace(schema, ttl=TimeToLive(attribute, tree)))


# Tags


@action("TagResource")
def tag_resource(engine: Engine, request: TagResource) -> Answer:
    """Add tags to a table, or replace their values."""
    _check_arn(request.resource_arn)
    if not request.tags:
        raise ValidationException("Atleast one Tag needs to be provided as Input.")
    check_tags(request.tags)
    with engine.writing:
        schema = table_of_arn(engine, request.resource_arn).schema
        tags = {**schema.tags, **{tag.key: tag.value for tag in request.tags}}
        check_tag_count(len(tags))
        engine.catalog.save(msgspec.structs.replace(schema, tags=tags))
    return NO_BODY


@action("UntagResource")
def untag_resource(engine: Engine, request: UntagResource) -> Answer:
    """Remove tags from a table; a missing tag is not an error."""
    _check_arn(request.resource_arn)
    if not request.tag_keys:
        raise ValidationException("Atleast one Tag Key needs to be provided as Input.")
    with engine.writing:
        schema = table_of_arn(engine, request.resource_arn).schema
        tags = {key: value for key, value in schema.tags.items() if key not in request.tag_keys}
        engine.catalog.save(msgspec.structs.replace(schema, tags=tags))
    return NO_BODY


@action("ListTagsOfResource")
def list_tags_of_resource(engine: Engine, request: ListTagsOfResource) -> Answer:
    """A table's tags, ten to a page. An unknown token means the first page."""
    _check_arn(request.resource_arn)
    with engine.reading:
        tags = list(table_of_arn(engine, request.resource_arn).schema.tags.items())
    pages = {str(first): first for first in range(0, len(tags), _TAGS_PAGE)}
    first = pages.get(request.next_token or "", 0)
    page = tags[first : first + _TAGS_PAGE]
    answer: dict[str, Any] = {"Tags": [{"Key": key, "Value": value} for key, value in page]}
    if first + _TAGS_PAGE < len(tags):
        answer["NextToken"] = str(first + _TAGS_PAGE)
    return answer


def _check_arn(arn: str) -> None:
    if not _TABLE_ARN.fullmatch(arn):
        raise ValidationException(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")


# The account


@action("DescribeLimits")
def describe_limits(_engine: Engine, request: DescribeLimits) -> Answer:
    """The quotas of a new account."""
    return {
        "AccountMaxReadCapacityUnits": 80_000,
        "AccountMaxWriteCapacityUnits": 80_000,
        "TableMaxReadCapacityUnits": 40_000,
        "TableMaxWriteCapacityUnits": 40_000,
    }


@action("DescribeEndpoints")
def describe_endpoints(engine: Engine, request: DescribeEndpoints) -> Answer:
    """Where to send requests, for SDKs that discover it."""
    domain = "amazonaws.com.cn" if partition_of(engine.region) == "aws-cn" else "amazonaws.com"
    address = f"dynamodb.{engine.region}.{domain}"
    return {"Endpoints": [{"Address": address, "CachePeriodInMinutes": _ENDPOINT_MINUTES}]}
