"""The stacks of the CDK and the pages of Markdown that are written of any table."""

from __future__ import annotations

import ast
import re

from hypothesis import given, settings
from tests.effort import examples
from tests.schema.tables import ALL_FEATURES, ON_DEMAND, deployables

from isotone.schema.cdk import write_python, write_typescript
from isotone.schema.deployable import DeployableTable
from isotone.schema.markdown import write


def texts_of(table: DeployableTable) -> set[str]:
    """Names and values that users chose."""
    request = table.definition
    expiry = request.get("TimeToLiveSpecification")
    indexes = [
        index
        for member in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes")
        for index in request.get(member, ())
    ]
    return {
        table.name,
        *(each["AttributeName"] for part in (request, *indexes) for each in part["KeySchema"]),
        *(index["IndexName"] for index in indexes),
        *(text for tag in request.get("Tags", ()) for text in tag.values()),
        *([expiry["AttributeName"]] if expiry else []),
    }


@settings(max_examples=examples(400), deadline=None)
@given(table=deployables())
def test_a_stack_in_python_has_every_text_as_it_is(table: DeployableTable) -> None:
    tree = ast.parse(write_python([table]))
    constants = {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)}
    assert texts_of(table) <= constants


@settings(max_examples=examples(400), deadline=None)
@given(table=deployables())
def test_a_stack_in_typescript_has_every_text_as_it_is(table: DeployableTable) -> None:
    source = write_typescript([table])
    assert source.isascii() or all(
        each.isprintable() or each == "\n" or ord(each) > 0xFFFF for each in source
    )
    literals = re.findall(r'"(?:[^"\\]|\\.)*"', source)
    assert texts_of(table) <= {ast.literal_eval(each) for each in literals}


def test_lines_of_a_stack_are_short_where_they_can_be() -> None:
    source = write_python(ALL_FEATURES)
    compile(source, "stack.py", "exec")
    assert max(len(line) for line in source.splitlines() if '"arn:' not in line) <= 104
    assert "    self.sessions_table = dynamodb.Table(\n" in source


def test_a_page_shows_keys_indexes_and_settings() -> None:
    page = write([ON_DEMAND])
    assert page.startswith("## Orders.on-demand\\_1\n")
    for line in (
        "| table | `id` (S) | `at` (N) | all |",
        "| local index `by_total` | `id` (S) | `total` (N) | keys |",
        "| global index `by_tenant` | `tenant` (S) · `status` (S) | `at` (N) · `digest` (B) | keys, `a b`, `c` |",
        "- billing: on demand",
        "- time to live by 'expires'",
        "- a recovery period of 7 days",
        "- the stream NEW\\_AND\\_OLD\\_IMAGES",
        "- deletion protection",
        "- tag `team`: shop",
    ):
        assert line in page.splitlines()


@settings(max_examples=examples(400), deadline=None)
@given(table=deployables())
def test_no_text_breaks_a_row_of_a_page(table: DeployableTable) -> None:
    for line in write([table]).splitlines():
        if line.startswith("| ") and not line.startswith("|  |"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 5, line
