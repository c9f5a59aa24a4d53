"""The calls of the page's API, by name: session, tables, execute, explain, lint …; JSON objects in and out.

Requests to the engine run in threads, because they may wait for a disk or a network. Errors are raised; `site` turns
them into values.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from isotone.advisor import Explanation, explain
from isotone.advisor.lint import LintReport, lint
from isotone.advisor.statement_plan import place_of_fault, table_of_statement
from isotone.backends.opening import region_of
from isotone.errors import IsotoneError, UsageError
from isotone.model import Store, connect
from isotone.tables.threads import in_thread
from isotone.workbench import code, patterns, stream_tail, structures, tables
from isotone.workbench.access import WriteAccess, is_write
from isotone.workbench.designs import Designs
from isotone.workbench.editing import Editing
from isotone.workbench.recognition import (
    SAMPLE,
    SAMPLE_ELSEWHERE,
    Recognition,
    recognize_without_model,
)
from isotone.workbench.saved_queries import SavedQueries
from isotone.workbench.server_pages import server_page
from isotone.workbench.simulations import Simulations
from isotone.workbench.snapshots import Snapshots
from isotone.workbench.source import Call, Source, text_in
from isotone.workbench.transfers import Transfers

_ANSWER_WAIT: Final = 0.15  # seconds that an answer waits for the table's model
_LONGEST: Final = 60.0  # seconds that a request to the engine may take
_MOST_MEASURED: Final = 1_000  # estimated units up to which Explain measures a request

_LOWEST: Final = {"highest": False, "lowest": True}  # by the requested order of scores

Answer = dict[str, Any]


class WorkbenchCalls:
    """The calls of one workbench."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._access = WriteAccess(writable=source.writable)
        self._store: Store | None = None
        self._sample = SAMPLE_ELSEWHERE if source.remote else SAMPLE
        self._recognition = Recognition(self._connected, source.tables, sample=self._sample)
        self._inferring: dict[str, asyncio.Future[Any]] = {}
        designs = Designs(source.design, self._connected)
        self._names: dict[str, Call] = {
            "session": self.session,
            "unlock": self.unlock,
            "tables": self.tables,
            "table": self.table,
            "execute": self.execute,
            "keys": self.keys,
            "model": self.model,
            "pattern": self.pattern,
            "code": self.code,
            "explain": self.explain,
            "statement_fault": self.statement_fault,
            "lint": self.lint,
            "changes": self.changes,
            "structures": self.structures,
            "structure": self.structure,
            "server_page": self.server_page,
            "simulation": Simulations(source.workload).simulation,
            "design": designs.design,
            "design_sheet": designs.sheet,
            **Editing(source.backend, source.tables, self._access).calls,
            **SavedQueries(source.queries).calls,
            **Transfers(source, self._access, self._recognition.forget).calls,
            **Snapshots(
                source,
                self._access,
                lambda: self._connected().capabilities,
                self._recognition.forget,
            ).calls,
            **source.tour,
            **source.calls,
        }

    def by_name(self, name: str) -> Call:
        """The call with a name; raises `UsageError` for an unknown one."""
        call = self._names.get(name)
        if call is None:
            raise UsageError(f"the workbench has no call {name!r}")
        if name == "tour_act":
            self._access.check("The tour", {})
        return call

    # The session

    async def session(self, given: Mapping[str, Any]) -> Answer:
        """The connected engine, and whether writes are unlocked."""
        engine = await in_thread(lambda: self._connected().capabilities.engine)
        design = self._source.design
        return {
            "target": self._source.target,
            "engine": engine,
            "remote": self._source.remote,
            "endpoint": self._source.is_endpoint,
            "writable": self._access.writable,
            "version": version("isotone"),
            "tour": bool(self._source.tour),
            "workload": None if self._source.workload is None else self._source.workload.name,
            "design": None if design is None else {"name": design.name, "live": design.is_live},
            "models": [table.name for table in self._source.tables],
            "queries": None if self._source.queries is None else self._source.queries.name,
        }

    async def unlock(self, given: Mapping[str, Any]) -> Answer:
        """Leave safe mode, or return to it: `{"writable": …}`."""
        self._access.writable = given.get("writable") is True
        return {"writable": self._access.writable}

    # Tables

    async def tables(self, given: Mapping[str, Any]) -> Answer:
        """All tables."""
        found = await in_thread(tables.summaries, self._source.backend, remote=self._source.remote)
        return {"tables": found}

    async def table(self, given: Mapping[str, Any]) -> Answer:
        """One table; None if it does not exist."""
        name = text_in(given, "table")
        self._infer(name)
        found = await in_thread(tables.summary, self._source.backend, name)
        if found is None:  # another table may get its name
            self._recognition.forget(name)
        return {"table": found}

    # Requests

    async def execute(self, given: Mapping[str, Any]) -> Answer:
        """Any action of the API: `{"action", "request"}`. With `"keys": [attribute, …]`, items are recognized.

        With `"whole"`, they have all their attributes, and are also compared with their entities.
        """
        action, request = text_in(given, "action"), given.get("request") or {}
        if not isinstance(request, dict):
            raise UsageError(f"the request of {action} must be a JSON object")
        self._access.check(action, request)
        started = time.perf_counter()
        response = await self._execute(action, request)
        answer: Answer = {
            "response": response,
            "milliseconds": (time.perf_counter() - started) * 1000,
        }
        if is_write(action, request):
            written = str(request.get("TableName"))
            if action.endswith("Table") or self._recognition.knows_little(written):
                self._recognition.forget(written)
        attributes = given.get("keys")
        items = response.get("Items")
        if attributes is not None and items is not None:
            name = given.get("table") or request.get("TableName")
            are_whole = given.get("whole") is True
            found = await self._recognized(
                str(name), attributes, items, _ANSWER_WAIT, are_whole=are_whole
            )
            answer |= {"recognized": None} if found is None else found
        return answer

    async def keys(self, given: Mapping[str, Any]) -> Answer:
        """The entities and key parts of items: `{"table", "keys", "items", "whole"}`."""
        name, attributes, items = text_in(given, "table"), given["keys"], given["items"]
        are_whole = given.get("whole") is True
        return await self._recognized(name, attributes, items, None, are_whole=are_whole) or {}

    async def _recognized(
        self,
        table: str,
        attributes: list[str],
        items: list[Any],
        longest: float | None,
        *,
        are_whole: bool,
    ) -> Answer | None:
        """The recognized items, and the names in the model; None if the model is not ready in time.

        `are_whole`: the items have all their attributes, so they are also compared with a loaded model.

        A failed inference (Scan may be denied) does not prevent callers from seeing items.
        """
        if not self._recognition.is_ready(table):
            inferring = self._infer(table)
            done, _ = await asyncio.wait([inferring], timeout=longest)
            if not done:
                return None
            if isinstance(inferring.exception(), IsotoneError):
                return {"recognized": recognize_without_model(attributes, items)}
            inferring.result()
        found = await in_thread(self._recognition.recognize, table, attributes, items)
        answer = {"recognized": found, "legend": self._recognition.legend(table)}
        if are_whole and self._recognition.is_loaded(table):
            answer["findings"] = await in_thread(self._recognition.findings, table, items)
        return answer

    def _infer(self, table: str) -> asyncio.Future[Any]:
        """Start inferring a table's model, once."""
        running = self._inferring.get(table)
        if running is None:
            running = in_thread(self._recognition.model_of, table)
            self._inferring[table] = running
            running.add_done_callback(lambda done: self._inferred(table, done))
        return running

    def _inferred(self, table: str, done: asyncio.Future[Any]) -> None:
        """Note that the inference has ended; its error is raised to the caller that asks for the model."""
        self._inferring.pop(table, None)
        if not done.cancelled():
            done.exception()

    async def _execute(self, action: str, request: Mapping[str, Any]) -> Answer:
        deadline = time.monotonic() + _LONGEST
        return await in_thread(self._source.backend.execute, action, request, deadline)

    # The model

    async def model(self, given: Mapping[str, Any]) -> Answer:
        """The entities and access patterns of a table, loaded or inferred."""
        name = text_in(given, "table")
        if self._recognition.knows_little(name):  # items may have been added by others
            self._recognition.forget(name)
        found = await in_thread(self._recognition.model_of, name)
        inferred = (
            None
            if self._recognition.is_loaded(name)
            else await in_thread(self._recognition.inferred, name)
        )
        return {
            "model": None if found is None else patterns.described(found),
            "loaded": self._recognition.is_loaded(name),
            "source": None if inferred is None else inferred.source,
            "sampled": None if inferred is None else inferred.items,
        }

    async def pattern(self, given: Mapping[str, Any]) -> Answer:
        """The request of an access pattern with given parameters, and its program; `origin` is where the page is."""
        name = text_in(given, "table")
        found = await in_thread(self._recognition.model_of, name)
        if found is None:
            raise UsageError(f"nothing is known of the entities of table {name!r}")
        asked = patterns.PatternRequest(
            entity=text_in(given, "entity"),
            pattern=text_in(given, "pattern"),
            equal=given.get("equal") or {},
            component=given.get("component") or "",
            operator=given.get("operator") or "",
            values=given.get("values") or (),
            descending=given.get("descending") is True,
            filters=given.get("filters") or (),
        )
        inferred = None if self._recognition.is_loaded(name) else self._recognition.inferred(name)
        source = None if inferred is None else inferred.source
        return patterns.answer(found, asked, self._target(given), self._region(), source)

    async def code(self, given: Mapping[str, Any]) -> Answer:
        """A request as code: `{"action", "request"}`; `origin` is where the page is."""
        request = given.get("request") or {}
        action, target = text_in(given, "action"), self._target(given)
        return {"snippets": code.snippets(action, request, target, self._region())}

    def _target(self, given: Mapping[str, Any]) -> str:
        """What copied code connects to: the origin of the page, if it is the engine's, too."""
        target = self._source.target
        return str(given.get("origin") or target) if self._source.is_endpoint else target

    def _region(self) -> str:
        """The region whose tables the page shows."""
        return region_of(self._source.backend) or code.DEFAULT_REGION

    async def explain(self, given: Mapping[str, Any]) -> Answer:
        """Explain a request or a statement: `{"action", "request"}` or `{"statement"}`.

        With `run`, a small read is also measured. A write is never sent.
        """
        statement = given.get("statement")
        request = given.get("request") or {}
        if not isinstance(request, dict):
            raise UsageError("a request must be a JSON object")
        subject = statement or (text_in(given, "action"), request)
        work = in_thread(self._explained, subject, run=given.get("run") is True)
        return {"explanation": (await work).to_dict()}

    def _explained(self, subject: Any, *, run: bool) -> Explanation:
        is_statement = isinstance(subject, str)
        action, request = ("ExecuteStatement", {"Statement": subject}) if is_statement else subject
        statement = request.get("Statement") if action == "ExecuteStatement" else None
        name = table_of_statement(statement) if statement else str(request.get("TableName", ""))
        known = self._recognition.model_of(name) if name else None
        tables = [] if known is None else [known]
        estimated = explain(self._connected(), subject, sample=self._sample, tables=tables)
        if not run:
            return estimated
        if is_write(action, request):
            raise UsageError(f"{action} writes, and Explain only measures what reads")
        if estimated.estimate.units > _MOST_MEASURED:
            raise UsageError(
                f"to measure it would read about {estimated.estimate.units:,.0f} units; "
                f"Explain measures up to {_MOST_MEASURED:,}"
            )
        return explain(self._connected(), subject, sample=self._sample, tables=tables, run=True)

    async def statement_fault(self, given: Mapping[str, Any]) -> Answer:
        """Where the fault of a statement is, by the engine's message: `{"statement", "message"}`."""
        return {"place": place_of_fault(text_in(given, "statement"), text_in(given, "message"))}

    async def lint(self, given: Mapping[str, Any]) -> Answer:
        """Lint a table: its items, and the keys of a loaded model."""
        report = await in_thread(self._linted, text_in(given, "table"))
        return report.to_dict()

    def _linted(self, name: str) -> LintReport:
        model = self._recognition.model_of(name) if self._recognition.is_loaded(name) else None
        return lint(model or name, store=self._connected(), sample=self._sample)

    # Changes

    async def changes(self, given: Mapping[str, Any]) -> Answer:
        """The new records of a stream; waits a while if there are none: `{"stream", "position"}`."""
        return await stream_tail.next_changes(
            self._execute,
            given.get("stream"),
            given.get("position"),
            from_start=given.get("from_start") is True,
        )

    # Structures

    async def structures(self, given: Mapping[str, Any]) -> Answer:
        """The structures that all tables hold."""
        return await in_thread(structures.structures, self._source.backend, self._sample)

    async def structure(self, given: Mapping[str, Any]) -> Answer:
        """One structure with its rows: `{"kind", "table", "name"}`; `"order"` is `"highest"` or `"lowest"`."""
        now = datetime.now(UTC)
        return await in_thread(
            structures.structure,
            self._source.backend,
            text_in(given, "kind"),
            text_in(given, "table"),
            str(given.get("name") or ""),
            now,
            self._sample,
            lowest=_LOWEST.get(given.get("order") or ""),
        )

    # The server of the engine

    async def server_page(self, given: Mapping[str, Any]) -> Answer:
        """A page of another server for its operators: `{"name": "metrics"}`, `"hotkeys"` or `"queries"`."""
        name = text_in(given, "name")
        if name not in ("metrics", "hotkeys", "queries"):
            raise UsageError(f"a server has no page {name!r}; ask for metrics, hotkeys or queries")
        return await in_thread(server_page, self._source.target, name)

    def _connected(self) -> Store:
        if self._store is None:
            self._store = connect(self._source.backend, check_keys=False)
        return self._store
