"""No option overwrites a database, an input, another output, or anything but a regular file, however it is spelled.

Every option that names a file is listed, and a new one fails until it is listed: those that write are tried with all names
that must be refused.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import apsw
import pytest
from tests import programs
from tests.cli.conftest import Run

import isotone as package
from isotone.cli.program import COMMANDS, parser_of

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes and links as POSIX has them")

MODULE: Final = """
from isotone import Attr, Entity, Key, Table, field


class Order(Entity, table=Table("shop")):
    number: Attr[int] = field(max=99)
    primary = Key("ORDER", number).sort("ORDER")


table = Order.__schema__.table
"""

# The options and arguments that name a file: read by the command, the database that it writes, or written otherwise.
READ: Final = {
    ("serve", "model"),
    ("serve", "workload"),
    ("serve", "tls_cert"),
    ("serve", "tls_key"),
    ("serve", "credentials"),
    ("demo", "tls_cert"),
    ("demo", "tls_key"),
    ("demo", "credentials"),
    ("user", "policy"),
    ("workbench", "model"),
    ("explain", "model"),
    ("workbench", "workload"),
    ("mcp", "model"),
    ("mcp", "workload"),
    ("simulate", "workload"),
    ("simulate", "prices"),
    ("design", "prices"),
    ("import", "source"),
    ("rewrite", "undo"),
    ("backup", "file"),
    ("restore", "backup"),
    ("check", "file"),
    ("repair", "file"),
    ("doctor", "file"),
}
DATABASES: Final = {
    ("serve", "file"),
    ("demo", "file"),
    ("shell", "source"),
    ("mcp", "address"),
    ("worker", "address"),
    ("verify", "address"),
    ("rewrite", "address"),
    ("seed", "address"),
    ("design", "against"),
    ("apply", "address"),
    ("lint", "address"),
    ("schema", "address"),
    ("copy", "source"),
    ("copy", "target"),
    ("diff", "source"),
    ("diff", "target"),
    ("export", "source"),
    ("import", "target"),
    ("compact", "file"),
    ("restore", "file"),  # which says itself what it replaces
}
FOLDERS: Final = {
    ("serve", "s3"),
    ("serve", "snapshots"),
    ("serve", "dbPath"),
    ("workbench", "snapshots"),
}
WRITTEN: Final = {
    ("backup", "target"): "backup shop.db {} --force",
    ("repair", "target"): "repair shop.db {}",
    ("repair", "report"): "repair shop.db new.db --report {}",
    ("import", "bad_rows"): "import rows.jsonl shop.db Orders --bad-rows {}",
    ("import", "state"): "import rows.jsonl shop.db Orders --state {}",
    ("export", "target"): "export shop.db Orders {} --format jsonl --force",
    ("export", "state"): "export shop.db Orders out.jsonl --state {}",
    ("copy", "state"): "copy shop.db new.db --state {}",
    ("new", "file"): "new {} --from patterns.txt --table shop --force",
    ("model", "output"): "model shop.db Orders --force --output {}",
    ("design", "diagram"): "design MODULE --diagram {}",
    ("schema", "output"): "schema shop.db --format terraform --force --output {}",
    ("explain", "html"): "explain shop.db Orders customer=ann --html {}",
    ("explain", "svg"): "explain shop.db Orders customer=ann --svg {}",
    ("simulate", "plot"): "simulate load.toml --plot {}",
    ("verify", "resume"): "verify MODULE shop.db --resume {}",
    ("rewrite", "undo_log"): "rewrite MODULE:Order shop.db --yes --undo-log {}",
    ("apply", "undo_log"): "apply MODULE shop.db --yes --undo-log {}",
    ("seed", "state"): "seed MODULE shop.db --add --state {}",
    ("serve", "queries"): "serve shop.db --port BUSY --queries {}",
    ("workbench", "queries"): "workbench shop.db --no-open --port BUSY --queries {}",
    ("serve", "audit_log"): "serve shop.db --port BUSY --audit-log {}",
    ("demo", "audit_log"): "demo shop.db --no-open --port BUSY --audit-log {}",
    ("user", "credentials"): "user add ann --credentials {}",
}
STREAMED: Final = {  # written in one go, or appended to: a null device will do, to logs a pipe, too
    ("repair", "report"),
    ("model", "output"),
    ("schema", "output"),
    ("design", "diagram"),
    ("explain", "html"),
    ("explain", "svg"),
    ("serve", "audit_log"),
    ("demo", "audit_log"),
}
FOLLOWED: Final = {  # appended to, or edited: the file behind a link is meant
    ("rewrite", "undo_log"),
    ("apply", "undo_log"),
    ("serve", "audit_log"),
    ("demo", "audit_log"),
    ("user", "credentials"),
}
NAMES: Final = {
    "the source": "shop.db",
    "the source, spelled otherwise": "folder/../shop.db",
    "the source, by its whole path": "{cwd}/shop.db",
    "a hard link to the source": "hard.db",
    "a symbolic link to the source": "soft.db",
    "the name of the source's log": "shop.db-wal",
    "the name of the source's index of the log": "shop.db-shm",
    "the name of the source's journal": "shop.db-journal",
    "another database": "other.db",
    "a database of another program": "foreign.db",
    "a log without its database": "old-log",
    "a folder": "folder",
    "this folder": ".",
    "a device": "device",
    "a pipe": "pipe",
    "a symbolic link": "link.txt",
    "a symbolic link to nothing": "dangling.txt",
}


def file_options() -> Iterator[tuple[str, str]]:
    """The options and arguments of all commands whose metavar says that they take a file."""
    words = ("FILE", "FOLDER", "DIR", "TO", "TARGET", "SOURCE", "FROM", "ADDRESS", "BACKUP")
    words += ("FILE_OR_URL", "NEW_FILE", "DIR_OR_URL", "POLICY", "WORKLOAD", "MODULE")
    for name in COMMANDS:
        for action in parser_of(name)._actions:
            if isinstance(action, argparse._HelpAction) or action.metavar not in words:
                continue
            if COMMANDS[name].opens and action.dest == "source":
                continue  # the database that the command opens
            yield name, action.dest


def test_every_option_that_names_a_file_is_known() -> None:
    modules = {(name, dest) for name, dest in file_options() if dest in ("module", "what")}
    known = {*READ, *DATABASES, *FOLDERS, *WRITTEN}
    assert set(file_options()) - modules == known


def _make_device(path: Path) -> None:
    """A node of the null device, which the tests may lose; only root may make one."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except OSError:
        os.mkfifo(path)


