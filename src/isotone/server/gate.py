"""Lets in the requests of users: verifies each signature, and asks what its user may do.

A server without credentials has no gate. A gate reads the requests of its connections and stands before the
dispatcher: what it refuses is not decompressed, not decoded, and reaches no database.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from os import PathLike

from isotone.clock import Clock
from isotone.errors import ApiError, UnrecognizedClientException, UsageError
from isotone.server.dispatcher import (
    Address,
    Answer,
    Dispatcher,
    Result,
    Service,
    logged_failure,
)
from isotone.server.policies import Context, Permissions, check_user
from isotone.server.request import Call, Caller, Read, Spelling, read_verified
from isotone.server.response import Page, Refusal
from isotone.server.signatures import UNKNOWN_KEY, Verifier
from isotone.server.users import Users, read_users, readable_by_others

log = logging.getLogger("isotone.server")

_AWS_CHUNKED = b"aws-chunked"


class Gate:
    """Stands before a dispatcher; for one event loop."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        service: Service,
        credentials: str | PathLike[str],
        clock: Clock,
    ) -> None:
        self._dispatcher = dispatcher
        self._service = service
        self._credentials = credentials
        self._clock = clock
        self._users, self._permissions = _loaded(credentials)
        self._verifier = Verifier(self._users.find_key, clock)

    def reload(self) -> None:
        """Read the credentials again; those that are in use stay if the file is broken."""
        try:
            self._users, self._permissions = _loaded(self._credentials)
        except (UsageError, OSError) as error:
            log.error("the credentials stay as they are: %s", error)
            return
        self._verifier.use(self._users.find_key)
        log.info("the credentials were read again: %d users", len(self._users.by_name))

    def reader(self, transport: asyncio.BaseTransport) -> Read:
        """What reads the requests of a connection."""
        peer = transport.get_extra_info("peername")
        source = str(peer[0]) if isinstance(peer, tuple) else ""
        secure = transport.get_extra_info("sslcontext") is not None
        return partial(self._read, source, secure)

    def _read(
        self,
        source: str,
        secure: bool,
        method: bytes,
        url: bytes,
        headers: Mapping[bytes, bytes],
        spelled: Spelling,
        body: bytes,
    ) -> Call | Page | Refusal:
        verify = partial(self._verified, source, secure)
        return read_verified(method, url, headers, spelled, body, verify)

    def _verified(
        self,
        source: str,
        secure: bool,
        method: bytes,
        url: bytes,
        headers: dict[bytes, bytes],
        body: bytes,
    ) -> tuple[Caller, str, bytes]:
        found = self._verifier.verify(method, url, headers, body, secure=secure)
        if found.in_chunks:
            codings = headers.get(b"content-encoding", b"").lower().split(b",")
            rest = [coding.strip() for coding in codings if coding.strip() != _AWS_CHUNKED]
            headers[b"content-encoding"] = b",".join(rest)
        caller = Caller(found.login.key.access_key_id, found.login.name, source, secure)
        return caller, found.region, found.body

    def refused(self, transport: asyncio.BaseTransport, page: Page) -> None:
        """A request was refused before it was read."""

    # As a dispatcher

    def submit(self, call: Call, answer: Answer) -> Result | None:
        """The result of a request, as `Dispatcher.submit` returns it; the service's error if its user may not do it."""
        try:
            refused = self._refusal(call)
        except ApiError as error:  # of a request that cannot be read
            return error
        except Exception as error:  # noqa: BLE001 - an error must not end the connection, nor let anybody in
            return logged_failure(error, call.operation)
        return refused or self._dispatcher.submit(call, answer)

    def _refusal(self, call: Call) -> ApiError | None:
        """Why the user may not do what a request asks for."""
        caller = call.caller
        if caller is None or caller.user not in self._permissions:  # the user was removed meanwhile
            return UnrecognizedClientException(UNKNOWN_KEY)
        permissions = self._permissions[caller.user]
        if permissions.are_all:
            return None
        service = self._service.in_region(call.region)
        context = Context(
            caller.user,
            service.account,
            call.region,
            caller.source,
            caller.secure,
            self._clock.now(),
        )
        for access in service.accesses(call.operation, call.body):
            refused = permissions.refusal(access, context)
            if refused is not None:
                return refused
        return None

    def local_nodes(self, own: Address) -> bytes:
        return self._dispatcher.local_nodes(own)


def _loaded(credentials: str | PathLike[str]) -> tuple[Users, dict[str, Permissions]]:
    """The users of a file, and what each may do."""
    users = read_users(credentials)
    for name, user in users.by_name.items():
        check_user(name, user)
    if readable_by_others(credentials):
        log.warning(
            "other users of this machine may read the secrets in %s: chmod 600 %s",
            credentials,
            credentials,
        )
    return users, {name: Permissions(user) for name, user in users.by_name.items()}
