"""The buckets of a test: exports and imports send S3 requests through botocore, like the test's own clients.

So moto, or another mock of S3 in this process, has the objects. A request that no mock answers would leave the process.
It fails, and the error says how to give the database buckets, unless the mock lets requests to S3 pass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree

from isotone.backends.s3 import S3
from isotone.errors import ConnectionFailed, UsageError

_HEADERS: Final = {
    "range": "Range",
    "if-match": "IfMatch",
    "x-amz-expected-bucket-owner": "ExpectedBucketOwner",
    "x-amz-server-side-encryption": "ServerSideEncryption",
    "x-amz-server-side-encryption-aws-kms-key-id": "SSEKMSKeyId",
}
_QUERY: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "prefix": ("Prefix", str),
    "continuation-token": ("ContinuationToken", str),
    "encoding-type": ("EncodingType", str),
    "uploadId": ("UploadId", str),
    "partNumber": ("PartNumber", int),
}
# botocore's method for a request, by its HTTP method and the parts of its query and path.
_METHODS: Final = {
    ("GET", "list-type"): "list_objects_v2",
    ("GET", "key"): "get_object",
    ("PUT", "key"): "put_object",
    ("POST", "uploads"): "create_multipart_upload",
    ("PUT", "partNumber"): "upload_part",
    ("POST", "uploadId"): "complete_multipart_upload",
    ("DELETE", "uploadId"): "abort_multipart_upload",
}
_NO_CREDENTIALS: Final = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
_MARKS: Final = ("list-type", "uploads", "partNumber", "uploadId")


@dataclass(frozen=True, slots=True)
class ProcessS3(S3):
    """S3 as botocore's clients in this process reach it; `advice` says how to give a database other buckets."""

    url: str = ""
    advice: str = ""
    passes: Callable[[str], bool] | None = None
    """Whether a request to a URL that no mock answers may leave the process; without it, none may."""

    def client(self) -> Any:
        """The client that sends requests; its first request loads botocore."""
        return _Client(self)


class _Reply(NamedTuple):
    status: int
    headers: Mapping[bytes, bytes]
    body: bytes


class _Client:
    """Sends requests through the methods of botocore's client, one at a time."""

    def __init__(self, place: ProcessS3) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._botocore: Any = None
        self._reply: _Reply | None = None

    def send(
        self,
        method: str,
        bucket: str,
        key: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> _Reply:
        """Send a request; raises `ConnectionFailed` if no mock answers it."""
        mark = next((each for each in _MARKS if each in query), "key")
        name = _METHODS[method, mark]
        arguments: dict[str, Any] = {"Bucket": bucket}
        arguments |= {"Key": key} if key else {}
        arguments |= {_HEADERS[header]: value for header, value in headers.items()}
        for part in query.keys() & _QUERY.keys():
            argument, kind = _QUERY[part]
            arguments[argument] = kind(query[part])
        if name == "complete_multipart_upload":
            arguments["MultipartUpload"] = {"Parts": list(_parts(body))}
        elif method == "PUT":
            arguments["Body"] = body
        with self._lock:
            return self._call(name, arguments)

    def close(self) -> None:
        """Do nothing: a request in this process ends by itself."""

    def _call(self, name: str, arguments: dict[str, Any]) -> _Reply:
        from botocore.exceptions import BotoCoreError, ClientError

        self._reply = None
        try:
            if self._botocore is None:
                self._botocore = self._connected()
            result = getattr(self._botocore, name)(**arguments)
        except ClientError:
            pass  # an answer like any other: it is in self._reply
        except (BotoCoreError, UsageError) as error:
            raise ConnectionFailed(str(error)) from error
        else:
            if "Body" in result:
                self._reply = self._answer()._replace(body=result["Body"].read())
        return self._answer()

    def _answer(self) -> _Reply:
        assert self._reply is not None, "botocore returns after it has parsed an answer"
        return self._reply

    def _connected(self) -> Any:
        from botocore.config import Config
        from botocore.session import Session

        config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
        keys = {} if self._place.passes else _NO_CREDENTIALS
        client = Session().create_client("s3", self._place.region, config=config, **keys)
        client.meta.events.register("before-parse.s3", self._keep)
        endpoint = client._endpoint
        endpoint._send = self._leaving(endpoint._send)
        return client

    def _leaving(self, send: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Wraps botocore's last step, which is reached only by requests that no mock has answered."""

        def leave(request: Any) -> Any:
            passes = self._place.passes
            if passes is None or not passes(request.url):
                raise ConnectionFailed(
                    f"nothing answers for S3 in this process; {self._place.advice}"
                )
            return send(request)

        return leave

    def _keep(self, response_dict: Mapping[str, Any], **_: Any) -> None:
        """Keep an answer unparsed, before botocore parses it."""
        headers = {
            name.lower().encode(): str(value).encode()
            for name, value in response_dict["headers"].items()
        }
        body = response_dict["body"]
        content = body if isinstance(body, bytes) else b""
        self._reply = _Reply(response_dict["status_code"], headers, content)


def _parts(document: bytes) -> Iterator[dict[str, Any]]:
    """The parts of an upload, in botocore's form."""
    for part in ElementTree.fromstring(document).iter("Part"):
        yield {
            "ETag": part.findtext("ETag"),
            "PartNumber": int(part.findtext("PartNumber", "0")),
        }
