"""Translates PartiQL syntax to the nodes of expressions, and refuses what DynamoDB's dialect lacks (third stage).

    a.b IS NOT MISSING        attribute_exists(a.b)
    t IS STRING               attribute_type(t, "S")
    x NOT IN [1, 2]           NOT x IN (1, 2)
    (x = 1) = true            the condition is an operand, whose value is a boolean
    SET s = set_add(s, ?)     ADD s :0

A literal becomes a `Literal` and a parameter the `ValueRef` `:position`. Functions and operators follow the rules of
expressions (`expressions.rules`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from isotone.expressions.messages import OPERAND_COUNT, OPERAND_TYPE, RefusalMessage
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
    Not,
    Operand,
    Or,
    Path,
    Remove,
    Set,
    Truth,
    ValueRef,
)
from isotone.expressions.partiql import messages
from isotone.expressions.partiql.parser import Malformed, is_signed_number, refusal
from isotone.expressions.partiql.statement_values import ROOT, LiteralPlace
from isotone.expressions.partiql.syntax import (
    Assignment,
    Bag,
    CallSyntax,
    Clause,
    Expression,
    Ion,
    Is,
    KeywordLiteral,
    ListLiteral,
    Number,
    Operation,
    Parameter,
    PathSyntax,
    SelectSyntax,
    Struct,
    TextLiteral,
    UnsupportedSyntax,
    Variable,
    Wildcard,
)
from isotone.expressions.rules import FUNCTIONS, OPERAND
from isotone.limits import LIST_INDEX
from isotone.values.types import AttributeValue

_COMPARATORS: Final = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_JUNCTIONS: Final[dict[str, type[And | Or]]] = {"AND": And, "OR": Or}
_SIGNS: Final = frozenset({"+", "-"})
# `IS type` as the code for attribute_type.
_TYPES: Final = {
    "NULL": "NULL",
    "BOOLEAN": "BOOL",
    "BLOB": "B",
    "STRING": "S",
    "NUMERIC": "N",
    "STRUCT": "M",
    "TUPLE": "M",
    "LIST": "L",
}
# Types with several words in their names; the service's list of types lacks them.
_UNLISTED: Final = frozenset(
    {"CHARACTER_VARYING", "DOUBLE_PRECISION", "INTEGER4", "INTEGER8", "TIME_WITH_TIME_ZONE"}
)
_SET_ACTIONS: Final[dict[str, type[Add | Delete]]] = {"set_add": Add, "set_delete": Delete}
_SETS: Final = frozenset({"SS", "NS", "BS"})
# The types of Ion literals, by their first characters.
_ION_TYPES: Final = (
    (r"[+-]?[0-9]+$", "INT"),
    (r"[+-]?[0-9]+(\.[0-9]*)?([dD][+-]?[0-9]+)?$", "DECIMAL"),
    (r"[+-]?[0-9.]+[eE]", "FLOAT"),
    (r"[0-9]{4}(-|T)", "TIMESTAMP"),
    (r"true$|false$", "BOOL"),
    (r"null", "NULL"),
    (r'"', "STRING"),
    (r"\[", "LIST"),
    (r"\(", "SEXP"),
    (r"\{\{\s*[\"']", "CLOB"),
    (r"\{\{", "BLOB"),
    (r"\{", "STRUCT"),
)


class Translation:
    """Translates the parts of one statement; the text of the statement locates errors."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.set_parameters: list[tuple[str, str]] = []
        """Parameters that must be sets, by placeholder, each with the message if it is not."""

    def refusal(
        self, sentence: str, place: Expression | None = None, **details: object
    ) -> RefusalMessage:
        """The refusal of a part of the statement."""
        return refusal(self._text, sentence, place, **details)

    # Paths

    def path(self, node: Expression) -> Path:
        """A document path: a name, followed by names or indexes."""
        if isinstance(node, Variable):
            return Path((self._name(node.name),))
        if isinstance(node, PathSyntax) and isinstance(node.root, Variable):
            return Path((self._name(node.root.name), *map(self._step, node.steps)))
        raise self.refusal(messages.PATH_COMPONENT, node)

    def _step(self, node: Expression) -> str | int:
        match node:
            case Variable(name=name) | TextLiteral(text=name):
                return self._name(name)
            case Number(digits=digits) if digits.isdecimal():
                if int(digits) > LIST_INDEX:
                    raise self.refusal(messages.LIST_INDEX, node, index=digits)
                return int(digits)
            case Operation(operator="-", operands=(Number(digits=digits) as number,)):
                raise self.refusal(messages.LIST_INDEX, number, index=f"-{digits}")
            case Wildcard(form=form):
                sentence = messages.WILDCARD_PATH if form == "[*]" else messages.UNPIVOT_PATH
                raise self.refusal(sentence, node)
        raise self.refusal(messages.PATH_COMPONENT, node)

    def _name(self, name: str) -> str:
        if not name:
            raise self.refusal(messages.EMPTY_NAME)
        return name

    # Values

    def value(self, node: Expression) -> AttributeValue:
        """The value of a literal, in normal form. Refuses the first error in written order."""
        return self._value(node, ROOT)

    def constant(self, node: Expression) -> Literal | ValueRef:
        """A literal or a parameter."""
        if isinstance(node, Parameter):
            return ValueRef(f":{node.position}")
        return Literal(self.value(node))

    def _value(self, node: Expression, place: LiteralPlace) -> AttributeValue:
        match node:
            case TextLiteral(text=text):
                return {"S": text}
            case Number(digits=digits):
                return place.scalar({"N": digits})
            case KeywordLiteral(word="NULL"):
                return {"NULL": True}
            case KeywordLiteral(word="TRUE" | "FALSE" as word):
                return {"BOOL": word == "TRUE"}
            case ListLiteral(members=members):
                below = place.elements(len(members))
                return {"L": [self._value(*each) for each in zip(members, below, strict=True)]}
            case Struct():
                return {"M": self._members(node, place)}
            case Bag():
                return place.scalar(self._set(node))
            case Operation(operator="+" | "-"):
                return place.scalar(self._signed(node, place))
            case Ion(text=text):
                kinds = [kind for pattern, kind in _ION_TYPES if re.match(pattern, text.strip())]
                kind = (*kinds, "SYMBOL")[0]
                raise self.refusal(messages.ION, node, type=kind, key=place.dotted)
            case Clause():
                raise self._nested(node)
        raise self.refusal(messages.VALUE_TYPE, node, type=kind_of(node), key=place.dotted)

    def _signed(self, node: Operation, place: LiteralPlace) -> AttributeValue:
        """A number literal after one or more signs."""
        negative = False
        inner: Expression = node
        while (
            isinstance(inner, Operation) and inner.operator in _SIGNS and len(inner.operands) == 1
        ):
            negative ^= inner.operator == "-"
            inner = inner.operands[0]
        if not isinstance(inner, Number):
            raise self.refusal(messages.VALUE_TYPE, node, type=node.operator, key=place.dotted)
        if negative and not inner.digits.isdecimal() and not re.search("[1-9]", _mantissa(inner)):
            raise self.refusal(messages.NEGATIVE_ZERO, inner, key=place.dotted)
        return {"N": "-" * negative + inner.digits}

    def _members(self, node: Struct, place: LiteralPlace) -> dict[str, AttributeValue]:
        below = place.members([key.text for key, _ in node.members if isinstance(key, TextLiteral)])
        return {
            name: self._value(value, below[name])
            for name, value in self.members(node, place.dotted)
        }

    def members(self, node: Struct, key: str = "") -> Iterator[tuple[str, Expression]]:
        """The names of a struct with the syntax of their values. Refuses names that are not strings or occur twice.

        `key` is what messages call the struct; it is empty for the item of an INSERT.
        """
        names: set[str] = set()
        for name, value in node.members:
            under = key or "root"
            if not isinstance(name, TextLiteral):
                kind = _SYNTAX_NAMES.get(type(name), "Literal")
                raise self.refusal(messages.TUPLE_KEY, name, type=kind, key=under)
            if name.text in names:
                place = node if key else name
                raise self.refusal(messages.DUPLICATE_KEY, place, name=name.text, key=under)
            names.add(self._name(name.text))
            yield name.text, value

    def _set(self, node: Bag) -> AttributeValue:
        if not node.members:
            raise self.refusal(messages.EMPTY_BAG)
        members: list[str] = []
        code = ""
        for member in node.members:
            ((kind, content),) = self._set_member(member).items()
            code = code or kind
            if kind != code:
                raise self.refusal(messages.BAG_MEMBER, at="")
            members.append(content)
        return {f"{code}S": members}

    def _set_member(self, node: Expression) -> AttributeValue:
        """A member of a bag as written: only the whole set is put in normal form."""
        match node:
            case TextLiteral(text=text):
                return {"S": text}
            case Number(digits=digits):
                return {"N": digits}
            case Operation(operator="+" | "-"):
                return self._signed(node, ROOT)
        raise self.refusal(messages.BAG_MEMBER, node)

    # Conditions

    def condition(self, node: Expression) -> ConditionNode:
        """The condition of a WHERE clause."""
        found = self._condition(node)
        if found is None or _is_size(found):
            raise self.refusal(messages.NOT_BOOLEAN)
        return found

    def _condition(self, node: Expression) -> ConditionNode | None:
        """A condition; None for an expression that is a value."""
        match node:
            case Operation(operator="AND" | "OR" as operator, operands=operands):
                parts = [self._part(part, operator, messages.JUNCTION_OPERAND) for part in operands]
                kind = _JUNCTIONS[operator]
                flat = [p.operands if type(p) is kind else (p,) for p in parts]
                return kind(tuple(part for group in flat for part in group))
            case Operation(operator="NOT", operands=(operand,)):
                return Not(self._part(operand, "NOT", messages.NOT_OPERAND))
            case Operation(operator=operator, operands=(left, right)) if operator in _COMPARATORS:
                return Comparison(_COMPARATORS[operator], self.operand(left), self.operand(right))
            case Operation(operator="BETWEEN", operands=operands):
                return Between(*map(self.operand, operands))
            case Operation(operator="IN", operands=(left, right)):
                return self._in(left, right)
            case Operation(operator=operator, operands=(_, _)):
                raise self.refusal(messages.CONDITION_OPERATOR, operator=operator.lower())
            case Is():
                return self._is(node)
            case CallSyntax():
                return self._call(node, self.operand)
            case UnsupportedSyntax(token=token):
                raise self.refusal(messages.UNSUPPORTED_TOKEN, node, token=token)
            case Clause():
                raise self._nested(node)
        return None

    def _nested(self, node: Clause) -> RefusalMessage | Malformed:
        """The error for a statement nested in a statement."""
        if isinstance(node.statement, SelectSyntax):
            return self.refusal(messages.UNSUPPORTED_TOKEN, node, token="SELECT")
        keyword = self._text[node.start : node.end].lower()
        return Malformed(messages.NESTED_STATEMENT.format(keyword=keyword))

    def _part(self, node: Expression, operator: str, sentence: str) -> ConditionNode:
        """An operand of AND, OR or NOT."""
        part = self._condition(node)
        if part is None:
            raise self.refusal(sentence)
        if _is_size(part):
            raise RefusalMessage(OPERAND_TYPE, operator=operator, type="N")
        return part

    def _in(self, left: Expression, right: Expression) -> ConditionNode:
        if not isinstance(right, ListLiteral | Bag) or not right.members:
            if isinstance(
                right,
                ListLiteral
                | Bag
                | Variable
                | PathSyntax
                | KeywordLiteral
                | Number
                | TextLiteral
                | Parameter,
            ):
                raise self.refusal(messages.IN_OPERANDS)
            right = ListLiteral(right.start, right.end, (right,))
        return In(self.operand(left), tuple(map(self.operand, right.members)))

    def _is(self, node: Is) -> ConditionNode:
        if not _is_tested(node.value):
            raise self.refusal(messages.IS_OPERAND)
        value = self.operand(node.value)
        if node.type == "MISSING":
            exists = "attribute_exists" if node.negated else "attribute_not_exists"
            return Call(exists, (value,))
        if node.type in _UNLISTED:
            raise self.refusal(messages.UNSUPPORTED_OPERATION, operation="IsType")
        code = _TYPES.get(node.type)
        if code is None:
            place = node.value.root if isinstance(node.value, PathSyntax) else node.value
            raise self.refusal(messages.IS_TYPE, place, type=_class_of(node.type))
        test = Call("attribute_type", (value, Literal({"S": code})))
        return Not(test) if node.negated else test

    def _call(self, node: CallSyntax, argument: Callable[[Expression], Operand]) -> Call:
        for each in node.arguments:
            if isinstance(each, Clause):
                raise self._nested(each)
        if node.function not in FUNCTIONS:
            raise self.refusal(messages.UNKNOWN_FUNCTION, node, function=node.function)
        return Call(node.function, tuple(map(argument, node.arguments)))

    def operand(self, node: Expression) -> Operand:
        """A value in a condition."""
        match node:
            case Variable() | PathSyntax():
                return self.path(node)
            case CallSyntax():
                call = self._call(node, self.operand)
                return call if OPERAND in FUNCTIONS[call.function].places else Truth(call)
            case KeywordLiteral(word="MISSING"):
                raise self.refusal(messages.MISSING)
            case Operation() if not is_signed_number(node):
                return self._truth(node)
            case Is() | UnsupportedSyntax() | Clause():
                return self._truth(node)
        return self.constant(node)

    def _truth(self, node: Expression) -> Truth:
        """A condition as an operand."""
        if isinstance(node, Operation) and len(node.operands) == 1 and node.operator in _SIGNS:
            raise self.refusal(messages.CONDITION_OPERATOR, operator=node.operator)
        found = self._condition(node)
        assert found is not None
        return Truth(found)

    # Updates

    def action(self, assignment: Assignment) -> Action:
        """The action of an update for one assignment or removal."""
        path = self.path(assignment.target)
        value = assignment.value
        if value is None:
            return Remove(path)
        if isinstance(value, CallSyntax) and value.function in _SET_ACTIONS:
            return self._set_action(path, value)
        return Set(path, self._assigned(value))

    def _set_action(self, path: Path, call: CallSyntax) -> Action:
        """`set = set_add(set, value)`."""
        function = call.function.upper()
        if len(call.arguments) != 2:
            raise self.refusal(messages.SET_ARGUMENTS, call, function=function)
        target, value = call.arguments
        if not isinstance(target, Variable | PathSyntax) or self.path(target) != path:
            raise self.refusal(messages.SET_TARGET, call, function=function)
        not_set = self.refusal(messages.SET_VALUE, target, function=function)
        if not isinstance(value, Bag | Parameter):
            raise not_set
        operand = self.constant(value)
        if isinstance(operand, ValueRef):
            self.set_parameters.append((operand.name, str(not_set)))
        return _SET_ACTIONS[call.function](path, operand)

    def _assigned(self, node: Expression) -> Operand:
        """A value in an update."""
        match node:
            case Variable() | PathSyntax():
                return self.path(node)
            case CallSyntax():
                return self._call(node, self._assigned)
            case KeywordLiteral(word="MISSING"):
                raise self.refusal(messages.MISSING)
            case UnsupportedSyntax(token=token):
                raise self.refusal(messages.UNSUPPORTED_TOKEN, node, token=token)
            case Is():
                raise self.refusal(messages.IS_IN_UPDATE)
            case Operation(operator="+" | "-" as operator, operands=(left, right)):
                return Arithmetic(operator, self._assigned(left), self._assigned(right))
            case Clause():
                raise self._nested(node)
            case Operation(operator=operator) if not is_signed_number(node):
                if operator in _SIGNS:
                    raise RefusalMessage(OPERAND_COUNT, operator=operator, count=1)
                raise self.refusal(messages.UPDATE_OPERATOR, operator=operator.lower())
        return self.constant(node)


