"""Wrong uses. A type checker refuses every line that is marked, and no other. Never run."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from tests.model.orders import Order

import isotone

NOW = datetime(2019, 7, 1, tzinfo=UTC)
store = isotone.connect()
order = Order(customer_id="x", number=1, status="PLACED", ordered_at=NOW)
query = Order.by_status.where(Order.customer_id == "x")

# Entities
Order(customer_id="x", nubmer=1, status="PLACED", ordered_at=NOW)  # wrong
Order(customer_id="x", number="1", status="PLACED", ordered_at=NOW)  # wrong
Order(customer_id="x", number=1, status="LOST", ordered_at=NOW)  # wrong
Order(customer_id="x", number=1, status="PLACED")  # wrong
order.total = "3"  # wrong
print(order.totla)  # wrong

# Conditions and queries
print(Order.totla)  # wrong
print(Order.by_color)  # wrong
print(Order.number > "3")  # wrong
print(Order.ordered_at.between(NOW, "tomorrow"))  # wrong
Order.by_status.where(Order.customer_id == 3)  # wrong
Order.by_status.where(Order.status == "LOST")  # wrong
Order.by_status.where("SHIPPED")  # wrong
query.newest()  # wrong
query.limit("3")  # wrong

# Stores
isotone.connect(regoin="eu-west-1")  # wrong
isotone.connect(retries=3)  # wrong
store.create_tables("shop")  # wrong
store.put(3)  # wrong
store.get(order)  # wrong
store.all(Order.customer_id == "x")  # wrong
store.page(query)  # wrong
store.page(query, size="3")  # wrong
store.update(Order, Order.total == Decimal(3), customer_id="x", number=1)  # wrong
store.update(Order, Order.status.set("LOST"), customer_id="x", number=1)  # wrong
store.putt(order)  # wrong
