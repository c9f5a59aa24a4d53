"""Attribute values: what is accepted, how it comes back, what it costs, what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from tests.oracle.scripts import (
    FALSE,
    NULL,
    SIMPLE,
    TRUE,
    Script,
    Step,
    b,
    bs,
    lst,
    m,
    n,
    ns,
    s,
    ss,
    step,
)

NUMBERS = [
    "0",
    "-0",
    "0.0",
    "-0.0",
    "00",
    "007",
    "1",
    "-1",
    "+1",
    "1.0",
    "1.50",
    "100",
    "1e2",
    "1E2",
    "1e+2",
    "1e-2",
    ".5",
    "5.",
    "-.5",
    "0.00001",
    "1e10",
    "1.23e5",
    "123.4500",
    "1e125",
    "9.9999999999999999999999999999999999999e125",
    "1e126",
    "-1e125",
    "-9.9999999999999999999999999999999999999E+125",
    "-1e126",
    "1e-130",
    "9.9e-130",
    "1e-131",
    "1.1e-130",
    "-1e-130",
    "-1e-131",
    "1e500",
    "1e-500",
    "12345678901234567890123456789012345678",
    "123456789012345678901234567890123456789",
    "1234567890123456789012345678901234567800",
    "0.12345678901234567890123456789012345678",
    "0.123456789012345678901234567890123456789",
    "1.2345678901234567890123456789012345678e20",
    "100000000000000000000000000000000000000000",
    "10000000000000000000000000000000000000000000000000000000001",
    "0.00000000000000000000000000000000000000000000000000001",
]
NOT_NUMBERS = [
    "",
    " ",
    "a",
    "1a",
    "1 ",
    " 1",
    "1,0",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e",
    "e1",
    "--1",
]
NOT_NUMBERS += [
    "+-1",
    "1.2.3",
    "0x10",
    "1_000",
    "1e1.5",
    ".",
    "-",
    "+",
    "1e99999999999",
    "1d",
    "1f",
]

ACCEPTED: list[dict[str, Any]] = [
    *(s(""), s("x"), s("é"), s("😀"), s("a\u0000b"), s(" "), s("x" * 1000), s("～")),
    *(b(""), b("AA=="), b("/+8="), b("AAEC"), TRUE, FALSE, NULL),
    *(
        ss("a"),
        ss("b", "a"),
        ss("", "a"),
        ns(1),
        ns(3, 2, 1),
        ns("1.0", "2e1"),
        bs("AA==", "AQ=="),
        bs(""),
    ),
    *(lst(), m(), lst(s("a"), n(1), lst(m(a=NULL)))),
    *(m(a=m(b=lst(ss("x"), m()))), m(**{"": s("empty name")}), m(**{"a.b": n("1.1")})),
]
REFUSED: list[Any] = [
    *({}, {"S": "a", "N": "1"}, {"S": "a", "B": "AA=="}, {"X": "a"}, {"s": "a"}),
    *({"NULL": False}, {"NULL": None}, {"S": None}, {"N": None}, {"SS": None}, {"M": None}),
    *(ss(), ns(), bs(), ss("a", "a"), ns(1, 1), ns("1", "1.0"), bs("AA==", "AA==")),
    *(ns("1", "x"), ns(""), lst({}), m(a={}), lst(ss()), lst({"N": "x"}), m(a=ss("a", "a"))),
    *(b("x"), b("===="), b("AB"), b("A B="), {"BOOL": "maybe"}),
    *({"B": 1}, {"SS": "a"}, {"L": {}}, {"M": []}),
    *("a", 1, True, [], {"SS": {"a": 1}}),
]


CONVERTED = [
    ({"S": 1}, "NUMBER_VALUE cannot be converted to String"),
    ({"N": 1}, "NUMBER_VALUE cannot be converted to String"),
    ({"N": 1.5}, "DECIMAL_VALUE cannot be converted to String"),
    ({"SS": [1]}, "NUMBER_VALUE cannot be converted to String"),
    ({"S": True}, "TRUE_VALUE cannot be converted to String"),
    ({"S": False}, "FALSE_VALUE cannot be converted to String"),
    ({"BOOL": 1}, "NUMBER_VALUE cannot be converted to Boolean"),
]


def _nested(depth: int, kind: str) -> dict[str, Any]:
    """A value of so many levels of lists or maps around a string."""
    value = s("core")
    for _ in range(depth):
        value = lst(value) if kind == "L" else m(a=value)
    return value


def _put_and_get(values: list[Any]) -> Iterator[Step]:
    for value in values:
        item = {"p": s("key"), "v": value}
        yield step("PutItem", TableName="simple", Item=item, ReturnConsumedCapacity="TOTAL")
        yield step(
            "GetItem", TableName="simple", Key={"p": s("key")}, ReturnConsumedCapacity="TOTAL"
        )


def _converted() -> Iterator[Step]:
    """DynamoDB Local converts JSON's own types; the service refuses them."""
    for value, message in CONVERTED:
        item = {"p": s("key"), "v": value}
        real = f"SerializationException: {message}"
        yield step("PutItem", real, TableName="simple", Item=item)


def _sizes() -> Iterator[Step]:
    """Around the units of read and write, and around 400 KB."""
    around = [*(1024 * k for k in (1, 2, 4, 8, 12)), 400 * 1024]
    for size, slack in itertools.product(around, (-12, -6, -5, -4, -3, -2, -1, 0, 1)):
        item = {"p": s("key"), "v": s("x" * (size + slack - 5))}
        yield step("PutItem", TableName="simple", Item=item, ReturnConsumedCapacity="TOTAL")
        for consistent in (True, False):
            yield step(
                "GetItem",
                TableName="simple",
                Key={"p": s("key")},
                ConsistentRead=consistent,
                ProjectionExpression="p",
                ReturnConsumedCapacity="TOTAL",
            )


MIXED = [
    *(n("1"), n("123"), n("-123"), n("1234567"), n("0.001"), n("1e100"), TRUE, NULL, b("AAEC")),
    *(
        ss("abc", "de"),
        ns(1, 22, 333),
        bs("AAEC"),
        lst(),
        m(),
        lst(s("a"), n(1)),
        m(a=s("b"), c=lst()),
    ),
]


def _accounting() -> Iterator[Step]:
    """An item of exactly 1,024 bytes by our accounting plus each kind of value: write units tell its size.

    The padding runs over a window, so that the step from one unit to two is found for every kind.
    """
    for value, size in itertools.product(MIXED, range(1)):
        for padding in range(988 + size, 1022):
            item = {"p": s("k"), "v": value, "x": s("x" * padding)}
            yield step("PutItem", TableName="simple", Item=item, ReturnConsumedCapacity="TOTAL")


SCRIPTS = (
    Script("values/accepted", (SIMPLE,), list(_put_and_get(ACCEPTED))),
    Script("values/refused", (SIMPLE,), list(_put_and_get(REFUSED))),
    Script("values/converted", (SIMPLE,), list(_converted())),
    Script("values/numbers", (SIMPLE,), list(_put_and_get([n(text) for text in NUMBERS]))),
    Script("values/no-numbers", (SIMPLE,), list(_put_and_get([n(text) for text in NOT_NUMBERS]))),
    Script(
        "values/depth",
        (SIMPLE,),
        list(
            _put_and_get(
                [
                    _nested(depth, kind)
                    for depth, kind in itertools.product((1, 30, 31, 32, 33), "LM")
                ]
            )
        ),
    ),
    Script("values/sizes", (SIMPLE,), list(_sizes())),
    Script("values/accounting", (SIMPLE,), list(_accounting())),
)
