"""The tools of an assistant, by name: what each is for, and JSON objects in and out. Errors are `ToolRefusal`s.

Most of them are calls of the workbench, of lint, of the simulation and of the design of tables. One call runs at a time:
each has its budget for itself. A server that may not write has no tool that writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from isotone.advisor.lint import LintReport, lint
from isotone.advisor.statement_plan import table_of_statement
from isotone.backends import embedded
from isotone.backends.interface import Backend
from isotone.design import SampleData, SampleRequest, Several, sheet_of
from isotone.design import seed as seed_tables
from isotone.design.sheet_text import as_dict as sheet_dict
from isotone.errors import UsageError
from isotone.mcp import arguments as given
from isotone.mcp.answers import LARGEST_ANSWER, cut, was_cut
from isotone.mcp.budgets import Budgets, MeteredBackend, OverBudget
from isotone.mcp.data_models import FILE_NAME, read_data_model, validate
from isotone.mcp.refusals import ToolRefusal, refusal_of
from isotone.model import Table, connect, entity_of_item
from isotone.schema.deployable import deployable_of
from isotone.schema.formats import format_for, written
from isotone.tables.definition import read_definition
from isotone.tables.threads import in_thread
from isotone.workbench import tables as table_summaries
from isotone.workbench.access import is_write
from isotone.workbench.calls import WorkbenchCalls
from isotone.workbench.source import Source

if TYPE_CHECKING:
    from types import ModuleType

    from isotone.advisor.simulation import Workload

Answer = dict[str, Any]

_SAMPLE_ITEMS: Final = 20_000  # items of a sample that is made to be shown
_TEXTS: Final = ("source", "text")  # members that are long texts which Isotone has written
_TEXT: Final = {"longest_text": LARGEST_ANSWER}

_WHOLE: Final = ("next",)  # members that a later call sends back
_CUT: Final = (
    "a value in this call was cut when it was shown, so it is not what is stored, and would replace it; "
    "leave it out: write with UpdateItem or DeleteItem needs the key alone"
)


class AssistantSource(NamedTuple):
    """An engine for an assistant. `tables` are those of a loaded model, `checked` what lint checks of it.

    `folder` is where design files are read.
    """

    backend: Backend
    target: str
    tables: tuple[Table, ...] = ()
    checked: tuple[ModuleType | Table, ...] = ()
    workload: Workload | None = None
    remote: bool = False
    writable: bool = False
    budgets: Budgets = Budgets()
    folder: Path = Path()


class AssistantTool(NamedTuple):
    """A tool: what an assistant reads about it, its arguments, and the function that answers.

    `writes`: it may change what is stored. `destroys`: it may delete or replace.
    """

    title: str
    description: str
    arguments: type[given.Arguments]
    answer: Callable[[Any], Awaitable[Answer]]
    writes: bool = False
    destroys: bool = False


class AssistantTools:
    """The tools for one engine, and the budget of their session."""

    def __init__(self, source: AssistantSource) -> None:
        self._source = source
        self._backend = MeteredBackend(source.backend, source.budgets, writable=source.writable)
        self._calls = WorkbenchCalls(
            Source(
                backend=self._backend,
                target=source.target,
                tables=source.tables,
                remote=source.remote,
                writable=source.writable,
                is_endpoint=False,
                tour={},
                calls={},
                workload=None,
            )
        )
        self._models = {table.name: table for table in source.tables}
        self._one_at_a_time = asyncio.Lock()
        self.tools: Mapping[str, AssistantTool] = dict(self._listed())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool. Raises `ToolRefusal`, and any other exception for a fault of the program."""
        tool = self.tools.get(name)
        if tool is None:
            raise ToolRefusal(
                f"there is no tool {name!r:.60}; the tools are: {', '.join(self.tools)}"
            )
        async with self._one_at_a_time:
            self._backend.begin()
            try:
                if tool.writes and was_cut(arguments):
                    raise UsageError(_CUT)
                asked = msgspec.convert(arguments, tool.arguments)
                found = await tool.answer(asked)
            except Exception as error:
                refusal = refusal_of(error)
                if refusal is None:
                    raise
                raise refusal from None
            texts = {name: cut(found.pop(name), **_TEXT) for name in _TEXTS if name in found}
            whole = {name: found.pop(name) for name in _WHOLE if name in found}
            return {**cut(found), **texts, **whole, "used": self._backend.used()}

    # The list

    def _listed(self) -> Iterator[tuple[str, AssistantTool]]:
        yield from self._reading()
        if self._source.tables:
            yield from self._designing()
        if self._source.workload is not None:
            yield (
                "simulate",
                AssistantTool(
                    "Simulate the workload",
                    "Run the loaded workload with some members in memory, and forecast it at its real size: units a second "
                    "of each table and index, hot keys, throttling, storage, cost of a month.",
                    given.SimulateArguments,
                    self._simulate,
                ),
            )
        if self._source.writable:
            yield from self._writing()

    def _reading(self) -> Iterator[tuple[str, AssistantTool]]:
        yield (
            "describe_tables",
            AssistantTool(
                "Describe tables",
                "The tables with their keys, indexes, counts and sizes. With a table, also its entities: fields with types, "
                "the forms of keys, and the access patterns that read_pattern runs. Without a loaded model they are "
                "inferred from a sample of the items.",
                given.TablesArguments,
                self._describe_tables,
            ),
        )
        yield (
            "read_pattern",
            AssistantTool(
                "Run an access pattern",
                "Read items by an access pattern of describe_tables, in its order. The answer has the items in DynamoDB JSON "
                "with their entities, the request, the same as a Python program, and next if there are more.",
                given.ReadPatternArguments,
                self._read_pattern,
            ),
        )
        yield (
            "query",
            AssistantTool(
                "Query without a model",
                "Read by a PartiQL SELECT, or by a request of Query, Scan, GetItem, BatchGetItem or TransactGetItems. "
                "The answer has the items in DynamoDB JSON, and next if there are more.",
                given.QueryArguments,
                self._query,
            ),
        )
        yield (
            "explain",
            AssistantTool(
                "Explain what a request costs",
                "What a statement, a request or an access pattern would read or write and cost: its range of the key, items, "
                "units, what a filter wastes, and better ways. A write is never executed.",
                given.ExplainArguments,
                self._explain,
            ),
        )
        yield (
            "lint",
            AssistantTool(
                "Find design problems",
                "Problems of a table's items and keys, or of the loaded model: each with a code, a reason, its cost and a fix.",
                given.LintArguments,
                self._lint,
            ),
        )
        yield (
            "export_schema",
            AssistantTool(
                "Write table definitions",
                "The definitions of tables for CloudFormation, SAM, CDK, Terraform, NoSQL Workbench, as Markdown or as "
                "requests of CreateTable; and what the format cannot express.",
                given.SchemaArguments,
                self._export_schema,
            ),
        )
        yield (
            "validate_design",
            AssistantTool(
                "Try a design file in memory",
                f"Try a {FILE_NAME} of AWS's DynamoDB modelling tool: make its tables in memory, put its sample items, and "
                "execute its access patterns. Says which tables, items and patterns fail, with DynamoDB's own messages, and "
                "what lint finds. Touches no table of this server.",
                given.ValidateArguments,
                self._validate_design,
            ),
        )

    def _designing(self) -> Iterator[tuple[str, AssistantTool]]:
        yield (
            "design_sheet",
            AssistantTool(
                "The sheet of access patterns",
                "What each access pattern of the loaded model costs at a size: key, order, items and units of a call, cost of "
                "a month, hottest key. Computed in memory; the tables are not read.",
                given.SheetArguments,
                self._design_sheet,
            ),
        )
        yield (
            "sample_data",
            AssistantTool(
                "Make sample data",
                "Sample items of the loaded model, made in memory: how many there would be of each entity, and the first of "
                "each in DynamoDB JSON. Writes nothing.",
                given.SampleArguments,
                self._sample_data,
            ),
        )

    def _writing(self) -> Iterator[tuple[str, AssistantTool]]:
        if self._source.tables:
            yield (
                "save_entity",
                AssistantTool(
                    "Create or change an entity",
                    "Write one entity of the loaded model by its fields: keys, unique values and versions are written as a "
                    "program would. With item, change that item, if it is still as it was read.",
                    given.SaveArguments,
                    self._save_entity,
                    writes=True,
                    destroys=True,
                ),
            )
            yield (
                "delete_entity",
                AssistantTool(
                    "Delete an entity",
                    "Delete one item of the loaded model with its unique values, if it is still as it was read.",
                    given.DeleteArguments,
                    self._delete_entity,
                    writes=True,
                    destroys=True,
                ),
            )
            yield (
                "seed",
                AssistantTool(
                    "Fill tables with sample data",
                    "Write sample items of the loaded model into its tables; missing tables are created.",
                    given.SeedArguments,
                    self._seed,
                    writes=True,
                ),
            )
        yield (
            "write",
            AssistantTool(
                "Write without a model",
                "Execute PutItem, UpdateItem, DeleteItem, BatchWriteItem, TransactWriteItems, or a PartiQL INSERT, UPDATE or "
                "DELETE. Where a model is loaded, prefer save_entity: it keeps the keys right.",
                given.WriteArguments,
                self._write,
                writes=True,
                destroys=True,
            ),
        )

    # Tables and models

    async def _describe_tables(self, asked: given.TablesArguments) -> Answer:
        if asked.table is None:
            found = await in_thread(
                table_summaries.summaries, self._backend, remote=self._source.remote
            )
            existing = {each["name"] for each in found}
            missing = sorted(self._models.keys() - existing)
            return {
                "tables": found,
                "models": sorted(self._models),
                "missing_tables": missing,
            }
        summary = await in_thread(table_summaries.summary, self._backend, asked.table)
        if summary is None and asked.table not in self._models:
            raise UsageError(f"there is no table {asked.table!r}; describe_tables lists them")
        known = await self._workbench("model", table=asked.table)
        model = known["model"]
        return {
            "table": summary,
            "model": "loaded" if known["loaded"] else "inferred",
            "entities": [] if model is None else [_entity(each) for each in model["entities"]],
            "source": known["source"],
            "items_read": known["sampled"],
        }

    async def _workbench(self, call: str, **members: Any) -> Answer:
        """The answer of a call of the workbench."""
        found: Answer = await self._calls.by_name(call)(members)
        return found

    # Reading

    async def _read_pattern(self, asked: given.ReadPatternArguments) -> Answer:
        table, found = await self._pattern(asked)
        request = found["request"]
        answer = await in_thread(self._pages, "Query", request, asked.limit, asked.after)
        known = await self._workbench("keys", table=table, keys=[], items=answer["items"])
        entities = [each.entity for each in known["recognized"]]
        answer["items"] = [
            {"entity": entity, "item": item}
            for entity, item in zip(entities, answer["items"], strict=True)
        ]
        return {**answer, "request": request, "program": found["code"]}

    async def _pattern(self, asked: given.PatternArguments) -> tuple[str, Answer]:
        """The table of a pattern, its request, and its program."""
        entity, _, pattern = asked.pattern.rpartition(".")
        table = asked.table or self._table_of(entity, asked.pattern)
        operator = asked.operator if asked.range_on else None
        if (asked.range_on is None) != (asked.operator is None):
            raise UsageError("a range needs range_on, operator and values together")
        found = await self._workbench(
            "pattern",
            table=table,
            entity=entity,
            pattern=pattern,
            equal={name: _text(value) for name, value in asked.equal.items()},
            component=asked.range_on,
            operator=operator,
            values=[_text(value) for value in asked.values],
            descending=asked.descending,
        )
        return table, found

    def _table_of(self, entity: str, pattern: str) -> str:
        having = [name for name, model in self._models.items() if model.entity_of(entity)]
        if len(having) != 1:
            raise UsageError(f"which table has {pattern}? Give table; describe_tables lists them")
        return having[0]

    async def _query(self, asked: given.QueryArguments) -> Answer:
        action, request = _request_of(
            asked.action, asked.request, asked.statement, asked.parameters
        )
        if is_write(action, request):
            raise UsageError("query reads: give a statement that begins with SELECT")
        if action not in ("Query", "Scan", "ExecuteStatement"):
            response = await in_thread(self._backend.execute, action, request)
            return {"items": None, "response": _without_units(response), "next": None}
        answer = await in_thread(self._pages, action, request, asked.limit, asked.after)
        name = table_of_statement(asked.statement) if asked.statement else request.get("TableName")
        model = self._models.get(str(name))
        answer["items"] = [
            {"entity": _entity_name(model, item), "item": item} for item in answer["items"]
        ]
        return answer

    def _pages(self, action: str, request: Mapping[str, Any], limit: int, after: Any) -> Answer:
        """Up to `limit` items of a Query, a Scan or a statement, over its pages; or the count of all, if it asks for that.

        If the budget ends between two pages, what was read so far is the answer, and `stopped` says why.
        """
        start, rest = (
            ("NextToken", "NextToken")
            if action == "ExecuteStatement"
            else ("ExclusiveStartKey", "LastEvaluatedKey")
        )
        counts = request.get("Select") == "COUNT"
        found: Answer = {"items": [], "next": after, **({"count": 0} if counts else {})}
        read = 0
        while True:
            more = {} if found["next"] is None else {start: found["next"]}
            if not counts:  # a count has no items that an answer could be full of
                more["Limit"] = limit - len(found["items"])
            try:
                response = self._backend.execute(action, {**request, **more})
            except OverBudget as error:
                if not read:
                    raise
                return {**found, "stopped": str(error)}
            read += 1
            if counts:
                found["count"] += response["Count"]
            found["items"] += response.get("Items", ())
            found["next"] = response.get(rest)
            if found["next"] is None or len(found["items"]) >= limit:
                return found

    # Advice

    async def _explain(self, asked: given.ExplainArguments) -> Answer:
        if asked.pattern is not None:
            if asked.statement is not None or asked.action is not None:
                raise UsageError("give one of statement, action with request, and pattern")
            _, found = await self._pattern(asked.pattern)
            action, request = "Query", found["request"]
        else:
            action, request = _request_of(asked.action, asked.request, asked.statement, ())
        subject: Answer = (
            {"statement": asked.statement}
            if asked.statement is not None
            else {"action": action, "request": request}
        )
        return await self._workbench("explain", **subject, run=asked.measure)

    async def _lint(self, asked: given.LintArguments) -> Answer:
        if asked.table is not None:
            return await self._workbench("lint", table=asked.table)
        if not self._source.checked:
            raise UsageError("no model was loaded; give table, to check its items")
        report: LintReport = await in_thread(lint, *self._source.checked)
        return report.to_dict()

    async def _simulate(self, asked: given.SimulateArguments) -> Answer:
        return await in_thread(self._forecast, asked)

    def _forecast(self, asked: given.SimulateArguments) -> Answer:
        from isotone.advisor.simulation import simulate
        from isotone.advisor.simulation.forecast import as_dict
        from isotone.advisor.simulation.report_text import ASSUMPTIONS

        workload = self._source.workload
        assert workload is not None  # or the tool is not listed
        found = simulate(
            workload,
            size=asked.size,
            members=asked.members,
            shards=asked.shards or None,
            seed=asked.seed,
        )
        return {**as_dict(found), "assumptions": ASSUMPTIONS}

    # Design

    async def _design_sheet(self, asked: given.SheetArguments) -> Answer:
        make = partial(
            sheet_of,
            *self._source.tables,
            request=_sample_request(asked),
            rates=asked.rates,
            reads=asked.reads,
            writes=asked.writes,
            page=asked.page,
        )
        return sheet_dict(await in_thread(make))

    async def _sample_data(self, asked: given.SampleArguments) -> Answer:
        return await in_thread(self._sampled, asked)

    def _sampled(self, asked: given.SampleArguments) -> Answer:
        for count in self._sample_counts(asked):
            if count > _SAMPLE_ITEMS:
                raise UsageError(
                    f"the sample would have {count:,} items, and {_SAMPLE_ITEMS:,} are made at most; ask for fewer"
                )
        shown: dict[str, list[Any]] = {}
        with embedded.open(":memory:") as database, connect(database) as store:
            made = seed_tables(store, *self._source.tables, **_seed_arguments(asked))
            for table in self._source.tables:
                request: Answer = {"TableName": table.name}
                while True:
                    page = database.execute("Scan", request)
                    for item in page["Items"]:
                        name = _entity_name(table, item)
                        if name is not None and len(shown.setdefault(name, [])) < asked.shown:
                            shown[name].append(item)
                    if "LastEvaluatedKey" not in page:
                        break
                    request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        return {"made": dict(made.items), "items": shown}

    def _sample_counts(self, asked: given.SizeArguments) -> Iterator[int]:
        """The items that are asked for by name, and then all: the children of a billion parents take hours to count."""
        yield sum(asked.items.values())
        yield SampleData(self._source.tables, _sample_request(asked)).count

    async def _export_schema(self, asked: given.SchemaArguments) -> Answer:
        return await in_thread(self._schema, asked)

    def _schema(self, asked: given.SchemaArguments) -> Answer:
        if not asked.tables and not self._source.tables:
            raise UsageError("no model was loaded; give tables, such as ['shop']")
        form = format_for(asked.format, None)
        if asked.tables:
            definitions = [read_definition(self._backend, name) for name in asked.tables]
        else:  # made in memory: so they are what `create_tables` makes
            with embedded.open(":memory:") as database, connect(database) as store:
                store.create_tables(*self._source.tables)
                definitions = [
                    read_definition(database, table.name) for table in self._source.tables
                ]
        found, notes = [], []
        for name, definition in zip(asked.tables or self._models, definitions, strict=True):
            if definition is None:
                raise UsageError(f"there is no table {name!r}; describe_tables lists them")
            table, not_taken = deployable_of(definition)
            found.append(table)
            notes += not_taken
        text, lost = written(found, form)
        return {"format": form.title, "text": text, "notes": [*notes, *lost]}

    async def _validate_design(self, asked: given.ValidateArguments) -> Answer:
        if asked.document is not None and asked.path is not None:
            raise UsageError("give path or document, not both")
        document = asked.document
        if document is None:
            document = await in_thread(read_data_model, self._source.folder, asked.path)
        return await in_thread(validate, document)

    # Writing

    async def _save_entity(self, asked: given.SaveArguments) -> Answer:
        return await self._workbench(
            "edit_save",
            table=asked.table,
            entity=asked.entity,
            values=asked.values,
            item=asked.item,
        )

    async def _delete_entity(self, asked: given.DeleteArguments) -> Answer:
        return await self._workbench("edit_delete", table=asked.table, item=asked.item)

    async def _write(self, asked: given.WriteArguments) -> Answer:
        action, request = _request_of(
            asked.action, asked.request, asked.statement, asked.parameters
        )
        response = await in_thread(self._backend.execute, action, request)
        return {"response": _without_units(response)}

    async def _seed(self, asked: given.SeedArguments) -> Answer:
        return await in_thread(self._seeded, asked)

    def _seeded(self, asked: given.SeedArguments) -> Answer:
        tables = self._source.tables
        for count in self._sample_counts(asked):
            self._backend.check_items(count)
        with connect(self._backend) as store:
            made = seed_tables(store, *tables, **_seed_arguments(asked), add=asked.add)
        return {
            "sample": dict(made.items),
            "written": sum(made.items.values()) - made.kept,
            "kept": made.kept,
            "tables_created": list(made.tables),
        }


