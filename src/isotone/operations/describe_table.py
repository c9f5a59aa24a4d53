"""DescribeTable: what a table is like, with counts that are true at this moment."""

from __future__ import annotations

from isotone.engine.engine import Engine
from isotone.operations.action import Answer, action
from isotone.operations.describe import table_description
from isotone.operations.shapes.tables import DescribeTable
from isotone.operations.tables import described_table


@action("DescribeTable")
def run(engine: Engine, request: DescribeTable) -> Answer:
    with engine.reading:
        table = described_table(engine, request.table_name)
        return {"Table": table_description(engine, table.schema)}
