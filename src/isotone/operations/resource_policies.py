"""PutResourcePolicy, GetResourcePolicy, DeleteResourcePolicy: stores policies; `server/policies` enforces them.

A policy is validated and stored. A server with users also enforces it (`server/policies.py`). Its revision changes with
its content, so two callers that expect the same revision cannot both change it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from isotone import limits
from isotone.clock import milliseconds
from isotone.engine import streams
from isotone.engine.engine import Engine
from isotone.engine.streams import Stream
from isotone.engine.table_indexes import StoredTable
from isotone.engine.table_schema import Policy
from isotone.errors import (
    PolicyNotFoundException,
    ResourceNotFoundException,
    ValidationException,
)
from isotone.operations.action import ActionRule, Answer, action
from isotone.operations.request_members import (
    NAME_PATTERN,
    ApiStructure,
    Flag,
    ResourceArn,
    RevisionId,
)
from isotone.operations.streams import stream_of_arn
from isotone.operations.table_lookup import changed_table, check_arn, table_of_arn


class PutResourcePolicy(ApiStructure, frozen=True):
    """Attach or replace a policy."""

    resource_arn: ResourceArn
    policy: str
    expected_revision_id: RevisionId | None = None
    confirm_remove_self_resource_access: Flag | None = None


class GetResourcePolicy(ApiStructure, frozen=True):
    """Ask for a policy and its revision."""

    resource_arn: ResourceArn


class DeleteResourcePolicy(ApiStructure, frozen=True):
    """Remove a policy."""

    resource_arn: ResourceArn
    expected_revision_id: RevisionId | None = None


_WITH_POLICY: Final = re.compile(
    r"arn:[^:]*:dynamodb:[^:]*:[^:]*:table/([^/]+)(?:/index/[^/]*|(/stream/.*))?"
)
_NO_POLICY: Final = "NO_POLICY"  # the ExpectedRevisionId of a resource without a policy
_NOT_FOUND: Final = "Resource-based policy not found for the provided ResourceArn: "
_UPDATE_OF_NONE: Final = "Requested update for policy with revision id {expected}, but table {name} has no associated policy."
_OTHER_EXPECTED: Final = (
    "Requested update for policy with revision id {expected}, but the policy associated to target table "
    "{name} has revision id {present}."
)
_NONE_EXPECTED: Final = (
    "Requested policy update expecting none to be present for table {name}, but a policy exists with "
    "revision id {present}."
)
_RESOURCE_ARN: Final = re.compile(
    rf"arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]+:table/({NAME_PATTERN})(/stream/[0-9T:.-]+)?"
)


_RESOURCE: Final = ActionRule(
    "a ResourceArn that is not that of a table or a stream, or of none that is there",
    lambda engine, request: _resource(engine, request.resource_arn),
)
_REVISION: Final = ActionRule(
    "an ExpectedRevisionId that is another one",
    lambda engine, request: _check_revision(
        _resource(engine, request.resource_arn), request.expected_revision_id
    ),
)


@action(
    "PutResourcePolicy",
    before=(ActionRule("a malformed Policy", lambda request: check_policy(request.policy)),),
    writing=(_RESOURCE, _REVISION),
)
def put_resource_policy(engine: Engine, request: PutResourcePolicy) -> Answer:
    """Attach a policy, or replace the current one; an unchanged policy keeps its revision."""
    resource = _resource(engine, request.resource_arn)
    present = _policy(resource)
    if present is None or not _is_equal(present.document, request.policy):
        present = new_policy(engine, request.policy, present)
        _save(engine, resource, present)
    return {"RevisionId": present.revision}


@action("GetResourcePolicy", reading=(_RESOURCE,))
def get_resource_policy(engine: Engine, request: GetResourcePolicy) -> Answer:
    """The policy as it was attached, and its revision."""
    policy = _policy(_resource(engine, request.resource_arn))
    if policy is None:
        raise PolicyNotFoundException(f"{_NOT_FOUND}{request.resource_arn}")
    return {"Policy": policy.document, "RevisionId": policy.revision}


@action("DeleteResourcePolicy", writing=(_RESOURCE, _REVISION))
def delete_resource_policy(engine: Engine, request: DeleteResourcePolicy) -> Answer:
    """Remove a policy, and return its revision. Without an expected revision, a missing policy is no error."""
    resource = _resource(engine, request.resource_arn)
    policy = _policy(resource)
    if policy is None:
        return {}
    _save(engine, resource, None)
    return {"RevisionId": policy.revision}


def policy_document(engine: Engine, arn: str) -> str | None:
    """The policy that applies to a resource: a stream has its own, an index has its table's."""
    found = _WITH_POLICY.fullmatch(arn)
    if found is None:
        return None
    if found[2] is not None:
        with suppress(ResourceNotFoundException, ValidationException):
            own = stream_of_arn(engine, arn).policy
            return None if own is None else own.document
        return None
    table = engine.catalog.find(found[1])
    policy = None if table is None else table.schema.policy
    return None if policy is None else policy.document


def new_policy(engine: Engine, document: str, previous: Policy | None = None) -> Policy:
    """A policy with a new revision, which is the time in milliseconds."""
    now = milliseconds(engine.clock)
    return Policy(document, str(now if previous is None else max(now, int(previous.revision) + 1)))


