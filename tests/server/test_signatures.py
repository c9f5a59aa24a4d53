"""Signatures against botocore's signer: whatever it signs is accepted, and nothing else is."""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta
from urllib.parse import quote, unquote_to_bytes

import pytest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st
from tests.server.signing import ANN, HOST, NOW, signed

from isotone.clock import ManualClock
from isotone.errors import ApiError
from isotone.server import signatures
from isotone.server.signatures import Verifier, derived_key
from isotone.server.users import AccessKey, User, Users

TEMPORARY = Credentials("ISOTTEMP", "another secret", "a+token/=")
USERS = Users(
    {
        "ann": User(keys=[AccessKey(access_key_id="ISOTANN", secret_access_key="a secret of ann")]),
        "temp": User(
            keys=[
                AccessKey(
                    access_key_id="ISOTTEMP",
                    secret_access_key="another secret",
                    session_token="a+token/=",
                    expires=NOW + timedelta(hours=1),
                )
            ]
        ),
    }
)


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def verifier(clock):
    return Verifier(USERS.find_key, clock)


def verify(verifier, request, *, secure=False):
    return verifier.verify(*request, secure=secure)


def refusal(verifier, request, *, secure=False):
    with pytest.raises(ApiError) as refused:
        verify(verifier, request, secure=secure)
    return refused.value


UNRESERVED = "abcXYZ019-_.~"
paths = st.lists(
    st.sampled_from(
        ["", ".", "..", "a", "b-c", "~x", "%20", "%2F", "%C3%BC", "a:b", "(1)", "=", "*"]
    ),
    max_size=5,
).map(lambda parts: "/" + "/".join(parts))
texts = st.text(alphabet=UNRESERVED + "/:+ =&%ü☃", max_size=8)
names = st.text(alphabet=UNRESERVED, min_size=1, max_size=8).map(lambda name: "q" + name)
queries = st.dictionaries(names, texts, max_size=4)
header_names = st.text(alphabet="abcdefgh-0189", min_size=1, max_size=10).map(
    lambda name: "x-own-" + name
)
header_values = st.text(alphabet='abc,; ="/\t-09', max_size=20).map(str.strip)


def encoded(query):
    return "&".join(
        f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in query.items()
    )


@given(
    paths,
    queries,
    st.dictionaries(header_names, header_values, max_size=4),
    st.binary(max_size=200),
    st.booleans(),
    st.sampled_from([ANN, TEMPORARY]),
    st.sampled_from(["eu-west-1", "us-gov-east-1", "local"]),
    st.sampled_from(["POST", "GET", "PUT"]),
)
def test_what_botocore_signs_is_accepted(
    path, query, headers, body, in_query, credentials, region, method
):
    target = path + (f"?{encoded(query)}" if query else "")
    request = signed(
        body,
        method=method,
        target=target,
        headers=headers,
        credentials=credentials,
        in_query=in_query,
        region=region,
    )
    found = verify(Verifier(USERS.find_key, ManualClock(NOW)), request)
    assert found.login.key.access_key_id == credentials.access_key
    assert (found.region, found.body) == (region, body)


@given(st.booleans(), st.data())
def test_one_bit_elsewhere_is_refused(in_query, data):
    request = method, url, headers, body = signed(
        b'{"Limit": 5}', target="/?b=2&a=1", headers={"x-own": "1  2"}, in_query=in_query
    )
    verifier = Verifier(USERS.find_key, ManualClock(NOW))
    verify(verifier, request)
    what = data.draw(st.sampled_from(["method", "url", "header", "body"]))
    if what == "method":
        method = flipped(method, data)
    elif what == "body":
        body = flipped(body, data)
    elif what == "url":
        url = flipped(url, data)
    else:
        covered = sorted(set(headers) - {b"user-agent"})
        name = data.draw(st.sampled_from(covered))
        headers = {**headers, name: flipped(headers[name], data)}
    if same_meaning((method, url, headers, body), request):
        return
    with pytest.raises(ApiError):
        verify(verifier, (method, url, headers, body))


