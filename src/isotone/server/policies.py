"""Evaluates IAM policies (AccessDeniedException): Effect, Action, Resource, Condition; --tables, --actions of users.

A policy is a list of statements. A permission is an action on a resource, with condition keys. It is allowed if a
statement allows it and none denies it: an explicit Deny wins over every Allow. A user may have several rules
(read only, tables, actions, a policy), and all of them must allow.

Conditions are evaluated as in IAM. A key that a request does not have makes a condition false, except with `IfExists`,
a negated operator (`StringNotEquals`), and `ForAllValues:`, which make it true. That is why a Scan, which has no
leading keys, passes `ForAllValues:StringEquals` on `dynamodb:LeadingKeys`. A key with several values, without
`ForAllValues:` and `ForAnyValue:`, must match with all of them to allow, and with one of them to deny.

The policy of a table or a stream (`PutResourcePolicy`) counts as well. A Deny in it wins. An Allow in it that names the
user, or everybody, replaces an Allow in the user's policy, but not the user's other limits. An Allow that names the account
has no effect: the users' policies decide. A policy that cannot be evaluated denies everything but the actions on policies.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from isotone.errors import AccessDeniedException, UsageError
from isotone.server.users import User

READING: Final = (
    "BatchGetItem",
    "ConditionCheckItem",
    "Describe*",
    "Get*",
    "List*",
    "PartiQLSelect",
    "Query",
    "Scan",
    "SearchVectors",
)
"""The actions of a user who may only read."""

_SERVICE: Final = "dynamodb:"
_WITHOUT_TABLE: Final = ("DescribeEndpoints", "DescribeLimits")  # name no table
_TABLE_OF_ARN: Final = re.compile(
    r"arn:[^:]*:dynamodb:[^:]*:[^:]*:(?:table|global-table)/([^/]+).*"
)
_SEGMENTS: Final = 6  # of an ARN
_LITERAL: Final = "\0"  # escapes a character of a value that is not a wildcard

log: logging.Logger = logging.getLogger("isotone.server")


class PolicyQuery(Protocol):
    """A permission that a request needs."""

    @property
    def action(self) -> str: ...

    @property
    def resource(self) -> str: ...

    @property
    def policy(self) -> str | None:
        """The policy document of the resource, if it has one."""

    def values(self, key: str) -> Sequence[str] | None:
        """The values of a condition key `dynamodb:…` (`key`: its name in lower case, without prefix); None without any."""


class PolicyContext(NamedTuple):
    """The user and the address of a request: the values of the condition keys `aws:…`."""

    user: str
    account: str
    region: str
    source: str
    secure: bool
    now: float

    @property
    def arn(self) -> str:
        return f"arn:aws:iam::{self.account}:user/{self.user}"


_CONTEXT_KEYS: Final[Mapping[str, Callable[[PolicyContext], str]]] = {
    "aws:currenttime": lambda context: (
        f"{datetime.fromtimestamp(context.now, UTC):%Y-%m-%dT%H:%M:%SZ}"
    ),
    "aws:epochtime": lambda context: str(int(context.now)),
    "aws:principalaccount": lambda context: context.account,
    "aws:principalarn": lambda context: context.arn,
    "aws:principaltype": lambda context: "User",
    "aws:requestedregion": lambda context: context.region,
    "aws:securetransport": lambda context: str(context.secure).lower(),
    "aws:sourceip": lambda context: context.source,
    "aws:userid": lambda context: context.user,
    "aws:username": lambda context: context.user,
}
_ACCESS_KEYS: Final = frozenset(
    {
        "attributes",
        "enclosingoperation",
        "firstpartitionkeyvalues",
        "fourthpartitionkeyvalues",
        "fulltablescan",
        "leadingkeys",
        "returnconsumedcapacity",
        "returnvalues",
        "secondpartitionkeyvalues",
        "select",
        "thirdpartitionkeyvalues",
    }
)


class Decision(Enum):
    """The decision of a rule about a permission."""

    ALLOWED = "allowed"
    DENIED = "denied"  # by a statement
    NOT_ALLOWED = "not allowed"  # by any statement


Rule = Callable[[PolicyQuery, PolicyContext], Decision]


class Permissions:
    """The permissions of one user: the limits, and the policy."""

    def __init__(self, user: User) -> None:
        self._limits = tuple(_limits_of(user))
        self._policy = None if user.policy is None else policy(user.policy)

    @property
    def are_all(self) -> bool:
        """Whether the user may do everything that no policy of a resource denies."""
        return not self._limits and self._policy is None

    def refusal(self, access: PolicyQuery, context: PolicyContext) -> AccessDeniedException | None:
        """The service's error if the user lacks a permission."""
        action = _SERVICE + access.action
        why = f"because no identity-based policy allows the {action} action"
        # Limits come first: a policy's conditions may have to read the table.
        if all(limit(access, context) is Decision.ALLOWED for limit in self._limits):
            own = Decision.ALLOWED if self._policy is None else self._policy(access, context)
            of_resource = Decision.NOT_ALLOWED
            if access.policy is not None:
                of_resource = _rule_of_resource(access.policy)(access, context)
            if own is Decision.DENIED:
                why = "with an explicit deny in an identity-based policy"
            elif of_resource is Decision.DENIED:
                why = "with an explicit deny in a resource-based policy"
            elif Decision.ALLOWED in (own, of_resource):
                return None
        return AccessDeniedException(
            f"User: {context.arn} is not authorized to perform: {action} on resource: {access.resource} {why}"
        )


