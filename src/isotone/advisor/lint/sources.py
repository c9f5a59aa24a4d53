"""Where tables, entities and keys are declared, and `# isotone: ignore[…]`, the comments that suppress findings there.

    by_day = Key("DAY", day).sort(at)  # isotone: ignore[ISO202] a thousand writes a day

A comment applies to the declaration on its own line, or on the line below. On the line of a class it applies to the
whole class.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from isotone.advisor.lint.finding import FindingPlace

_COMMENT: Final = re.compile(
    r"#\s*isotone:\s*ignore\s*\[(?P<codes>[^\]]*)\]\s*[:-]?\s*(?P<reason>.*)"
)


@dataclass(frozen=True, slots=True)
class Suppression:
    """A comment that suppresses codes in a range of lines of a module."""

    module: str
    file: str
    line: int
    codes: tuple[str, ...]
    reason: str
    first: int
    last: int

    def covers(self, place: FindingPlace, code: str) -> bool:
        return (
            place.file == self.file
            and self.first <= place.line <= self.last
            and code.upper() in self.codes
        )


@dataclass(frozen=True)
class SourceFile:
    """One file: the lines of its declarations by dotted name, and its suppressions."""

    file: str
    lines: dict[str, tuple[int, int]] = field(default_factory=dict)
    suppressions: tuple[Suppression, ...] = ()


@cache
def source_of(file: str) -> SourceFile:
    """The declarations and comments of a file. Parses it once."""
    try:
        text = Path(file).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, UnicodeDecodeError):
        return SourceFile(file)
    shown = _shown(file)
    lines = dict(_declarations(tree, ""))
    return SourceFile(shown, lines, tuple(_suppressions(shown, text, tree)))


def _shown(file: str) -> str:
    """The path as it is shown: relative to the current folder if it is inside it."""
    path, here = Path(file).resolve(), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _declarations(node: ast.AST, prefix: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The line ranges of classes and assigned names, including those inside classes and functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            first = _first_line(child)
            yield f"{prefix}{child.name}", (first, child.end_lineno or first)
            yield from _declarations(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _declarations(child, f"{prefix}{child.name}.<locals>.")
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield f"{prefix}{target.id}", (child.lineno, child.end_lineno or child.lineno)


def _suppressions(file: str, text: str, tree: ast.Module) -> Iterator[Suppression]:
    spans = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr)
    ]
    classes = {
        line: (_first_line(node), node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for line in (_first_line(node), node.lineno)
    }
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        found = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
        if found is None:
            continue
        line = target = token.start[0]
        if not token.line[: token.start[1]].strip():  # it stands alone, above a declaration
            following = range(line + 1, len(lines) + 1)
            target = next((at for at in following if _is_code(lines[at - 1])), line)
        around = [span for span in spans if span[0] <= target <= span[1]]
        first, last = min(around, key=lambda span: span[1] - span[0], default=(target, target))
        codes = tuple(each.strip().upper() for each in found["codes"].split(",") if each.strip())
        first, last = classes.get(target, (first, last))
        yield Suppression("", file, line, codes, found["reason"].strip(), first, last)


def _first_line(node: ast.ClassDef) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _is_code(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


# Places of objects


def place_of_entity(entity: type[Any], name: str = "") -> FindingPlace:
    """Where an entity, a field or a key is declared; in a base class if it is inherited."""
    for cls in entity.__mro__:
        source = _source_of_module(cls.__module__)
        dotted = f"{cls.__qualname__}.{name}" if name else cls.__qualname__
        if source is not None and dotted in source.lines:
            return FindingPlace(source.file, source.lines[dotted][0], name=dotted)
    return FindingPlace(name=f"{entity.__qualname__}.{name}" if name else entity.__qualname__)


def place_of_value(value: Any, title: str, modules: tuple[str, ...]) -> FindingPlace:
    """Where one of these modules assigns a table or a query to a name."""
    for module in modules:
        source = _source_of_module(module)
        for name, each in vars(sys.modules[module]).items() if source is not None else ():
            if each is value and source is not None and name in source.lines:
                return FindingPlace(source.file, source.lines[name][0], name=name)
    return FindingPlace(name=title)


def _source_of_module(module: str) -> SourceFile | None:
    file = getattr(sys.modules.get(module), "__file__", None)
    return None if file is None else source_of(file)


def suppressions_of(modules: tuple[str, ...]) -> list[Suppression]:
    """All suppressions in the files of these modules."""
    sources = [(module, _source_of_module(module)) for module in modules]
    return [
        replace(each, module=module)
        for module, source in sources
        if source is not None
        for each in source.suppressions
    ]