def flipped(text, data):
    at = data.draw(st.integers(0, len(text) - 1))
    bit = data.draw(st.integers(0, 7))
    return text[:at] + bytes([text[at] ^ 1 << bit]) + text[at + 1 :]


def same_meaning(one, other):
    """Whether two requests differ only in how a path, a query or blanks are written."""

    def plain(request):
        method, url, headers, body = request
        path, _, query = url.partition(b"?")
        path = b"/".join(part for part in path.split(b"/") if part not in (b"", b"."))
        pairs = sorted(
            tuple(map(unquote_to_bytes, pair.partition(b"=")[::2]))
            for pair in query.split(b"&")
            if pair
        )
        blanks = {name: b" ".join(value.split()) for name, value in headers.items()}
        if b"authorization" in blanks:  # the names of headers are a set, without case
            lead, _, rest = blanks[b"authorization"].partition(b"SignedHeaders=")
            names, _, rest = rest.partition(b",")
            blanks[b"authorization"] = (
                lead.replace(b" ", b""),
                sorted(names.lower().split(b";")),
                rest.replace(b" ", b""),
            )
        pairs = [
            (name, b";".join(sorted(value.lower().split(b";"))))
            if name == b"X-Amz-SignedHeaders"
            else (name, value)
            for name, value in pairs
        ]
        return method, path, pairs, blanks, body

    return plain(one) == plain(other)


# Time


@pytest.mark.parametrize("minutes", [-15, -14.9, 0, 15])
def test_fifteen_minutes_of_skew_are_accepted(verifier, clock, minutes):
    clock.set(NOW + timedelta(minutes=minutes))
    verify(verifier, signed())


def test_an_old_signature(verifier, clock):
    clock.set(NOW + timedelta(minutes=15, seconds=1))
    error = refusal(verifier, signed())
    assert error.code == "InvalidSignatureException"
    assert error.message == (
        "Signature expired: 20260101T120000Z is now earlier than 20260101T120001Z "
        "(20260101T121501Z - 15 min.)"
    )


def test_a_signature_of_the_future(verifier, clock):
    clock.set(NOW - timedelta(minutes=15, seconds=1))
    error = refusal(verifier, signed())
    assert error.message == (
        "Signature not yet current: 20260101T120000Z is still later than 20260101T115959Z "
        "(20260101T114459Z + 15 min.)"
    )


@pytest.mark.parametrize(("minutes", "accepted"), [(-16, False), (59, True), (61, False)])
def test_a_signature_in_the_query_is_good_for_as_long_as_it_says(
    verifier, clock, minutes, accepted
):
    request = signed(in_query=True)  # for an hour
    clock.set(NOW + timedelta(minutes=minutes))
    if accepted:
        verify(verifier, request)
    else:
        assert refusal(verifier, request).message.startswith("Signature ")


def test_a_date_header_will_do(verifier):
    method, url, headers, body = signed()
    headers[b"date"] = b"Thu, 01 Jan 2026 13:00:00 +0100"
    del headers[b"x-amz-date"]
    headers[b"authorization"] = by_hand(
        headers, body, [b"content-type", b"date", b"host", b"x-amz-target"]
    )
    verify(verifier, (method, url, headers, body))


def by_hand(headers, body, names, stamp="20260101T120000Z", payload=None):
    """An Authorization header, computed step by step."""
    lines = b"".join(name + b":" + headers[name] + b"\n" for name in names)
    payload = payload or hashlib.sha256(body).hexdigest().encode()
    canonical = b"\n".join([b"POST", b"/", b"", lines, b";".join(names), payload])
    scope = f"{stamp[:8]}/eu-west-1/dynamodb/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical).hexdigest()}"
    key = derived_key("a secret of ann", stamp[:8], "eu-west-1")
    signature = hmac.new(key, text.encode(), "sha256").hexdigest()
    return (
        f"AWS4-HMAC-SHA256 Credential=ISOTANN/{scope}, "
        f"SignedHeaders={b';'.join(names).decode()}, Signature={signature}"
    ).encode()


