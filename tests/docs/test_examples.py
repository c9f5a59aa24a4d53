"""Every example of README and docs runs: Python in order and in one namespace for each page, test files
under pytest, commands with the output that the page shows. (`docs/testing.md`, and what needs the
emulator of Azure, have tests of their own.)

A page that mentions the default address of a server finds one there, on another port.
"""

from __future__ import annotations

import doctest
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, Block, Page

import isotone
from isotone.cli import main
from isotone.cli.program import parser_of
from isotone.server import running_server

RUN_ELSEWHERE = {"docs/testing.md", "docs/postgres.md"}
ADDRESSES = ("http://127.0.0.1:8000", "http://localhost:8000")
# Commands that never end, or that need a module of the reader's program.
ONLY_PARSED = {
    "lint",
    "copy",
    "diff",
    "demo",
    "serve",
    "shell",
    "user",
    "rewrite",
    "schema",
    "seed",
    "design",
    "apply",
    "simulate",
    "verify",
    "worker",
    "import",
    "mcp",
    "new",
    "workbench",
}

_MINE = [page for page in PAGES if page.name not in RUN_ELSEWHERE]


def having(*languages: str) -> list[Page]:
    return [page for page in _MINE if any(page.blocks(*languages))]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return tmp_path


@pytest.fixture
def url() -> Iterator[str]:
    with isotone.open() as database, running_server(database) as url:
        yield url


_FILE = re.compile(r"# [\w/]+\.py\n")


def is_a_test_file(block: Block) -> bool:
    return block.text.startswith("# test_")


def at(url: str, text: str) -> str:
    for address in ADDRESSES:
        text = text.replace(address, url)
    return text


@pytest.mark.parametrize("page", having("python"), ids=lambda page: page.name)
def test_python_runs(page: Page, here: Path, url: str) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in page.blocks("python"):
        if not is_a_test_file(block) and not block.needs_azurite:
            text = "\n" * (block.line - 1) + at(url, block.text)
            exec(compile(text, str(page.path), "exec"), namespace)


def test_test_files_pass(here: Path) -> None:
    """Each in a folder of its own; those of a page with a program, such as `# app.py`, beside it."""
    apart = here / "apart"
    for page in _MINE:
        files = [block for block in page.blocks("python") if _FILE.match(block.text)]
        tests = [block for block in files if is_a_test_file(block)]
        folder = here / page.path.stem
        is_one = bool(tests) and any(block.text.startswith("# app.py") for block in files)
        for number, block in enumerate(files if is_one else tests):
            place = folder if is_one else apart / f"{page.path.stem}_{number}"
            place.mkdir(parents=True, exist_ok=True)
            place.joinpath(block.text.split()[1]).write_text(block.text, encoding="utf-8")
        if is_one:
            check_tests(folder)
    check_tests(apart, "--import-mode=importlib")


def check_tests(folder: Path, *options: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", *options]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("page", having("console"), ids=lambda page: page.name)
def test_commands_print_what_is_shown(page: Page, here: Path, url: str) -> None:
    checker = doctest.OutputChecker()
    for block in page.blocks("console"):
        for command, shown in sessions(at(url, block.text)):
            code, printed = run(command)
            printed = tidy(printed)
            as_shown = checker.check_output(tidy(shown), printed, doctest.ELLIPSIS)
            assert as_shown, f"{page.name}:{block.line}: {command}\nprints\n{printed}"
            differs = command.startswith("isotone diff") and ": equal" not in shown
            fails = "isotone: " in shown or differs or " bad row" in shown
            assert (code != 0) == fails, f"{page.name}:{block.line}: {command} exits with {code}"


def sessions(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a block with the output under it. A line that ends with `\\` goes on."""
    for part in ("\n" + text).split("\n$ ")[1:]:
        lines = part.split("\n")
        command = lines.pop(0)
        while command.endswith("\\"):
            command = command[:-1] + lines.pop(0)
        yield command, "\n".join(lines)


def tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"


def run(command: str) -> tuple[int, str]:
    """Run `isotone …`, `echo … | isotone …` or `isotone … > FILE`: the exit code and what is printed."""
    words = shlex.split(command, posix=True)
    stdin, output = "", None
    if words[0] == "echo":
        pipe = words.index("|")
        stdin, words = " ".join(words[1:pipe]) + "\n", words[pipe + 1 :]
    if ">" in words:
        words, output = words[: words.index(">")], words[-1]
    assert words[0] == "isotone", f"cannot run {command}"
    printed = io.StringIO()
    previous, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin.encode()))
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            code = main(words[1:])
    except SystemExit as ended:  # argparse
        code = int(ended.code or 0)
    finally:
        sys.stdin = previous
    if output is not None:
        Path(output).write_text(printed.getvalue(), encoding="utf-8")
        return code, ""
    return code, printed.getvalue()


def scripted(first: str) -> list[tuple[str, list[str]]]:
    """The lines of all `sh` blocks that begin with a word, as (page, words)."""
    return [
        (page.name, shlex.split(line, comments=True))
        for page in _MINE
        for block in page.blocks("sh")
        for line in block.text.splitlines()
        if line.startswith(first + " ")
    ]


@pytest.mark.parametrize(("page", "words"), scripted("isotone"))
def test_command_lines_can_be_meant_as_written(page: str, words: list[str]) -> None:
    assert words[1] in ONLY_PARSED, (
        f"{page}: show {' '.join(words)} in a console block, where it runs"
    )
    parser_of(words[1]).parse_args(words[2:])


@pytest.mark.parametrize(("page", "words"), scripted("make"))
def test_make_targets_exist(page: str, words: list[str]) -> None:
    targets = {
        line.partition(":")[0] for line in (ROOT / "Makefile").read_text("utf-8").splitlines()
    }
    assert {word for word in words[1:] if "=" not in word} <= targets


def test_there_are_commands_to_check() -> None:
    assert having("console")
    assert scripted("isotone")
    assert scripted("make")
