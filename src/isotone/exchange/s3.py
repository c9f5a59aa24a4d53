"""Buckets at an S3 endpoint: listed in pages, objects read in ranges, large objects written in parts.

This module decides what a request says. A function that it is given sends it (address, signature, retries).

An object is read 8 MB at a time, each a request of its own. So a slow reader keeps no connection open, and a broken
connection costs 8 MB. Requests after the first name the ETag, so that all ranges are of the same object.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Final, Protocol, cast
from urllib.parse import unquote_plus
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from isotone.errors import ConnectionFailed, NoCredentials
from isotone.exchange.objects import (
    Bucket,
    ObjectStoreClosed,
    ObjectStoreError,
    ObjectStoreUnavailable,
    StoredObject,
)

RANGE: Final = 8 << 20  # bytes of an object that are read at once
PART: Final = 8 << 20  # bytes of a part; S3 requires 5 MB or more, and at most 10,000 parts
WHOLE: Final = 16 << 20  # bytes of the largest object that is written with one request

_NOT_CHANGED: Final = {412: "The object was replaced while it was read"}
_TOO_MANY: Final = 429


class BucketReply(Protocol):
    """An endpoint's answer. Header names are in lower case."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[bytes, bytes]: ...

    @property
    def body(self) -> bytes: ...


