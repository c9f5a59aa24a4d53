"""Keys of Azure sort like the values of DynamoDB, are legal there, and come back exactly."""

from __future__ import annotations

import re
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.backends.azure_table import keys
from isotone.errors import MalformedKey
from isotone.values.number import canonical_number
from isotone.values.types import compare

FORBIDDEN = re.compile("[\x00-\x20/\\\\#?%\x7f-\x9f]")

# Characters at which an escape begins or ends, and their neighbours.
EDGES = "\x00\x1f !#$%&-.,/0=>?@Z[\\]}~\x7f\x80\x9f\xa0é中\ud7fe\ud7ff\ue000\uffff\U00010000\U0010ffffs_h7"
texts = st.text(st.sampled_from(EDGES)) | st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.one_of(
    st.integers(-(10**38) + 1, 10**38 - 1).map(str),
    st.builds("{}e{}".format, st.integers(-9999, 9999), st.integers(-120, 110)),
    st.sampled_from(["0", "-0.5", "1e-130", "-1e-130", "9.9e125", "-9.9e125"]),
).map(canonical_number)
values = st.one_of(
    st.tuples(*[st.builds(lambda text: {"S": text}, texts)] * 2),
    st.tuples(*[st.builds(lambda number: {"N": number}, numbers)] * 2),
    st.tuples(*[st.builds(lambda raw: {"B": b64encode(raw).decode()}, st.binary(max_size=6))] * 2),
)


def utf_16(key: str) -> bytes:
    return key.encode("utf-16-be")


@given(values)
def test_keys_sort_as_the_values_in_utf_8_and_in_utf_16(pair):
    one, other = pair
    first, second = keys.encode(one), keys.encode(other)
    expected = compare(one, other)
    assert (first > second) - (first < second) == expected
    assert (utf_16(first) > utf_16(second)) - (utf_16(first) < utf_16(second)) == expected


@given(values)
def test_a_key_is_legal_in_azure_and_decodes_to_its_value(pair):
    for value in pair:
        key = keys.encode(value)
        assert not FORBIDDEN.search(key)
        assert keys.decode(key, next(iter(value))) == value


@given(texts, texts)
def test_the_range_of_a_prefix_has_exactly_the_texts_that_begin_with_it(prefix, text):
    for candidate in (text, prefix + text):
        low, high = keys.prefix_range({"S": prefix})
        key = keys.encode_text(candidate)
        for form in (str, utf_16):
            inside = form(low) <= form(key) and (high is None or form(key) < form(high))
            assert inside == candidate.startswith(prefix)


@given(st.binary(max_size=4), st.binary(max_size=4))
def test_the_range_of_a_binary_prefix(prefix, raw):
    low, high = keys.prefix_range({"B": b64encode(prefix).decode()})
    for candidate in (raw, prefix + raw):
        inside = low <= candidate.hex() and (high is None or candidate.hex() < high)
        assert inside == candidate.startswith(prefix)


@given(st.text(st.sampled_from(EDGES)), st.sampled_from("SNB"))
def test_a_key_that_is_not_encoded_is_refused(key, code):
    try:
        value = keys.decode(key, code)
    except MalformedKey:
        return
    assert keys.encode(value) == key


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ({"S": "USER#42"}, "USER$h42"),
        ({"S": "2022-08-13T00:00:00Z"}, "2022-08-13T00:00:00Z"),
        ({"S": "https://a.b/c?d=é"}, "https:.~~.~~a.b.~~c>~~d=é"),
        ({"S": "..é"}, "..~-é"),
        ({"S": "\U0001f600"}, "\ud7ff~~01f600"),
        ({"N": "9223370375438007168"}, "p519.9223370375438007168"),
        ({"N": "-1200"}, "-495.87~"),
        ({"N": "0"}, "0"),
        ({"B": "AP8="}, "00ff"),
    ],
)
def test_the_form_of_keys(value, key):
    assert keys.encode(value) == key


@pytest.mark.parametrize("key", ["p504.120", "p504.", "p999.1", "-495.8", "00", "x", "p504.1~"])
def test_a_number_in_another_form_is_refused(key):
    with pytest.raises(MalformedKey, match="is not a number"):
        keys.decode(key, "N")


def test_azure_counts_utf_16_characters():
    assert keys.length("aé中") == 3
    assert keys.length("a\U0001f600") == 3
