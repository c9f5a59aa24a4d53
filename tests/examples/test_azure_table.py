"""The examples without an index run on Azure Table storage as they do in memory; the others are refused where they need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.backends.azure import azurite
from tests.examples.printed import NAMES, run

from isotone.errors import Unsupported

RUNNING = {
    "01_text_order",
    "02_numbers",
    "04_sortable_ids",
    "08_two_relations",
    "15_filter_expressions",
    "16_client_side",
}
REASONS = {
    "09_zero_padding": "a transaction has items of 2 partitions",
    "17_trending_songs": "needs local indexes",
    "19_time_ordered_feed": "needs transactions",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    reason = azurite.missing()
    if reason is not None:
        pytest.skip(reason)
    with azurite.serve(tmp_path_factory.mktemp("azurite")) as address:
        yield address


@pytest.mark.filterwarnings("ignore::isotone.EngineWarning")  # of entities that expire
@pytest.mark.parametrize("name", NAMES)
def test_an_example(name: str, address: str) -> None:
    if name not in RUNNING:
        with pytest.raises(Unsupported, match=REASONS.get(name, "needs global indexes")):
            run(name, address)
        return
    assert run(name, address).text == run(name, ":memory:").text
