"""Which files an option may write: one check for every option that names an output, in every command.

    report = OutputPath("--report", "lost.jsonl", may_stream=True)
    check_outputs(OutputPath("NEW_FILE", "new.db"), report, inputs={"FILE": "shop.db"})
    …
    write_text(report, text)

An output is refused if it is

- an input, under another spelling or through a link as well, or what SQLite keeps beside one (`shop.db-wal`)
- another output of the same call, or a file that this one writes beside itself (`orders.jsonl.part`)
- a database of SQLite or one of its logs, whichever program made it, even with `--force`
- what nobody can make again: an undo log, an audit log, the users of a server, even with `--force`
- not a regular file: a folder, a device, a pipe, a symbolic link
- a file that nobody may write (`chmod 444`), which a rename would replace all the same
- a file that is not of the option, by how it begins or by a mark in it: a program, the credentials of a server, a photograph
- in a folder in which nothing can be written: better now than at the end of the work

A text that is written in one go may also go to an open stream (`/dev/stdout`), a terminal or a null device: nothing is
replaced there. A pipe with a name is refused: opening it waits for a reader, for ever if there is none. Whether an existing
file may be replaced at all is the caller's decision (`--force`).
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple, TextIO

from isotone.errors import UsageError

Place = str | PathLike[str]

STANDARD: Final = "-"
"""The name that stands for standard input or output."""

LOGS: Final = ("-wal", "-shm", "-journal")
"""The endings of the files that SQLite keeps beside a database."""

_DATABASE: Final = b"SQLite format 3\0"
_LOG_HEADS: Final = (
    b"\x37\x7f\x06\x82",  # a write-ahead log, in either byte order
    b"\x37\x7f\x06\x83",
    b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7",  # a rollback journal
)
_UNIQUE: Final = (  # how files begin that nobody can make again
    (re.compile(rb'\{"table":"[^"]*","items":\[\{"key":\{"[^"]*":\{"[SNB]":'), "an undo log"),
    (
        re.compile(rb'\{"time":"[^"]*","key":[^,]*,"user":[^,]*,"source":[^,]*,"action":'),
        "an audit log",
    ),
    (
        re.compile(rb'\{\s*"users":\s*\{\s*"[^"]+":\s*\{\s*"keys":\s*\[\s*\{\s*"access_key_id"'),
        "the users of a server",
    ),
)
_UNIQUE_BYTES: Final = 1_000  # bytes that show it
_LARGEST_MARKED: Final = 1 << 26  # bytes in which a mark is looked for
_FOLDER_ENDINGS: Final = tuple(
    f"{separator}{name}" for separator in (os.sep, os.altsep) if separator for name in ("", ".")
)
_STREAMS: Final = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
_WRITABLE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


class OutputPath(NamedTuple):
    """An output file that an option names; `option` is the option's name in the caller's words.

    `beside` are the endings of files that are written beside it. `may_stream`: it is written in one go, so an open
    stream or a terminal is accepted. `is_appended`: its content is kept, so it may be a symbolic link. `needs_folder`:
    its folder must exist. `is_database`: it becomes a database, so the caller decides which databases it may replace. `begins` are
    the first bytes of what the option writes: an existing file that begins otherwise is refused. They are so many that no
    other program's files begin so. `mark` is in every file that the option writes, where formats begin all alike.
    """

    option: str
    path: Place
    beside: tuple[str, ...] = ()
    may_stream: bool = False
    is_appended: bool = False
    needs_folder: bool = True
    is_database: bool = False
    begins: tuple[bytes, ...] = ()
    mark: bytes = b""


def text_output(option: str, path: Place | None, *begins: bytes) -> OutputPath | None:
    """The output of an option that writes its text in one go; None if the option was not given."""
    return None if path is None else OutputPath(option, path, may_stream=True, begins=begins)


def check_outputs(
    *outputs: OutputPath | None, inputs: Mapping[str, Place | None] | None = None
) -> None:
    """Raise `UsageError` for an output that must not be written; None is an option that was not given.

    `inputs` are the files and folders that the same call reads, by the names of their options. Other files of the call
    that do not exist yet, such as a database to be created, count as inputs as well.
    """
    given = [each for each in outputs if each is not None]
    read = {option: path for option, path in (inputs or {}).items() if path is not None}
    for place, output in enumerate(given):
        _check_name(output)
        for option, path in read.items():
            _check_apart(output, option, path)
        for other in given[:place]:
            _check_two(output, other)
        check_output(output)


def check_output(output: OutputPath) -> None:
    """Raise `UsageError` for an output that must not be written, on its own."""
    _check_name(output)
    path = Path(output.path)
    if output.needs_folder and not path.parent.is_dir():
        raise UsageError(
            f"{output.option} {path}: the folder {path.parent} does not exist; create it first"
        )
    for each in _all_of(output):
        _check_kind(output, each)
        behind = _file_behind(each)  # its logs are beside it, and its name may be that of a log
        what = _log_of(behind) if output.is_database else _database_of(behind) or _log_of(behind)
        if not output.is_appended:
            what = what or _unique(behind)
        if what:
            raise _refused(output, each, f"is {what}, and is not replaced")
    if (output.begins or output.mark) and not _is_earlier(output):
        raise _refused(output, path, f"exists, and is nothing that {output.option} writes")
    if output.needs_folder and not _is_writable(output):
        raise _refused(output, path, "cannot be written there: permission denied")


def check_may_replace(path: Place | None, *, force: bool) -> None:
    """Raise `UsageError` for a file that exists and is not empty, unless the caller forces it."""
    if path is None or force or _standard_stream(Path(path)) is not None:
        return
    if _size(Path(path)):
        raise UsageError(f"{os.fspath(path)} exists; --force replaces it")


def write_text(output: OutputPath, text: str) -> None:
    """Write a text to an output in UTF-8, replacing the file's content."""
    check_output(output)  # again: the work since the first check may have taken long
    stream = _standard_stream(Path(output.path))
    if stream is not None:
        stream.write(text)
        stream.flush()
    elif Path(output.path).exists() and not Path(output.path).is_file():
        Path(output.path).write_text(text, encoding="utf-8")  # an open stream, or a device
    else:
        write_whole(Path(output.path), text.encode())


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file's content atomically and durably: after a crash it is the old one or the new one."""
    new = path.with_name(f".{path.name}.{os.urandom(4).hex()}")  # a name of its own
    try:
        with errors_name(path), new.open("xb") as file:
            if path.exists():
                new.chmod(stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with errors_name(path):
            new.replace(path)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def errors_name(path: Place) -> Iterator[None]:
    """Errors of the system in this block name a file as the user knows it: of a write they name none."""
    try:
        yield
    except OSError as error:
        error.filename = os.fspath(path)
        raise


# Kinds of files


def check_regular(path: Place) -> None:
    """Raise `UsageError` if something else than a file is read: opening a pipe, for example, waits for its writer."""
    kind = _special_kind(_mode(Path(path)))
    if kind:
        raise UsageError(
            f"{os.fspath(path)} is {kind}, not a regular file; put a file in its place"
        )


def is_database(path: Place) -> bool:
    """Whether a file begins as a database. It may be open in this process, and closing it would end SQLite's locks on it."""
    return _head(Path(path)).startswith(_DATABASE)


def is_write_protected(path: Place) -> bool:
    """Whether nobody may write a file that exists (`chmod 444`). A rename replaces it all the same, and root writes it."""
    mode = _mode(Path(path))
    return bool(mode) and not mode & _WRITABLE


def _mode(path: Path) -> int:
    """The mode of a file; 0 where nothing is."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _special_kind(mode: int) -> str:
    """What a file is in words, if it is no regular file; empty for a regular file, and where nothing is."""
    if not mode or stat.S_ISREG(mode):
        return ""
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "a special file")


def _is_earlier(output: OutputPath) -> bool:
    """Whether a file is new or empty, or is one that was written before; a killed process may have left the beginning."""
    path = Path(output.path)
    if _standard_stream(path) is not None:  # what was printed comes first
        return True
    if output.mark:
        content = _head(path, _LARGEST_MARKED)
        return not content or output.mark in content
    return any(each.startswith(_head(path, len(each))) for each in output.begins)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def _is_writable(output: OutputPath) -> bool:
    """Whether a file can be made in the folder of an output, or the file that is appended to can be written."""
    path = Path(output.path)
    is_kept = path.exists() and (output.is_appended or not path.is_file())  # no device is replaced
    return _is_standard(path) or os.access(path if is_kept else path.parent, os.W_OK)


def _check_name(output: OutputPath) -> None:
    path = Path(output.path)
    if "://" in os.fsdecode(output.path):
        raise _refused(output, path, "is an address, not a file")
    if not path.name or os.fspath(output.path).endswith(_FOLDER_ENDINGS):
        raise _refused(output, path, "is a folder, not a regular file")


def _check_kind(output: OutputPath, path: Path) -> None:
    """Refuse anything but a regular file. Files that are written beside an output must be regular, too."""
    is_itself = path == Path(output.path)
    may_stream = output.may_stream and is_itself
    if _is_standard(path):
        if not may_stream:
            raise _refused(output, path, "is a stream, not a regular file")
        return
    if path.is_symlink() and not (output.is_appended and is_itself):
        raise _refused(output, path, f"is a symbolic link to {os.path.realpath(path)}")
    mode = _mode(path)
    kind = _special_kind(mode)
    is_log = output.is_appended and stat.S_ISFIFO(mode)  # whose writer does not wait for a reader
    if kind and not (may_stream and (stat.S_ISCHR(mode) or is_log)):
        raise _refused(output, path, f"is {kind}, not a regular file")
    if is_write_protected(path):
        raise _refused(output, path, "is read-only, and is not replaced")


def _is_standard(path: Path) -> bool:
    """Whether a path names an open stream of this process; on some systems that is a symbolic link."""
    return str(path).startswith(_STREAMS)


def _standard_stream(path: Path) -> TextIO | None:
    """Standard output or error, if a path names the same file: opening it again would overwrite what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the path does not exist, or the stream has no file
            if os.path.samestat(path.stat(), os.fstat(stream.fileno())):
                return stream
    return None


def _database_of(path: Path) -> str:
    """What kind of database a path is, in words; empty if it is none."""
    if _head(path).startswith(_DATABASE):
        return "a database"
    for ending in LOGS:
        if path.is_file() and _head(_beside(path, ending)).startswith(_LOG_HEADS):
            return f"a database: {path.name}{ending} is its log"
    return ""


def _unique(path: Path) -> str:
    """What a file is that nobody can make again, in words; empty for any other."""
    head = _head(path, _UNIQUE_BYTES)
    return next((what for begins, what in _UNIQUE if begins.match(head)), "")


def _file_behind(path: Path) -> Path:
    """The file that a symbolic link leads to, whether it exists or not; any other path as it is."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _log_of(path: Path) -> str:
    """What kind of database log a path is or would be, in words; empty if it is none."""
    if _head(path).startswith(_LOG_HEADS):
        return "the log of a database"
    for ending in LOGS:
        base = path.with_name(path.name.removesuffix(ending) or path.name)
        if base != path and _head(base).startswith(_DATABASE):
            return f"the log of {base}"
    return ""


def _head(path: Path, count: int = len(_DATABASE)) -> bytes:
    """The first bytes of a regular file; empty for other files and unreadable ones.

    An index of a log (`-shm`) is not opened: closing it would end the locks that SQLite has on it in this process.
    """
    try:
        if path.name.endswith("-shm") or not path.is_file() or not path.stat().st_size:
            return b""
    except OSError:
        return b""
    from isotone.first_bytes import first_bytes  # imports SQLite

    return first_bytes(os.fspath(path), count)


# Pairs of files


def _check_apart(output: OutputPath, option: str, path: Place) -> None:
    """Refuse an output that is an input, belongs to it, or is in it."""
    read = Path(path)
    for each in _all_of(output):
        if _is_same(each, read):
            raise _refused(output, each, f"is the same file as {option} {path}")
        if any(_is_same(each, log) for log in _logs_of(read)):
            raise _refused(output, each, f"is the name of a log of {option} {path}")
        if read.is_dir() and Path(os.path.realpath(read)) in Path(os.path.realpath(each)).parents:
            raise _refused(output, each, f"is in the folder {option} {path}, which is read")


def _check_two(output: OutputPath, other: OutputPath) -> None:
    for mine in _all_of(output):
        for theirs in _all_of(other):
            if _is_same(mine, theirs):
                raise _refused(output, mine, f"is written by {other.option} {other.path} as well")


def _all_of(output: OutputPath) -> Iterator[Path]:
    """The files that an output writes."""
    path = Path(output.path)
    yield path
    for ending in output.beside:
        yield _beside(path, ending)


def _logs_of(path: Path) -> Iterator[Path]:
    """The paths of a database's logs: beside the file itself, if the path is a link to it."""
    for each in {path, Path(os.path.realpath(path))}:
        for ending in LOGS:
            yield _beside(each, ending)


def _beside(path: Path, ending: str) -> Path:
    return Path(f"{path}{ending}")


def _is_same(first: Path, second: Path) -> bool:
    """Whether two paths are the same file, or will be once it exists."""
    try:
        return first.samefile(second)
    except (OSError, ValueError):
        return os.path.realpath(first) == os.path.realpath(second)


def _refused(output: OutputPath, path: Path, reason: str) -> UsageError:
    """The error for an output; `path` is the file it writes, which may be one beside it."""
    given = f"{output.option} {os.fspath(output.path)}"
    what = given if path == Path(output.path) else f"{given} also writes {path}, which"
    return UsageError(f"{what} {reason}; give another file")
