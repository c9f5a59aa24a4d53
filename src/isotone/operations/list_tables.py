"""ListTables: the names of all tables in order, a page at a time."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from isotone import limits
from isotone.engine.engine import Engine
from isotone.operations.action import Answer, action
from isotone.operations.shapes.tables import ListTables


@action("ListTables")
def run(engine: Engine, request: ListTables) -> Answer:
    with engine.reading:
        names = engine.catalog.names()
    first = 0
    if request.exclusive_start_table_name is not None:
        first = bisect_right(names, request.exclusive_start_table_name)
    page = names[first : first + (request.limit or limits.LIST_TABLES)]
    answer: dict[str, Any] = {"TableNames": page}
    if page and page[-1] != names[-1]:
        answer["LastEvaluatedTableName"] = page[-1]
    return answer
