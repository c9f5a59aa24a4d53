"""Where one component of a key ends and the next begins, and whether order survives it.

A component ends after its width, or at the end of the key, or where its *stop* begins: the separator, or
in a template without one the literal that comes next. So no text may hold its stop, not even together
with the stop that follows it (`a:` before `::` would end after `a`). Where a text can go on with less than
the stop begins with, longer texts sort among shorter ones and what follows them, and there is no order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from isotone.codec.readable.interface import SEPARATOR, Codec
from isotone.codec.readable.text import RawText
from isotone.errors import UsageError

Part = str | Codec[Any]


def ends_at(text: str, stop: str) -> bool:
    """Whether a text before its stop is read back as it was."""
    return (text + stop).find(stop) == len(text)


def ends_as_begins(text: str, stop: str) -> bool:
    """Whether a text ends in the beginning of a stop."""
    return any(text.endswith(stop[:cut]) for cut in range(1, len(stop)))


def literals_between(parts: Sequence[Part], separator: str) -> list[str]:
    """The texts before, between and after the components, separators among them."""
    literals, text = [], ""
    for place, part in enumerate(parts):
        text += separator if place else ""
        if isinstance(part, str):
            text += part
        else:
            literals.append(text)
            text = ""
    return [*literals, text]


def pieces(parts: Sequence[Part], separator: str) -> tuple[Part, ...]:
    """The parts, with literals taken apart at separators."""
    found: list[Part] = []
    for part in parts:
        if isinstance(part, str) and separator and separator in part:
            found += part.split(separator)
        else:
            found.append(part)
    return tuple(found)


def stops(literals: Sequence[str], separator: str) -> list[str]:
    """What each component ends before; nothing where another one, or the end, is next."""
    return [(separator or literal) if literal else "" for literal in literals[1:]]


def bound(codec: Codec[Any], stop: str, *, is_last: bool) -> Codec[Any]:
    """The codec in its place. Raises `UsageError` where nothing would tell its end."""
    if codec.width is not None or (is_last and not stop):
        return codec
    if isinstance(codec, RawText) and codec.ascending and stop:
        return replace(codec, until=stop)
    if not stop:
        raise UsageError(
            f"nothing tells where {title(codec)} ends and the next component begins: put a literal "
            "between them, or declare a separator"
        )
    if not _ends_before(codec, stop):
        raise UsageError(
            f"{title(codec)} can hold {stop!r}, which comes behind it, so nothing tells where it "
            f"ends: declare another separator (such as {SEPARATOR!r}), or another form of the value"
        )
    return codec


def _ends_before(codec: Codec[Any], stop: str) -> bool:
    if codec.alphabet is None:
        return stop[0] < codec.goes_on
    return not set(stop) <= set(codec.alphabet)


def keeps_order(codec: Codec[Any], stop: str) -> bool:
    """Whether keys sort by the values of a component, whatever follows it."""
    return codec.sorts and (not stop or codec.width is not None or stop[0] < codec.goes_on)


def check_literals(parts: Sequence[Part], separator: str) -> None:
    """Raises `UsageError` for a literal that would take a part of the separator behind it."""
    if len(separator) < 2:
        return
    for part in parts[:-1]:
        if isinstance(part, str) and not ends_at(part.split(separator)[-1], separator):
            raise UsageError(
                f"the literal {part!r} ends as the separator {separator!r} begins, so it would be "
                "read back as another one: write it otherwise"
            )


def title(codec: Codec[Any]) -> str:
    """The name of a codec, for a message."""
    return type(codec).__name__ + ("" if codec.ascending else " descending")
