"""Puts observations to an endpoint: prepares tables, asks, compares, and deletes what it has created."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection
from typing import Any, Final, Literal

import msgspec
from tests.observed.endpoints import Asked, Reply
from tests.observed.matching import has, matches
from tests.observed.observations import Observation, Step, body_of, expanded, fixtures

State = Literal["agrees", "agrees as some regions do", "differs", "not applicable", "not prepared"]

_PATIENCE: Final = 900.0  # seconds until a table must be ready, or a job done
_PAUSE: Final = 1.0
_CREATED: Final = {
    "CreateTable": "TableName",
    "ImportTable": "TableCreationParameters.TableName",
    "RestoreTableFromBackup": "TargetTableName",
    "RestoreTableToPointInTime": "TargetTableName",
}
_CHANGES: Final = frozenset(_CREATED) | {"UpdateTable"}


class Verdict(msgspec.Struct, frozen=True):
    """What came of an observation at an endpoint."""

    observation: Observation
    state: State
    said: str = ""
    expected: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether it was refuted, or could not be tried."""
        return self.state in ("differs", "not prepared")

    def __str__(self) -> str:
        lines = [f"{self.state}: {self.observation.name}"]
        if self.is_bad:
            lines += [f"    expected {self.expected[:1500]}", f"    answered {self.said[:1500]}"]
        return "\n".join(lines)


class NotPrepared(Exception):
    """A request that must succeed first was refused."""


class Run:
    """One run at an endpoint: its tables, and the names that stand for placeholders."""

    def __init__(self, asked: Asked, provided: dict[str, str] | None = None) -> None:
        self._asked = asked
        self._provided = provided or {}
        self._fixtures = fixtures()
        self._ready: set[str] = set()
        self._created: set[str] = set()
        prefix = f"obs-{secrets.token_hex(2)}-"
        self._names = {"PREFIX": prefix, **{k.upper(): v for k, v in self._provided.items()}}

    def verdict(self, observation: Observation) -> Verdict:
        """Put one observation to the endpoint."""
        if observation.is_http and not self._asked.is_http:
            return Verdict(observation, "not applicable", "it is about HTTP")
        missing = [need for need in observation.needs if need not in self._provided]
        if missing:
            return Verdict(observation, "not applicable", f"it needs a {missing[0]}")
        before = set(self._created)
        names = dict(self._names)
        try:
            return self._verdict(observation)
        except NotPrepared as error:
            return Verdict(observation, "not prepared", str(error))
        finally:
            shared = {expanded(f"{{PREFIX}}{name}", self._names) for name in self._ready}
            self._delete(self._created - before - shared)
            known = ("REGION", "ACCOUNT")
            self._names = names | {each: self._names[each] for each in known if each in self._names}

    def _verdict(self, observation: Observation) -> Verdict:
        for name in observation.tables:
            self._make(name)
        for step in observation.given:
            self._prepare(step)
        action, content = observation.request
        reply = self._ask(action, content, observation)
        expected = expanded(observation.answer, self._names)
        state: State = "differs"
        if matches(expected, reply):
            state = "agrees"
        elif any(matches(expanded(each, self._names), reply) for each in observation.others):
            state = "agrees as some regions do"
        shown = json.dumps(expected, ensure_ascii=False)
        return Verdict(observation, state, str(reply), shown)

    def close(self) -> None:
        """Delete every table that the run has created."""
        self._delete(set(self._created))

    def _make(self, name: str) -> None:
        if name not in self._ready:
            for step in self._fixtures[name]:
                self._prepare(step)
            self._ready.add(name)

    def _ask(self, action: str, content: Any, observation: Observation | None = None) -> Reply:
        body = body_of(content, self._names)
        if observation is None or not observation.is_http:
            reply = self._asked.ask(action, body)
        else:
            headers = [(name, expanded(value, self._names)) for name, value in observation.headers]
            reply = self._asked.ask(action, body, headers, observation.method, observation.path)
        if reply.status == 200:
            self._note(action, body, reply)
        return reply

    def _note(self, action: str, body: bytes, reply: Reply) -> None:
        """Remember the tables that exist, and wait until one can be used."""
        if action in _CREATED:
            name = str(_member(json.loads(body), _CREATED[action])).rpartition("/")[2]
            self._created.add(name)
        if action == "CreateTable":
            arn = reply.body["TableDescription"]["TableArn"].split(":")
            self._names |= {"REGION": arn[3], "ACCOUNT": arn[4]}
        if action == "DeleteTable":
            self._created.discard(reply.body["TableDescription"]["TableName"])

    def _prepare(self, step: Step) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            reply = self._ask(step.action, step.body)
            if reply.status != 200 and not step.options.fails:
                raise NotPrepared(f"{step.action} {step.body!r:.300}: {reply}")
            until = expanded(step.options.until, self._names)
            if until is None or has(until, reply.body):
                break
            _pause(deadline, f"{step.action} until {until}", reply)
        if reply.status == 200 and step.action in _CHANGES:
            self._wait_for(_table_of(step, self._names))
        for name, path in step.options.save.items():
            try:
                self._names[name] = str(_member(reply.body, path))
            except (KeyError, IndexError) as error:
                raise NotPrepared(f"{step.action} answered no {path}: {reply}") from error

    def _wait_for(self, table: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            reply = self._ask("DescribeTable", {"TableName": table})
            if reply.status != 200:
                raise NotPrepared(f"DescribeTable of {table}: {reply}")
            described = reply.body["Table"]
            indexes = described.get("GlobalSecondaryIndexes", [])
            states = [described.get("TableStatus"), *(each["IndexStatus"] for each in indexes)]
            if set(states) == {"ACTIVE"}:
                return
            _pause(deadline, f"{table} to be active", reply)

    def _delete(self, tables: Collection[str]) -> None:
        for table in tables:
            self._wait_for(table)
            reply = self._ask("DescribeTable", {"TableName": table})
            if reply.body["Table"].get("DeletionProtectionEnabled"):
                self._ask("UpdateTable", {"TableName": table, "DeletionProtectionEnabled": False})
                self._wait_for(table)
            self._ask("DeleteTable", {"TableName": table})


def _pause(deadline: float, what: str, reply: Reply) -> None:
    if time.monotonic() > deadline:
        raise NotPrepared(f"waited for {what}: {reply}")
    time.sleep(_PAUSE)


def _table_of(step: Step, names: dict[str, str]) -> str:
    path = _CREATED.get(step.action, "TableName")
    return str(_member(expanded(step.body, names), path)).rpartition("/")[2]


def _member(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value
