"""The map of the source, docs/design/files.md: one line for each file, from its docstring or its first comment.

python -m tests.docs.file_map        # write it again
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

from tests.docs.pages import ROOT

SOURCE = ROOT / "src" / "isotone"
PAGE = ROOT / "docs" / "design" / "files.md"
BROWSER = ROOT / "workbench" / "src"
# What makes the pages: the site, its reference and its search, and the pages that are made of the source.
MAKERS = (ROOT / "website", ROOT / "tests" / "docs")

# Neither Python nor TypeScript, so they have no docstring.
OTHERS = {
    "pyproject.toml": "The packages: what is in the wheel and in the source archive, versions, dependencies, extras, tools.",
    "Makefile": "The commands of this repository, from `make demo` to `make release`, each with a line of help.",
    ".ci/run": "What runs on every submission; `.github/workflows/tests.yml` runs it, `release.yml` publishes a release.",
    "requirements/dev.txt": "The lock file of the packages for development: `make lock`.",
    "deploy/Containerfile": "The image: `make image`. Its user, its volume, its health check.",
    "deploy/compose.yaml": "A server in containers, in place of `amazon/dynamodb-local`.",
    "deploy/isotone.service": "The unit of systemd.",
    "deploy/kubernetes.yaml": "A server on Kubernetes: a volume, probes, secrets.",
    "workbench/vite.config.ts": "Builds the workbench's page into `src/isotone/workbench/static`.",
}

# In the order in which a reader of the API meets them: from the command line and the library down to the floor.
PACKAGES = (
    "cli",
    "demo",
    "mcp",
    "workbench",
    "testing",
    "design",
    "advisor",
    "moving",
    "schema",
    "structures",
    "inference",
    "model",
    "tables",
    "backends",
    "client",
    "server",
    "operations",
    "engine",
    "storage",
    "exchange",
    "expressions",
    "codec",
    "values",
    "",
)

_HEAD = """# Which file decides what

One line for each file of `src/isotone`, in alphabetical order within its package: the first line of the file's
docstring. The last tables have the files of the workbench's page, what makes the site and its pages, and what packs and runs all of it. [How Isotone is built](README.md) has the
layers and the ways of a request through them. `make files` writes this page, and a test compares it.
"""


def files() -> list[Path]:
    """The source files, except those that are empty."""
    return [path for path in sorted(SOURCE.rglob("*.py")) if path.read_text(encoding="utf-8")]


@cache
def summary(path: Path) -> str:
    """The first paragraph of a module's docstring, as one line."""
    with path.open(encoding="utf-8") as source:
        tokens = tokenize.generate_tokens(source.readline)
        first = next(token for token in tokens if token.type not in (tokenize.COMMENT, tokenize.NL))
    text = ast.literal_eval(first.string) if first.type == tokenize.STRING else ""
    return " ".join(text.partition("\n\n")[0].split())


def browser_files() -> list[Path]:
    """The TypeScript files of the workbench's page, and its styles."""
    found = (path for ending in ("ts", "tsx", "css") for path in BROWSER.rglob(f"*.{ending}"))
    return sorted(path for path in found if not path.name.endswith(".d.ts"))


def maker_files() -> list[Path]:
    """The files that make the site and its pages."""
    return [
        path
        for folder in MAKERS
        for path in sorted(folder.glob("*.py"))
        if not path.name.startswith(("test_", "__init__"))
    ]


def browser_summary(path: Path) -> str:
    """The first paragraph of the comment that begins a file of the page, as one line."""
    head = re.match(r"/\*\*?(.*?)(?:\*/|\n \*\n)", path.read_text(encoding="utf-8"), re.DOTALL)
    return " ".join(head[1].replace("\n *", "\n").split()) if head else ""


def package_of(path: Path) -> str:
    """The package at the top that a file is in; empty for a module beside the packages."""
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else ""


def lines() -> Iterator[str]:
    """The lines of the page."""
    yield _HEAD
    by_package = sorted(files(), key=lambda path: PACKAGES.index(package_of(path)))
    for package, paths in groupby(by_package, package_of):
        yield f"## `{package}`\n" if package else "## Beside the packages\n"
        yield "| file | what is decided there |\n|---|---|"
        for path in paths:
            name = path.relative_to(SOURCE / package).as_posix()
            yield _line(name, path, summary(path))
        yield ""
    yield "## The workbench's page: `workbench/src`\n"
    yield "| file | what is decided there |\n|---|---|"
    for path in browser_files():
        yield _line(path.relative_to(BROWSER).as_posix(), path, browser_summary(path))
    yield ""
    yield "## The site and the pages: `website` and `tests/docs`\n"
    yield "`website/zensical.toml` configures the site, its search among it. The tests of the pages are in `tests/docs/test_*.py`.\n"
    yield "| file | what it makes |\n|---|---|"
    for path in maker_files():
        yield _line(path.relative_to(ROOT).as_posix(), path, summary(path))
    yield ""
    yield "## Packages, containers and commands\n"
    yield "| file | what is decided there |\n|---|---|"
    for name, said in OTHERS.items():
        yield _line(name, ROOT / name, said)


def _line(name: str, path: Path, said: str) -> str:
    link = f"../../{path.relative_to(ROOT).as_posix()}"
    return f"| [`{name}`]({link}) | {said.replace('|', chr(92) + '|')} |"


def text() -> str:
    """The page."""
    return "\n".join(lines()).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