@pytest.fixture
def place(
    isotone: Run, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], list[str]]]:
    """A folder with everything that must not be overwritten; a function from a command line to its words."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    name = f"module_{tmp_path.name.replace('-', '_')}"
    Path(f"{name}.py").write_text(MODULE)
    with package.connect("shop.db") as store:
        module = __import__(name)
        store.create_tables(module.table)
        store.put(module.Order(number=1))
    assert isotone("create", "other.db", "Others", "id").code == 0
    foreign = apsw.Connection("foreign.db")
    foreign.execute("CREATE TABLE precious (a); INSERT INTO precious VALUES (1)")
    foreign.close()
    Path("old-log").write_bytes(b"\x37\x7f\x06\x82" + bytes(60))
    Path("rows.jsonl").write_text('{"customer": "ann", "placed_at": "x"}\n{"bad": 1}\n')
    Path("load.toml").write_text("")
    Path("text.txt").write_text("precious")
    Path("folder").mkdir()
    Path("soft.db").symlink_to("shop.db")
    Path("link.txt").symlink_to("text.txt")
    Path("dangling.txt").symlink_to("nowhere")
    os.mkfifo("pipe")
    _make_device(Path("device"))
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = str(busy.getsockname()[1])

        def words(line: str) -> list[str]:
            return line.replace("MODULE", name).replace("BUSY", port).split()

        yield words
    sys.modules.pop(name, None)


def contents() -> dict[str, object]:
    """Everything in the current folder: what it is, and what it has."""
    found: dict[str, object] = {}
    for path in sorted(Path().rglob("*")):
        if "__pycache__" in path.parts or path.name.startswith("new.db"):
            continue
        if path.is_symlink():
            found[str(path)] = f"a link to {path.readlink()}"
        else:
            found[str(path)] = path.read_bytes() if path.is_file() else path.stat().st_mode
    return found


@pytest.mark.parametrize(("command", "dest"), WRITTEN, ids=[" ".join(each) for each in WRITTEN])
def test_what_must_not_be_written_is_refused(
    isotone: Run, place: Callable[[str], list[str]], tmp_path: Path, command: str, dest: str
) -> None:
    before = contents()
    for what in refused_names(command, dest):
        name = NAMES[what].format(cwd=tmp_path)
        if (
            name == "hard.db"
        ):  # in its turn alone: a database with two names is not opened for writing
            Path(name).hardlink_to("shop.db")
        outcome = isotone(*place(WRITTEN[command, dest].format(name)))
        if name == "hard.db":
            assert Path(name).samefile("shop.db"), what
            Path(name).unlink()
        assert outcome.code != 0, what
        assert outcome.err.startswith("isotone: "), what
        assert outcome.err.count("\n") == 1, what
        assert name in outcome.err or "has another name (a hard link)" in outcome.err, what
        assert contents() == before, what
        assert not Path("new.db").exists(), what  # nothing was done in vain


@pytest.mark.parametrize(
    ("command", "dest"), sorted(WRITTEN.keys() - FOLLOWED), ids=lambda each: str(each)
)
def test_what_nobody_can_make_again_is_not_replaced_even_by_force(
    isotone: Run, place: Callable[[str], list[str]], command: str, dest: str
) -> None:
    ending = {"new": ".py", "simulate": ".svg"}.get(command, "")
    made = {
        f"undo_log{ending}": b'{"table":"shop","items":[{"key":{"PK":{"S":"a"}},"before":{}}]}\n',
        f"audit_log{ending}": b'{"time":"2026-01-01T12:00:00.123Z","key":"ISOT","user":null,'
        b'"source":"10.0.0.7","action":"PutItem"}\n',
    }
    assert isotone("user", "add", "ann", "--credentials", "users.json").code == 0
    made[f"users{ending}"] = Path("users.json").read_bytes()
    for name, content in made.items():
        Path(name).write_bytes(content)
        outcome = isotone(*place(WRITTEN[command, dest].format(name)))
        assert outcome.code in (1, 2), name
        assert outcome.err.startswith("isotone: "), name
        assert Path(name).read_bytes() == content, name


@pytest.mark.parametrize(("command", "dest"), WRITTEN, ids=[" ".join(each) for each in WRITTEN])
def test_an_address_is_no_output_and_its_password_is_not_shown(
    isotone: Run, place: Callable[[str], list[str]], command: str, dest: str
) -> None:
    before = contents()
    outcome = isotone(*place(WRITTEN[command, dest].format("postgresql://ann:hunter2@db/app")))
    assert outcome.code in (1, 2)
    assert "ann@db/app" in outcome.err
    assert "hunter2" not in outcome.err + outcome.out
    assert contents() == before


def refused_names(command: str, dest: str) -> Iterator[str]:
    """The names in `NAMES` that an option refuses."""
    for what in NAMES:
        is_pipe = what == "a pipe" and dest == "audit_log"  # opened without waiting for its reader
        is_stream = is_pipe or (what == "a device" and (command, dest) in STREAMED)
        is_folder = what.endswith("folder") and (command, dest) == ("export", "target")
        is_link = what in ("a symbolic link", "a symbolic link to nothing")
        if not (is_stream or is_folder or (is_link and (command, dest) in FOLLOWED)):
            yield what


@pytest.mark.parametrize("name", ["new.db", "./new.db", "folder/../new.db", "new.db-wal"])
@pytest.mark.parametrize(("command", "dest"), [("repair", "report"), ("copy", "state")])
def test_the_database_that_is_made_is_no_output(
    isotone: Run, place: Callable[[str], list[str]], command: str, dest: str, name: str
) -> None:
    before = contents()
    outcome = isotone(*place(WRITTEN[command, dest].format(name)))
    assert outcome.code == 1
    assert "new.db; give another file" in outcome.err
    assert contents() == before
    assert not Path("new.db").exists()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "import rows.jsonl shop.db Orders --bad-rows x.json --state x.json",
            "x.json is written by --bad-rows (bad_rows=) x.json as well",
        ),
        (
            "import rows.jsonl shop.db Orders --bad-rows x.lock --state x",
            "--state (state=) x also writes x.lock, which is written by --bad-rows",
        ),
        (
            "import rows.jsonl shop.db Orders --bad-rows rows.jsonl",
            "is the same file as the source",
        ),
        ("import rows.jsonl shop.db Orders --state ./rows.jsonl", "is the same file as the source"),
        ("import folder shop.db Orders --format jsonl --bad-rows folder/bad", "is in the folder"),
        (
            "export shop.db Orders x.jsonl --state x.jsonl.part",
            "--state (state=) x.jsonl.part is written by the target x.jsonl as well",
        ),
        (
            "export shop.db Orders x.jsonl --with-table --state x.jsonl.table.json",
            "is written by the target x.jsonl as well",
        ),
        ("simulate load.toml --plot load.toml", "is the same file as WORKLOAD load.toml"),
        (
            "serve shop.db --port BUSY --audit-log text.txt --credentials text.txt",
            "is the same file as --credentials text.txt",
        ),
        ("serve --port BUSY --audit-log text.txt --tls-cert text.txt", "same file as --tls-cert"),
        ("serve --port BUSY --audit-log new.txt --queries new.txt", "same file as --queries"),
        ("serve --port BUSY --audit-log load.toml --workload load.toml", "same file as --workload"),
        ("export shop.db Orders shop.db/ --force", "the target shop.db/ is a file, not a folder"),
        ("export shop.db Orders - --with-table", "beside a file or a folder"),
    ],
)
def test_two_files_of_a_command_are_two(
    isotone: Run, place: Callable[[str], list[str]], line: str, says: str
) -> None:
    before = contents()
    outcome = isotone(*place(line))
    assert outcome.code == 1
    assert says in outcome.err
    assert contents() == before


def test_what_is_written_beside_an_output_is_no_other_file(
    isotone: Run, place: Callable[[str], list[str]]
) -> None:
    for name, make in (
        ("x.jsonl.part", lambda path: path.symlink_to("text.txt")),
        ("x.jsonl.part", lambda path: path.hardlink_to("other.db")),
        ("x.jsonl.part", lambda path: path.mkdir()),
        ("x.jsonl.table.json", lambda path: path.write_text("precious")),
        ("x.jsonl.table.json", lambda path: path.hardlink_to("other.db")),
    ):
        make(Path(name))
        before = contents()
        outcome = isotone("export", "shop.db", "Orders", "x.jsonl", "--with-table", "--quiet")
        assert outcome.code == 1
        assert name in outcome.err
        assert contents() == before
        Path(name).rmdir() if Path(name).is_dir() else Path(name).unlink()


def test_an_earlier_description_is_replaced(
    isotone: Run, place: Callable[[str], list[str]]
) -> None:
    for _ in range(2):  # the second export into a folder is beside the first
        words = ("export", "shop.db", "Orders", "exports/", "--with-table", "--quiet")
        assert isotone(*words) == (0, "", "")
    Path("x.jsonl.table.json").write_text("precious")
    assert isotone("export", "shop.db", "Orders", "x.jsonl", "--with-table", "--force").code == 0
    assert "KeySchema" in Path("x.jsonl.table.json").read_text()


# What an option writes, up to "old"; a file that begins otherwise is not its own.
EARLIER: Final = {
    ("repair", "report"): '{"what": "old"}\n',
    ("model", "output"): '"""Table \'old\', inferred from all 2 items."""\n',
    ("explain", "html"): (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="generator" content="isotone explain">old</html>'
    ),
    (
        "explain",
        "svg",
    ): '<svg xmlns="http://www.w3.org/2000/svg" class="isotone-drawing" old></svg>',
    ("simulate", "plot"): '<?xml version="1.0"?><svg>isotone simulate old</svg>',
    ("serve", "audit_log"): '{"time":"old"}\n',
    ("demo", "audit_log"): '{"time":"old"}\n',
}


