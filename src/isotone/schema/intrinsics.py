"""Intrinsic functions of CloudFormation (Ref, Fn::Sub, Fn::Join, Fn::If …), as far as a template alone gives them.

Parameters have their default, or the value that the caller gives. What only a deployment knows, such as the account or
the attribute of another resource, is refused with its place; a parameter that is given under its name takes its place,
also for pseudo parameters: `{"AWS::StackName": "shop"}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from isotone.errors import UsageError
from isotone.schema.document import DocumentValue, RemovedProperty, shown
from isotone.text_table import pluralized

_NO_VALUE: Final = "AWS::NoValue"
_VARIABLE: Final = re.compile(r"\$\{(!?)([^}]*)\}")


class Intrinsics:
    """Resolves the functions of one template."""

    def __init__(
        self, template: Mapping[str, DocumentValue], parameters: Mapping[str, str]
    ) -> None:
        def section(name: str) -> dict[str, DocumentValue]:
            return template[name].members() if name in template else {}

        self._declared = section("Parameters")
        self._conditions = section("Conditions")
        self._mappings = section("Mappings")
        self._given = dict(parameters)
        self._open: list[str] = []  # conditions that are being evaluated
        self._functions: dict[str, Callable[[DocumentValue], Any]] = {
            "Ref": self._ref,
            "Fn::Sub": self._sub,
            "Fn::Join": self._join,
            "Fn::If": self._if,
            "Fn::FindInMap": self._find_in_map,
            "Fn::Select": self._select,
        }
        self._tests: dict[str, Callable[[DocumentValue], bool]] = {
            "Fn::Equals": self._equals,
            "Fn::And": lambda value: all(self.holds(each) for each in value.elements()),
            "Fn::Or": lambda value: any(self.holds(each) for each in value.elements()),
            "Fn::Not": lambda value: not self.holds(self._several(value, 1)[0]),
            "Condition": self._named,
        }
        for name in self._given:
            if name not in self._declared and not name.startswith("AWS::"):
                known = ", ".join(self._declared) or "none"
                source = next(iter(template.values())).source
                raise UsageError(f"{source} has no parameter {name!r}; its parameters: {known}")

    def resolve(self, value: DocumentValue) -> Any:
        """A value without functions at its top; those inside are resolved when they are read."""
        given = value.given
        if not isinstance(given, dict) or len(given) != 1:
            return given
        ((name, argument),) = given.items()
        if name in self._functions:
            return self._functions[name](value.with_value(argument))
        if name in self._tests or str(name).startswith("Fn::"):
            raise value.refusal(
                f"is {shown(given)}, which only a deployment knows; write its value there"
            )
        return given

    def holds(self, condition: DocumentValue) -> bool:
        """Whether a condition is true: a name, or a function."""
        given = condition.given
        if isinstance(given, str):
            return self._named(condition)
        if isinstance(given, dict) and len(given) == 1:
            ((name, argument),) = given.items()
            if name in self._tests:
                return self._tests[name](condition.with_value(argument))
        raise condition.refusal(f"is no condition: {shown(given)}")

    # Values

    def _ref(self, value: DocumentValue) -> Any:
        return self._parameter(value, value.given)

    def _parameter(self, value: DocumentValue, name: Any) -> Any:
        if name == _NO_VALUE:
            return RemovedProperty
        if not isinstance(name, str):
            raise value.refusal(f"refers to {shown(name)}, which is no name")
        if name in self._declared:
            members = self._declared[name].members()
            if name in self._given:
                found = self._given[name]
            elif "Default" in members:
                default = members["Default"]
                found = default.value_text() if isinstance(default.given, bool) else default.given
            else:
                raise value.refusal(
                    f"refers to parameter {name}, which has no default; {_give(name)}"
                )
            kind = str(members["Type"].given) if "Type" in members else "String"
            is_list = kind == "CommaDelimitedList" or kind.startswith("List<")
            listed = [each.strip() for each in str(found).split(",")] if is_list else [found]
            self._check_allowed(value, name, listed)
            return listed if is_list else found
        if name in self._given:  # a pseudo parameter
            return self._given[name]
        if name.startswith("AWS::"):
            raise value.refusal(f"refers to {name}, which only a deployment knows; {_give(name)}")
        raise value.refusal(f"refers to {name}, which is no parameter; write its value there")

    def _check_allowed(self, value: DocumentValue, name: str, given: list[Any]) -> None:
        """Refuse a value that CloudFormation would refuse."""
        members = self._declared[name].members()
        if "AllowedValues" not in members:
            return
        allowed = [each.value_text() for each in members["AllowedValues"].elements()]
        for each in given:
            if value.with_value(each).value_text() not in allowed:
                raise value.refusal(
                    f"refers to parameter {name}, which may not be {shown(each)}; allowed: {', '.join(allowed)}"
                )

    def _sub(self, value: DocumentValue) -> str:
        text, variables = value, {}
        if isinstance(value.given, list):
            text, given = self._several(value, 2)
            variables = given.members()

        def filled(match: re.Match[str]) -> str:
            is_literal, name = match.groups()
            if is_literal:
                return f"${{{name}}}"
            if name in variables:
                return variables[name].text()
            found = self._parameter(value, name.strip())
            return value.with_value(found).text()

        if not isinstance(text.given, str):
            raise value.refusal(f"is a Fn::Sub without a text: {shown(value.given)}")
        return _VARIABLE.sub(filled, text.given)

    def _join(self, value: DocumentValue) -> str:
        separator, parts = self._several(value, 2)
        return separator.text().join(part.text() for part in parts.elements())

    def _if(self, value: DocumentValue) -> Any:
        condition, one, other = self._several(value, 3)
        return (one if self.holds(condition) else other).value

    def _find_in_map(self, value: DocumentValue) -> Any:
        names = [each.text() for each in self._several(value, 3)]
        found: Mapping[str, DocumentValue] = self._mappings
        for at, name in enumerate(names):
            if name not in found:
                raise value.refusal(f"finds nothing in the mappings at {'.'.join(names[: at + 1])}")
            if at < 2:
                found = found[name].members()
        return found[names[-1]].given

    def _select(self, value: DocumentValue) -> Any:
        number, of = self._several(value, 2)
        elements, at = of.elements(), number.integer()
        if not 0 <= at < len(elements):
            raise value.refusal(f"selects element {at} of {len(elements)}")
        return elements[at].value

    def _several(self, value: DocumentValue, count: int) -> list[DocumentValue]:
        elements = value.elements()
        if len(elements) != count:
            raise value.refusal(
                f"has a function with {pluralized(len(elements), 'argument')} instead of {count}"
            )
        return elements

    # Conditions

    def _equals(self, value: DocumentValue) -> bool:
        one, other = self._several(value, 2)
        return one.value_text() == other.value_text()

    def _named(self, value: DocumentValue) -> bool:
        name = value.given
        if not isinstance(name, str) or name not in self._conditions:
            raise value.refusal(f"names condition {shown(name)}, which the template does not have")
        if name in self._open:
            raise value.refusal(f"names condition {name}, which depends on itself")
        self._open.append(name)
        try:
            return self.holds(self._conditions[name]._replace(resolve=self.resolve))
        finally:
            self._open.pop()


def _give(name: str) -> str:
    return f"give it: --parameter {name}=VALUE"
