"""Wrong writes."""
# fmt: off

from __future__ import annotations

from decimal import Decimal

from shop import Customer, Order

import isotone

store = isotone.connect(":memory:")

Order.total.set("3")  # E: expected "Decimal | int"
Order.status.set("LOST")  # E: Literal['LOST']
Order.number.set(None)  # E: expected "int"
Order.total.set_default("3")  # E: expected "Decimal | int"
Order.total.add("3")  # E: expected "Decimal | int"
Order.tags.add({3})  # E: expected "str"
Order.tags.discard({3})  # E: expected "str"
Order.totla.set(Decimal(3))  # E: no attribute "totla"
store.put(Order)  # E: cannot be "type[Order]"
store.put({"customer_id": "a"})  # E: cannot be "dict[str, str]"
store.update(Order, Order.total == Decimal(1), customer_id="a", number=1)  # E: "Condition"; expected "Change"
store.update(Order, Order.total.add(1), customer_id="a", number=1, when="total > 1")  # E: expected "Condition | None"
store.putt(Customer(customer_id="a", name="Ann"))  # E: no attribute "putt"
store.delete("a")  # E: incompatible type "str"
store.get("Order", customer_id="a")  # E: incompatible type "str"
store.put(Customer(customer_id="a", name="Ann"), wehn=Customer.name == "Ann")  # E: argument "wehn"
