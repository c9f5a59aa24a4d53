"""Order-preserving bytes: `encode(a) < encode(b)` exactly when `a < b`, alone and inside a key.

The bytes themselves are described in docs/design/format.md, and that page is the system of record: a
file written today is read by it tomorrow. `keys` has the table of type codes and what is done with
whole keys, `texts` and `numbers` the bodies, `partition` the hash that a key begins with.
"""

from isotone.codec.keys import (
    after,
    decode,
    decode_key,
    descending,
    encode_binary,
    encode_key_value,
    encode_number,
    encode_text,
    encoder_for,
    prefix_range,
)
from isotone.codec.partition import partition_hash, partition_prefix, segment_range

__all__ = [
    "after",
    "decode",
    "decode_key",
    "descending",
    "encode_binary",
    "encode_key_value",
    "encode_number",
    "encode_text",
    "encoder_for",
    "partition_hash",
    "partition_prefix",
    "prefix_range",
    "segment_range",
]
