"""The shapes of values, for annotations: what an item is, and which type codes there are."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

AttributeValue: TypeAlias = dict[str, Any]
"""One key, the type code; its content as JSON has it: `{"S": "x"}`, `{"L": [{"N": "1"}]}`."""

Item: TypeAlias = dict[str, AttributeValue]
"""Attribute names and their values."""

TYPE_CODES: Final = frozenset({"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"})
