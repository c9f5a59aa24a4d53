"""The item that expressions are tried on, and the placeholders that they may use."""

from __future__ import annotations

from typing import Any

from tests.oracle.scripts import FALSE, NULL, TRUE, b, bs, lst, m, n, ns, s, ss

ITEM: dict[str, Any] = {
    "p": s("key"),
    "str": s("hello"),
    "num": n(10),
    "bin": b("AAEC"),
    "yes": TRUE,
    "no": FALSE,
    "nil": NULL,
    "sset": ss("a", "b"),
    "nset": ns(1, 2),
    "bset": bs("AA==", "AQ=="),
    "lst": lst(s("zero"), n(1), m(deep=s("x")), lst(n(7))),
    "doc": m(a=s("x"), b=n(2), c=m(d=lst(s("e"))), lst=lst(n(1), n(2))),
    "blank": s(""),
}
VALUES: dict[str, Any] = {
    ":str": s("hello"),
    ":pre": s("he"),
    ":zzz": s("zzz"),
    ":n1": n(1),
    ":n2": n(2),
    ":n5": n(5),
    ":n10": n(10),
    ":n10b": n("1.0e1"),
    ":bin": b("AAEC"),
    ":bpre": b("AAE="),
    ":t": TRUE,
    ":f": FALSE,
    ":nil": NULL,
    ":ss": ss("b", "a"),
    ":ns": ns(2, 1),
    ":a": s("a"),
    ":l": lst(s("zero"), n(1), m(deep=s("x")), lst(n(7))),
    ":m": m(d=lst(s("e"))),
    ":S": s("S"),
    ":N": s("N"),
    ":SS": s("SS"),
    ":L": s("L"),
    ":M": s("M"),
    ":BOOL": s("BOOL"),
    ":NULL": s("NULL"),
    ":bad": s("X"),
    ":blank": s(""),
}
NAMES = {"#s": "str", "#m": "doc", "#dot": "a.b", "#n": "num", "#size": "size"}


def used(
    texts: list[str] | tuple[str, ...], pool: dict[str, Any], *, boundary: str = ":#"
) -> dict[str, Any]:
    """The placeholders of a pool that appear in the texts, whole."""
    found = {}
    for name, value in pool.items():
        for text in texts:
            at = text.find(name)
            while at >= 0:
                after = text[at + len(name) : at + len(name) + 1]
                if not (after.isalnum() or after == "_"):
                    found[name] = value
                at = text.find(name, at + 1)
    return found


def placeholders(*texts: str) -> dict[str, Any]:
    """ExpressionAttributeNames and -Values as the texts need them, absent where blank."""
    names, values = used(texts, NAMES), used(texts, VALUES)
    return {
        **({"ExpressionAttributeNames": names} if names else {}),
        **({"ExpressionAttributeValues": values} if values else {}),
    }