def test_the_day_of_the_scope_must_be_that_of_the_time(verifier):
    method, url, headers, body = signed()
    headers[b"x-amz-date"] = b"20260102T000000Z"
    error = refusal(verifier, (method, url, headers, body))
    assert error.message == (
        "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
        "'20260101' != '20260102', from '20260102T000000Z'."
    )


@pytest.mark.parametrize(
    "stamp", [b"", b"now", b"2026-01-01T12:00:00Z", b"20261301T000000Z", b"\xff" * 16]
)
def test_what_is_no_time(verifier, stamp):
    method, url, headers, body = signed()
    headers[b"x-amz-date"] = stamp
    error = refusal(verifier, (method, url, headers, body))
    assert error.code == "IncompleteSignatureException"
    assert "ISO-8601 'basic format'" in error.message


# Keys


def test_an_unknown_key(verifier):
    error = refusal(verifier, signed(credentials=Credentials("AKIAUNKNOWN", "x")))
    assert (error.code, error.message) == (
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
    )


@pytest.mark.parametrize("in_query", [False, True])
@pytest.mark.parametrize(
    "credentials",
    [
        Credentials("ISOTTEMP", "another secret"),
        Credentials("ISOTTEMP", "another secret", "a+token/"),
        Credentials("ISOTANN", "a secret of ann", "a token"),
    ],
    ids=["none", "wrong", "one too many"],
)
def test_a_session_token_must_be_the_keys(verifier, credentials, in_query):
    error = refusal(verifier, signed(credentials=credentials, in_query=in_query))
    assert error.code == "UnrecognizedClientException"


def test_a_key_that_has_expired(verifier, clock):
    clock.set(NOW + timedelta(hours=1))
    error = refusal(verifier, signed(credentials=TEMPORARY, moment=NOW + timedelta(hours=1)))
    assert (error.code, error.message) == (
        "ExpiredTokenException",
        "The security token included in the request is expired",
    )


def test_a_wrong_secret_is_reported_with_what_was_signed(verifier):
    method, url, headers, body = signed(credentials=Credentials("ISOTANN", "wrong"))
    error = refusal(verifier, (method, url, headers, body))
    digest = hashlib.sha256(b"{}").hexdigest()
    canonical = (
        f"POST\n/\n\ncontent-type:application/x-amz-json-1.0\nhost:{HOST}\nx-amz-date:20260101T120000Z\n"
        "x-amz-target:DynamoDB_20120810.ListTables\n\n"
        f"content-type;host;x-amz-date;x-amz-target\n{digest}"
    )
    assert error.code == "InvalidSignatureException"
    assert error.message == (
        "The request signature we calculated does not match the signature you provided. Check your AWS "
        "Secret Access Key and signing method. Consult the service documentation for details.\n\n"
        f"The Canonical String for this request should have been\n'{canonical}'\n\n"
        "The String-to-Sign should have been\n'AWS4-HMAC-SHA256\n20260101T120000Z\n"
        "20260101/eu-west-1/dynamodb/aws4_request\n"
        f"{hashlib.sha256(canonical.encode()).hexdigest()}'\n"
    )


def test_keys_that_are_replaced_no_longer_sign(verifier):
    verify(verifier, signed())
    verifier.use(Users().find_key)
    assert refusal(verifier, signed()).code == "UnrecognizedClientException"


# The form


