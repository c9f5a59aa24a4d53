"""Random values, items and expressions, over an alphabet so small that things collide.

An expression is drawn as text together with its `:placeholders`; most are well formed, and a type error
or an overlap comes up often enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, Final

from hypothesis import strategies as st

Value = dict[str, Any]
NAMES = ("a", "b", "c", "d")

strings = st.sampled_from(["", "a", "ab", "b", "ba", "é"])
numbers = st.sampled_from(["0", "1", "2", "-1", "10", "1.5", "100000000000000000000", "0.001"])
binaries = st.sampled_from(["", "AA==", "AAE=", "AQ=="])
scalars: st.SearchStrategy[Value] = st.one_of(
    strings.map(lambda text: {"S": text}),
    numbers.map(lambda number: {"N": number}),
    binaries.map(lambda bytes_: {"B": bytes_}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.just({"NULL": True}),
)
sets: st.SearchStrategy[Value] = st.one_of(
    st.lists(strings, min_size=1, max_size=3, unique=True).map(lambda all_: {"SS": all_}),
    st.lists(numbers, min_size=1, max_size=3, unique=True).map(lambda all_: {"NS": all_}),
    st.lists(binaries, min_size=1, max_size=3, unique=True).map(lambda all_: {"BS": all_}),
)
values: st.SearchStrategy[Value] = st.recursive(
    st.one_of(scalars, sets),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda all_: {"L": all_}),
        st.dictionaries(st.sampled_from("xy"), inner, max_size=2).map(lambda all_: {"M": all_}),
    ),
    max_leaves=5,
)
items = st.dictionaries(st.sampled_from(NAMES), values, max_size=4)
addends = st.one_of(sets, numbers.map(lambda text: {"N": text}))
TYPES: Final = ("S", "N", "B", "SS", "NS", "BS", "L", "M", "BOOL", "NULL")
CLAUSES: Final = tuple(
    each for size in (1, 2, 3) for each in permutations(("SET", "REMOVE", "ADD", "DELETE"), size)
)


@dataclass
class Text:
    """An expression as it grows: draws parts and keeps the placeholders of the values in it."""

    draw: Any
    placeholders: dict[str, Value] = field(default_factory=dict)

    def any_of(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def value(self, strategy: st.SearchStrategy[Value] = values) -> str:
        """A new placeholder for a drawn value."""
        return self.placeholder(self.draw(strategy))

    def placeholder(self, value: Value) -> str:
        """A new placeholder."""
        name = f":v{len(self.placeholders)}"
        self.placeholders[name] = value
        return name

    def path(self) -> str:
        steps = [self.any_of(".x", ".y", "[0]", "[1]") for _ in range(self.any_of(0, 0, 1, 2))]
        return str(self.any_of(*NAMES) + "".join(steps))

    def operand(self) -> str:
        kind = self.any_of("path", "path", "value", "value", "size")
        if kind == "size":
            return f"size({self.path()})"
        return self.path() if kind == "path" else self.value()

    def condition(self, depth: int = 2) -> str:
        kind = self.any_of(
            "compare", "compare", "between", "in", "call", *["logic"] * (3 * (depth > 0))
        )
        return str(getattr(self, f"_{kind}")(depth))

    def _compare(self, depth: int) -> str:
        return f"{self.operand()} {self.any_of('=', '<>', '<', '<=', '>', '>=')} {self.operand()}"

    def _between(self, depth: int) -> str:
        return f"{self.operand()} BETWEEN {self.operand()} AND {self.operand()}"

    def _in(self, depth: int) -> str:
        members = ", ".join(self.operand() for _ in range(self.any_of(1, 2, 3)))
        return f"{self.operand()} IN ({members})"

    def _call(self, depth: int) -> str:
        name = self.any_of(
            "attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"
        )
        if name in ("attribute_exists", "attribute_not_exists"):
            return f"{name}({self.path()})"
        if name == "attribute_type":
            return f"{name}({self.path()}, {self.placeholder({'S': self.any_of(*TYPES)})})"
        return f"{name}({self.path()}, {self.operand()})"

    def _logic(self, depth: int) -> str:
        operator = self.any_of("AND", "OR", "NOT", "()")
        one = self.condition(depth - 1)
        if operator == "NOT":
            return f"NOT {one}"
        if operator == "()":
            return f"({one} OR {self.condition(depth - 1)})"
        return f"{one} {operator} {self.condition(depth - 1)}"

    def update(self) -> str:
        clauses = self.any_of(*CLAUSES)
        return " ".join(f"{clause} {self._actions(clause)}" for clause in clauses)

    def _actions(self, clause: str) -> str:
        return ", ".join(self._action(clause) for _ in range(self.any_of(1, 1, 2)))

    def _action(self, clause: str) -> str:
        if clause == "REMOVE":
            return self.path()
        if clause == "SET":
            return f"{self.path()} = {self._assigned()}"
        return f"{self.path()} {self.value(sets if clause == 'DELETE' else addends)}"

    def _assigned(self) -> str:
        kind = self.any_of("plain", "plain", "sum", "append")
        if kind == "append":
            return f"list_append({self._term()}, {self._term()})"
        return (
            self._term()
            if kind == "plain"
            else f"{self._term()} {self.any_of('+', '-')} {self._term()}"
        )

    def _term(self) -> str:
        kind = self.any_of("path", "value", "value", "default")
        if kind == "default":
            return f"if_not_exists({self.path()}, {self.value()})"
        return self.path() if kind == "path" else self.value()

    def projection(self) -> str:
        return ", ".join(self.path() for _ in range(self.any_of(1, 2, 3)))


@st.composite
def expressions(draw: Any, kind: str) -> tuple[str, dict[str, Value]]:
    """The text of a `condition`, `update` or `projection`, and its values."""
    text = Text(draw)
    return str(getattr(text, kind)()), text.placeholders
