"""`isotone explain`: what a statement, a query or a request reads and costs; --run measures it, --svg and --html draw it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from shutil import get_terminal_size
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

import isotone
from isotone.advisor.collection_svg import SVG_BEGIN
from isotone.cli import modules
from isotone.cli.conditions import ConditionWords, parse_conditions
from isotone.cli.database import opened_file
from isotone.cli.program import Command, naming
from isotone.cli.query_plan import plan_query, plan_scan
from isotone.cli.table_keys import table_of
from isotone.errors import UsageError
from isotone.model import Pattern, Query, Read
from isotone.output_paths import check_outputs, text_output, write_text
from isotone.values.notation import literal, parse_json

_SAMPLE: Final = 1000
_PAGE_BEGIN: Final = '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="generator" content="isotone explain">'
_STATEMENTS: Final = ("select", "insert", "update", "delete")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    what = (
        "a PartiQL statement; MODULE:NAME of a query, or of a key such as shop:Order.by_status; a table; with "
        "--call, a request as JSON"
    )
    add("what", metavar="WHAT", help=what)
    conditions = "of a key or a table, such as customer=ann or 'total > 10'"
    add("conditions", metavar="CONDITION", nargs="*", default=[], help=conditions)
    add(
        "--call",
        metavar="ACTION",
        help="explain a request of this action, such as Query or PutItem",
    )
    add("--index", metavar="NAME", help="read this index of the table")
    add("--reverse", action="store_true", help="the last item first")
    add("--consistent", action="store_true", help="with strong consistency, at double the units")
    add(
        "--param",
        metavar="VALUE",
        action="append",
        default=[],
        help="the value of the next ? in the statement; repeat it for more",
    )
    add(
        "--model",
        metavar="MODULE",
        help="name the access patterns of a module's tables, for a statement, a table or a request: MODULE, or "
        "MODULE:NAME,NAME",
    )
    add("--run", action="store_true", help="execute it, even a write, and show what it cost")
    add(
        "--sample",
        metavar="N",
        type=int,
        default=_SAMPLE,
        help=f"items that are read for the estimate, by default {_SAMPLE:,}; 0 for none",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the explanation as JSON")
    form.add_argument("--html", metavar="FILE", help="write the explanation to a page")
    form.add_argument("--svg", metavar="FILE", help="write the drawing to a file")


def _run(arguments: argparse.Namespace) -> int:
    page = text_output("--html", arguments.html, _PAGE_BEGIN.encode())
    drawing = text_output("--svg", arguments.svg, SVG_BEGIN.encode())
    check_outputs(page, drawing, inputs={"FILE_OR_URL": opened_file(arguments)})
    subject = _subject(arguments)
    tables = modules.tables_of(arguments.model)
    with isotone.connect(arguments.connection, check_keys=False) as store:
        explained = isotone.explain(
            store,
            subject,
            parameters=[literal(word) for word in arguments.param],
            run=arguments.run,
            sample=arguments.sample,
            tables=tables,
        )
    if arguments.json:
        print(json.dumps(explained.to_dict(), indent=2, ensure_ascii=False))
    elif page is not None:
        with naming(page.path):
            write_text(page, _page(explained))
    elif drawing is not None:
        if explained.drawing is None:
            raise UsageError("there is nothing to draw: no item is in the collection that is read")
        with naming(drawing.path):
            write_text(drawing, explained.drawing.svg(explained.title))
    else:
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        print(explained.text(get_terminal_size((100, 24)).columns, colour=colour))
    return 0


def _page(explained: isotone.Explanation) -> str:
    return (
        f'{_PAGE_BEGIN}<meta name="viewport" content="width=device-width"><title>Explanation</title>'
        "<style>:root{color-scheme:light dark}body{font-family:system-ui,sans-serif;margin:2rem auto;"
        "max-width:75rem;padding:0 1rem}svg{max-width:100%;height:auto}dt{font-weight:600}"
        "dd{margin:0 0 .5rem}</style>"
        f"{explained.html()}</html>\n"
    )


def _subject(arguments: argparse.Namespace) -> Any:
    what: str = arguments.what
    if arguments.call:
        parse_json(what)  # says where it is not JSON, but reads a number as text
        request = json.loads(what)
        if not isinstance(request, dict):
            raise UsageError('a request must be a JSON object, such as {"TableName": "Orders"}')
        return arguments.call, request
    if "".join(what.split(maxsplit=1)[:1]).lower() in _STATEMENTS:
        if arguments.conditions:
            raise UsageError("write the conditions into the statement, after WHERE")
        return what
    if ":" in what:
        conditions = parse_conditions(arguments.conditions) if arguments.conditions else []
        return _of_module(what, conditions, arguments)
    return _of_table(arguments)


def _of_table(arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """The query that `isotone query` would send; a scan without conditions."""
    table = table_of(arguments.connection, arguments.what)
    more: dict[str, Any] = {"ConsistentRead": True} if arguments.consistent else {}
    if not arguments.conditions:
        plan, operation = plan_scan(table, [], arguments.index), "Scan"
    else:
        conditions = parse_conditions(arguments.conditions)
        plan, operation = plan_query(table, conditions, arguments.index), "Query"
        more["ScanIndexForward"] = not arguments.reverse
    return operation, {"TableName": table.name, **plan.parameters, **more}


# Queries and keys of a module


def _of_module(
    text: str, conditions: Sequence[ConditionWords], arguments: argparse.Namespace
) -> Any:
    module_name, _, name = text.partition(":")
    if not name:
        raise UsageError(
            f"{text!r} names no query; write MODULE:NAME, such as shop:Order.by_status"
        )
    found = modules.member(modules.load(module_name, f":{name}"), name)
    query = found
    if isinstance(found, Pattern) and conditions:
        query = found.where(*(_condition(found, each) for each in conditions))
    elif conditions:
        raise UsageError(f"{text} is not a key, so it takes no conditions")
    if not isinstance(query, Read | Pattern | isotone.Merge):
        raise UsageError(
            f"{text} is {found!r}, neither a query nor a key; name one, such as shop:Order.by_status"
        )
    if arguments.reverse and isinstance(query, Query):
        query = query.reversed()
    return query.consistent() if arguments.consistent and isinstance(query, Read) else query


_OPERATORS: Final[dict[str, Callable[..., isotone.Condition]]] = {
    "=": lambda field, value: field == value,
    "<": lambda field, value: field < value,
    "<=": lambda field, value: field <= value,
    ">": lambda field, value: field > value,
    ">=": lambda field, value: field >= value,
    "between": lambda field, low, high: field.between(low, high),
    "begins_with": lambda field, prefix: field.begins_with(prefix),
}


def _condition(pattern: Pattern[Any], condition: ConditionWords) -> isotone.Condition:
    """A command-line condition, on a field of the entity."""
    fields = pattern.schema.fields
    field = fields.get(condition.name)
    if field is None:
        raise UsageError(
            f"{pattern} has no field {condition.name!r}; its fields: {', '.join(fields)}"
        )
    make = _OPERATORS.get(condition.operator)
    if make is None:
        raise UsageError(f"a key cannot answer {condition.operator!r}; use = < <= > >= or between")
    return make(field, *(_value(field, word) for word in condition.words))


def _value(field: isotone.Attr[Any], word: str) -> Any:
    try:
        return TypeAdapter(field.annotation).validate_strings(word)
    except ValidationError as error:
        raise UsageError(f"{field.name}={word}: {error.errors()[0]['msg']}") from None


DEFINITIONS: Final = {
    "explain": Command(
        """\
Show what a statement, a query or a request reads and costs: the range of the key, as it is stored and as a drawing,
the items and units, what a filter wastes, and what else could answer it.

The figures are an estimate from the table's description, a sample of its items and the beginning of the range; if it is
not exact, the least and the most stand below it. --run executes the call, even a write, and shows what it cost.""",
        examples="""
isotone explain shop.db "SELECT * FROM Orders WHERE customer = 'ann' AND total > 10"
isotone explain shop.db Orders customer=ann 'placed_at begins_with 2020-01' --reverse --run
isotone explain shop.db shop:Order.by_status status=OPEN          a key of an entity, with conditions
isotone explain shop.db --call PutItem '{"TableName": "Orders", "Item": {"customer": {"S": "ann"}, …}}'
isotone explain shop.db Orders customer=ann --svg orders.svg
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
