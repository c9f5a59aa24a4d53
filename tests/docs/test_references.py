"""What the pages must mention, and that what they point to is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, Page, page

import isotone
import isotone.testing
from isotone import errors
from isotone.cli.program import COMMANDS, parser_of
from isotone.client import exceptions
from isotone.model.finding_kinds import FINDING_KINDS, Kind
from isotone.operations.api import ACTIONS

CLI = page("docs/cli.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Page) -> None:
    for link in page.links:
        path, _, anchor = link.partition("#")
        target = (page.path.parent / path).resolve() if path else page.path
        assert target.exists(), f"{page.name}: {link} does not exist"
        if anchor:
            assert anchor in Page(target).anchors, f"{page.name}: {link} names no heading"


def files_that_name_pages() -> list[Path]:
    folders = [ROOT / name for name in ("src", "tests", "examples", "bench")]
    return [
        path
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".py", ".md", ".toml") and "docs/" in path.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize(
    "path", files_that_name_pages(), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_pages_that_are_named_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for name, anchor in re.findall(r"\b(docs/[\w/-]+\.md)(?:#([\w-]+))?", text):
        assert (ROOT / name).is_file(), f"{path.relative_to(ROOT)}: there is no {name}"
        assert not anchor or anchor in page(name).anchors, f"{name} has no heading #{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_are_named_exist(page: Page) -> None:
    for path in re.findall(r"`(tests/[\w/]+\.py)`", page.text):
        assert (ROOT / path).is_file(), f"{page.name}: there is no {path}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_that_are_named_exist(page: Page) -> None:
    layers = "|".join(path.name for path in (ROOT / "src/isotone").iterdir() if path.is_dir())
    for path in re.findall(rf"`((?:{layers})/[\w/]+\.py)`", page.text):
        assert (ROOT / "src/isotone" / path).is_file(), f"{page.name}: there is no {path}"


def test_every_page_is_in_the_index() -> None:
    index = page("docs/README.md")
    linked = {(index.path.parent / link.partition("#")[0]).resolve() for link in index.links}
    top = {each.path for each in PAGES if each.path.parent == ROOT / "docs"} - {index.path}
    assert top <= linked


def test_every_decision_is_in_the_list() -> None:
    design = page("docs/design/README.md")
    linked = {(design.path.parent / link.partition("#")[0]).resolve() for link in design.links}
    written = set((ROOT / "docs/design").rglob("*.md")) - {design.path}
    assert written <= linked


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    section = CLI.section(f"isotone {command}")
    assert section, f"docs/cli.md has no section `isotone {command}`"
    for action in parser_of(command)._actions:
        if action.option_strings in (["-h", "--help"], []):
            continue
        assert any(f"`{option}" in section for option in action.option_strings), (
            f"isotone {command}: {action.option_strings} is not documented"
        )
    for option in re.findall(r"`(--[\w-]+)", section):
        known = {each for action in parser_of(command)._actions for each in action.option_strings}
        assert option in known, f"isotone {command} has no option {option}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_is_documented(command: str) -> None:
    section = CLI.section(f"isotone {command}")
    for action in parser_of(command)._actions:
        if not action.option_strings:
            assert str(action.metavar or action.dest) in section


def error_classes() -> list[type[Exception]]:
    found = [
        each
        for module in (errors, exceptions)
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Exception)
    ]
    internal = {exceptions.ClientError}  # every instance is one of its error's own class as well
    return sorted(set(found) - internal, key=lambda each: each.__name__)


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_every_error_is_documented(error: type[Exception]) -> None:
    assert f"`{error.__name__}`" in page("docs/errors.md").text


def test_the_tree_of_errors_is_that_of_the_classes() -> None:
    shown: dict[str, str | None] = {}
    path: list[str] = []
    tree = next(page("docs/errors.md").blocks("")).text
    for bars, name in re.findall(r"^([│├└─ ]*)(\w+)", tree, re.MULTILINE):
        depth = len(bars) // 4
        path[depth:] = [name]
        shown[name] = path[depth - 1] if depth else None
    own = [
        each
        for each in error_classes()
        if each is errors.ApiError or not issubclass(each, errors.ApiError)
    ]
    assert shown.keys() == {each.__name__ for each in own}
    for each in set(own) - {errors.IsotoneError}:
        assert shown[each.__name__] in [base.__name__ for base in each.__bases__]


@pytest.mark.parametrize("name", [name for name in isotone.__all__ if not name.startswith("_")])
def test_every_public_name_is_documented(name: str) -> None:
    assert re.search(rf"`isotone\.{name}\b", page("docs/api.md").text)


@pytest.mark.parametrize("kind", isotone.FindingCount.KINDS)
def test_every_kind_of_finding_is_documented(kind: Kind) -> None:
    table = page("docs/verifying.md").section("What is found")
    (effect,) = re.findall(rf"^\| `{kind}` \|.*\| ?(.*?) ?\|$", table, re.MULTILINE)
    if kind != "marker_taken":  # counted as a conflict
        assert bool(effect) == (FINDING_KINDS[kind].rewrite == "corrects")


@pytest.mark.parametrize("name", isotone.testing.__all__)
def test_every_name_for_tests_is_documented(name: str) -> None:
    if name in ("Attachment", "MockDynamoDB"):  # what `attach` and `mock_dynamodb` give
        return
    assert name in page("docs/testing.md").text


@pytest.mark.parametrize("operation", ACTIONS)
def test_every_operation_is_in_the_list(operation: str) -> None:
    assert operation in page("docs/compatibility.md").section("Supported actions")


def test_every_difference_names_a_test_that_exists() -> None:
    tests = ROOT / "tests/docs/test_compatibility.py"
    tree = ast.parse(tests.read_text(encoding="utf-8"))
    written = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    named = set(re.findall(r"`(test_\w+)`", page("docs/compatibility.md").text))
    assert named == written
