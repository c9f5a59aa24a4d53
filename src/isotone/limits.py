"""The limits of DynamoDB, as constants: sizes, entries of batches; lifetimes (tokens 10 min, iterators 15 min).

The sizes are those of keys, items and pages, the entries those of batches and transactions.

Sizes are in bytes, times in seconds, unless the name says otherwise.
"""

from __future__ import annotations

from typing import Final

KB: Final = 1024
MB: Final = 1024 * KB

# Items and keys
ITEM_SIZE: Final = 400 * KB  # one item, names and values
PARTITION_KEY_SIZE: Final = 2048  # the value of a partition key attribute
SORT_KEY_SIZE: Final = 1024  # the value of a sort key attribute
ATTRIBUTE_NAME_SIZE: Final = 64 * KB - 1  # the name of an attribute that is not a key
NESTING_DEPTH: Final = 32  # nested lists and maps

# Numbers
NUMBER_DIGITS: Final = 38  # significant decimal digits
NUMBER_MAX_EXPONENT: Final = 125  # 9.99…E+125 is the largest magnitude
NUMBER_MIN_EXPONENT: Final = -130  # 1E-130 is the smallest magnitude except 0

# Capacity
READ_UNIT: Final = 4 * KB  # bytes that one strongly consistent read unit reads
WRITE_UNIT: Final = 1 * KB  # bytes that one write unit writes

# Expressions
EXPRESSION_SIZE: Final = 4 * KB  # the text of one expression
EXPRESSION_OPERATORS: Final = 300  # operators and functions in one expression
EXPRESSION_VALUES_SIZE: Final = 2 * MB  # all of ExpressionAttributeValues
IN_OPERANDS: Final = 100  # values on the right of IN
NAME_PLACEHOLDER_SIZE: Final = 255  # the length of #name or :value
PATH_DEPTH: Final = 32  # elements of a document path
LIST_INDEX: Final = 2**31 - 1  # the number in a document path's [index]

# PartiQL
STATEMENT_SIZE: Final = 8192  # characters of one statement
STATEMENT_COLLECTIONS: Final = 50  # partition keys that one SELECT may name
STATEMENT_COLLECTIONS_PAGE: Final = 10  # items in a page of a SELECT that names several
BATCH_STATEMENTS: Final = 25  # statements in one BatchExecuteStatement
NEXT_TOKEN_SIZE: Final = 32768  # characters of a NextToken

QUERY_PAGE: Final = 1 * MB  # what one Query or Scan call reads, before its filter
BATCH_GET_ITEMS: Final = 100  # keys in one BatchGetItem
BATCH_GET_SIZE: Final = 16 * MB  # what one BatchGetItem returns
BATCH_WRITE_ITEMS: Final = 25  # puts and deletes in one BatchWriteItem
TRANSACTION_ITEMS: Final = 100  # actions in one transaction
TRANSACTION_SIZE: Final = 4 * MB  # all items of one transaction
TOKEN_LIFETIME: Final = 10 * 60  # of a ClientRequestToken
SEARCH_RESULTS: Final = 100  # TopK of one SearchVectors
SEARCH_SIZE: Final = 16 * MB  # what one SearchVectors returns
TOTAL_SEGMENTS: Final = 1_000_000  # workers of a parallel scan

# Tables
LOCAL_INDEXES: Final = 5  # local secondary indexes of a table
GLOBAL_INDEXES: Final = 20  # global secondary indexes of a table
INDEX_KEY_PARTS: Final = 4  # attributes in each part of a global index's key
PROJECTED_NAMES: Final = 100  # NonKeyAttributes over all indexes of a table
VECTOR_INDEXES: Final = 5  # vector indexes of a table
VECTOR_DIMENSIONS: Final = 4096  # dimensions of a vector index
INLINE_FILTERS: Final = 18  # INLINE_FILTER attributes of a vector index
INLINE_FILTER_SIZE: Final = 10 * KB  # the value of an INLINE_FILTER attribute
LIST_TABLES: Final = 100  # names in one page of ListTables
TAGS: Final = 50  # tags of a table
TTL_OLDEST: Final = 5 * 365 * 24 * 3600  # an expiry time older than this is ignored

LIST_INSIGHTS: Final = 100  # tables and indexes in one page of ListContributorInsights
POLICY: Final = 20 * KB  # bytes of a resource policy

# Streams
STREAM_RETENTION: Final = 24 * 3600  # how long a record can be read
STREAM_RECORDS: Final = 1000  # records in one GetRecords
STREAM_PAGE: Final = 1 * MB  # what one GetRecords returns
ITERATOR_LIFETIME: Final = 15 * 60  # how long a shard iterator can be used
LIST_STREAMS: Final = 100  # streams in one page of ListStreams
DESCRIBED_SHARDS: Final = 100  # shards in one page of DescribeStream

# Backups
RECOVERY_DAYS: Final = 35  # how far back a table can be restored, at most
SYSTEM_BACKUP_LIFETIME: Final = 35 * 24 * 3600  # how long the backup of a deleted table is kept
CONCURRENT_RESTORES: Final = 50  # tables that are being restored at the same time
LIST_BACKUPS: Final = 100  # backups in one page of ListBackups

# Exports, imports and bulk operations
TRANSFER_RETENTION: Final = 90 * 24 * 3600  # how long one is shown
TRANSFER_TOKEN_LIFETIME: Final = 8 * 3600  # of a ClientToken
TRANSFER_PAGE: Final = 25  # entries in one page of a list of them
EXPORT_SHORTEST: Final = 15 * 60  # the shortest period of an incremental export
EXPORT_LONGEST: Final = 24 * 3600  # the longest
CONCURRENT_EXPORTS: Final = 300  # that run at the same time
CONCURRENT_IMPORTS: Final = 50
IMPORT_OBJECTS: Final = 50_000  # that one import or bulk operation reads
