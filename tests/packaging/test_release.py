"""A release is refused before anything is changed, and sets the version in one place."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.packaging import release
from tests.packaging.release import ReleaseRefused

import isotone


def git(repository: Path, *words: str) -> str:
    return release.run(["git", *words], repository)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the files that have a version, and one commit."""
    tree = tmp_path / "tree"
    for name in (release.VERSIONED, release.CHANGELOG, *release.SHOWN):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes((release.ROOT / name).read_bytes())
    git(tree, "init", "--quiet")
    git(tree, "config", "user.name", "A maintainer")
    git(tree, "config", "user.email", "maintainer@example.com")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "begin")
    return tree


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((release.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == release.VERSIONED


def test_a_release_sets_the_version_and_the_heading(repository: Path) -> None:
    release.set_version(repository, "9.0.1")
    release.commit(repository, "9.0.1")
    changed = git(repository, "show", "--format=", "--name-only", "v9.0.1^{commit}").split()
    assert sorted(changed) == sorted([release.VERSIONED, release.CHANGELOG, *release.SHOWN])
    assert '__version__ = "9.0.1"' in (repository / release.VERSIONED).read_text(encoding="utf-8")
    text = (repository / "deploy/kubernetes.yaml").read_text(encoding="utf-8")
    assert "image: isotone:9.0.1\n" in text


def test_the_heading_has_the_changes_below_it() -> None:
    before = "# Changelog\n\n## [Unreleased]\n\n- One.\n\n## [0.1.0] - 2026-12-01\n\n- Old.\n"
    assert release.with_heading(before, "0.2.0", "2026-12-24") == (
        "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-24\n\n- One.\n\n"
        "## [0.1.0] - 2026-12-01\n\n- Old.\n"
    )


def test_a_changelog_without_changes_is_refused() -> None:
    with pytest.raises(ReleaseRefused, match="nothing below"):
        release.with_heading("## [Unreleased]\n\n## [0.1.0] - 2026-12-01\n", "0.2.0", "2026-12-24")


@pytest.mark.parametrize(
    ("version", "words"), [("0.0.9", "before"), ("1.0", "no version"), ("v1.0.0", "no version")]
)
def test_a_version_that_cannot_follow_is_refused(version: str, words: str) -> None:
    with pytest.raises(ReleaseRefused, match=words):
        release.check_is_later(version, isotone.__version__)


def test_changes_and_tags_are_refused(repository: Path) -> None:
    release.check_is_clean(repository, "9.0.0")
    git(repository, "tag", "v9.0.0")
    with pytest.raises(ReleaseRefused, match="exists"):
        release.check_is_clean(repository, "9.0.0")
    (repository / "new.py").touch()
    with pytest.raises(ReleaseRefused, match=r"commit these changes first:\n\?\? new\.py"):
        release.release(repository, "9.0.1", dry=True)


def test_the_program_that_tries_a_wheel_runs(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", release.PROGRAM], cwd=tmp_path, check=False)
    assert ran.returncode == 0


def test_artefacts_that_differ_are_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "1" / "a.whl", tmp_path / "2" / "a.whl"
    for path in (one, other):
        path.parent.mkdir()
        path.write_bytes(b"same")
    release.check_are_same([one], [other])
    other.write_bytes(b"other")
    with pytest.raises(ReleaseRefused, match=r"a\.whl differs"):
        release.check_are_same([one], [other])
