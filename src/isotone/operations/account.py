"""DescribeLimits (the account's capacity quotas) and DescribeEndpoints."""

from __future__ import annotations

from typing import Final

from isotone.engine.engine import Engine
from isotone.operations.action import Answer, action
from isotone.operations.request_members import ApiStructure
from isotone.operations.table_lookup import partition_of


class DescribeLimits(ApiStructure, frozen=True):
    """Ask for the account's capacity limits."""


class DescribeEndpoints(ApiStructure, frozen=True):
    """Ask where to send requests."""


_ENDPOINT_MINUTES: Final = 1440


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
    """The endpoint of the region, for SDKs that discover it."""
    domain = "amazonaws.com.cn" if partition_of(engine.region) == "aws-cn" else "amazonaws.com"
    address = f"dynamodb.{engine.region}.{domain}"
    return {"Endpoints": [{"Address": address, "CachePeriodInMinutes": _ENDPOINT_MINUTES}]}
