"""The formats of table definitions: one entry for each, from which `--format`, its help and the page about it are made.

text, lost = written(tables, format_for("terraform", None))
read_file("template.yaml", {}).tables

A format is a syntax, and what stands where in its documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

from isotone.errors import UsageError
from isotone.output_paths import is_database
from isotone.schema import cdk, cloudformation, create_table, markdown, nosql_workbench, terraform
from isotone.schema.deployable import DeployableTable
from isotone.schema.document import DocumentValue, json_text, parsed_json
from isotone.schema.features import FEATURES, kept
from isotone.schema.hcl import hcl_text, parsed_hcl
from isotone.schema.yaml_text import parsed_yaml, yaml_text


class ReadTables(NamedTuple):
    """The tables that a file defines, and notes about what of it was not read."""

    tables: list[DeployableTable]
    notes: list[str]


class DocumentSyntax(NamedTuple):
    """How a document is written, and parsed: from a text, and the name of its file for errors."""

    text: Callable[[Any], str]
    parsed: Callable[[str, str], Any]


_JSON: Final = DocumentSyntax(json_text, parsed_json)
_YAML: Final = DocumentSyntax(yaml_text, parsed_yaml)
_HCL: Final = DocumentSyntax(hcl_text, parsed_hcl)


class SchemaFormat(NamedTuple):
    """A format. `endings` are those of its files. `lacks` are the features that it cannot express.

    `write` makes a document, or the text itself without a syntax. `read` takes a document and parameters; None if the
    format is only written. `members` are those by one of which a document in JSON is known to be of the format.
    """

    title: str
    endings: tuple[str, ...]
    write: Callable[[Sequence[DeployableTable]], Any]
    syntax: DocumentSyntax | None = None
    read: Callable[[DocumentValue, Mapping[str, str]], list[DeployableTable]] | None = None
    members: tuple[str, ...] = ()
    has_parameters: bool = True
    lacks: frozenset[str] = frozenset()
    documents: bool = False
    """Whether it has facets, sample items, and attributes outside of keys."""


_YAML_FILES: Final = (".yaml", ".yml", ".template")
FORMATS: Final = {
    "create-table": SchemaFormat(
        "CreateTable's request in JSON",
        (".json",),
        create_table.write,
        _JSON,
        create_table.read,
        members=("TableName", *create_table.ANSWERS),
        has_parameters=False,
        lacks=frozenset({"expiry", "recovery", "recovery_period"}),
    ),
    "cloudformation": SchemaFormat(
        "CloudFormation in YAML", _YAML_FILES, cloudformation.write, _YAML, cloudformation.read
    ),
    "cloudformation-json": SchemaFormat(
        "CloudFormation in JSON",
        (".json", ".template"),
        cloudformation.write,
        _JSON,
        cloudformation.read,
        members=("Resources",),
    ),
    "sam": SchemaFormat(
        "AWS SAM", _YAML_FILES, cloudformation.write_sam, _YAML, cloudformation.read
    ),
    "cdk-python": SchemaFormat("the AWS CDK in Python", (".py",), cdk.write_python),
    "cdk-typescript": SchemaFormat("the AWS CDK in TypeScript", (".ts",), cdk.write_typescript),
    "terraform": SchemaFormat(
        "Terraform",
        (".tf",),
        terraform.write,
        _HCL,
        terraform.read,
        lacks=frozenset({"vector_indexes"}),
    ),
    "nosql-workbench": SchemaFormat(
        "NoSQL Workbench's model",
        (".json",),
        nosql_workbench.write,
        _JSON,
        nosql_workbench.read,
        members=("DataModel",),
        has_parameters=False,
        lacks=frozenset(FEATURES),
        documents=True,
    ),
    "markdown": SchemaFormat("Markdown", (".md",), markdown.write, documents=True),
}
DEFAULT: Final = "create-table"


def format_for(name: str | None, path: str | None) -> SchemaFormat:
    """The format with a name, or that of a file's ending; raises `UsageError` if it is unknown or not clear."""
    if name is None:
        return FORMATS[DEFAULT if path is None else _name_of_file(path)]
    if name not in FORMATS:
        near = get_close_matches(name, FORMATS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"there is no format {name!r}; {hint}The formats: {', '.join(FORMATS)}")
    endings = FORMATS[name].endings
    if path is not None and Path(path).suffix not in endings and _names_of(path):
        others = "|".join(_names_of(path))
        raise UsageError(
            f"{path} is no name for {name}, which ends in {', '.join(endings)}; "
            f"or choose another format: --format {others}"
        )
    return FORMATS[name]