def _is_tested(node: Expression) -> bool:
    """Whether an expression can stand before IS."""
    if isinstance(node, KeywordLiteral):
        return node.word != "MISSING"
    return isinstance(node, Variable | PathSyntax | TextLiteral | Number) or is_signed_number(node)


def _class_of(type_name: str) -> str:
    """The service's name for a PartiQL type that DynamoDB lacks: the class in its syntax tree."""
    return "".join(word.capitalize() for word in type_name.split("_")) + "Type"


def is_set(value: AttributeValue) -> bool:
    """Whether a value is a set."""
    return not _SETS.isdisjoint(value)


def kind_of(node: Expression) -> str:
    """What messages call an expression that is not a value."""
    match node:
        case Variable(name=name):
            return name
        case Operation(operator=operator):
            return operator.lower()
        case CallSyntax(function=function):
            return function
        case KeywordLiteral(word=word):
            return word
        case UnsupportedSyntax(token=token):
            return token
    return _SYNTAX_NAMES.get(type(node), "UNKNOWN")


_SYNTAX_NAMES: Final[dict[type[Any], str]] = {
    Variable: "VariableReference",
    Parameter: "Parameter",
    PathSyntax: "PATH",
    Wildcard: "STAR",
    Is: "Typed",
    CallSyntax: "NAry",
    Operation: "NAry",
    ListLiteral: "Seq",
    Bag: "Seq",
    Struct: "Struct",
}


def _is_size(node: ConditionNode) -> bool:
    return isinstance(node, Call) and node.function == "size"


def _mantissa(number: Number) -> str:
    return re.split("[eE]", number.digits)[0]
