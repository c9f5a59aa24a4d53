"""Order-preserving keys: `encode(a) < encode(b)` exactly when `a < b`, alone and inside a longer key.

`key_bytes` encodes the keys of the database's store as bytes, `readable` the string keys of the modelling
library, and `ids` makes ids that sort by time. The formats are described in docs/design/format.md, which
is the system of record: a file written by one version is read by the next.
"""

from isotone.codec.key_bytes import (
    HASH_SIZE,
    after,
    decode_components,
    decode_number,
    encode_binary,
    encode_number,
    encode_text,
    encoder_for,
    partition_prefix,
    prefix_range,
    segment_range,
)

__all__ = [
    "HASH_SIZE",
    "after",
    "decode_components",
    "decode_number",
    "encode_binary",
    "encode_number",
    "encode_text",
    "encoder_for",
    "partition_prefix",
    "prefix_range",
    "segment_range",
]
