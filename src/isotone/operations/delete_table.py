"""DeleteTable: a table is gone, with everything in it, when the answer is there."""

from __future__ import annotations

from isotone.engine import backfill
from isotone.engine.engine import Engine
from isotone.engine.streams import registry
from isotone.errors import ValidationException
from isotone.operations.action import Answer, action
from isotone.operations.describe import table_description
from isotone.operations.shapes.tables import DeleteTable
from isotone.operations.tables import described_table


@action("DeleteTable")
def run(engine: Engine, request: DeleteTable) -> Answer:
    with engine.writing:
        table = described_table(engine, request.table_name)
        if table.schema.deletion_protection:
            raise ValidationException(
                "Resource cannot be deleted as it is currently protected against deletion. "
                "Disable deletion protection first."
            )
        description = table_description(engine, table.schema, "DELETING")
        if table.stream is not None:
            registry.disable(engine, table.schema)  # it can be read for another day
        engine.catalog.remove(table.name)
        for tree in table.trees:
            engine.store.drop_tree(tree)
            engine.counts.drop(tree)
            backfill.cancel(engine, tree)
        return {"TableDescription": description}