def test_an_earlier_output_is_replaced(isotone: Run, place: Callable[[str], list[str]]) -> None:
    for command, dest in (("repair", "report"), ("model", "output"), ("explain", "svg")):
        for content in (EARLIER[command, dest], ""):
            Path("out.svg").write_text(content)
            Path("new.db").unlink(missing_ok=True)
            assert isotone(*place(WRITTEN[command, dest].format("out.svg"))).code in (0, 1)
            assert "old" not in Path("out.svg").read_text()


@pytest.mark.parametrize(("command", "dest"), EARLIER, ids=[" ".join(each) for each in EARLIER])
def test_a_file_of_something_else_is_neither_replaced_nor_appended_to(
    isotone: Run, place: Callable[[str], list[str]], command: str, dest: str
) -> None:
    """The credentials of a server, the undo log of a rewrite, the module that the command reads."""
    others = {
        "users.svg": '{"users": {}}',
        "log.svg": '{"table":"shop","items":[]}\n',
        "shop_model.svg": "import isotone\n",
        "queries.svg": "[]\n",
        "page.svg": '<!doctype html><html lang="en"><title>Mine</title></html>',
        "drawing.svg": '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"></svg>',
        "picture.svg": '<?xml version="1.0"?><svg></svg>',
    }
    for name, content in others.items():
        Path(name).write_text(content)
    before = contents()
    for name in others:
        code, _, err = isotone(*place(WRITTEN[command, dest].format(name)))
        assert code != 0
        assert f"{name} exists, and is nothing that --" in err
        assert contents() == before
        assert not Path("new.db").exists()  # nothing was done in vain


