"""Names of tables as requests give them: a plain name, or the table's ARN.

Control-plane and data-plane calls refuse a bad name with different sentences.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from isotone.errors import ValidationException
from isotone.operations.constraints import problem
from isotone.operations.grammar import NAME_CONSTRAINTS

_ARN: Final = re.compile(
    "arn:[a-z-]{1,20}:dynamodb:[a-z0-9-]{0,40}:[0-9]{0,20}:table/([a-zA-Z0-9_.-]{3,255})"
)


@lru_cache(maxsize=1024)
def table_name(text: str, path: str = "tableName") -> str:
    """The plain name in a `TableName` member; ValidationException if it is neither name nor ARN.

    Costs a cache lookup for a name seen before.
    """
    arn = _ARN.fullmatch(text)
    if arn is not None:
        return arn[1]
    if text.startswith("arn:"):
        raise ValidationException(f"Invalid table ARN: {text}")
    broken = [rule for rule in NAME_CONSTRAINTS if not rule.holds(text)]
    if broken:
        counted = "1 validation error" if len(broken) == 1 else f"{len(broken)} validation errors"
        problems = (problem(f"'{text}'", path, rule.sentence) for rule in broken)
        raise ValidationException(f"{counted} detected: {'; '.join(problems)}")
    return text


def check_control_name(member: str, text: str | None) -> None:
    """Refuse a missing, short, long or malformed name as CreateTable and its kin do."""
    if text is None:
        raise ValidationException(
            f"The parameter '{member}' is required but was not present in the request"
        )
    if not text.startswith("arn:") and not 3 <= len(text) <= 255:
        raise ValidationException(
            f"{member} must be at least 3 characters long and at most 255 characters long"
        )
    table_name(text)
