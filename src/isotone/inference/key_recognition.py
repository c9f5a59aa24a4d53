"""Finds the form of a key attribute in the keys of one entity's items.

All keys are read in parallel from left to right. At each position there is a value of an attribute, or a literal that
all keys have, or a part that is in no attribute. Such a part ends at the next separator, and becomes a field that only
the key holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from isotone.inference.key_forms import FormField, KeyForm
from isotone.inference.key_styles import ESCAPED, RAW, KeyStyle, style_of_texts, styles_of
from isotone.inference.naming import words

STRONG: Final = "#|:/;~^"
TYPE_WORDS: Final = frozenset({"type", "kind", "entity", "model", "class", "object", "record", "e"})
_ID_WORDS: Final = frozenset(
    {"id", "no", "number", "name", "key", "slug", "code", "uuid", "sku", "email"}
)
_ATOM: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{5,8}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
    r"|[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}(?![0-9])"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
_WORD: Final = re.compile(rf"[^{re.escape(STRONG)}]+")
_PREFIX: Final = re.compile(r"[A-Za-z][A-Za-z$]*[_.-]")
_LETTERS: Final = re.compile(r"[A-Za-z][A-Za-z$]*[_.-]|[A-Za-z]{1,2}")
_AFTER: Final = re.compile(r"[^\w]|_|$")
_NUMBERED: Final = re.compile(r"\w*[0-9]{2}")  # player001
_SHORTEST_COINCIDENCE: Final = 3


@dataclass
class KeyFieldSource:
    """A source of values in keys: an attribute, or a part that only a key holds.

    `values` has one value per item of the group, or None.
    """

    name: str
    kind: str
    values: list[Any]
    is_virtual: bool = False
    is_index_key: bool = False
    """Whether writing the attribute where it is missing would add an index entry."""
    fixed: dict[str, str | None] = field(default_factory=dict)
    """The options of the field that its uses in keys require."""
    hint: str = ""
    """For a part that only a key holds: what its name is made from."""
    note: str = ""


@dataclass
class Aligned:
    """A form, the fields that it adds, and the choices that were made."""

    form: KeyForm
    sources: list[KeyFieldSource] = field(default_factory=list)
    ties: dict[str, list[str]] = field(default_factory=dict)
    """For a field of the form, the other attributes that would fit as well."""


def align(
    texts: Sequence[tuple[int, str]],
    sources: Sequence[KeyFieldSource],
    attribute: str,
    items: int,
    *,
    escapes: bool = False,
    is_primary: bool = True,
) -> Aligned | None:
    """The common form of texts, each with the number of its item; None if there is none.

    `escapes`: the library wrote the keys, so texts are escaped rather than raw.
    """
    for gives_up in (False, True):
        found = _Alignment(texts, sources, attribute, items, escapes, is_primary, gives_up).run()
        if found is not None:
            return found
    return None


class _Alignment:
    def __init__(
        self,
        texts: Sequence[tuple[int, str]],
        sources: Sequence[KeyFieldSource],
        attribute: str,
        items: int,
        escapes: bool,
        is_primary: bool,
        gives_up: bool,
    ) -> None:
        self._numbers = [number for number, _ in texts]
        self._rests = [text for _, text in texts]
        self._sources = list(sources)
        self._attribute = attribute
        self._items = items
        self._escapes = escapes
        self._is_primary = is_primary
        self._gives_up = gives_up
        self._parts: list[str | FormField] = []
        self._new: list[KeyFieldSource] = []
        self._ties: dict[str, list[str]] = {}
        self._fixed = {source.name: dict(source.fixed) for source in sources}

    def run(self) -> Aligned | None:
        while any(self._rests):
            if not all(self._rests):
                return None
            if not (self._take_label() or self._take_field() or self._take_literal()):
                self._take_unknown()
        if not self._parts:
            return None
        aligned = Aligned(KeyForm(tuple(_merged(self._parts))), self._new, self._ties)
        return aligned if aligned.form.template is not None else None

    # Literals

    def _take_label(self) -> bool:
        """Take the word before the first separator as a literal, such as USER#, if it cannot be a value."""
        if self._parts or not self._is_primary:
            return False
        word = self._common_word()
        if word is None or not (word.isupper() and word[0].isalpha()):
            return False
        if any(len(rest) == len(word) for rest in self._rests):
            return False
        return self._take_text(word)

    def _take_literal(self) -> bool:
        first = self._rests[0][0]
        is_joint = (
            bool(self._parts) and isinstance(self._parts[-1], FormField) and not first.isalnum()
        )
        if (first in STRONG or is_joint) and all(rest[0] == first for rest in self._rests):
            return self._take_text(first)
        word = self._common_word()
        if word is not None and not any(map(_ATOM.match, self._rests)):
            is_known = len(self._rests) > 1 or not any(map(str.isdigit, word))
            # The few items of a sample may all be of one player.
            is_known &= not (_NUMBERED.fullmatch(word) and set(self._rests) == {word})
            is_label = any(len(rest) > len(word) for rest in self._rests) or self._is_generic()
            if is_known and is_label and not (word.isdigit() and len(self._rests) > 1):
                return self._take_text(word)
        return self._take_prefix()

    def _is_generic(self) -> bool:
        """Whether a whole key may be one literal: its attribute has a generic name."""
        return is_generic(self._attribute)

    def _take_prefix(self) -> bool:
        """Take a common beginning as a literal, such as `USER_` before different ends."""
        match = _PREFIX.match(self._rests[0])
        if match is None:
            return False
        prefix = match[0]
        tails = [rest.removeprefix(prefix) for rest in self._rests]
        if not all(
            rest.startswith(prefix) and tail for rest, tail in zip(self._rests, tails, strict=True)
        ):
            return False
        are_numbers = all(tail[0].isdigit() for tail in tails)
        if prefix[-1] != "_" and not are_numbers:
            return False
        if len(set(tails)) == 1 and not are_numbers:
            return False
        return self._take_text(prefix)

    def _common_word(self) -> str | None:
        """The word up to the next separator, if all keys have the same one."""
        found = _WORD.match(self._rests[0])
        if found is None:
            return None
        word = found[0]
        for rest in self._rests:
            other = _WORD.match(rest)
            if other is None or other[0] != word:
                return None
        return word

    def _take_text(self, text: str) -> bool:
        self._parts.append(text)
        self._rests = [rest[len(text) :] for rest in self._rests]
        return True

    # Fields

    def _take_field(self) -> bool:
        matches = list(self._matches())
        found = max(matches, key=lambda match: match.score, default=None)
        if found is None:
            return False
        self._note_ties(found, matches)
        if found.lead:
            self._parts.append(found.lead)
        self._parts.append(FormField(found.source.name, found.style))
        self._fixed.setdefault(found.source.name, {}).update(found.style.demands)
        self._rests = found.rests
        return True

    def _note_ties(self, chosen: _Match, matches: Sequence[_Match]) -> None:
        """Record the attributes that fit as well as the chosen one, unless the literal before it names that one."""
        others = [
            match.source.name
            for match in matches
            if match.fit == chosen.fit and match is not chosen and not match.source.is_virtual
        ]
        if others and not (chosen.is_named or chosen.source.is_virtual):
            self._ties[chosen.source.name] = others

    def _matches(self) -> Iterator[_Match]:
        for source in [*self._sources, *self._new]:
            values = [source.values[number] for number in self._numbers]
            present = [place for place, value in enumerate(values) if value is not None]
            least = len(values) if source.is_index_key else len(values) / 2
            if not present or len(present) < least:
                continue
            if self._is_type(source, values):
                continue
            match = self._match(source, values, present)
            if match is not None and not self._is_coincidence(match, values):
                yield match

    @staticmethod
    def _is_type(source: KeyFieldSource, values: Sequence[Any]) -> bool:
        """Whether an attribute only names the item's kind, as its literals do."""
        last = words(source.name)[-1:] or [source.name]
        return last[0].lower() in TYPE_WORDS and len(set(map(repr, values))) == 1

    def _match(
        self, source: KeyFieldSource, values: Sequence[Any], present: list[int]
    ) -> _Match | None:
        place = present[0]
        for lead in self._leads(source.kind, values[place], self._rests[place]):
            rest = self._rests[place][len(lead) :]
            styles = list(styles_of(source.kind, values[place], rest))
            if self._escapes:
                styles.sort(key=lambda style: style.expression == RAW.expression)
            fixed = self._fixed.get(source.name, {})
            for style in styles:
                demands = style.demands
                if any(fixed.get(name, value) != value for name, value in demands.items()):
                    continue  # a field has one maximum, one case and one precision in all keys
                if "max" not in fixed and not self._escapes and style.is_padded_for_none(values):
                    continue
                rests = self._after(style, values, lead)
                if rests is not None:
                    return self._scored(source, style, lead, rests, values)
        return None

    def _leads(self, kind: str, value: Any, rest: str) -> Iterator[str]:
        """The possible texts before the value: none, or the beginning of a word, such as `USER_`."""
        yield ""
        if kind in ("str", "choice", "int"):
            at = rest.lower().find(str(value).lower())
            lead = rest[:at]
            form = _LETTERS if kind == "int" else _PREFIX
            if at > 0 and form.fullmatch(lead) and self._all_begin_with(lead):
                yield lead

    def _all_begin_with(self, lead: str) -> bool:
        return all(rest.startswith(lead) for rest in self._rests)

    def _after(self, style: KeyStyle, values: Sequence[Any], lead: str) -> list[str] | None:
        """The rest of each key after the value; None if some key does not have its value there."""
        rests: list[str | None] = []
        stops = set()
        for rest, value in zip(self._rests, values, strict=True):
            if value is None:
                rests.append(None)
                continue
            text = style.encode(value)
            if not text or not rest.startswith(text, len(lead)):
                return None
            after = rest[len(lead) + len(text) :]
            if style.codec.width is None and not _AFTER.match(after):
                return None
            if text[-1].isdigit() and after[:1].isdigit():
                return None
            rests.append(after)
            stops.add(after[:1])
        if None not in rests:
            return [rest for rest in rests if rest is not None]
        if len(stops) > 1:
            return None
        return self._skipped(style, rests, stops.pop(), lead)

    def _skipped(
        self, style: KeyStyle, rests: Sequence[str | None], stop: str, lead: str
    ) -> list[str] | None:
        """The rest of all keys, including those of items without the attribute: their values end at the same stop."""
        found = []
        for rest, after in zip(self._rests, rests, strict=True):
            if after is None:
                end = rest.find(stop, len(lead)) if stop else len(rest)
                if end < 0 or style.decode(rest[len(lead) : end]) is None:
                    return None
                after = rest[end:]
            found.append(after)
        return found

    def _scored(
        self,
        source: KeyFieldSource,
        style: KeyStyle,
        lead: str,
        rests: list[str],
        values: Sequence[Any],
    ) -> _Match:
        length = sum(map(len, self._rests)) - sum(map(len, rests))
        own = {word.lower() for word in words(source.hint or source.name)}
        label = {word.lower() for word in words(self._label() + lead)}
        return _Match(
            source,
            style,
            lead,
            rests,
            (
                length,
                len(set(map(repr, values))) > 1,
                style.is_exact,
                bool(own & label),
                bool(own & _ID_WORDS),
                source.is_virtual,
                not style.options,
            ),
        )

    def _label(self) -> str:
        """The literal before the current position."""
        for part in reversed(self._parts):
            if isinstance(part, str) and part.strip(STRONG):
                return part
        return ""

    def _is_coincidence(self, match: _Match, values: Sequence[Any]) -> bool:
        """Whether a value could be in the key by chance, because it is short and always the same."""
        if len(set(map(repr, values))) > 1 or match.source.is_virtual:
            return False
        *_, has_label, is_id, _, _ = match.score
        length = len(self._rests[0]) - len(match.rests[0])
        return length < _SHORTEST_COINCIDENCE and not (has_label or is_id)

    # Parts that are in no attribute

    def _take_unknown(self) -> None:
        texts = self._unknown_texts()
        style = style_of_texts(texts)
        if style is None:
            style = RAW
            if self._escapes and not self._gives_up:
                values = [ESCAPED.decode(text) for text in texts]
                style = ESCAPED if None not in values else RAW
        name = f"\0{self._attribute}\0{len(self._parts)}"
        values = [None] * self._items
        for number, text in zip(self._numbers, texts, strict=True):
            values[number] = style.decode(text)
        hint = self._label().strip(STRONG + "_-.$ ").rpartition("#")[2]
        source = KeyFieldSource(
            name, style.kind, values, is_virtual=True, hint=hint, note=style.note
        )
        self._new.append(source)
        self._fixed[name] = dict(style.demands)
        self._parts.append(FormField(name, style))
        self._rests = [rest[len(text) :] for rest, text in zip(self._rests, texts, strict=True)]

    def _unknown_texts(self) -> list[str]:
        if self._gives_up:
            return self._rests
        atoms = [_ATOM.match(rest) for rest in self._rests]
        if all(atoms):
            return [atom[0] for atom in atoms if atom is not None]
        ends = [re.search(rf"[{re.escape(STRONG)}]", rest) for rest in self._rests]
        stops = {end[0] for end in ends if end is not None}
        if None in ends or len(stops) > 1 or any(end.start() == 0 for end in ends if end):
            return self._rests
        return [rest[: end.start()] for rest, end in zip(self._rests, ends, strict=True) if end]


