"""Reads the JSON of a request: every path that reads a body from outside does it here, with the same errors.

A body may be no JSON, no UTF-8 (which msgspec finds in names of members only when it decodes them), too deeply nested
for the stack, or of another type than asked for.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from isotone.effort import LARGE_PIECE, this_thread
from isotone.errors import SerializationException
from isotone.values.json_pieces import decode_in_pieces

REFUSED: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are no JSON of the wanted type."""


def read_json(body: bytes, shape: Any = Any) -> Any:
    """The JSON of a body, of the type `shape`; anything else is refused without a message, as by the service."""
    try:
        if shape is Any and len(body) > LARGE_PIECE and this_thread.turn.gives_way:
            return decode_in_pieces(body)
        return msgspec.json.decode(body, type=shape)
    except REFUSED:
        raise SerializationException from None
