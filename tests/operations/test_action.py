"""The table of actions: it names the module of each, which is imported when the action is first used."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from isotone.operations.action import ACTIONS, GROUPED, STARTS_WORK

PACKAGE = Path(import_module("isotone.operations").__path__[0])


def test_each_module_declares_the_actions_that_the_table_has_for_it() -> None:
    declared = {}
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        names = re.findall(r'^@action\(\s*"(\w+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
        declared |= dict.fromkeys(names, module)
    assert declared == {name: action.module for name, action in ACTIONS.items()}


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_an_action_has_a_request_of_its_own_name(name: str) -> None:
    action = ACTIONS[name]
    assert action.name == name
    assert action.request.__name__.removesuffix("Request") == name
    assert callable(action.run)


def test_what_is_grouped_or_starts_work_is_an_action() -> None:
    assert ACTIONS.keys() >= GROUPED | STARTS_WORK


def test_a_module_is_imported_with_the_first_request_of_its_actions() -> None:
    program = """
import sys
import isotone
with isotone.open() as database:
    assert "isotone.operations.global_tables" not in sys.modules
    database.execute("ListGlobalTables", {})
    assert "isotone.operations.global_tables" in sys.modules
    assert "isotone.operations.statements" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
