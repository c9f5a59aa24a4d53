"""`computed()` fields: each is computed after those that its function reads; circles are refused, errors name the field.

A function may read every field of its entity: another computed one, too, and those that are set by a write (`created()`,
`created_id()`, `updated()`). Such a field is computed when the entity is written, because before, it has no value.

While fields are computed, those without a value are absent from the entity. So reading one of them leads to `absent`,
which computes it first. The order needs no analysis of the functions; only circles are looked for in their code, so
that a class with one is refused.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

from isotone.errors import InvalidEntity, InvalidItem, UsageError

if TYPE_CHECKING:
    from isotone.model.declaring.fields import Attr

_UNDERWAY: Final = "_underway"
"""In the values of an entity while its fields are computed: the `_Underway`."""

_UNSET: Final = "_unset"
"""In the values of an entity that was not written: the fields that a write would set."""

_SET_BY_WRITES: Final = frozenset({"created", "created_id", "updated"})


class NoValue(Exception):
    """A field has no value here, so what is computed from it has none."""


class NotRead(NoValue, AttributeError):
    """The entity was read without this field."""


class NotWritten(NotRead):
    """The field gets its value when the entity is written."""


class Circle(UsageError):
    """A computed field needs its own value."""


class _Underway(list[str]):
    """The fields whose functions run, the innermost last; `failed` is the innermost one that raised."""

    failed: str | None = None


Refuse = Callable[[str, Exception], Exception]
"""Makes the error for a field whose function raised one."""


class Computations(dict[str, Callable[[Any], Any]]):
    """The functions of an entity's computed fields, each after those that it reads; raises `Circle`."""

    def __init__(self, entity: type, fields: Mapping[str, Attr[Any]]) -> None:
        super().__init__()
        self._entity = entity.__name__
        self._late = [name for name, each in fields.items() if each.options.role in _SET_BY_WRITES]
        functions = {name: each.options.compute for name, each in fields.items()}
        self._given = {name for name, function in functions.items() if function is None}
        for name, function in functions.items():
            if function is not None:
                self._add(name, entity, functions, ())

    def _add(
        self, name: str, entity: type, functions: Mapping[str, Any], path: tuple[str, ...]
    ) -> None:
        if name in self:
            return
        self._check_circle(name, path)
        for other in _fields_read(functions[name], entity, functions):
            if functions[other] is not None:
                self._add(other, entity, functions, (*path, name))
        self[name] = functions[name]

    def _check_circle(self, name: str, path: Sequence[str]) -> None:
        if name in path:
            circle = " → ".join([*path[path.index(name) :], name])
            raise Circle(
                f"computed fields of {self._entity} read one another in a circle: {circle}; let one of them read "
                "only other fields"
            )

    def renew(self, entity: Any) -> None:
        """Compute all fields of an entity that may not be written yet, as far as they do not depend on the write."""
        values = entity.__dict__
        if not any(values.get(name, self) is None for name in self._late):
            self.fill(entity, values)
            return
        for name in self:
            values.pop(name, None)
        for name in self:
            if name not in values:
                with suppress(NotWritten):
                    self._fill_before_write(entity, name)

    def _fill_before_write(self, entity: Any, name: str) -> None:
        """Compute one field; raises `NotWritten` if it depends on a value that a write sets."""
        values = entity.__dict__
        unset = [each for each in self._late if values.get(each, self) is None]
        for each in unset:
            del values[each]
        values[_UNSET] = unset
        try:
            self.fill(entity, values, (name,))
        finally:
            del values[_UNSET]
            values.update(dict.fromkeys(unset))

    def fill(
        self,
        entity: Any,
        values: dict[str, Any],
        names: Iterable[str] | None = None,
        refuse: Refuse | None = None,
    ) -> None:
        """Compute some fields of an entity, or all, into its values.

        Raises the error that `refuse` makes if a function raises one; without it, `InvalidEntity`, or the `NoValue`.
        """
        wanted = self if names is None else names
        for name in wanted:
            values.pop(name, None)
        underway = values[_UNDERWAY] = _Underway()
        try:
            for name in wanted:
                if name not in values:
                    self.compute(name, entity, values)
        except Exception as error:
            if refuse is None and isinstance(error, NoValue | InvalidItem | Circle):
                raise
            raise (refuse or self._refuse)(str(underway.failed), error) from error
        finally:
            del values[_UNDERWAY]

    def compute(self, name: str, entity: Any, values: dict[str, Any]) -> Any:
        """Compute one field while others are underway."""
        underway: _Underway = values[_UNDERWAY]
        self._check_circle(name, underway)
        underway.append(name)
        try:
            value = values[name] = self[name](entity)
        except Exception:  # the user's function; raised again, with the field noted
            underway.failed = underway.failed or name
            raise
        finally:
            underway.pop()
        underway.failed = None  # a function may handle the error of another one
        return value

    def absent(self, entity: Any, name: str) -> Any:
        """The value of a field that an entity lacks, if it is being computed; raises `NotRead`."""
        values = entity.__dict__
        if _UNDERWAY in values and name in self:
            return self.compute(name, entity, values)
        if name in values.get(_UNSET, ()):
            raise NotWritten(f"{self._entity} has no {name!r} before it is written, which sets it")
        if name in self and self._given <= values.keys():
            try:
                self._fill_before_write(entity, name)
            except NotWritten as error:
                raise NotWritten(f"{error}; {name!r} is computed from it") from None
            return values[name]
        raise NotRead(f"{self._entity} was read without its field {name!r}")

    def _refuse(self, name: str, error: Exception) -> InvalidEntity:
        text = (
            f"{self._entity}: computed field {name!r} has no value, because its function raised {error!r}; give "
            "other values, or make the function accept these"
        )
        return InvalidEntity(text, [{"type": "computed", "loc": (name,), "msg": repr(error)}])


def _fields_read(
    function: Any, entity: type, fields: Mapping[str, Any], seen: frozenset[Any] = frozenset()
) -> dict[str, None]:
    """The fields that a function reads of its first parameter, itself and by methods and properties of the entity.

    What it does by other means, such as `getattr`, is not seen.
    """
    code = getattr(function, "__code__", None)
    if code is None or not code.co_argcount or code in seen:
        return {}
    found: dict[str, None] = {}
    for name in _names_read(code, code.co_varnames[0]):
        if name in fields:
            found[name] = None
            continue
        member = inspect.getattr_static(entity, name, None)
        further = member.fget if isinstance(member, property) else member
        found |= _fields_read(further, entity, fields, seen | {code})
    return found


def _names_read(code: CodeType, variable: str) -> Iterator[str]:
    """The attributes of a variable that code reads, and the functions and comprehensions inside it."""
    loaded: Any = None
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and loaded == variable:
            yield str(step.argval)
        is_load = "LOAD_FAST" in step.opname or "LOAD_DEREF" in step.opname
        # An instruction may load, or store and load, two variables.
        loaded = step.argval[-1] if isinstance(step.argval, tuple) else step.argval
        loaded = loaded if is_load else None
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and variable in inner.co_freevars:
            yield from _names_read(inner, variable)
