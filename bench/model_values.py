"""The order that every modelling library writes and reads: ten fields of the usual types."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

TABLE: Final = "Orders"
CUSTOMER: Final = "customer-00042"
NUMBER: Final = 157
PAGE: Final = 100  # items that the query returns

PARTITION: Final = f"CUSTOMER#{CUSTOMER}"
SORT: Final = f"ORDER#{NUMBER:05}"


def values() -> dict[str, Any]:
    """The fields' values, as Python has them."""
    return {
        "customer": CUSTOMER,
        "number": NUMBER,
        "status": "SHIPPED",
        "placed_at": datetime(2026, 1, 11, 9, 30, 15, 250_000, tzinfo=UTC),
        "total": Decimal("1204.25"),
        "quantity": 7,
        "gift": True,
        "tags": {"alpha", "beta", "t7"},
        "address": {"street": "157 Long Road", "city": "Ghent"},
        "note": "An ordinary sentence about an ordinary order, of ordinary length. " * 2,
    }