@pytest.mark.parametrize("content", [b"%PDF-1.4\nmine", b"\x89PNG\r\n\x1a\nmine"])
def test_a_picture_of_somebody_else_is_not_replaced(
    isotone: Run, place: Callable[[str], list[str]], content: bytes
) -> None:
    name = "mine.pdf" if content.startswith(b"%") else "mine.png"
    Path(name).write_bytes(content)
    code, _, err = isotone(*place(f"simulate load.toml --plot {name}"))
    assert code == 1
    assert f"{name} exists, and is nothing that --plot writes" in err
    assert Path(name).read_bytes() == content


def test_a_model_that_was_edited_is_replaced_by_force_alone(
    isotone: Run, place: Callable[[str], list[str]]
) -> None:
    assert isotone(*place("model shop.db Orders --output orders.py")).code in (0, 1)
    with Path("orders.py").open("a") as file:
        file.write("# edited\n")
    refused = isotone(*place("model shop.db Orders --output orders.py"))
    assert refused.code == 2
    assert refused.err == "isotone: orders.py exists; --force replaces it\n"
    assert Path("orders.py").read_text().endswith("# edited\n")
    assert isotone(*place("model shop.db Orders --force --output orders.py")).code in (0, 1)
    assert "edited" not in Path("orders.py").read_text()


