"""ListTables. Many programs ask it first, to see whether a server answers, so it needs nothing else of tables."""

from __future__ import annotations

from bisect import bisect_right
from typing import Annotated, Any

from msgspec import Meta

from isotone import limits
from isotone.engine.engine import Engine
from isotone.operations.action import Answer, action
from isotone.operations.request_members import ApiStructure, EntityName


class ListTables(ApiStructure, frozen=True):
    """Ask for the names of all tables, a page at a time."""

    exclusive_start_table_name: EntityName | None = None
    limit: Annotated[int, Meta(ge=1, le=limits.LIST_TABLES)] | None = None


@action("ListTables")
def list_tables(engine: Engine, request: ListTables) -> Answer:
    """The names of all tables in order, a page at a time."""
    with engine.reading_beside as engine:
        names = sorted({**engine.catalog.tables, **engine.catalog.creating})
    first = 0
    if request.exclusive_start_table_name is not None:
        first = bisect_right(names, request.exclusive_start_table_name)
    page = names[first : first + (request.limit or limits.LIST_TABLES)]
    answer: dict[str, Any] = {"TableNames": page}
    if page and page[-1] != names[-1]:
        answer["LastEvaluatedTableName"] = page[-1]
    return answer
