"""One method for each action of the DynamoDB API, named and called as boto3 does.

Parameters are keyword arguments that an editor completes from the declared request types. An action
without declared parameters is passed on as it is, for whatever the database behind it makes of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Unpack

from isotone.backends import item_requests as items
from isotone.backends import table_requests as tables

Response = dict[str, Any]


class Actions(ABC):
    """The methods of a client; each hands its action's name and arguments to `_call`."""

    __slots__ = ()

    @abstractmethod
    def _call(self, operation: str, request: Mapping[str, Any]) -> Response:
        """Answer one action."""

    def get_item(self, **request: Unpack[items.GetItemInput]) -> Response:
        """Read one item by its key."""
        return self._call("GetItem", request)

    def put_item(self, **request: Unpack[items.PutItemInput]) -> Response:
        """Write one whole item, replacing any under its key."""
        return self._call("PutItem", request)

    def update_item(self, **request: Unpack[items.UpdateItemInput]) -> Response:
        """Change attributes of one item, which is made where there is none."""
        return self._call("UpdateItem", request)

    def delete_item(self, **request: Unpack[items.DeleteItemInput]) -> Response:
        """Remove one item."""
        return self._call("DeleteItem", request)

    def query(self, **request: Unpack[items.QueryInput]) -> Response:
        """Read items of one partition key in order of sort key, a page at a time."""
        return self._call("Query", request)

    def scan(self, **request: Unpack[items.ScanInput]) -> Response:
        """Read the whole table or index, a page at a time."""
        return self._call("Scan", request)

    def batch_get_item(self, **request: Unpack[items.BatchGetItemInput]) -> Response:
        """Read up to 100 items by key, each by itself."""
        return self._call("BatchGetItem", request)

    def batch_write_item(self, **request: Unpack[items.BatchWriteItemInput]) -> Response:
        """Put and delete up to 25 items, each by itself."""
        return self._call("BatchWriteItem", request)

    def transact_get_items(self, **request: Unpack[items.TransactGetItemsInput]) -> Response:
        """Read up to 100 items as of one moment."""
        return self._call("TransactGetItems", request)

    def transact_write_items(self, **request: Unpack[items.TransactWriteItemsInput]) -> Response:
        """Write up to 100 items, all or none."""
        return self._call("TransactWriteItems", request)

    def execute_statement(self, **request: Unpack[items.ExecuteStatementInput]) -> Response:
        """Run one PartiQL statement."""
        return self._call("ExecuteStatement", request)

    def batch_execute_statement(
        self, **request: Unpack[items.BatchExecuteStatementInput]
    ) -> Response:
        """Run up to 25 PartiQL statements, each by itself."""
        return self._call("BatchExecuteStatement", request)

    def execute_transaction(self, **request: Unpack[items.ExecuteTransactionInput]) -> Response:
        """Run up to 100 PartiQL statements, all or none."""
        return self._call("ExecuteTransaction", request)

    def create_table(self, **request: Unpack[tables.CreateTableInput]) -> Response:
        """Make a table."""
        return self._call("CreateTable", request)

    def update_table(self, **request: Unpack[tables.UpdateTableInput]) -> Response:
        """Change a table's settings, or add or drop one global index."""
        return self._call("UpdateTable", request)

    def delete_table(self, **request: Unpack[tables.DeleteTableInput]) -> Response:
        """Drop a table with all that it holds."""
        return self._call("DeleteTable", request)

    def describe_table(self, **request: Unpack[tables.DescribeTableInput]) -> Response:
        """Tell a table's schema, status and size."""
        return self._call("DescribeTable", request)

    def list_tables(self, **request: Unpack[tables.ListTablesInput]) -> Response:
        """Tell the names of all tables, a page at a time."""
        return self._call("ListTables", request)

    def describe_time_to_live(self, **request: Unpack[tables.DescribeTimeToLiveInput]) -> Response:
        """Tell which attribute expires items."""
        return self._call("DescribeTimeToLive", request)

    def update_time_to_live(self, **request: Unpack[tables.UpdateTimeToLiveInput]) -> Response:
        """Choose the attribute that expires items, or none."""
        return self._call("UpdateTimeToLive", request)

    def tag_resource(self, **request: Unpack[tables.TagResourceInput]) -> Response:
        """Set tags of a table."""
        return self._call("TagResource", request)

    def untag_resource(self, **request: Unpack[tables.UntagResourceInput]) -> Response:
        """Remove tags of a table."""
        return self._call("UntagResource", request)

    def list_tags_of_resource(self, **request: Unpack[tables.ListTagsOfResourceInput]) -> Response:
        """Tell a table's tags."""
        return self._call("ListTagsOfResource", request)

    def describe_continuous_backups(
        self, **request: Unpack[tables.DescribeContinuousBackupsInput]
    ) -> Response:
        """Tell whether a table can be restored to a point in time."""
        return self._call("DescribeContinuousBackups", request)

    def update_continuous_backups(
        self, **request: Unpack[tables.UpdateContinuousBackupsInput]
    ) -> Response:
        """Choose whether a table can be restored to a point in time."""
        return self._call("UpdateContinuousBackups", request)

    def describe_limits(self, **request: Unpack[tables.DescribeLimitsInput]) -> Response:
        """Tell the account's limits."""
        return self._call("DescribeLimits", request)

    def describe_endpoints(self, **request: Unpack[tables.DescribeEndpointsInput]) -> Response:
        """Tell the service's endpoints."""
        return self._call("DescribeEndpoints", request)

    def create_backup(self, **request: Any) -> Response:
        return self._call("CreateBackup", request)

    def create_global_table(self, **request: Any) -> Response:
        return self._call("CreateGlobalTable", request)

    def delete_backup(self, **request: Any) -> Response:
        return self._call("DeleteBackup", request)

    def delete_resource_policy(self, **request: Any) -> Response:
        return self._call("DeleteResourcePolicy", request)

    def describe_backup(self, **request: Any) -> Response:
        return self._call("DescribeBackup", request)

    def describe_contributor_insights(self, **request: Any) -> Response:
        return self._call("DescribeContributorInsights", request)

    def describe_export(self, **request: Any) -> Response:
        return self._call("DescribeExport", request)

    def describe_global_table(self, **request: Any) -> Response:
        return self._call("DescribeGlobalTable", request)

    def describe_global_table_settings(self, **request: Any) -> Response:
        return self._call("DescribeGlobalTableSettings", request)

    def describe_import(self, **request: Any) -> Response:
        return self._call("DescribeImport", request)

    def describe_kinesis_streaming_destination(self, **request: Any) -> Response:
        return self._call("DescribeKinesisStreamingDestination", request)

    def describe_table_replica_auto_scaling(self, **request: Any) -> Response:
        return self._call("DescribeTableReplicaAutoScaling", request)

    def disable_kinesis_streaming_destination(self, **request: Any) -> Response:
        return self._call("DisableKinesisStreamingDestination", request)

    def enable_kinesis_streaming_destination(self, **request: Any) -> Response:
        return self._call("EnableKinesisStreamingDestination", request)

    def export_table_to_point_in_time(self, **request: Any) -> Response:
        return self._call("ExportTableToPointInTime", request)

    def get_resource_policy(self, **request: Any) -> Response:
        return self._call("GetResourcePolicy", request)

    def import_table(self, **request: Any) -> Response:
        return self._call("ImportTable", request)

    def list_backups(self, **request: Any) -> Response:
        return self._call("ListBackups", request)

    def list_contributor_insights(self, **request: Any) -> Response:
        return self._call("ListContributorInsights", request)

    def list_exports(self, **request: Any) -> Response:
        return self._call("ListExports", request)

    def list_global_tables(self, **request: Any) -> Response:
        return self._call("ListGlobalTables", request)

    def list_imports(self, **request: Any) -> Response:
        return self._call("ListImports", request)

    def put_resource_policy(self, **request: Any) -> Response:
        return self._call("PutResourcePolicy", request)

    def restore_table_from_backup(self, **request: Any) -> Response:
        return self._call("RestoreTableFromBackup", request)

    def restore_table_to_point_in_time(self, **request: Any) -> Response:
        return self._call("RestoreTableToPointInTime", request)

    def update_contributor_insights(self, **request: Any) -> Response:
        return self._call("UpdateContributorInsights", request)

    def update_global_table(self, **request: Any) -> Response:
        return self._call("UpdateGlobalTable", request)

    def update_global_table_settings(self, **request: Any) -> Response:
        return self._call("UpdateGlobalTableSettings", request)

    def update_kinesis_streaming_destination(self, **request: Any) -> Response:
        return self._call("UpdateKinesisStreamingDestination", request)

    def update_table_replica_auto_scaling(self, **request: Any) -> Response:
        return self._call("UpdateTableReplicaAutoScaling", request)
