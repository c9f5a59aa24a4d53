"""Formats an error as one line for people: on a terminal, and in the workbench."""

from __future__ import annotations

from typing import Final

from isotone.errors import ApiError, IsotoneError
from isotone.postgres_address import hidden

_ADVICE: Final = {
    "UnrecognizedClientException": " Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, to a key of the "
    "server; isotone user makes one for a server of Isotone.",
}


def error_text(error: BaseException, *, unnamed: str = "") -> str:
    """What went wrong, with the notes that were added to the error.

    Passwords of addresses are left out. `unnamed` is the subject of an operating system's error that names no file.

    >>> error_text(FileNotFoundError(2, "No such file or directory", "shop.db"))
    'shop.db: No such file or directory'
    """
    return hidden("; ".join((_sentence(error, unnamed), *getattr(error, "__notes__", ()))))


def _sentence(error: BaseException, unnamed: str) -> str:
    if isinstance(error, ApiError):
        text = f"{error.code}: {error}" if error.message else error.code
        return text + _ADVICE.get(error.code, "")
    if isinstance(error, IsotoneError):
        return str(error)
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    if isinstance(error, UnicodeEncodeError):
        return (
            f"{error.object[:60]!r} has characters that are not Unicode text, and cannot be written"
        )
    if isinstance(error, UnicodeDecodeError):
        return f"the input is not text in UTF-8: {error.reason} at byte {error.start:,}"
    if isinstance(error, UnicodeError):
        return f"this is not valid text: {error}"
    if isinstance(error, OSError):
        name = error.filename2 or error.filename  # of two, the second is the one that was written
        subject = unnamed if name is None else f"{name!s:.100}"
        return f"{subject}: {error.strerror or error}".removeprefix(": ")
    return f"{type(error).__name__}: {error}"
