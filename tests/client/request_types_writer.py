"""Writes `client/request_types.py` from the requests that `operations` declares: `make files`.

botocore checks less than the service: the names of members, which are required, kinds, and lower bounds. Enums are text
to it, and upper bounds and patterns are the service's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

import isotone.client
from isotone.operations.action import Action
from isotone.operations.api import ACTIONS
from isotone.operations.request_members import ApiStructure, AttributeValue

FILE: Final = Path(isotone.client.__file__).parent / "request_types.py"

_HEAD: Final = '''"""The parameters of each action, as boto3's low-level clients take them: made of `operations`, by `make files`.

An editor completes keyword arguments from an `…Input`. `parameters` compiles it into a check that runs in C, and walks it
to report errors with botocore's messages. Names, order and lower bounds of the members are the service's own.
"""
# fmt: off

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Required, TypedDict, TypeVar

from msgspec import Meta

T = TypeVar("T")

NonEmpty = Annotated[Sequence[T], Meta(min_length=1)]
%s
class AttributeValue(TypedDict, total=False):
    S: str
    N: str
    B: bytes
    SS: Sequence[str]
    NS: Sequence[str]
    BS: Sequence[bytes]
    M: Mapping[str, Any]
    L: Sequence[Any]
    NULL: bool
    BOOL: bool

if TYPE_CHECKING:  # a dict made before the call has no more exact type
    AttributeMap = Mapping[str, AttributeValue | Mapping[str, Any]]
else:
    AttributeMap = Mapping[str, AttributeValue]
'''


class _Writer:
    """Collects the declarations of all requests."""

    def __init__(self) -> None:
        self.bounds: dict[str, str] = {}
        self.declared: dict[str, str] = {}
        """The members of each structure by its name."""

    def declare(self, structure: type[ApiStructure], name: str) -> str:
        """Declare a structure and those inside it, and return its name."""
        hints = get_type_hints(structure, include_extras=True)
        lines = []
        for field in msgspec.structs.fields(structure):
            kind = self.kind(_present(hints[field.name]))
            wanted = f"Required[{kind}]" if field.required else kind
            lines.append(f"    {field.encode_name}: {wanted}")
        members = "\n".join(lines or ["    pass"])
        assert self.declared.setdefault(name, members) == members, f"two requests have {name}"
        return name

    def kind(self, annotation: Any) -> str:
        """The type of a member as its TypedDict has it."""
        bare, meta = _split(annotation)
        if bare == AttributeValue:
            return "AttributeValue"
        origin, arguments = get_origin(bare), get_args(bare)
        if origin is list:
            return f"{'NonEmpty' if meta.min_length else 'Sequence'}[{self.kind(arguments[0])}]"
        if origin is dict:
            key, value = map(self.kind, arguments)
            return "AttributeMap" if value == "AttributeValue" else f"Mapping[{key}, {value}]"
        if origin is None and issubclass(bare, ApiStructure):
            return self.declare(bare, bare.__name__.removeprefix("_"))
        return self.scalar(bare, meta)

    def scalar(self, bare: Any, meta: msgspec.Meta) -> str:
        """Text, a number, a flag or a time, with its lower bound."""
        extra = meta.extra or {}
        if bare is str or get_origin(bare) is Literal:
            # A name that may be an ARN is checked by its action.
            least = extra.get("min_length_of_clients") or meta.min_length or "checked" in extra
            return self.bounded("Text", "str", "min_length", int(least)) if least else "str"
        if bare is int and meta.ge is not None and meta.ge >= 0:
            return self.bounded("Int", "int", "ge", int(meta.ge))
        if bare is float:
            return "float" if extra.get("java") else "datetime"
        return str(bare.__name__)

    def bounded(self, prefix: str, kind: str, bound: str, least: int) -> str:
        """The name of a type with a lower bound."""
        name = f"{prefix}{least}"
        self.bounds[name] = f"{name} = Annotated[{kind}, Meta({bound}={least})]"
        return name


def _present(annotation: Any) -> Any:
    """X of `X | None`."""
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (part for part in get_args(annotation) if part is not NoneType)
    return annotation


def _split(annotation: Any) -> tuple[Any, msgspec.Meta]:
    if get_origin(annotation) is Annotated:
        bare, meta = get_args(annotation)
        return bare, meta
    return annotation, msgspec.Meta()


def _module_of(action: Action) -> str:
    return action.request.__module__.rpartition(".")[2]


def _paragraphs(writer: _Writer) -> Iterator[str]:
    """The declarations of the requests of each module, those inside them first."""
    # Which module was imported first must not matter.
    ordered = sorted(
        ACTIONS.values(), key=lambda action: (_module_of(action), action.run.__module__)
    )
    for module, actions in groupby(ordered, _module_of):
        yield f"# Of operations/{module}.py"
        known = len(writer.declared)
        for action in actions:
            writer.declare(action.request, f"{action.name}Input")
        for name, members in [*writer.declared.items()][known:]:
            yield f"class {name}(TypedDict, total=False):\n{members}"


def text() -> str:
    """The module."""
    writer = _Writer()
    paragraphs = [*_paragraphs(writer)]
    bounds = sorted(writer.bounds, key=lambda name: (name.rstrip("0123456789"), len(name), name))
    head = _HEAD % "".join(f"{writer.bounds[name]}\n" for name in bounds)
    return "\n\n".join([head.rstrip(), *paragraphs]) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
