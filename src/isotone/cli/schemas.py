"""`isotone schema`: writes the definitions of tables in the formats of other tools; --format, --billing, --units."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

import isotone
from isotone.backends.addresses import is_remote
from isotone.backends.interface import Backend
from isotone.cli import modules
from isotone.cli.database import MEMORY, connect, is_address
from isotone.cli.definitions import (
    add_parameter_argument,
    parameters_of,
    print_notes,
    read_definitions,
)
from isotone.cli.program import Command, naming
from isotone.errors import UsageError
from isotone.inference import is_own
from isotone.model import EntitySchema
from isotone.output_paths import OutputPath, check_may_replace, check_outputs, write_text
from isotone.postgres_address import is_postgres
from isotone.schema.deployable import (
    ON_DEMAND,
    PROVISIONED,
    DeployableTable,
    Facet,
    deployable_of,
)
from isotone.schema.features import FEATURES
from isotone.schema.formats import (
    DEFAULT,
    FORMATS,
    defines_tables,
    format_for,
    written,
)
from isotone.tables.definition import read_definition
from isotone.tables.description import table_names
from isotone.tables.pace import Pace
from isotone.tables.scan import Segment, decoded, pages
from isotone.values.types import Item
from isotone.workbench.entity_forms import form_of

_BILLING: Final = {"on-demand": ON_DEMAND, "provisioned": PROVISIONED}
_UNITS: Final = 5  # that AWS's own tools provision, too, if nothing is said
_MEMBERS: Final = ("ReadCapacityUnits", "WriteCapacityUnits")
_SAMPLE: Final = 50
# Pages read for a sample, if items are large or most are the library's own.
_MOST_PAGES: Final = 20
_INFERRED_FROM: Final = 1000  # items from which kinds are inferred


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    what = (
        "a module with tables or entities, MODULE:NAME,NAME for some of them; or a file or an address with "
        "tables; or a file that defines some"
    )
    add("what", metavar="MODULE", help=what)
    add("address", metavar="FILE_OR_URL", nargs="?", help="the items of the module's tables")
    add("--format", metavar="FORMAT", help=f"the format, by default {DEFAULT} or that of --output")
    add("--table", metavar="NAME", action="append", default=[], help="only this table; repeatable")
    add("--table-prefix", metavar="TEXT", default="", help="what the tables' names begin with")
    add("--billing", choices=tuple(_BILLING), help="bill requests, or provisioned units")
    units = "the units of --billing provisioned for tables that have none, by default 5,5"
    add("--units", metavar="READ,WRITE", type=_units, help=units)
    sample = f"sample items of each table for NoSQL Workbench, by default {_SAMPLE}"
    add("--sample", metavar="N", type=int, default=_SAMPLE, help=sample)
    add_parameter_argument(parser)
    add("--output", metavar="FILE", help="write to a file, in the format of its ending")
    add("--force", action="store_true", help="replace an existing file")


def _units(text: str) -> tuple[int, int]:
    numbers = text.split(",")
    if len(numbers) != 2 or not all(number.isdecimal() and int(number) for number in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is not READ,WRITE, such as 10,5")
    return int(numbers[0]), int(numbers[1])


def _run(arguments: argparse.Namespace) -> int:
    output = _output(arguments)
    form = format_for(arguments.format, arguments.output)
    if arguments.sample < 0:
        raise UsageError("--sample must be at least 0")
    if arguments.units is not None and arguments.billing != "provisioned":
        raise UsageError("--units is for --billing provisioned")
    if arguments.address is not None and not form.documents:
        raise UsageError(f"{arguments.address} has sample items, and {form.title} has none")
    tables = list(_tables(arguments, with_kinds=form.documents))
    tables = [_billed(each, arguments) for each in _chosen(tables, arguments.table)]
    if not tables:
        raise UsageError(f"{arguments.what} has no tables")
    text, lost = written(tables, form)
    print_notes(lost)
    if output is None:
        sys.stdout.write(text)
        return 0
    with naming(output.path):
        write_text(output, text)
    return 0


def _output(arguments: argparse.Namespace) -> OutputPath | None:
    if arguments.output is None:
        return None
    output = OutputPath("--output", arguments.output, may_stream=True)
    what = arguments.what if _is_place(arguments.what) else modules.source_of(arguments.what)
    address = arguments.address if _is_place(arguments.address) else None
    check_outputs(output, inputs={"MODULE": what, "FILE_OR_URL": address})
    check_may_replace(arguments.output, force=arguments.force)
    return output


def _is_place(path: str | None) -> bool:
    """Whether an argument is a file or a folder that is read, and no module."""
    return (
        path is not None
        and not is_remote(path)
        and not is_postgres(path)
        and (defines_tables(path) or is_address(path))
    )


def _chosen(tables: list[DeployableTable], names: Sequence[str]) -> list[DeployableTable]:
    by_name = {table.name: table for table in tables}
    for name in names:
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise UsageError(f"there is no table {name!r}; the tables are: {known}")
    return [by_name[name] for name in dict.fromkeys(names)] if names else tables


def _billed(table: DeployableTable, arguments: argparse.Namespace) -> DeployableTable:
    """The table, billed as `--billing` says."""
    mode = _BILLING.get(arguments.billing, table.definition["BillingMode"])
    if mode == table.definition["BillingMode"]:
        return table
    if mode == PROVISIONED:
        print_notes([f"{table.name}: without {each}" for each in FEATURES["limits"].uses(table)])
    units = dict(zip(_MEMBERS, arguments.units or (_UNITS, _UNITS), strict=True))
    indexes = [
        {**index, "ProvisionedThroughput": units}
        for index in table.definition.get("GlobalSecondaryIndexes", ())
    ]
    return table.with_members(
        BillingMode=mode, ProvisionedThroughput=units, GlobalSecondaryIndexes=indexes
    )


# Where tables come from


def _tables(arguments: argparse.Namespace, *, with_kinds: bool) -> Iterator[DeployableTable]:
    what, address = arguments.what, arguments.address
    is_defined = defines_tables(what)
    if address is not None and (is_defined or is_address(what)):
        raise UsageError(f"{what} has tables itself; a module comes before {address}")
    if arguments.table_prefix and (is_defined or is_address(what)):
        raise UsageError(f"--table-prefix is for the tables of a module; {what} has names itself")
    parameters = parameters_of(arguments)
    if is_defined:
        with connect(MEMORY) as backend:
            yield from read_definitions(what, parameters, backend).tables
        return
    if parameters:
        raise UsageError(f"{what} defines no parameters; only templates and Terraform do")
    if is_address(what):
        yield from _existing(arguments, with_kinds=with_kinds)
    else:
        yield from _of_module(arguments, with_kinds=with_kinds)


def _existing(arguments: argparse.Namespace, *, with_kinds: bool) -> Iterator[DeployableTable]:
    """The tables of a database."""
    with connect(arguments.what) as backend:
        for name in arguments.table or table_names(backend):
            table = _deployable(backend, name)
            if with_kinds:
                with isotone.connect(backend, check_keys=False) as store:
                    inferred = isotone.infer(store, name, sample=_INFERRED_FROM)
                items = _items(backend, name, arguments.sample)
                table = _with_kinds(table, _inferred_schemas(inferred), items)
            yield table


def _inferred_schemas(inferred: isotone.Inferred) -> dict[str, EntitySchema]:
    if not inferred.entities:
        return {}
    members = vars(inferred.load()).values()
    return next(each for each in members if isinstance(each, isotone.Table)).entities


def _deployable(backend: Backend, name: str) -> DeployableTable:
    definition = read_definition(backend, name)
    if definition is None:
        known = ", ".join(table_names(backend)) or "none"
        raise UsageError(f"there is no table {name!r}; the tables are: {known}")
    table, notes = deployable_of(definition)
    print_notes(notes)
    return table


def _of_module(arguments: argparse.Namespace, *, with_kinds: bool) -> Iterator[DeployableTable]:
    """The tables of a module, made in memory: so they are what `create_tables` makes."""
    tables = modules.tables_of(arguments.what)
    prefix = arguments.table_prefix
    with connect(MEMORY) as backend:
        with isotone.connect(backend, table_prefix=prefix) as store:
            store.create_tables(*tables)
        for declared in tables:
            name = f"{prefix}{declared.name}"
            table = _deployable(backend, name)
            if with_kinds:
                items = _items_of_address(arguments.address, name, arguments.sample)
                table = _with_kinds(table, declared.entities, items, declared.tag)
            yield table


def _items_of_address(address: str | None, name: str, most: int) -> list[Item]:
    if address is None:
        return []
    with connect(address) as backend:
        return _items(backend, name, most)


def _items(backend: Backend, name: str, most: int) -> list[Item]:
    """Some items of a table, without the library's own records."""
    if not most:
        return []
    definition = read_definition(backend, name)
    if definition is None:
        return []
    partition = definition.table.key.partition[0].name
    found: list[Item] = []
    for page in islice(pages(backend, Segment(name), Pace(), items_a_page=most), _MOST_PAGES):
        items = map(decoded, page.items)
        found += [item for item in items if not is_own(item[partition])]
        if len(found) >= most:
            break
    return found[:most]


