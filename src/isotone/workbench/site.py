"""Answers the browser's requests: the page and its files, and the calls of its API.

    GET  /                        with Accept: text/html, a redirect to the page
    GET  /workbench/              the page
    GET  /workbench/assets/…      its files; their names have a hash of the content, so browsers keep them
    POST /workbench/api/NAME      a call, JSON to JSON (`calls`)

The page may load and call only its own origin, and run only its own files: no inline script, no `eval`. A call must
have the header `X-Isotone-Workbench`; a page of another origin can send it only after a preflight, which is never
granted. The modules behind the calls are imported when the page is first requested, so that a server starts as fast
without them. Calls are answered with status 200, even errors: `{"error": {…}}` is a value that the page shows.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import mimetypes
from collections.abc import Awaitable, Mapping, Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from isotone.backends.interface import Backend
from isotone.errors import ApiError, IsotoneError, UsageError
from isotone.server.pages import PageHandler, PageRequest
from isotone.server.response import NOT_FOUND, Header, PlainResponse
from isotone.tables.threads import in_thread
from isotone.workbench.source import Call, Source

if TYPE_CHECKING:
    from isotone.advisor.simulation import Workload
    from isotone.model import Table
    from isotone.workbench.calls import WorkbenchCalls
    from isotone.workbench.designs import DesignSource

PATH: Final = "/workbench/"
HEADER: Final = "x-isotone-workbench"
FILES: Final = Path(__file__).parent / "static"

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SECURITY: Final[tuple[Header, ...]] = (
    (b"Content-Security-Policy", _POLICY.encode()),
    (b"X-Content-Type-Options", b"nosniff"),
    (b"X-Frame-Options", b"DENY"),
    (b"Referrer-Policy", b"no-referrer"),
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (b"Cross-Origin-Resource-Policy", b"same-origin"),
)
_FOREVER: Final = b"public, max-age=31536000, immutable"
_COMPRESSED: Final = (".js", ".css", ".html", ".svg", ".json")
# Bytes of an answer. Compressing a smaller one takes longer than sending it on loopback.
_WORTH_COMPRESSING: Final = 1 << 20

_UNKNOWN: Final = PlainResponse(
    404,
    b"<!doctype html><html lang=en><meta charset=utf-8><title>Not found</title>"
    b"<h1>Nothing is at this address</h1><p>The workbench is at <a href=/workbench/>/workbench/</a>.</p></html>",
    headers=((b"Content-Type", b"text/html; charset=utf-8"), *_SECURITY),
)

log: logging.Logger = logging.getLogger("isotone.workbench")


class Workbench:
    """The pages of one engine, for `isotone.server.serve(…, pages=Workbench(…))`.

    `target` names the engine for people. Without `writable` it starts in safe mode: writes are refused until the user
    unlocks them. `tables` are those of a loaded model. `is_endpoint` tells whether the same server answers the API of the engine:
    then code that is copied connects to it. `tour` has the calls of a guided tour,
    with which the page then begins. `workload` is simulated when the page asks for it. `snapshots` is the folder of its
    snapshots, by default one beside a file, or in the user's folder for data. `queries` is the file of its saved
    queries; without it, the browser keeps them. `design` has the models whose designs are shown. `calls` are further
    calls of the page.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        target: str,
        writable: bool = True,
        tables: Sequence[Table] = (),
        remote: bool = False,
        is_endpoint: bool = True,
        tour: Mapping[str, Call] | None = None,
        calls: Mapping[str, Call] | None = None,
        workload: Workload | None = None,
        snapshots: str | PathLike[str] | None = None,
        queries: str | PathLike[str] | None = None,
        design: DesignSource | None = None,
    ) -> None:
        self._source = Source(
            backend,
            target,
            tuple(tables),
            remote,
            writable,
            is_endpoint,
            tour or {},
            calls or {},
            workload,
            None if snapshots is None else Path(snapshots).absolute(),
            None if queries is None else Path(queries).absolute(),
            design,
        )
        self._files: dict[str, Path] = {}
        self._loading: asyncio.Future[WorkbenchCalls] | None = None

    def __call__(self, request: PageRequest) -> PageHandler | None:
        """The method that answers a request; None for a path outside of the workbench."""
        path = request.path.decode("latin-1")
        if path == "/" and request.method == b"GET":
            accepted = request.headers.get(b"accept", b"")
            return self._redirect if b"text/html" in accepted else None
        if path == PATH.rstrip("/"):
            return self._redirect
        if not path.startswith(PATH):
            return None
        return self._call if path.startswith(f"{PATH}api/") else self._file

    async def _redirect(self, request: PageRequest) -> PlainResponse:
        return PlainResponse(302, headers=((b"Location", PATH.encode()), *_SECURITY))

    async def _file(self, request: PageRequest) -> PlainResponse:
        name = request.path.decode("latin-1").removeprefix(PATH) or "index.html"
        if name == "index.html":
            self._calls()  # while the browser reads the page
        found = self._files.get(name) or self._look_again().get(name)
        if found is None or request.method != b"GET":
            wants_page = b"text/html" in request.headers.get(b"accept", b"")
            return _UNKNOWN if wants_page else NOT_FOUND
        kind = (mimetypes.guess_type(name)[0] or "application/octet-stream").encode()
        if kind.startswith(b"text/"):
            kind += b"; charset=utf-8"
        keep = _FOREVER if name.startswith("assets/") else b"no-cache"
        headers: tuple[Header, ...] = (
            (b"Content-Type", kind),
            (b"Cache-Control", keep),
            (b"Vary", b"Accept-Encoding"),
            *_SECURITY,
        )
        if name.endswith(_COMPRESSED) and b"gzip" in request.headers.get(b"accept-encoding", b""):
            zipped = await in_thread(_zipped, found, found.stat().st_mtime_ns)
            return PlainResponse(200, zipped, headers=(*headers, (b"Content-Encoding", b"gzip")))
        return PlainResponse(200, found.read_bytes(), headers=headers)

    def _look_again(self) -> dict[str, Path]:
        """Find the built files by path, even those of a new build; no other path is ever opened."""
        self._files = {
            path.relative_to(FILES).as_posix(): path for path in FILES.rglob("*") if path.is_file()
        }
        return self._files

    def _calls(self) -> asyncio.Future[WorkbenchCalls]:
        """The object that answers the calls."""
        if self._loading is None:
            self._loading = in_thread(_load, self._source)
        return self._loading

    async def _call(self, request: PageRequest) -> PlainResponse:
        if request.method != b"POST" or HEADER.encode() not in request.headers:
            return await _json({"error": _refusal()}, status=403)
        name = request.path.decode("latin-1").removeprefix(f"{PATH}api/")
        answer = await _answered(name, await self._calls(), request.body)
        return await _json(answer, gzip_it=b"gzip" in request.headers.get(b"accept-encoding", b""))


