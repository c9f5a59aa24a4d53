"""The actions on Contributor Insights: switch them for a table or a global index, describe and list them.

The setting is recorded, with the names that the service gives to the rules of CloudWatch. Nothing is measured.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import Insights, KeySchema, TableSchema
from isotone.errors import ResourceNotFoundException, ValidationException
from isotone.operations.action import ActionRule, Answer, action
from isotone.operations.request_members import (
    ApiStructure,
    ContributorInsightsAction,
    ContributorInsightsMode,
    IndexName,
    ListedTableName,
)
from isotone.operations.table_lookup import (
    TABLE_CHANGES,
    TABLE_IS_KNOWN,
    changed_table,
    described_table,
)


class UpdateContributorInsights(ApiStructure, frozen=True, kw_only=True):
    """Switch the insights of a table or an index."""

    table_name: ListedTableName
    index_name: IndexName | None = None
    contributor_insights_action: ContributorInsightsAction
    contributor_insights_mode: ContributorInsightsMode | None = None


class DescribeContributorInsights(ApiStructure, frozen=True):
    """Ask for the insights of a table or an index."""

    table_name: ListedTableName
    index_name: IndexName | None = None


class ListContributorInsights(ApiStructure, frozen=True):
    """Ask for the insights of all tables and indexes, or of one table, a page at a time."""

    table_name: ListedTableName | None = None
    next_token: str | None = None
    max_results: Annotated[int, Meta(le=limits.LIST_INSIGHTS)] | None = None


_MODE: Final[ContributorInsightsMode] = "ACCESSED_AND_THROTTLED_KEYS"


_INDEX: Final = ActionRule(
    "no such global index",
    lambda engine, request: _keys(
        described_table(engine, request.table_name).schema, request.index_name
    ),
)


@action("UpdateContributorInsights", writing=(TABLE_CHANGES, _INDEX))
def update_contributor_insights(engine: Engine, request: UpdateContributorInsights) -> Answer:
    """Enable or disable the insights of a table or a global index."""
    enabled = request.contributor_insights_action == "ENABLE"
    schema = changed_table(engine, request.table_name).schema
    index_name = request.index_name or ""
    previous = schema.insights.get(index_name)
    mode = request.contributor_insights_mode or (_MODE if previous is None else previous.mode)
    changed = Insights(enabled, mode, round(engine.clock.now(), 3))
    insights = {**schema.insights, index_name: changed}
    engine.catalog.save(msgspec.structs.replace(schema, insights=insights))
    status = "ENABLING" if enabled else "DISABLING"
    return {**_summary(schema.name, index_name, changed), "ContributorInsightsStatus": status}


@action("DescribeContributorInsights", reading=(TABLE_IS_KNOWN, _INDEX))
def describe_contributor_insights(engine: Engine, request: DescribeContributorInsights) -> Answer:
    """Whether the insights of a table or a global index are enabled, and the names of their rules."""
    schema = described_table(engine, request.table_name).schema
    keys = _keys(schema, request.index_name)
    index_name = request.index_name or ""
    insights = schema.insights.get(index_name)
    if insights is None:
        return _summary(schema.name, index_name, None)
    return {
        **_summary(schema.name, index_name, insights),
        "ContributorInsightsRuleList": list(_rules(schema.name, index_name, keys, insights)),
        "LastUpdateDateTime": insights.changed,
    }


def _check_most(request: ListContributorInsights) -> None:
    if request.max_results is not None and request.max_results < 1:
        raise ValidationException(f"MaxResults must be at least 1, it is {request.max_results}")


def _listed(engine: Engine, request: ListContributorInsights) -> list[StoredTable]:
    """The tables whose insights are listed."""
    if request.table_name is not None:
        return [described_table(engine, request.table_name)]
    return sorted(engine.catalog, key=lambda table: table.name)


@action(
    "ListContributorInsights",
    before=(
        ActionRule("MaxResults below 1", _check_most),
        ActionRule("an invalid NextToken", lambda request: _position(request.next_token)),
    ),
    reading=(ActionRule("no such table", _listed),),
)
def list_contributor_insights(engine: Engine, request: ListContributorInsights) -> Answer:
    """The tables and indexes whose insights were ever enabled or disabled, a page at a time."""
    most = limits.LIST_INSIGHTS if request.max_results is None else request.max_results
    after = _position(request.next_token)
    found = [
        (table.name, index_name, insights)
        for table in _listed(engine, request)
        for index_name, insights in sorted(table.schema.insights.items())
        if (not index_name or table.schema.index(index_name)) and [table.name, index_name] > after
    ]
    answer: dict[str, Any] = {
        "ContributorInsightsSummaries": [_summary(*each) for each in found[:most]]
    }
    if len(found) > most:
        answer["NextToken"] = urlsafe_b64encode(msgspec.json.encode(found[most - 1][:2])).decode()
    return answer


def _keys(schema: TableSchema, index_name: str | None) -> KeySchema:
    """The key of the table or of a global index."""
    if index_name is None:
        return schema.keys
    index = schema.index(index_name)
    if index is None or index.kind != "global":
        raise ResourceNotFoundException(
            f"Requested resource not found: Index: {index_name} of Table: {schema.name} not found"
        )
    return index.keys


def _summary(table: str, index: str, insights: Insights | None) -> dict[str, Any]:
    enabled = insights is not None and insights.enabled
    summary = {
        "TableName": table,
        "ContributorInsightsStatus": "ENABLED" if enabled else "DISABLED",
    }
    if index:
        summary["IndexName"] = index
    if insights is not None:
        summary["ContributorInsightsMode"] = insights.mode
    return summary


def _rules(table: str, index: str, keys: KeySchema, insights: Insights) -> Iterator[str]:
    """The names of the rules: of partition and sort keys (PK, SK), accessed and throttled (C, T)."""
    if not insights.enabled:
        return
    resource = f"{table}-{index}" if index else table
    for event in "CT" if insights.mode == _MODE else "T":
        for part in ("PK", "SK") if keys.sort else ("PK",):
            yield (
                f"DynamoDBContributorInsights-{part}{event}-{resource}-"
                f"{int(insights.changed * 1000)}"
            )


def _position(token: str | None) -> list[str]:
    if token is None:
        return []
    try:
        return msgspec.json.decode(urlsafe_b64decode(token), type=list[str])
    except (msgspec.MsgspecError, ValueError):
        raise ValidationException("Invalid NextToken") from None
