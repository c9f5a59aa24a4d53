"""With --credentials or --audit-log: authenticates and authorizes each request before the dispatcher, and logs it.

With credentials it verifies the signature before the body is decompressed or decoded, and the permissions before the
dispatcher sees the request. Permissions that take long to look up are looked up in the thread for long work. SIGHUP reloads
the users. A server with neither credentials nor an audit log has no gate.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from typing import Final, NamedTuple, TypeVar

import msgspec

from isotone.clock import Clock
from isotone.errors import (
    ApiError,
    ConnectionFailed,
    TakesLong,
    UnrecognizedClientException,
    UsageError,
)
from isotone.server.audit import AuditEntry, AuditLog, TornLine, tables_of
from isotone.server.auth import parse_signature
from isotone.server.dispatcher import (
    Address,
    Deliver,
    Dispatcher,
    Result,
    Service,
    logged_failure,
)
from isotone.server.policies import Permissions, PolicyContext, PolicyQuery, check_user
from isotone.server.request import (
    Caller,
    Decoded,
    Note,
    Read,
    Received,
    ServiceCall,
    by_lower_name,
    operation_of,
    read,
    read_verified,
)
from isotone.server.response import HttpRefusal, PlainResponse
from isotone.server.signatures import UNKNOWN_KEY, Verifier
from isotone.server.users import Users, read_users, readable_by_others

T = TypeVar("T")

_AWS_CHUNKED: Final = b"aws-chunked"
_WARNED_OF: Final[set[str]] = set()
"""The credentials files that others may read; processes that are forked inherit them."""

log: logging.Logger = logging.getLogger("isotone.server")


class Authenticator:
    """Authenticates requests by the users of a credentials file, and checks the users' permissions."""

    def __init__(self, credentials: str | PathLike[str], clock: Clock) -> None:
        self._credentials = credentials
        self._clock = clock
        self._users, self._permissions = _loaded(credentials)
        self._verifier = Verifier(self._users.find_key, clock)

    def reload(self) -> None:
        """Read the credentials again. If the file is broken, the old ones stay in use."""
        try:
            self._users, self._permissions = _loaded(self._credentials)
        except (UsageError, OSError) as error:
            log.error("the credentials stay as they are: %s", error)
            return
        self._verifier.use(self._users.find_key)
        log.info("the credentials were read again: %d users", len(self._users.by_name))

    def verified(
        self,
        source: str,
        secure: bool,
        method: bytes,
        url: bytes,
        headers: dict[bytes, bytes],
        body: bytes,
    ) -> tuple[Caller, str, bytes]:
        """The caller of a request, its region, and its body without chunk signatures. Raises the service's error."""
        found = self._verifier.verify(method, url, headers, body, secure=secure)
        if found.in_chunks:
            codings = headers.get(b"content-encoding", b"").lower().split(b",")
            rest = [coding.strip() for coding in codings if coding.strip() != _AWS_CHUNKED]
            headers[b"content-encoding"] = b",".join(rest)
        caller = Caller(found.login.key.access_key_id, found.login.name, source, secure)
        return caller, found.region, found.body

    def needs_check(self, caller: Caller | None) -> bool:
        """Whether a caller's permissions are limited. Raises the service's error for an unknown user."""
        if caller is None or caller.user not in self._permissions:  # removed meanwhile
            raise UnrecognizedClientException(UNKNOWN_KEY)
        return not self._permissions[caller.user].are_all

    def check(self, call: ServiceCall, account: str, needed: Sequence[PolicyQuery]) -> None:
        """Raise the service's error if the user lacks a permission that a request needs."""
        caller = call.caller
        assert caller is not None
        assert caller.user is not None
        permissions = self._permissions.get(caller.user)
        if permissions is None:  # removed meanwhile
            raise UnrecognizedClientException(UNKNOWN_KEY)
        context = PolicyContext(
            caller.user, account, call.region, caller.source, caller.secure, self._clock.now()
        )
        for access in needed:
            refused = permissions.refusal(access, context)
            if refused is not None:
                raise refused


class Permit(NamedTuple):
    """The permissions that a request needs, if they were looked up, and the error if its user lacks one."""

    needed: Sequence[PolicyQuery] = ()
    refused: ApiError | ConnectionFailed | None = None


