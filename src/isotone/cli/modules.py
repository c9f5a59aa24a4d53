"""Resolves MODULE:NAME on a command line: a module of the user's program, an object in it, and its store."""

from __future__ import annotations

import contextlib
import importlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import isotone
from isotone.backends.addresses import is_file
from isotone.cli.database import check_exists
from isotone.errors import UsageError

_WALK_MAP: Final = 64 << 20
# frames that are left out of tracebacks
_HIDDEN_FRAMES: Final = (__file__, importlib.__file__, "<frozen ")


def import_from_current_directory() -> None:
    """Import modules from the current directory before others."""
    sys.path.insert(0, str(Path.cwd()))


def check_hides_nothing(file: str) -> None:
    """Raise `UsageError` for a module to write that programs in its folder would import in place of another one."""
    name = Path(file).stem
    if Path(file).suffix == ".py" and name in {"isotone", *sys.stdlib_module_names}:
        what = "the package isotone" if name == "isotone" else f"the module {name} of Python"
        raise UsageError(
            f"{file} would hide {what} from all programs in its folder; give another name"
        )


def load(name: str, hint: str = "") -> ModuleType:
    """Import a module, from the current directory first; raises `UsageError` if it cannot be imported.

    `hint` is the text after the module's name on the command line, for the error message.
    """
    if not all(name.split(".")):
        raise UsageError(f"{name!r} is not the name of a module; write MODULE, such as shop")
    import_from_current_directory()
    try:
        found = importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - the user's own code may raise anything
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise UsageError(
                f"there is no module {name!r} in {Path.cwd()}{_instead_of(name, hint)}"
            ) from None
        raise failed(f"module {name!r} cannot be imported", error) from None
    _check_is_meant(found, name)
    return found


def source_of(text: str) -> str | None:
    """The file of the module that MODULE or MODULE:NAME,NAME names; None if it is in memory."""
    name, colon, names = text.partition(":")
    found: str | None = getattr(load(name, colon + names), "__file__", None)
    return found


def _instead_of(name: str, hint: str) -> str:
    """Advice for a name that is a file."""
    if name.endswith(".py"):
        return f"; write {name.removesuffix('.py')}{hint}"
    if Path(name).is_file():
        return f"; {name} is a file, so give the name of a module instead, such as shop{hint}"
    return ""


def member(module: ModuleType, name: str) -> Any:
    """The member of a module with a name, which may have dots; raises `UsageError`."""
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(f"module {module.__name__!r} has no {name!r}")
        found = getattr(found, part)
    return found


def failed(what: str, error: Exception) -> UsageError:
    """The error to raise for an exception in the user's code; prints its traceback."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HIDDEN_FRAMES):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)
    return UsageError(f"{what}: {type(error).__name__}: {error}")


def _check_is_meant(found: ModuleType, name: str) -> None:
    """Refuse one of Python's own modules, such as `site`, if the user has a file of the same name."""
    here = Path(f"{name.replace('.', '/')}.py").resolve()
    loaded = getattr(found, "__file__", None)
    if here.exists() and (loaded is None or Path(loaded).resolve() != here):
        raise UsageError(
            f"Python has another module {name!r} ({loaded or 'built in'}); give {here.name} another name"
        )


# Tables and entities


def targets(text: str) -> list[isotone.Table | type[isotone.Entity]]:
    """The tables and entities that MODULE or MODULE:NAME,NAME names; without names, all tables of the module.

    Raises `UsageError` if there are none.
    """
    module_name, _, names = text.partition(":")
    if not module_name or (":" in text and not names):
        raise UsageError(
            f"{text!r} does not name a module; write MODULE, or MODULE:NAME,NAME for some of its tables "
            "and entities, such as shop:Order"
        )
    module = load(module_name, f":{names}" if names else "")
    if names:
        return [_target(module, name) for name in names.split(",")]
    tables = dict.fromkeys(
        table for each in vars(module).values() if (table := _table_of(each)) is not None
    )
    found: list[Any] = [table for table in tables if table.entities]
    if not found:
        raise UsageError(f"module {module_name!r} declares no entities")
    return found


def tables_of(text: str | None) -> list[isotone.Table]:
    """The tables of what MODULE or MODULE:NAME,NAME names; none without a text."""
    if text is None:
        return []
    found = {}
    for target in targets(text):
        table = target if isinstance(target, isotone.Table) else target.__schema__.table
        found[table.name] = table
    return list(found.values())


def _target(module: ModuleType, name: str) -> isotone.Table | type[isotone.Entity]:
    found = member(module, name)
    if _table_of(found) is None:
        raise UsageError(
            f"{module.__name__}:{name} is {found!r}, neither an isotone.Table nor an entity of one"
        )
    target: isotone.Table | type[isotone.Entity] = found
    return target


def _table_of(found: object) -> isotone.Table | None:
    """The table itself, or the table of an entity; None for any other object."""
    if isinstance(found, isotone.Table):
        return found
    is_entity = isinstance(found, type) and issubclass(found, isotone.Entity)
    schema = getattr(found, "__schema__", None) if is_entity else None
    return None if schema is None else schema.table


@contextlib.contextmanager
def connect_store(
    address: str, table_prefix: str, *, create: bool = False
) -> Iterator[isotone.Store]:
    """Open a store for a walk over a whole table, for a `with` block.

    An existing file is mapped into memory only in part, because a walk would map all of it. Its writes do not wait for
    the disk: a power cut undoes the last ones together with the saved position. With `create`, a missing file becomes a
    database.
    """
    if not create:
        check_exists(address)
    if not is_file(address):
        with isotone.connect(address, table_prefix=table_prefix) as store:
            yield store
        return
    if create and table_prefix:
        isotone.connect(table_prefix=table_prefix).close()  # a bad prefix leaves no empty database
    with (
        isotone.open(address, durability="process", memory_map=_WALK_MAP) as database,
        isotone.connect(database, table_prefix=table_prefix) as store,
    ):
        yield store
