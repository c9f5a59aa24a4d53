"""The table that every client is tried on, and what belongs in it.

Orders of two customers in the order of their time, with a local index by amount and a global one by
status. `order(number)` is in natural Python values, as the higher clients take them; `wire` is the same
in DynamoDB JSON with bytes for binary values, as boto3's low-level client takes it. What a query must
answer follows from the list by `sorted`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from boto3.dynamodb.types import Binary

Order = dict[str, Any]

COUNT = 23
CUSTOMERS = ("ann", "böb")
STATUSES = ("open", "paid", "sent")
# 38 significant digits, the most there are, and the ends of the range of magnitudes. The largest is
# for boto3's low-level client alone: the resource layer refuses to read a number of 126 digits, zeros
# though they are.
PRECISE = Decimal("12345678901234567890.123456789012345678")
LARGEST = Decimal("9.9999999999999999999999999999999999999E+125")
SMALLEST = Decimal("1E-130")


def definition(name: str) -> dict[str, Any]:
    """The arguments of CreateTable."""
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "customer", "AttributeType": "S"},
            {"AttributeName": "placed_at", "AttributeType": "S"},
            {"AttributeName": "status", "AttributeType": "S"},
            {"AttributeName": "amount", "AttributeType": "N"},
        ],
        "KeySchema": _keys("customer", "placed_at"),
        "LocalSecondaryIndexes": [
            {
                "IndexName": "by_amount",
                "KeySchema": _keys("customer", "amount"),
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by_status",
                "KeySchema": _keys("status", "amount"),
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["paid"]},
            }
        ],
    }


def _keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]


def order(number: int) -> Order:
    """One order; amounts repeat, so that indexes have equal keys."""
    return {
        "customer": CUSTOMERS[number % 2],
        "placed_at": f"2026-01-{number + 1:02}T10:00:00Z",
        "status": STATUSES[number % 3],
        "amount": Decimal(number % 5) * Decimal("10.25") - 12,
        "paid": number % 3 > 0,
        "note": None,
        "photo": bytes([number, 0, 255]),
        "tags": {f"t{number}", "gift", "☃"},
        "sizes": {Decimal(number), Decimal("-0.5"), PRECISE},
        "blobs": {b"\x00", bytes([number, 128])},
        "basket": [{"sku": f"sku-{line}", "quantity": Decimal(line)} for line in range(number % 3)],
        "extremes": {"large": PRECISE.copy_negate(), "small": SMALLEST, "empty": {}},
    }


ORDERS = [order(number) for number in range(COUNT)]


def key(item: Order) -> Order:
    """The table's key of an order."""
    return {"customer": item["customer"], "placed_at": item["placed_at"]}


def of_customer(customer: str, *, by: str = "placed_at", reverse: bool = False) -> list[Order]:
    """A customer's orders as a query must give them; equal amounts lie in the order of the table."""
    chosen = [item for item in ORDERS if item["customer"] == customer]
    return sorted(chosen, key=lambda item: (item[by], item["placed_at"]), reverse=reverse)


def wire(value: Any) -> Any:
    """A natural value in DynamoDB JSON. Told by type; a set by its first member."""
    if isinstance(value, (set, frozenset)):
        kind = next(iter(wire(next(iter(value)))))
        return {kind + "S": [wire(member)[kind] for member in sorted(value)]}
    if isinstance(value, dict):
        return {"M": {name: wire(member) for name, member in value.items()}}
    if isinstance(value, list):
        return {"L": [wire(member) for member in value]}
    if value is None:
        return {"NULL": True}
    return {_SCALARS[type(value)]: str(value) if isinstance(value, Decimal) else value}


_SCALARS = {str: "S", Decimal: "N", bytes: "B", bool: "BOOL"}


def wire_item(item: Order) -> dict[str, Any]:
    return {name: wire(value) for name, value in item.items()}


def natural(value: dict[str, Any]) -> Any:
    """A value in DynamoDB JSON as a natural one: what `wire` does, undone."""
    ((kind, content),) = value.items()
    if kind == "M":
        return natural_item(content)
    if kind == "L":
        return [natural(member) for member in content]
    if kind in ("SS", "NS", "BS"):
        return {natural({kind[0]: member}) for member in content}
    return {"N": Decimal, "NULL": lambda _: None}.get(kind, lambda same: same)(content)


def natural_item(item: dict[str, Any]) -> Order:
    return {name: natural(value) for name, value in item.items()}


def plain(value: Any) -> Any:
    """The resource layer's `Binary` as bytes, everywhere inside a value."""
    if isinstance(value, Binary):
        return bytes(value.value)
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, (list, set)):
        return type(value)(plain(member) for member in value)
    return value
