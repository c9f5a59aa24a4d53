"""Assembles the pages of the site in build/site-pages: the pages of the repository, the reference, and the navigation.

    python -m website.assemble [REPOSITORY]

The folder mirrors the repository, so that links between pages and "edit this page" need no table. README.md is the front
page, docs/README.md the contents: its tables are the sections of the navigation, its links the pages in them. What GitHub
shows otherwise is changed here: links to files that are no pages lead to the repository, the name of a public object leads to
its reference, and tables have no escaped bars. If the address of the repository is unknown, the files that readers copy are
part of the site, and links to other files are plain text.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.docs.pages import PAGES, ROOT, Page, page
from website import reference

HERE: Final = Path(__file__).parent
BUILD: Final = ROOT / "build"
PAGES_FOLDER: Final = BUILD / "site-pages"
CONFIGURATION: Final = BUILD / "zensical.toml"
CONTENTS: Final = "docs/README.md"
_REFERENCE: Final = "docs/api.md"  # the generated pages stand after it
_BRANCH: Final = "main"
COPIED_FOLDERS: Final = ("deploy", "examples")
"""Files that readers copy: part of a site that cannot link to the repository."""

_SECTION: Final = re.compile(r"^\| ([^|\n]+?) \| \|\n\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)
_LINK: Final = re.compile(r"(?<!!)\[[^\]\n]*(?:\n[^\]\n]*)?\]\(([^)\s]+)\)")
_PARTS: Final = re.compile(
    r"(?P<fence>^```.*?^```$)"
    r"|(?P<heading>^#+ [^\n]*$)"
    rf"|(?P<link>{_LINK.pattern.replace('(?<!!)', '!?')})"
    r"|(?P<name>`isotone\.(?P<dotted>[\w.]+)`)",
    re.MULTILINE | re.DOTALL,
)
_CODE_IN_TABLE: Final = re.compile(r"^\|.*$", re.MULTILINE)

Nav = list[str | dict[str, Any]]


class Site:
    """The pages of the site, and where what they name is."""

    def __init__(self, repository: str | None) -> None:
        self.repository = repository
        self.generated = reference.pages()
        self.places = reference.places()

    def text(self, at: Page) -> str:
        """A page as the site shows it."""

        def shown(found: re.Match[str]) -> str:
            if found["link"]:
                return self._link(at, found)
            if found["name"] and (place := self.places.get(found["dotted"])):
                return f"[{found['name']}]({_relative(place, at.path.parent)})"
            return found[0]

        return _CODE_IN_TABLE.sub(_with_bars, _PARTS.sub(shown, at.text))

    def _link(self, at: Page, found: re.Match[str]) -> str:
        text, target = found["link"], found[_PARTS.groupindex["link"] + 1]
        path, _, _ = target.partition("#")
        if "://" in target or not path:
            return text
        file = (at.path.parent / path).resolve()
        if file in _PATHS or text.startswith("!"):
            return text
        label = text[1 : text.rindex("](")]
        if self.repository is None:
            return text if file in copied_files() else label
        kind = "tree" if file.is_dir() else "blob"
        return f"[{label}]({self.repository}/{kind}/{_BRANCH}/{file.relative_to(ROOT).as_posix()})"

    def write(self) -> None:
        """Write every page that is new or differs, and remove what is no longer there."""
        wanted = {each.name: self.text(each) for each in PAGES} | self.generated
        for path in PAGES_FOLDER.rglob("*.md"):
            if path.relative_to(PAGES_FOLDER).as_posix() not in wanted:
                path.unlink()
        for name, text in wanted.items():
            _write(PAGES_FOLDER / name, text)
        shutil.copytree(ROOT / "docs/pictures", PAGES_FOLDER / "docs/pictures", dirs_exist_ok=True)
        shutil.copytree(HERE / "assets", PAGES_FOLDER / "assets", dirs_exist_ok=True)
        for path in copied_files() if self.repository is None else ():
            _write(PAGES_FOLDER / path.relative_to(ROOT), path.read_text(encoding="utf-8"))
        _write(CONFIGURATION, self.configuration())

    def configuration(self) -> str:
        """website/zensical.toml with the navigation, and the repository if it is known."""
        text = (HERE / "zensical.toml").read_text(encoding="utf-8")
        lines = [f"nav = {_toml(navigation(list(self.generated)))}"]
        if self.repository is not None:
            lines.append(f'edit_uri = "{self.repository}/edit/{_BRANCH}/"')
        return text.replace("[project]\n", "\n".join(["[project]", *lines, ""]), 1)


_PATHS: Final = {each.path for each in PAGES}


@cache
def copied_files() -> frozenset[Path]:
    """The files of `COPIED_FOLDERS`. A page among them has no place in the navigation, and is left out."""
    found = (path for folder in COPIED_FOLDERS for path in (ROOT / folder).rglob("*"))
    return frozenset(
        path
        for path in found
        if path.is_file() and path.suffix != ".md" and "__pycache__" not in path.parts
    )


def navigation(generated: list[str]) -> Nav:
    """The front page, and a section for each table of the contents."""
    nav: Nav = ["README.md"]
    placed = {"README.md"}
    for title, rows in _SECTION.findall(page(CONTENTS).text):
        entries: Nav = [CONTENTS] if len(nav) == 1 else []
        for target in _LINK.findall(rows):
            name = (ROOT / "docs" / target.partition("#")[0]).resolve().relative_to(ROOT).as_posix()
            if name not in placed:
                placed.add(name)
                entries += _entries(name)
            if name == _REFERENCE:
                entries.append({"Signatures": list(generated)})
        nav.append({title: entries})
    return nav


def _entries(name: str) -> Iterator[str | dict[str, Any]]:
    """A page; for the README of a folder, all pages of the folder under its title."""
    folder = Path(name).parent
    if Path(name).name != "README.md" or folder == Path("docs"):
        yield name
        return
    own = sorted(each.name for each in PAGES if Path(each.name).parent == folder)
    below = sorted(each.name for each in PAGES if Path(each.name).parent.parent == folder)
    entries: Nav = [name, *(each for each in own if each != name)]
    if below:
        entries.append({Path(below[0]).parent.name.capitalize(): below})
    yield {page(name).title: entries}


def _with_bars(row: re.Match[str]) -> str:
    return re.sub(r"`[^`]*`", lambda code: code[0].replace(r"\|", "|"), row[0])


def _relative(place: str, folder: Path) -> str:
    path, _, anchor = place.partition("#")
    return f"{os.path.relpath(ROOT / path, folder)}#{anchor}"


def _toml(nav: Nav) -> str:
    """A list of strings, and of tables with one key, as TOML."""
    entries = (
        json.dumps(each, ensure_ascii=False)
        if isinstance(each, str)
        else "{ "
        + ", ".join(f"{json.dumps(title)} = {_toml(below)}" for title, below in each.items())
        + " }"
        for each in nav
    )
    return f"[{', '.join(entries)}]"


def _write(path: Path, text: str) -> None:
    """Write a file unless it has this text: the server of the site builds what is written."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    Site(next(iter(filter(None, sys.argv[1:])), None)).write()
