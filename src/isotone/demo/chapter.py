"""A chapter of the tour: a story, sample data, a question that is really sent, and its code.

The page shows the source of the functions that run, so it cannot differ from what was measured.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from types import ModuleType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from isotone.errors import UsageError

_KINDS: Final[dict[Any, str]] = {str: "text", int: "integer", Decimal: "number", datetime: "time"}
_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "text": str,
    "integer": int,
    "number": Decimal,
    "time": datetime.fromisoformat,
}


@dataclass(frozen=True, slots=True)
class Chapter:
    """One strategy. `ask(store, …)` answers the question; its other parameters can be edited on the page.

    `by_hand(client, …)` does the same with boto3's client. `instead` answers without the strategy, for comparison.
    `act` is a change that the visitor can try. `refuse` is code that Isotone refuses.
    """

    name: str
    scenario: int
    group: Literal["Sorting", "Filtering", "Structures"]
    title: str
    story: str
    shows: tuple[str, ...]
    """The tables and entities whose source is shown, by their names in the module of `ask`."""
    ask: Callable[..., Any]
    by_hand: Callable[..., Any]
    columns: tuple[str, ...] = ()
    """The columns of an answer whose rows are not items."""
    instead: Callable[..., Any] | None = None
    instead_title: str = ""
    act: Callable[..., Any] | None = None
    act_title: str = ""
    refuse: Callable[..., Any] | None = None

    def parameters(self) -> list[dict[str, Any]]:
        """The parameters of the question: name, kind, default, choices."""
        hints = get_type_hints(self.ask)
        found = []
        for name, parameter in list(inspect.signature(self.ask).parameters.items())[1:]:
            hint = hints[name]
            choices = list(get_args(hint)) if get_origin(hint) is Literal else []
            kind = "choice" if choices else _KINDS[hint]
            found.append(
                {
                    "name": name,
                    "kind": kind,
                    "default": _text(parameter.default),
                    "choices": choices,
                }
            )
        return found

    def values(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Parse the arguments of `ask`; raises `UsageError` for an invalid text."""
        found = {}
        for parameter in self.parameters():
            name, kind, choices = parameter["name"], parameter["kind"], parameter["choices"]
            text = str(given.get(name, parameter["default"]))
            if kind == "choice":
                if text not in choices:
                    raise UsageError(f"{name} is one of {', '.join(choices)}, not {text!r}")
                found[name] = text
                continue
            try:
                found[name] = _READERS[kind](text)
            except (ValueError, ArithmeticError):
                raise UsageError(f"{name} is {text!r}, which is no {kind}") from None
        return found

    def code(self) -> dict[str, Any]:
        """The sources: the model, the question, the same by hand, and the refused code."""
        module = inspect.getmodule(self.ask)
        assert module is not None
        return {
            "model": "\n\n".join(_definition(module, name) for name in self.shows),
            "question": body_of(self.ask),
            "by_hand": body_of(self.by_hand),
            "instead": None if self.instead is None else body_of(self.instead),
            "act": None if self.act is None else body_of(self.act),
            "refuse": None if self.refuse is None else body_of(self.refuse),
        }


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def body_of(function: Callable[..., Any]) -> str:
    """The statements of a function, as they would be in a script."""
    source = textwrap.dedent(inspect.getsource(function))
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.FunctionDef)
    first, *_ = definition.body
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    statements = definition.body[1:] if has_docstring else definition.body
    lines = source.splitlines()
    start = statements[0].lineno - 1
    while lines[start - 1].lstrip().startswith("#"):  # comments before the first statement
        start -= 1
    lines = lines[start:]
    text = textwrap.dedent("\n".join(lines))
    return "\n".join(_without_return(line) for line in text.splitlines())


def _without_return(line: str) -> str:
    indented = line.removeprefix("return ")
    return indented if indented != line else line


def _definition(module: ModuleType, name: str) -> str:
    return _definitions(module)[name]


@cache
def _definitions(module: ModuleType) -> dict[str, str]:
    """The source of each class and variable of a module."""
    source = inspect.getsource(module)
    found = {}
    for node in ast.parse(source).body:
        segment = ast.get_source_segment(source, node)
        assert segment is not None
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found[node.name] = segment
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = segment
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = segment
    return found