class Sender(Protocol):
    """Sends requests to an endpoint."""

    def send(
        self,
        method: str,
        bucket: str,
        key: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> BucketReply:
        """Send a request, with retries; raises `ConnectionFailed` if it is not answered."""

    def close(self) -> None:
        """Make all requests fail, now and later."""


class S3Buckets:
    """The buckets of an S3 endpoint. They are not created: an export needs one that exists."""

    __slots__ = ("_closed", "_sender")

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._closed = False

    def list(self, bucket: Bucket, prefix: str) -> list[StoredObject]:
        return sorted(self._listed(bucket, prefix))

    def open(self, bucket: Bucket, key: str, size: int | None = None) -> BinaryIO:
        def read(first: int, etag: str | None) -> BucketReply:
            headers = {"range": f"bytes={first}-{first + RANGE - 1}"}
            if etag is not None:
                headers["if-match"] = etag
            return self._send("GET", bucket, key, headers=headers, expected=(200, 206, 416))

        return cast("BinaryIO", io.BufferedReader(_Object(read), _Object.BUFFER))

    def put(self, bucket: Bucket, key: str, content: bytes) -> str:
        if len(content) > WHOLE:
            return self._put_in_parts(bucket, key, content)
        reply = self._send("PUT", bucket, key, headers=_encryption(bucket), body=content)
        return _etag(reply).strip('"')

    def check_kept(self, bucket: Bucket, md5s: Mapping[str, bytes | None]) -> None:
        """Do nothing: S3 keeps what it has acknowledged, and a user of exports may have no permission to read."""

    def close(self) -> None:
        self._closed = True
        self._sender.close()

    def _listed(self, bucket: Bucket, prefix: str) -> Iterator[StoredObject]:
        query = {"encoding-type": "url", "list-type": "2", "prefix": prefix}
        while True:
            page = _document(self._send("GET", bucket, query=query))
            for entry in page.iterfind("{*}Contents"):
                yield StoredObject(unquote_plus(_text(entry, "Key")), int(_text(entry, "Size")))
            if _text(page, "IsTruncated") != "true":
                return
            following = _text(page, "NextContinuationToken")
            if following in ("", query.get("continuation-token")):
                raise ObjectStoreError(
                    "S3Failure", "The list of objects does not say how it goes on"
                )
            query["continuation-token"] = following

    def _put_in_parts(self, bucket: Bucket, key: str, content: bytes) -> str:
        headers = _encryption(bucket)
        begun = self._send("POST", bucket, key, query={"uploads": ""}, headers=headers)
        upload = {"uploadId": _text(_document(begun), "UploadId")}
        try:
            parts = []
            for number, begin in enumerate(range(0, len(content), PART), 1):
                query = {**upload, "partNumber": str(number)}
                part = content[begin : begin + PART]
                parts.append(_etag(self._send("PUT", bucket, key, query=query, body=part)))
            whole = self._send("POST", bucket, key, query=upload, body=_part_list(parts))
            return _text(_document(whole), "ETag").strip('"')
        except BaseException:
            if not self._closed:
                self._drop_upload(bucket, key, upload)
            raise

    def _drop_upload(self, bucket: Bucket, key: str, upload: dict[str, str]) -> None:
        """Delete the parts of a failed upload, for which the owner would pay."""
        try:
            self._send("DELETE", bucket, key, query=upload, expected=(204, 200))
        except ObjectStoreError:
            return  # the error that ended the upload is more useful

    def _send(
        self,
        method: str,
        bucket: Bucket,
        key: str = "",
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        expected: tuple[int, ...] = (200,),
    ) -> BucketReply:
        """Send a request; raises `ObjectStoreError` for any status that is not expected."""
        owner = {} if bucket.owner is None else {"x-amz-expected-bucket-owner": bucket.owner}
        try:
            reply = self._sender.send(
                method, bucket.name, key, query or {}, {**owner, **(headers or {})}, body
            )
        except (ConnectionFailed, NoCredentials) as error:
            if self._closed:
                raise ObjectStoreClosed from error
            code = "S3AccessDenied" if isinstance(error, NoCredentials) else "S3ServiceUnavailable"
            raise ObjectStoreUnavailable(code, str(error)) from error
        if reply.status not in expected:
            raise _failure(reply)
        return reply


class _Object(io.RawIOBase):
    """The content of an object, read range by range."""

    BUFFER: Final = 256 << 10

    def __init__(self, read: Callable[[int, str | None], BucketReply]) -> None:
        self._read = read
        self._etag: str | None = None
        self._position = self._size = 0
        self._rest = memoryview(b"")
        self._next()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest and self._position < self._size:
            self._next()
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def _next(self) -> None:
        reply = self._read(self._position, self._etag)
        if reply.status == 416:  # the object is empty, so the first byte does not exist
            return
        body = reply.body
        if reply.status == 200:  # the whole object, from an endpoint without ranges
            body = body[self._position :]
            self._position = self._size = len(reply.body)
        else:
            self._etag = _etag(reply)
            self._size = int(reply.headers[b"content-range"].rpartition(b"/")[2])
            self._position += len(body)
            if not body:
                raise ObjectStoreError("S3Failure", "The answer has none of the bytes asked for")
        self._rest = memoryview(body)


def _encryption(bucket: Bucket) -> dict[str, str]:
    """The headers that request the encryption of a new object."""
    if bucket.encryption is None:
        return {}
    headers = {
        "x-amz-server-side-encryption": "aws:kms" if bucket.encryption == "KMS" else "AES256"
    }
    if bucket.kms_key is not None:
        headers["x-amz-server-side-encryption-aws-kms-key-id"] = bucket.kms_key
    return headers


def _part_list(etags: list[str]) -> bytes:
    parts = (
        f"<Part><ETag>{escape(etag)}</ETag><PartNumber>{number}</PartNumber></Part>"
        for number, etag in enumerate(etags, 1)
    )
    return f"<CompleteMultipartUpload>{''.join(parts)}</CompleteMultipartUpload>".encode()


def _etag(reply: BucketReply) -> str:
    return reply.headers.get(b"etag", b"").decode()


def _document(reply: BucketReply) -> ElementTree.Element:
    """The XML of an answer. After a long upload, an error may have status 200."""
    try:
        root = ElementTree.fromstring(reply.body)
    except ElementTree.ParseError as error:
        raise ObjectStoreError(
            "S3Failure", f"The answer is not that of an S3 endpoint: {reply.body[:200]!r}"
        ) from error
    if root.tag.rpartition("}")[2] == "Error":
        raise _failure(reply)
    return root


def _text(element: ElementTree.Element, name: str) -> str:
    return element.findtext(f"{{*}}{name}") or ""


def _failure(reply: BucketReply) -> ObjectStoreError:
    """The error in an answer, with S3's own code and message if it has them."""
    code, message = f"Status{reply.status}", _NOT_CHANGED.get(reply.status, "")
    if reply.body:
        try:
            root = ElementTree.fromstring(reply.body)
        except ElementTree.ParseError:
            message = message or f"S3 answered with status {reply.status}: {reply.body[:200]!r}"
        else:
            code, message = _text(root, "Code") or code, _text(root, "Message") or message
    is_unavailable = reply.status >= 500 or reply.status == _TOO_MANY
    kind = ObjectStoreUnavailable if is_unavailable else ObjectStoreError
    return kind(f"S3{code}", message or f"S3 answered with status {reply.status}")
