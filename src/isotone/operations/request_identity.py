"""The stored identity (hash) of a transaction, by which a repeated ClientRequestToken is compared (idempotency).

JSON objects and DynamoDB's sets have no order, and some clients shuffle them at each attempt. So the identity is the
SHA-256 of a canonical form: each entry of the transaction as JSON without spaces, with sorted members and sets, and a
line feed. Lists keep their order, and values their spelling: `1.0` is not `1`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from isotone.operations.request_members import ApiStructure

_FORM: Final = b"\x01"
_SETS: Final = ("SS", "NS", "BS")
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def identity_of(entries: Sequence[ApiStructure]) -> bytes:
    """The identity of a transaction: one byte for the version of the form, and the digest."""
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(_canonical(entry))
        digest.update(b"\n")
    return _FORM + digest.digest()


def _canonical(entry: ApiStructure) -> bytes:
    text = _encode(entry)
    if b'S":[' in text and any(b'"%s":[' % name.encode() in text for name in _SETS):
        text = _encode(_with_sorted_sets(msgspec.to_builtins(entry)))
    return text


def _with_sorted_sets(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_sorted_sets(member) for member in value]
    if not isinstance(value, dict):
        return value
    return {
        name: sorted(member)
        if name in _SETS and isinstance(member, list)
        else _with_sorted_sets(member)
        for name, member in value.items()
    }


def is_before_forms(identity: bytes) -> bool:
    """Whether an identity has the old form, without the version byte."""
    return len(identity) == hashlib.sha256().digest_size


def identity_before_forms(entries: Sequence[ApiStructure]) -> bytes:
    """The identity in the old form: the digest of the entries' `repr`, where the order of members counts."""
    return hashlib.sha256(repr(entries).encode()).digest()
