"""A small S3 server: objects in a dict, pages of lists, ranges, uploads in parts, and faults.

It checks each signature with botocore's own code, and knows nothing of Isotone's.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest import mock
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

ACCESS_KEY, SECRET_KEY = "AKIDS3", "secret/S3"
LAST_MODIFIED = "2026-01-01T00:00:00.000Z"


@dataclass
class S3Server:
    """`buckets` has the objects. `faults` are answers to the next requests: a status, "close" or "hang".

    `requests` are the method, path and query of each request. `denied` buckets refuse all.
    """

    url: str = ""
    buckets: dict[str, dict[str, bytes]] = field(default_factory=dict)
    page: int = 1000
    has_ranges: bool = True
    virtual_host: str | None = None
    faults: list[int | str] = field(default_factory=list)
    denied: set[str] = field(default_factory=set)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    released: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def s3_server(*buckets: str, **options: Any) -> Iterator[S3Server]:
    """A server with empty buckets."""
    state = S3Server(buckets={bucket: {} for bucket in buckets}, **options)
    handler = type("Handler", (_Handler,), {"state": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield state
        finally:
            state.released.set()
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    state: S3Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_any(self) -> Any:
        state = self.state
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        state.requests.append((self.command, parts.path, query))
        state.headers.append({name.lower(): value for name, value in self.headers.items()})
        if state.faults and self._fails(state.faults.pop(0)):
            return None
        if not self._is_signed(body):
            return self._error(403, "SignatureDoesNotMatch", "The signature does not match.")
        path = parts.path
        if state.virtual_host is not None:
            bucket = self.headers["host"].removesuffix("." + state.virtual_host)
            path = f"/{bucket}{path}"
        bucket, _, key = unquote(path)[1:].partition("/")
        if bucket in state.denied:
            return self._error(403, "AccessDenied", "Access Denied")
        objects = state.buckets.get(bucket)
        if objects is None:
            return self._error(404, "NoSuchBucket", "The specified bucket does not exist")
        action = getattr(self, f"_{self.command.lower()}")
        return action(objects, key, query, body)

    do_GET = do_PUT = do_POST = do_DELETE = do_any

    def _fails(self, fault: int | str) -> bool:
        if fault == "close":
            self.close_connection = True
        elif fault == "hang":
            self.state.released.wait(30)
            self.close_connection = True
        elif fault != 200:
            self._error(int(fault), "InternalError" if fault != 503 else "SlowDown", "Try again.")
        return fault != 200

    def _is_signed(self, body: bytes) -> bool:
        """Whether botocore makes the same signature of the request."""
        given = self.headers["authorization"]
        found = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=AKIDS3/\d{8}/([\w-]+)/s3/aws4_request, "
            r"SignedHeaders=([\w;-]+), Signature=\w+",
            given,
        )
        assert found is not None, given
        assert self.headers["x-amz-content-sha256"] == hashlib.sha256(body).hexdigest()
        url = f"http://{self.headers['host']}{self.path}"
        request = AWSRequest(self.command, url, data=body)
        for name in found[2].split(";"):
            if name not in ("host", "x-amz-date", "x-amz-content-sha256"):
                request.headers[name] = self.headers[name]
        moment = dt.datetime.strptime(self.headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
        with mock.patch.object(botocore.auth, "get_current_datetime", return_value=moment):
            signer = botocore.auth.S3SigV4Auth(Credentials(ACCESS_KEY, SECRET_KEY), "s3", found[1])
            signer.add_auth(request)
        return str(request.headers["Authorization"]) == given

    def _get(self, objects: dict[str, bytes], key: str, query: dict[str, str], body: bytes) -> None:
        if not key:
            return self._list(objects, query)
        content = objects.get(key)
        if content is None:
            return self._error(404, "NoSuchKey", "The specified key does not exist.")
        tag = etag(content)
        if self.headers.get("if-match", tag) != tag:
            return self._error(412, "PreconditionFailed", "A precondition did not hold.")
        if not self.state.has_ranges:
            return self._answer(200, content, etag=tag)
        first, last = map(int, self.headers["range"].removeprefix("bytes=").split("-"))
        if first >= len(content):
            return self._error(416, "InvalidRange", "The requested range is not satisfiable")
        part = content[first : last + 1]
        place = f"bytes {first}-{first + len(part) - 1}/{len(content)}"
        return self._answer(206, part, etag=tag, **{"content-range": place})

    def _list(self, objects: dict[str, bytes], query: dict[str, str]) -> None:
        assert query["list-type"] == "2"
        names = sorted(
            key
            for key in objects
            if key.startswith(query["prefix"]) and key > query.get("continuation-token", "")
        )
        page = names[: self.state.page]
        entries = "".join(
            f"<Contents><Key>{escape(quote(name, safe='/'))}</Key>"
            f"<LastModified>{LAST_MODIFIED}</LastModified><Size>{len(objects[name])}</Size></Contents>"
            for name in page
        )
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if page else ""
        self._document(
            "ListBucketResult",
            f"<IsTruncated>{str(len(page) < len(names)).lower()}</IsTruncated>{more}{entries}",
        )

    def _put(self, objects: dict[str, bytes], key: str, query: dict[str, str], body: bytes) -> None:
        if "uploadId" in query:
            self.state.uploads[query["uploadId"]][int(query["partNumber"])] = body
        else:
            objects[key] = body
        self._answer(200, b"", etag=etag(body))

    def _post(
        self, objects: dict[str, bytes], key: str, query: dict[str, str], body: bytes
    ) -> None:
        if "uploads" in query:
            identity = f"upload {len(self.state.uploads)}"
            self.state.uploads[identity] = {}
            return self._document(
                "InitiateMultipartUploadResult", f"<UploadId>{identity}</UploadId>"
            )
        parts = self.state.uploads.pop(query["uploadId"])
        numbers = [int(each) for each in re.findall(rb"<PartNumber>(\d+)</PartNumber>", body)]
        assert numbers == sorted(parts)
        assert all(
            f'"{md5(part)}"'.encode() in body.replace(b"&quot;", b'"') for part in parts.values()
        )
        objects[key] = b"".join(parts[number] for number in numbers)
        digests = b"".join(bytes.fromhex(md5(parts[number])) for number in numbers)
        return self._document(
            "CompleteMultipartUploadResult", f'<ETag>"{md5(digests)}-{len(parts)}"</ETag>'
        )

    def _delete(
        self, objects: dict[str, bytes], key: str, query: dict[str, str], body: bytes
    ) -> None:
        del self.state.uploads[query["uploadId"]]
        self._answer(204, b"")

    def _document(self, name: str, content: str) -> None:
        text = f'<{name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{content}</{name}>'
        self._answer(200, text.encode())

    def _error(self, status: int, code: str, message: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
        self._answer(status, text.encode())

    def _answer(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def etag(content: bytes) -> str:
    return f'"{md5(content)}"'
