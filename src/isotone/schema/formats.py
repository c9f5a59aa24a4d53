"""The formats of table definitions: one entry for each, from which `--format`, its help and the page about it are made.

text, lost = written(tables, format_for("terraform", None))
read_file("template.yaml", {}).tables
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

from isotone.errors import UsageError
from isotone.output_paths import is_database
from isotone.schema import cdk, cloudformation, create_table, markdown, nosql_workbench, terraform
from isotone.schema.deployable import DeployableTable, ReadTables
from isotone.schema.document import parsed_json
from isotone.schema.features import FEATURES, kept

Read = Callable[[str, str, Mapping[str, str]], ReadTables]


class SchemaFormat(NamedTuple):
    """A format. `endings` are those of its files. `lacks` are the features that it cannot express.

    `read` takes a text, the name of its file for errors, and parameters; None if the format is only written.
    """

    title: str
    endings: tuple[str, ...]
    write: Callable[[Sequence[DeployableTable]], str]
    read: Read | None = None
    lacks: frozenset[str] = frozenset()
    documents: bool = False
    """Whether it has facets, sample items, and attributes outside of keys."""


_YAML: Final = (".yaml", ".yml", ".template")
_JSON: Final = (".json",)

FORMATS: Final = {
    "create-table": SchemaFormat(
        "CreateTable's request in JSON",
        _JSON,
        create_table.write,
        create_table.read,
        frozenset({"expiry", "recovery", "recovery_period"}),
    ),
    "cloudformation": SchemaFormat(
        "CloudFormation in YAML", _YAML, cloudformation.write_yaml, cloudformation.read_yaml
    ),
    "cloudformation-json": SchemaFormat(
        "CloudFormation in JSON",
        (".json", ".template"),
        cloudformation.write_json,
        cloudformation.read_json,
    ),
    "sam": SchemaFormat("AWS SAM", _YAML, cloudformation.write_sam, cloudformation.read_yaml),
    "cdk-python": SchemaFormat("the AWS CDK in Python", (".py",), cdk.write_python),
    "cdk-typescript": SchemaFormat("the AWS CDK in TypeScript", (".ts",), cdk.write_typescript),
    "terraform": SchemaFormat(
        "Terraform", (".tf",), terraform.write, terraform.read, frozenset({"vector_indexes"})
    ),
    "nosql-workbench": SchemaFormat(
        "NoSQL Workbench's model",
        _JSON,
        nosql_workbench.write,
        nosql_workbench.read,
        frozenset(FEATURES),
        documents=True,
    ),
    "markdown": SchemaFormat("Markdown", (".md",), markdown.write, documents=True),
}
DEFAULT: Final = "create-table"

_CONTENTS: Final = {
    "cloudformation-json": cloudformation.is_content,
    "nosql-workbench": nosql_workbench.is_content,
    "create-table": create_table.is_content,
}
"""How the formats in JSON are recognized."""


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
    if path.lower().endswith(_JSON):
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
    return form.write(expressed), lost


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
    read = terraform.read if place.is_dir() else _reader(path, text)
    found = read(text, path, parameters)
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


def _reader(path: str, text: str) -> Read:
    if not text.strip():
        raise UsageError(f"{path} is empty")
    if Path(path).suffix.lower() == ".tf":
        return terraform.read
    is_json = Path(path).suffix.lower() in _JSON or text.lstrip().startswith("{")
    if not is_json:
        return cloudformation.read_yaml
    return _json_reader(path, text)


def _json_reader(path: str, text: str) -> Read:
    content = parsed_json(text, path)
    for name, is_content in _CONTENTS.items():
        read = FORMATS[name].read
        if is_content(content) and read is not None:
            return read
    titles = ", ".join(FORMATS[name].title for name in _CONTENTS)
    raise UsageError(f"{path} is none of: {titles}")
