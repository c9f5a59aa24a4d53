"""Imports lines of a JSON file quickly: a regular expression recognises items that are already in normal form.

The lines of a file are alike: they have the same names and types in the same order, with different contents. A shape is
one regular expression, made from a validated item. It matches the canonical JSON of items that differ from that item
only in the contents of strings, numbers, binary values and string sets. A match replaces decoding, validation and
encoding at a fifth of their cost.

A regular expression cannot check that numbers, base64 and sets are in normal form. Code checks the captured contents
for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

import msgspec

from isotone.errors import SerializationException, ValidationException
from isotone.values import shape
from isotone.values.number import canonical_number
from isotone.values.size import item_size, number_size
from isotone.values.types import AttributeValue, Item

_TRIED: Final = 8  # shapes that each text is compared with
# texts that may be tried for a new shape; each hundred recognised items allow one more
_ATTEMPTS: Final = 200
_PATIENCE: Final = 2000  # when misses exceed hits by this many, texts are no longer compared
_LONGEST: Final = 16 << 10  # longer JSON does not become a shape

_TEXT: Final = rb'[^"\\\x00-\x1f]*'  # a string that needs no escapes in JSON
_SOME_TEXT: Final = rb'[^"\\\x00-\x1f]+'
_NUMBER: Final = rb"[-.0-9]{1,40}"  # longer numbers are validated the slow way
_encode: Final = msgspec.json.Encoder().encode


class _Irregular(Exception):
    """Raised for a value that cannot be part of a shape."""


_Rule: TypeAlias = Callable[[bytes], int | None]
"""How many bytes a content's size exceeds its length; None if the content is not in normal form."""

Contents: TypeAlias = tuple[bytes, ...]

Known: TypeAlias = tuple[Contents, int]
"""What is known about an item without decoding it: the contents of the named attributes, and its size."""


class _Shape(NamedTuple):
    """One shape. Its regular expression has a numbered group for each content."""

    match: Callable[[bytes], re.Match[bytes] | None]
    named: Callable[[Contents], Contents]  # picks the contents of the named attributes
    checked: tuple[tuple[_Rule, int], ...]
    sets: tuple[slice, ...]
    overhead: int  # bytes of the text that do not count towards the item's size

    def recognised(self, texts: Sequence[bytes]) -> list[Known | None]:
        """What is known about each text; None if one of them has another shape or is not in normal form."""
        # A loop without Python calls: an import spends its time here.
        found: list[Known | None] = []
        named, checked, overhead = self.named, self.checked, self.overhead
        for text, match in zip(texts, map(self.match, texts), strict=True):
            known = None
            if match is not None and (text.isascii() or _is_utf8(text)):
                contents: Contents = match.groups()
                size = len(text) - overhead
                for rule, group in checked:
                    excess = rule(contents[group])
                    if excess is None:
                        break
                    size += excess
                else:
                    if not self.sets or all(_ascends(contents[each]) for each in self.sets):
                        known = (named(contents), size)
            found.append(known)
        return found


class KnownShapes:
    """The shapes of one file.

    Every item must have the `attributes`, given as names and types. `optional` names others whose contents are wanted.
    Empty content means that the item lacks the attribute, so items in which one is really empty are not recognised.
    `before` and `after` are the text around each item's JSON.

    >>> shapes = KnownShapes({"id": "S"})
    >>> shapes.learn(b'{"id":{"S":"a"},"n":{"N":"7"}}', {"id": {"S": "a"}, "n": {"N": "7"}})
    >>> shapes.recognised([b'{"id":{"S":"abc"},"n":{"N":"1000"}}', b'{"id":{"S":"abc"},"n":{"N":"007"}}'])
    [((b'abc',), 8), None]
    """

    __slots__ = (
        "_after",
        "_attempts",
        "_attributes",
        "_balance",
        "_before",
        "_optional",
        "_shapes",
    )

    def __init__(
        self,
        attributes: Mapping[str, str],
        before: bytes = b"",
        after: bytes = b"",
        optional: Mapping[str, str] | None = None,
    ) -> None:
        self._attributes = attributes
        self._optional = optional or {}
        self._before, self._after = before, after
        self._shapes: list[_Shape] = []  # the most recently learned first
        self._attempts = float(_ATTEMPTS)
        self._balance = 0

    @property
    def is_over(self) -> bool:
        """Whether the shapes have failed for this file: nothing more is recognised or learned."""
        return self._balance < -_PATIENCE

    def recognised(self, texts: Sequence[bytes]) -> list[Known | None]:
        """What is known about each item from its JSON; None for an item that is not in normal form or has an unknown
        shape.
        """
        found: list[Known | None] = [None] * len(texts)
        if self.is_over:
            return found
        missing = list(range(len(texts)))
        for known in self._shapes:
            if not missing:
                break
            again = known.recognised([texts[place] for place in missing])
            for place, each in zip(missing, again, strict=True):
                found[place] = each
            missing = [place for place in missing if found[place] is None]
        hits = len(texts) - len(missing)
        self._attempts = min(self._attempts + hits / 100, _ATTEMPTS)
        self._balance = min(self._balance + hits - len(missing), _PATIENCE)
        return found

    def each(self, texts: Sequence[bytes]) -> Iterator[tuple[bytes, Known | None]]:
        """Yield each text with what is known about it. A shape learned between two texts applies from the next one."""
        start = 0
        while start < len(texts):
            rest = texts[start:]
            newest = self._shapes[:1]
            for text, known in zip(rest, self.recognised(rest), strict=True):
                start += 1
                yield text, known
                if self._shapes[:1] != newest:
                    break

    def learn(self, text: bytes, item: Item) -> None:
        """Learn the shape of an item in normal form that was not recognised, if its JSON is canonical."""
        if self._attempts < 1 or self.is_over or len(text) > _LONGEST:
            return
        self._attempts -= 1
        known = self._shape_of(text, item)
        if known is not None:
            self._shapes.insert(0, known)
            del self._shapes[_TRIED:]

    def _shape_of(self, text: bytes, item: Item) -> _Shape | None:
        """The shape of an item; None if it has no shape, its JSON is not canonical, or a required attribute is missing."""
        making = _Making(self._attributes, self._optional)
        try:
            pattern = making.members(item, is_item=True)
        except _Irregular:
            return None
        if not self._attributes.keys() <= making.named.keys():
            return None
        pattern += making.absent()
        match = re.compile(re.escape(self._before) + pattern + re.escape(self._after)).fullmatch
        named = _getter([making.named[name] for name in (*self._attributes, *self._optional)])
        known = _Shape(match, named, tuple(making.checked), tuple(making.sets), 0)
        (found,) = known.recognised([text])
        return None if found is None else known._replace(overhead=found[1] - item_size(item))


