"""Wrong writes."""
# fmt: off

from __future__ import annotations

from decimal import Decimal

from shop import Customer, Order

import isotone

store = isotone.connect(":memory:")

Order.total.set("3")  # E: expected "Decimal | int |
Order.status.set("LOST")  # E: Literal['LOST']
Order.number.set(None)  # E: expected "int | Value[int]"
Order.total.set_default("3")  # E: expected "Decimal | int |
Order.total.add("3")  # E: expected "Decimal | int |
Order.tags.add({3})  # E: expected "str"
Order.tags.discard({3})  # E: expected "str"
Order.number.set(Order.customer_id)  # E: expected "int | Value[int]"
Order.number.set(Order.total)  # E: expected "int | Value[int]"
Order.number.set(Order.number + "1")  # E: No overload variant of "__add__"
Order.customer_id.set(Order.customer_id + Order.customer_id)  # E: Unsupported operand types for +
Customer.name.set(Customer.nick)  # E: expected "str | Value[str]"
Customer.name.set(Customer.nick.or_else(3))  # E
Order.totla.set(Decimal(3))  # E: no attribute "totla"
store.put(Order)  # E: cannot be "type[Order]"
store.put({"customer_id": "a"})  # E: cannot be "dict[str, str]"
store.update(Order, Order.total == Decimal(1), customer_id="a", number=1)  # E: "Condition"; expected "Change"
store.update(Order, Order.total.add(1), customer_id="a", number=1, when="total > 1")  # E: expected "Condition | None"
store.putt(Customer(customer_id="a", name="Ann"))  # E: no attribute "putt"
store.delete("a")  # E: incompatible type "str"
store.get("Order", customer_id="a")  # E: incompatible type "str"
store.put(Customer(customer_id="a", name="Ann"), wehn=Customer.name == "Ann")  # E: argument "wehn"
store.returning("new")  # E: No overload variant of "returning"
before: Customer = store.returning("old").put(Customer(customer_id="a", name="Ann"))  # E: "Customer | None"
store.returning("none").update(Order, Order.total.add(1), customer_id="a", number=1).replace()  # E: "None" has no attribute
