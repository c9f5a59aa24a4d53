from __future__ import annotations

import json
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.backends.scripted import answer, refusal, with_checksum

from isotone import errors
from isotone.backends.credentials import PLACEHOLDER, fixed
from isotone.backends.http_messages import (
    HttpCodec,
    HttpReply,
    encode_request,
    error_class,
    error_of,
)
from isotone.backends.signing import Signer
from isotone.errors import ApiError, ConnectionFailed, SerializationException, UsageError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def codec() -> HttpCodec:
    signer = Signer(fixed(PLACEHOLDER), "eu-west-1", "localhost", lambda: 0.0)
    return HttpCodec("localhost", signer, compressed=True)


def received(*parts: bytes) -> HttpReply:
    reply = HttpReply()
    for part in parts:
        reply.feed(part)
    return reply


@given(content=st.dictionaries(st.text(), VALUES, max_size=4), data=st.data())
def test_an_answer_may_arrive_in_any_parts(content: dict[str, Any], data: st.DataObject) -> None:
    raw = with_checksum(content)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    parts = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    reply = received(*(part for part in parts if part))
    assert reply.complete
    assert reply.keep_alive
    assert codec().answer(reply) == json.loads(json.dumps(content))


@given(raw=st.binary(max_size=200))
@example(b"HTTP/1.0 100\r\n\r\n")
def test_noise_is_never_an_answer(raw: bytes) -> None:
    reply = HttpReply()
    try:
        reply.feed(raw)
    except ConnectionFailed:
        return
    if reply.complete:
        with pytest.raises((ConnectionFailed, UsageError)):
            codec().answer(reply)


@given(body=st.binary(max_size=60), status=st.sampled_from([200, 400, 404, 500, 503]))
def test_any_body_is_an_answer_or_one_of_our_errors(body: bytes, status: int) -> None:
    reply = received(answer(raw=body, status=status))
    try:
        found = codec().answer(reply)
    except (ApiError, ConnectionFailed, UsageError):
        return
    assert isinstance(found, dict)


def test_errors_have_the_class_of_their_name() -> None:
    error = error_of({"__type": "com.amazonaws.dynamodb.v20120810#LimitExceededException"}, 400)
    assert type(error) is errors.LimitExceededException
    assert error.message == ""


@pytest.mark.parametrize("member", ["message", "Message"])
def test_the_message_may_be_spelt_in_two_ways(member: str) -> None:
    error = error_of({"__type": "x#AccessDeniedException", member: "no", "more": 1}, 400)
    assert (error.message, error.members) == ("no", {"more": 1})


def test_an_unknown_error_gets_a_class_of_its_own() -> None:
    error = error_of({"__type": "x#ReplicatedWriteConflictException", "message": "later"}, 409)
    assert (error.code, error.status) == ("ReplicatedWriteConflictException", 409)
    assert type(error) is error_class("ReplicatedWriteConflictException")
    assert error_of({}, 403).code == "Status403"


def test_a_name_that_is_no_error_of_the_api() -> None:
    assert issubclass(error_class("UsageError"), ApiError)
    assert not issubclass(error_class("UsageError"), UsageError)


def test_only_transactions_get_a_token() -> None:
    assert encode_request("PutItem", {}) == b"{}"
    given_token = {"ClientRequestToken": "mine"}
    assert json.loads(encode_request("TransactWriteItems", given_token)) == given_token
    request: dict[str, Any] = {"TransactItems": []}
    tokens = {encode_request("TransactWriteItems", request) for _ in range(2)}
    assert len(tokens) == 2
    assert request == {"TransactItems": []}


def test_a_message_is_one_http_request() -> None:
    message = codec().message("Scan", b'{"a":1}')
    head, _, body = message.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"POST / HTTP/1.1"
    names = [line.partition(b":")[0].lower() for line in lines[1:]]
    assert len(names) == len(set(names))
    assert b"Content-Length: 7" in lines
    assert body == b'{"a":1}'


def test_requests_at_once_correct_a_wrong_clock_once() -> None:
    signer = Signer(fixed(PLACEHOLDER), "eu-west-1", "localhost", lambda: 0.0)
    codec_without_compression = HttpCodec("localhost", signer, compressed=False)
    date = formatdate(3600, usegmt=True)
    refused = [refusal("InvalidSignatureException", "Signature expired", Date=date)] * 3
    for raw in refused:  # all were signed before the first of them was answered
        with pytest.raises(ConnectionFailed, match="clock is -3600 s off"):
            codec_without_compression.answer(received(raw))
    assert signer.skew == 3600
    wrong = refusal("InvalidSignatureException", "The signature does not match", Date=date)
    with pytest.raises(ApiError, match="does not match"):
        codec_without_compression.answer(received(wrong))


def test_a_request_that_contains_itself_is_refused() -> None:
    around: dict[str, Any] = {}
    around["M"] = {"x": around}
    with pytest.raises(SerializationException):
        encode_request("PutItem", {"TableName": "tab", "Item": around})