def _check_revision(resource: StoredTable | Stream, expected: str | None) -> None:
    policy = _policy(resource)
    if expected is None or expected == (_NO_POLICY if policy is None else policy.revision):
        return
    name = resource.name if isinstance(resource, StoredTable) else resource.table
    if policy is None:
        wrong = _UPDATE_OF_NONE.format(expected=expected, name=name)
    elif expected == _NO_POLICY:
        wrong = _NONE_EXPECTED.format(name=name, present=policy.revision)
    else:
        wrong = _OTHER_EXPECTED.format(expected=expected, name=name, present=policy.revision)
    raise PolicyNotFoundException(f"{_NOT_FOUND}{wrong}")


def _resource(engine: Engine, arn: str) -> StoredTable | Stream:
    check_arn(arn)
    parts = _RESOURCE_ARN.fullmatch(arn)
    if parts is None:
        raise ValidationException(f"Invalid ResourceArn: {arn} is not that of a table or a stream")
    if parts[2] is not None:
        return stream_of_arn(engine, arn)
    table = changed_table(engine, parts[1])
    table_of_arn(engine, arn)  # refuses an ARN of another region or account
    return table


def _policy(resource: StoredTable | Stream) -> Policy | None:
    return resource.schema.policy if isinstance(resource, StoredTable) else resource.policy


def _save(engine: Engine, resource: StoredTable | Stream, policy: Policy | None) -> None:
    if isinstance(resource, StoredTable):
        engine.catalog.save(msgspec.structs.replace(resource.schema, policy=policy))
    else:
        streams.save(engine, msgspec.structs.replace(resource, policy=policy))


def _is_equal(one: str, other: str) -> bool:
    return bool(_parsed(one) == _parsed(other))


# Documents

_VERSIONS: Final = ("2012-10-17", "2008-10-17")
_EFFECTS: Final = ("Allow", "Deny")
_EITHER: Final = (
    ("Principal", "NotPrincipal"),
    ("Action", "NotAction"),
    ("Resource", "NotResource"),
)
_MEMBERS: Final = frozenset({"Version", "Id", "Statement"})
_STATEMENT_MEMBERS: Final = frozenset(
    {"Sid", "Effect", "Condition", *(name for names in _EITHER for name in names)}
)
_ACTION: Final = re.compile(r"\*|[A-Za-z0-9-]+:[A-Za-z0-9*?]+")
_ARN: Final = re.compile(r"\*|arn:.+:.+:.*:.*:.+")


def check_policy(document: str) -> None:
    """Check that a policy is a valid IAM policy document with a principal, within the size limit."""
    if len(document.encode()) > limits.POLICY:
        raise ValidationException(
            f"Resource-based policy must be at most {limits.POLICY} bytes, "
            f"this one has {len(document.encode())}"
        )
    policy = _parsed(document)
    if not isinstance(policy, dict):
        raise _malformed("it must be a JSON object")
    _check_members(policy, _MEMBERS, "the policy")
    if policy.get("Version", _VERSIONS[0]) not in _VERSIONS:
        raise _malformed(f"Version must be one of {', '.join(_VERSIONS)}")
    statements = policy.get("Statement")
    if isinstance(statements, dict):
        statements = [statements]
    if not isinstance(statements, list) or not statements:
        raise _malformed("Statement must be a statement, or a list of them")
    for statement in statements:
        _check_statement(statement)


def _check_statement(statement: Any) -> None:
    if not isinstance(statement, dict):
        raise _malformed("a statement must be a JSON object")
    _check_members(statement, _STATEMENT_MEMBERS, "a statement")
    if statement.get("Effect") not in _EFFECTS:
        raise _malformed(f"Effect must be one of {', '.join(_EFFECTS)}")
    for names in _EITHER:
        given = [name for name in names if name in statement]
        if len(given) != 1:
            raise _malformed(f"a statement must have exactly one of {' and '.join(names)}")
        _RULES[names[0]](given[0], statement[given[0]])
    if not isinstance(statement.get("Condition", {}), dict):
        raise _malformed("Condition must be a JSON object")


def _check_principal(name: str, value: Any) -> None:
    if value == "*":
        return
    if not isinstance(value, dict) or not value:
        raise _malformed(f'{name} must be "*" or a JSON object')
    for kind, names in value.items():
        if kind not in ("AWS", "Service", "Federated", "CanonicalUser") or not _texts(names):
            raise _malformed(f"{name} has an invalid principal: {kind}")


def _check_actions(name: str, value: Any) -> None:
    if not all(map(_ACTION.fullmatch, _texts(value))) or not _texts(value):
        raise _malformed(f"{name} must be actions such as dynamodb:GetItem")


def _check_resources(name: str, value: Any) -> None:
    if not all(map(_ARN.fullmatch, _texts(value))) or not _texts(value):
        raise _malformed(f'{name} must be ARNs or "*"')


_RULES: Final[Mapping[str, Callable[[str, Any], None]]] = {
    "Principal": _check_principal,
    "Action": _check_actions,
    "Resource": _check_resources,
}


def _check_members(document: dict[str, Any], known: frozenset[str], what: str) -> None:
    unknown = sorted(set(document) - known)
    if unknown:
        raise _malformed(f"{what} has the unknown element {unknown[0]}")


def _texts(value: Any) -> list[str]:
    """A text or a list of texts as a list; empty for anything else."""
    values = value if isinstance(value, list) else [value]
    return values if all(isinstance(each, str) for each in values) else []


def _parsed(document: str) -> Any:
    try:
        return msgspec.json.decode(document)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        raise _malformed("it is not valid JSON") from None


def _malformed(problem: str) -> ValidationException:
    return ValidationException(f"Resource-based policy is malformed: {problem}")
