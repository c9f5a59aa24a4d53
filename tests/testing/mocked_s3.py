"""S3 mocked in this process, in the way of moto: a handler of botocore's event `before-send`, in every session.

Objects are in dicts, by bucket. Lists come in pages of two, and large objects in parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import botocore.handlers
from botocore.awsrequest import AWSResponse

Buckets = dict[str, dict[str, bytes]]


class _Content:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._body

    def read(self, amount: int | None = None) -> bytes:
        end = len(self._body) if amount is None else amount
        taken, self._body = self._body[:end], self._body[end:]
        return taken


class MockedS3:
    """`requests` are the method and URL of each request that it has answered."""

    def __init__(self, buckets: Buckets) -> None:
        self.buckets = buckets
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.requests: list[tuple[str, str]] = []

    def __call__(self, request: Any, **_: Any) -> AWSResponse | None:
        url = urlsplit(request.url)
        found = re.fullmatch(r"(?:(.+)\.)?s3(?:\.[\w-]+)?\.amazonaws\.com", url.hostname or "")
        if found is None:
            return None
        self.requests.append((request.method, request.url))
        path = unquote(url.path.lstrip("/"))
        bucket, _, key = (found[1], "", path) if found[1] else path.partition("/")
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        headers = {
            name.lower(): value if isinstance(value, str) else value.decode()
            for name, value in request.headers.items()
        }
        status, given, body = self._answer(request, bucket, key, query, headers)
        return AWSResponse(request.url, status, given, _Content(body))

    def _answer(
        self, request: Any, bucket: str, key: str, query: dict[str, str], headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        objects = self.buckets.get(bucket)
        if objects is None:
            return _error(404, "NoSuchBucket", "The specified bucket does not exist")
        if "uploads" in query:
            self.uploads["u1"] = {}
            return _xml("<R><UploadId>u1</UploadId></R>")
        if request.method == "PUT" and "partNumber" in query:
            self.uploads[query["uploadId"]][int(query["partNumber"])] = _body(request, headers)
            return 200, {"ETag": f'"part-{query["partNumber"]}"'}, b""
        if request.method == "POST":
            parts = self.uploads.pop(query["uploadId"])
            named = re.findall(rb"<PartNumber>(\d+)</PartNumber>", request.body)
            objects[key] = b"".join(parts[int(number)] for number in named)
            return _xml('<R><ETag>"whole"</ETag></R>')
        if request.method == "PUT":
            objects[key] = _body(request, headers)
            return 200, {"ETag": '"one"'}, b""
        if not key:
            return self._list(objects, query)
        if key not in objects:
            return _error(404, "NoSuchKey", "The specified key does not exist.")
        return _part_of(objects[key], headers.get("range"))

    def _list(
        self, objects: dict[str, bytes], query: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        keys = sorted(each for each in objects if each.startswith(query.get("prefix", "")))
        begin = int(query.get("continuation-token", "0"))
        rows = "".join(
            f"<Contents><Key>{quote(each)}</Key><Size>{len(objects[each])}</Size></Contents>"
            for each in keys[begin : begin + 2]
        )
        is_cut = begin + 2 < len(keys)
        following = f"<NextContinuationToken>{begin + 2}</NextContinuationToken>" if is_cut else ""
        return _xml(
            f"<R><IsTruncated>{str(is_cut).lower()}</IsTruncated>"
            f"<EncodingType>url</EncodingType>{following}{rows}</R>"
        )


@contextmanager
def mocked_s3(*buckets: str) -> Iterator[MockedS3]:
    """Answer S3 in all sessions that are made inside the block."""
    mock = MockedS3({bucket: {} for bucket in buckets})
    handler: Any = ("before-send", mock)
    botocore.handlers.BUILTIN_HANDLERS.append(handler)
    try:
        yield mock
    finally:
        botocore.handlers.BUILTIN_HANDLERS.remove(handler)


def _part_of(content: bytes, range_: str | None) -> tuple[int, dict[str, str], bytes]:
    if range_ is None:
        return 200, {"ETag": '"one"'}, content
    first, last = map(int, range_.removeprefix("bytes=").split("-"))
    if first >= len(content):
        return _error(416, "InvalidRange", "The requested range is not satisfiable")
    body = content[first : last + 1]
    end = first + len(body) - 1
    return 206, {"ETag": '"one"', "Content-Range": f"bytes {first}-{end}/{len(content)}"}, body


def _body(request: Any, headers: dict[str, str]) -> bytes:
    body = request.body if isinstance(request.body, bytes) else request.body.read()
    if "aws-chunked" not in headers.get("content-encoding", ""):
        return bytes(body)
    content = b""
    while True:
        size, _, body = body.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        if not length:
            return content
        content += body[:length]
        body = body[length + 2 :]


def _xml(text: str) -> tuple[int, dict[str, str], bytes]:
    return 200, {"content-type": "application/xml"}, text.encode()


def _error(status: int, code: str, message: str) -> tuple[int, dict[str, str], bytes]:
    text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return status, {"content-type": "application/xml"}, text.encode()
