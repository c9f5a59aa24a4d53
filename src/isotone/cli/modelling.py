"""`isotone model`: writes the Python module that models an existing table, or one that a file defines; --no-verify."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Final

import isotone
from isotone.cli.database import opened_file
from isotone.cli.definitions import (
    add_parameter_argument,
    attributes_of,
    connect_to_tables,
    only_table,
)
from isotone.cli.modules import check_hides_nothing
from isotone.cli.program import Command, naming
from isotone.cli.progress import add_progress_argument, progress_output
from isotone.inference import DEFAULT_SAMPLE, Inferred, draft, existing_table
from isotone.output_paths import check_may_replace, check_outputs, text_output, write_text
from isotone.text_table import pluralized

_BEGINS: Final = (b'"""Table ', b'{\n  "table": ')  # of a module, and of --json


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("table", metavar="TABLE", nargs="?", help="the table; not needed if there is only one")
    add_parameter_argument(parser)
    many = parser.add_mutually_exclusive_group()
    many.add_argument(
        "--sample",
        metavar="N",
        type=_count,
        default=DEFAULT_SAMPLE,
        help=f"items from which the model is inferred, by default {DEFAULT_SAMPLE:,}",
    )
    many.add_argument("--all", action="store_true", help="infer the model from all items")
    add("--output", metavar="FILE", help="write the module to a file")
    add("--force", action="store_true", help="replace a module that an earlier run wrote")
    add("--no-verify", action="store_true", help="do not compare all items of the table with it")
    add_progress_argument(parser)
    add("--json", action="store_true", help="print the module, its entities and notes as JSON")


def _count(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of items")
    return number


def _run(arguments: argparse.Namespace) -> int:
    if arguments.output is not None:
        check_hides_nothing(arguments.output)
    target = text_output("--output", arguments.output, *_BEGINS)
    check_outputs(target, inputs={"FILE_OR_URL": opened_file(arguments)})
    check_may_replace(arguments.output, force=arguments.force)
    with (
        isotone.connect(arguments.connection, check_keys=False) as store,
        progress_output("model", arguments) as output,
    ):
        table = store.run(existing_table(arguments.table or only_table(arguments)))

        def show(doing: str, items: int) -> None:
            members = {"table": table.name, "items": items}
            output.show(f"{doing}: {pluralized(items, 'item')}", members, state=doing)

        inferred = isotone.infer(
            store,
            table.name,
            sample=None if arguments.all else arguments.sample,
            verify=not arguments.no_verify,
            progress=show,
        )
    if not inferred.items:
        inferred = draft(table, attributes_of(arguments, table.name))
    text = json.dumps(_as_json(inferred), indent=2) + "\n" if arguments.json else inferred.source
    if target is not None:
        with naming(target.path):
            write_text(target, text)
    else:
        sys.stdout.write(text)
    for line in _summary(inferred):
        sys.stderr.write(line + "\n")
    return 0 if inferred.is_complete else 1


def _summary(inferred: Inferred) -> list[str]:
    if not inferred.items:
        notes = [f"note: {note}" for note in inferred.notes]
        return [*notes, f"{inferred.table}: 1 entity from its definition"]
    of = "all" if inferred.is_whole else "a sample of"
    count = pluralized(inferred.items, "item")
    kinds = pluralized(len(inferred.entities), "entity", "entities")
    left = "every item is" if inferred.is_complete else "some items are not"
    result = f"{left} modelled"
    if inferred.verification is not None:
        result += f", verified with {pluralized(inferred.verification.items, 'item')}"
    return [
        *(f"note: {note}" for note in inferred.notes),
        f"{inferred.table}: {kinds} from {of} {count}; {result}",
    ]


def _as_json(inferred: Inferred) -> dict[str, Any]:
    return {
        "table": inferred.table,
        "source": inferred.source,
        "entities": [
            {
                "name": entity.name,
                "tag": entity.tag,
                "items": entity.items,
                "fields": list(entity.fields),
            }
            for entity in inferred.entities
        ],
        "notes": [
            {"entity": note.entity, "field": note.field, "what": note.what}
            for note in inferred.notes
        ],
        "items": inferred.items,
        "is_whole": inferred.is_whole,
        "is_complete": inferred.is_complete,
    }


MODEL: Final = Command(
    """\
Write the Python module that models an existing table: an entity for each kind of item, with the types
of its fields, the forms of its keys, indexes and expiry. Comments say where it guessed.

FILE_OR_URL may also be a file that defines tables: a template of CloudFormation or SAM (.yaml, .json), Terraform (.tf,
or a folder of such files), a model of NoSQL Workbench, or a request of CreateTable (.json). Sample items of a model are
items; without items, the module has one plain entity, from the keys.

Writes nothing to the table. Notes and progress are on standard error. At the end, all items of the table are
compared with the module; what it does not model is listed at its top.

Exits with 0 if every item is modelled, with 1 if some are not, and with 2 if it could not run.""",
    examples="""
isotone model shop.db Orders > orders.py
isotone model dynamodb://eu-west-1 shop --sample 50000 --output shop_model.py
isotone model http://localhost:8000 shop --no-verify --json
isotone model template.yaml Orders --parameter Stage=prod
""",
    add_arguments=_add_arguments,
    run=_run,
    connect=connect_to_tables,
)


DEFINITIONS: Final = {"model": MODEL}