class Gate:
    """Takes requests in place of a dispatcher, and passes on those that it does not refuse; for one event loop."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        service: Service,
        authenticator: Authenticator | None,
        audit: AuditLog | None,
    ) -> None:
        self._dispatcher = dispatcher
        self._service = service
        self._authenticator = authenticator
        self._audit = audit

    def reload(self) -> None:
        """Read the credentials again, and open the audit log again."""
        if self._authenticator is not None:
            self._authenticator.reload()
        if self._audit is not None:
            self._audit.reopen()

    def share_log(self, torn: TornLine) -> None:
        """Share the audit log with other processes."""
        if self._audit is not None:
            self._audit.use(torn)

    def stop(self) -> None:
        """Close the audit log."""
        if self._audit is not None:
            self._audit.close()

    # Reading

    def reader(self, transport: asyncio.BaseTransport) -> Read:
        """The function that decodes the requests of a connection."""
        if self._authenticator is None:
            return read
        verify = partial(self._authenticator.verified, _source(transport), _is_secure(transport))
        return partial(read_verified, verify=verify)

    def notes(self, transport: asyncio.BaseTransport) -> list[Note]:
        """The functions that see each decoded request of a connection: one for the audit log, if there is one."""
        if self._audit is None:
            return []
        return [partial(self._note, self._audit, _source(transport), _is_secure(transport))]

    @staticmethod
    def _note(
        audit: AuditLog,
        source: str,
        secure: bool,
        request: Decoded,
        received: Received,
    ) -> Decoded:
        """Add the claimed access key to a request that is not verified; log a request that was refused already."""
        if type(request) is ServiceCall:
            if request.caller is not None:
                return request
            key = _claimed_key(received.headers, received.url) or ""
            return msgspec.structs.replace(request, caller=Caller(key, None, source, secure))
        if type(request) is HttpRefusal or (
            type(request) is PlainResponse and request.status >= 400
        ):
            entry = AuditEntry(
                key=_claimed_key(received.headers, received.url),
                source=source,
                action=operation_of(received.headers),
            )
            result = request.error if isinstance(request, HttpRefusal) else request.status
            audit.write(entry, result)
        return request

    def refused(self, transport: asyncio.BaseTransport, page: PlainResponse) -> None:
        """Log a request that was refused before it was decoded."""
        if self._audit is not None:
            self._audit.write(AuditEntry(source=_source(transport)), page.status)

    # The methods of a dispatcher

    def submit(self, call: ServiceCall, deliver: Deliver) -> Result | None:
        """The result of a request, as `Dispatcher.submit` returns it; the service's error if its user lacks permission."""
        try:
            needs_check = self._needs_check(call)
        except ApiError as error:
            return self._submit_or_refuse(call, deliver, Permit(refused=error))
        except Exception as error:  # noqa: BLE001 - an error must neither end the connection nor grant access
            return self._submit_or_refuse(
                call, deliver, Permit(refused=logged_failure(error, call.operation))
            )
        if not needs_check and self._audit is None:
            return self._dispatcher.submit(call, deliver)
        if not self._service.is_long(call.operation, call.body):
            try:
                permit = self._permit(call, needs_check)
            except TakesLong:
                pass
            else:
                return self._submit_or_refuse(call, deliver, permit)
        look_up = partial(self._permit, call, needs_check)
        self._dispatcher.run_long(look_up, partial(self._submit_or_refuse_later, call, deliver))
        return None

    def _needs_check(self, call: ServiceCall) -> bool:
        """Whether the permissions of the user have to be checked."""
        return self._authenticator is not None and (
            self._authenticator.needs_check(call.caller)
            or self._service.has_policies(call.operation, call.region)
        )

    def _permit(self, call: ServiceCall, needs_check: bool) -> Permit:
        """The permissions that a request needs, and whether its user has them. Raises `TakesLong` if that takes long."""
        needed: Sequence[PolicyQuery] = ()
        refused: ApiError | ConnectionFailed | None = None
        try:
            needed = self._service.accesses(call.operation, call.body, call.region)
            if needs_check and self._authenticator is not None:
                self._authenticator.check(call, self._service.account, needed)
        except TakesLong:
            raise
        except ApiError as error:  # also for a malformed request, which needs no permission to fail
            refused = error
        except Exception as error:  # noqa: BLE001 - as in `submit`
            refused = logged_failure(error, call.operation)
        # For the audit log alone, an error here does not matter: the service reports its own.
        return Permit(needed, refused if needs_check else None)

    def _submit_or_refuse(
        self, call: ServiceCall, deliver: Deliver, permit: Permit
    ) -> Result | None:
        """Submit a request, or refuse it, and log the result."""
        if self._audit is None:
            return permit.refused or self._dispatcher.submit(call, deliver)
        caller = call.caller
        assert caller is not None
        entry = AuditEntry(
            key=caller.access_key_id or None,
            user=caller.user,
            source=caller.source,
            action=call.operation,
            tables=tables_of([each.resource for each in permit.needed]),
        )
        result: Result | None = permit.refused
        if result is None:
            result = self._dispatcher.submit(call, partial(self._answer, entry, deliver))
        if result is not None:
            self._audit.write(entry, result)
        return result

    def _submit_or_refuse_later(self, call: ServiceCall, deliver: Deliver, permit: Permit) -> None:
        result = self._submit_or_refuse(call, deliver, permit)
        if result is not None:
            deliver(result)

    def _answer(self, entry: AuditEntry, deliver: Deliver, result: Result) -> None:
        assert self._audit is not None
        self._audit.write(entry, result)
        deliver(result)

    def local_nodes(self, own: Address) -> bytes:
        return self._dispatcher.local_nodes(own)

    def run_long(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        self._dispatcher.run_long(work, then)


def _is_secure(transport: asyncio.BaseTransport) -> bool:
    return transport.get_extra_info("sslcontext") is not None


def _source(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) else ""


def _claimed_key(headers: Mapping[bytes, bytes], url: bytes) -> str | None:
    """The access key id in a signature, whether the signature is right or wrong."""
    lowered = by_lower_name(headers)
    signature = None if lowered is None else parse_signature(lowered, url.partition(b"?")[2])
    return None if signature is None else signature.access_key


def _loaded(credentials: str | PathLike[str]) -> tuple[Users, dict[str | None, Permissions]]:
    """The users of a credentials file, and the permissions of each."""
    users = read_users(credentials)
    for name, user in users.by_name.items():
        check_user(name, user)
    _warn_of_readers(credentials)
    return users, {name: Permissions(user) for name, user in users.by_name.items()}


def _warn_of_readers(credentials: str | PathLike[str]) -> None:
    """Warn once of a credentials file that others may read: it is read by the check of options, and by each process."""
    name = fspath(credentials)
    if not readable_by_others(name):
        _WARNED_OF.discard(name)
    elif name not in _WARNED_OF:
        _WARNED_OF.add(name)
        log.warning(
            "other users of this machine may read the secrets in %s: chmod 600 %s", name, name
        )
