"""The reference: a heading, the signature and the docstring of every public name, method and command.

Signatures are made at run time (`isotone.shown_signature`), so the names are imported, not parsed. The tables of docs/api.md
group the names of `isotone`; public modules and commands have pages of their own. The pages are made when the site is
built, in build/: `help()` shows the same text.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tests.docs.pages import page

import isotone
from isotone.cli.program import COMMANDS, parser_of

FOLDER: Final = "docs/reference"
MODULES: Final = {
    "structures": "Structures",
    "testing": "Tests, mocks and faults",
    "moving": "Copies and files",
}
_TABLE: Final = re.compile(r"^\| ([^|\n]+?) \| \|\n\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)
_LINKS: Final = re.compile(r"\[[^\]]*\]\([^)]*\)")
_WIDTH: Final = 88
_MANY: Final = 30  # methods
_NAMES: Final = re.compile(r"`isotone\.(\w+)`")
# Methods of public classes that other layers call, and programs do not.
INTERNAL: Final = {
    "Attr": [
        "bind",
        "declare_order",
        "check_order_at",
        "writes_alike",
        "unique_within",
        "writes_none",
        "encode",
        "encode_at",
        "wire_at",
        "place",
        "path",
    ],
    "Codec": ["to_wire", "from_wire"],
    "Change": ["action", "known", "is_known"],
    "Condition": ["node", "fields", "check"],
    "Database": [
        "send",
        "read_json",
        "send_many",
        "health",
        "gauges",
        "measure",
        "series",
        "allow_waiting",
        "account",
        "accesses",
        "has_policies",
        "is_grouped",
        "maintain",
        "start_maintenance",
        "finish_maintenance",
        "frozen",
        "add_frozen",
        "intercepted",
    ],
    "Entity": ["from_trusted"],
    "Faults": ["send", "execute", "served"],
    "Read": ["request", "conditions_by_key", "fixed_position", "table"],
    "Query": ["request", "conditions_by_key", "fixed_position", "table"],
    "Scan": ["request", "conditions_by_key", "fixed_position", "table"],
    "Snapshot": ["table"],
    "Structure": ["require", "now", "after", "bind", "layout"],
    "Table": ["entity_of", "layout"],
    "VectorSearch": ["requests"],
}


class Entry(NamedTuple):
    """A public name: how a program writes it, the object, and links to the pages that explain it."""

    name: str
    object: Any
    links: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        return self.name.replace(".", "").lower()


def groups() -> dict[str, list[Entry]]:
    """Title → the public names of a page, in the order in which docs/api.md and the modules list them."""
    found: dict[str, list[Entry]] = {}
    for title, rows in _TABLE.findall(page("docs/api.md").text):
        found[title] = [entry for row in rows.splitlines() for entry in _of_row(row)]
    for module, title in MODULES.items():
        home = importlib.import_module(f"isotone.{module}")
        names = sorted(home.__all__, key=str.lower)
        found[title] = [Entry(f"isotone.{module}.{name}", getattr(home, name)) for name in names]
    return {
        title: entries
        for group, all_entries in found.items()
        for title, entries in _in_pages(group, all_entries)
    }


def _of_row(row: str) -> Iterator[Entry]:
    _, names, explanation, _ = row.replace(r"\|", "/").split("|")
    links = tuple(_LINKS.findall(explanation))
    for name in _NAMES.findall(names):
        yield Entry(f"isotone.{name}", getattr(isotone, name), links)


def _in_pages(group: str, entries: list[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """A page for the names of a group, and one for each class of many methods."""
    large = [
        entry for entry in entries if inspect.isclass(entry.object) and _is_large(entry.object)
    ]
    yield group, [entry for entry in entries if entry not in large]
    for entry in large:
        yield entry.name, [entry]


def _is_large(kind: type) -> bool:
    return len(list(members(kind))) > _MANY


def pages() -> dict[str, str]:
    """Path → text of every generated page."""
    made = {_path(title): _page(title, entries) for title, entries in groups().items()}
    return made | {f"{FOLDER}/commands.md": _commands()}


def places() -> dict[str, str]:
    """Public name without `isotone.` → the path and anchor of its heading."""
    return {
        entry.name.removeprefix("isotone."): f"{_path(title)}#{entry.anchor}"
        for title, entries in groups().items()
        for entry in entries
    }


def _path(title: str) -> str:
    return f"{FOLDER}/{re.sub(r'[^a-z.]+', '-', title.lower())}.md"


def _page(title: str, entries: list[Entry]) -> str:
    return (
        "\n\n".join([f"# {title}", *(part for entry in entries for part in _entry(entry))]) + "\n"
    )


def _entry(entry: Entry) -> Iterator[str]:
    yield f"## {entry.name}"
    short = entry.name.rpartition(".")[2]
    if inspect.isclass(entry.object):
        yield from _class(short, entry.object)
    elif callable(entry.object):
        yield from _function(short, entry.object)
    else:
        yield _code(f"{short}: {type(entry.object).__name__}")
    if entry.links:
        yield f"See {', '.join(entry.links)}.".replace("](", "](../")


def _class(name: str, kind: type) -> Iterator[str]:
    if not issubclass(kind, Warning | isotone.Store | isotone.AsyncStore):
        yield _code(signature(kind, name))
    yield from _doc(kind)
    for member_name, member in members(kind):
        yield f"### {name}.{member_name}"
        if callable(member):
            yield from _function(f"{name}.{member_name}", member)
        else:
            yield from _doc(member)


def _function(name: str, function: Any) -> Iterator[str]:
    yield _code(signature(function, name))
    yield from _doc(function)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties that programs use, in the order of the source, those of the bases after them.

    Bases with an entry of their own are left out: an `AsyncStore` has what a `Store` has, to be awaited.
    """
    seen = {name for base in kind.__mro__ for name in INTERNAL.get(base.__name__, ())}
    for base in kind.__mro__:
        if not base.__module__.startswith("isotone") or (base is not kind and _has_entry(base)):
            continue
        if kind is isotone.AsyncStore and base is not kind:
            continue
        for name in vars(base):
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            found = inspect.getattr_static(kind, name)
            if isinstance(found, staticmethod | classmethod):
                found = found.__func__
            if inspect.isfunction(found) or isinstance(found, property):
                yield name, found


