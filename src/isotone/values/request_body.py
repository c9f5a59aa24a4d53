"""Parses the JSON body of a request, on every path from outside, with the same errors (SerializationException).

A body may not be JSON, may not be UTF-8 (msgspec notices that in member names only when it decodes them), may be nested
too deeply for the stack, or may have another type than expected.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from isotone.errors import SerializationException

REFUSED: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Raised by msgspec for bytes that are not JSON of the expected type."""


def parsed_body(body: bytes, shape: Any = Any) -> Any:
    """Parse a body as JSON of the type `shape`. Anything else is refused without a message, as the service does."""
    try:
        return msgspec.json.decode(body, type=shape)
    except REFUSED:
        raise SerializationException from None
