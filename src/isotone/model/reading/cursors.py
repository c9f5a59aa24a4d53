"""Cursors: where a page ended, as a text that a stranger may carry.

    base64url( signature, 16 bytes · JSON: fingerprint of the query, direction, key, expiry )

A cursor comes back from a browser, so nothing in it is believed before its signature is: it continues
the query that it was made for, on the key where that query stood, and nothing else. It is signed, not
encrypted: the key in it can be read.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from isotone.clock import Clock
from isotone.errors import InvalidCursor, UsageError
from isotone.values.types import Item

_SIGNATURE: Final = (
    16  # bytes of the HMAC that are kept: as many as an attacker would have to guess
)
_FINGERPRINT: Final = 12

Direction = Literal["forward", "back"]

# What of a request a cursor is not bound to: how much is read at a time, and how fresh.
_UNBOUND: Final = frozenset(
    {"Limit", "ExclusiveStartKey", "ConsistentRead", "ReturnConsumedCapacity"}
)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the order of a query, and which way from there; no key is the end to start from."""

    direction: Direction
    key: Item | None


class Signer:
    """Makes and reads the cursors of one store, with its secret.

    >>> signer = Signer(b"a secret of sixteen bytes or more", SystemClock())    # doctest: +SKIP

    `lifetime` in seconds, after which a cursor is refused; None is for ever.
    """

    def __init__(self, secret: bytes, clock: Clock, lifetime: float | None = None) -> None:
        if len(secret) < _SIGNATURE:
            raise UsageError(f"a cursor secret has {_SIGNATURE} bytes or more, not {len(secret)}")
        self._secret = secret
        self._clock = clock
        self._lifetime = lifetime

    def write(self, position: Position, request: Mapping[str, Any]) -> str:
        """The cursor of a position of the query that the request asks."""
        expiry = None if self._lifetime is None else int(self._clock.now() + self._lifetime)
        payload = msgspec.json.encode(
            [fingerprint(request), position.direction == "back", position.key, expiry]
        )
        return urlsafe_b64encode(self._sign(payload) + payload).decode().rstrip("=")

    def seal(self, state: Any, of: Mapping[str, Any]) -> str:
        """A place that is none of one query's, as JSON: `of` says what it is bound to."""
        return self.write(Position("forward", state), {"sealed": of})

    def unseal(self, cursor: str, of: Mapping[str, Any]) -> Any:
        """What was sealed; raises `InvalidCursor` as `read` does."""
        return self.read(cursor, {"sealed": of}).key

    def read(self, cursor: str, request: Mapping[str, Any]) -> Position:
        """The position of a cursor; raises `InvalidCursor` that says what is wrong with it."""
        made_for, is_back, key, expiry = self._payload(cursor)
        if made_for != fingerprint(request):
            raise InvalidCursor(
                "the cursor belongs to another query; begin that one without a cursor"
            )
        if expiry is not None and expiry <= self._clock.now():
            raise InvalidCursor("the cursor has expired; begin again without one")
        return Position("back" if is_back else "forward", key)

    def _payload(self, cursor: str) -> Any:
        if not isinstance(cursor, str):
            raise InvalidCursor(_no_cursor(cursor))
        try:
            raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        except (ValueError, TypeError):
            raise InvalidCursor(f"{cursor!r} is not a cursor of this store") from None
        signature, payload = raw[:_SIGNATURE], raw[_SIGNATURE:]
        if not hmac.compare_digest(signature, self._sign(payload)):
            raise InvalidCursor(
                "the cursor was not signed with this store's secret: it was changed on its way, or "
                "made by a process with another one; give all of them the same cursor_secret"
            )
        if urlsafe_b64encode(raw).decode().rstrip("=") != cursor.rstrip("="):
            raise InvalidCursor(f"{cursor!r} is not a cursor as this store writes it")
        return msgspec.json.decode(payload)

    def _sign(self, payload: bytes) -> bytes:
        return hmac.digest(self._secret, payload, "sha256")[:_SIGNATURE]


def _no_cursor(given: Any) -> str:
    if hasattr(given, "cursor"):
        return f"a {type(given).__name__} is no cursor; give its: cursor=page.cursor"
    return f"{given!r} is no cursor; give the text that a page has as page.cursor"


def fingerprint(request: Mapping[str, Any]) -> str:
    """What tells one query from another: all of its request but the size of its pages."""
    bound = {name: value for name, value in request.items() if name not in _UNBOUND}
    digest = hashlib.sha256(msgspec.json.encode(bound, order="deterministic")).digest()
    return urlsafe_b64encode(digest[:_FINGERPRINT]).decode()
