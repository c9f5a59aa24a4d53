"""Positions in a shard, and the iterators that stand for them.

An iterator names the sequence number that it has come to. A client takes it as it is: the stream's ARN,
a version, and a text that only we read, which carries a checksum, so that no other text passes for one.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from hashlib import blake2b
from typing import Final, NamedTuple

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.streams.registry import Shard, Stream, last_sequence
from isotone.errors import (
    ExpiredIteratorException,
    TrimmedDataAccessException,
    ValidationException,
)

_BASE: Final = (
    10**20
)  # what is added to a number, so that all have 21 digits, as the service's have
_VERSION: Final = "1"
_PAYLOAD: Final = struct.Struct(">IQQ")
_CHECKSUM: Final = 4
_INVALID: Final = "One or more parameter values were invalid: "


class Iterator(NamedTuple):
    """The place of the next record to read: at or after `sequence`. `made` is in milliseconds."""

    arn: str
    shard: int
    sequence: int
    made: int


def sequence_text(sequence: int) -> str:
    """A sequence number as clients see it."""
    return str(_BASE + sequence)


def write(iterator: Iterator) -> str:
    """An iterator as a client sees it."""
    arn, *numbers = iterator
    payload = _PAYLOAD.pack(*numbers)
    return f"{arn}|{_VERSION}|{b64encode(payload + _checksum(arn, payload)).decode()}"


def read(text: str) -> Iterator:
    """The iterator in a text. Raises `ValidationException` for one that was not made here."""
    arn, _, rest = text.partition("|")
    version, _, encoded = rest.partition("|")
    try:
        decoded = b64decode(encoded, validate=True)
    except ValueError:
        raise ValidationException("Invalid ShardIterator") from None
    payload, checksum = decoded[:-_CHECKSUM], decoded[-_CHECKSUM:]
    if version != _VERSION or checksum != _checksum(arn, payload):
        raise ValidationException("Invalid ShardIterator")
    return Iterator(arn, *_PAYLOAD.unpack(payload))


def check_age(engine: Engine, iterator: Iterator) -> None:
    """Refuse an iterator that is older than 15 minutes."""
    if engine.clock.now() * 1000 - iterator.made > limits.ITERATOR_LIFETIME * 1000:
        raise ExpiredIteratorException(
            "The shard iterator has expired and can no longer be used to retrieve stream records. "
            "A shard iterator expires 15 minutes after it is retrieved using the GetShardIterator action."
        )


def check_trimmed(shard: Shard, sequence: int) -> None:
    """Refuse a position before records that have been dropped."""
    if sequence <= shard.trimmed:
        raise TrimmedDataAccessException("The data you are trying to access has been trimmed")


def start(
    engine: Engine, stream: Stream, shard: Shard, kind: str, sequence_number: str | None
) -> int:
    """The sequence number at which an iterator of some type begins."""
    if kind == "TRIM_HORIZON" or kind == "LATEST":
        if sequence_number is not None:
            raise ValidationException(
                f"{_INVALID}SequenceNumber should not be passed for this iterator type"
            )
        if kind == "TRIM_HORIZON":
            return max(shard.first, shard.trimmed + 1)
        return _end(engine, stream, shard) + 1
    sequence = _sequence(sequence_number)
    if not shard.first <= sequence <= _end(engine, stream, shard):
        raise ValidationException("Invalid SequenceNumber for the shard")
    check_trimmed(shard, sequence)
    return sequence + (kind == "AFTER_SEQUENCE_NUMBER")


def _end(engine: Engine, stream: Stream, shard: Shard) -> int:
    """The latest sequence number that can be in a shard; one that is open may begin at its first."""
    if shard.last is not None:
        return shard.last
    return last_sequence(engine, stream.tree)


def _sequence(text: str | None) -> int:
    if text is None or not (text.isascii() and text.isdigit()):
        raise ValidationException(f"{_INVALID}Invalid SequenceNumber")
    return int(text) - _BASE


def _checksum(arn: str, payload: bytes) -> bytes:
    return blake2b(arn.encode() + payload, digest_size=_CHECKSUM).digest()
