"""Makes a release up to the push: `make release VERSION=0.2.0`, with DRY=1 to change nothing here.

Everything happens in a clone: the version and the changelog's heading are set, committed and tagged, the artefacts are
built twice, must be the same, and are tried in a new environment. Only then does the repository take over commit and tag.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
VERSIONED: Final = "src/isotone/__init__.py"
CHANGELOG: Final = "CHANGELOG.md"
# Pages that name the image with its version, or show what commands print.
SHOWN: Final = ("deploy/kubernetes.yaml", "docs/cli.md", "docs/deploying.md")
PATIENCE: Final = 60  # seconds

_VERSION: Final = re.compile(r'^__version__ = "(\d+\.\d+\.\d+)"$', re.MULTILINE)
_UNRELEASED: Final = "## [Unreleased]\n"

PROGRAM: Final = """
import isotone
from isotone import Attr, Entity, Key, Table, field

shop = Table("shop")

class Order(Entity, table=shop):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    primary = Key("CUSTOMER", customer).sort("ORDER", number)

store = isotone.connect("shop.db")
store.create_tables(shop)
store.put(Order(customer="ann", number=2))
store.put(Order(customer="ann", number=1))
orders = store.page(Order.primary.where(Order.customer == "ann"))
assert [order.number for order in orders] == [1, 2]
"""


class ReleaseRefused(Exception):
    """Why no release was made."""


def run(command: Sequence[str | Path], folder: Path, **environment: str) -> str:
    """The output of a program, which must succeed."""
    ran = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise ReleaseRefused(f"{' '.join(map(str, command))} failed: {ran.stdout[-2000:]}")
    return ran.stdout.strip()


def check_is_later(version: str, present: str) -> None:
    """Refuse what is no version, or is before the present one. The first release has the present one."""
    if re.fullmatch(r"\d+\.\d+\.\d+", version) is None:
        raise ReleaseRefused(f"{version!r} is no version; write VERSION=0.2.0")
    if [*map(int, version.split("."))] < [*map(int, present.split("."))]:
        raise ReleaseRefused(f"{version} is before {present}")


def check_is_clean(repository: Path, version: str) -> None:
    """Refuse changes that are not committed, and a tag that exists."""
    if changed := run(["git", "status", "--porcelain"], repository):
        raise ReleaseRefused(f"commit these changes first:\n{changed}")
    if run(["git", "tag", "--list", f"v{version}"], repository):
        raise ReleaseRefused(f"the tag v{version} exists")


def with_heading(changelog: str, version: str, date: str) -> str:
    """The changelog with the unreleased changes under the version's heading."""
    before, heading, changes = changelog.partition(_UNRELEASED)
    if not heading or not changes.partition("\n## ")[0].strip():
        raise ReleaseRefused(f"{CHANGELOG} has nothing below {_UNRELEASED.strip()!r}")
    return f"{before}{heading}\n## [{version}] - {date}\n{changes}"


def set_version(tree: Path, version: str) -> None:
    """Write the version where it stands, and give the changelog its heading."""
    module = tree / VERSIONED
    text = module.read_text(encoding="utf-8")
    (present,) = _VERSION.findall(text)
    check_is_later(version, present)
    module.write_text(_VERSION.sub(f'__version__ = "{version}"', text), encoding="utf-8")
    for name in SHOWN:
        page = tree / name
        shown = re.sub(rf"\b{re.escape(present)}\b", version, page.read_text(encoding="utf-8"))
        page.write_text(shown, encoding="utf-8")
    changelog = tree / CHANGELOG
    changes = changelog.read_text(encoding="utf-8")
    date = datetime.now(UTC).date().isoformat()
    changelog.write_text(with_heading(changes, version, date), encoding="utf-8")


def commit(tree: Path, version: str) -> None:
    """Commit the changes, and tag the commit."""
    run(["git", "commit", "--quiet", "--all", "--message", f"release: {version}"], tree)
    run(["git", "tag", "--annotate", f"v{version}", "--message", version], tree)


def build(tree: Path, into: Path) -> list[Path]:
    """The wheel and the sdist, whose times are that of the commit."""
    moment = run(["git", "log", "-1", "--format=%ct"], tree)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", into, tree]
    run(command, tree, SOURCE_DATE_EPOCH=moment)
    return sorted(into.iterdir())


def check_are_same(made: Sequence[Path], again: Sequence[Path]) -> None:
    """Refuse artefacts that differ from build to build."""
    for one, other in zip(made, again, strict=True):
        if (one.name, one.read_bytes()) != (other.name, other.read_bytes()):
            raise ReleaseRefused(f"{one.name} differs when it is built again")


def try_wheel(wheel: Path, version: str, folder: Path) -> None:
    """Install a wheel in a new environment, and try the command, a program and the server."""
    venv.create(folder / "environment", with_pip=True)
    programs = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
    run([programs / "python", "-m", "pip", "install", "--quiet", wheel], folder)
    found = run([programs / "isotone", "version", "--short"], folder)
    if found != version:
        raise ReleaseRefused(f"the installed command says {found!r}, not {version!r}")
    run([programs / "python", "-c", PROGRAM], folder)
    server = [str(programs / "isotone"), "serve", "shop.db", "--port", "0"]
    with subprocess.Popen(server, cwd=folder, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            address = _address(serving.stdout.readline())
            with urllib.request.urlopen(f"{address}/healthz", timeout=PATIENCE) as answer:
                if answer.status != 200:
                    raise ReleaseRefused(f"the server is not healthy: {answer.status}")
        finally:
            serving.terminate()


def _address(line: str) -> str:
    found = re.search(r"http://[\w.:\[\]]+", line)
    if found is None:
        raise ReleaseRefused(f"the server did not say its address: {line!r}")
    return found[0]


def release(repository: Path, version: str, *, dry: bool) -> None:
    """Make the commit, the tag and `dist/`; of a dry run, only the output."""
    check_is_clean(repository, version)
    with tempfile.TemporaryDirectory(prefix="isotone-release-") as name:
        folder = Path(name)
        tree = folder / "tree"
        run(["git", "clone", "--quiet", repository, tree], folder)
        for key in ("user.name", "user.email"):
            run(["git", "config", key, run(["git", "config", key], repository)], tree)
        set_version(tree, version)
        commit(tree, version)
        made = build(tree, folder / "dist")
        check_are_same(made, build(tree, folder / "again"))
        began = time.monotonic()
        (wheel,) = (path for path in made if path.suffix == ".whl")
        try_wheel(wheel, version, folder)
        print(f"{', '.join(path.name for path in made)}: built twice, the same")
        print(f"the wheel was installed and tried in {time.monotonic() - began:.0f} s")
        if dry:
            print(run(["git", "show", "--stat", "--format=%s", "HEAD"], tree))
            return
        run(["git", "fetch", "--quiet", tree, "tag", f"v{version}"], repository)
        run(["git", "merge", "--quiet", "--ff-only", f"v{version}"], repository)
        shutil.rmtree(repository / "dist", ignore_errors=True)
        shutil.copytree(folder / "dist", repository / "dist")
    print(f"now push it, which publishes it: git push --follow-tags origin HEAD v{version}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true")
    arguments = parser.parse_args()
    try:
        release(ROOT, arguments.version, dry=arguments.dry_run)
    except ReleaseRefused as refused:
        print(f"no release: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
