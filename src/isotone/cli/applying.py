"""`isotone apply`: makes live tables what a model declares, step by step, resumable; --dry-run, --drop-indexes."""

from __future__ import annotations

import argparse
import json
from typing import Final

import isotone
from isotone.backends.addresses import file_of, is_remote
from isotone.backends.opening import is_new
from isotone.cli import modules
from isotone.cli.database import ADDRESSES
from isotone.cli.designing import add_plan_arguments
from isotone.cli.program import INTERRUPTED, Command, print_error
from isotone.cli.progress import ProgressOutput, add_progress_argument, progress_output
from isotone.cli.rewriting import confirm
from isotone.design import AppliedPlan, DesignPlan, PlanStep, apply, plan_of
from isotone.model import undo_log_output
from isotone.output_paths import check_outputs
from isotone.text_table import pluralized

_LEFT: Final = 1  # the exit code if something is not as declared afterwards


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    names = "a module with entities; MODULE:NAME,NAME for some of its tables and entities"
    add("module", metavar="MODULE", help=names)
    add("address", metavar="ADDRESS", help=f"{ADDRESSES}; a missing file is created")
    add("--dry-run", action="store_true", help="write nothing, and print what would be done")
    drop = "also drop indexes that the model does not declare, or declares otherwise"
    add("--drop-indexes", action="store_true", help=drop)
    undo = (
        "append the previous state of each rewritten item to this file, for isotone rewrite --undo"
    )
    add("--undo-log", metavar="FILE", help=undo)
    add_plan_arguments(parser)
    add_progress_argument(parser)
    add("--json", action="store_true", help="print the result as JSON")
    add("--yes", action="store_true", help="do not ask")


def _run(arguments: argparse.Namespace) -> int:
    undo = None if arguments.undo_log is None else undo_log_output(arguments.undo_log)
    check_outputs(undo, inputs={"ADDRESS": file_of(arguments.address)})
    targets = modules.targets(arguments.module)
    plan = _planned(arguments, targets)
    steps = [step for step in plan.steps if arguments.drop_indexes or not step.needs]
    if arguments.dry_run or not steps:
        print(json.dumps(plan.as_dict(), indent=2) if arguments.json else plan)
        return _LEFT if plan.steps or plan.blocked else 0
    if not arguments.yes:
        print(plan, flush=True)
    confirm(
        arguments,
        f"do {len(steps)} of {pluralized(len(plan.steps), 'step')} in {arguments.address}",
    )
    with modules.connect_store(arguments.address, arguments.table_prefix, create=True) as store:
        try:
            with progress_output("apply", arguments) as output:
                done = _apply(store, targets, output, arguments)
        except KeyboardInterrupt:
            print_error("interrupted; the same command continues where it was")
            return INTERRUPTED
    _print(done, is_json=arguments.json)
    return _LEFT if done.left else 0


def _planned(
    arguments: argparse.Namespace, targets: list[isotone.Table | type[isotone.Entity]]
) -> DesignPlan:
    """The plan; for a database that does not exist, that of an empty one."""
    units = arguments.units_per_second
    if not is_remote(arguments.address) and is_new(arguments.address):
        with isotone.connect(":memory:", table_prefix=arguments.table_prefix) as store:
            return plan_of(store, *targets, units_per_second=units)
    with modules.connect_store(arguments.address, arguments.table_prefix) as store:
        return plan_of(store, *targets, units_per_second=units)


def _apply(
    store: isotone.Store,
    targets: list[isotone.Table | type[isotone.Entity]],
    output: ProgressOutput,
    arguments: argparse.Namespace,
) -> AppliedPlan:
    def show(step: PlanStep, text: str) -> None:
        members = {"table": step.table, "step": step.kind, "name": step.name, "text": text}
        output.show(f"{step}: {text}", members, state="applying")

    return apply(
        store,
        *targets,
        drop_indexes=arguments.drop_indexes,
        units_per_second=arguments.units_per_second,
        undo=arguments.undo_log,
        progress=show,
    )


def _print(done: AppliedPlan, *, is_json: bool) -> None:
    if is_json:
        print(json.dumps({"done": [str(each) for each in done.done], "left": list(done.left)}))
    else:
        print(done)


DEFINITIONS: Final = {
    "apply": Command(
        """\
Make live tables what a model declares: create tables, enable streams and expiry, add indexes, rewrite the items whose keys or
values differ. isotone design MODULE --against ADDRESS prints the plan, with what it costs.

The command asks before it writes, unless --yes. It drops nothing without --drop-indexes, and never a table. To continue an
interrupted run, run the same command again: it does what is left.

Exits with 0 if the tables are as declared, with 1 if something is left, with 2 for every failure, and with 130 after
Ctrl-C.""",
        examples="""
isotone apply shop shop.db --dry-run                          what would be done
isotone apply shop shop.db --yes --undo-log shop.undo
isotone apply shop dynamodb://eu-west-1 --units-per-second 200
isotone apply shop:Order shop.db --drop-indexes
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
