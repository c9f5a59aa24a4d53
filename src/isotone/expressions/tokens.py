"""The first stage: expression text to tokens.

Keywords are recognised whatever their case; function names are ordinary words, because only their
place tells them from attributes. A character that no token begins with becomes a token of kind
`unknown`, so that the parser refuses it where it stands.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    WORD = "word"
    NAME = "name"
    VALUE = "value"
    INDEX = "index"
    SYMBOL = "symbol"
    KEYWORD = "keyword"
    UNKNOWN = "unknown"
    END = "end"


class Token(NamedTuple):
    """A stretch of the text; `symbol` is what the grammar compares: the symbol itself, a keyword in capitals, or nothing."""

    kind: Kind
    text: str
    start: int
    end: int
    symbol: str


KEYWORDS = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "SET", "REMOVE", "ADD", "DELETE"})
END_TEXT = "<EOF>"

_TOKEN = re.compile(
    r"""(?P<word>[A-Za-z][A-Za-z0-9_]*)
      | (?P<name>\#[A-Za-z0-9_]+)
      | (?P<value>:[A-Za-z0-9_]+)
      | (?P<index>0|[1-9][0-9]*)
      | (?P<symbol><=|>=|<>|[=<>+\-,.()\[\]])
      | (?P<space>[\ \t\r\n\f]+)
      | (?P<unknown>.)""",
    re.VERBOSE | re.DOTALL,
)


def tokenize(text: str) -> list[Token]:
    """The tokens of a text, with a token of kind `END` behind the last. O(length)."""
    tokens = [
        _token(match.lastgroup, match.group(), match.start())
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "space"
    ]
    tokens.append(Token(Kind.END, END_TEXT, len(text), len(text), END_TEXT))
    return tokens


def _token(group: str | None, text: str, start: int) -> Token:
    kind, symbol = Kind(group), ""
    if kind is Kind.WORD and text.upper() in KEYWORDS:
        kind, symbol = Kind.KEYWORD, text.upper()
    elif kind is Kind.SYMBOL:
        symbol = text
    return Token(kind, text, start, start + len(text), symbol)


def is_word(text: str) -> bool:
    """Whether a text would be read as one word that is no keyword."""
    return _is_word(text) is not None and text.upper() not in KEYWORDS


_is_word = re.compile(r"[A-Za-z][A-Za-z0-9_]*").fullmatch
