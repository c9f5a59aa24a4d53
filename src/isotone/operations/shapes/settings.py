"""Requests about what surrounds a table: expiry, tags, limits, endpoints."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from isotone.operations.shapes.members import ControlTableName, Flag, ResourceArn, Structure

TagKey = Annotated[str, Meta(min_length=1, max_length=128)]


class Tag(Structure, frozen=True):
    """A name and a value that the user gives a table."""

    key: TagKey
    value: Annotated[str, Meta(max_length=256)]


class TimeToLiveSpecification(Structure, frozen=True):
    """Which attribute says when an item expires."""

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
    """Take tags away."""

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
