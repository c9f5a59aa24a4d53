"""The requests of the API, one structure an action, with AWS's member names and constraints.

Attributes are in snake case (`request.table_name` is `TableName`), an absent member is None, and an
attribute value is left as the JSON gave it.
"""

from __future__ import annotations

from typing import Final

from isotone.operations.shapes import batches, items, reads, settings, streams, tables, transactions
from isotone.operations.shapes.members import Structure

REQUESTS: Final[dict[str, type[Structure]]] = {
    shape.__name__: shape
    for shape in (
        batches.BatchGetItem,
        batches.BatchWriteItem,
        tables.CreateTable,
        items.DeleteItem,
        tables.DeleteTable,
        settings.DescribeEndpoints,
        settings.DescribeLimits,
        streams.DescribeStream,
        tables.DescribeTable,
        settings.DescribeTimeToLive,
        items.GetItem,
        streams.GetRecords,
        streams.GetShardIterator,
        streams.ListStreams,
        tables.ListTables,
        settings.ListTagsOfResource,
        items.PutItem,
        reads.Query,
        reads.Scan,
        settings.TagResource,
        transactions.TransactGetItems,
        transactions.TransactWriteItems,
        settings.UntagResource,
        items.UpdateItem,
        tables.UpdateTable,
        settings.UpdateTimeToLive,
    )
}
