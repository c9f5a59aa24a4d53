"""The grammar of expressions: recursive-descent parser from tokens to a tree (second stage).

    condition   := and { OR and }
    and         := not { AND not }
    not         := NOT not | predicate
    predicate   := operand comparator operand
                 | operand BETWEEN operand AND operand
                 | operand IN ( operand {, operand} )
                 | function | ( condition )
    operand     := path | :value | function | ( operand )
    function    := word ( operand {, operand} )
    path        := name { . name | [ index ] }

    update      := section { section }
    section     := SET path = sum {, …} | REMOVE path {, …} | ADD path :value {, …} | DELETE path :value {, …}
    sum         := operand [ + operand | - operand ] | ( sum )

    projection  := path {, path}

A token is refused as soon as no expression can continue with it. After an opening parenthesis, either a condition or an
operand may follow, and a function may be either one. So one rule parses both, and a later check decides which it was.
Like DynamoDB, the parser checks names of functions and reserved words only after the syntax.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn, TypeAlias, TypeVar

from isotone.expressions import messages
from isotone.expressions.messages import RefusalMessage
from isotone.expressions.nodes import (
    Action,
    Add,
    And,
    Arithmetic,
    Between,
    Call,
    Comparison,
    ConditionNode,
    Delete,
    In,
    Literal,
    NameRef,
    Node,
    Not,
    Operand,
    Or,
    Path,
    ProjectionNode,
    Remove,
    Set,
    Truth,
    UpdateNode,
    ValueRef,
)
from isotone.expressions.rules import check_words
from isotone.expressions.tokenizer import END_TEXT, Kind, Token, tokenize
from isotone.limits import EXPRESSION_SIZE
from isotone.values.cache import Cache

_Parsed = TypeVar("_Parsed")
_Tree = TypeVar("_Tree", bound=Node)
_Either: TypeAlias = ConditionNode | Operand

COMPARATORS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
ARITHMETIC: Final = frozenset({"+", "-"})
PRECEDENCE: Final = {"OR": 1, "AND": 2}
JUNCTIONS: Final[dict[str, type[And | Or]]] = {"AND": And, "OR": Or}

# bytes of trees cached by text: the same text often comes with different names
_CACHED: Final = 4 << 20
_CONDITIONS: Final = (Comparison, Between, In, Not, And, Or)


def parse_condition(text: str) -> ConditionNode:
    """The tree of a condition, filter or key condition. O(length) the first time."""
    return _conditions[text]


def parse_update(text: str) -> UpdateNode:
    """The tree of an update expression. O(length) the first time."""
    return _updates[text]


def parse_projection(text: str) -> ProjectionNode:
    """The tree of a projection expression. O(length)."""
    return _whole(text, _ExpressionParser.projection)


def _whole(text: str, rule: Callable[[_ExpressionParser], _Tree]) -> _Tree:
    if not text:
        raise RefusalMessage(messages.EMPTY)
    if len(text) > EXPRESSION_SIZE:
        raise RefusalMessage(messages.TOO_LONG)
    parser = _ExpressionParser(text)
    tree = rule(parser)
    parser.finish(tree)
    return tree


_conditions: Final[Cache[str, ConditionNode]] = Cache(
    lambda text, _: _whole(text, _ExpressionParser.condition), _CACHED
)
_updates: Final[Cache[str, UpdateNode]] = Cache(
    lambda text, _: _whole(text, _ExpressionParser.update), _CACHED
)


class _ExpressionParser:
    """A cursor over the tokens of one text, with one method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._at = 0
        self._closing: dict[int, int] = {}  # matching parentheses: opening token → closing token
        self._twice = ""  # the first section of an update that occurs twice

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _accept(self, symbol: str) -> bool:
        if self._token.symbol != symbol:
            return False
        self._at += 1
        return True

    def _expect(self, symbol: str) -> None:
        if not self._accept(symbol):
            self._refuse()

    def finish(self, tree: Node) -> None:
        """Refuse any remaining tokens, then errors of the text as a whole."""
        self._expect(END_TEXT)
        check_words(tree, written=True)
        if self._twice:
            raise RefusalMessage(messages.SECTION_TWICE, section=self._twice)

    def _refuse(self) -> NoReturn:
        """Refuse the token under the cursor; the message quotes it and its neighbours as written."""
        start = self._tokens[self._at - 1].start if self._at else 0
        after = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        near = self._text[start : after.end]
        raise RefusalMessage(messages.SYNTAX, token=self._token.text, near=near)

    def _list(self, rule: Callable[[_ExpressionParser], _Parsed]) -> list[_Parsed]:
        members = [rule(self)]
        while self._accept(","):
            members.append(rule(self))
        return members

    # Conditions

    def condition(self) -> ConditionNode:
        return self._as_condition(self._either(0))

    def _either(self, power: int) -> _Either:
        """A condition whose operators bind tighter than `power`, or a single operand."""
        left = self._term()
        while PRECEDENCE.get(symbol := self._token.symbol, 0) > power:
            parts = [self._as_condition(left)]
            while self._accept(symbol):
                parts.append(self._as_condition(self._either(PRECEDENCE[symbol])))
            left = JUNCTIONS[symbol](tuple(parts))
        return left

    def _term(self) -> _Either:
        negations = 0
        while self._accept("NOT"):
            negations += 1
        opening = self._at
        if self._accept("("):
            found = self._either(0)
            self._close(opening)
        else:
            found = self._operand()
        if not isinstance(found, _CONDITIONS):
            found = self._predicate(found)
        if negations:
            found = self._as_condition(found)
            for _ in range(negations):
                found = Not(found)
        return found

    def _predicate(self, left: Operand) -> _Either:
        """An operand and the comparison that follows it, if any."""
        if self._token.symbol in COMPARATORS:
            return Comparison(self._take().text, left, self._operand())
        if self._accept("BETWEEN"):
            low = self._operand()
            self._expect("AND")
            return Between(left, low, self._operand())
        if self._accept("IN"):
            self._expect("(")
            choices = self._list(_ExpressionParser._operand)
            self._expect(")")
            return In(left, tuple(choices))
        return left

    def _as_condition(self, node: _Either) -> ConditionNode:
        """Refuse an operand where a condition is needed; the message names the next token."""
        if isinstance(node, Path | ValueRef | Literal | Arithmetic | Truth):
            self._refuse()
        return node

    def _close(self, opening: int) -> None:
        """Take the parenthesis that closes the one at `opening`. Refuses redundant parentheses."""
        self._expect(")")
        inner = self._tokens[opening + 1]
        if inner.symbol == "(" and self._closing.get(opening + 1) == self._at - 2:
            raise RefusalMessage(messages.REDUNDANT_PARENTHESES)
        self._closing[opening] = self._at - 1

    # Operands

    def _operand(self) -> Operand:
        token = self._token
        if token.symbol == "(":
            return self._grouped(_ExpressionParser._operand)
        if token.kind is Kind.VALUE:
            return self._value_ref()
        if token.kind is Kind.WORD and self._tokens[self._at + 1].symbol == "(":
            return self._call()
        return self._path()

    def _grouped(self, rule: Callable[[_ExpressionParser], Operand]) -> Operand:
        opening = self._at
        self._at += 1
        operand = rule(self)
        self._close(opening)
        return operand

    def _call(self) -> Call:
        function = self._take().text
        self._expect("(")
        operands = self._list(_ExpressionParser._operand)
        self._expect(")")
        return Call(function, tuple(operands))

    def _value_ref(self) -> ValueRef:
        if self._token.kind is not Kind.VALUE:
            self._refuse()
        return ValueRef(self._take().text)

    def _path(self) -> Path:
        elements: list[str | int | NameRef] = [self._name()]
        while True:
            if self._accept("."):
                elements.append(self._name())
            elif self._accept("["):
                elements.append(self._index())
                self._expect("]")
            else:
                return Path(tuple(elements))

    def _name(self) -> str | NameRef:
        if self._token.kind is Kind.NAME:
            return NameRef(self._take().text)
        if self._token.kind is not Kind.WORD:
            self._refuse()
        return self._take().text

    def _index(self) -> int:
        if self._token.kind is not Kind.INDEX:
            self._refuse()
        return int(self._take().text)

    # Updates

    def update(self) -> UpdateNode:
        actions: list[Action] = []
        seen: set[str] = set()
        while (section := self._token.symbol) in _SECTIONS:
            self._at += 1
            if section in seen:
                self._twice = self._twice or section
            seen.add(section)
            actions += self._list(_SECTIONS[section])
        if not actions:
            self._refuse()
        return UpdateNode(tuple(actions))

    def _set(self) -> Action:
        path = self._path()
        self._expect("=")
        return Set(path, self._sum())

    def _sum(self) -> Operand:
        left = (
            self._grouped(_ExpressionParser._sum) if self._token.symbol == "(" else self._operand()
        )
        if self._token.symbol not in ARITHMETIC or isinstance(left, Arithmetic):
            return left
        return Arithmetic(self._take().text, left, self._operand())

    def _remove(self) -> Action:
        return Remove(self._path())

    def _add(self) -> Action:
        return Add(self._path(), self._value_ref())

    def _delete(self) -> Action:
        return Delete(self._path(), self._value_ref())

    # Projections

    def projection(self) -> ProjectionNode:
        return ProjectionNode(tuple(self._list(_ExpressionParser._path)))


_SECTIONS: Final[dict[str, Callable[[_ExpressionParser], Action]]] = {
    "SET": _ExpressionParser._set,
    "REMOVE": _ExpressionParser._remove,
    "ADD": _ExpressionParser._add,
    "DELETE": _ExpressionParser._delete,
}
