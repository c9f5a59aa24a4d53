"""DescribeLimits: the quotas of an account, as a new one has them."""

from __future__ import annotations

from isotone.engine.engine import Engine
from isotone.operations.action import Answer, action
from isotone.operations.shapes.settings import DescribeLimits


@action("DescribeLimits")
def run(_engine: Engine, request: DescribeLimits) -> Answer:
    return {
        "AccountMaxReadCapacityUnits": 80_000,
        "AccountMaxWriteCapacityUnits": 80_000,
        "TableMaxReadCapacityUnits": 40_000,
        "TableMaxWriteCapacityUnits": 40_000,
    }
