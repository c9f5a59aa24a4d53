"""docs/engines.md says what the code says: features, refusals, sources."""

from __future__ import annotations

import re

import pytest
from tests.docs.engine_tables import (
    COLUMNS,
    PAGE,
    SOURCES,
    STRUCTURES,
    documents,
    features,
    refusal,
    written,
)

from isotone import ENGINES, structures
from isotone.structures.structure import Structure


def test_the_tables_are_those_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page), "python -m tests.docs.engine_tables writes the tables"


def test_all_engines_and_features_are_shown_with_sources() -> None:
    assert set(COLUMNS) == ENGINES.keys()
    assert list(documents()) == ["engine", *features()]
    assert SOURCES.keys() == set(features())
    numbers = set(re.findall(r"^(\d)\. ", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert numbers == {number for row in SOURCES.values() for number in row.split()}


def test_all_structures_are_shown() -> None:
    shown = {name.partition(",")[0] for name in STRUCTURES}
    public = {
        name
        for name in structures.__all__
        if isinstance(getattr(structures, name), type)
        and issubclass(getattr(structures, name), Structure)
    }
    assert public - shown == set()


@pytest.mark.parametrize("engine", COLUMNS)
def test_a_refusal_names_the_structure_the_engine_and_a_way_out(engine: str) -> None:
    for structure in STRUCTURES.values():
        said = refusal(engine, structure)
        if said is not None:
            assert re.fullmatch(
                rf"this \w+ needs [\w ]+, which {ENGINES[engine].engine} does not have; .{{20,}}",
                said,
            )
