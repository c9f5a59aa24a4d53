"""Text Ion: what the format allows beyond what the service writes, and what is refused with an `IonError` alone."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.exchange.ion import IonError, IonIncomplete, values_in
from isotone.exchange.item_files import ItemFile, PutRecord, Unreadable


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"{'\uD83D\uDE00':1}", {"M": {"😀": {"N": "1"}}}),
        (r'{"\uD83D\uDE00":1}', {"M": {"😀": {"N": "1"}}}),
        (r"{'''\uD83D''' '''\uDE00''':1}", {"M": {"😀": {"N": "1"}}}),
        (r'"\U0010FFFF"', {"S": "\U0010ffff"}),
        ("'''x''' /* c */ '''y''' // '''z'''\n\t'''w'''", {"S": "xyw"}),
        ("'''x'''/**//***/'''y'''", {"S": "xy"}),
        ("{a:'''x''' /* c */, b:/* d */'''y'''}", {"M": {"a": {"S": "x"}, "b": {"S": "y"}}}),
        (r"'''it\''''", {"S": "it'"}),
        (r"'''\''' /* '''", {"S": "''' /* "}),
        ('"a\\\nb"', {"S": "ab"}),
        ('"a\\\r\nb"', {"S": "ab"}),
        ('{{"a}b"}}', {"B": "YX1i"}),
        ("{{ '''a}'''\n'''b''' }}", {"B": "YX1i"}),
        ("{{}}", {"B": ""}),
        ("[{},{{}}]", {"L": [{"M": {}}, {"B": ""}]}),
        ("-0x1_F", {"N": "-31"}),
    ],
)
def test_what_the_format_allows_is_read(text: str, value: dict[str, Any]) -> None:
    assert values_in(text) == [value]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r'"\U00110000"', r"not a character"),
        (r"{'\U00110000':1}", r"not a character"),
        (r"{'\uD83D':1}", "half a surrogate pair"),
        (r'{"\uDE00":1}', "half a surrogate pair"),
        (r"{'''\uDE00''':1}", "half a surrogate pair"),
        (r'{{"\uD83D"}}', "not a byte"),
        ('{{"€"}}', "not a byte"),
        ("{{é}}", "not base64"),
        ("0x_", "is not Ion"),
        ("0x" + "f" * 5000, "more digits"),
        ('{a:"x}\n"y"}', "is not Ion"),
        ("{a:'x}\n'y'}", "is not Ion"),
        ('{{"x}\n"}}', "is not Ion"),
        ('{{"x" y}}', "is not Ion"),
        ("{{aGk=}\n}", "is not Ion"),
    ],
)
def test_what_is_no_value_of_an_item_is_refused(text: str, words: str) -> None:
    with pytest.raises(IonError, match=words) as raised:
        values_in(text)
    assert not isinstance(raised.value, IonIncomplete)


@pytest.mark.parametrize(
    "whole",
    [
        r'{a:"x\"y",b:[1,2]}',
        r"{'''a''':'''it\'s ''' '''}''' /* } */}",
        "{a:{{ aGk= }}, 'b c':{{ '''x}''' '''y''' }} // }\n}",
        '{a:{{ "x}" }}}',
    ],
)
def test_a_text_that_ends_early_is_incomplete(whole: str) -> None:
    """After any token or part of one but the quotes of a long string: what follows may complete it."""
    values_in(whole)
    for end in range(1, len(whole)):
        if whole[end - 1 : end + 1] == "''":
            continue
        with pytest.raises(IonIncomplete):
            values_in(whole[:end])


def read(text: bytes) -> list[Any]:
    """The keys that a file of Ion has, and None for each record that is not an item."""
    records = ItemFile(BytesIO(text), "ION").read(1 << 20)
    return [record.item["id"]["S"] if isinstance(record, PutRecord) else None for record in records]


@pytest.mark.parametrize(
    "bad",
    [
        b'{Item:{id:"x}',
        b"{Item:{id:'x}",
        b'{Item:{id:{{"x}',
        rb'{Item:{id:"\U00110000"}}',
        rb"{Item:{id:'b','\uD83D':1}}",
        b"{Item:{id:0x_}}",
        b"{Item:{id:{{\xc3\xa9}}}}",
    ],
)
def test_a_bad_record_is_one_row(bad: bytes) -> None:
    """The lines behind it are read, though it may look as if it went on in them."""
    lines = [b'{Item:{id:"%d"}}' % number for number in range(2000)]
    found = read(b"\n".join([lines[0], bad, *lines[1:]]))
    assert found == ["0", None, *map(str, range(1, 2000))]


def test_a_record_of_several_lines_may_have_comments_between_its_texts() -> None:
    assert read(b"{Item:{id:'''a}\n''' /* {}\n} */ '''b'''}}\n{Item:{id:\"c\"}}") == ["a}\nb", "c"]


MARKS = [
    "'''",
    "'",
    '"',
    "{{",
    "}}",
    "{",
    "}",
    "[",
    "]",
    ":",
    "::",
    ",",
    "/*",
    "*/",
    "//",
    "\n",
    "\r",
]
PARTS = [r"\u", "D83D", r"\U00110000", r"\xe9", "\\", "é", "0x", "_", "1d", "-", " ", "a", "null"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(MARKS + PARTS), max_size=12).map("".join))
def test_any_text_is_read_or_raises_an_ion_error(text: str) -> None:
    try:
        values_in(text)
    except IonError:
        return
    records = ItemFile(BytesIO(b"{Item:{id:" + text.encode() + b"}}"), "ION").read(100)
    assert all(isinstance(record, PutRecord | Unreadable) for record in records)
