"""Wrong conditions and queries."""
# fmt: off
# ruff: noqa: B015, SIM201

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from shop import Customer, Order

import isotone

store = isotone.connect(":memory:")

Order.by_status.where(Order.customer == "a")  # E: no attribute "customer"
Order.by_staus.where(Order.customer_id == "a")  # E: no attribute "by_staus"
Order.by_status.where(customer_id="a")  # E: "customer_id" to "where"
Order.by_status.where("customer_id = a")  # E: expected "Condition"
Order.total > "3"  # E: Unsupported operand types for > ("DecimalAttr[Decimal]" and "str")
Order.total >= "3"  # E: Unsupported operand types for >=
Order.total < "3"  # E: Unsupported operand types for <
Order.total <= "3"  # E: Unsupported operand types for <=
Order.total.between(Decimal(1), "3")  # E: expected "Decimal | int |
Order.ordered_at.between("2020-01-11", "2020-02-01")  # E: expected "datetime |
Order.status.is_in(["PLACED", "LOST"])  # E: Literal['LOST']
Order.primary.where(Order.status == "LOST")  # E: "bool"; expected "Condition"
Order.primary.where(Order.status != "LOST")  # E: "bool"; expected "Condition"
Order.primary.where(Order.number == "157")  # E: "bool"; expected "Condition"
Order.customer_id.begins_with(3)  # E: expected "str | bytes"
Order.primary.where(Order.total == Order.status)  # E: Unsupported operand types for ==
Order.number < Order.customer_id  # E: Unsupported operand types for <
Order.number < Order.number + 1  # E: Unsupported operand types for <
Order.ordered_at.between(Order.number, Order.ordered_at)  # E: expected "datetime |
Order.tags.size > "2"  # E: Unsupported operand types for > ("Size" and "str")
Order.primary.where(not Order.number == 1)  # E: "bool"; expected "Condition"
if Order.number == 1:  # E(pyright)
    print()

Order.match(customer_id="a")  # E: No overload variant of "match"
Order.match("customer_id = a")  # E: No overload variant of "match"
Order.match(Order.number == 1, scan=True).newest_first()  # E: no attribute "newest_first"

query = Order.primary.where(Order.customer_id == "a")
query.newest()  # E: no attribute "newest"
query.limit("3")  # E: expected "int"
query.filter(Order.totla > Decimal(1))  # E: no attribute "totla"
query.filter("total > 1")  # E: expected "Condition"
query.select("total")  # E: No overload variant of "select"
store.page(query, 25)  # E: Too many positional arguments
store.page(query, size="25")  # E: expected "int"
store.page(Order.primary, size=25)  # E: incompatible type "Pattern[Order]"
store.all(Order)  # E: incompatible type "type[Order]"
store.all(Order.customer_id == "a")  # E: incompatible type "Condition"
store.get(Order(customer_id="a", number=1, ordered_at=datetime.now(), total=Decimal(1)))  # E: incompatible type "Order"
isotone.connect(regoin="eu-west-1")  # E: "regoin"
isotone.connect(retries=3)  # E: expected "Retries"
store.create_tables("shop")  # E: expected "Table"
customers: list[Customer] = store.all(query)  # E: expected "Read[Customer] | Merge[Customer]"
found: Order = store.get(Order, customer_id="a", number=1)  # E: "Order | None"
moment: datetime = (order.total if (order := store.first(query)) else datetime.now())  # E: "Decimal | datetime"
store.nearest(query, [1.0, 2.0])  # E: incompatible type "Query[Order]"
