"""Rules on lists of attribute names."""

from __future__ import annotations

from collections.abc import Sequence

from isotone.errors import ValidationException


def refuse_repeated_names(names: Sequence[str]) -> None:
    """Refuse AttributesToGet that names an attribute twice."""
    if len(set(names)) < len(names):
        repeated = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValidationException(
            "One or more parameter values were invalid: "
            f"Duplicate value in attribute name: {repeated}"
        )
