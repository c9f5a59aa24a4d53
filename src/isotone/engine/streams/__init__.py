"""The record of what changed in a table, for 24 hours: DynamoDB Streams.

A stream is made when it is enabled for a table, and outlives both its being disabled and its table. Its
records lie in shards. Each shard takes the changes of a range of partition key hashes, so that all
changes of one item are in one shard, in order; when a shard is closed, its range goes on in its children.

`recording` writes records, in the transaction of the change itself; `registry` knows which streams and
shards there are; `positions` and `reading` find records again; `upkeep` replaces old shards by new ones
and drops what is older than a day; `entries` is the form in which a record lies in the store.
"""