def _limits_of(user: User) -> Iterator[Rule]:
    if user.read_only:
        yield _only_actions(READING)
    if user.actions is not None:
        yield _only_actions(tuple(map(_plain_action, user.actions)))
    if user.tables is not None:
        yield _only_tables(tuple(user.tables))


def _plain_action(pattern: str) -> str:
    return pattern[len(_SERVICE) :] if pattern.lower().startswith(_SERVICE) else pattern


def _only_actions(patterns: tuple[str, ...]) -> Rule:
    def rule(access: PolicyQuery, _: PolicyContext) -> Decision:
        allowed = any(_matches(pattern, access.action, fold=True) for pattern in patterns)
        return Decision.ALLOWED if allowed else Decision.NOT_ALLOWED

    return rule


def _only_tables(patterns: tuple[str, ...]) -> Rule:
    """Allows tables by name, with their indexes, streams and backups; and the actions that name no table."""

    def rule(access: PolicyQuery, _: PolicyContext) -> Decision:
        found = _TABLE_OF_ARN.fullmatch(access.resource)
        if found is None:
            allowed = access.action in _WITHOUT_TABLE
        else:
            allowed = any(_matches(pattern, found[1]) for pattern in patterns)
        return Decision.ALLOWED if allowed else Decision.NOT_ALLOWED

    return rule


# Policies


Test = Callable[[PolicyQuery, PolicyContext], bool]


class _Statement(msgspec.Struct, frozen=True):
    denies: bool
    tests: tuple[Test, ...]

    def applies(self, access: PolicyQuery, context: PolicyContext) -> bool:
        return all(test(access, context) for test in self.tests)


def policy(document: Mapping[str, Any], *, of_resource: bool = False) -> Rule:
    """The rule of a policy document, of a user or of a resource. Raises `UsageError` if it is invalid."""
    _only_members(document, {"Version", "Id", "Statement"}, "the policy")
    version = document.get("Version", "2008-10-17")
    if version not in ("2012-10-17", "2008-10-17"):
        raise UsageError(f"Version is {version!r}; write 2012-10-17")
    listed = document.get("Statement")
    statements = [
        _statement(each, number, with_variables=version == "2012-10-17", of_resource=of_resource)
        for number, each in enumerate(listed if isinstance(listed, list) else [listed], 1)
    ]

    def rule(access: PolicyQuery, context: PolicyContext) -> Decision:
        decision = Decision.NOT_ALLOWED
        for statement in statements:
            is_decisive = statement.denies or decision is Decision.NOT_ALLOWED
            if is_decisive and statement.applies(access, context):
                if statement.denies:
                    return Decision.DENIED
                decision = Decision.ALLOWED
        return decision

    return rule


@lru_cache(maxsize=64)
def _rule_of_resource(document: str) -> Rule:
    """The rule of a resource's policy. `PutResourcePolicy` has checked its form."""
    try:
        return policy(msgspec.json.decode(document), of_resource=True)
    except UsageError as error:
        log.warning("the policy of a table or a stream denies everything: %s", error)
    return _deny_all_but_policies


def _deny_all_but_policies(access: PolicyQuery, _: PolicyContext) -> Decision:
    return Decision.NOT_ALLOWED if access.action.endswith("ResourcePolicy") else Decision.DENIED


def check_user(name: str, user: User) -> None:
    """Raise `UsageError` for a user whose rules are invalid."""
    try:
        Permissions(user)
    except UsageError as error:
        raise UsageError(f"the policy of {name} cannot be used: {error}") from None


_MEMBERS: Final = {
    "Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition",
}  # fmt: skip
_PRINCIPALS: Final = {"Principal", "NotPrincipal"}