@pytest.mark.parametrize(
    ("change", "code", "told"),
    [
        ((b"AWS4-HMAC-SHA256", b"AWS4-ECDSA-P256-SHA256"), "InvalidSignatureException", "SigV4a"),
        (
            (b"AWS4-HMAC-SHA256", b"AWS4-HMAC-SHA1"),
            "IncompleteSignatureException",
            "AWS4-HMAC-SHA1",
        ),
        (
            (b"AWS4-HMAC-SHA256", b"Basic"),
            "MissingAuthenticationTokenException",
            "Authentication Token",
        ),
        ((b"/dynamodb/", b"/s3/"), "InvalidSignatureException", "correct service: 'dynamodb'"),
        (
            (b"/eu-west-1/", b"/eu west/"),
            "InvalidSignatureException",
            "a valid region, not 'eu west'",
        ),
        ((b"/aws4_request", b"/aws5_request"), "InvalidSignatureException", "valid terminator"),
        ((b"/aws4_request", b""), "IncompleteSignatureException", "5 slash-delimited elements"),
        ((b"Signature=", b"Signature="), "InvalidSignatureException", "does not match"),
        (
            (b"SignedHeaders=", b"SignedHeaders=x, SignedHeaders="),
            "IncompleteSignatureException",
            "twice",
        ),
        ((b"host;", b""), "InvalidSignatureException", "'Host' or ':authority' must be"),
        (
            (b";x-amz-target", b""),
            "InvalidSignatureException",
            "'x-amz-target' must be a 'SignedHeader'",
        ),
        (
            (b"host;", b"host;x-none;"),
            "InvalidSignatureException",
            "'x-none' is not in the request",
        ),
    ],
)
def test_an_authorization_of_another_form(verifier, change, code, told):
    method, url, headers, body = signed()
    changed = headers[b"authorization"].replace(*change)
    headers[b"authorization"] = changed[:-1] + (b"0" if changed[-1:] != b"0" else b"1")
    error = refusal(verifier, (method, url, headers, body))
    assert error.code == code
    assert told in error.message


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_any_bytes_are_refused_with_an_error(authorization, query):
    method, _, headers, body = signed()
    verifier = Verifier(USERS.find_key, ManualClock(NOW))
    headers[b"authorization"] = authorization
    refusal(verifier, (method, b"/?" + query, headers, body))
    headers[b"authorization"] = b"AWS4-HMAC-SHA256 " + authorization
    refusal(verifier, (method, b"/", headers, body))
    del headers[b"authorization"]
    refusal(verifier, (method, b"/?X-Amz-Signature=1&" + query, headers, body))


@pytest.mark.parametrize("name", ["Algorithm", "Credential", "Signature", "SignedHeaders", "Date"])
def test_a_parameter_that_is_missing_or_there_twice(verifier, name):
    method, url, headers, body = signed(in_query=True)
    lead, _, query = url.partition(b"?")
    kept = [part for part in query.split(b"&") if not part.startswith(f"X-Amz-{name}=".encode())]
    error = refusal(verifier, (method, lead + b"?" + b"&".join(kept), headers, body))
    assert error.code == "IncompleteSignatureException"
    error = refusal(verifier, (method, url + f"&X-Amz-{name}=1".encode(), headers, body))
    assert (error.code, error.message) == (
        "IncompleteSignatureException",
        "A query-string parameter is there twice.",
    )


@pytest.mark.parametrize("expires", [b"0", b"604801", b"1e3", b"9" * 5000, b""])
def test_a_lifetime_that_is_too_long(verifier, expires):
    method, url, headers, body = signed(in_query=True)
    url = url.replace(b"X-Amz-Expires=3600", b"X-Amz-Expires=" + expires)
    assert "X-Amz-Expires must be" in refusal(verifier, (method, url, headers, body)).message


def test_both_forms_at_once(verifier):
    method, url, headers, body = signed(in_query=True)
    headers[b"authorization"] = signed()[2][b"authorization"]
    assert "Found both" in refusal(verifier, (method, url, headers, body)).message


# Bodies


def with_hash(payload, body=b"{}"):
    return signed(body, headers={"X-Amz-Content-SHA256": payload})


def test_the_hash_of_a_body_may_be_in_a_header(verifier):
    verify(verifier, with_hash(hashlib.sha256(b"{}").hexdigest()))
    error = refusal(verifier, with_hash(hashlib.sha256(b"[]").hexdigest()))
    assert error.code == "InvalidSignatureException"
    assert "does not match what was computed" in error.message


