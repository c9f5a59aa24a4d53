"""Cursors and `InvalidCursor`: encrypts the position after a page (`positions`) into a short text, bound to its query.

    base64url( tag, 16 bytes · encrypted and compressed: identity of the query · MessagePack of [expiry, state] )

Cursors come back from browsers, so nothing in a cursor is used before its tag is checked. A cursor continues only the
query that it was made for, after the last key of its page. Without the secret, nobody can read that key, change it, or
make a cursor. The tag authenticates the content and is also the nonce of its encryption (the construction of RFC 5297,
with keyed BLAKE2 and SHAKE-256), so equal positions have equal cursors.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from base64 import urlsafe_b64decode
from binascii import b2a_base64
from math import ceil
from typing import Any, Final

import msgspec

from isotone.clock import Clock
from isotone.errors import InvalidCursor, UsageError

_TAG: Final = 16  # bytes; an attacker would have to guess all of them
_IDENTITY: Final = 8
# Raw deflate with its smallest window (2^9), because an item's keys repeat each other.
_WINDOW: Final = -9
_SHORTEST_SECRET: Final = 16

_URL_SAFE: Final = str.maketrans("+/", "-_", "=")
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder().decode


class CursorCipher:
    """Writes and reads the cursors of one store, with its secret.

    A cursor is refused `lifetime` seconds after it was made, from the next full second on; None means it never expires.
    """

    def __init__(self, secret: bytes, clock: Clock, lifetime: float | None = None) -> None:
        if len(secret) < _SHORTEST_SECRET:
            raise UsageError(
                f"a cursor secret has {_SHORTEST_SECRET} bytes or more, not {len(secret)}"
            )
        self._tag_key = hmac.digest(secret, b"cursor tag", "sha256")
        self._stream_key = hmac.digest(secret, b"cursor encryption", "sha256")
        self._clock = clock
        self._lifetime = lifetime

    def write(self, state: Any, query: bytes) -> str:
        """The cursor for a state of JSON values, bound to the query with this identity."""
        expiry = None if self._lifetime is None else ceil(self._clock.now() + self._lifetime)
        compressor = zlib.compressobj(9, zlib.DEFLATED, _WINDOW, 1)
        content = compressor.compress(query + _encode((expiry, state))) + compressor.flush()
        tag = self._tag(content)
        return _text(tag + self._mixed(content, tag))

    def read(self, cursor: str, query: bytes) -> Any:
        """The state in a cursor; raises `InvalidCursor` that says what is wrong."""
        content = self._content(cursor)
        if content[:_IDENTITY] != query:
            raise InvalidCursor(
                "the cursor belongs to another query; start this one without a cursor"
            )
        expiry, state = _decode(content[_IDENTITY:])
        if expiry is not None and expiry <= self._clock.now():
            raise InvalidCursor("the cursor has expired; start again without one")
        return state

    def _content(self, cursor: str) -> bytes:
        if not isinstance(cursor, str):
            raise InvalidCursor(_not_a_cursor(cursor))
        try:
            raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        except (ValueError, TypeError):
            raise InvalidCursor(f"{cursor!r} is not a cursor of this store") from None
        tag = raw[:_TAG]
        content = self._mixed(raw[_TAG:], tag)
        if not hmac.compare_digest(tag, self._tag(content)):
            raise InvalidCursor(
                "the cursor cannot be decrypted: it was changed, or made with another secret; give all "
                "processes the same cursor_secret"
            )
        if _text(raw) != cursor.rstrip("="):
            raise InvalidCursor(f"{cursor!r} is not a cursor as this store writes it")
        return zlib.decompress(content, _WINDOW)

    def _tag(self, content: bytes) -> bytes:
        return hashlib.blake2b(content, key=self._tag_key, digest_size=_TAG).digest()

    def _mixed(self, content: bytes, tag: bytes) -> bytes:
        """Encrypts plain content, and decrypts encrypted: exclusive or with a stream that depends on the key and the tag."""
        size = len(content)
        stream = hashlib.shake_256(self._stream_key + tag).digest(size)
        mixed = int.from_bytes(content) ^ int.from_bytes(stream)
        return mixed.to_bytes(size)


def _not_a_cursor(given: Any) -> str:
    if hasattr(given, "cursor"):
        return f"a {type(given).__name__} is not a cursor; give its cursor: cursor=page.cursor"
    return f"{given!r} is not a cursor; give the text in page.cursor"


def identity(of: Any) -> bytes:
    """The identity of a cursor's query, given as JSON values or expression trees."""
    encoded = msgspec.json.encode(of, order="deterministic")
    return hashlib.sha256(encoded).digest()[:_IDENTITY]


def _text(raw: bytes) -> str:
    return b2a_base64(raw, newline=False).decode().translate(_URL_SAFE)
