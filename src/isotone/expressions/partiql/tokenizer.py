"""The tokens of PartiQL, and its reserved words (first stage).

Keywords are recognized in any case. A reserved word is a name only in double quotes. Comments (`-- …` and `/* … */`)
are left out. Anything else becomes a token of kind `UNKNOWN`, which the parser refuses: a character that begins no
token, an open quote or comment, and a number that does not fit into Java's `BigDecimal`, which the service uses.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from isotone.expressions.partiql.statement_values import is_readable


class StatementTokenKind(Enum):
    """The kinds of tokens."""

    NAME = "name"
    QUOTED = "quoted"  # a name in double quotes
    KEYWORD = "keyword"
    STRING = "string"
    NUMBER = "number"
    ION = "ion"
    SYMBOL = "symbol"
    OPERATOR = "operator"
    UNKNOWN = "unknown"
    END = "end"


class StatementToken(NamedTuple):
    """A part of the statement: `text` is its meaning, `start` and `end` its position in the statement.

    `symbol` is compared with the grammar: a keyword in capitals, a symbol itself, or empty.
    """

    kind: StatementTokenKind
    text: str
    start: int
    end: int
    symbol: str = ""


_KINDS: Final = {kind.value: kind for kind in StatementTokenKind}
_TOKEN: Final = re.compile(
    r"""(?P<skipped>[\ \t\r\n\f\v]+ | --[^\n\r]* | /\*.*?\*/)
      | (?P<string>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<ion>`[^`]*`)
      | (?P<unknown>/\*.* | (?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)[eE](?![+-]?[0-9])[+-]?)
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
      | (?P<symbol><<|>>|[*?.,:;()\[\]{}])
      | (?P<operator><=|>=|<>|!=|\|\||[=<>+\-/%@])
      | (?P<character>.)""",
    re.VERBOSE | re.DOTALL,
)


def tokenize(text: str) -> list[StatementToken]:
    """The tokens of a statement, followed by one of kind `END`. O(length)."""
    tokens = [
        _token(
            _KINDS.get(str(match.lastgroup), StatementTokenKind.UNKNOWN),
            match.group(),
            *match.span(),
        )
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "skipped"
    ]
    tokens.append(StatementToken(StatementTokenKind.END, "", len(text), len(text)))
    return tokens


def split_statements(text: str) -> list[str]:
    """Split a text into its statements, which semicolons separate. O(length).

    >>> split_statements("SELECT ';' FROM a; -- the second\\n SELECT * FROM b;")
    ["SELECT ';' FROM a", '-- the second\\n SELECT * FROM b']
    """
    ends = [token.start for token in tokenize(text) if token.symbol == ";"]
    starts = [0, *(end + 1 for end in ends)]
    parts = [text[start:end].strip() for start, end in zip(starts, [*ends, None], strict=True)]
    return [part for part in parts if tokenize(part)[0].kind is not StatementTokenKind.END]


def _token(kind: StatementTokenKind, text: str, start: int, end: int) -> StatementToken:
    if kind is StatementTokenKind.NAME:
        upper = text.upper()
        if upper not in KEYWORDS:
            return StatementToken(kind, text, start, end)
        word = (
            StatementTokenKind.OPERATOR if upper in _WORD_OPERATORS else StatementTokenKind.KEYWORD
        )
        return StatementToken(word, text, start, end, upper)
    if kind in _SYMBOLS:
        return StatementToken(kind, text, start, end, text)
    if kind is StatementTokenKind.NUMBER and not is_readable(text):
        kind = StatementTokenKind.UNKNOWN
    if kind in _QUOTES:
        quote = text[0]
        text = text[1:-1].replace(quote * 2, quote)
    return StatementToken(kind, text, start, end)


_QUOTES: Final = frozenset(
    {StatementTokenKind.STRING, StatementTokenKind.QUOTED, StatementTokenKind.ION}
)
_SYMBOLS: Final = frozenset({StatementTokenKind.SYMBOL, StatementTokenKind.OPERATOR})
_WORD_OPERATORS: Final = frozenset({"AND", "BETWEEN", "IN", "IS", "LIKE", "NOT", "OR"})

# The words of SQL-92 that PartiQL reserves, and its own.
_WORDS: Final = """
ABSOLUTE ACTION ADD ALL ALLOCATE ALTER AND ANY ARE AS ASC ASSERTION AT AUTHORIZATION AVG BAG BEGIN
BETWEEN BIT BIT_LENGTH BLOB BOOL BOOLEAN BY CASCADE CASCADED CASE CAST CATALOG CHAR CHARACTER
CHARACTER_LENGTH CHAR_LENGTH CHECK CLOB CLOSE COALESCE COLLATE COLLATION COLUMN COMMIT CONFLICT
CONNECT CONNECTION CONSTRAINT CONSTRAINTS CONTINUE CONVERT CORRESPONDING COUNT CREATE CROSS
CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR DATE DATE_ADD DATE_DIFF
DEALLOCATE DEC DECIMAL DECLARE DEFAULT DEFERRABLE DEFERRED DELETE DESC DESCRIBE DESCRIPTOR
DIAGNOSTICS DISCONNECT DISTINCT DO DOMAIN DOUBLE DROP ELSE END ESCAPE EXCEPT EXCEPTION EXEC
EXECUTE EXISTS EXTERNAL EXTRACT FALSE FETCH FIRST FLOAT FOR FOREIGN FOUND FROM FULL GET GLOBAL GO
GOTO GRANT GROUP HAVING IDENTITY IMMEDIATE IN INDEX INDICATOR INITIALLY INNER INPUT INSENSITIVE
INSERT INT INTEGER INTERSECT INTERVAL INTO IS ISOLATION JOIN KEY LANGUAGE LAST LEFT LET LEVEL LIKE
LIMIT LIST LOCAL LOWER MATCH MAX MIN MISSING MODIFIED MODULE NAMES NATIONAL NATURAL NCHAR NEW NEXT
NO NOT NOTHING NULL NULLIF NUMERIC OCTET_LENGTH OF OLD ON ONLY OPEN OPTION OR ORDER OUTER OUTPUT
OVERLAPS PAD PARTIAL PIVOT POSITION PRECISION PREPARE PRESERVE PRIMARY PRIOR PRIVILEGES PROCEDURE
PUBLIC READ REAL REFERENCES RELATIVE REMOVE RESTRICT RETURNING REVOKE RIGHT ROLLBACK ROWS SCHEMA
SCROLL SECTION SELECT SESSION SESSION_USER SET SEXP SIZE SMALLINT SOME SPACE SQL SQLCODE SQLERROR
SQLSTATE STRING STRUCT SUBSTRING SUM SYMBOL SYSTEM_USER TABLE TEMPORARY THEN TIME TIMESTAMP TO
TRANSACTION TRANSLATE TRANSLATION TRIM TRUE TUPLE UNION UNIQUE UNKNOWN UNPIVOT UPDATE UPPER USAGE
USER USING VALUE VALUES VARCHAR VARYING VIEW WHEN WHENEVER WHERE WITH WORK WRITE ZONE
"""
KEYWORDS: Final = frozenset(_WORDS.split())
