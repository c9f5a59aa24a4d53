"""Cuts what is stored to a size that an assistant can read: long texts, long lists, and the answer as a whole.

The mark of a cut is recognized when an assistant sends a value back, so that it does not replace the whole one.

What is stored may be a text that was written to be read by an assistant. It is never more than a value in the answer:
nothing here looks at it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

LONGEST_TEXT: Final = 2_000
"""Characters of one text."""
LONGEST_LIST: Final = 200
"""Elements of one list, members of one map."""
LARGEST_ANSWER: Final = 100_000
"""Characters of one answer, about."""
DEEPEST: Final = 40
"""Values in values; an item has at most 32."""

_MARK: Final = re.compile(r"\[cut: (?:[\d,]+ (?:characters )?in all|nested too deeply)\]")
_STRUCTURE: Final = 4  # characters that an element takes beside its text


def cut(value: Any, most: int = LARGEST_ANSWER, longest_text: int = LONGEST_TEXT) -> Any:
    """JSON values with a mark where something was left out.

    >>> cut({"S": "a" * 3000})["S"][1995:]
    'aaaaa… [cut: 3,000 characters in all]'
    """
    return _AnswerCutter(most, longest_text).value(value, 0)


def was_cut(value: Any) -> bool:
    """Whether JSON values have such a mark: then they are not what is stored.

    >>> was_cut({"Item": {"name": cut({"S": "a" * 3000})}})
    True
    """
    if isinstance(value, str):
        return _MARK.search(value) is not None
    if isinstance(value, Mapping):
        return any(was_cut(name) or was_cut(each) for name, each in value.items())
    return isinstance(value, list | tuple) and any(was_cut(each) for each in value)


class _AnswerCutter:
    """One answer: how many characters are left for it."""

    def __init__(self, left: int, longest_text: int) -> None:
        self._left = left
        self._longest_text = longest_text

    def value(self, given: Any, depth: int) -> Any:
        self._left -= _STRUCTURE
        if isinstance(given, str):
            return self._text(given)
        if isinstance(given, Mapping | list | tuple) and depth >= DEEPEST:
            return "… [cut: nested too deeply]"
        if isinstance(given, Mapping):
            return self._map(given, depth + 1)
        if isinstance(given, list | tuple):
            return self._list(given, depth + 1)
        return given

    def _text(self, text: str) -> str:
        most = max(min(self._longest_text, self._left), 0)
        self._left -= min(len(text), most)
        if len(text) <= most:
            return text
        return f"{text[:most]}… [cut: {len(text):,} characters in all]"

    def _list(self, given: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        found: list[Any] = []
        for each in given[:LONGEST_LIST]:
            if self._left <= 0:
                break
            found.append(self.value(each, depth))
        if len(found) < len(given):
            found.append(f"… [cut: {len(given):,} in all]")
        return found

    def _map(self, given: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, each in given.items():
            if self._left <= 0 or len(found) >= LONGEST_LIST:
                found["…"] = f"[cut: {len(given):,} in all]"
                break
            found[self._text(str(name))] = self.value(each, depth)
        return found
