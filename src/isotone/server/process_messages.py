"""The bytes that a server's processes (fronts, writer, pages, lanes) exchange: requests, answers, errors, in frames.

    frame     4 bytes, big-endian: the length of what follows; then MessagePack: a list of messages
    Request   a request as it came over HTTP: its action, its body, the region that it is signed for
    Answer    the body of its response
    Failed    its error: the name of its class, its message, and the other members of its body in JSON

A sender sends the messages of one turn of its event loop as one frame. Requests are pipelined: answers come in any order,
each with the number of its request. An operation that is not an action of the API begins with a slash (`/healthz`).
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

import msgspec

from isotone.errors import ApiError, InternalServerError, IsotoneError, restored

HEALTH_PATH: Final = "/healthz"
"""From a front to the writer: can the database be read and written?"""
METRICS_PATH: Final = "/metrics"
"""From a front to the writer: the metrics of all processes. From the writer to each front: the metrics of that front."""
HOT_KEYS_PATH: Final = "/hotkeys"
"""From a front to the writer: the hot keys of all fronts. From the writer to each front: the hot keys of that front."""
QUERIES_PATH: Final = "/queries"
"""From a front to the writer: the most expensive queries of all processes. From the writer to each front: its own."""
WITH_TABLES: Final = b"tables"
"""The body of a request for metrics that include those of tables; the others have no body."""

_LENGTH: Final = Struct(">I")
_HEAD: Final = _LENGTH.size
LOST: Final = (
    "The process that executed the request has ended; whether it was executed is not known."
)


class Request(msgspec.Struct, frozen=True, array_like=True, tag=0, gc=False):
    """A request for another process."""

    number: int
    operation: str
    body: bytes
    region: str = ""


class Answer(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """The response to a request."""

    number: int
    body: bytes


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """The error of a request; `kind` is the name of its class."""

    number: int
    kind: str
    message: str
    members: bytes = b""  # a JSON object, if there are any

    def error(self) -> IsotoneError:
        """The error of the other process. One that is not of the API keeps its class and message only."""
        kind = _kinds().get(self.kind)
        if kind is None:
            return InternalServerError(self.message)
        if issubclass(kind, ApiError):
            members = _members(self.members) if self.members else {}
            return kind(self.message, **members)
        return restored(kind, (self.message,))


Message = Request | Answer | Failed

_encode_into: Final = msgspec.msgpack.Encoder().encode_into
_decode: Final = msgspec.msgpack.Decoder(list[Message]).decode
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def failed(number: int, error: IsotoneError) -> Failed:
    """An error as the answer to a request."""
    if isinstance(error, ApiError):
        members = msgspec.json.encode(error.members) if error.members else b""
        return Failed(number, error.code, error.message, members)
    return Failed(number, type(error).__name__, str(error))


def frame(messages: Sequence[Message]) -> bytearray:
    """The bytes of a frame with these messages."""
    content = bytearray(_HEAD)
    _encode_into(messages, content, _HEAD)
    _LENGTH.pack_into(content, 0, len(content) - _HEAD)
    return content


class FrameReader:
    """Decodes messages from bytes that arrive in pieces of any length."""

    __slots__ = ("_missing", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of an incomplete frame
        self._missing = _HEAD  # bytes until the next frame, or its length, is complete

    def messages(self, data: bytes) -> list[Message]:
        """The messages of the frames that `data` completes."""
        self._missing -= len(data)
        if self._missing > 0:
            self._pieces.append(data)
            return []
        if self._pieces:
            data = b"".join([*self._pieces, data])
            self._pieces.clear()
        found: list[Message] = []
        start, size = 0, len(data)
        while (have := size - start) >= _HEAD:
            (length,) = _LENGTH.unpack_from(data, start)
            if have < _HEAD + length:
                self._missing = _HEAD + length - have
                break
            start += _HEAD
            found += _decode(memoryview(data)[start : start + length])
            start += length
        else:
            self._missing = _HEAD - have
        if start < size:
            self._pieces.append(data[start:])
        return found


_KINDS: Final[dict[str, type[IsotoneError]]] = {}


def _kinds() -> dict[str, type[IsotoneError]]:
    """The classes of errors by name. Classes nearer to `IsotoneError` win: a client has subclasses of the same names."""
    if not _KINDS:
        kinds: list[type[IsotoneError]] = [IsotoneError]
        for kind in kinds:
            kinds += kind.__subclasses__()
        _KINDS.update((kind.__name__, kind) for kind in reversed(kinds))
    return _KINDS
