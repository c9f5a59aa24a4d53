"""Divides the items of a table into kinds: by an attribute that names the kind, or by the form of the keys.

The primary keys are split into words. A word is a *literal* (USER in USER#ann) or a value (ann). Digits, and texts that
are also in an attribute of the item, are values. Other words before a separator are literals if there are few different
ones. A whole key is a literal if its items have other attributes than items with other keys.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from isotone.inference.key_recognition import STRONG, TYPE_WORDS, is_generic
from isotone.inference.naming import words
from isotone.inference.sampling import Sample
from isotone.values.types import Item

_KNOWN_TAGS: Final = (
    *("_type", "__edb_e__", "_et", "type", "Type", "entity", "Entity", "entityType", "EntityType"),
    *(
        "entity_type",
        "_entity",
        "kind",
        "Kind",
        "__typename",
        "itemType",
        "item_type",
        "recordType",
    ),
    *("record_type", "objectType", "object_type", "_class", "_kind", "model", "cls", "_t"),
)
_MOST_KINDS: Final = 1000
_TOKEN: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{5,8}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    rf"|[^{re.escape(STRONG)}]+|[{re.escape(STRONG)}]"
)
_HEAD: Final = re.compile(r"([A-Za-z]+)([_-])(.+)")
_MARKS: Final = frozenset({"", "_", "-", *STRONG})
_SIMILAR: Final = 0.7  # of the attributes that two kinds must share to look like one
_MOST_LABELS: Final = 60

VALUE: Final = "*"


@dataclass(frozen=True)
class Group:
    """Items of one kind, by their numbers in the sample. `tag` is the value that names the kind."""

    items: tuple[int, ...]
    tag: str | None = None
    skeleton: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grouping:
    """One way to divide the items. `tag` is the attribute that names the kinds; None if the keys do."""

    tag: str | None
    groups: tuple[Group, ...]


def groupings(sample: Sample) -> Iterator[Grouping]:
    """The ways to divide the items of a sample, the best guess first."""
    skeletons = skeletons_of(sample)
    by_form: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, skeleton in enumerate(skeletons):
        by_form[skeleton].append(number)
    for tag in _tags(sample, by_form):
        yield Grouping(tag, tuple(_tagged(sample, tag, skeletons)))
    groups = [Group(tuple(items), skeleton=form) for form, items in by_form.items()]
    yield Grouping(None, tuple(sorted(groups, key=lambda group: group.skeleton)))


# By an attribute


def _tags(sample: Sample, by_form: dict[tuple[str, ...], list[int]]) -> list[str]:
    """The attributes that may name the kind, the most likely one first."""
    keys = sample.table.key_attributes
    counts = Counter(name for item in sample.items for name, value in item.items() if "S" in value)
    found = []
    for name, count in counts.items():
        if name in keys or 2 * count < len(sample.items):
            continue
        is_known = name in _KNOWN_TAGS
        values = {item[name]["S"] for item in sample.items if "S" in item.get(name, {})}
        if not is_known and (len(values) < 2 or not TYPE_WORDS & set(map(str.lower, words(name)))):
            continue
        if len(values) > _MOST_KINDS or "" in values:
            continue
        if any(name in item and "S" not in item[name] for item in sample.items):
            continue
        if is_known or _names_forms(sample, name, by_form.values()):
            place = _KNOWN_TAGS.index(name) if is_known else len(_KNOWN_TAGS)
            found.append((place, name))
    return [name for _, name in sorted(found)]


def _names_forms(sample: Sample, name: str, forms: Iterable[Sequence[int]]) -> bool:
    """Whether most items with different values of an attribute have keys of different forms."""
    agreeing = 0
    for items in forms:
        counts = Counter(sample.items[number].get(name, {}).get("S") for number in items)
        counts.pop(None, None)
        # Several kinds in one form may mean that literals of the form were taken for values.
        agreeing += sum(counts.values()) if len(counts) <= 1 else max(counts.values())
    present = sum(name in item for item in sample.items)
    return 2 * agreeing >= present


def _tagged(sample: Sample, tag: str, skeletons: Sequence[tuple[str, ...]]) -> Iterator[Group]:
    """The items grouped by the value of an attribute; those without it, by the form of their keys."""
    by_tag: dict[str, list[int]] = defaultdict(list)
    untagged: dict[tuple[str, ...], list[int]] = defaultdict(list)
    kinds: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for number, item in enumerate(sample.items):
        if tag in item:
            value = item[tag]["S"]
            by_tag[value].append(number)
            kinds[skeletons[number]].add(value)
        else:
            untagged[skeletons[number]].append(number)
    for skeleton in list(untagged):
        if len(kinds[skeleton]) == 1:
            by_tag[next(iter(kinds[skeleton]))] += untagged.pop(skeleton)
    for value in sorted(by_tag):
        yield Group(tuple(sorted(by_tag[value])), value)
    for skeleton, numbers in sorted(untagged.items()):
        yield Group(tuple(numbers), None, skeleton)


# By the form of the keys


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    attribute: str
    is_value: bool
    is_whole: bool
    """Whether the token is the whole key attribute."""
    is_followed: bool


@dataclass(frozen=True, slots=True)
class _Row:
    number: int
    tokens: tuple[_Token, ...]
    attributes: frozenset[str]


def skeletons_of(sample: Sample) -> list[tuple[str, ...]]:
    """For each item, the literals of its primary key, with `*` for values."""
    keys = sample.table.key_attributes
    heads = {part.name: _has_heads(sample, part.name) for part in sample.table.key.parts}
    rows = []
    for number, item in enumerate(sample.items):
        values = _values_of(item, keys)
        tokens = [
            token
            for part in sample.table.key.parts
            for token in _tokens(part.name, item[part.name], values, heads[part.name])
        ]
        rows.append(_Row(number, tuple(tokens), frozenset(item.keys() - keys.keys())))
    found: list[tuple[str, ...]] = [()] * len(rows)
    _divide(rows, 0, (), found)
    return found


def _values_of(item: Item, keys: Iterable[str]) -> set[str]:
    """The scalar values of an item outside its keys, as lower-case texts, without the name of its kind."""
    found = set()
    for name, value in item.items():
        if name in keys or (words(name)[-1:] or [name])[0].lower() in TYPE_WORDS:
            continue
        ((code, content),) = value.items()
        if code in ("S", "N"):
            found.add(str(content).lower())
    return found


def _has_heads(sample: Sample, name: str) -> bool:
    """Whether a key attribute starts with words such as USER in USER_1, and has no other separators."""
    texts = [item[name]["S"] for item in sample.items if "S" in item[name]]
    if not texts or 2 * sum(any(each in text for each in STRONG) for text in texts) > len(texts):
        return False
    heads = [match[1] for match in map(_HEAD.fullmatch, texts) if match]
    return 2 * len(heads) > len(texts) and len(set(heads)) <= max(1, len(heads) // 2)


def _tokens(
    name: str, value: dict[str, str], values: set[str], has_heads: bool
) -> Iterator[_Token]:
    ((code, content),) = value.items()
    if code != "S":
        yield _Token(VALUE, name, True, True, False)
        return
    texts = _TOKEN.findall(content)
    if has_heads and len(texts) == 1 and (match := _HEAD.fullmatch(content)):
        texts = list(match.groups())
    for place, text in enumerate(texts):
        is_value = any(map(str.isdigit, text)) or text.lower() in values or not text.isprintable()
        is_separator = text in _MARKS
        yield _Token(
            text,
            name,
            is_value and not is_separator,
            len(texts) == 1,
            place + 1 < len(texts),
        )
    yield _Token("", name, False, False, False)


def _divide(
    rows: Sequence[_Row], at: int, path: tuple[str, ...], found: list[tuple[str, ...]]
) -> None:
    """Set the form of each row; all rows have the tokens `path` before position `at`."""
    while rows:
        branches = _branches(rows, at)
        if len(branches) != 1:
            break
        ((text, rows),) = branches.items()
        if text is None:
            for row in rows:
                found[row.number] = path
            return
        at, path = at + 1, (*path, text)
    for text, branch in branches.items() if rows else ():
        if text is None:
            for row in branch:
                found[row.number] = path
        else:
            _divide(branch, at + 1, (*path, text), found)


def _branches(rows: Sequence[_Row], at: int) -> dict[str | None, list[_Row]]:
    """The rows by their token at a position; None for rows that end before it."""
    branches: dict[str | None, list[_Row]] = defaultdict(list)
    labelled: list[_Row] = []
    for row in rows:
        if at >= len(row.tokens):
            branches[None].append(row)
        elif row.tokens[at].is_value:
            branches[VALUE].append(row)
        elif row.tokens[at].text in _MARKS:
            branches[row.tokens[at].text or "\0"].append(row)
        else:
            labelled.append(row)
    literals = _literals(labelled, branches.get(VALUE, []), at)
    for row in labelled:
        text = row.tokens[at].text
        branches[text if text in literals else VALUE].append(row)
    return branches


def _literals(rows: Sequence[_Row], values: Sequence[_Row], at: int) -> set[str]:
    """The words at a position that are literals."""
    by_word: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        by_word[row.tokens[at].text].append(row)
    if not by_word:
        return set()
    whole = {word for word, of in by_word.items() if not of[0].tokens[at].is_followed}
    prefixes = by_word.keys() - whole
    return _labels(by_word, prefixes, len(rows)) | _distinct(by_word, whole, values, at)


def _labels(by_word: dict[str, list[_Row]], prefixes: Iterable[str], count: int) -> set[str]:
    """Words before a separator that are literals: not if there are about as many words as items."""
    words_before = list(prefixes)
    if len(words_before) <= 1 or len(words_before) <= min(_MOST_LABELS, count // 2):
        return set(words_before)
    return {word for word in words_before if word.isupper() and len(by_word[word]) > 1} or {
        word for word in words_before if word.isupper()
    }


def _distinct(
    by_word: dict[str, list[_Row]], whole: set[str], values: Sequence[_Row], at: int
) -> set[str]:
    """Words at the end of a key attribute that are literals: their items have attributes of their own."""
    if not whole:
        return set()
    first = next(iter(whole))
    token = by_word[first][0].tokens[at]
    if len(whole) == 1 and not values:
        return whole if is_generic(token.attribute) or not token.is_whole else set()
    profiles = {word: _profile(by_word[word]) for word in whole}
    others = [_profile(values)] if values else []
    found = set()
    for word, profile in profiles.items():
        neighbours = [each for other, each in profiles.items() if other != word] + others
        is_alone = not any(_likeness(profile, each) >= _SIMILAR for each in neighbours)
        if is_alone and (len(by_word[word]) > 1 or word.isupper()):
            found.add(word)
    return found


def _profile(rows: Sequence[_Row]) -> frozenset[str]:
    """The attributes that most of these items have."""
    counts = Counter(name for row in rows for name in row.attributes)
    return frozenset(name for name, count in counts.items() if 2 * count >= len(rows))


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    both = one | other
    return len(one & other) / len(both) if both else 1.0