def _statement(
    document: Any, number: int, *, with_variables: bool, of_resource: bool
) -> _Statement:
    where = f"statement {number}"
    if not isinstance(document, dict):
        raise UsageError(f"{where} is not a JSON object")
    if not of_resource and not _PRINCIPALS.isdisjoint(document):
        raise UsageError(f"{where} has a Principal, which the policy of a user cannot have")
    _only_members(document, _MEMBERS | _PRINCIPALS if of_resource else _MEMBERS, where)
    effect = document.get("Effect")
    if effect not in ("Allow", "Deny"):
        raise UsageError(f"{where} has the Effect {effect!r}; write Allow or Deny")
    denies = effect == "Deny"
    tests = [_action_test(document, where), _resource_test(document, where, with_variables)]
    if of_resource:
        tests.append(_principal_test(document, denies=denies))
    conditions = document.get("Condition", {})
    if not isinstance(conditions, dict):
        raise UsageError(f"{where} has a Condition that is not a JSON object")
    for operator, keys in conditions.items():
        if not isinstance(keys, dict):
            raise UsageError(f"{where}: {operator} needs a JSON object of condition keys")
        for key, values in keys.items():
            tests.append(
                _condition(
                    operator, key, values, where, denies=denies, with_variables=with_variables
                )
            )
    return _Statement(denies, tuple(tests))


def _only_members(document: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(document) - known)
    if unknown:
        raise UsageError(f"{where} has the unknown element {unknown[0]}")


def _texts(value: Any, what: str) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and _LITERAL not in text for text in texts):
        raise UsageError(f"{what} needs a string, or a list of strings")
    return texts


def _either(document: Mapping[str, Any], name: str, where: str) -> tuple[list[str], bool]:
    """The texts of an element or of its negation (`Action`, `NotAction`), and whether it is the negation."""
    names = [each for each in (name, f"Not{name}") if each in document]
    if len(names) != 1:
        raise UsageError(f"{where} needs either {name} or Not{name}")
    return _texts(document[names[0]], f"{names[0]} of {where}"), names[0] != name


def _action_test(document: Mapping[str, Any], where: str) -> Test:
    patterns, negated = _either(document, "Action", where)
    for pattern in patterns:
        if pattern != "*" and ":" not in pattern:
            raise UsageError(f"{where} has the action {pattern!r}; write dynamodb:{pattern}")

    def test(access: PolicyQuery, _: PolicyContext) -> bool:
        action = _SERVICE + access.action
        return any(_matches(each, action, fold=True) for each in patterns) is not negated

    return test


def _resource_test(document: Mapping[str, Any], where: str, with_variables: bool) -> Test:
    patterns, negated = _either(document, "Resource", where)
    for pattern in patterns:
        if pattern != "*" and (
            len(pattern.split(":")) < _SEGMENTS or not pattern.startswith("arn:")
        ):
            raise UsageError(
                f"{where} has the resource {pattern!r}; write * or an ARN, "
                "such as arn:aws:dynamodb:*:*:table/Orders"
            )
        _check_variables(pattern, where, with_variables)

    def test(access: PolicyQuery, context: PolicyContext) -> bool:
        return (
            any(_arn_matches(_filled(each, context), access.resource) for each in patterns)
            is not negated
        )

    return test


def _principal_test(document: Mapping[str, Any], *, denies: bool) -> Test:
    """Whether a statement applies to the user. An Allow for the account does not: the users' policies decide."""
    negated = "NotPrincipal" in document
    written = document["NotPrincipal" if negated else "Principal"]
    listed = written.get("AWS", []) if isinstance(written, dict) else written
    names = frozenset(listed if isinstance(listed, list) else [listed])
    with_account = denies or negated

    def test(_: PolicyQuery, context: PolicyContext) -> bool:
        account = {context.account, f"arn:aws:iam::{context.account}:root"}
        found = not names.isdisjoint({"*", context.arn, *(account if with_account else ())})
        return found is not negated

    return test


def _arn_matches(pattern: str | None, arn: str) -> bool:
    """Whether an ARN matches a pattern. A wildcard matches no colon, except in the last of the six segments."""
    if pattern is None:
        return False
    if pattern == "*":
        return True
    forms, parts = pattern.split(":", _SEGMENTS - 1), arn.split(":", _SEGMENTS - 1)
    return len(parts) == _SEGMENTS and all(map(_matches, forms, parts))


# Wildcards and variables


