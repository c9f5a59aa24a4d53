"""The architecture as data: who may import whom, no cycles, no module over 900 lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
LONGEST_MODULE = 900

FLOOR = {"errors", "limits", "clock", "values"}

# What the modules of each layer may import, besides their own layer.
ALLOWED = {
    "errors": set(),
    "limits": set(),
    "clock": set(),
    "values": {"errors", "limits"},
    "codec": FLOOR,
    "expressions": {"errors", "limits", "values"},
    "storage": {"errors"},
    "engine": FLOOR | {"codec", "expressions", "storage"},
    "operations": FLOOR | {"engine", "expressions"},
    "server": FLOOR,
    "client": {"errors"},
    "backends": FLOOR | {"client"},
    # Of the database stack the model shares two languages: what sorts, and what an expression means.
    "model": FLOOR | {"backends", "codec", "expressions"},
    "structures": {"clock", "errors", "model"},
    "testing": FLOOR | {"backends", "client", "isotone"},
    "cli": FLOOR | {"backends", "server", "structures", "isotone"},
    "isotone": {"backends", "client", "clock", "codec", "model"},
    "__main__": {"cli"},
}

# The one file in which the two stacks meet.
CROSSING = {"isotone.backends.embedded": FLOOR | {"client", "engine", "operations", "storage"}}


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted((SOURCE / "isotone").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def imports(tree: ast.AST, *, runtime_only: bool) -> Iterator[str]:
    """The modules of ours that a module imports, wherever it does."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and runtime_only:
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and runtime_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("isotone"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isotone"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else str(node.module)
        else:
            yield from imports(node, runtime_only=runtime_only)


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    own = layer(module)
    allowed = CROSSING.get(module, ALLOWED[own]) | {own}
    wrong = {
        imported
        for imported in imports(ast.parse(MODULES[module].read_text()), runtime_only=False)
        if layer(imported) not in allowed
    }
    assert not wrong, f"{module} must not import {sorted(wrong)}"


def test_there_is_no_cycle() -> None:
    graph = {
        module: set(imports(ast.parse(path.read_text()), runtime_only=True)) - {module}
        for module, path in MODULES.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("module", MODULES)
def test_no_module_is_too_long(module: str) -> None:
    lines = len(MODULES[module].read_text().splitlines())
    assert lines <= LONGEST_MODULE, f"{module} has {lines} lines: it does more than one thing"


def test_every_module_says_what_it_is() -> None:
    silent = [
        module
        for module, path in MODULES.items()
        if path.read_text().strip() and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not silent, f"modules without a docstring: {silent}"
