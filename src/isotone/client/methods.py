"""The methods of the clients: one for each action, named and called as boto3 does.

Parameters are keyword arguments that an editor completes from the declared request types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Unpack

from isotone.client import request_types as types
from isotone.client.exceptions import MODELED_BY_STREAMS, ClientExceptions, client_error
from isotone.client.pagination import PAGINATED, Paginator
from isotone.client.parameters import encode_request
from isotone.client.responses import decode_response, response_metadata
from isotone.client.waiters import WAITERS, Waiter, WaiterRule
from isotone.errors import ApiError, UsageError
from isotone.shown_signature import show_signatures

Send = Callable[[str, bytes], bytes]
Response = dict[str, Any]


class Meta(NamedTuple):
    """`client.meta`: the region and address of the client's database, and the client's methods."""

    region_name: str
    endpoint_url: str
    method_to_api_mapping: Mapping[str, str]


@show_signatures
class _BaseClient:
    """A client without methods for actions."""

    __slots__ = ("_send", "exceptions", "meta")

    _waiters: ClassVar[Mapping[str, WaiterRule]] = {}

    def __init__(self, send: Send, exceptions: ClientExceptions, meta: Meta) -> None:
        self._send = send
        self.exceptions: ClientExceptions = exceptions
        self.meta: Meta = meta

    def _call(self, operation: str, request: Mapping[str, Any]) -> Response:
        body = encode_request(operation, request)
        try:
            raw = self._send(operation, body)
        except ApiError as error:
            metadata = response_metadata(error.status, len(error.message))
            raise client_error(error, operation, metadata) from None
        return decode_response(raw)

    def can_paginate(self, operation_name: str) -> bool:
        """Whether `get_paginator` knows the method."""
        return operation_name in PAGINATED

    def get_paginator(self, operation_name: str) -> Paginator:
        """A paginator for a method such as `"query"`; raises `UsageError` if there is none."""
        if operation_name not in PAGINATED:
            raise UsageError(f"Operation cannot be paginated: {operation_name}")
        return Paginator(getattr(self, operation_name), PAGINATED[operation_name])

    @property
    def waiter_names(self) -> list[str]:
        """The names that `get_waiter` knows."""
        return sorted(self._waiters)

    def get_waiter(self, waiter_name: str) -> Waiter:
        """A waiter such as `"table_exists"`; raises `UsageError` if there is none."""
        if waiter_name not in self._waiters:
            raise UsageError(f"Waiter does not exist: {waiter_name}")
        return Waiter(self, self._waiters[waiter_name])

    def close(self) -> None:
        """Do nothing: the database is closed by the code that opened it."""


@show_signatures
class Client(_BaseClient):
    """boto3's DynamoDB client over a function from request bytes to response bytes.

    Threads may share a client if the function allows it.

    >>> client = Client(lambda operation, body: b'{"TableNames":["music"]}')
    >>> client.list_tables(Limit=10)["TableNames"]
    ['music']
    """

    __slots__ = ()

    _waiters = WAITERS

    def __init__(
        self,
        send: Send,
        *,
        region_name: str = "us-east-1",
        endpoint_url: str | None = None,
    ) -> None:
        url = endpoint_url or f"https://dynamodb.{region_name}.amazonaws.com"
        super().__init__(send, ClientExceptions(), Meta(region_name, url, _ACTIONS))

    def get_item(self, **request: Unpack[types.GetItemInput]) -> Response:
        """Read one item by its key."""
        return self._call("GetItem", request)

    def put_item(self, **request: Unpack[types.PutItemInput]) -> Response:
        """Write a whole item, replacing any with the same key."""
        return self._call("PutItem", request)

    def update_item(self, **request: Unpack[types.UpdateItemInput]) -> Response:
        """Change attributes of an item, which is created if it is missing."""
        return self._call("UpdateItem", request)

    def delete_item(self, **request: Unpack[types.DeleteItemInput]) -> Response:
        """Delete one item."""
        return self._call("DeleteItem", request)

    def query(self, **request: Unpack[types.QueryInput]) -> Response:
        """Read a page of the items of one partition key, ordered by sort key."""
        return self._call("Query", request)

    def scan(self, **request: Unpack[types.ScanInput]) -> Response:
        """Read a page of a whole table or index."""
        return self._call("Scan", request)

    def batch_get_item(self, **request: Unpack[types.BatchGetItemInput]) -> Response:
        """Read up to 100 items by key, without a common snapshot."""
        return self._call("BatchGetItem", request)

    def batch_write_item(self, **request: Unpack[types.BatchWriteItemInput]) -> Response:
        """Put and delete up to 25 items, each independently."""
        return self._call("BatchWriteItem", request)

    def transact_get_items(self, **request: Unpack[types.TransactGetItemsInput]) -> Response:
        """Read up to 100 items from one snapshot."""
        return self._call("TransactGetItems", request)

    def transact_write_items(self, **request: Unpack[types.TransactWriteItemsInput]) -> Response:
        """Write up to 100 items, all or none."""
        return self._call("TransactWriteItems", request)

    def search_vectors(self, **request: Unpack[types.SearchVectorsInput]) -> Response:
        """Find the items whose vectors are nearest to a vector."""
        return self._call("SearchVectors", request)

    def execute_statement(self, **request: Unpack[types.ExecuteStatementInput]) -> Response:
        """Run one PartiQL statement."""
        return self._call("ExecuteStatement", request)

    def batch_execute_statement(
        self, **request: Unpack[types.BatchExecuteStatementInput]
    ) -> Response:
        """Run up to 25 PartiQL statements, each independently."""
        return self._call("BatchExecuteStatement", request)

    def execute_transaction(self, **request: Unpack[types.ExecuteTransactionInput]) -> Response:
        """Run up to 100 PartiQL statements, all or none."""
        return self._call("ExecuteTransaction", request)

    def create_table(self, **request: Unpack[types.CreateTableInput]) -> Response:
        """Create a table."""
        return self._call("CreateTable", request)

    def update_table(self, **request: Unpack[types.UpdateTableInput]) -> Response:
        """Change a table's settings, or create or delete one global index."""
        return self._call("UpdateTable", request)

    def delete_table(self, **request: Unpack[types.DeleteTableInput]) -> Response:
        """Delete a table and its items."""
        return self._call("DeleteTable", request)

    def describe_table(self, **request: Unpack[types.DescribeTableInput]) -> Response:
        """Describe a table's schema, status and size."""
        return self._call("DescribeTable", request)

    def list_tables(self, **request: Unpack[types.ListTablesInput]) -> Response:
        """List a page of the names of all tables."""
        return self._call("ListTables", request)

    def describe_time_to_live(self, **request: Unpack[types.DescribeTimeToLiveInput]) -> Response:
        """Return the attribute by which items expire."""
        return self._call("DescribeTimeToLive", request)

    def update_time_to_live(self, **request: Unpack[types.UpdateTimeToLiveInput]) -> Response:
        """Set the attribute by which items expire, or switch expiry off."""
        return self._call("UpdateTimeToLive", request)

    def tag_resource(self, **request: Unpack[types.TagResourceInput]) -> Response:
        """Set tags of a table."""
        return self._call("TagResource", request)

    def untag_resource(self, **request: Unpack[types.UntagResourceInput]) -> Response:
        """Remove tags of a table."""
        return self._call("UntagResource", request)

    def list_tags_of_resource(self, **request: Unpack[types.ListTagsOfResourceInput]) -> Response:
        """List a table's tags."""
        return self._call("ListTagsOfResource", request)

    def describe_continuous_backups(
        self, **request: Unpack[types.DescribeContinuousBackupsInput]
    ) -> Response:
        """Return whether a table can be restored to a point in time."""
        return self._call("DescribeContinuousBackups", request)

    def update_continuous_backups(
        self, **request: Unpack[types.UpdateContinuousBackupsInput]
    ) -> Response:
        """Set whether a table can be restored to a point in time."""
        return self._call("UpdateContinuousBackups", request)

    def create_backup(self, **request: Unpack[types.CreateBackupInput]) -> Response:
        """Copy a table as it is now."""
        return self._call("CreateBackup", request)

    def describe_backup(self, **request: Unpack[types.DescribeBackupInput]) -> Response:
        """Describe a backup's state and size, and the table that it was made of."""
        return self._call("DescribeBackup", request)

    def list_backups(self, **request: Unpack[types.ListBackupsInput]) -> Response:
        """List a page of the backups of a table, or of all tables."""
        return self._call("ListBackups", request)

    def delete_backup(self, **request: Unpack[types.DeleteBackupInput]) -> Response:
        """Delete a backup."""
        return self._call("DeleteBackup", request)

    def restore_table_from_backup(
        self, **request: Unpack[types.RestoreTableFromBackupInput]
    ) -> Response:
        """Create a table with the items of a backup."""
        return self._call("RestoreTableFromBackup", request)

    def restore_table_to_point_in_time(
        self, **request: Unpack[types.RestoreTableToPointInTimeInput]
    ) -> Response:
        """Create a table with the items that another had at a moment."""
        return self._call("RestoreTableToPointInTime", request)

    def describe_limits(self, **request: Unpack[types.DescribeLimitsInput]) -> Response:
        """Return the account's limits."""
        return self._call("DescribeLimits", request)

    def describe_endpoints(self, **request: Unpack[types.DescribeEndpointsInput]) -> Response:
        """Return the service's endpoints."""
        return self._call("DescribeEndpoints", request)

    def put_resource_policy(self, **request: Unpack[types.PutResourcePolicyInput]) -> Response:
        """Attach a policy to a table or a stream, or replace it."""
        return self._call("PutResourcePolicy", request)

    def get_resource_policy(self, **request: Unpack[types.GetResourcePolicyInput]) -> Response:
        """Return the policy of a table or a stream, and its revision."""
        return self._call("GetResourcePolicy", request)

    def delete_resource_policy(
        self, **request: Unpack[types.DeleteResourcePolicyInput]
    ) -> Response:
        """Remove the policy of a table or a stream."""
        return self._call("DeleteResourcePolicy", request)

    def enable_kinesis_streaming_destination(
        self, **request: Unpack[types.EnableKinesisStreamingDestinationInput]
    ) -> Response:
        """Record a Kinesis data stream as the destination of a table's changes."""
        return self._call("EnableKinesisStreamingDestination", request)

    def disable_kinesis_streaming_destination(
        self, **request: Unpack[types.DisableKinesisStreamingDestinationInput]
    ) -> Response:
        """Disable a table's Kinesis data stream."""
        return self._call("DisableKinesisStreamingDestination", request)

    def update_kinesis_streaming_destination(
        self, **request: Unpack[types.UpdateKinesisStreamingDestinationInput]
    ) -> Response:
        """Change the precision of times in a table's Kinesis data stream."""
        return self._call("UpdateKinesisStreamingDestination", request)

    def describe_kinesis_streaming_destination(
        self, **request: Unpack[types.DescribeKinesisStreamingDestinationInput]
    ) -> Response:
        """Return a table's Kinesis data streams."""
        return self._call("DescribeKinesisStreamingDestination", request)

    def update_contributor_insights(
        self, **request: Unpack[types.UpdateContributorInsightsInput]
    ) -> Response:
        """Enable or disable the insights of a table or an index."""
        return self._call("UpdateContributorInsights", request)

    def describe_contributor_insights(
        self, **request: Unpack[types.DescribeContributorInsightsInput]
    ) -> Response:
        """Describe the insights of a table or an index."""
        return self._call("DescribeContributorInsights", request)

    def list_contributor_insights(
        self, **request: Unpack[types.ListContributorInsightsInput]
    ) -> Response:
        """List a page of the tables and indexes with insights."""
        return self._call("ListContributorInsights", request)

    def export_table_to_point_in_time(
        self, **request: Unpack[types.ExportTableToPointInTimeInput]
    ) -> Response:
        """Write a table as of a moment, or its changes in a period, to files in a bucket."""
        return self._call("ExportTableToPointInTime", request)

    def describe_export(self, **request: Unpack[types.DescribeExportInput]) -> Response:
        """Describe how far an export is, or how it ended."""
        return self._call("DescribeExport", request)

    def list_exports(self, **request: Unpack[types.ListExportsInput]) -> Response:
        """List a page of the exports of a table, or of all tables."""
        return self._call("ListExports", request)

    def import_table(self, **request: Unpack[types.ImportTableInput]) -> Response:
        """Create a table with the items of files in a bucket."""
        return self._call("ImportTable", request)

    def describe_import(self, **request: Unpack[types.DescribeImportInput]) -> Response:
        """Describe how far an import is, or how it ended."""
        return self._call("DescribeImport", request)

    def list_imports(self, **request: Unpack[types.ListImportsInput]) -> Response:
        """List a page of the imports into a table, or into all tables."""
        return self._call("ListImports", request)

    def start_bulk_put_items(self, **request: Unpack[types.StartBulkPutItemsInput]) -> Response:
        """Put the items of files in a bucket into a table."""
        return self._call("StartBulkPutItems", request)

    def describe_bulk_operation(
        self, **request: Unpack[types.DescribeBulkOperationInput]
    ) -> Response:
        """Describe how far a bulk operation is, or how it ended."""
        return self._call("DescribeBulkOperation", request)

    def list_bulk_operations(self, **request: Unpack[types.ListBulkOperationsInput]) -> Response:
        """List a page of the bulk operations."""
        return self._call("ListBulkOperations", request)

    def cancel_bulk_operation(self, **request: Unpack[types.CancelBulkOperationInput]) -> Response:
        """Stop a bulk operation; what it has written remains."""
        return self._call("CancelBulkOperation", request)

    # Global tables, and their auto scaling

    def create_global_table(self, **request: Unpack[types.CreateGlobalTableInput]) -> Response:
        """Make tables of the same name, in several regions, a global table of the first version."""
        return self._call("CreateGlobalTable", request)

    def describe_global_table(self, **request: Unpack[types.DescribeGlobalTableInput]) -> Response:
        """Describe the regions of a global table."""
        return self._call("DescribeGlobalTable", request)

    def list_global_tables(self, **request: Unpack[types.ListGlobalTablesInput]) -> Response:
        """List a page of the global tables."""
        return self._call("ListGlobalTables", request)

    def update_global_table(self, **request: Unpack[types.UpdateGlobalTableInput]) -> Response:
        """Add regions to a global table, or remove them."""
        return self._call("UpdateGlobalTable", request)

    def describe_global_table_settings(
        self, **request: Unpack[types.DescribeGlobalTableSettingsInput]
    ) -> Response:
        """Describe the capacity of a global table in each region."""
        return self._call("DescribeGlobalTableSettings", request)

    def update_global_table_settings(
        self, **request: Unpack[types.UpdateGlobalTableSettingsInput]
    ) -> Response:
        """Change the capacity of a global table, for all regions or for some."""
        return self._call("UpdateGlobalTableSettings", request)

    def describe_table_replica_auto_scaling(
        self, **request: Unpack[types.DescribeTableReplicaAutoScalingInput]
    ) -> Response:
        """Describe the auto scaling of a table in each region."""
        return self._call("DescribeTableReplicaAutoScaling", request)

    def update_table_replica_auto_scaling(
        self, **request: Unpack[types.UpdateTableReplicaAutoScalingInput]
    ) -> Response:
        """Change the auto scaling of a table in some regions."""
        return self._call("UpdateTableReplicaAutoScaling", request)


