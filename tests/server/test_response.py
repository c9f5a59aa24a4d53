"""Response bytes: status line, headers, checksum, envelope."""

from __future__ import annotations

import json
import re
import zlib
from email.utils import parsedate_to_datetime
from http.client import HTTPResponse
from io import BytesIO
from time import time
from typing import Any

import pytest

from isotone.errors import (
    ConditionalCheckFailedException,
    InternalServerError,
    UnknownOperationException,
    ValidationException,
)
from isotone.server.response import (
    COMPRESSED_FROM,
    NOT_FOUND,
    ORDINARY,
    WRAPPED_JSON,
    ResponseStyle,
    render,
    request_id,
)


class _Socket:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: Any) -> BytesIO:
        return BytesIO(self._data)


def parse(data: bytes) -> tuple[HTTPResponse, bytes]:
    response = HTTPResponse(_Socket(data))  # type: ignore[arg-type]
    response.begin()
    body = response.read()
    assert data.endswith(b"\r\n\r\n" + body)
    assert response.headers["x-amz-crc32"] == str(zlib.crc32(body))
    assert response.headers["Content-Length"] == str(len(body))
    return response, body


def test_a_result_has_the_headers_of_the_service():
    for keep_alive in (True, False):
        response, body = parse(render(ORDINARY, b'{"a":1}', keep_alive=keep_alive))
        assert (response.status, response.reason, body) == (200, "OK", b'{"a":1}')
        assert response.headers["Content-Type"] == "application/x-amz-json-1.0"
        assert response.headers["Connection"] == ("keep-alive" if keep_alive else "close")
        assert response.headers["Server"] == "Server"
        assert abs(parsedate_to_datetime(response.headers["Date"]).timestamp() - time()) < 5
        assert re.fullmatch("[0-9A-Z]{52}", response.headers["x-amzn-RequestId"])


def test_request_ids_do_not_repeat():
    ids = {request_id() for _ in range(10_000)}
    assert len(ids) == 10_000


def test_an_error_is_its_body_and_status():
    response, body = parse(render(ORDINARY, ValidationException("too long")))
    assert response.status == 400
    assert json.loads(body) == {
        "__type": "com.amazon.coral.validate#ValidationException",
        "message": "too long",
    }
    assert parse(render(ORDINARY, InternalServerError("broken")))[0].status == 500
    _, body = parse(render(ORDINARY, UnknownOperationException()))
    assert json.loads(body) == {"__type": "com.amazon.coral.service#UnknownOperationException"}


def test_an_error_carries_its_members():
    error = ConditionalCheckFailedException(
        "The conditional request failed", Item={"a": {"S": "b"}}
    )
    _, body = parse(render(ORDINARY, error))
    assert json.loads(body) == {
        "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
        "message": "The conditional request failed",
        "Item": {"a": {"S": "b"}},
    }


def test_plain_json_travels_in_an_envelope():
    response, body = parse(render(WRAPPED_JSON, b'{"TableNames":[]}'))
    assert response.headers["Content-Type"] == "application/json"
    assert json.loads(body) == {"Output": {"TableNames": []}, "Version": "1.0"}


def test_a_browser_may_read_the_answer():
    response, _ = parse(render(ResponseStyle(cors=b"https://example.com"), b"{}"))
    assert response.headers["Access-Control-Allow-Origin"] == "https://example.com"
    assert response.headers["Vary"] == "Origin"
    assert "x-amzn-RequestId" in response.headers["Access-Control-Expose-Headers"]
    response, _ = parse(render(ORDINARY, b"{}"))
    assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.parametrize(("coding", "wbits"), [(b"gzip", 31), (b"deflate", 15)])
def test_only_large_bodies_are_compressed(coding, wbits):
    small, large = b"x" * (COMPRESSED_FROM - 1), b"x" * COMPRESSED_FROM
    response, body = parse(render(ResponseStyle(coding=coding), small))
    assert (response.headers["Content-Encoding"], body) == (None, small)
    response, body = parse(render(ResponseStyle(coding=coding), large))
    assert response.headers["Content-Encoding"] == coding.decode()
    assert zlib.decompress(body, wbits=wbits) == large


def test_the_page_for_what_is_not_there():
    response, body = parse(render(ORDINARY, NOT_FOUND, keep_alive=False))
    assert (response.status, body) == (404, b"<UnknownOperationException/>\n")
    assert response.headers["Connection"] == "close"
