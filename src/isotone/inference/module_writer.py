"""Writes the Python module of an inferred model: the table, a class for each entity, and comments on guesses.

The source is formatted as ruff would format it. Comments are above their declarations.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from isotone.inference.field_types import quoted
from isotone.inference.naming import class_name, field_name, words
from isotone.inference.planning import EntityPlan, FieldPlan, IndexPlan, ModelPlan
from isotone.inference.sampling import Sample
from isotone.tables.description import IndexDescription, KeyElement
from isotone.text_table import pluralized
from isotone.values.types import AttributeValue

_WIDTH: Final = 88
_DEFAULT_TAG: Final = "_type"
_IMPORTS: Final = {
    "datetime": ("date", "datetime"),
    "decimal": ("Decimal",),
    "typing": ("Any", "Literal", "NotRequired"),
    "uuid": ("UUID",),
    "pydantic": ("ConfigDict", "with_config"),
    "typing_extensions": ("TypedDict",),
    "isotone": (
        *("KSUID", "ULID", "Attr", "Binary", "Entity", "Global", "Index", "Key", "Local", "Number"),
        *("Table", "desc", "expires", "field", "in_order", "raw", "since_epoch", "written"),
    ),
}
_STANDARD: Final = ("datetime", "decimal", "typing", "uuid")
_NAME: Final = re.compile(r"\b[A-Za-z_]+\b")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')


@dataclass
class EntityNames:
    """The names of an entity in the module: its class, its fields by source, and its keys by index."""

    name: str
    fields: dict[str, str]
    keys: dict[str | None, str]


@dataclass
class Module:
    """The source of a module, and the names in it; `names` are in the order of the plan's entities."""

    source: str
    table: str
    tag: str
    names: list[EntityNames] = field(default_factory=list)


def write_module(
    sample: Sample, plan: ModelPlan, introduction: Sequence[str], classes: set[str]
) -> Module:
    """The module of a plan. `introduction` has the paragraphs of its docstring."""
    table = field_name(sample.table.name, (), "table")
    tag = plan.tag or _free_tag(sample)
    taken = {*classes, table}
    names = []
    for entity, title in zip(plan.entities, _titles(plan.entities, sample), strict=True):
        names.append(_names(entity, sample, taken, title))
        taken.add(names[-1].name)
    blocks = [_table(sample, plan, table, tag)]
    for entity, own in zip(plan.entities, names, strict=True):
        blocks += [f"\n\n{definition}" for definition in entity.definitions]
        blocks.append("\n\n" + _entity(entity, own, sample, table, plan.tag))
    body = "".join(blocks)
    header = _docstring("", introduction) + "\nfrom __future__ import annotations\n\n"
    return Module(header + _imports(body) + "\n" + body, table, tag, names)


def _free_tag(sample: Sample) -> str:
    """A name for the tag attribute that no item uses."""
    used = {name for item in sample.items for name in item}
    candidates = [_DEFAULT_TAG, "_entity", "_isotone"]
    return next((name for name in candidates if name not in used), "_isotone_type")


# Names


def _names(entity: EntityPlan, sample: Sample, taken: set[str], title: str) -> EntityNames:
    name = class_name(title, taken)
    attributes = {plan.source for plan in entity.fields.values() if not plan.only_in_key}
    attributes |= sample.table.key_attributes.keys()
    fields: dict[str, str] = {}
    keys: dict[str | None, str] = {None: "primary"}
    used: set[str] = {"primary"}
    for plan in entity.fields.values():
        if not plan.only_in_key:
            fields[plan.source] = field_name(plan.source, used)
            used.add(fields[plan.source])
    for plan in entity.fields.values():
        if plan.only_in_key:
            fields[plan.source] = _virtual_name(plan, used | attributes)
            used.add(fields[plan.source])
    for index in entity.indexes:
        own = field_name(index.shape.name, (), "index")
        plain = own.removesuffix("_index")
        title = index.title or (own if plain == own and own not in used else f"by_{plain}")
        keys[index.shape.name] = field_name(title, used, "index")
        used.add(keys[index.shape.name])
    return EntityNames(name, fields, keys)


