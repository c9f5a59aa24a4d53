"""Addresses of PostgreSQL: their parts, and that no text shows a password."""

from __future__ import annotations

import pytest

from isotone.error_text import error_text
from isotone.errors import UsageError
from isotone.postgres_address import address_of, hidden, shown

TAIL = "db.internal:5433,other:1/app?schema=shop&sslmode=require"


@pytest.mark.parametrize(
    "secret", ["secret", "se%2Fcret", "se/cret", "se?cret", "se@cret", "se:cret", "s#e/c?r@et:"]
)
@pytest.mark.parametrize("scheme", ["postgresql://", "postgres://", "POSTGRESQL://"])
def test_an_address_is_shown_without_its_password(scheme: str, secret: str) -> None:
    address = f"{scheme}ann:{secret}@{TAIL}"
    assert shown(address) == f"{scheme}ann@{TAIL}"
    said = f"the target {address!r} is not there; see {address}"
    without = f"{scheme}ann@{TAIL}"
    assert hidden(said) == f"the target {without!r} is not there; see {without}"
    assert error_text(UsageError(said)) == hidden(said)


def test_a_password_among_the_parameters() -> None:
    address = "postgresql://ann@db/app?password=se/cret&schema=s&sslpassword=secret"
    assert shown(address) == "postgresql://ann@db/app?schema=s"
    assert shown("postgresql://ann@db/app?pass%77ord=secret") == "postgresql://ann@db/app"
    assert "cret" not in hidden(f"{address} cannot be used")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://db:5433/app?user=ann@corp&schema=s",
        "postgresql://db:5433/app?schema=s",
        "postgresql:///app",
        "postgresql://ann@/app?host=/var/run",
        "postgresql://[::1]:5433/app",
    ],
)
def test_an_address_without_a_password_is_shown_as_it_is(address: str) -> None:
    assert shown(address) == address
    assert hidden(address) == address
    assert address_of(address).shown == address


@pytest.mark.parametrize("secret", ["se/cret", "se?cret", "se@cret", "/?@"])
def test_a_password_that_is_not_escaped_is_refused_without_a_part_of_it(secret: str) -> None:
    with pytest.raises(UsageError, match="are written %2F %3F %40") as refused:
        address_of(f"postgresql://ann:{secret}@{TAIL}")
    assert secret not in str(refused.value)
    assert "cret" not in str(refused.value)