def _load(source: Source) -> WorkbenchCalls:
    from isotone.workbench.calls import WorkbenchCalls

    return WorkbenchCalls(source)


async def _answered(name: str, calls: WorkbenchCalls, body: bytes) -> dict[str, Any]:
    try:
        method = calls.by_name(name)
        try:
            given = msgspec.json.decode(body or b"{}")
        except RecursionError:
            raise UsageError(f"the body of the call {name!r} is nested too deeply") from None
        if not isinstance(given, dict):
            raise UsageError(f"the body of the call {name!r} must be a JSON object")
        answer: Awaitable[dict[str, Any]] = method(given)
        return await answer
    except ApiError as error:
        wire = error.body()
        return {"error": {**wire, "code": error.code, "message": error.message or str(error)}}
    except msgspec.DecodeError as error:
        return {"error": {"code": "BadRequest", "message": f"this is not JSON: {error}"}}
    except IsotoneError as error:
        return {"error": {"code": type(error).__name__, "message": str(error)}}
    except Exception as error:
        log.exception("the call %s failed", name)
        return {
            "error": {
                "code": "Unexpected",
                "message": f"the workbench failed: {type(error).__name__}: {error}; its log has more",
            }
        }


def _refusal() -> dict[str, str]:
    return {"code": "Refused", "message": f"a call is a POST with the header {HEADER}"}


async def _json(
    answer: dict[str, Any], *, status: int = 200, gzip_it: bool = False
) -> PlainResponse:
    body = msgspec.json.encode(answer)
    headers: tuple[Header, ...] = (
        (b"Content-Type", b"application/json"),
        (b"Cache-Control", b"no-store"),
        *_SECURITY,
    )
    if gzip_it and len(body) > _WORTH_COMPRESSING:
        body = await in_thread(gzip.compress, body, 1)
        headers = (*headers, (b"Content-Encoding", b"gzip"))
    return PlainResponse(status, body, headers=headers)


@lru_cache
def _zipped(path: Path, changed: int) -> bytes:
    return gzip.compress(path.read_bytes(), 9, mtime=0)
