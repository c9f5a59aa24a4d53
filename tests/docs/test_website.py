"""The site: every page has a place in it, its links are changed as the repository needs it, and the reference is complete."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import PAGES, ROOT, Page, page
from website import assemble, reference
from website.assemble import Site, navigation

import isotone
from isotone import moving, structures, testing
from isotone.cli.program import COMMANDS

REPOSITORY = "https://example.org/isotone"
ENTRIES = [entry for entries in reference.groups().values() for entry in entries]
MADE_FOR_PROGRAMS = [entry for entry in ENTRIES if callable(entry.object)]


def leaves(nav: Any) -> Iterator[str]:
    for each in nav if isinstance(nav, list) else nav.values():
        yield from [each] if isinstance(each, str) else leaves(each)


def shown(tmp_path: Any, text: str, repository: str | None = REPOSITORY) -> str:
    """What the site makes of the text of docs/reading.md."""
    changed = Page(page("docs/reading.md").path)
    changed.__dict__["text"] = text
    return Site(repository).text(changed)


def test_every_page_is_in_the_navigation_once() -> None:
    listed = list(leaves(navigation(["made.md"])))
    assert len(listed) == len(set(listed))
    assert {each.name for each in PAGES} | {"made.md"} == set(listed)


def test_the_configuration_can_be_read() -> None:
    read = tomllib.loads(Site(REPOSITORY).configuration())["project"]
    assert read["edit_uri"] == f"{REPOSITORY}/edit/main/"
    assert next(leaves(read["nav"])) == "README.md"
    assert "edit_uri" not in tomllib.loads(Site(None).configuration())["project"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see [it](store.md#connect)", "see [it](store.md#connect)"),
        ("see [how](../CONTRIBUTING.md)", "see [how](../CONTRIBUTING.md)"),
        ("[f](../src/isotone/py.typed)", f"[f]({REPOSITORY}/blob/main/src/isotone/py.typed)"),
        ("[f](../examples)", f"[f]({REPOSITORY}/tree/main/examples)"),
        ("![p](pictures/tour.png)", "![p](pictures/tour.png)"),
        ("[s](https://example.com/a.py)", "[s](https://example.com/a.py)"),
        ("```\n[f](../examples)\n```", "```\n[f](../examples)\n```"),
        ("| `str \\| None` | a \\| b |", "| `str | None` | a \\| b |"),
        ("# The name `isotone.Page`", "# The name `isotone.Page`"),
        ("[a `isotone.Page`](store.md)", "[a `isotone.Page`](store.md)"),
        (
            "# A\n\n`isotone.Page`",
            "# A\n\n[`isotone.Page`](reference/to-read-and-write.md#isotonepage)",
        ),
    ],
)
def test_a_page_is_changed_as_the_site_needs_it(tmp_path: Any, text: str, expected: str) -> None:
    assert shown(tmp_path, text) == expected


def test_a_link_to_a_file_is_text_where_no_repository_is_known(tmp_path: Any) -> None:
    assert shown(tmp_path, "see [a file](../src/isotone/py.typed) here", None) == "see a file here"
    assert shown(tmp_path, "see [a folder](../examples) here", None) == "see a folder here"


def test_a_file_to_copy_is_part_of_a_site_without_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "see [it](../deploy/compose.yaml) here"
    assert shown(tmp_path, text, None) == text
    monkeypatch.setattr(assemble, "PAGES_FOLDER", tmp_path / "pages")
    monkeypatch.setattr(assemble, "CONFIGURATION", tmp_path / "zensical.toml")
    Site(None).write()
    copied = tmp_path / "pages/deploy/compose.yaml"
    assert copied.read_bytes() == (ROOT / "deploy/compose.yaml").read_bytes()
    assert not (tmp_path / "pages/src").exists()


def test_every_public_name_is_in_the_reference() -> None:
    expected = {f"isotone.{name}" for name in isotone.__all__ if name[0] != "_"} | {"isotone.open"}
    for module in (structures, testing, moving):
        expected |= {f"{module.__name__}.{name}" for name in module.__all__}
    assert {entry.name for entry in ENTRIES} == expected
    text = "".join(reference.pages().values())
    assert [name for name in sorted(expected) if f"\n## {name}\n" not in text] == []


def test_every_command_is_in_the_reference() -> None:
    text = text_of("commands")
    assert [name for name in COMMANDS if f"\n## isotone {name}\n" not in text] == []


def test_signatures_show_what_callers_see() -> None:
    for name, text in reference.pages().items():
        internal = re.findall(r"^.*\b(?:Batches\[|Unpack\[|M_co\b).*$", text, re.MULTILINE)
        assert not [line for line in internal if "batches: Batches[" not in line], name
        assert not re.findall(r"^\w.*-> Steps\[.*$", text, re.MULTILINE), name
    assert (
        "\nStore.page(read: Read[R] | Merge[R], *, size: int = 100, cursor: str | None = None)"
        in text_of("isotone.Store")
        .replace("(\n    ", "(")
        .replace(",\n    ", ", ")
        .replace(",\n)", ")")
    )


def text_of(title: str) -> str:
    return reference.pages()[f"docs/reference/{title.lower()}.md"]


@pytest.mark.parametrize("entry", MADE_FOR_PROGRAMS, ids=lambda entry: entry.name)
def test_every_public_name_has_a_docstring(entry: reference.Entry) -> None:
    assert inspect.getdoc(entry.object)
    if inspect.isclass(entry.object):
        bare = [name for name, each in reference.members(entry.object) if not inspect.getdoc(each)]
        assert bare == []


# What a call gives, and no program makes.
GIVEN = """
AdjacencyEdge Attachment BulkProgress Change CollectionDrawing Condition Context DiffReport EdgeWrites EngineWarning
Event Explanation Exported Family FeedPage FeedPost FindingCount Followers HeadroomNotice HeadroomWarning Imported
Inferred KeyDifference LeaseBlock LintReport LockHolder Merge Message MockDynamoDB Neighbor Page Point PointPage
Progress Query QueueCounts QueueEntry Read RewriteExample RewriteFailure Rewritten RunningWorker Scan ScoreEvent
SeedProgress Seeded Snapshot SortedSetMember Standing Standings Stats Stopped Summary TableDifference Transaction Undone
UniqueWrites Verification WorkerDeadLetter WorkerProgress WorkerSettings
"""
STORE_WITHOUT_EXAMPLE = {"capabilities", "close", "run", "run_batches"}


def has_example(thing: Any) -> bool:
    """Whether a docstring has a block of code, or a call between backticks."""
    text = inspect.getdoc(thing) or ""
    blocks = map(reference.is_code, re.split(r"\n\s*\n", text))
    return any(blocks) or re.search(r"`[^`]*\([^`]*`", text) is not None


@pytest.mark.parametrize("entry", MADE_FOR_PROGRAMS, ids=lambda entry: entry.name)
def test_what_programs_call_has_an_example(entry: reference.Entry) -> None:
    assert has_example(entry.object) or entry.name.rpartition(".")[2] in GIVEN.split()


@pytest.mark.parametrize(("name", "member"), [*reference.members(isotone.Store)])
def test_every_operation_of_a_store_has_an_example(name: str, member: Any) -> None:
    assert has_example(member) != (name in STORE_WITHOUT_EXAMPLE)


def test_an_example_of_a_docstring_is_a_block() -> None:
    text = reference.markdown("Puts it.\n\nRaises nothing.\n\nstore.put(order)\n\nstore.get(Order)")
    assert text == (
        "Puts it.\n\nRaises nothing.\n\n```python\nstore.put(order)\n\nstore.get(Order)\n```"
    )
    assert reference.markdown("One.\n\n    >>> 1 + 1\n    2\n\nTwo.") == (
        "One.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nTwo."
    )
