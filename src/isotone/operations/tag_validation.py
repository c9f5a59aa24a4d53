"""Checks the tags of a table, whether they come with CreateTable or with TagResource."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from isotone import limits
from isotone.errors import ValidationException
from isotone.operations.item_validation import INVALID
from isotone.operations.request_members import Tag

# Letters, digits and spaces of any script, and a few marks.
_is_allowed: Final = re.compile(r"[\w\s+\-=.:/@]*").fullmatch
_RESERVED: Final = "aws:"


def check_tags(tags: Iterable[Tag]) -> None:
    """Refuse tags with characters that AWS does not allow, with its own prefix, or with one key twice."""
    seen: set[str] = set()
    for tag in tags:
        for kind, text in (("key", tag.key), ("value", tag.value)):
            if not _is_allowed(text):
                raise ValidationException(
                    f"{INVALID}Tag {kind} '{text}' has a character that is not allowed: use letters, "
                    "digits, spaces and + - = . _ : / @"
                )
        if tag.key.lower().startswith(_RESERVED):
            raise ValidationException(
                f"{INVALID}Tag key '{tag.key}' begins with {_RESERVED}, which is reserved"
            )
        if tag.key in seen:
            raise ValidationException(f"{INVALID}Duplicate tag key: {tag.key}")
        seen.add(tag.key)


def check_tag_count(count: int) -> None:
    """Refuse more tags than a table may have."""
    if count > limits.TAGS:
        raise ValidationException(f"{INVALID}Too many tags: a resource has at most {limits.TAGS}")
