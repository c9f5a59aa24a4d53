"""What cannot be a file's name is refused by `isotone.open` and `isotone.connect`, before anything is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import isotone
from isotone.errors import UsageError


@pytest.mark.parametrize("name", ["a\0.db", "\udcff.db", Path("a\0.db")])
@pytest.mark.parametrize("opened", [isotone.open, isotone.connect])
def test_a_name_that_no_file_can_have(opened: Any, name: Any) -> None:
    with pytest.raises(UsageError, match="cannot be a file's name"):
        opened(name)


@pytest.mark.parametrize("name", [5, b"a.db", None, ["a.db"]])
def test_what_is_no_path(name: Any) -> None:
    with pytest.raises(UsageError, match="is not a path"):
        isotone.open(name)


def test_names_in_other_scripts(tmp_path: Path) -> None:
    for name in ("größe.db", "店.db"):
        isotone.open(tmp_path / name).close()
        assert (tmp_path / name).exists()
