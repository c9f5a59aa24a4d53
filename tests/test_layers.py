"""The architecture as data: who may import whom, no cycles, no module over 900 lines, each file on the map.

All imports that run are seen, also those inside functions; imports for type checkers alone close no cycle.

A cycle is looked for between modules, and inside every package between the modules and sub-packages that are
directly in it. A sub-package counts as one there, with all that it holds. A package's `__init__` is its door.
For those outside, the door is part of the package. Inside, it stands beside the modules whose names it
re-exports, so none of these may import it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.docs.file_map import (
    OTHERS,
    PAGE,
    browser_files,
    browser_summary,
    files,
    maker_files,
    summary,
    text,
)

SOURCE = Path(__file__).parent.parent / "src"
LONGEST_MODULE = 900
WRITTEN_BY_A_PROGRAM = {"isotone.client.request_types"}
LONGEST_SUMMARY = 120

FLOOR = {
    "authority",
    "clock",
    "crc",
    "daemon",
    "error_text",
    "errors",
    "file_lock",
    "first_bytes",
    "folder_sync",
    "limits",
    "output_paths",
    "postgres_address",
    "shown_signature",
    "text_table",
    "values",
}

# What the modules of each layer may import, besides their own layer.
ALLOWED = {
    "authority": set(),
    "errors": set(),
    "error_text": {"errors", "postgres_address"},
    "limits": set(),
    "clock": set(),
    "crc": set(),
    "daemon": set(),
    "file_lock": {"errors"},
    "first_bytes": set(),
    "folder_sync": set(),
    "output_paths": {"errors", "first_bytes"},
    "postgres_address": {"errors"},
    "shown_signature": set(),
    "text_table": set(),
    "prices": {"errors"},
    "values": {"errors", "limits"},
    "codec": FLOOR,
    "expressions": {"errors", "limits", "values"},
    "storage": {
        "crc",
        "errors",
        "file_lock",
        "first_bytes",
        "folder_sync",
        "output_paths",
        "postgres_address",
    },
    "exchange": {"errors", "folder_sync"},
    "engine": FLOOR | {"codec", "exchange", "expressions", "storage"},
    "operations": FLOOR | {"engine", "exchange", "expressions"},
    "server": FLOOR,
    "client": {"errors", "shown_signature"},
    # A store whose keys are strings needs what sorts; a backend that evaluates, what an expression means.
    "backends": FLOOR | {"client", "codec", "expressions"},
    # Raw requests about whole tables: no entities.
    "tables": FLOOR | {"backends", "prices"},
    # Of the database stack the model shares two languages: what sorts, and what an expression means.
    "model": FLOOR | {"backends", "codec", "expressions", "tables"},
    "structures": {"clock", "daemon", "errors", "model", "shown_signature", "tables", "text_table"},
    "inference": FLOOR | {"codec", "model", "tables"},
    "moving": FLOOR | {"backends", "exchange", "expressions", "prices", "tables"},
    # Definitions of tables in the formats of other tools: no entities.
    "schema": FLOOR | {"backends", "tables"},
    # It plans what a condition reads as the database does, and compares it with what a model declares.
    "advisor": FLOOR
    | {
        "backends",
        "codec",
        "expressions",
        "inference",
        "model",
        "moving",
        "prices",
        "structures",
        "tables",
    },
    # Sample data, sheets and plans of models: it explains and forecasts, and writes what the model says.
    "design": FLOOR | {"advisor", "backends", "codec", "model", "prices", "tables"},
    # The pages of the server, for any backend; the server itself knows no page.
    "workbench": FLOOR
    | {"advisor", "backends", "design", "inference", "model", "moving", "server", "tables"},
    # Tools for coding assistants: what the workbench, lint, simulation and design answer, within budgets.
    "mcp": FLOOR | {"advisor", "backends", "design", "model", "schema", "tables", "workbench"},
    # Sample data and a tour through it: written with the library, shown in the workbench.
    "demo": FLOOR
    | {
        "advisor",
        "backends",
        "design",
        "isotone",
        "model",
        "structures",
        "tables",
        "workbench",
    },
    "testing": FLOOR | {"backends", "client", "isotone", "tables"},
    # The command line shows how a statement runs, which is decided by its keys, not by who answers.
    "cli": FLOOR
    | {
        "advisor",
        "backends",
        "demo",
        "design",
        "expressions",
        "inference",
        "mcp",
        "model",
        "moving",
        "prices",
        "schema",
        "server",
        "structures",
        "tables",
        "testing",
        "workbench",
        "isotone",
    },
    "isotone": {
        "advisor",
        "backends",
        "client",
        "clock",
        "codec",
        "design",
        "inference",
        "model",
        "moving",
    },
    "__main__": {"cli"},
}

# The one file in which the two stacks meet.
CROSSING = {
    "isotone.backends.embedded": FLOOR | {"client", "engine", "exchange", "operations", "storage"}
}


# Inside the model: each may import those before it.
ORDER_OF_THE_MODEL = ("declaring", "writing", "reading")

# Layers that know the model by its door alone.
THROUGH_THE_DOOR = {
    *("structures", "inference", "advisor", "cli", "design", "mcp", "testing", "workbench"),
}

# Names of classes that stand in two packages, and why. Any other name stands for one idea.
SHARED_NAMES = {
    "Condition": "a condition of the model, and the API's legacy one",
    "CsvOptions": "the API's request, and the file's",
    "Delete": "a node of the grammar, a write of the model, and the API's entry of a transaction",
    "Put": "a write of the model, and the API's entry of a transaction",
    "Update": "a write of the model, and the API's entry of a transaction",
    "VectorIndex": "an index of the model, and the API's",
    "Projection": "the fields of an entity that are read, and the API's attributes of an index",
    "Call": "a call in an expression, by its node's stored name, and a request that steps yield",
    "Codec": "what users write for a field, and for a part of a readable key, by its stored name",
    "Shard": "of a stream, and of a time series, by its stored name",
}
# Written from the structures of `operations`; and the entities of sample models, in their own words.
NAMED_BY_OTHERS = ("client/request_types.py", "demo/")


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted((SOURCE / "isotone").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()
PACKAGES = [module for module, path in MODULES.items() if path.name == "__init__.py"]


def layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def imports(tree: ast.AST, *, runtime_only: bool) -> Iterator[str]:
    """The modules of ours that a module imports, at its top, in its functions and in its classes.

    Those for type checkers alone are left out where only the ones that run are wanted.
    """
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case)):
            continue  # only statements import
        if runtime_only and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("isotone"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isotone"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else str(node.module)
        else:
            yield from imports(node, runtime_only=runtime_only)


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imported(module: str, *, runtime_only: bool = True) -> set[str]:
    return set(imports(tree_of(module), runtime_only=runtime_only)) - {module}


@cache
def graph() -> dict[str, set[str]]:
    """What each module imports."""
    return {module: imported(module) for module in MODULES}


def child_of(package: str, module: str) -> str | None:
    """The part of a package that a module is or belongs to: the package itself for its `__init__`."""
    if module == package:
        return package
    inner = module.removeprefix(f"{package}.")
    return None if inner == module else f"{package}.{inner.partition('.')[0]}"


def parts_of(package: str) -> dict[str, set[str]]:
    """What the modules and sub-packages directly in a package import of one another."""
    parts: dict[str, set[str]] = {}
    for module, targets in graph().items():
        part = child_of(package, module)
        if part is not None:
            known = {child_of(package, target) for target in targets}
            parts.setdefault(part, set()).update(known - {None, part})
    return parts


def cycle_in(graph: dict[str, set[str]]) -> str:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " -> ".join(error.args[1])
    return ""


def test_imports_point_down() -> None:
    wrong = [
        f"{module} must not import {target}"
        for module in MODULES
        for target in sorted(imported(module, runtime_only=False))
        if layer(target) not in CROSSING.get(module, ALLOWED[layer(module)]) | {layer(module)}
    ]
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other() -> None:
    assert not cycle_in(graph())


def test_the_parts_of_a_package_do_not_import_each_other() -> None:
    cycles = [cycle for package in PACKAGES if (cycle := cycle_in(parts_of(package)))]
    assert not cycles, "\n".join(cycles)


def test_the_model_declares_then_writes_then_reads() -> None:
    place = {f"isotone.model.{name}": at for at, name in enumerate(ORDER_OF_THE_MODEL)}
    wrong = [
        f"{part} imports {target}"
        for part, targets in parts_of("isotone.model").items()
        for target in targets
        if place.get(target, -1) > place.get(part, len(place))
    ]
    assert not wrong


def test_the_model_is_imported_through_its_door() -> None:
    wrong = [
        f"{module} imports {source}; import the names from isotone.model"
        for module in MODULES
        if layer(module) in THROUGH_THE_DOOR
        for source in sorted(sources_of(module))
        if source.startswith("isotone.model.")
    ]
    assert not wrong, "\n".join(wrong)


def sources_of(module: str) -> set[str]:
    """The modules that are named after `import` and `from`, also those for type checkers alone."""
    sources = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom):
            sources.add(node.module or "")
        elif isinstance(node, ast.Import):
            sources.update(alias.name for alias in node.names)
    return sources


def test_no_module_is_too_long() -> None:
    lengths = {
        module: len(path.read_text(encoding="utf-8").splitlines())
        for module, path in MODULES.items()
    }
    wrong = [
        f"{module} has {lines} lines: it does more than one thing"
        for module, lines in lengths.items()
        if lines > LONGEST_MODULE and module not in WRITTEN_BY_A_PROGRAM
    ]
    assert not wrong, "\n".join(wrong)


def test_every_module_says_what_it_is() -> None:
    silent = [
        module
        for module, path in MODULES.items()
        if path.read_text(encoding="utf-8").strip() and not ast.get_docstring(tree_of(module))
    ]
    assert not silent, f"modules without a docstring: {silent}"


def test_the_map_is_that_of_the_source() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == text(), "docs/design/files.md differs from the docstrings: make files"
    listed = [*files(), *browser_files(), *maker_files(), *map(SOURCE.parent.joinpath, OTHERS)]
    assert all(path.is_file() for path in listed)
    assert len(re.findall(r"^\| \[`", written, re.MULTILINE)) == len(listed)


def test_a_file_says_what_it_decides_in_one_line() -> None:
    said = {path: summary(path) for path in files()}
    said |= {path: browser_summary(path) for path in browser_files()}
    for path, line in said.items():
        assert line.endswith((".", "?")), f"{path}: a sentence ends with a full stop: {line!r}"
        assert len(line) <= LONGEST_SUMMARY, (
            f"{path}: {len(line)} characters do not fit into a tooltip: {line!r}"
        )


def test_a_name_of_a_class_stands_for_one_idea() -> None:
    found: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        place = path.relative_to(SOURCE / "isotone")
        if place.as_posix().startswith(NAMED_BY_OTHERS):
            continue
        for node in tree_of(module).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, set()).add(place.parent.as_posix())
    shared = {name: sorted(packages) for name, packages in found.items() if len(packages) > 1}
    assert {name: shared[name] for name in shared.keys() - SHARED_NAMES.keys()} == {}
    assert SHARED_NAMES.keys() <= shared.keys()