# Arguments and answers


def _request_of(
    action: str | None,
    request: dict[str, Any] | None,
    statement: str | None,
    parameters: Sequence[Any],
) -> tuple[str, dict[str, Any]]:
    """The action and the request of arguments that give one of the two forms."""
    if (statement is None) == (action is None):
        raise UsageError("give either statement, or action with request")
    if statement is not None:
        with_parameters = {"Parameters": list(parameters)} if parameters else {}
        return "ExecuteStatement", {"Statement": statement, **with_parameters}
    if request is None:
        raise UsageError(f"{action} needs its request")
    return str(action), request


def _text(value: given.Value) -> str:
    """A value as a form's text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _entity_name(model: Table | None, item: Mapping[str, Any]) -> str | None:
    schema = None if model is None else entity_of_item(model, dict(item))
    return None if schema is None else schema.tag


def _without_units(response: Mapping[str, Any]) -> Answer:
    """The response without what the budget has asked for."""
    return {name: value for name, value in response.items() if name != "ConsumedCapacity"}


def _sample_request(asked: given.SizeArguments) -> SampleRequest:
    per = {}
    for names, count in asked.per.items():
        parent, _, child = names.rpartition(":")
        per[child, parent] = Several.of(count)
    return SampleRequest(items=asked.items, per=per, popularity=asked.popularity, seed=asked.seed)


def _seed_arguments(asked: given.SizeArguments) -> dict[str, Any]:
    per = {}
    for names, count in asked.per.items():
        parent, colon, child = names.rpartition(":")
        per[(parent, child) if colon else child] = count
    return {
        "items": asked.items,
        "per": per,
        "popularity": asked.popularity,
        "seed": asked.seed,
    }


def _entity(described: Mapping[str, Any]) -> Answer:
    """An entity of the workbench's description, in fewer words."""
    return {
        "name": described["name"],
        "about": described["about"],
        "fields": {each["name"]: _field(each) for each in described["fields"]},
        "patterns": [_pattern(described["name"], each) for each in described["patterns"]],
    }


def _field(described: Mapping[str, Any]) -> Answer:
    marks = ("identifies", "unique", "required")
    more = {
        "attribute": None
        if described["attribute"] == described["name"]
        else described["attribute"],
        "set_by": described["set_by"],
        "about": described["about"],
    }
    return {
        "type": described["type"],
        **{name: True for name in marks if described[name]},
        **{name: value for name, value in more.items() if value},
    }


def _pattern(entity: str, described: Mapping[str, Any]) -> Answer:
    form = {
        name: "".join(str(text) for text, _ in parts) for name, parts in described["form"].items()
    }
    return {
        "name": f"{entity}.{described['name']}",
        "index": described["index"],
        "key": form,
        "equal": [each["name"] for each in described["group"]],
        "order": [
            f"{each['name']} descending" if each["descending"] else each["name"]
            for each in described["order"]
        ],
    }
