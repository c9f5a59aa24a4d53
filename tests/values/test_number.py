from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.errors import ValidationException
from isotone.values.number import add, canonical_decimal, canonical_number, check_as_int, subtract

OVERFLOW = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
UNDERFLOW = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
DIGITS = "Attempting to store more than 38 significant digits in a Number"
NOT_NUMERIC = "The parameter cannot be converted to a numeric value"


@st.composite
def numbers(draw: st.DrawFn) -> Decimal:
    """Any number that DynamoDB can hold."""
    digits = draw(st.integers(1, 10**38 - 1) | st.integers(1, 1000))
    magnitude = draw(st.integers(-130, 125) | st.integers(-3, 12))
    sign = draw(st.sampled_from([1, -1, 0]))
    if sign == 0:  # the exponent of a zero counts, too
        return Decimal(0)
    with localcontext(prec=200):
        return Decimal(sign * digits).scaleb(magnitude - len(str(digits)) + 1)


@st.composite
def spellings(draw: st.DrawFn) -> tuple[Decimal, str]:
    """A number with one of the many ways in which a request may write it."""
    number = draw(numbers())
    shift = draw(st.integers(-40, 40))
    with localcontext(prec=400):
        mantissa = f"{number.scaleb(shift).copy_abs():f}"
    mantissa = "0" * draw(st.integers(0, 3)) + mantissa
    if "." in mantissa:
        mantissa += "0" * draw(st.integers(0, 3))
        if mantissa.startswith("0."):
            mantissa = draw(st.sampled_from([mantissa, mantissa[1:]]))
    else:
        mantissa += draw(st.sampled_from(["", ".", ".0"]))
    sign = "-" if number < 0 else draw(st.sampled_from(["", "+"]))
    exponent = f"{draw(st.sampled_from('eE'))}{-shift:{draw(st.sampled_from(['', '+']))}d}"
    return number, sign + mantissa + exponent


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("0e125", "0"),
        ("0e-130", "0"),
        ("1e0000000000005", "100000"),
        ("000", "0"),
        ("1", "1"),
        ("+1", "1"),
        ("-1", "-1"),
        ("007", "7"),
        ("100", "100"),
        ("1e2", "100"),
        ("1E+2", "100"),
        ("12e-1", "1.2"),
        (".5", "0.5"),
        ("5.", "5"),
        ("-00.50", "-0.5"),
        ("1.0", "1"),
        ("1.10", "1.1"),
        ("10.00", "10"),
        ("1e-130", "0." + "0" * 129 + "1"),
        ("-1E125", "-1" + "0" * 125),
        ("9" * 38 + "e88", "9" * 38 + "0" * 88),
        ("9" * 38, "9" * 38),
        ("1" + "0" * 60, "1" + "0" * 60),
        ("0." + "1" * 38, "0." + "1" * 38),
        ("123456789012345678901234567890.12345678", "123456789012345678901234567890.12345678"),
    ],
)
def test_normal_form(text: str, normal: str) -> None:
    assert canonical_number(text) == normal


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", NOT_NUMERIC),
        *(
            (text, f"{NOT_NUMERIC}: {text}")
            for text in (
                *("b", "-", "+", ".", "e5", "1e", "1e+", "--1", "1 ", " 1", "1\n", "1,5", "1_0"),
                *("0x10", "NaN", "Infinity", "-Infinity", "inf", "١", "1٣", "½", "1e1.5", "1.2.3"),
            )
        ),
        ("1e126", OVERFLOW),
        ("-10e125", OVERFLOW),
        ("1" + "0" * 126, OVERFLOW),
        ("1e999999999", OVERFLOW),
        ("1e99999999999", OVERFLOW),
        ("1e" + "9" * 5000, OVERFLOW),
        ("0e126", OVERFLOW),
        ("-0e999", OVERFLOW),
        ("1e-131", UNDERFLOW),
        ("-9.9e-131", UNDERFLOW),
        ("1e-999999999", UNDERFLOW),
        ("1e-99999999999", UNDERFLOW),
        ("0e-131", UNDERFLOW),
        ("1" * 39, DIGITS),
        ("-0." + "1" * 39, DIGITS),
        ("1" + "0" * 37 + ".1", DIGITS),
        ("1" * 39 + "e100", OVERFLOW),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as refusal:
        canonical_number(text)
    assert refusal.value.message == message


@given(spellings())
def test_every_spelling_has_the_one_normal_form(spelling: tuple[Decimal, str]) -> None:
    number, text = spelling
    normal = canonical_number(text)
    assert Decimal(normal) == number
    assert normal == (
        f"{number:f}".rstrip("0").rstrip(".") if "." in f"{number:f}" else f"{number:f}"
    )
    assert canonical_number(normal) is normal


@given(st.text(max_size=12) | st.text("0123456789+-.eE", max_size=12))
def test_any_text_is_a_number_or_a_validation_error(text: str) -> None:
    try:
        normal = canonical_number(text)
    except ValidationException:
        return
    assert Decimal(normal) == Decimal(text)


def _exact(number: Decimal) -> str | None:
    """What a sum should be, or None where DynamoDB refuses it."""
    if number == 0:
        return "0"
    digits = number.normalize().as_tuple().digits
    if len(digits) > 38 or not -130 <= number.adjusted() <= 125:
        return None
    return canonical_number(f"{number:f}")


@given(numbers(), numbers())
def test_arithmetic_is_exact_or_refused(a: Decimal, b: Decimal) -> None:
    for operation, sign in ((add, 1), (subtract, -1)):
        with localcontext(prec=400):
            expected = _exact(a + sign * b)
        texts = canonical_number(f"{a:f}"), canonical_number(f"{b:f}")
        if expected is None:
            with pytest.raises(ValidationException):
                operation(*texts)
        else:
            assert operation(*texts) == expected


def test_a_tenth_does_not_drift() -> None:
    total = "0"
    for _ in range(10):
        total = add(total, "0.1")
    assert total == "1"


def test_overflow_of_a_sum() -> None:
    largest = "9" * 38 + "0" * 88
    with pytest.raises(ValidationException) as refusal:
        add(largest, largest)
    assert refusal.value.message == OVERFLOW


@given(spellings())
def test_in_range_both_generations_agree(spelling: tuple[Decimal, str]) -> None:
    check_as_int(spelling[1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1e126", OVERFLOW),
        ("1e-131", UNDERFLOW),
        ("0e126", OVERFLOW),
        ("1e2147483647", UNDERFLOW),
        ("10e2147483647", UNDERFLOW),
        ("1e1073741824", OVERFLOW),
        ("1e2147483648", f"{NOT_NUMERIC}: 1e2147483648"),
        ("1e-2147483647", UNDERFLOW),
        ("1e-2147483648", f"{NOT_NUMERIC}: 1e-2147483648"),
        ("0.1e-2147483647", f"{NOT_NUMERIC}: 0.1e-2147483647"),
        ("1e99999999999", f"{NOT_NUMERIC}: 1e99999999999"),
        ("x", f"{NOT_NUMERIC}: x"),
    ],
)
def test_the_older_actions_compute_in_an_int(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as refusal:
        check_as_int(text)
    assert refusal.value.message == message


def test_a_sum_that_is_zero_is_zero_whatever_its_digits_were() -> None:
    least = canonical_number("1." + "1" * 37 + "e-130")
    assert subtract(least, least) == "0"
    assert add(least, "-" + least) == "0"
    assert canonical_decimal(Decimal("0E-6000")) == "0"
    with pytest.raises(ValidationException):
        canonical_decimal(Decimal("NaN"))
