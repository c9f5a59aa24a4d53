"""Terraform's language: a writer for blocks, and a reader that resolves variables, locals, functions (jsonencode …).

The writer needs no package, and formats as `terraform fmt` does. The reader uses python-hcl2 (`pip install
'isotone[schema]'`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any, Final

from isotone.errors import UsageError
from isotone.schema.document import DocumentValue, extra_module, quoted, shown

# Writing


class HclReference(str):
    """An expression that is written without quotes, such as `aws_dynamodb_table.shop.arn`."""

    __slots__ = ()


def hcl_text(resources: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    """Resources by their type and name: a list of objects is one of blocks, an object is a map."""
    return "\n".join(
        "".join(f"{line}\n" for line in _block(f'resource "{kind}" "{name}"', body))
        for (kind, name), body in resources.items()
    )


def _block(head: str, body: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a block: its attributes, then its maps, then the blocks in it, with empty lines between them."""
    maps = {name: each for name, each in body.items() if isinstance(each, dict)}
    blocks = {name: each for name, each in body.items() if _is_blocks(each)}
    plain = {name: each for name, each in body.items() if name not in maps | blocks}
    groups = [list(_aligned(plain))] if plain else []
    groups += [[f"{name} = {{", *_indented(_aligned(each)), "}"] for name, each in maps.items()]
    groups += [list(_block(name, inner)) for name, each in blocks.items() for inner in each]
    yield f"{head} {{"
    for number, group in enumerate(groups):
        if number:
            yield ""
        yield from _indented(group)
    yield "}"


def _is_blocks(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) for each in value)


def _indented(lines: Any) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)


def _aligned(attributes: Mapping[str, Any]) -> Iterator[str]:
    names = {name: name if _NAME.fullmatch(name) else _quoted(name) for name in attributes}
    width = max(map(len, names.values()), default=0)
    for name, value in attributes.items():
        yield f"{names[name]:<{width}} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, HclReference):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return str(value) if isinstance(value, int) else _quoted(value)


def _quoted(text: str) -> str:
    """A text in quotes. python-hcl2 reads the escape `$${` only where a bracket closes it, so its bracket is escaped."""
    return quoted(text).replace("${", "$\\u007b").replace("%{", "%\\u007b")


# Reading

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_CALL: Final = re.compile(r"([a-z][a-z0-9]*)\((.*)\)", re.DOTALL)
_STEP: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*|\d+)|\[([^\[\]]+)\]")
_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d{1,2})?")
_PART: Final = re.compile(
    r"\\(?P<escape>u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|(?P<literal>\$\$\{|%%\{)|(?P<directive>%\{)|(?P<begin>\$\{)",
    re.DOTALL,
)
_UNESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}
_WORDS: Final = {"true": True, "false": False, "null": None}
_DEEPEST: Final = 50  # references that lead to one another


def parsed_hcl(text: str, source: str) -> dict[str, Any]:
    """The blocks of a file as python-hcl2 gives them; raises `UsageError` that names the line."""
    hcl2 = extra_module("hcl2", "python-hcl2", f"to read {source}")
    options = hcl2.SerializationOptions(with_comments=False, preserve_heredocs=False)
    try:
        # The parser wants a line break at the end.
        found: dict[str, Any] = hcl2.loads(text + "\n", serialization_options=options)
    except RecursionError:
        raise UsageError(f"{source} is nested too deeply") from None
    except Exception as error:  # noqa: BLE001 - lark's errors, whose package is not ours to import
        reason = str(error).partition("\n")[0]
        raise UsageError(f"{source} is not valid Terraform: {reason}") from None
    return found


def unquoted(label: str) -> str:
    """A label of a block, or the name of a member, without its quotes."""
    return label[1:-1] if label.startswith('"') else label


