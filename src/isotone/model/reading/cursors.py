"""Cursors: the end of a page as a signed text that clients can keep.

    base64url( signature, 16 bytes · JSON: fingerprint of the query, direction, key, expiry )

Cursors come back from browsers, so the signature is checked before anything in a cursor is used. A cursor
continues only the query that it was made for, after the last key of its page. It is signed, not encrypted: the
key in it can be read.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import b2a_base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from isotone.clock import Clock
from isotone.errors import InvalidCursor, UsageError
from isotone.values.types import Item

_SIGNATURE: Final = 16  # bytes of the HMAC, all of which an attacker would have to guess
_FINGERPRINT: Final = 12

_URL_SAFE: Final = str.maketrans("+/", "-_", "=")
_encode: Final = msgspec.json.Encoder().encode

Direction = Literal["forward", "back"]

# The members of a request that may differ between pages: page size, consistency, and the like.
_UNBOUND: Final = frozenset(
    {"Limit", "ExclusiveStartKey", "ConsistentRead", "ReturnConsumedCapacity"}
)


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the order of a query, and a direction; without a key, the start."""

    direction: Direction
    key: Item | None


class Signer:
    """Writes and reads the cursors of one store, with its secret.

    >>> signer = Signer(b"a secret of sixteen bytes or more", SystemClock())    # doctest: +SKIP

    A cursor is refused `lifetime` seconds after it was made; None means never.
    """

    def __init__(self, secret: bytes, clock: Clock, lifetime: float | None = None) -> None:
        if len(secret) < _SIGNATURE:
            raise UsageError(f"a cursor secret has {_SIGNATURE} bytes or more, not {len(secret)}")
        self._secret = secret
        self._clock = clock
        self._lifetime = lifetime

    def write(self, position: Position, query: str) -> str:
        """The cursor of a position in the query with this fingerprint."""
        expiry = None if self._lifetime is None else int(self._clock.now() + self._lifetime)
        payload = _encode([query, position.direction == "back", position.key, expiry])
        return _text(self._sign(payload) + payload)

    def seal(self, state: Any, of: Mapping[str, Any]) -> str:
        """A cursor with any JSON `state`; only the same `of` opens it."""
        return self.write(Position("forward", state), fingerprint({"sealed": of}))

    def unseal(self, cursor: str, of: Mapping[str, Any]) -> Any:
        """The sealed state; raises `InvalidCursor` as `read` does."""
        return self.read(cursor, fingerprint({"sealed": of})).key

    def read(self, cursor: str, query: str) -> Position:
        """The position of a cursor; raises `InvalidCursor` that says what is wrong with it."""
        made_for, is_back, key, expiry = self._payload(cursor)
        if made_for != query:
            raise InvalidCursor(
                "the cursor belongs to another query; start this one without a cursor"
            )
        if expiry is not None and expiry <= self._clock.now():
            raise InvalidCursor("the cursor has expired; start again without one")
        return Position("back" if is_back else "forward", key)

    def _payload(self, cursor: str) -> Any:
        if not isinstance(cursor, str):
            raise InvalidCursor(_not_a_cursor(cursor))
        try:
            raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        except (ValueError, TypeError):
            raise InvalidCursor(f"{cursor!r} is not a cursor of this store") from None
        signature, payload = raw[:_SIGNATURE], raw[_SIGNATURE:]
        if not hmac.compare_digest(signature, self._sign(payload)):
            raise InvalidCursor(
                "the cursor was not signed with this store's secret: it was changed, or made by a "
                "process with another secret; give all processes the same cursor_secret"
            )
        if _text(raw) != cursor.rstrip("="):
            raise InvalidCursor(f"{cursor!r} is not a cursor as this store writes it")
        return msgspec.json.decode(payload)

    def _sign(self, payload: bytes) -> bytes:
        return hmac.digest(self._secret, payload, "sha256")[:_SIGNATURE]


def _not_a_cursor(given: Any) -> str:
    if hasattr(given, "cursor"):
        return f"a {type(given).__name__} is not a cursor; give its cursor: cursor=page.cursor"
    return f"{given!r} is not a cursor; give the text in page.cursor"


def fingerprint(request: Mapping[str, Any]) -> str:
    """The identity of a query: its request, without the page size."""
    bound = {name: value for name, value in request.items() if name not in _UNBOUND}
    digest = hashlib.sha256(msgspec.json.encode(bound, order="deterministic")).digest()
    return urlsafe_b64encode(digest[:_FINGERPRINT]).decode()


def _text(raw: bytes) -> str:
    return b2a_base64(raw, newline=False).decode().translate(_URL_SAFE)
