"""What a sheet is asked for, as people type it."""

from __future__ import annotations

import pytest
from tests.design.models import Customer, Order, shop

from isotone.design import SampleRequest, Several, SheetRequest, sheet_of
from isotone.design.sheet_request import amount
from isotone.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("50", 50),
        ("2_500", 2500),
        ("2,500", 2500),
        ("0.5", 0.5),
        ("10k", 10_000),
        ("1.5M", 1_500_000),
        ("2G", 2 * 10**9),
        ("0", 0),
    ],
)
def test_an_amount_is_read_as_it_is_written(text: str, value: float) -> None:
    assert amount(text) == value


@pytest.mark.parametrize("text", ["", "k", "-1", "many", "inf", "nan", "1e999", "10 k x"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a number; write 2500, 10k or 10M"):
        amount(text)


def test_what_is_typed_replaces_what_was_asked() -> None:
    asked = SheetRequest(
        sample=SampleRequest(
            items={"Customer": 10, "Product": 7}, per={("Order", "Customer"): Several.of(3)}
        ),
        rates={"Order.put": 5.0, "Order.get": 6.0},
        reads=2.0,
    )
    typed = asked.with_typed(
        {
            "items": {"Customer": "1M", "Product": ""},
            "per": {"Order": "3..40,zipf"},
            "rates": {"Order.put": "", "Order.update": "0.5"},
            "writes": "0",
        }
    )
    assert typed.sample.items == {"Customer": 1_000_000}
    assert typed.sample.per == {("Order", ""): Several(3, 40, 1.0)}
    assert typed.rates == {"Order.get": 6.0, "Order.update": 0.5}
    assert (typed.reads, typed.writes) == (2.0, 0.0)
    assert asked.with_typed({}) == asked


@pytest.mark.parametrize(
    "given",
    [{"items": {"Customer": "x"}}, {"per": {"Order": "9..3"}}, {"rates": [1]}, {"items": {"A": 1}}],
)
def test_a_wrong_text_is_an_error(given: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        SheetRequest().with_typed(given)


@pytest.mark.parametrize("text", ["9", "3..40", "3..40,zipf=1", "0..7,zipf=0.5"])
def test_a_number_of_children_is_written_as_it_is_read(text: str) -> None:
    assert Several.of(text).text == text


def test_names_of_another_version_are_ignored_if_asked() -> None:
    asked = SheetRequest(
        sample=SampleRequest(
            items={"Customer": 20, "Gone": 5},
            per={("Order", "Customer"): Several.of(2), ("Gone", ""): Several.of(2)},
            popularity={"Gone": 1.0},
        ),
        rates={"Gone.put": 1.0, "Order.put": 4000.0},
    )
    with pytest.raises(UsageError, match="there is no entity 'Gone'"):
        asked.sheet(Customer, Order)
    sheet = asked.sheet(Customer, Order, ignore_unknown=True)
    expected = sheet_of(
        Customer,
        Order,
        request=SampleRequest(items={"Customer": 20}, per={("Order", "Customer"): Several.of(2)}),
        rates={"Order.put": 4000.0},
    )
    assert sheet == expected
    with pytest.raises(UsageError, match=r"there is no pattern 'Gone\.put'"):
        SheetRequest(rates={"Gone.put": 1.0}).sheet(shop)