def _titles(entities: Sequence[EntityPlan], sample: Sample) -> list[str]:
    """The names behind the class names: tags, literals of keys, or the table.

    The last key literal of an entity is used, unless several entities have the same one, or it means little.
    """
    literals = [_literals_of(entity, sample) for entity in entities]
    last = Counter(each[-1].lower() for each in literals if each)
    titles = []
    for entity, own in zip(entities, literals, strict=True):
        if entity.tag and words(entity.tag):
            titles.append(entity.tag)
        elif not own:
            titles.append(_singular(sample.table.name))
        elif last[own[-1].lower()] > 1 or own[-1].lower() in _MEANINGLESS:
            others = [word for word in own[:-1] if word.lower() not in _MEANINGLESS]
            chosen = dict.fromkeys([*others, own[-1]]) if last[own[-1].lower()] > 1 else others
            titles.append("_".join(chosen) or own[-1])
        else:
            titles.append(own[-1])
    common = Counter(title.lower() for title in titles)
    return [
        "_".join(dict.fromkeys(own))
        if own and not entity.tag and common[title.lower()] > 1
        else title
        for entity, own, title in zip(entities, literals, titles, strict=True)
    ]


_MEANINGLESS: Final = frozenset(
    {"metadata", "meta", "info", "details", "detail", "root", "self", "a", "profile", "data"}
)


def _literals_of(entity: EntityPlan, sample: Sample) -> list[str]:
    """The words of the literals in the primary key, in order; at most one per attribute."""
    found = []
    for part in sample.table.key.parts:
        form = entity.forms.get(part.name)
        texts = [text for text in form.parts if isinstance(text, str)] if form is not None else []
        own = [word for text in texts for word in words(text)[:1] if _is_title(word)]
        found += own[:1]
    return found


def _is_title(word: str) -> bool:
    return len(word) > 1 and any(map(str.isalpha, word))


def _singular(name: str) -> str:
    if name.lower().endswith("ies") and len(name) > 4:
        return name[:-3] + "y"
    is_plural = name.lower().endswith("s") and not name.lower().endswith("ss") and len(name) > 3
    return name[:-1] if is_plural else name


_TYPICAL: Final = {"datetime": "at", "date": "day", "int": "number", "UUID": "id"}


def _virtual_name(plan: FieldPlan, taken: set[str]) -> str:
    """The name of a part that only a key holds: from the literal before it, or from its type."""
    typical = _TYPICAL.get(plan.type.text, "")
    hint = "_".join(words(plan.hint)).lower()
    if plan.type.text in ("datetime", "date"):
        return field_name(typical, taken)
    if hint and hint.isidentifier():
        return field_name(hint if hint not in taken else f"{hint}_key", taken)
    attribute = plan.source.split("\0")[1]
    return field_name(typical or f"{attribute}_part", taken)


# The table


def _table(sample: Sample, plan: ModelPlan, name: str, tag: str) -> str:
    shape = sample.table
    arguments = [quoted(shape.name)]
    (partition,) = shape.key.partition
    if partition != ("PK", "S"):
        arguments.append(f"partition={_attribute(partition)}")
    if not shape.key.sort:
        arguments.append("sort=None")
    elif shape.key.sort[0] != ("SK", "S"):
        arguments.append(f"sort={_attribute(shape.key.sort[0])}")
    if shape.indexes:
        inner = [_index(index) for index in shape.indexes]
        arguments.append(_call("indexes={", inner, "},", 4, explodes=True, column=4)[:-1])
    if tag != _DEFAULT_TAG:
        arguments.append(f"tag={quoted(tag)}")
    if any(each.is_expiry for entity in plan.entities for each in entity.fields.values()):
        arguments.append(f"ttl={quoted(str(shape.ttl))}")
    if shape.stream:
        arguments.append(f"stream={quoted(shape.stream)}")
    return _call(f"{name} = Table(", arguments, ")", 0, explodes=True) + "\n"


def _attribute(part: KeyElement) -> str:
    kind = {"S": "", "N": "Number", "B": "Binary"}[part.type]
    return f"{kind}({quoted(part.name)})" if kind else quoted(part.name)


