"""Every format that has a reader, there and back: random tables, and those of all examples."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.schema.tables import (
    ALL_FEATURES,
    EXAMPLES,
    ODD_TEXTS,
    deployables,
    example_definitions,
    example_tables,
)

import isotone
from isotone.schema.deployable import DeployableTable, make
from isotone.schema.features import FEATURES, kept
from isotone.schema.formats import FORMATS, SchemaFormat, read_text, written
from isotone.schema.yaml_text import parsed_yaml, yaml_text
from isotone.tables.definition import TableDefinition, read_definition

BOTH_WAYS = {name: each for name, each in FORMATS.items() if each.read is not None}


def read_again(text: str, form: SchemaFormat) -> list[DeployableTable]:
    found = read_text(form, text, "file", {})
    assert found.notes == []
    return found.tables


@pytest.mark.parametrize("name", BOTH_WAYS)
@settings(max_examples=examples(400), deadline=None)
@given(tables=st.lists(deployables(), min_size=1, max_size=2, unique_by=lambda table: table.name))
def test_what_a_format_can_express_is_read_as_it_was_written(
    name: str, tables: list[DeployableTable]
) -> None:
    form = FORMATS[name]
    text, lost = written(tables, form)
    expressed = [kept(table, form.lacks) for table in tables]
    assert read_again(text, form) == [table for table, _ in expressed]
    assert len(lost) == sum(len(missing) for _, missing in expressed)


@settings(max_examples=examples(200), deadline=None)
@given(table=deployables())
def test_a_feature_that_is_left_out_is_said_once_and_gone(table: DeployableTable) -> None:
    for name, feature in FEATURES.items():
        rest, lost = kept(table, {name})
        assert len(lost) == len(list(feature.uses(table)))
        assert (rest == table) == (not lost)
        assert list(feature.uses(rest)) == []
    rest, _ = kept(table, FEATURES)
    assert rest == kept(rest, FEATURES)[0]


@pytest.mark.parametrize("name", BOTH_WAYS)
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_tables_of_each_example_go_there_and_back(example: str, name: str) -> None:
    tables = example_tables(example)
    form = FORMATS[name]
    expressed = [kept(table, form.lacks)[0] for table in tables]
    assert read_again(written(tables, form)[0], form) == expressed


@pytest.mark.parametrize("name", BOTH_WAYS)
@pytest.mark.parametrize("example", EXAMPLES)
def test_a_table_made_of_a_file_is_described_like_the_original(example: str, name: str) -> None:
    form = FORMATS[name]
    for table, original in zip(example_tables(example), example_definitions(example), strict=True):
        text, lost = written([table], form)
        (again,) = read_again(text, form)
        if not lost:
            assert described(made(again)) == described(original)


def made(table: DeployableTable) -> TableDefinition:
    """The definition of a table that was made of a file."""
    with isotone.open(":memory:") as database:
        assert make(database, table) == []
        definition = read_definition(database, table.name)
    assert definition is not None
    return definition


# What each table has of its own, or from its items.
OWN_OF_A_TABLE = {
    *("TableId", "CreationDateTime", "TableArn", "LatestStreamArn", "LatestStreamLabel"),
    *("ItemCount", "TableSizeBytes", "LastUpdateToPayPerRequestDateTime"),
    *("IndexArn", "IndexSizeBytes"),
}


def described(definition: TableDefinition) -> tuple[Any, TableDefinition]:
    """What the actions say about a table, without what each table has of its own."""
    common = _common(definition.description)
    common["AttributeDefinitions"].sort(key=str)  # the service has no order for them
    return common, msgspec.structs.replace(definition, description={})


def _common(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _common(each) for name, each in value.items() if name not in OWN_OF_A_TABLE}
    return [_common(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("table", ALL_FEATURES, ids=lambda table: table.name)
@pytest.mark.parametrize("name", BOTH_WAYS)
def test_tables_with_every_feature_are_made_of_each_format(
    name: str, table: DeployableTable
) -> None:
    form = FORMATS[name]
    rest, _ = kept(table, form.lacks)
    (again,) = read_again(written([table], form)[0], form)
    assert again == rest
    assert described(made(again)) == described(made(rest))


def test_these_tables_have_every_feature() -> None:
    used = {
        name for name, each in FEATURES.items() for table in ALL_FEATURES if list(each.uses(table))
    }
    assert used == FEATURES.keys()


def test_the_examples_have_tables() -> None:
    tables = [table for example in EXAMPLES for table in example_tables(example)]
    assert len(tables) >= 25
    assert any("TimeToLiveSpecification" in table.definition for table in tables)
    assert any("StreamSpecification" in table.definition for table in tables)
    assert any("GlobalSecondaryIndexes" in table.definition for table in tables)


# YAML


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(exclude_categories=["Cs"]))
    | ODD_TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | ODD_TEXTS,
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=examples(1000), deadline=None)
@given(value=st.dictionaries(st.text(min_size=1, max_size=3), JSON_VALUES, min_size=1, max_size=4))
def test_yaml_is_read_as_it_was_written(value: dict[str, Any]) -> None:
    assert parsed_yaml(yaml_text(value), "file") == value
