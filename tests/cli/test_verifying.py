"""`isotone verify`: finds what is wrong in a table, says so in words and JSON, and can be interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import programs
from tests.cli.conftest import Run

import isotone as package
from isotone import Store, Verification
from isotone.cli import output
from isotone.server import running_server

MODULE = """
from isotone import Attr, Entity, Key, Table, field

shop = Table("shop")
other = Table("other")
empty = Table("empty")
nothing = 3


class Order(Entity, table=shop):
    number: Attr[int] = field(max=99_999)
    text: Attr[str] = field(default="")
    primary = Key("ORDER", number).sort("ORDER")


class Note(Entity, table=other):
    number: Attr[int] = field(max=99)
    primary = Key("NOTE", number).sort("NOTE")
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory with a module of entities, and a file with their tables."""
    name = f"shop_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / "without.py").write_text("x = 3")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    module = __import__(name)
    with package.connect("shop.db") as store:
        store.create_tables(module.shop, module.other)
        store.put_many(module.Order(number=number) for number in range(1_200))
        store.put(module.Note(number=1))
    yield name
    sys.modules.pop(name, None)


def damage(store: Store, count: int = 1) -> None:
    for number in range(count):
        text = f"{number:05}"
        item = {"PK": {"S": f"ORDER#{text}"}, "SK": {"S": "ORDER"}, "_type": {"S": "Order"}}
        item |= {"number": {"N": str(number)}, "text": {"N": "1"}}
        store.backend.execute("PutItem", {"TableName": "shop", "Item": item})


def test_a_table_that_is_as_declared(site: str, isotone: Run) -> None:
    code, out, err = isotone("verify", site, "shop.db", "--segments", 3)
    assert (code, err) == (0, "")
    assert out.startswith("shop, other: all is as declared in 1,203 items (1 Note, 1,200 Order), ")


def test_tables_have_a_prefix(site: str, isotone: Run) -> None:
    with package.connect("shop.db", table_prefix="eu-") as store:
        store.create_tables(sys.modules[site].shop)
        store.put(sys.modules[site].Order(number=7))
    done = isotone("verify", f"{site}:Order", "shop.db", "--table-prefix", "eu-", "--json")
    assert done.code == 0
    assert "1200" not in done.out
    missing = isotone("verify", f"{site}:Order", "shop.db", "--table-prefix", "us-")
    assert missing.code == 2
    assert "table 'shop' is 'us-shop' in this store" in missing.err


def test_findings(site: str, isotone: Run) -> None:
    with package.connect("shop.db") as store:
        damage(store, 3)
    code, out, _ = isotone("verify", f"{site}:Order", "shop.db")
    assert code == 1
    assert out.startswith("shop: 3 findings in 1,201 items")
    assert "    3  Order   invalid  text  ORDER#" in out
    assert isotone("verify", f"{site}:other,Note", "shop.db").code == 0
    code, out, _ = isotone("verify", f"{site}:shop", "shop.db", "--json", "--examples", 1)
    assert code == 1
    (finding,) = json.loads(out)["findings"]
    assert (finding["count"], finding["kind"], len(finding["examples"])) == (3, "invalid", 1)
    assert Verification.from_json(out).count("invalid") == 3


def test_what_fails_is_the_callers_choice(site: str, isotone: Run) -> None:
    with package.connect("shop.db") as store:
        damage(store)
        item = {"PK": {"S": "ORDER#90000"}, "SK": {"S": "ORDER"}, "_type": {"S": "Order"}}
        item |= {"number": {"N": "90000"}, "text": {"S": ""}}
        store.backend.execute("PutItem", {"TableName": "shop", "Item": item})
    for kinds, code in {"key,missing": 0, "invalid": 1, "key,invalid": 1, "headroom": 1}.items():
        assert isotone("verify", site, "shop.db", "--fail-on", kinds).code == code
    code, _, err = isotone("verify", site, "shop.db", "--fail-on", "wrong")
    assert code == 2
    assert "'wrong' is not a kind of finding; kinds are unrecognized, " in err


def test_a_notice_fails_only_where_it_is_asked_for(site: str, isotone: Run) -> None:
    with package.connect("shop.db") as store:
        item = {"PK": {"S": "ORDER#90000"}, "SK": {"S": "ORDER"}, "_type": {"S": "Order"}}
        item |= {"number": {"N": "90000"}, "text": {"S": ""}}
        store.backend.execute("PutItem", {"TableName": "shop", "Item": item})
    code, out, _ = isotone("verify", site, "shop.db")
    assert code == 0
    assert "1 notice" in out
    assert isotone("verify", site, "shop.db", "--fail-on", "headroom").code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{site}:", "shop.db"], "does not name a module; write MODULE"),
        (["{site}:Lost", "shop.db"], "has no 'Lost'"),
        (["{site}:nothing", "shop.db"], "is 3, neither an isotone.Table nor an entity of one"),
        (["{site}:Entity", "shop.db"], "neither an isotone.Table nor an entity of one"),
        (["without", "shop.db"], "module 'without' declares no entities"),
        (["{site}.py", "shop.db"], "there is no module '{site}.py'"),
        (["{site}.py:Order", "shop.db"], "; write {site}:Order"),
        (["shop.db", "{site}"], "; shop.db is a file, so give the name of a module instead"),
        (["{site}", "lost.db"], "there is no file lost.db"),
        (["{site}:empty", "shop.db"], "table 'empty' does not exist"),
        (["{site}", "shop.db", "--segments", "0"], "segments=0; give 1 or more"),
        (
            ["{site}", "shop.db", "--resume", "without.py"],
            "without.py is not the state of a job; delete it",
        ),
    ],
)
def test_what_cannot_be_verified(site: str, isotone: Run, words: list[str], message: str) -> None:
    code, out, err = isotone("verify", *(word.format(site=site) for word in words))
    assert (code, out) == (2, "")
    assert message.format(site=site) in err


def test_a_server(site: str, isotone: Run) -> None:
    with package.open("shop.db") as database, running_server(database) as url:
        os.environ.setdefault("AWS_ACCESS_KEY_ID", "any")
        os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "any")
        os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
        code, out, _ = isotone("verify", site, url, "--segments", 4)
    assert code == 0
    assert "1,200 Order" in out


def started(site: str, folder: Path) -> programs.Command | subprocess.Popen[str]:
    """A slow verification that has saved its position in `at.json`."""
    words = ("verify", site, "shop.db", "--resume", "at.json", "--units-per-second", 2)
    process = programs.isotone(*words, cwd=folder, stderr=subprocess.PIPE)
    for _ in range(6_000):
        if (folder / "at.json").exists():
            break
        time.sleep(0.01)
    return process


def saved_in(path: Path) -> Verification:
    document = json.loads(path.read_text())
    return Verification.from_json(json.dumps(document["entries"]["verification"]))


def test_interrupted_and_continued(site: str, isotone: Run, tmp_path: Path) -> None:
    with package.connect("shop.db") as store:
        damage(store, 1_200)
    process = started(site, tmp_path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "; not complete" in out
    assert "interrupted; the same command continues, from at.json" in err
    saved = saved_in(tmp_path / "at.json")
    assert 0 < saved.items < 1_200
    code, out, _ = isotone("verify", site, "shop.db", "--resume", "at.json")
    assert code == 1
    assert out.startswith("shop, other: 1,200 findings in 1,203 items (1 Note, 1,200 Order)")
    assert not (tmp_path / "at.json").exists()


def test_killed_and_continued(site: str, isotone: Run, tmp_path: Path) -> None:
    with package.connect("shop.db") as store:
        damage(store, 1_200)
    process = started(site, tmp_path)
    process.kill()
    process.communicate(timeout=60)
    assert 0 < saved_in(tmp_path / "at.json").items < 1_200
    _, out, _ = isotone("verify", site, "shop.db", "--resume", "at.json")
    assert out.startswith("shop, other: 1,200 findings in 1,203 items (1 Note, 1,200 Order)")


def test_a_failure_saves_the_position(
    site: str, isotone: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with package.connect("shop.db") as store:
        store.drop_tables(sys.modules[site].other)
    code, out, err = isotone("verify", site, "shop.db", "--resume", "at.json")
    assert (code, out) == (2, "")
    assert "table 'other' does not exist" in err
    saved = saved_in(tmp_path / "at.json")
    assert saved.seen == {"Order": 1_200}
    assert not saved.is_complete


def test_a_changed_position_is_refused(site: str, isotone: Run, tmp_path: Path) -> None:
    """A verification that trusts it says that all is well of a part of the table."""
    process = started(site, tmp_path)
    process.kill()
    process.communicate(timeout=60)
    saved = tmp_path / "at.json"
    text = saved.read_text()
    saved.write_text(text.replace('"units":', '"units":1', 1))
    code, out, err = isotone("verify", site, "shop.db", "--resume", "at.json")
    assert (code, out) == (2, "")
    assert "at.json is damaged; delete it to start from the beginning" in err
    saved.write_text(text)
    code, _, err = isotone("verify", f"{site}:Order", "shop.db", "--resume", "at.json")
    assert code == 2
    assert "at.json is the state of another job" in err


def test_progress_is_shown_on_a_terminal_alone(
    site: str, isotone: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isotone("verify", site, "shop.db").err == ""
    monkeypatch.setattr(output, "_EVERY", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    code, out, err = isotone("verify", site, "shop.db")
    assert code == 0
    assert "\x1b" not in out
    first, *others, last = err.split("\r\x1b[K")[1:]
    assert first.startswith("shop: 500 of about 1,201 items, ")
    assert len(others) >= 3
    assert all(len(line) < 40 for line in [first, *others])
    assert last == ""  # the line is erased at the end


def test_a_table_with_another_key_is_reported(
    isotone: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "with_other_key.py").write_text(MODULE)
    assert isotone("create", "shop.db", "shop", "customer", "placed_at").code == 0
    item = '{"customer": "ann", "placed_at": "2026-01-01"}'
    assert isotone("put", "shop.db", "shop", item).code == 0
    assert isotone("verify", "with_other_key:shop", "shop.db") == (
        2,
        "",
        "isotone: table 'shop' has the key customer, placed_at, but is declared with PK, SK; "
        "correct the declaration, or give it the name of another table\n",
    )
