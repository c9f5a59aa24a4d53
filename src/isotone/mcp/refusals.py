"""Errors as an assistant reads them: one sentence on one line, which quotes nothing that is stored.

Most errors are about the call, and their words stay. Some quote an item that was read, such as a value that its entity
does not declare. An assistant could take such a text for an instruction, so these errors are only named.
"""

from __future__ import annotations

from typing import Final

import msgspec

from isotone.error_text import error_text
from isotone.errors import (
    BadRow,
    DamagedItem,
    InvalidItem,
    IsotoneError,
    KeysChanged,
    Locked,
    MalformedKey,
    StorageCorrupt,
    UsageError,
    WriteRefused,
)
from isotone.text_table import printable

_LONGEST: Final = 1_000
_QUOTING: Final = (
    BadRow,
    DamagedItem,
    InvalidItem,
    KeysChanged,
    Locked,
    MalformedKey,
    StorageCorrupt,
    WriteRefused,
)
_FOREIGN: Final = (OSError, UnicodeError, RecursionError, msgspec.MsgspecError)


class ToolRefusal(UsageError):
    """A tool did not do what it was asked; the text is for the assistant."""


def refusal_of(error: BaseException) -> ToolRefusal | None:
    """The refusal for an error; None for a fault of the program itself."""
    if isinstance(error, ToolRefusal):
        return error
    if isinstance(error, _QUOTING):
        return ToolRefusal(f"{type(error).__name__}: {_meaning(error)}")
    if isinstance(error, msgspec.ValidationError):
        return ToolRefusal(_one_line(f"wrong arguments: {error}"))
    if isinstance(error, (IsotoneError, *_FOREIGN)):
        return ToolRefusal(_one_line(error_text(error)))
    return None


def _meaning(error: BaseException) -> str:
    """What such an error means in general: the first sentence of its class."""
    return (type(error).__doc__ or "").strip().partition("\n")[0]


def _one_line(text: str) -> str:
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
