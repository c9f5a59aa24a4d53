"""What the pages must mention, and that what they point to is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, Page, page

import isotone
import isotone.testing
from isotone import errors
from isotone.backends import proxies
from isotone.cli.program import COMMANDS, parser_of
from isotone.client import exceptions
from isotone.model.finding_kinds import FINDING_KINDS, Kind
from isotone.operations.api import ACTIONS

CLI = page("docs/cli.md")
SHARED = CLI.section("Options of several commands")


def test_every_block_is_seen() -> None:
    """A block that the tests do not see is not run."""
    stray = [(each.name, line) for each in PAGES for line in each.stray_fences]
    assert not stray, "a fence is ``` and a language, alone on its line, and not indented"


@pytest.mark.parametrize(
    "fence", ["```console no-run", "```console ", "   ```console", "~~~python", "```c++", "````md"]
)
def test_a_fence_that_hides_a_block_is_found(fence: str, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"# Title\n\n{fence}\n$ isotone version\n```\n", encoding="utf-8")
    assert fence in Page(path).stray_fences
    path.write_text("# Title\n\n```console\n$ isotone version\n```\n", encoding="utf-8")
    assert Page(path).stray_fences == []


def test_links_lead_somewhere() -> None:
    for at, link in [(each, link) for each in PAGES for link in each.links]:
        path, _, anchor = link.partition("#")
        target = (at.path.parent / path).resolve() if path else at.path
        assert target.exists(), f"{at.name}: {link} does not exist"
        if anchor:
            assert anchor in anchors_of(target), f"{at.name}: {link} names no heading"


@cache
def anchors_of(path: Path) -> set[str]:
    return set(Page(path).anchors)


def test_pages_that_are_named_exist() -> None:
    checked = 0
    for folder in ("src", "tests", "examples", "bench"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".py", ".md", ".toml"):
                continue
            text = path.read_text(encoding="utf-8")
            for name, anchor in re.findall(r"\b(docs/[\w/-]+\.md)(?:#([\w-]+))?", text):
                checked += 1
                where = path.relative_to(ROOT)
                assert (ROOT / name).is_file(), f"{where}: there is no {name}"
                assert not anchor or anchor in anchors_of(ROOT / name), (
                    f"{where}: {name} has no heading #{anchor}"
                )
    assert checked


@pytest.mark.parametrize("folder", ["tests", "src/isotone"])
def test_files_that_are_named_exist(folder: str) -> None:
    root, below = ROOT / folder, r"[\w/]+\.py"
    if folder == "tests":
        form, root = rf"`(tests/{below})`", ROOT
    else:
        layers = "|".join(path.name for path in root.iterdir() if path.is_dir())
        form = rf"`((?:{layers})/{below})`"
    named = [(each, path) for each in PAGES for path in re.findall(form, each.text)]
    missing = [f"{each.name}: {path}" for each, path in named if not (root / path).is_file()]
    assert named
    assert missing == []


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
        assert any(f"`{option}" in section + SHARED for option in action.option_strings), (
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


def test_every_error_is_documented() -> None:
    text, names = page("docs/errors.md").text, [error.__name__ for error in error_classes()]
    assert [name for name in names if f"`{name}`" not in text] == []


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


def test_every_public_name_is_documented() -> None:
    text, names = page("docs/api.md").text, [n for n in isotone.__all__ if n[0] != "_"]
    assert [name for name in names if not re.search(rf"`isotone\.{name}\b", text)] == []


def test_every_environment_variable_is_documented() -> None:
    source = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "src/isotone").rglob("*.py")
    )
    form = r'environ(?:ment)?(?:\.get\(|\[)\s*"([A-Z_]+)"|"([A-Z_]+)" (?:not )?in os\.environ'
    read = {"".join(names) for names in re.findall(form, source)} | {*proxies._NAMES[::2]}
    assert len(read) > 15
    section = page("docs/api.md").section("Environment variables")
    assert [name for name in sorted(read) if f"`{name}" not in section] == []


@pytest.mark.parametrize("kind", isotone.FindingCount.KINDS)
def test_every_kind_of_finding_is_documented(kind: Kind) -> None:
    table = page("docs/migrating.md").section("What is found")
    (effect,) = re.findall(rf"^\| `{kind}` \|.*\| ?(.*?) ?\|$", table, re.MULTILINE)
    if kind != "marker_taken":  # counted as a conflict
        assert bool(effect) == (FINDING_KINDS[kind].rewrite == "corrects")


@pytest.mark.parametrize("name", isotone.testing.__all__)
def test_every_name_for_tests_is_documented(name: str) -> None:
    if name in ("Attachment", "MockDynamoDB"):  # what `attach` and `mock_dynamodb` give
        return
    assert name in page("docs/testing.md").text


def test_every_operation_is_in_the_list() -> None:
    section = page("docs/compatibility.md").section("Supported actions")
    assert [operation for operation in ACTIONS if operation not in section] == []


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


def test_the_changelog_says_what_a_version_is_and_no_more() -> None:
    """What was mended before anybody had it is in the commits."""
    assert len((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split()) < 1500