def _getter(places: list[int]) -> Callable[[Contents], Contents]:
    """A function that returns the contents at some positions, always as a tuple."""
    return itemgetter(*places) if len(places) > 1 else itemgetter(slice(*_bounds(places)))


def _bounds(places: list[int]) -> tuple[int, int]:
    return (places[0], places[0] + 1) if places else (0, 0)


class _Making:
    """A regular expression under construction, with the meaning of its groups."""

    def __init__(self, attributes: Mapping[str, str], optional: Mapping[str, str]) -> None:
        self.named: dict[str, int] = {}
        self.checked: list[tuple[_Rule, int]] = []
        self.sets: list[slice] = []
        self._wanted = {**attributes, **optional}
        self._optional = optional
        self._groups = 0

    def absent(self) -> bytes:
        """Empty groups for the optional attributes that the item lacks."""
        absent = [name for name in self._optional if name not in self.named]
        for name in absent:
            self.named[name] = self._groups
            self._groups += 1
        return b"()" * len(absent)

    def members(self, members: Item, *, is_item: bool = False) -> bytes:
        """The expression for the members of an item or a map."""
        return b"\\{" + b",".join(self._members(members, is_item)) + b"\\}"

    def _members(self, members: Item, is_item: bool) -> Iterator[bytes]:
        for name, value in members.items():
            text = None
            if is_item and name in self._wanted:
                if self._wanted[name] not in value:
                    raise _Irregular
                self.named[name] = self._groups
                text = _SOME_TEXT if name in self._optional else _TEXT
            yield re.escape(_encode(name)) + b":" + self._value(value, text)

    def _value(self, value: AttributeValue, named_text: bytes | None = None) -> bytes:
        ((code, content),) = value.items()
        return b'\\{"%b":%b\\}' % (code.encode(), self._content(code, content, named_text))

    def _content(self, code: str, content: object, named_text: bytes | None) -> bytes:
        if code == "S":
            return b'"' + (_TEXT if named_text is None else self._group(named_text)) + b'"'
        if code in _RULES:
            self.checked.append((_RULES[code], self._groups))
            return b'"' + self._group(_NUMBER if code == "N" else named_text or _TEXT) + b'"'
        if code in ("BOOL", "NULL"):
            return _encode(content)
        if code == "M" and isinstance(content, dict):
            return self.members(content)
        if code == "L" and isinstance(content, list):
            return b"\\[" + b",".join(map(self._value, content)) + b"\\]"
        if code == "SS" and isinstance(content, list):
            self.sets.append(slice(self._groups, self._groups + len(content)))
            return b"\\[" + b",".join(b'"' + self._group() + b'"' for _ in content) + b"\\]"
        raise _Irregular

    def _group(self, pattern: bytes = _TEXT) -> bytes:
        self._groups += 1
        return b"(" + pattern + b")"


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _ascends(members: Contents) -> bool:
    """Whether the members of a set are in ascending order, without duplicates."""
    return all(one < other for one, other in pairwise(members))


@lru_cache(4096)
def _of_number(raw: bytes) -> int | None:
    text = raw.decode()
    try:
        return number_size(text) - len(raw) if canonical_number(text) == text else None
    except ValidationException:
        return None


def _of_binary(raw: bytes) -> int | None:
    try:
        return len(shape.decode_base64(raw.decode())) - len(raw)
    except SerializationException:
        return None


_RULES: Final[dict[str, _Rule]] = {"N": _of_number, "B": _of_binary}