def test_an_unsigned_body_is_for_encrypted_connections(verifier):
    request = with_hash("UNSIGNED-PAYLOAD")
    assert verify(verifier, request, secure=True).body == b"{}"
    assert "over TLS only" in refusal(verifier, request).message


@pytest.mark.parametrize(
    "form", ["STREAMING-UNSIGNED-PAYLOAD-TRAILER", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"]
)
def test_other_forms_of_streams_are_refused(verifier, form):
    error = refusal(verifier, with_hash(form), secure=True)
    assert error.code == "InvalidSignatureException"
    assert form in error.message


def chunked(content, *, size=16):
    """A request in signed chunks, computed as AWS describes it."""
    names = [
        b"content-type",
        b"host",
        b"x-amz-content-sha256",
        b"x-amz-date",
        b"x-amz-decoded-content-length",
    ]
    form = b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
    headers = {
        b"content-type": b"application/x-amz-json-1.0",
        b"content-encoding": b"aws-chunked",
        b"host": b"localhost",
        b"x-amz-content-sha256": form,
        b"x-amz-date": b"20260101T120000Z",
        b"x-amz-decoded-content-length": b"%d" % len(content),
    }
    headers[b"authorization"] = by_hand(headers, b"", names, payload=form)
    before = headers[b"authorization"][-64:].decode()
    key = derived_key("a secret of ann", "20260101", "eu-west-1")
    body = b""
    for at in [*range(0, len(content), size), len(content)]:
        chunk = content[at : at + size]
        text = "\n".join(
            [
                "AWS4-HMAC-SHA256-PAYLOAD",
                "20260101T120000Z",
                "20260101/eu-west-1/dynamodb/aws4_request",
                before,
                hashlib.sha256(b"").hexdigest(),
                hashlib.sha256(chunk).hexdigest(),
            ]
        )
        before = hmac.new(key, text.encode(), "sha256").hexdigest()
        body += b"%x;chunk-signature=%b\r\n%b\r\n" % (len(chunk), before.encode(), chunk)
    return b"POST", b"/", headers, body


@given(st.binary(max_size=100), st.integers(1, 40))
def test_signed_chunks_are_put_together(content, size):
    found = Verifier(USERS.find_key, ManualClock(NOW)).verify(
        *chunked(content, size=size), secure=False
    )
    assert (found.body, found.in_chunks) == (content, True)


@given(st.data())
def test_a_changed_chunk_is_refused(data):
    method, url, headers, body = chunked(b'{"Limit": 5, "ExclusiveStartTableName": "Orders"}')
    verifier = Verifier(USERS.find_key, ManualClock(NOW))
    how = data.draw(st.sampled_from(["flip", "cut", "more", "drop"]))
    if how == "flip":
        changed = flipped(body, data)
    elif how == "cut":
        changed = body[: data.draw(st.integers(0, len(body) - 1))]
    elif how == "more":
        changed = body + data.draw(st.binary(min_size=1, max_size=9))
    else:
        chunk = body.index(b"\r\n") + 2 + 16 + 2
        changed = body[chunk:]
    try:
        found = verifier.verify(method, url, headers, changed, secure=False)
    except ApiError:
        return
    assert found.body == b'{"Limit": 5, "ExclusiveStartTableName": "Orders"}'  # A for a in a size


def test_a_secret_that_is_replaced_while_a_thread_verifies_is_not_kept(clock, monkeypatch):
    new = Credentials(ANN.access_key, "a new secret")
    users = Users(
        {"ann": User(keys=[AccessKey(access_key_id="ISOTANN", secret_access_key=new.secret_key)])}
    )
    verifier = Verifier(USERS.find_key, clock)

    def replaced(*given):
        monkeypatch.undo()
        verifier.use(users.find_key)
        return derived_key(*given)

    monkeypatch.setattr(signatures, "derived_key", replaced)
    assert verify(verifier, signed()).login.name == "ann"  # it began before
    assert verify(verifier, signed(credentials=new)).login.name == "ann"
    assert refusal(verifier, signed()).code == "InvalidSignatureException"
