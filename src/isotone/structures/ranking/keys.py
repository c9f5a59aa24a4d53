"""What a ranking ranks by: keys that sort by score, then by the member's UTF-8 bytes.

    ranking_key(Decimal("1234.5"), "song:1")    128119644b#song:1

The score is `ordered_number`'s text, the member is escaped, so that no key has a character up to `"`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple

from isotone.model import escape, number_of, ordered_number, unescape

LOWEST: Final = ""
"""Before every key."""
HIGHEST: Final = "\U0010ffff"
"""After every key."""

_SEPARATOR: Final = "#"
_ABOVE_SEPARATOR: Final = "$"


class Ranked(NamedTuple):
    """What a key says."""

    score: Decimal
    member: str


def ranking_key(score: Decimal | int, member: str) -> str:
    """The key of a member with a score: sorts as `(score, member.encode())`."""
    return ordered_number(score) + _SEPARATOR + escape(member)


def read_ranking_key(key: str) -> Ranked:
    """The score and the member of a key."""
    number, _, member = key.partition(_SEPARATOR)
    return Ranked(number_of(number), unescape(member))


def before_score(score: Decimal | int) -> str:
    """What sorts before every key with the score, and after those with a lesser one."""
    return ordered_number(score) + _SEPARATOR


def after_score(score: Decimal | int) -> str:
    """What sorts after every key with the score, and before those with a greater one."""
    return ordered_number(score) + _ABOVE_SEPARATOR
