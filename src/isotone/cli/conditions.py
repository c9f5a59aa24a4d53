"""Parses the conditions of `isotone query` and `scan`, such as 'total > 10', into words that `query_plan` uses.

    customer=ann                          placed_at >= 2020-01-11
    placed_at begins_with 2020            placed_at between 2020-01-11 and 2020-02-01
    total > 10                            gift exists              note missing

`and` joins them. `query_plan` turns them into a request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from isotone.errors import UsageError

_CONDITION: Final = re.compile(
    r"""\s*(?:"(?P<quoted>[^"]+)"|(?P<name>[^\s=<>"]+?))\s*
    (?:(?P<symbol><=|>=|<>|!=|=|<|>)|\s(?P<word>begins_with|between|contains|exists|missing)\b)\s*
    (?P<value>.*?)\s*""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_AND: Final = re.compile(r"\s+and\s+", re.IGNORECASE)
_OPERANDS: Final = {"between": 2, "exists": 0, "missing": 0}


class ConditionWords(NamedTuple):
    """One attribute, an operator, and the words to compare with."""

    name: str
    operator: str
    words: tuple[str, ...]


def parse_conditions(words: Sequence[str]) -> list[ConditionWords]:
    """The conditions in the words of a command line; a condition may take one word or several."""
    return [_parse(piece) for text in _gather(words) for piece in _split(text)]


def _gather(words: Sequence[str]) -> Iterator[str]:
    """Join words until they form a complete condition; drops an `and` between conditions."""
    gathered = ""
    for word in words:
        if not gathered and word.lower() == "and":
            continue
        gathered = f"{gathered} {word}" if gathered else word
        if _is_whole(gathered):
            yield gathered
            gathered = ""
    if gathered or not any(words):
        yield gathered


def _is_whole(text: str) -> bool:
    match = _CONDITION.fullmatch(text)
    if match is None or _lacks_bound(_split(text)[-1]):
        return False
    return bool(match["value"]) or _OPERANDS.get((match["word"] or "").lower()) == 0


def _split(text: str) -> list[str]:
    """Split a text at the `and`s between conditions, but not at the `and` of a `between`."""
    pieces: list[str] = []
    for piece in _AND.split(text):
        if pieces and _lacks_bound(pieces[-1]):
            pieces[-1] += f" and {piece}"
        else:
            pieces.append(piece)
    return pieces


def _lacks_bound(piece: str) -> bool:
    match = _CONDITION.fullmatch(piece)
    if match is None or (match["word"] or "").lower() != "between":
        return False
    return not _AND.search(match["value"])


def _parse(text: str) -> ConditionWords:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text!r} is not a condition; write it like customer=ann, 'placed_at >= 2020-01-11', "
            "'placed_at begins_with 2020' or 'total between 5 and 10'"
        )
    operator = (match["symbol"] or match["word"]).lower()
    operator = "<>" if operator == "!=" else operator
    wanted = _OPERANDS.get(operator, 1)
    words = tuple(_AND.split(match["value"])) if wanted == 2 else (match["value"],) * wanted
    if len(words) != wanted or (wanted == 0 and match["value"]):
        raise UsageError(
            f"{text!r}: {operator} takes {('nothing', 'a value', 'two values')[wanted]}"
        )
    return ConditionWords(match["quoted"] or match["name"], operator, words)
