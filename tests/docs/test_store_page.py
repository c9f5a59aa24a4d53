from __future__ import annotations

from tests.docs.store_page import GROUPS, PAGE, text

import isotone


def test_the_tables_are_those_of_the_docstrings() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == text(), "docs/store.md differs from the docstrings: make files"


def test_each_method_is_in_one_table() -> None:
    listed = [name for names in GROUPS.values() for name in names.split()]
    assert sorted(listed) == [name for name in dir(isotone.Store) if not name.startswith("_")]