@lru_cache(maxsize=1024)
def _compiled(pattern: str, fold: bool) -> re.Pattern[str]:
    pieces = [""]
    characters = iter(pattern)
    for character in characters:
        if character == "*":
            pieces.append("")
        elif character == "?":
            pieces[-1] += "."
        else:
            pieces[-1] += re.escape(next(characters) if character == _LITERAL else character)
    first, *middle = pieces
    if middle:  # atomic groups: no backtracking, so no text takes long
        *middle, last = middle
        first += "".join(f"(?>.*?{piece})" for piece in middle if piece) + ".*" + last
    return re.compile(first, re.DOTALL | (re.IGNORECASE if fold else 0))


def _matches(pattern: str, text: str, *, fold: bool = False) -> bool:
    return _compiled(pattern, fold).fullmatch(text) is not None


_WILDCARD: Final = re.compile(r"[*?]")
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")


def _variable(text: str) -> tuple[str, str | None]:
    """The key of a policy variable `${key, 'default'}` in lower case, and its default."""
    key, separator, default = text.partition(",")
    return key.strip().lower(), default.strip().strip("'") if separator else None


def _check_variables(text: str, where: str, with_variables: bool) -> None:
    for found in _VARIABLE.finditer(text):
        key, _ = _variable(found[1])
        if not with_variables:
            raise UsageError(f"{where} has {found[0]}, which needs the Version 2012-10-17")
        if key not in ("*", "?", "$") and key not in _CONTEXT_KEYS:
            raise UsageError(f"{where} has {found[0]}, a variable that this server does not know")


def _filled(text: str, context: PolicyContext) -> str:
    """A text with its variables replaced. Wildcard characters in their values are escaped."""
    if "${" not in text:
        return text

    def value(found: re.Match[str]) -> str:
        key, default = _variable(found[1])
        plain = key if key in ("*", "?", "$") else _CONTEXT_KEYS[key](context) or default or ""
        return _WILDCARD.sub(_LITERAL + r"\g<0>", plain)

    return _VARIABLE.sub(value, text)


def _plain(text: str) -> str:
    """A filled text without escapes, for operators without wildcards."""
    return text.replace(_LITERAL, "")


# Conditions


