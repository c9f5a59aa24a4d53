"""gzip and deflate: decompresses bodies up to 16 MB (Content-Encoding), compresses responses from 4 KB (Accept-Encoding)."""

from __future__ import annotations

import zlib
from typing import Final

from isotone.errors import InternalServerError

BODY_LIMIT: Final = 16 * 1024 * 1024
"""Bytes of a request body, before and after decompression."""
COMPRESSED_FROM: Final = 4096
"""Bytes of a response body. Compressing a smaller one costs more than it saves."""

# Bytes per call of zlib, which copies the bytes after the end of a gzip member.
_PIECE: Final = 64 * 1024
_CODINGS: Final = {b"gzip": 31, b"deflate": 15}
"""The supported codings, preferred first, and zlib's `wbits` for each."""


def wanted_coding(accepted: bytes) -> bytes:
    """The supported coding with the highest weight in an Accept-Encoding header; b"" for no compression."""
    weights: dict[bytes, float] = {}
    for choice in accepted.lower().split(b","):
        coding, _, parameters = choice.partition(b";")
        weights[coding.strip()] = _weight(parameters)

    def preference(coding: bytes) -> float:
        return weights.get(coding, weights.get(b"*", 0.0))

    best = max(_CODINGS, key=preference)  # the first of several with the same weight
    return (
        best if preference(best) > 0 and preference(best) >= weights.get(b"identity", 0.0) else b""
    )


def _weight(parameters: bytes) -> float:
    """The weight `q` of a choice in Accept-Encoding; 1 without one."""
    name, _, text = parameters.replace(b" ", b"").partition(b"=")
    if name != b"q":
        return 1.0
    try:
        return float(text)
    except ValueError:
        return 0.0


def decompressed(encoding: bytes, body: bytes) -> bytes:
    """The decompressed body, cut off at one byte over the limit."""
    coding = encoding.strip().lower()
    if coding in (b"", b"identity"):
        return body
    try:
        return _inflated(body, _CODINGS[coding])
    except (KeyError, zlib.error):
        raise InternalServerError(
            "The body is not compressed as its Content-Encoding says"
        ) from None


def _inflated(body: bytes, wbits: int) -> bytes:
    """The content of a compressed body of one or more gzip members. Raises `zlib.error` if it is broken."""
    most = BODY_LIMIT + 1
    parts: list[bytes] = []
    size = 0
    rest, inflate = memoryview(body), zlib.decompressobj(wbits)
    while size < most:
        piece = rest[:_PIECE]
        parts.append(inflate.decompress(piece, most - size))
        size += len(parts[-1])
        rest = rest[len(piece) - len(inflate.unused_data) :]
        if inflate.eof:
            if not rest:
                return b"".join(parts)
            inflate = zlib.decompressobj(wbits)
        elif not rest and size < most:
            raise zlib.error("the body ends early")
    return b"".join(parts)


def compressed(coding: bytes, body: bytes) -> bytes:
    return zlib.compress(body, level=1, wbits=_CODINGS[coding])