def _name_of_file(path: str) -> str:
    names = _names_of(path)
    if not names:
        raise UsageError(
            f"{path} has no ending of a format; choose one: --format {'|'.join(FORMATS)}"
        )
    if path.lower().endswith(".json"):
        raise UsageError(
            f"{path} may be one of several formats; choose one: --format {'|'.join(names)}"
        )
    return names[0]  # of those in YAML the plain one: SAM reads it as well


def _names_of(path: str) -> list[str]:
    """The formats whose files end like this one."""
    ending = Path(path).suffix.lower()
    return [name for name, each in FORMATS.items() if ending in each.endings]


def written(tables: Sequence[DeployableTable], form: SchemaFormat) -> tuple[str, list[str]]:
    """The text of tables in a format, and what the format cannot express of them."""
    expressed, lost = [], []
    for table in tables:
        rest, missing = kept(table, form.lacks)
        expressed.append(rest)
        lost += [f"{table.name}: {form.title} cannot express {what}" for what in missing]
    document = form.write(expressed)
    return str(document) if form.syntax is None else form.syntax.text(document), lost


# Reading

_READ_ENDINGS: Final = {
    ending for each in FORMATS.values() if each.read is not None for ending in each.endings
}


def defines_tables(path: str) -> bool:
    """Whether a path is a file of definitions by its ending, or a folder with Terraform's files; no database."""
    place = Path(path)
    if place.is_dir():
        return any(place.glob("*.tf"))
    ends = place.suffix.lower() in _READ_ENDINGS
    return ends and not (place.is_file() and is_database(path))


def read_file(path: str, parameters: Mapping[str, str]) -> ReadTables:
    """The tables that a file defines; raises `UsageError` for a file that cannot be read."""
    place = Path(path)
    files = sorted(place.glob("*.tf")) if place.is_dir() else [place]
    text = "\n".join(_text_of(file) for file in files)
    if not text.strip():
        raise UsageError(f"{path} is empty")
    if place.is_dir() or place.suffix.lower() == ".tf":
        found = read_text(FORMATS["terraform"], text, path, parameters)
    elif place.suffix.lower() == ".json" or text.lstrip().startswith("{"):
        content = parsed_json(text, path)
        found = _read(_format_of_json(content, path), content, path, parameters)
    else:
        found = read_text(FORMATS["cloudformation"], text, path, parameters)
    if not found.tables:
        raise UsageError(f"{path} defines no tables of DynamoDB")
    names = [table.name for table in found.tables]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path} defines table {name} more than once")
    return found


def _text_of(path: Path) -> str:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a text in UTF-8") from None


def _format_of_json(content: Any, path: str) -> SchemaFormat:
    """The format of a document, or of the first one of a list."""
    first = content[0] if isinstance(content, list) and content else content
    forms = [form for form in FORMATS.values() if form.members]
    for form in forms:
        if isinstance(first, dict) and any(name in first for name in form.members):
            return form
    raise UsageError(f"{path} is none of: {', '.join(form.title for form in forms)}")


def read_text(
    form: SchemaFormat, text: str, source: str, parameters: Mapping[str, str]
) -> ReadTables:
    """The tables that a text in a format defines; `source` names it in errors."""
    assert form.syntax is not None
    return _read(form, form.syntax.parsed(text, source), source, parameters)


def _read(
    form: SchemaFormat, content: Any, source: str, parameters: Mapping[str, str]
) -> ReadTables:
    assert form.read is not None
    if parameters and not form.has_parameters:
        raise UsageError(f"{source} has no parameters, so {next(iter(parameters))!r} means nothing")
    root = DocumentValue(content, source, [])
    return ReadTables(form.read(root, parameters), root.notes)
