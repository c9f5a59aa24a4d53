"""Documents that users wrote: each value knows its place, so that an error can name it.

References are resolved where a value is read, by the format's own rules: what nobody reads need not be known.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from isotone.errors import UsageError

_LONGEST: Final = 60  # characters of a value in an error
_FLAGS: Final = {"true": True, "false": False}
_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


class RemovedProperty:
    """What a reference resolves to if it removes its property."""


class DocumentValue(NamedTuple):
    """A value in a document, the file, and its place there. `resolve` replaces a reference by its value.

    All values of a document share the notes about what of it is not read.
    """

    given: Any
    source: str
    notes: list[str]
    place: str = ""
    resolve: Callable[[DocumentValue], Any] = lambda value: value.given

    @property
    def value(self) -> Any:
        """The value, resolved."""
        return self.resolve(self)

    def with_value(self, given: Any, place: str | None = None) -> DocumentValue:
        """Another value of the same document."""
        return self._replace(given=given, place=self.place if place is None else place)

    def refusal(self, what: str) -> UsageError:
        """The error about this value, which names the file and the place."""
        return UsageError(f"{self.source}: {self.place + ' ' if self.place else ''}{what}")

    def note(self, what: str) -> None:
        """Note something about the file."""
        self.notes.append(f"{self.source}: {what}")

    def members(self) -> dict[str, DocumentValue]:
        """The members of an object that are present."""
        value = self.value
        if not isinstance(value, dict):
            raise self.refusal(f"must be an object, not {shown(value)}")
        before = f"{self.place}." if self.place else ""
        found = {
            str(name): self.with_value(each, f"{before}{name}") for name, each in value.items()
        }
        return {name: each for name, each in found.items() if each.given is not None}

    def elements(self) -> list[DocumentValue]:
        """The elements of a list."""
        value = self.value
        if not isinstance(value, list):
            raise self.refusal(f"must be a list, not {shown(value)}")
        return [self.with_value(each, f"{self.place}[{at}]") for at, each in enumerate(value)]

    def text(self) -> str:
        """A text; a number is one, too, because some formats write it without quotes."""
        value = self.value
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return str(value)
        raise self.refusal(f"must be a text, not {shown(value)}")

    def value_text(self) -> str:
        """A text where a deployment makes one of a truth value, too; elsewhere `yes` is no name."""
        value = self.value
        return str(value).lower() if isinstance(value, bool) else self.text()

    def integer(self) -> int:
        """A whole number, which may be written as a text."""
        value = self.value
        if isinstance(value, str) and len(value) < 20 and value.lstrip("-").isdecimal():
            return int(value)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise self.refusal(f"must be a whole number, not {shown(value)}")

    def flag(self) -> bool:
        """True or false, which may be written as a text."""
        value = self.value
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in _FLAGS:
            return _FLAGS[value.lower()]
        raise self.refusal(f"must be true or false, not {shown(value)}")

    def plain(self) -> Any:
        """The whole value, with everything in it resolved."""
        value = self.value
        if isinstance(value, dict):
            members = {name: each.plain() for name, each in self.members().items()}
            return {name: each for name, each in members.items() if each is not RemovedProperty}
        if isinstance(value, list):
            return [each for one in self.elements() if (each := one.plain()) is not RemovedProperty]
        return value


def shown(value: Any) -> str:
    """A value in an error."""
    if value in (None, RemovedProperty):
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def quoted(text: str) -> str:
    """A text in quotes, as YAML and Terraform's language have it."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES or character.isprintable():
        return _ESCAPES.get(character, character)
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_text(content: Any) -> str:
    """A document as JSON."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def parsed_json(text: str, source: str) -> Any:
    """The content of a file of JSON; raises `UsageError` that names the line, or a name that is twice in one object."""
    try:
        return json.loads(text, object_pairs_hook=_object_of)
    except RecursionError:
        raise UsageError(f"{source} is nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{source} is not valid JSON: {error}") from None


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"{twice!r} twice in one object")
    return found


def extra_module(name: str, package: str, purpose: str) -> Any:
    """A module of an extra package; raises `UsageError` that says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UsageError(f"{purpose}, install {package}: pip install 'isotone[schema]'") from None
