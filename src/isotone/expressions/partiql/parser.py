"""The grammar of PartiQL: tokens to a syntax tree, by recursive descent (the second stage).

    statement   := ( select | insert | update | delete | EXISTS ( select ) ) [ ; ]
    select      := SELECT [ALL] ( * | column {, column} ) FROM path [WHERE expression] [ORDER BY key {, key}]
    insert      := INSERT INTO path VALUE expression
    update      := UPDATE path ( SET path = expression {, …} | REMOVE path )+ [WHERE expression] [returning]
    delete      := DELETE FROM path [WHERE expression] [returning]
    returning   := RETURNING ( ALL | MODIFIED ) ( OLD | NEW ) *

    expression  := operators by PRECEDENCE over: [NOT | + | -] primary
    primary     := literal | ? | name | function ( … ) | ( … ) | [ … ] | << … >> | { … }, then { . name | [ … ] }

A text that is no statement of PartiQL is `Malformed`. A statement that PartiQL has but DynamoDB has not is refused
in the service's words, and only after the whole text was parsed: what is malformed is told first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from isotone.expressions.messages import Refusal
from isotone.expressions.partiql import messages
from isotone.expressions.partiql.syntax import (
    Assignment,
    Bag,
    CallSyntax,
    DeleteSyntax,
    ExistsSyntax,
    Expression,
    InsertSyntax,
    Ion,
    Is,
    Number,
    Operation,
    Parameter,
    PathSyntax,
    Returning,
    SelectSyntax,
    Sequence,
    Star,
    StatementSyntax,
    Struct,
    Text,
    Unsupported,
    UpdateSyntax,
    Variable,
    Word,
)
from isotone.expressions.partiql.tokenizer import Kind, Token, tokenize

Parsed = TypeVar("Parsed")

_NOT: Final = 3
PRECEDENCE: Final = {
    "OR": 1,
    "AND": 2,
    **dict.fromkeys(("=", "<>", "!=", "IS", "IN"), 4),
    **dict.fromkeys(("<", "<=", ">", ">=", "BETWEEN", "LIKE"), 5),
    **dict.fromkeys(("+", "-", "||"), 6),
    **dict.fromkeys(("*", "/", "%"), 7),
}
"""How tightly each operator between operands binds."""

_NEGATABLE: Final = frozenset({"IN", "BETWEEN", "LIKE"})
_WORDS: Final = frozenset({"TRUE", "FALSE", "NULL", "MISSING"})
# Keywords that are functions when a parenthesis follows, and those that are constructs of their own.
_FUNCTIONS: Final = frozenset(
    {
        *("BIT_LENGTH", "CHARACTER_LENGTH", "CHAR_LENGTH", "OCTET_LENGTH", "COALESCE", "NULLIF"),
        *("DATE_ADD", "DATE_DIFF", "EXISTS", "LOWER", "SIZE", "UPPER"),
    }
)
_CONSTRUCTS: Final = frozenset(
    ["AVG", "CASE", "CAST", "COUNT", "EXTRACT", "MAX", "MIN", "SUBSTRING", "SUM", "TRIM"]
)
_AGGREGATES: Final = frozenset({"AVG", "COUNT", "MAX", "MIN", "SUM"})
_JOINS: Final = frozenset({",", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS"})
# The names of PartiQL's types, as the service prints them.
_SAME_NAME: Final = """
MISSING NULL BOOLEAN BLOB STRING NUMERIC STRUCT TUPLE LIST FLOAT REAL DECIMAL SMALLINT TIMESTAMP
SYMBOL CLOB BAG SEXP DATE TIME
"""
_TYPES: Final = {
    **{word: word for word in _SAME_NAME.split()},
    "BOOL": "BOOLEAN",
    "INT": "INTEGER",
    "INTEGER": "INTEGER",
    "CHAR": "CHARACTER",
    "CHARACTER": "CHARACTER",
    "VARCHAR": "CHARACTER_VARYING",
}
_OPERATIONS: Final = {
    ("CREATE", "TABLE"): "CreateTable",
    ("DROP", "TABLE"): "DropTable",
    ("CREATE", "INDEX"): "CreateIndex",
    ("DROP", "INDEX"): "DropIndex",
}


_CONFLICT: Final = "invalid ON CONFLICT syntax"
# What PartiQL's parser calls symbols that it expects, and kinds of tokens that it does not expect.
_TOKEN_NAMES: Final = {
    "(": "LEFT_PAREN",
    ")": "RIGHT_PAREN",
    "]": "RIGHT_BRACKET",
    "}": "RIGHT_CURLY",
    ">>": "RIGHT_DOUBLE_ANGLE_BRACKET",
    ":": "COLON",
}
_UNEXPECTED: Final = {Kind.KEYWORD: "Unexpected keyword", Kind.SYMBOL: "Unexpected operator"}


class Malformed(Exception):
    """The text is not a statement of PartiQL; the argument is the reason, in the words of PartiQL's own parser."""


