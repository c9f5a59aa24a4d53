"""Where the fault of a statement is: the service's message has a position for some faults only.

A malformed text is parsed again, and the place is where the parser stands. The words of other messages name an
attribute, a function or a clause, which is looked for among the tokens.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from isotone.expressions.messages import RefusalMessage
from isotone.expressions.partiql import messages
from isotone.expressions.partiql.parser import Malformed, parse
from isotone.expressions.partiql.tokenizer import StatementToken, StatementTokenKind, tokenize

_POSITION: Final = re.compile(r" at (\d+):(\d+):(\d+)")
_NAMED: Final = (
    re.compile(r"operator or function: (?P<name>\w+)"),
    re.compile(
        r"\b(?:Key|key|Attribute|attribute|column|function|Clause|clause): ?(?P<name>[\w.]+)"
    ),
    re.compile(r"\b(?:Key|Attribute|attribute) (?P<name>[\w.]+)"),
)
_NOT_FOUND: Final = (
    "Requested resource not found",
    "Table name should be",
    "Cannot do operations on",
)
_OF_THE_FIRST: Final = frozenset({"Expected data manipulation"})
_OF_THE_LAST: Final = frozenset({"Unexpected operator", "Unexpected keyword"})
"""Reasons that are given when the parser has taken the token."""

_SOURCES: Final = frozenset({"FROM", "INTO", "UPDATE"})


class FaultPlace(NamedTuple):
    """A part of a statement: its line and column, both from 1, and its length."""

    line: int
    column: int
    length: int


def fault_place(text: str, message: str) -> FaultPlace | None:
    """The place that a message about a statement means; None if it means all of it. O(length)."""
    found = _POSITION.search(message)
    if found is not None:
        line, column, length = map(int, found.groups())
        return FaultPlace(line, column, max(length, 1))
    tokens = tokenize(text)
    if message.startswith(messages.MALFORMED.partition("{")[0]):
        return _place(text, *_malformed(text, tokens))
    named = _named(tokens, message)
    return None if named is None else _place(text, *named)


def _malformed(text: str, tokens: Sequence[StatementToken]) -> tuple[int, int]:
    """The characters at which a text stops being a statement."""
    unknown = [token for token in tokens if token.kind is StatementTokenKind.UNKNOWN]
    if unknown:
        return unknown[0].start, len(text) if unknown[0].text in "'\"`" else unknown[0].end
    try:
        parse(text)
    except Malformed as error:
        reason = str(error)
        at = 0 if reason in _OF_THE_FIRST else error.token - (reason in _OF_THE_LAST)
        token = tokens[min(max(at, 0), len(tokens) - 1)]
        if token.kind is StatementTokenKind.END and len(tokens) > 1:
            token = tokens[-2]  # what lacks something after it
        return token.start, token.end
    except RefusalMessage:
        pass
    return 0, len(text)


def _named(tokens: Sequence[StatementToken], message: str) -> tuple[int, int] | None:
    """The characters of what a message names."""
    if message.startswith(_NOT_FOUND):
        for token, following in itertools.pairwise(tokens):
            if token.symbol in _SOURCES:
                return following.start, following.end
    for pattern in _NAMED:
        for found in pattern.finditer(message):
            name = found["name"]
            for token in tokens:
                if name in (token.text, token.text.lower()) and token.end > token.start:
                    return token.start, token.end
    if "parameters" in message:
        marks = [token for token in tokens if token.symbol == "?"]
        if marks:
            return marks[0].start, marks[0].end
    if "Where clause" in message or "where clause" in message:
        begun = next((token for token in tokens if token.symbol == "WHERE"), None)
        if begun is not None:
            return begun.start, tokens[-2].end
    return None


def _place(text: str, start: int, end: int) -> FaultPlace:
    before = text[:start]
    line = before.count("\n") + 1
    column = start - (before.rfind("\n") + 1) + 1
    length = len(text[start:end].partition("\n")[0])
    return FaultPlace(line, column, max(length, 1))
