"""The corpus as values: reads the files of the areas, and expands what stands for something longer."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

FOLDER: Final = Path(__file__).parent
Json: TypeAlias = Any
Expected: TypeAlias = dict[str, Any]

_PLACEHOLDER: Final = re.compile(r"\{([A-Z][A-Z0-9_]*)\}")


class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a request that prepares an observation is treated."""

    save: dict[str, str] = {}
    until: Json = None
    fails: bool = False


class Step(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A request that prepares an observation."""

    action: str
    body: Json
    options: Given = Given()


class Observation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request and its answer, as the package describes them."""

    name: str
    seen: str
    regions: Literal["most", "some"]
    request: tuple[str, Json]
    answer: Expected
    tables: list[str] = []
    given: list[Step] = []
    others: list[Expected] = []
    headers: list[tuple[str, str | dict[str, Json] | None]] = []
    method: str = "POST"
    path: str = "/"
    needs: list[str] = []
    note: str = ""

    @property
    def is_http(self) -> bool:
        """Whether it is about HTTP, and says nothing of a database without a server."""
        odd = bool(self.headers) or self.method != "POST" or self.path != "/"
        return odd or any(name in self.answer for name in ("status", "headers"))


def areas() -> dict[str, list[Observation]]:
    """All observations, by their area."""
    files = sorted(path for path in FOLDER.glob("*.json") if path.stem != "fixtures")
    return {path.stem: _decoded(path, list[Observation]) for path in files}


def fixtures() -> dict[str, list[Step]]:
    """The requests that make each shared table."""
    made: dict[str, list[Step]] = _decoded(FOLDER / "fixtures.json", dict[str, list[Step]])
    return made


def _decoded(path: Path, kind: Any) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path.name}: {error}") from None


def expanded(value: Json, names: Mapping[str, str]) -> Json:
    """The value with its placeholders replaced and its generators expanded."""
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda found: names.get(found[1], found[0]), value)
    if isinstance(value, list | tuple):
        return [expanded(member, names) for member in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, content),) = value.items()
        if name in _GENERATORS:
            return _GENERATORS[name](content, names)
    return {expanded(name, names): expanded(member, names) for name, member in value.items()}


def body_of(content: Json, names: Mapping[str, str]) -> bytes:
    """A request's body: JSON of an object, or what is to be sent as it is."""
    content = expanded(content, names)
    if isinstance(content, bytes):
        return content
    return content.encode() if isinstance(content, str) else json.dumps(content).encode()


def _repeat(content: Json, names: Mapping[str, str]) -> Json:
    piece, times = content
    return expanded(piece, names) * times


def _join(content: Json, names: Mapping[str, str]) -> Json:
    first, *rest = (expanded(each, names) for each in content)
    for each in rest:
        first = first + each
    return first


def _each(content: Json, names: Mapping[str, str]) -> Json:
    count, pattern = content
    return [expanded(pattern, {**names, "I": str(number)}) for number in range(1, count + 1)]


def _merge(content: Json, names: Mapping[str, str]) -> Json:
    merged: dict[str, Json] = {}
    for each in expanded(content, names):
        merged |= each
    return merged


def _nest(content: Json, names: Mapping[str, str]) -> Json:
    times, pattern, inner = content
    value = expanded(inner, names)
    for _ in range(times):
        value = _filled(pattern, value)
    return value


def _filled(pattern: Json, inner: Json) -> Json:
    if pattern == "{INNER}":
        return inner
    if isinstance(pattern, list):
        return [_filled(member, inner) for member in pattern]
    if isinstance(pattern, dict):
        return {name: _filled(member, inner) for name, member in pattern.items()}
    return pattern


_GENERATORS: Final[dict[str, Callable[[Json, Mapping[str, str]], Json]]] = {
    "{REPEAT}": _repeat,
    "{JOIN}": _join,
    "{EACH}": _each,
    "{MERGE}": _merge,
    "{NEST}": _nest,
    "{BASE64}": lambda content, _: base64.b64decode(content),
}