def parse(text: str) -> tuple[StatementSyntax, int]:
    """The syntax tree of a statement, and how many parameters it has. O(length).

    Raises `Malformed`, or a `Refusal` for clauses and statements that DynamoDB does not have.
    """
    parser = _Parser(text)
    try:
        tree = parser.statement()
    except RecursionError:
        raise Malformed("Expression is nested too deeply") from None
    if parser.refusal is not None:
        raise parser.refusal
    return tree, parser.parameters


class _Parser:
    """A cursor over the tokens of a statement, and a method for each rule.

    `refusal` is the first of the refusals, to be raised if the text is well formed.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._at = 0
        self.parameters = 0
        self.refusal: Refusal | None = None

    # The cursor

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._token
        if token.kind is Kind.UNKNOWN:
            raise Malformed("Invalid character")
        if token.kind is Kind.END:
            raise Malformed("Unexpected term")
        self._at += 1
        return token

    def _next_is(self, symbol: str, *more: str) -> bool:
        """Whether these are the next tokens."""
        if self._tokens[self._at].symbol != symbol:
            return False
        following = self._tokens[self._at + 1 : self._at + 1 + len(more)]
        return tuple(token.symbol for token in following) == more if more else True

    def _accept(self, *symbols: str) -> bool:
        """Take tokens if they are the next ones."""
        if not self._next_is(*symbols):
            return False
        self._at += len(symbols)
        return True

    def _expect(self, *symbols: str, reason: str = "") -> None:
        """Take tokens that must be the next ones; `reason` is why the statement is malformed without them."""
        if not self._accept(*symbols):
            shown = " ".join(_TOKEN_NAMES.get(symbol, symbol) for symbol in symbols)
            raise Malformed(reason or f"Expected {shown}")

    def _refuse(
        self, sentence: str, place: Expression | Token | None = None, **details: object
    ) -> None:
        """Remember a refusal. The first one counts."""
        if self.refusal is None:
            self.refusal = refusal(self._text, sentence, place, **details)

    def _list(self, rule: Callable[[], Parsed], closing: str = "") -> tuple[Parsed, ...]:
        """Parts separated by commas; with a closing symbol there may be none, and it is taken."""
        if closing and self._accept(closing):
            return ()
        parts = [rule()]
        while self._accept(","):
            parts.append(rule())
        if closing:
            self._expect(closing)
        return tuple(parts)

    # Statements

    def statement(self) -> StatementSyntax:
        """The whole text."""
        rule = _STATEMENTS.get(self._token.symbol)
        tree = self._other() if rule is None else rule(self)
        after = "semicolon. (Only one query is allowed.)" if self._accept(";") else "expression"
        if self._token.kind is not Kind.END:
            raise Malformed(f"Unexpected token after {after}")
        return tree

    def _other(self) -> NoReturn:
        """A statement that DynamoDB does not have."""
        words = tuple(token.symbol for token in self._tokens[:2])
        if words in _OPERATIONS and self._tokens[2].kind in (Kind.NAME, Kind.QUOTED):
            raise Refusal(messages.UNSUPPORTED_OPERATION, operation=_OPERATIONS[words])
        try:
            tree = self._expression()
        except Malformed:
            raise Malformed("Expected data manipulation") from None
        if self._token.kind is not Kind.END:
            raise Malformed("Unexpected token after expression")
        if isinstance(tree, Variable):
            raise Refusal(messages.UNSUPPORTED_OPERATION, operation="Id")
        raise Malformed("Expected data manipulation")

    def _exists(self) -> ExistsSyntax:
        self._expect("EXISTS", "(")
        select = self._select()
        self._expect(")")
        return ExistsSyntax(select)

    def _select(self) -> SelectSyntax:
        self._expect("SELECT")
        if self._accept("DISTINCT"):
            self._refuse(messages.UNSUPPORTED_TOKEN, token="DISTINCT", at="")
        else:
            self._accept("ALL")
        columns = self._columns()
        self._expect("FROM", reason="Expected FROM after SELECT list")
        source = self._source()
        where = self._where()
        self._unsupported_clauses()
        order: tuple[tuple[Expression, bool], ...] = ()
        if self._accept("ORDER", "BY"):
            order = self._list(self._order_key)
        if self._accept("LIMIT"):
            self._refuse(messages.UNSUPPORTED_CLAUSE, self._expression(), clause="LIMIT")
        return SelectSyntax(columns, source, where, order)

    def _columns(self) -> tuple[Expression, ...] | None:
        if self._accept("*"):
            if self._next_is(","):
                raise Malformed(messages.STAR_AND_COLUMNS)
            return None
        if self._accept("VALUE") or self._accept("PIVOT"):
            self._refuse(messages.VALUE_OR_PIVOT)
        return self._list(self._column)

    def _column(self) -> Expression:
        token = self._token
        try:
            column = self._expression()
        except Malformed:
            if token.kind is Kind.KEYWORD and self._tokens[self._at - 1] is token:
                raise Malformed(messages.KEYWORD_IN_LIST.format(word=token.text.lower())) from None
            raise
        if self._accept("AS"):
            self._name()
            self._refuse(messages.ALIAS)
        elif self._token.kind in (Kind.NAME, Kind.QUOTED):
            self._take()
            self._refuse(messages.ALIAS)
        return column

    def _source(self) -> Expression:
        """What follows FROM: a path, and what DynamoDB refuses after it."""
        if self._accept("UNPIVOT"):
            self._refuse(messages.ONE_SOURCE)
        source = self._target()
        while self._token.symbol in _JOINS:
            self._refuse(messages.ONE_SOURCE)
            while self._token.symbol in _JOINS:
                self._take()
            self._target()
            if self._accept("ON"):
                self._expression()
        return source

    def _target(self) -> Expression:
        """A table or index, and the alias that DynamoDB refuses."""
        target = self._primary()
        if self._accept("AS") or self._accept("AT") or self._accept("BY"):
            self._name()
            self._refuse(messages.ALIAS)
        elif self._token.kind in (Kind.NAME, Kind.QUOTED):
            self._take()
            self._refuse(messages.ALIAS)
        return target

    def _where(self) -> Expression | None:
        return self._expression() if self._accept("WHERE") else None

    def _unsupported_clauses(self) -> None:
        if self._accept("GROUP"):
            self._accept("PARTIAL")
            self._expect("BY")
            self._list(self._column)
            self._refuse(messages.UNSUPPORTED_CLAUSE, clause="GROUP BY", at="")
        if self._accept("HAVING"):
            self._refuse(messages.UNSUPPORTED_CLAUSE, self._expression(), clause="HAVING")

    def _order_key(self) -> tuple[Expression, bool]:
        key = self._expression()
        descends = self._accept("DESC")
        if not descends:
            self._accept("ASC")
        return key, descends

    def _insert(self) -> InsertSyntax:
        start = self._token
        self._expect("INSERT", "INTO")
        target = self._primary()
        if isinstance(target, CallSyntax):  # a list of columns, which PartiQL does not have
            raise Malformed("Unexpected term")
        if not self._accept("VALUE"):
            # Rows of values, or a collection of items: PartiQL has both, DynamoDB neither.
            value = self._list(self._row)[0] if self._accept("VALUES") else self._expression()
            self._refuse(messages.UNSUPPORTED_OPERATION, operation="InsertOp")
            return InsertSyntax(target, value)
        value = self._expression()
        if self._accept("AT"):
            self._expression()
            self._refuse(messages.AT_IN_INSERT, start)
        if self._accept("ON", "CONFLICT"):
            self._expect("WHERE", reason=_CONFLICT)
            self._expression()
            self._expect("DO", "NOTHING", reason=_CONFLICT)
            self._refuse(messages.UNSUPPORTED_CLAUSE, clause="ON CONFLICT", at="")
        if self._returning() is not None:
            self._refuse(messages.RETURNING_IN_INSERT)
        return InsertSyntax(target, value)

    def _row(self) -> Expression:
        """A row of `VALUES`, which is in parentheses."""
        if not self._next_is("("):
            raise Malformed("Expected LEFT_PAREN for row value constructor")
        return self._expression()

    def _update(self) -> UpdateSyntax:
        self._expect("UPDATE")
        target = self._target()
        assignments: list[Assignment] = []
        while True:
            if self._accept("SET"):
                assignments += self._list(self._assignment)
            elif self._accept("REMOVE"):
                assignments.append(Assignment(self._path(), None))
            else:
                break
        if not assignments:
            raise Malformed("Expected data manipulation")
        return UpdateSyntax(target, tuple(assignments), self._where(), self._returning())

    def _assignment(self) -> Assignment:
        target = self._path()
        self._expect("=", reason="Expected '='")
        return Assignment(target, self._expression())

    def _path(self) -> Expression:
        """A name, with the steps that follow it."""
        if self._token.kind not in (Kind.NAME, Kind.QUOTED):
            raise Malformed("Expected identifier for simple path")
        return self._primary()

    def _delete(self) -> DeleteSyntax:
        self._expect("DELETE", "FROM", reason="Expected FROM after DELETE")
        return DeleteSyntax(self._target(), self._where(), self._returning())

    def _returning(self) -> Returning | None:
        if not self._accept("RETURNING"):
            return None
        returning = self._returned()
        while self._accept(","):
            self._returned()
            self._refuse(messages.RETURNING_MANY)
        return returning

    def _returned(self) -> Returning:
        for words, returning in _RETURNING.items():
            if self._accept(*words):
                if not self._accept("*"):
                    self._expression()
                    self._refuse(messages.RETURNING_STAR)
                return returning
        raise Malformed("Expected ( MODIFIED | ALL ) ( NEW | OLD ) in each returning element.")

    # Expressions

    def _expression(self, power: int = 0) -> Expression:
        """An expression whose operators bind tighter than `power`."""
        left = self._prefixed()
        while True:
            negation = self._token if self._next_is("NOT") else None
            operator = self._tokens[self._at + (negation is not None)]
            if negation is not None and operator.symbol not in _NEGATABLE:
                return left
            binding = PRECEDENCE.get(operator.symbol, 0)
            if binding <= power:
                return left
            self._at += 1 + (negation is not None)
            left = self._operation(left, operator, binding)
            if negation is not None:
                left = Operation(negation.start, operator.end, "NOT", (left,))

    def _operation(self, left: Expression, operator: Token, binding: int) -> Expression:
        """An operator and the operands after it."""
        symbol, start, end = operator.symbol, operator.start, operator.end
        if symbol == "IS":
            negated = self._accept("NOT")
            return Is(start, end, left, self._type(), negated)
        if symbol == "BETWEEN":
            low = self._expression(binding)
            self._expect("AND", reason="Expected expression after AND")
            return Operation(start, end, symbol, (left, low, self._expression(binding)))
        if symbol == "IN" and self._next_is("("):
            opening = self._take()
            right: Expression = Sequence(
                opening.start, opening.end, self._list(self._expression, ")")
            )
        else:
            right = self._expression(binding)
        if symbol == "LIKE" and self._accept("ESCAPE"):
            self._expression(binding)
        return Operation(start, end, symbol, (left, right))

    def _type(self) -> str:
        name = _TYPES.get(self._take().symbol)
        if name is None:
            raise Malformed("Expected type name")
        if self._accept("("):
            self._list(self._expression, ")")
        return name

    def _prefixed(self) -> Expression:
        """A primary, or a sign or NOT and what it belongs to."""
        token = self._token
        if token.symbol == "NOT":
            self._at += 1
            return Operation(token.start, token.end, "NOT", (self._expression(_NOT),))
        if token.symbol in ("+", "-"):
            self._at += 1
            return Operation(token.start, token.end, token.symbol, (self._prefixed(),))
        return self._primary()

    def _primary(self) -> Expression:
        root = self._root()
        steps: list[Expression] = []
        while True:
            if self._accept("."):
                steps.append(self._star() or self._name("Invalid path dot component"))
            elif self._accept("["):
                steps.append(self._expression())
                self._expect("]")
            else:
                break
        return PathSyntax(root.start, root.end, root, tuple(steps)) if steps else root

    def _star(self) -> Star | None:
        token = self._token
        return Star(token.start, token.end) if self._accept("*") else None

    def _name(self, reason: str = "Expected identifier!") -> Variable:
        token = self._take()
        if token.kind not in (Kind.NAME, Kind.QUOTED):
            raise Malformed(reason)
        return Variable(token.start, token.end, token.text)

    def _root(self) -> Expression:
        self._accept("@")
        token = self._take()
        kind, start, end = token.kind, token.start, token.end
        if token.symbol in _OPENINGS:
            return _OPENINGS[token.symbol](self, token)
        if kind in (Kind.NAME, Kind.QUOTED):
            if kind is Kind.NAME and self._next_is("("):
                return self._call(token)
            return Variable(start, end, token.text)
        if kind in _LITERALS:
            return _LITERALS[kind](start, end, token.text)
        if token.symbol in _WORDS:
            return Word(start, end, token.symbol)
        if token.symbol in _FUNCTIONS and self._next_is("("):
            return self._call(token)
        if token.symbol in _CONSTRUCTS:
            return self._construct(token)
        raise Malformed(_UNEXPECTED.get(kind, "Unexpected term"))

    def _parameter(self, token: Token) -> Expression:
        self.parameters += 1
        return Parameter(token.start, token.end, self.parameters - 1)

    def _parenthesized(self, token: Token) -> Expression:
        if self._next_is("SELECT"):
            return self._subquery(")")
        members = self._list(self._expression, ")")
        if not members:
            raise Malformed("Expression group cannot be empty")
        return members[0] if len(members) == 1 else Sequence(token.start, token.end, members)

    def _brackets(self, token: Token) -> Expression:
        return Sequence(token.start, token.end, self._list(self._expression, "]"))

    def _bag(self, token: Token) -> Expression:
        return Bag(token.start, token.end, self._list(self._expression, ">>"))

    def _struct(self, token: Token) -> Expression:
        return Struct(token.start, token.end, self._list(self._member, "}"))

    def _member(self) -> tuple[Expression, Expression]:
        name = self._expression()
        self._expect(":")
        return name, self._expression()

    def _call(self, token: Token) -> Expression:
        self._expect("(")
        if self._next_is("SELECT"):
            return self._subquery(")")
        arguments = self._list(self._expression, ")")
        return CallSyntax(token.start, token.end, token.text.lower(), arguments)

    def _subquery(self, closing: str) -> Unsupported:
        token = self._token
        self._select()
        self._expect(closing)
        return Unsupported(token.start, token.end, "SELECT")

    def _construct(self, token: Token) -> Unsupported:
        """CASE … END, or a function whose arguments have a syntax of their own, which is not parsed."""
        if token.symbol == "CASE":
            self._skip_to("END", "CASE")
            return Unsupported(token.start, token.end, "CASE")
        opening = self._token
        self._expect("(")
        self._skip_to(")", "(")
        place = token if token.symbol in _AGGREGATES else opening
        return Unsupported(place.start, place.end, token.text.lower())

    def _skip_to(self, closing: str, opening: str) -> None:
        depth = 1
        while depth:
            symbol = self._take().symbol
            depth += (symbol == opening) - (symbol == closing)


def refusal(
    text: str, sentence: str, place: Expression | Token | None = None, **details: object
) -> Refusal:
    """A refusal of a part of a statement, whose place the message tells."""
    if place is not None:
        line = text.count("\n", 0, place.start) + 1
        column = place.start - text.rfind("\n", 0, place.start)
        details["at"] = f" at {line}:{column}:{place.end - place.start}"
    return Refusal(sentence, **details)


_STATEMENTS: Final[dict[str, Callable[[_Parser], StatementSyntax]]] = {
    "SELECT": _Parser._select,
    "INSERT": _Parser._insert,
    "UPDATE": _Parser._update,
    "DELETE": _Parser._delete,
    "EXISTS": _Parser._exists,
}
_RETURNING: Final[dict[tuple[str, str], Returning]] = {
    ("ALL", "OLD"): "ALL OLD",
    ("ALL", "NEW"): "ALL NEW",
    ("MODIFIED", "OLD"): "MODIFIED OLD",
    ("MODIFIED", "NEW"): "MODIFIED NEW",
}
_OPENINGS: Final[dict[str, Callable[[_Parser, Token], Expression]]] = {
    "?": _Parser._parameter,
    "(": _Parser._parenthesized,
    "[": _Parser._brackets,
    "<<": _Parser._bag,
    "{": _Parser._struct,
}
_LITERALS: Final[dict[Kind, Callable[[int, int, str], Expression]]] = {
    Kind.STRING: Text,
    Kind.NUMBER: Number,
    Kind.ION: Ion,
}