def _number(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a number") from None
    if not number.is_finite():
        raise ValueError(f"{text!r} is not a number")
    return number


def _moment(text: str) -> float:
    if re.fullmatch(r"[0-9]{1,12}(\.[0-9]+)?", text):
        return float(text)
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _in_network(address: str, network: str) -> bool:
    try:
        plain = ipaddress.ip_address(address.partition("%")[0])
        wanted = ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
    if isinstance(plain, ipaddress.IPv6Address) and plain.ipv4_mapped is not None:
        plain = plain.ipv4_mapped
    return plain in wanted


class _Operator(NamedTuple):
    """Compares a value of the request with one of the policy. `check` raises ValueError for an invalid value of a policy."""

    compare: Callable[[str, str], bool]
    negated: bool = False
    check: Callable[[str], object] = str


def _compared(
    convert: Callable[[str], Any], how: Callable[[Any, Any], bool]
) -> Callable[[str, str], bool]:
    def compare(value: str, wanted: str) -> bool:
        try:
            return how(convert(value), convert(_plain(wanted)))
        except ValueError:  # the request's value has another type
            return False

    return compare


def _ordered(name: str, convert: Callable[[str], Any]) -> dict[str, _Operator]:
    """The six operators of numbers or dates."""

    def operator(how: Callable[[Any, Any], bool], *, negated: bool = False) -> _Operator:
        return _Operator(_compared(convert, how), negated, convert)

    equal = lambda one, other: one == other  # noqa: E731
    return {
        f"{name}Equals": operator(equal),
        f"{name}NotEquals": operator(equal, negated=True),
        f"{name}LessThan": operator(lambda one, other: one < other),
        f"{name}LessThanEquals": operator(lambda one, other: one <= other),
        f"{name}GreaterThan": operator(lambda one, other: one > other),
        f"{name}GreaterThanEquals": operator(lambda one, other: one >= other),
    }


_EQUAL: Final = _compared(str, lambda one, other: one == other)
_EQUAL_FOLDED: Final = _compared(str.lower, lambda one, other: one == other)
_LIKE: Final = lambda value, wanted: _matches(wanted, value)  # noqa: E731
_LIKE_ARN: Final = lambda value, wanted: _arn_matches(wanted, value)  # noqa: E731
_IN: Final = lambda value, wanted: _in_network(value, _plain(wanted))  # noqa: E731
_OPERATORS: Final[Mapping[str, _Operator]] = {
    "StringEquals": _Operator(_EQUAL),
    "StringNotEquals": _Operator(_EQUAL, True),
    "StringEqualsIgnoreCase": _Operator(_EQUAL_FOLDED),
    "StringNotEqualsIgnoreCase": _Operator(_EQUAL_FOLDED, True),
    "StringLike": _Operator(_LIKE),
    "StringNotLike": _Operator(_LIKE, True),
    **_ordered("Numeric", _number),
    **_ordered("Date", _moment),
    "Bool": _Operator(_compared(_truth, lambda one, other: one == other), check=_truth),
    "IpAddress": _Operator(_IN, check=lambda text: ipaddress.ip_network(text, strict=False)),
    "NotIpAddress": _Operator(_IN, True, lambda text: ipaddress.ip_network(text, strict=False)),
    "ArnEquals": _Operator(_LIKE_ARN),
    "ArnNotEquals": _Operator(_LIKE_ARN, True),
    "ArnLike": _Operator(_LIKE_ARN),
    "ArnNotLike": _Operator(_LIKE_ARN, True),
}
_QUANTIFIERS: Final = ("ForAllValues", "ForAnyValue")


def _condition(
    written: str, key: str, wanted: Any, where: str, *, denies: bool, with_variables: bool
) -> Test:
    quantifier, separator, name = written.rpartition(":")
    if separator and quantifier not in _QUANTIFIERS:
        raise UsageError(
            f"{where} has the condition operator {written!r}, which is not one of IAM's"
        )
    read = _reader(key, where)
    values = wanted if isinstance(wanted, list) else [wanted]
    values = [
        str(each).lower() if isinstance(each, bool) else str(each)
        for each in values
        if isinstance(each, str | int | float)
    ]
    if not values or (isinstance(wanted, list) and len(values) < len(wanted)):
        raise UsageError(f"{where}: {written} of {key} needs a value, or a list of values")
    texts = _texts(values, f"{written} of {where}")
    if name == "Null":
        return _null(read, texts, where)
    if_exists = name.endswith("IfExists")
    operator = _OPERATORS.get(name.removesuffix("IfExists"))
    if operator is None:
        raise UsageError(
            f"{where} has the condition operator {written!r}, which this server does not know"
        )
    for text in texts:
        _check_variables(text, where, with_variables)
        _check_value(operator, text, f"{where}: {written} of {key}")
    return _PolicyCondition(read, operator, tuple(texts), quantifier, if_exists, denies)


def _check_value(operator: _Operator, text: str, where: str) -> None:
    if "${" in text:
        return
    try:
        operator.check(text)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None


Reader = Callable[[PolicyQuery, PolicyContext], Sequence[str] | None]


def _reader(key: str, where: str) -> Reader:
    """The function that reads a condition key's values from a request. Upper and lower case are the same."""
    folded = key.lower()
    if folded in _CONTEXT_KEYS:
        get = _CONTEXT_KEYS[folded]
        return lambda _, context: [get(context)]
    plain = folded.removeprefix(_SERVICE)
    if plain == folded or plain not in _ACCESS_KEYS:
        raise UsageError(f"{where} has the condition key {key!r}, which this server does not know")
    return lambda access, _: access.values(plain)


def _null(read: Reader, texts: Sequence[str], where: str) -> Test:
    """Whether a key is absent ("true") or present ("false")."""
    try:
        wanted = {_truth(text) for text in texts}
    except ValueError as error:
        raise UsageError(f"{where}: Null: {error}") from None
    return lambda access, context: (read(access, context) is None) in wanted


class _PolicyCondition(msgspec.Struct, frozen=True):
    """A condition: an operator on the values of a key."""

    read: Reader
    operator: _Operator
    wanted: tuple[str, ...]
    quantifier: str
    if_exists: bool
    denies: bool

    def __call__(self, access: PolicyQuery, context: PolicyContext) -> bool:
        values = self.read(access, context)
        if values is None:
            if self.quantifier:
                return self.quantifier == "ForAllValues" or self.if_exists
            return self.if_exists or self.operator.negated
        wanted = [_filled(text, context) for text in self.wanted]
        found = [self._is_met(value, wanted) for value in values]
        if self.quantifier == "ForAllValues":
            return all(found)
        return bool(found) and all(found) if not (self.quantifier or self.denies) else any(found)

    def _is_met(self, value: str, wanted: Sequence[str]) -> bool:
        """Whether one value of the policy matches; for a negated operator, whether none matches."""
        compare = self.operator.compare
        return any(compare(value, each) for each in wanted) is not self.operator.negated
