"""YAML: a writer for plain values, and a reader for templates with the short forms of intrinsic functions (`!Ref`).

The writer needs no package. The reader uses PyYAML (`pip install 'isotone[schema]'`). As CloudFormation, it has no
aliases: a few lines of them can stand for billions of values. A name that is written twice in one object is refused,
because one of the two would be lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from isotone.errors import UsageError
from isotone.schema.document import extra_module, quoted

_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*(?:::?[A-Za-z0-9_./-]+)*")
# Words that some reader of YAML takes for something else than a text.
_SPECIAL: Final = frozenset(["true", "false", "yes", "no", "on", "off", "null", "y", "n"])
_NAMES_BY_TAG: Final = {"Ref": "Ref", "Condition": "Condition"}


def yaml_text(value: Any) -> str:
    """Objects, lists and scalars as YAML in block style."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _entry(f"{_scalar(name)}:", each)
    else:
        for each in value:
            lines = list(_lines(each)) if _is_nested(each) else [_scalar(each)]
            yield f"- {lines[0]}"
            yield from (f"  {line}" for line in lines[1:])


def _entry(begin: str, value: Any) -> Iterator[str]:
    if _is_nested(value):
        yield begin
        yield from (f"  {line}" for line in _lines(value))
    else:
        yield f"{begin} {_scalar(value)}"


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _scalar(value: Any) -> str:
    """A scalar, or an empty object or list."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _SPECIAL:
        return value
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def parsed_yaml(text: str, source: str) -> Any:
    """The content of a template in YAML; raises `UsageError` that names the line."""
    yaml = extra_module("yaml", "PyYAML", f"to read {source}")

    class Loader(yaml.SafeLoader):  # type: ignore[name-defined,misc] # of an extra, so imported here
        """Reads intrinsic functions as objects, and dates as texts; refuses aliases and repeated names."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):
                event = self.peek_event()
                raise _refused(source, event.start_mark, "an alias, which CloudFormation has not")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            names = set()
            for own, _ in node.value:
                name = self.construct_object(own, deep=True)
                if isinstance(name, dict | list):
                    raise _refused(source, own.start_mark, "a name that is not a text")
                if name in names:
                    raise _refused(source, own.start_mark, f"{name!r} twice in one object")
                names.add(name)
            mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
            return mapping

    def function(loader: Any, suffix: str, node: Any) -> dict[str, Any]:
        name = _NAMES_BY_TAG.get(suffix, f"Fn::{suffix}")
        if isinstance(node, yaml.ScalarNode):
            value = loader.construct_scalar(node)
            return {name: value.split(".", 1) if suffix == "GetAtt" else value}
        if isinstance(node, yaml.SequenceNode):
            return {name: loader.construct_sequence(node, deep=True)}
        return {name: loader.construct_mapping(node, deep=True)}

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.add_multi_constructor("!", function)
    try:
        return yaml.load(text, Loader)
    except UsageError:  # which is a ValueError, too
        raise
    except RecursionError:
        raise UsageError(f"{source} is nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{source} is not valid YAML: {_reason(error)}") from None


def _refused(source: str, mark: Any, what: str) -> UsageError:
    return UsageError(f"{source}, line {mark.line + 1}: {what}")


def _reason(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = " ".join((getattr(error, "problem", None) or str(error)).split())
    return f"line {mark.line + 1}: {problem}" if mark is not None else problem
