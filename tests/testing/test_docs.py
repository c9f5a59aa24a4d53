"""Every example of docs/testing.md is run as the test project that it describes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
BLOCK = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```", re.MULTILINE | re.DOTALL)
DATA = re.compile(r"`(\w+\.jsonl)`:\n\n```jsonl\n(.*?)^```", re.MULTILINE | re.DOTALL)


def sections() -> dict[str, dict[str, str]]:
    """The files that the examples under each heading make up."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {
        title: dict(BLOCK.findall(text) + DATA.findall(text))
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }
    return {title: files for title, files in found.items() if files}


@pytest.mark.parametrize("title", sections())
def test_examples_pass(
    title: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    files = sections()[title]
    for name, source in files.items():
        pytester.path.joinpath(name).write_text(source, encoding="utf-8")
    result = pytester.runpytest_inprocess("-p", "no:hypothesispytest", "-Werror")
    outcomes = result.parseoutcomes()
    tests = [name for name in files if name.startswith("test_")]
    assert outcomes.get("passed", 0) + outcomes.get("skipped", 0) >= len(tests)
    assert set(outcomes) <= {"passed", "skipped"}


def test_no_example_is_left_out() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) == text.count("```python")


def test_fixtures_settings_and_names_are_documented() -> None:
    from isotone import testing
    from isotone.testing import plugin

    text = PAGE.read_text(encoding="utf-8")
    public = [
        name
        for name, value in vars(plugin).items()
        if type(value).__name__ == "FixtureFunctionDefinition" and not name.startswith("_")
    ]
    assert len(public) == 10
    settings = ["isotone_mock_dynamodb", "isotone_region", "real_dynamodb"]
    assert [name for name in (*public, *settings) if f"`{name}`" not in text] == []
    assert [name for name in ("attach", "mock_aws", "mock_dynamodb") if name not in text] == []
    assert {"attach", "mock_aws", "mock_dynamodb"} <= set(testing.__all__)