class Expressions:
    """Resolves the expressions of one configuration: variables by what is given or their default, and locals.

    A list or an object stays as the parser gives it, with expressions inside: they are resolved when they are read.
    """

    def __init__(
        self, source: str, variables: Mapping[str, Any], locals_: Mapping[str, Any]
    ) -> None:
        self._source = source
        self._variables = variables
        self._locals = locals_
        self._depth = 0
        self._functions: dict[str, Callable[[list[Any]], Any]] = {
            "concat": lambda lists: [each for one in lists for each in one],
            "join": lambda texts: str(texts[0]).join(
                _as_text(each) for one in texts[1:] for each in one
            ),
            "jsonencode": lambda values: json.dumps(values[0], ensure_ascii=False),
            "lower": lambda texts: _as_text(texts[0]).lower(),
            "merge": lambda maps: {name: each for one in maps for name, each in one.items()},
            "tostring": lambda values: _as_text(values[0]),
            "toset": lambda values: values[0],
            "upper": lambda texts: _as_text(texts[0]).upper(),
        }

    def resolve(self, value: DocumentValue) -> Any:
        """A value without an expression at its top; those inside are resolved when they are read."""
        given = value.given
        if isinstance(given, dict):
            return {self._name(value, name): each for name, each in given.items()}
        if isinstance(given, float) and isfinite(given):
            return _number(repr(given))
        if not isinstance(given, str):
            return given
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                raise value.refusal("refers to itself, through variables or locals")
            if given.startswith('"'):
                return self._template(value, given[1:-1])
            return self._expression(value, given[2:-1] if given.startswith("${") else given)
        finally:
            self._depth -= 1

    def _name(self, value: DocumentValue, name: str) -> str:
        if name.startswith("${"):
            return _as_text(self.resolve(value.with_value(name)))
        return _as_text(self._template(value, name[1:-1])) if name.startswith('"') else name

    def _template(self, value: DocumentValue, text: str) -> Any:
        """The text of a quoted template; the value itself if it is a single reference."""
        parts: list[Any] = []
        at = 0
        while match := _PART.search(text, at):
            parts.append(text[at : match.start()])
            at = match.end()
            if match["escape"]:
                parts.append(_unescaped(match["escape"]))
            elif match["literal"]:
                parts.append(match["literal"][1:])
            elif match["directive"]:
                raise value.refusal(f"has a directive, which is not computed: {shown(text)}")
            else:
                end = _closing(text, at)
                parts.append(self._expression(value, text[at:end]))
                at = end + 1
        parts.append(text[at:])
        present = [part for part in parts if part != ""]
        if len(present) == 1:
            return present[0]
        if any(part is None or isinstance(part, dict | list) for part in present):
            raise value.refusal(f"has something else than a text in {shown(text)}")
        return "".join(map(_as_text, present))

    def _expression(self, value: DocumentValue, text: str) -> Any:
        text = text.strip()
        if text in _WORDS:
            return _WORDS[text]
        if _NUMBER.fullmatch(text):
            return _number(text)
        if text.startswith("(") and _closing(text, 1) == len(text) - 1:
            return self._expression(value, text[1:-1])
        if _TEXT.fullmatch(text):
            return self._template(value, text[1:-1])
        if choice := _choice(text):
            condition, one, other = choice
            return self._expression(value, one if self._holds(value, condition) else other)
        if compared := _comparison(text):
            is_equal, *sides = compared
            one, other = (self._expression(value, each) for each in sides)
            return (one == other) == is_equal
        if call := _CALL.fullmatch(text):
            return self._call(value, *call.groups())
        root, _, rest = text.partition(".")
        if root in ("var", "local") and (name := _NAME.match(rest)):
            of = self._variables if root == "var" else self._locals
            if name[0] in of:
                found = self._steps(value, text, of[name[0]], rest[name.end() :])
                return self.resolve(value.with_value(found))
            if root == "var":
                raise value.refusal(
                    f"refers to var.{name[0]}, which has no default; give it: --parameter {name[0]}=VALUE"
                )
        raise value.refusal(f"is {shown(text)}, which is not known here; write its value there")

    def _holds(self, value: DocumentValue, text: str) -> bool:
        found = self._expression(value, text)
        if not isinstance(found, bool):
            raise value.refusal(f"depends on {shown(text.strip())}, which is not true or false")
        return found

    def _steps(self, value: DocumentValue, text: str, found: Any, rest: str) -> Any:
        while rest:
            step = _STEP.match(rest)
            if step is None:
                raise value.refusal(
                    f"is {shown(text)}, which is not known here; write its value there"
                )
            name = step[1] or step[2].strip().strip('"')
            found = self.resolve(value.with_value(found))
            try:
                found = found[int(name)] if isinstance(found, list) else found[name]
            except (KeyError, IndexError, TypeError, ValueError):
                raise value.refusal(f"is {shown(text)}, and there is no {name!r}") from None
            rest = rest[step.end() :]
        return found

    def _call(self, value: DocumentValue, name: str, arguments: str) -> Any:
        if name not in self._functions:
            raise value.refusal(f"calls {name}(), which is not computed; write its value there")
        parsed = parsed_hcl(f"given = [{arguments}]", self._source)["given"]
        try:
            result = self._functions[name](value.with_value(parsed).plain())
        except (AttributeError, IndexError, TypeError):
            raise value.refusal(
                f"calls {name}() with arguments that it does not take: {shown(arguments)}"
            ) from None
        return self.resolve(value.with_value(as_parsed(result)))


