"""Writes the methods of a store into docs/store.md, from their signatures and docstrings: `python -m tests.docs.store_page`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.docs.pages import ROOT
from website.reference import is_code

import isotone

PAGE: Final = ROOT / "docs" / "store.md"
BEGIN: Final = "<!-- The tables below are written from the docstrings of src/isotone/model/store_operations.py: make files -->\n"
GROUPS: Final = {
    "to read ([reading](reading.md))": """
        get exists refresh get_many get_together first page pages all iterate load count family nearest scan changes
        """,
    "to write ([writing](writing.md))": """
        put create replace upsert put_many update touch move delete delete_many update_all delete_all transaction
        returning requests
        """,
    "for tables ([tables](#tables)) and models that [change](migrating.md)": """
        create_tables add_indexes drop_tables differences table_name verify rewrite widen undo accept_keys
        """,
    "of the store itself": "capabilities run run_batches close",
}
_OWN_TYPES: Final = re.compile(r"\b(?:typing|collections\.abc|isotone(?:\.\w+)*)\.(?=\w)")


def text() -> str:
    """The page with present tables."""
    head = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
    return head + BEGIN + "\n" + "\n".join(_table(*group) for group in GROUPS.items())


def _table(title: str, names: str) -> str:
    rows = [_row(name) for name in names.split()]
    return "\n".join([f"| {title} | |", "|---|---|", *rows, ""])


def _row(name: str) -> str:
    method = inspect.getattr_static(isotone.Store, name)
    call = f"`{name}`" if isinstance(method, property) else _call(name, method)
    said = " ".join(_said(inspect.getdoc(method) or ""))
    return f"| {call} | {said} |".replace("\n", " ")


def _call(name: str, method: Callable[..., Any]) -> str:
    """The call without annotations, and the type of its result."""
    signature = inspect.signature(method)
    parameters = [
        each.replace(annotation=each.empty)
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    shown = signature.replace(parameters=parameters, return_annotation=signature.empty)
    result = _OWN_TYPES.sub("", inspect.formatannotation(signature.return_annotation)).strip("'")
    return f"`{name}{shown} → {result}`".replace("|", r"\|")


def _said(docstring: str) -> Iterator[str]:
    """The first paragraph, and every other sentence that names what is raised."""
    first, *others = [each for each in docstring.split("\n\n") if not is_code(each)]
    yield first
    for paragraph in others:
        for sentence in re.split(r"(?<=\.)\s+(?=[A-Z`])", paragraph):
            if re.search(r"\b[Rr]aises\b", sentence):
                yield sentence


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
