"""Users, keys, and requests that botocore signs: the other opinion on what a signature is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import msgspec
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
HOST = "db.example:8000"
ANN = Credentials("ISOTANN", "a secret of ann")
JSON = "application/x-amz-json-1.0"


def write_credentials(path: Path, **users: Mapping[str, Any]) -> Path:
    """A credentials file whose users have, unless they say otherwise, the key ISOTNAME."""
    document = {
        "users": {
            name: {
                "keys": [
                    {
                        "access_key_id": f"ISOT{name.upper()}",
                        "secret_access_key": f"a secret of {name}",
                    }
                ],
                **settings,
            }
            for name, settings in users.items()
        }
    }
    path.write_bytes(msgspec.json.encode(document))
    path.chmod(0o600)
    return path


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    """botocore's clock shows a moment."""
    with patch.object(auth, "get_current_datetime", lambda *_: moment.replace(tzinfo=None)):
        yield


def signed(
    body: bytes = b"{}",
    *,
    method: str = "POST",
    target: str = "/",
    headers: Mapping[str, str] | None = None,
    credentials: Credentials = ANN,
    moment: datetime = NOW,
    in_query: bool = False,
    region: str = "eu-west-1",
    service: str = "dynamodb",
    operation: str = "ListTables",
    host: str = HOST,
) -> tuple[bytes, bytes, dict[bytes, bytes], bytes]:
    """Method, URL, headers by names in lower case, and body: as a server gets them.

    In a query botocore signs no body, which it takes for parameters of another protocol: its hash is in a header.
    """
    hashed = {"X-Amz-Content-SHA256": hashlib.sha256(body).hexdigest()} if in_query else {}
    request = AWSRequest(
        method,
        f"http://{host}{target}",
        {
            "Content-Type": JSON,
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            **hashed,
            **(headers or {}),
        },
        b"" if in_query else body,
    )
    signer = auth.SigV4QueryAuth if in_query else auth.SigV4Auth
    with at(moment):
        signer(credentials, service, region).add_auth(request)
    parts = urlsplit(request.url)
    url = parts.path + (f"?{parts.query}" if parts.query else "")
    sent = {"Host": host, **dict(request.headers.items())}
    lowered = {name.lower().encode(): value.encode() for name, value in sent.items()}
    return method.encode(), url.encode(), lowered, body
