"""Ids that sort in the order in which they were made, for what is built on the modelling library."""

from isotone.codec.ids import KSUID, ULID, time_of, uuid7

__all__ = ["KSUID", "ULID", "time_of", "uuid7"]
