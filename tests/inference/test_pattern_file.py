"""Files of access patterns: what is read, and what is refused with its line."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.errors import UsageError
from isotone.inference import read_patterns
from isotone.inference.pattern_file import Ordering

SHOP = """\
# a shop
Customer(customer_id; name, email)   # who orders
Order(customer_id, number: int <= 99_999;
      status: OPEN | PAID|SHIPPED, placed_at: datetime, total?: decimal <= 9_999.99)

Order of Customer by number desc
Order of status by placed_at, number
Order by  number
"""


def test_a_file_is_read_as_it_stands() -> None:
    found = read_patterns(SHOP)
    order = found.entities["Order"]
    assert (order.line, order.identity) == (3, ("customer_id", "number"))
    assert {name: str(each) for name, each in order.fields.items()} == {
        "customer_id": "text",
        "number": "int <= 99_999",
        "status": "OPEN|PAID|SHIPPED",
        "placed_at": "datetime",
        "total": "decimal <= 9_999.99",
    }
    assert order.fields["number"].greatest == 99_999
    assert order.fields["total"].greatest == Decimal("9999.99")
    assert order.fields["total"].is_optional
    of_customer, of_status, every = found.patterns
    assert (of_customer.equal, of_customer.owner) == (("customer_id",), "Customer")
    assert of_customer.order == (Ordering("number", True),)
    assert of_status.order == (Ordering("placed_at"), Ordering("number"))
    assert (every.line, every.equal, every.order) == (8, (), (Ordering("number"),))


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("Order(id)", 1, "must say what identifies it"),
        ("Order(; id)", 1, "must say what identifies it"),
        ("Order(id; a; b)", 1, "must say what identifies it"),
        ("order(id;)", 1, "'order' is no name for an entity; write Order"),
        ("Order(id;", 1, "is no entity"),
        ("Order(id;) x", 1, "is no entity"),
        ("Order(id;)\nOrder(id;)", 2, "Order is declared in line 1 already"),
        ("Order(id; class)", 1, "'class' is no name for a field; write class_"),
        ("Order(id; placedAt)", 1, "write placed_at"),
        ("Order(id; a, a)", 1, "has field 'a' twice"),
        ("Order(id; a b)", 1, "'a b' is no field"),
        ("Order(id; a,)", 1, "'' is no field"),
        ("Order(id; a: money)", 1, "'money' is no type of 'a'; the types are text, int"),
        ("Order(id; a: int <= 9.5)", 1, "9.5 is no greatest value of 'a'"),
        ("Order(id; a: int <= 0)", 1, "0 is no greatest value"),
        ("Order(id; a: X|X)", 1, "'X' is no choice of 'a'"),
        ("Order(id; a: X||Y)", 1, "'' is no choice"),
        ("Order(id?;)", 1, "'id' identifies Order, so it must have a value"),
        ("Order(n: int;)", 1, "write n: int <= 99_999"),
        ("Order(n: decimal;)", 1, "write n: decimal <= 9_999.99"),
        ("Order(id; n: int)\nOrder by n", 2, "'n' is in a pattern, so its greatest value must be"),
        ("Order(id; n?)\nOrder of n", 2, "'n' is in a pattern, so it must have a value"),
        (
            "A(id: date;)\nB(id, n;)",
            2,
            "'id' identifies B as text, and identifies A as date in line 1",
        ),
        (
            "Customer(id; name)\nOrder(number: int <= 9; id: int <= 5_000)\nOrder of Customer by number",
            2,
            "'id' is in Order as int <= 5_000, and identifies Customer as text in line 1",
        ),
        (
            "Order(number: int <= 9; id: int <= 5_000)\nCustomer(id; name)\nOrder of Customer by number",
            2,
            "'id' identifies Customer as text, and is in Order as int <= 5_000 in line 1",
        ),
        (
            "A(id: decimal <= 9.50;)\nB(b; id: decimal <= 9)",
            2,
            "'id' is in B as decimal <= 9, and identifies A as decimal <= 9.50 in line 1",
        ),
        ("Order(id;)\n\norders of a customer, newest first", 3, "there is no entity 'orders'"),
        ("Order(id;)\nOrder", 2, "is neither an entity nor a pattern"),
        ("Order(id;)\nOrder of x", 2, "Order has no field 'x'; its fields are id"),
        ("Order(id;)\nOrder by id descending", 2, "'id descending' orders nothing"),
        ("Order(id; a)\nOrder of a by a", 2, "'a' is there twice"),
        ("Order(id; a)\nOrder of a by id\nOrder of a by id", 3, "line 2 is the same pattern"),
        ("Order(id; a)\nOrder of a, id", 2, "id identifies Order already"),
        ("A(x;)\nB(id;)\nB of A", 3, "B has no field 'x', which identifies A"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_patterns(text, "p.txt")
    assert str(refused.value).startswith(f"p.txt: line {line}: "), str(refused.value)
    assert why in str(refused.value)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing"])
def test_a_file_without_an_entity_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"p\.txt: there is no entity"):
        read_patterns(text, "p.txt")


@given(
    st.text()
    | st.lists(
        st.sampled_from([*"(;),:|?#\n", "Order", "of", "by", "id", "int", " ", "<=", "9"])
    ).map("".join)
)
def test_no_text_raises_another_error(text: str) -> None:
    try:
        found = read_patterns(text)
    except UsageError:
        return
    assert found.entities
