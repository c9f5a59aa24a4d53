"""What the cookbook promises beyond its blocks: a rename that is interrupted anywhere is completed by the same call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import page

import isotone

TASKS = 60  # three transactions


class Interrupted(Exception):
    """The process ended."""


class Interrupting:
    """A backend that ends after some requests."""

    def __init__(self, backend: Any, requests: int) -> None:
        self._backend = backend
        self._left = requests

    def execute(self, operation: str, request: dict[str, Any]) -> Any:
        if self._left == 0:
            raise Interrupted
        self._left -= 1
        return self._backend.execute(operation, request)


@pytest.fixture
def recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in page("docs/cookbook.md").blocks("python"):
        exec(compile(block.text, "docs/cookbook.md", "exec"), namespace)
    return namespace


def test_an_interrupted_rename_is_completed(recipes: dict[str, Any]) -> None:
    store, board_class, task_class = recipes["store"], recipes["Board"], recipes["Task"]

    def tasks_of(board: str) -> int:
        found: int = store.count(task_class.primary.where(task_class.board == board))
        return found

    interrupted = 0
    for requests in range(0, 90, 3):
        old, new = f"old-{requests}", f"new-{requests}"
        store.put(board_class(name=old))
        for number in range(TASKS):
            recipes["add_task"](task_class(board=old, number=number, title=""))
        recipes["store"] = isotone.connect(Interrupting(store.backend, requests), check_keys=False)
        try:
            recipes["rename"](old, new)
        except Interrupted:
            interrupted += 1
        assert tasks_of(old) + tasks_of(new) == TASKS

        recipes["store"] = store
        recipes["rename"](old, new)
        assert (tasks_of(old), tasks_of(new)) == (0, TASKS)
        assert store.get(board_class, name=old) is None
        assert store.get(board_class, name=new).moving_to is None
    assert 10 < interrupted < 30
