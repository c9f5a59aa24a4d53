"""The pages of the documentation, and what is in them: fenced blocks, headings and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ANY_FENCE = re.compile(r"^[ >\t]*(?:```|~~~).*$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]\n]*(?:\n[^\]\n]*)?\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    """One fenced block: its language, its text, and the line on which the text begins."""

    language: str
    text: str
    line: int

    @property
    def needs_azurite(self) -> bool:
        """Whether it connects to the emulator of Azure: tests/backends/azure runs it."""
        return 'connect("azure-table://' in self.text


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def title(self) -> str:
        """The first heading."""
        return next(_HEADING.finditer(self.prose))[1]

    @property
    def prose(self) -> str:
        """The text outside of the fenced blocks."""
        return _FENCE.sub("", self.text)

    def blocks(self, *languages: str) -> Iterator[Block]:
        for found in _FENCE.finditer(self.text):
            if found[1] in languages:
                yield Block(found[1], found[2], self.text.count("\n", 0, found.start(2)) + 1)

    @property
    def stray_fences(self) -> list[str]:
        """Lines that begin or end a block for a reader, but not for `blocks`: with text after the language, or indented."""
        return _ANY_FENCE.findall(self.prose)

    @property
    def links(self) -> list[str]:
        """The targets of all links that stay inside the repository."""
        return [target for target in _LINK.findall(self.prose) if "://" not in target]

    @property
    def anchors(self) -> set[str]:
        """The anchors that the headings have, as GitHub makes them."""
        return {_anchor(heading) for heading in _HEADING.findall(self.prose)}

    def section(self, heading: str) -> str:
        """What stands under a heading, up to the next heading of any level; "" where it is missing."""
        found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", self.text, re.M | re.S)
        return found[1] if found else ""


def _anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.replace(" ", "-")


def all_pages() -> list[Page]:
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
    return [Page(path) for path in [*top, *sorted((ROOT / "docs").rglob("*.md"))]]


PAGES = all_pages()


def page(name: str) -> Page:
    return Page(ROOT / name)
