"""DescribeEndpoints: where to send requests, for SDKs that discover it."""

from __future__ import annotations

from isotone.engine.engine import Engine
from isotone.operations.action import Answer, action
from isotone.operations.shapes.settings import DescribeEndpoints

_CACHE_MINUTES = 1440


@action("DescribeEndpoints")
def run(engine: Engine, request: DescribeEndpoints) -> Answer:
    address = f"dynamodb.{engine.region}.amazonaws.com"
    return {"Endpoints": [{"Address": address, "CachePeriodInMinutes": _CACHE_MINUTES}]}
