"""The tables that the tools get: those of all examples, of published models, and some with every feature."""

from __future__ import annotations

import msgspec
from tests.schema.tables import ALL_FEATURES, EXAMPLES, example_tables
from tests.schema.test_workbench_models import FILES, table_of

from isotone.schema.deployable import DeployableTable


def sources() -> dict[str, list[DeployableTable]]:
    """The tables by what they are from, without what documents them."""
    found = {f"example_{name}": example_tables(name) for name in EXAMPLES}
    found |= {f"model_{path.stem}": [table_of(path)] for path in FILES}
    found["features"] = ALL_FEATURES
    return {
        name: [
            msgspec.structs.replace(table, attributes={}, facets=(), items=()) for table in tables
        ]
        for name, tables in found.items()
    }