def as_parsed(value: Any) -> Any:
    """A plain value as the parser gives it: texts are quoted."""
    if isinstance(value, dict):
        return {as_parsed(name): as_parsed(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_parsed(each) for each in value]
    return _quoted(value) if isinstance(value, str) else value


def _unescaped(escape: str) -> str:
    if len(escape) > 1:
        code = int(escape[1:], 16)
        is_character = code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
        return chr(code) if is_character else "\ufffd"
    return _UNESCAPED.get(escape, escape)


def _places(text: str, at: int = 0) -> Iterator[tuple[int, int]]:
    """The places of an expression outside of texts, and how many brackets are open behind each."""
    depth, is_text = 0, False
    while at < len(text):
        character = text[at]
        if is_text and character == "\\":
            at += 1
        elif character == '"':
            is_text = not is_text
        elif not is_text:
            depth += (character in "([{") - (character in ")]}")
            yield at, depth
        at += 1


def _closing(text: str, at: int) -> int:
    """Where the bracket ends that begins before a position."""
    return next((place for place, depth in _places(text, at) if depth < 0), len(text))


def _top_level(text: str) -> Iterator[int]:
    """The places in an expression that are in no text and in no brackets."""
    return (place for place, depth in _places(text) if not depth)


def _comparison(text: str) -> tuple[bool, str, str] | None:
    """Whether `ONE == OTHER` asks for equality, and its sides."""
    for at in _top_level(text):
        if text[at : at + 2] in ("==", "!="):
            return text[at] == "=", text[:at], text[at + 2 :]
    return None


def _choice(text: str) -> tuple[str, str, str] | None:
    """The parts of `CONDITION ? ONE : OTHER`."""
    marks = [at for at in _top_level(text) if text[at] in "?:"]
    if not marks or text[marks[0]] != "?":
        return None
    open_choices = 0
    for at in marks:
        open_choices += 1 if text[at] == "?" else -1
        if not open_choices:
            return text[: marks[0]], text[marks[0] + 1 : at], text[at + 1 :]
    return None


def _number(text: str) -> int | float:
    """A number: there is one type of them, so 5.0 is 5."""
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else float(number)


def _as_text(value: Any) -> str:
    """A value as a template has it: a number in the fewest digits, without an exponent. Raises `TypeError` for no value."""
    if isinstance(value, bool):
        return _value(value)
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}"
    if isinstance(value, str | int):
        return str(value)
    raise TypeError("neither a text, nor a number or a truth value")
