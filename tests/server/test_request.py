"""Requests to calls and refusals, without a socket."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.server.compression import BODY_LIMIT
from isotone.server.request import ServiceCall, known_header_names, read
from isotone.server.response import NOT_FOUND, HttpRefusal, PlainResponse

SIGNED = {
    b"X-Amz-Target": b"DynamoDB_20120810.GetItem",
    b"Content-Type": b"application/x-amz-json-1.0",
    b"X-Amz-Date": b"20260101T000000Z",
    b"Authorization": b"AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/dynamodb/aws4_request, "
    b"SignedHeaders=host;x-amz-date, Signature=abc123",
}


def ask(headers=SIGNED, body=b"{}", method=b"POST", url=b"/", **others):
    more = {name.replace("_", "-").encode(): value for name, value in others.items()}
    headers = {name: value for name, value in {**headers, **more}.items() if value is not None}
    return read(method, url, headers, known_header_names[tuple(headers)], body)


def refusal(**request):
    answer = ask(**request)
    assert isinstance(answer, HttpRefusal)
    return answer.error.code


@pytest.mark.parametrize("service", [b"DynamoDB", b"DynamoDBStreams"])
def test_the_target_names_the_operation(service):
    headers = {**SIGNED, b"X-Amz-Target": service + b"_20120810.DescribeTable"}
    for _ in range(2):  # the first time by the rules, then by recognition
        call = ask(headers, b'{"a":1}')
        assert isinstance(call, ServiceCall)
        assert (call.operation, call.body) == ("DescribeTable", b'{"a":1}')


@pytest.mark.parametrize(
    "target",
    [
        None,
        b"",
        b"GetItem",
        b"DynamoDB_20111205.GetItem",
        b"DynamoDB_20120810.",
        b"DynamoDB_20120810.Get Item",
        b"DynamoDB_20120810.GetItem.More",
        b"dynamodb_20120810.GetItem",
        b"Kinesis_20131202.GetRecords",
    ],
)
def test_other_targets_are_unknown_operations(target):
    assert refusal(headers={**SIGNED, b"X-Amz-Target": target}) == "UnknownOperationException"


def test_the_target_comes_before_the_signature():
    headers = {b"Content-Type": b"application/x-amz-json-1.0"}
    assert refusal(headers=headers) == "UnknownOperationException"


def test_the_signature_comes_before_the_operation_runs():
    assert refusal(Authorization=None) == "MissingAuthenticationTokenException"
    assert refusal(Authorization=b"AWS4-") == "IncompleteSignatureException"


def test_malformed_json_comes_before_the_signature():
    assert refusal(Authorization=None, body=b"{") == "SerializationException"
    assert refusal(Authorization=None, body=b"") == "MissingAuthenticationTokenException"
    assert refusal(Authorization=None, body=b"[]") == "SerializationException"


@pytest.mark.parametrize("part", [b"Credential=", b"SignedHeaders=", b"Signature="])
@pytest.mark.parametrize("emptied", [False, True])
def test_recognition_does_not_let_half_a_signature_through(part, emptied):
    assert isinstance(ask(), ServiceCall)  # the target is known from here on
    signed = SIGNED[b"Authorization"]
    start = signed.index(b" " + part) + 1
    end = signed.find(b",", start) if b"," in signed[start:] else len(signed)
    kept = part if emptied else b"X=1"
    half = signed[:start] + kept + signed[end:]
    assert refusal(Authorization=half) == "IncompleteSignatureException"


@pytest.mark.parametrize(
    "content_type", [None, b"", b"text/plain", b"application/x-www-form-urlencoded"]
)
def test_another_content_type_is_not_found(content_type):
    headers = {**SIGNED, b"Content-Type": content_type}
    assert ask(headers) == NOT_FOUND


@pytest.mark.parametrize(
    "content_type", [b"application/x-amz-json-1.0; charset=utf-8", b"Application/X-AMZ-JSON-1.0"]
)
def test_parameters_and_case_of_the_content_type_do_not_matter(content_type):
    assert isinstance(ask({**SIGNED, b"Content-Type": content_type}), ServiceCall)


def test_plain_json_is_answered_in_an_envelope():
    call = ask({**SIGNED, b"Content-Type": b"application/json"})
    assert isinstance(call, ServiceCall)
    assert call.style.wrapped
    assert call.style.content_type == b"application/json"


@pytest.mark.parametrize(
    ("method", "url"),
    [(b"PUT", b"/"), (b"DELETE", b"/"), (b"POST", b"/x"), (b"GET", b"/x"), (b"OPTIONS", b"/")],
)
def test_other_methods_and_paths_are_not_found(method, url):
    assert ask(method=method, url=url) == NOT_FOUND


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (b"localhost:8000", b"us-east-1"),
        (b"dynamodb.eu-west-1.amazonaws.com", b"eu-west-1"),
        (b"dynamodb.", b""),
        (b"", b"us-east-1"),
    ],
)
def test_the_health_page_names_the_region(host, region):
    page = ask({b"Host": host}, method=b"GET")
    assert page == PlainResponse(200, b"healthy: dynamodb.%b.amazonaws.com " % region)


def test_a_preflight_gets_what_it_asks_for():
    page = ask(
        {},
        method=b"OPTIONS",
        Origin=b"https://example.com",
        Access_Control_Request_Method=b"POST",
        Access_Control_Request_Headers=b"x-amz-target,x-amz-date",
    )
    assert isinstance(page, PlainResponse)
    assert (page.status, page.body, page.cors) == (200, b"", b"https://example.com")
    assert dict(page.headers) == {
        b"Access-Control-Allow-Headers": b"x-amz-target,x-amz-date",
        b"Access-Control-Allow-Methods": b"POST",
        b"Access-Control-Max-Age": b"172800",
    }


def test_a_gzipped_body_is_unpacked():
    call = ask(body=zlib.compress(b'{"a":1}', wbits=31), Content_Encoding=b"gzip")
    assert isinstance(call, ServiceCall)
    assert call.body == b'{"a":1}'


@pytest.mark.parametrize(("coding", "wbits"), [(b"gzip", 31), (b"GZIP", 31), (b"deflate", 15)])
@pytest.mark.parametrize("parts", [[b'{"a":1}'], [b'{"a"', b"", b":1}"]])
def test_a_compressed_body_may_have_several_members(coding, wbits, parts):
    body = b"".join(zlib.compress(part, wbits=wbits) for part in parts)
    call = ask(body=body, Content_Encoding=coding)
    assert isinstance(call, ServiceCall)
    assert call.body == b'{"a":1}'


def test_a_bomb_is_refused_without_going_off():
    bomb = zlib.compress(bytes(64 * BODY_LIMIT // 16), wbits=31)
    answer = ask(body=bomb, Content_Encoding=b"gzip")
    assert isinstance(answer, PlainResponse)
    assert answer.status == 413


@pytest.mark.parametrize("body", [b"", b"{}", zlib.compress(b"{}", wbits=31)[:-9]])
def test_a_body_that_is_no_gzip_is_refused(body):
    assert refusal(body=body, Content_Encoding=b"gzip") == "InternalServerError"
    assert refusal(body=body, Content_Encoding=b"deflate") == "InternalServerError"
    assert refusal(body=body, Content_Encoding=b"br") == "InternalServerError"


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        (b"gzip", b"gzip"),
        (b"deflate, GZIP;q=0.5", b"deflate"),
        (b"gzip, deflate", b"gzip"),
        (b"deflate, gzip", b"gzip"),
        (b"deflate;q=0.3, *;q=0.2", b"deflate"),
        (b"*", b"gzip"),
        (b"gzip;q=0, *", b"deflate"),
        (b"identity", b""),
        (b"identity, gzip;q=0.9", b""),
        (b"identity;q=0.5, gzip;q=0.9", b"gzip"),
        (b"gzip;q=0", b""),
        (b"gzip;q=much", b""),
        (b"gzip; q=0.0, identity", b""),
        (b"br", b""),
    ],
)
def test_a_response_is_compressed_as_the_client_likes_best(accepted, coding):
    call = ask(Accept_Encoding=accepted)
    assert isinstance(call, ServiceCall)
    assert call.style.coding == coding


def in_some_case(name: bytes) -> st.SearchStrategy[bytes]:
    cases = st.lists(st.booleans(), min_size=len(name), max_size=len(name))
    return cases.map(
        lambda upper: bytes(
            byte - 32 if up and 97 <= byte <= 122 else byte
            for byte, up in zip(name.lower(), upper, strict=True)
        )
    )


@given(st.tuples(*(in_some_case(name) for name in SIGNED)), st.permutations(list(SIGNED.values())))
def test_neither_case_nor_order_of_headers_matters(names, order):
    of = dict(zip(SIGNED.values(), names, strict=True))
    headers = {of[value]: value for value in order}
    call = ask(headers)
    assert isinstance(call, ServiceCall)
    assert call.operation == "GetItem"


@given(st.dictionaries(st.binary(max_size=20), st.binary(max_size=60)), st.binary(max_size=40))
def test_whatever_comes_is_answered(headers, url):
    answer = read(b"POST", url, headers, known_header_names[tuple(headers)], b"{}")
    assert isinstance(answer, PlainResponse | HttpRefusal | ServiceCall)
