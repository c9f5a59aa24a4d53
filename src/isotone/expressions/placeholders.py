"""ExpressionAttributeNames and ExpressionAttributeValues: refuses malformed, unused and misplaced placeholders.

A `#placeholder` stands for one element of a path, whatever characters the name has: dots are part of the name. These
checks cover all expressions of a request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from isotone.errors import ValidationException
from isotone.expressions import messages
from isotone.expressions.expression import Expression, NameMap
from isotone.limits import ATTRIBUTE_NAME_SIZE, NAME_PLACEHOLDER_SIZE

_NAMES: Final = "ExpressionAttributeNames"
_VALUES: Final = "ExpressionAttributeValues"

_MOST_SEEN: Final = 1024


class _Kind:
    """Checks placeholders of names or of values. Programs use few different ones, so those already seen are remembered."""

    def __init__(self, parameter: str, mark: str) -> None:
        self.parameter = parameter
        self.seen: set[str] = set()
        self._is_well_formed = re.compile(
            f"{mark}[A-Za-z0-9_]{{1,{NAME_PLACEHOLDER_SIZE - 1}}}"
        ).fullmatch

    def check(self, given: Mapping[str, object]) -> None:
        """Refuse a map that is empty or has malformed keys."""
        if not given:
            raise ValidationException(messages.PLACEHOLDERS_EMPTY.format(parameter=self.parameter))
        for key in given:
            if not self._is_well_formed(key):
                raise ValidationException(
                    messages.PLACEHOLDER_INVALID.format(
                        parameter=self.parameter, wrong=_wrong_key(key)
                    )
                )
        if len(self.seen) + len(given) <= _MOST_SEEN:
            self.seen.update(given)


_OF_NAMES: Final = _Kind(_NAMES, "#")
_OF_VALUES: Final = _Kind(_VALUES, ":")
_SURELY_SHORT: Final = ATTRIBUTE_NAME_SIZE // 4  # characters; short enough for any UTF-8 encoding


def check_placeholders(names: NameMap | None, values: Mapping[str, object] | None) -> None:
    """Refuse placeholder maps that are empty or have malformed keys. O(keys)."""
    if names is not None:
        if not (names and names.keys() <= _OF_NAMES.seen):
            _OF_NAMES.check(names)
        for key, name in names.items():
            if not 0 < len(name) <= _SURELY_SHORT:
                _check_name(key, name)
    if values is not None and not (values and values.keys() <= _OF_VALUES.seen):
        _OF_VALUES.check(values)


def _wrong_key(key: str) -> str:
    if not key:
        return messages.PLACEHOLDER_EMPTY
    if len(key) > NAME_PLACEHOLDER_SIZE:
        return messages.PLACEHOLDER_TOO_LONG.format(size=len(key))
    return messages.PLACEHOLDER_SYNTAX.format(key=key)


def _check_name(key: str, name: str) -> None:
    if not name:
        wrong = messages.NAME_EMPTY
    elif len(name.encode("utf-8", "surrogatepass")) > ATTRIBUTE_NAME_SIZE:
        wrong = messages.NAME_TOO_LONG.format(size=ATTRIBUTE_NAME_SIZE + 1)
    else:
        return
    raise ValidationException(messages.NAME_INVALID.format(parameter=_NAMES, wrong=wrong, key=key))


def check_scalar_keys(
    expressions: Iterable[Expression], key_attributes: Iterable[str], label: str = "Key"
) -> None:
    """Refuse paths into key attributes, which never contain lists or maps.

    `label` is what the message calls the attribute: `Key` for a table, `IndexKey` for an index.
    """
    nested = [expression.nested_attributes for expression in expressions]
    for attribute in key_attributes:
        if any(attribute in attributes for attributes in nested):
            raise ValidationException(messages.NESTED_KEY.format(label=label, attribute=attribute))


def check_all_used(
    expressions: Sequence[Expression],
    names: NameMap | None,
    values: Mapping[str, object] | None,
) -> None:
    """Refuse a request with a placeholder that none of its expressions uses. O(keys)."""
    if len(expressions) == 1:  # most requests
        (only,) = expressions
        if (not names or names.keys() <= only.names_used) and (
            not values or values.keys() <= only.values_used
        ):
            return
    if names:
        _check_used(_NAMES, names, [each.names_used for each in expressions])
    if values:
        _check_used(_VALUES, values, [each.values_used for each in expressions])


def _check_used(parameter: str, given: Mapping[str, object], used: Sequence[Set[str]]) -> None:
    unused = set(given).difference(*used)
    if unused:
        keys = ", ".join(sorted(unused))
        raise ValidationException(messages.UNUSED.format(parameter=parameter, keys=keys))