def _attributes(parts: Sequence[KeyElement]) -> str:
    if len(parts) == 1:
        return _attribute(parts[0])
    return f"({', '.join(map(_attribute, parts))})"


def _index(index: IndexDescription) -> str:
    arguments = [] if index.kind == "local" else [_attributes(index.key.partition)]
    if index.key.sort:
        arguments.append(_attributes(index.key.sort))
    if index.projection != "ALL":
        kept = index.projection
        shown = quoted(kept) if isinstance(kept, str) else _tuple([quoted(name) for name in kept])
        arguments.append(f"projection={shown}")
    function = "Global" if index.kind == "global" else "Local"
    begin = f"{quoted(index.name)}: {function}("
    return _call(begin, arguments, "),", 8, column=8)[:-1]


def _tuple(parts: Sequence[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


# An entity


def _entity(
    entity: EntityPlan, names: EntityNames, sample: Sample, table: str, tag: str | None
) -> str:
    arguments = ["Entity", f"table={table}"]
    if tag is not None and entity.tag is not None and entity.tag != names.name:
        arguments.append(f"tag={quoted(entity.tag)}")
    lines = [_call(f"class {names.name}(", arguments, "):", 0)]
    lines.append(_docstring("    ", _about(entity, names, sample)))
    primary = {
        place.source
        for part in sample.table.key.parts
        if part.name in entity.forms
        for place in entity.forms[part.name].places
    } | {part.name for part in sample.table.key.parts}
    for plan in _in_order(entity, sample):
        lines += _field(plan, names.fields[plan.source], len(entity.items), plan.source in primary)
    if entity.fields:
        lines.append("")
    lines.append(_key(entity, names, sample))
    for index in entity.indexes:
        lines += _comment(index.note) if index.note else []
        lines.append(_index_key(entity, index, names))
    return "\n".join(lines) + "\n"


def _in_order(entity: EntityPlan, sample: Sample) -> list[FieldPlan]:
    """The fields in order: those of the primary key, those of other keys, and the rest."""
    shapes = [sample.table.key, *(index.shape.key for index in entity.indexes)]
    first: dict[str, None] = {}
    for part in (part for shape in shapes for part in shape.parts):
        form = entity.forms.get(part.name)
        sources = [place.source for place in form.places] if form is not None else [part.name]
        first |= dict.fromkeys(source for source in sources if source in entity.fields)
    return [entity.fields[source] for source in {**first, **dict.fromkeys(entity.fields)}]


def _about(entity: EntityPlan, names: EntityNames, sample: Sample) -> list[str]:
    count = len(entity.items)
    keys = [f"{part.name} {_shown(entity, part.name, names)}" for part in sample.table.key.parts]
    paragraphs = [entity.about or f"{pluralized(count, 'item')}: {', '.join(keys)}."]
    paragraphs += [f"{note[:1].upper()}{note[1:]}." for note in entity.notes]
    return [*paragraphs, "\n".join(_patterns(entity, names, sample))]


def _patterns(entity: EntityPlan, names: EntityNames, sample: Sample) -> Iterator[str]:
    """The access patterns of an entity's keys."""
    shapes = [
        (None, sample.table.key),
        *((each.shape.name, each.shape.key) for each in entity.indexes),
    ]
    for index, shape in shapes:
        own = f"{names.name}.{names.keys[index]}"
        partition = _named(entity, names, [part.name for part in shape.partition])
        sort = _ordered(entity, names, [part.name for part in shape.sort])
        asked = ", ".join(f"{names.name}.{each} == …" for each in partition)
        order = (
            f": by {', '.join(sort)}" if [each for each in sort if each not in partition] else ""
        )
        yield f"- {own}.where({asked}){order}"


def _named(entity: EntityPlan, names: EntityNames, attributes: Iterable[str]) -> list[str]:
    """The names of the fields in some key attributes."""
    found: list[str] = []
    for name in attributes:
        if name in entity.forms:
            found += [names.fields[place.source] for place in entity.forms[name].places]
        elif name in names.fields:
            found.append(names.fields[name])
    return list(dict.fromkeys(found))


def _ordered(entity: EntityPlan, names: EntityNames, attributes: Iterable[str]) -> list[str]:
    """The names of the fields by which a sort key orders the items."""
    found: list[str] = []
    for name in attributes:
        form = entity.forms.get(name)
        if form is None or form.template is None:
            return [*found, names.fields[name]]
        for number, place in enumerate(form.places):
            if not form.template.keeps_order(number):
                return found
            found.append(names.fields[place.source])
    return list(dict.fromkeys(found))


def _shown(entity: EntityPlan, name: str, names: EntityNames) -> str:
    form = entity.forms.get(name)
    return form.shown(names.fields) if form is not None else f"{{{names.fields[name]}}}"


def _field(plan: FieldPlan, name: str, items: int, is_in_primary: bool) -> list[str]:
    """The lines of a field: its comments, and its declaration."""
    notes = [*plan.notes]
    if plan.is_null:
        notes.append(
            f"NULL in {plan.is_null} of {pluralized(items, 'item')}; Isotone leaves None out"
        )
    text, options = plan.type.text, dict(plan.options)
    if plan.present < items and not is_in_primary:
        if text.startswith("set["):
            options["default_factory"] = "set"
        else:
            text = text if text == "Any" else f"{text} | None"
            options["default"] = "None"
    if not plan.only_in_key and plan.source != name and not plan.is_expiry:
        options["name"] = quoted(plan.source)
    order = ("default", "default_factory", "name")
    listed = [f"{key}={options[key]}" for key in order if key in options]
    listed += [f"{key}={value}" for key, value in options.items() if key not in order]
    function = "expires" if plan.is_expiry else "field"
    comments = [line for note in notes for line in _comment(note)]
    return [*comments, _call(f"    {name}: Attr[{text}] = {function}(", listed, ")", 4)]


def _key(entity: EntityPlan, names: EntityNames, sample: Sample) -> str:
    shape = sample.table.key
    return _declaration("primary", "Key", [], entity, names, shape.partition, shape.sort, [])


def _index_key(entity: EntityPlan, index: IndexPlan, names: EntityNames) -> str:
    shape = index.shape
    last, noqa = [], ""
    if index.condition is not None:
        source, values = index.condition
        condition, noqa = _condition(names.fields[source], values)
        last.append(f"when={condition}")
    text = _declaration(
        names.keys[shape.name],
        "Index",
        [quoted(shape.name)],
        entity,
        names,
        shape.key.partition,
        shape.key.sort,
        last,
    )
    if not noqa:
        return text
    lines = text.split("\n")
    at = next(number for number, line in enumerate(lines) if "== True" in line)
    lines[at] += noqa
    return "\n".join(lines)


def _condition(name: str, values: Sequence[AttributeValue]) -> tuple[str, str]:
    if values[0] in ({"BOOL": False}, {"BOOL": True}):
        return (f"{name} == True", "  # noqa: E712") if values[0]["BOOL"] else (f"~{name}", "")
    shown = [quoted(each["S"]) if "S" in each else each["N"] for each in values]
    if len(shown) == 1:
        return f"{name} == {shown[0]}", ""
    return f"{name}.is_in([{', '.join(shown)}])", ""


def _declaration(
    own: str,
    function: str,
    first: list[str],
    entity: EntityPlan,
    names: EntityNames,
    partition: Sequence[KeyElement],
    sort: Sequence[KeyElement],
    last: list[str],
) -> str:
    parts, own_separator = _arguments(entity, names, partition)
    if own_separator is None:  # only with the separator # is $ not allowed
        own_separator = "" if "$" in "".join(parts) else "#"
    separator = own_separator
    parts = [*first, *parts, *last]
    if separator != "#":
        parts.append(f"separator={quoted(separator)}")
    begin = f"    {own} = {function}("
    if not sort:
        return _call(begin, parts, ")", 4)
    sorted_by, sort_separator = _arguments(entity, names, sort)
    if sort_separator is None and separator == "#" and "$" in "".join(sorted_by):
        sort_separator = ""
    if sort_separator not in (None, separator):
        sorted_by.append(f"separator={quoted(sort_separator)}")
    one_line = f"{begin}{', '.join(parts)}).sort("
    if len(one_line) <= _WIDTH:
        return _call(one_line, sorted_by, ")", 4)
    return _call(_call(begin, parts, ").sort(", 4), sorted_by, ")", 4)


def _arguments(
    entity: EntityPlan, names: EntityNames, attributes: Sequence[KeyElement]
) -> tuple[list[str], str | None]:
    """The parts of a key, and their separator; None if any separator works."""
    if len(attributes) > 1:
        return [names.fields[part.name] for part in attributes], None
    (part,) = attributes
    form = entity.forms.get(part.name)
    if form is None:
        return [names.fields[part.name]], None
    if not form.places:
        return form.expressions(names.fields), None
    return form.expressions(names.fields), form.separator


# Layout


def _call(
    begin: str,
    arguments: Sequence[str],
    end: str,
    indent: int,
    *,
    explodes: bool = False,
    column: int = 0,
) -> str:
    """A call on one line, with all arguments on a second line, or with one line per argument.

    `explodes` excludes the second form. `column` is where the first line begins.
    """
    joined = ", ".join(arguments)
    one_line = f"{begin}{joined}{end}"
    last_line = begin.rpartition("\n")[2]
    width = _WIDTH - (0 if "\n" in begin else column)
    if "\n" not in joined and len(last_line) + len(joined) + len(end) <= width:
        return one_line
    inner = " " * (indent + 4)
    if "\n" not in joined and len(inner) + len(joined) <= _WIDTH and not explodes:
        return f"{begin}\n{inner}{joined}\n{' ' * indent}{end}"
    lines = "".join(f"{inner}{argument},\n" for argument in arguments)
    return f"{begin}\n{lines}{' ' * indent}{end}"


def _comment(text: str) -> list[str]:
    prefix = "    # "
    return textwrap.wrap(_printable(text), _WIDTH, initial_indent=prefix, subsequent_indent=prefix)


def _docstring(indent: str, paragraphs: Sequence[str]) -> str:
    """A docstring of paragraphs; lines that begin with a dash are a list."""
    blocks = []
    for paragraph in paragraphs:
        wrapped = []
        for line in _printable(paragraph).split("\n"):
            hanging = indent + "  " if line.startswith("- ") else indent
            wrapped += textwrap.wrap(
                line,
                _WIDTH - 6,
                initial_indent=indent,
                subsequent_indent=hanging,
                break_long_words=False,
                break_on_hyphens=False,
            )
        if wrapped:
            blocks.append("\n".join(wrapped))
    text = "\n\n".join(blocks).strip()
    if "\n" not in text and len(indent) + len(text) + 6 <= _WIDTH:
        return f'{indent}"""{text}"""\n'
    return f'{indent}"""{text}\n{indent}"""\n'


def _printable(text: str) -> str:
    """A text without characters that would break a comment or a docstring."""
    plain = "".join(
        character
        if character.isprintable() or character == "\n"
        else character.encode("unicode_escape").decode()
        for character in text
    )
    return plain.replace("\\", "\\\\").replace('"""', "'''")


def _imports(body: str) -> str:
    """The imports of the names that the body uses."""
    used = set(_NAME.findall(_STRING.sub("", _without_comments(body))))
    lines: dict[str, list[str]] = {}
    for module, names in _IMPORTS.items():
        own = sorted((name for name in names if name in used), key=_import_order)
        if own:
            lines[module] = own
    groups = [
        [_import(module, lines[module]) for module in _STANDARD if module in lines],
        [
            _import(module, lines[module])
            for module in ("isotone", "pydantic", "typing_extensions")
            if module in lines
        ],
    ]
    return "\n\n".join("\n".join(group) for group in groups if group) + "\n"


def _without_comments(body: str) -> str:
    lines = [line for line in body.split("\n") if not line.lstrip().startswith("#")]
    return re.sub(r'"""(?:[^"]|"(?!""))*"""', "", "\n".join(lines))


def _import_order(name: str) -> tuple[int, str]:
    """Constants first, then classes, then functions, as ruff sorts them."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2, name)


def _import(module: str, names: Sequence[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= _WIDTH:
        return line
    return _call(f"from {module} import (", [*names], ")", 0, explodes=True)
