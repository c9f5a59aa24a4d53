"""The price table: arithmetic, and files of one's own."""

from pathlib import Path

import pytest

from isotone.errors import UsageError
from isotone.prices import US_EAST_1, Prices

MINE = """
region = "eu-central-1"
as_of = 2026-11-01
million_read_units = 0.1525
million_write_units = 0.7625
read_unit_hour = 0.0001586
write_unit_hour = 0.000793
gigabyte_month = 0.306
"""


def test_units_on_demand() -> None:
    assert US_EAST_1.on_demand(reads=1_000_000, writes=250_000) == 0.125 + 0.15625


def test_provisioned_units_for_a_month() -> None:
    assert US_EAST_1.provisioned(reads=100, writes=10) == pytest.approx(9.49 + 4.745)


def test_storage_for_a_month() -> None:
    assert US_EAST_1.storage(40e9) == 10.0


def test_a_file_replaces_the_table(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(MINE)
    mine = Prices.from_file(file)
    assert mine.region == "eu-central-1"
    assert mine.as_of == "2026-11-01"
    assert mine.currency == "USD"
    assert mine.on_demand(writes=2_000_000) == 1.525


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MINE + "gigabyte = 1", "'gigabyte' is not a price; there are region, as_of"),
        (MINE.replace("gigabyte_month = 0.306", ""), "gigabyte_month is missing"),
        (MINE.replace("0.306", "'cheap'"), "gigabyte_month = 'cheap' is not a price"),
        (MINE.replace("0.306", "-1"), "gigabyte_month = -1 is not a price"),
        ("region =", "cannot be read"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        Prices.from_file(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Prices.from_file(tmp_path / "none.toml")