def _has_entry(kind: type) -> bool:
    return getattr(isotone, kind.__name__, None) is kind


class _Unquoted(str):
    """An annotation that `inspect` shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def signature(function: Any, name: str) -> str:
    """How a call looks: on one line, or with one parameter on each."""
    found = inspect.signature(function)
    parameters = [
        each.replace(annotation=_unquoted(each.annotation))
        for each in found.parameters.values()
        if each.name not in ("self", "cls")
    ]
    arrow = "" if inspect.isclass(function) else " -> "
    result = str(_unquoted(found.return_annotation)) if arrow else ""
    line = f"{name}{found.replace(parameters=parameters, return_annotation=found.empty)}{arrow}{result}"
    if len(line) <= _WIDTH:
        return line
    lines = [f"    {each}," for each in _parameter_lines(parameters)]
    return "\n".join([f"{name}(", *lines, f"){arrow}{result}"])


def _unquoted(annotation: Any) -> Any:
    return _Unquoted(annotation) if isinstance(annotation, str) else annotation


def _parameter_lines(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Each parameter, and the `/` and `*` between them."""
    previous = None
    for each in parameters:
        if previous is each.POSITIONAL_ONLY and each.kind is not previous:
            yield "/"
        if each.kind is each.KEYWORD_ONLY and previous not in (
            each.KEYWORD_ONLY,
            each.VAR_POSITIONAL,
        ):
            yield "*"
        yield str(each)
        previous = each.kind


def _doc(thing: Any) -> Iterator[str]:
    text = inspect.getdoc(thing)
    if text and not text.startswith(f"{getattr(thing, '__name__', '?')}("):
        yield markdown(text)


def markdown(docstring: str) -> str:
    """A docstring with its examples as fenced blocks."""
    paragraphs = re.split(r"\n\s*\n", docstring.strip("\n"))
    parts: list[tuple[bool, str]] = []
    for text in paragraphs:
        code = is_code(text)
        if code and parts and parts[-1][0]:
            parts[-1] = (True, f"{parts[-1][1]}\n\n{text}")
        else:
            parts.append((code, text))
    return "\n\n".join(_fenced(text) if code else text for code, text in parts)


def is_code(paragraph: str) -> bool:
    """Whether a paragraph of a docstring is an example: it is indented, or it is a statement and no sentence."""
    if paragraph.startswith((" ", ">>>")):
        return True
    try:
        ast.parse(paragraph)
    except SyntaxError:
        return False
    return bool(re.search(r"[(=]", paragraph))


def _fenced(text: str) -> str:
    text = textwrap.dedent(text)
    return f"```{'pycon' if text.startswith('>>>') else 'python'}\n{text}\n```"


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _commands() -> str:
    """Every command: what its `--help` prints."""
    parts = [
        "# Commands",
        "What `isotone COMMAND --help` prints. [Command line](../cli.md) explains each.",
    ]
    for name in COMMANDS:
        parts += [f"## isotone {name}", f"```text\n{parser_of(name).format_help().rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"