def test_the_module_that_schema_reads_is_not_replaced(
    isotone: Run, place: Callable[[str], list[str]]
) -> None:
    module = place("MODULE")[0]
    source = Path(f"{module}.py")
    before = source.read_text()
    for what in (module, f"{module}:Order"):
        code, _, err = isotone(
            "schema", what, "--format", "cdk-python", "--force", "--output", f"{module}.py"
        )
        assert code == 2
        assert f"--output {module}.py is the same file as MODULE" in err
    assert source.read_text() == before


def test_a_text_may_go_to_a_standard_stream_or_a_null_device(
    place: Callable[[str], list[str]], tmp_path: Path
) -> None:
    def out_of(line: str) -> str:
        with programs.isotone(*place(line), cwd=tmp_path, stderr=subprocess.DEVNULL) as running:
            out, _ = running.communicate()
        assert running.returncode == 0
        return str(out)

    assert "class Order(" in out_of("model shop.db Orders --output /dev/stdout")
    assert out_of("explain shop.db Orders customer=ann --svg /dev/stdout").startswith("<svg")
    assert out_of("model shop.db Orders --output /dev/null") == ""
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("way", ["/dev/stdout", "out.txt"])
def test_a_text_and_other_output_in_one_file_do_not_overwrite_each_other(
    place: Callable[[str], list[str]], tmp_path: Path, way: str
) -> None:
    """Standard output is the same file as the option's: it is not opened once more, from its beginning."""
    connection = apsw.Connection("shop.db")
    connection.execute("UPDATE tree_t1 SET value = x'00'")
    connection.close()
    with open("out.txt", "w") as out:  # noqa: PTH123 - a process inherits it
        words = place(f"repair shop.db new.db --report {way}")
        with programs.isotone(*words, cwd=tmp_path, stdout=out) as running:
            running.communicate()
    lines = Path("out.txt").read_text().splitlines()
    assert [json.loads(line)["what"] for line in lines if line.startswith("{")].count(
        "an item"
    ) == 5
    assert lines[-1].startswith("new.db: 2 items saved, 6 losses")


def test_an_undo_log_is_one(isotone: Run, place: Callable[[str], list[str]]) -> None:
    line = WRITTEN["rewrite", "undo_log"]
    for content in ("a line without an end", '{"table": 1}\n', "text\n"):
        Path("notes.txt").write_text(content)
        outcome = isotone(*place(line.format("notes.txt")))
        assert outcome.code == 2
        assert "'notes.txt' is not an undo log" in outcome.err
        assert Path("notes.txt").read_text() == content
    Path("notes.txt").write_text('{"tab')  # what a killed process has left
    assert isotone(*place(line.format("notes.txt"))).code == 0
    assert isotone(*place(line.format("notes.txt"))).code == 0  # an empty one


def test_credentials_behind_a_link_are_changed_there(
    isotone: Run, place: Callable[[str], list[str]]
) -> None:
    Path("folder/users.json").write_text('{"users": {}}')
    Path("users.json").symlink_to("folder/users.json")
    assert isotone("user", "add", "ann", "--credentials", "users.json").code == 0
    assert Path("users.json").is_symlink()
    assert '"ann"' in Path("folder/users.json").read_text()