@dataclass
class _Match:
    source: KeyFieldSource
    style: KeyStyle
    lead: str
    rests: list[str]
    score: tuple[Any, ...]

    @property
    def fit(self) -> tuple[Any, ...]:
        """How well the values fit, regardless of the field's name: length, variety, and whether they are unchanged."""
        return self.score[:3]

    @property
    def is_named(self) -> bool:
        """Whether the literal before the value shares a word with the field's name."""
        return bool(self.score[3])


def _merged(parts: Sequence[str | FormField]) -> Iterator[str | FormField]:
    """The parts with adjacent literals joined."""
    text = ""
    for part in parts:
        if isinstance(part, str):
            text += part
            continue
        if text:
            yield text
        text = ""
        yield part
    if text:
        yield text


_GENERIC: Final = re.compile(
    r"_*(gsi|lsi|idx|index|gs|ls)?[\d_-]*(p|s|h|r|hash|range|partition|sort)[\s_-]*(k|key)?[\d_-]*"
    r"|(p|s|h|r)k|key\d*|(hash|range|partition|sort|row)[\s_-]?key",
    re.IGNORECASE,
)


def is_generic(attribute: str) -> bool:
    """Whether a name only says that an attribute is a key, such as PK, GSI1SK or range_key.

    >>> [is_generic(name) for name in ("PK", "GSI1SK", "gsipk-1", "customer_id")]
    [True, True, True, False]
    """
    return _GENERIC.fullmatch(attribute) is not None
