"""Wrong constructors and assignments."""
# fmt: off

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from shop import Customer, Order

now = datetime.now(UTC)

Customer(customer_id="a", nmae="Ann")  # E: argument "nmae"
Customer(customer_id="a")  # E: Missing named argument "name"
Customer("a", "Ann")  # E: Too many positional
Customer(customer_id=7, name="Ann")  # E: expected "str"
Customer(customer_id="a", name=None)  # E: incompatible type "None"; expected "str"
Order(customer_id="a", number="1", ordered_at=now, total=Decimal(1))  # E: "number" to "Order" has incompatible type "str"
Order(customer_id="a", number=1, ordered_at="2020-01-11", total=Decimal(1))  # E: expected "datetime"
Order(customer_id="a", number=1, ordered_at=now, total=1.5)  # E: "float"; expected "Decimal"
Order(customer_id="a", number=1, ordered_at=now, total=Decimal(1), status="LOST")  # E: Literal['LOST']
Order(customer_id="a", number=1, ordered_at=now, total=Decimal(1), label="x")  # E: argument "label"
Order(customer_id="a", number=1, ordered_at=now, total=Decimal(1), revision=3)  # E: argument "revision"

order = Order(customer_id="a", number=1, ordered_at=now, total=Decimal(1))
print(order.total.lower())  # E: "Decimal" has no attribute "lower"
order.totla = Decimal(1)  # E: no attribute "totla"
order.total = "1"  # E: variable has type "Decimal"
order.status = "LOST"  # E: Literal['LOST']
print(order.totla)  # E: no attribute "totla"