# Kinds of items, by their entities


def _with_kinds(
    table: DeployableTable,
    schemas: dict[str, EntitySchema],
    items: Sequence[Item],
    tag: str | None = None,
) -> DeployableTable:
    attributes = {} if tag is None or not schemas else {tag: "S"}
    for schema in schemas.values():
        for field in schema.fields.values():
            if field.wire.code is not None:
                attributes.setdefault(field.attribute, field.wire.code)
    return msgspec.structs.replace(
        table,
        attributes={name: kind for name, kind in attributes.items() if name not in table.types},
        facets=tuple(_facet(schema) for schema in schemas.values()),
        items=tuple(items),
    )


def _facet(schema: EntitySchema) -> Facet:
    primary = schema.keys["primary"]
    sort = [_form(slot) for slot in primary.sort]
    own = {slot.attribute.name for slot in primary.slots}
    names = [slot.attribute.name for key in schema.keys.values() for slot in key.slots]
    names += [field.attribute for field in schema.fields.values()]
    others = tuple(name for name in dict.fromkeys(names) if name not in own)
    partition = " · ".join(_form(slot) for slot in primary.partition)
    return Facet(schema.tag, partition, sort[0] if sort else None, others)


def _form(slot: Any) -> str:
    """A key attribute by its literals and the names of its fields: `CUSTOMER#{customer}`."""
    return "".join(str(text) for text, _ in form_of(slot))


_FORMAT_LINES: Final = "\n".join(f"  {name:<21}{each.title}" for name, each in FORMATS.items())

SCHEMA: Final = Command(
    f"""\
Write the definitions of tables for other tools. Nothing is created, and no table is written to.

MODULE is imported from the current directory first; its tables are as create_tables makes them. In its place may be a
database file or an address, whose tables are described; or a file that defines tables: a template of CloudFormation or
SAM (.yaml, .json), Terraform (.tf, or a folder of such files), a model of NoSQL Workbench, or a request of CreateTable
(.json).

The formats:
{_FORMAT_LINES}

What a format cannot express is said on standard error.""",
    examples="""
isotone schema shop                                     requests of CreateTable
isotone schema shop --format terraform > tables.tf
isotone schema shop --output template.yaml              CloudFormation
isotone schema dynamodb://eu-west-1 --table Orders --format cdk-python
isotone schema shop shop.db --format nosql-workbench    with sample items
isotone schema template.yaml --parameter Stage=prod --output tables.tf
""",
    add_arguments=_add_arguments,
    run=_run,
)


DEFINITIONS: Final = {"schema": SCHEMA}