@show_signatures
class StreamsClient(_BaseClient):
    """boto3's client of DynamoDB Streams over a function from request bytes to response bytes.

    >>> client = StreamsClient(lambda operation, body: b'{"Streams":[]}')
    >>> client.list_streams(TableName="music")["Streams"]
    []
    """

    __slots__ = ()

    def __init__(self, send: Send, *, region_name: str = "us-east-1") -> None:
        url = f"https://streams.dynamodb.{region_name}.amazonaws.com"
        meta = Meta(region_name, url, _STREAMS_ACTIONS)
        super().__init__(send, ClientExceptions(MODELED_BY_STREAMS), meta)

    def list_streams(self, **request: Unpack[types.ListStreamsInput]) -> Response:
        """List a page of the streams of a table, or of all tables."""
        return self._call("ListStreams", request)

    def describe_stream(self, **request: Unpack[types.DescribeStreamInput]) -> Response:
        """Describe a stream's state and a page of its shards."""
        return self._call("DescribeStream", request)

    def get_shard_iterator(self, **request: Unpack[types.GetShardIteratorInput]) -> Response:
        """Return an iterator at a position in a shard."""
        return self._call("GetShardIterator", request)

    def get_records(self, **request: Unpack[types.GetRecordsInput]) -> Response:
        """Read the records at an iterator, and the iterator after them."""
        return self._call("GetRecords", request)


def _actions(client: type[_BaseClient]) -> dict[str, str]:
    """The action of each method."""
    return {
        name: "".join(word.capitalize() for word in name.split("_"))
        for name in vars(client)
        if not name.startswith("_")
    }


_ACTIONS = _actions(Client)
_STREAMS_ACTIONS = _actions(StreamsClient)
