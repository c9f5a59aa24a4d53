"""DescribeTimeToLive: whether a table's items expire, and by which attribute."""

from __future__ import annotations

from typing import Any

from isotone.engine.engine import Engine
from isotone.operations.action import Answer, action
from isotone.operations.shapes.settings import DescribeTimeToLive
from isotone.operations.tables import described_table


@action("DescribeTimeToLive")
def run(engine: Engine, request: DescribeTimeToLive) -> Answer:
    with engine.reading:
        ttl = described_table(engine, request.table_name).schema.ttl
    described: dict[str, Any] = {"TimeToLiveStatus": "DISABLED" if ttl is None else "ENABLED"}
    if ttl is not None:
        described["AttributeName"] = ttl.attribute
    return {"TimeToLiveDescription": described}
