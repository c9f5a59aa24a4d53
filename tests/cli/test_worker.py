"""`isotone worker` on the command line: finding the worker, dead letters, and what cannot be meant."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run

import isotone as package

MODULE = """
from isotone import Attr, Entity, Event, Key, Table, field
from isotone.structures import Context, Worker

site = Table("site", stream="NEW_IMAGE")
IS_BAD = True


class Post(Entity, table=site):
    number: Attr[int] = field(max=99)

    primary = Key("POST", number).sort("POST")


class Seen(Entity, table=site):
    number: Attr[int] = field(max=99)

    primary = Key("SEEN", number).sort("SEEN")


notes = Worker("notes", site)
nothing = 3


@notes.on(Post)
def note(event: Event[Post], context: Context) -> None:
    if event.entity.number == 2 and IS_BAD:
        raise ValueError("two")
    context.store.put(Seen(number=event.entity.number))


def made(store: object) -> Worker:
    return notes


def broken(store: object) -> Worker:
    raise ValueError("no worker today")


def wrong(store: object) -> int:
    return 5
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory with a module, and a file with three posts."""
    name = f"site_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield name
    sys.modules.pop(name, None)


@pytest.fixture
def filled(site: str, isotone: Run) -> str:
    assert isotone("worker", f"{site}:notes", "site.db", "--create", "--once").code == 0
    module = sys.modules[site]
    with package.connect("site.db") as store:
        store.put_many(module.Post(number=number) for number in (1, 2, 3))
    return site


def seen(site: str) -> list[int]:
    module = sys.modules[site]
    with package.connect("site.db") as store:
        return sorted(each.number for each in store.all(module.Seen.primary.scan()))


def test_what_fails_is_listed_and_can_be_put_through_again(filled: str, isotone: Run) -> None:
    done = isotone("worker", f"{filled}:notes", "site.db", "--once", "--attempts", 1)
    assert done.code == 0
    assert done.out == "notes: 5 records, 1 dead letter\n"
    assert done.err.endswith(
        "notes: --dead-letters shows what could not be handled, --redrive tries it again\n"
    )
    assert seen(filled) == [1, 3]
    listed = isotone("worker", f"{filled}:notes", "site.db", "--dead-letters")
    assert listed.out.endswith(
        "  note  {'PK': 'POST#02', 'SK': 'POST'}  ValueError: two (1 tries)\n"
    )
    again = isotone("worker", f"{filled}:notes", "site.db", "--redrive")
    assert (again.code, again.out) == (1, "0 handled, 1 failed again\n")
    sys.modules[filled].IS_BAD = False  # type: ignore[attr-defined]
    again = isotone("worker", f"{filled}:notes", "site.db", "--redrive")
    assert (again.code, again.out) == (0, "1 handled, 0 failed again\n")
    assert seen(filled) == [1, 2, 3]
    assert isotone("worker", f"{filled}:notes", "site.db", "--dead-letters").out == ""


def test_a_function_may_make_the_worker_and_metrics_are_json(filled: str, isotone: Run) -> None:
    sys.modules[filled].IS_BAD = False  # type: ignore[attr-defined]
    done = isotone("worker", f"{filled}:made", "site.db", "--once", "--metrics", "--batch", 2)
    last = json.loads(done.out.splitlines()[-1])
    assert (last["worker"], last["deliveries"], last["lag"], last["shards"]) == ("notes", 3, 0.0, 0)
    assert seen(filled) == [1, 2, 3]


def test_another_name_has_places_of_its_own(filled: str, isotone: Run) -> None:
    words = (f"{filled}:notes", "site.db", "--once", "--attempts", 1)
    isotone("worker", *words)
    isotone("worker", *words, "--name", "others", "--quiet")
    listed = isotone("worker", *words[:2], "--name", "others", "--dead-letters")
    assert listed.out.count("ValueError") == 1


def test_tables_have_another_prefix(site: str, isotone: Run) -> None:
    words = ("worker", f"{site}:notes", "site.db", "--table-prefix", "staging-", "--once")
    assert isotone(*words, "--create").code == 0
    with package.connect("site.db", table_prefix="staging-") as store:
        store.put(sys.modules[site].Post(number=1))
    assert isotone(*words).code == 0
    with package.connect("site.db", table_prefix="staging-") as store:
        assert store.get(sys.modules[site].Seen, number=1) is not None
    missing = isotone("worker", f"{site}:notes", "site.db", "--once")
    assert missing.code == 1
    assert "there is no table 'site'" in missing.err
    other = isotone(*words[:3], "--table-prefix", "b-", "--once")
    assert "there is no table 'b-site'" in other.err


@pytest.mark.parametrize(
    ("worker", "said"),
    [
        ("{site}", "does not name a worker; write MODULE:NAME"),
        ("not_there:notes", "there is no module 'not_there'"),
        ("{site}:absent", "has no 'absent'"),
        ("{site}:nothing", "is 3, not an isotone.structures.Worker"),
    ],
)
def test_what_is_no_worker_is_refused(site: str, isotone: Run, worker: str, said: str) -> None:
    outcome = isotone("worker", worker.format(site=site), "site.db")
    assert outcome.code == 1
    assert said in outcome.err


def test_a_module_that_python_has_already_is_reported(site: str, isotone: Run) -> None:
    Path("site.py").write_text(MODULE)
    outcome = isotone("worker", "site:notes", "site.db")
    assert outcome.code == 1
    assert "Python has another module 'site'" in outcome.err
    assert "give site.py another name" in outcome.err


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import lack", "ModuleNotFoundError: No module named 'lack'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def broken(:", "SyntaxError: "),
    ],
)
def test_a_module_that_fails_is_shown_where_it_does(
    site: str, isotone: Run, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    monkeypatch.delitem(sys.modules, "failing", raising=False)
    Path("failing.py").write_text(f"\n\n{code}")
    outcome = isotone("worker", "failing:notes", "site.db")
    assert outcome.code == 1
    assert 'failing.py", line 3' in outcome.err
    assert f"isotone: module 'failing' cannot be imported: {said}" in outcome.err
    assert "isotone/cli" not in outcome.err
    assert "importlib" not in outcome.err


@pytest.mark.parametrize(
    ("worker", "said"), [("broken", "no worker today"), ("wrong", "is 5, not an isotone")]
)
def test_a_function_that_makes_no_worker_leaves_no_database(
    site: str, isotone: Run, worker: str, said: str
) -> None:
    outcome = isotone("worker", f"{site}:{worker}", "site.db", "--create")
    assert outcome.code == 1
    assert said in outcome.err
    assert not Path("site.db").exists()


def test_a_function_that_fails_is_shown_where_it_does(site: str, isotone: Run) -> None:
    outcome = isotone("worker", f"{site}:broken", "site.db", "--create")
    assert outcome.code == 1
    assert "in broken" in outcome.err
    assert outcome.err.endswith(
        f"isotone: {site}:broken cannot be called with a store: ValueError: no worker today\n"
    )


def test_the_name_of_a_file_is_no_module(site: str, isotone: Run) -> None:
    outcome = isotone("worker", f"{site}.py:notes", "site.db")
    assert outcome.err.endswith(f"; write {site}:notes\n")


def test_what_is_not_there_is_said_and_not_made(site: str, isotone: Run) -> None:
    outcome = isotone("worker", f"{site}:notes", "site.db", "--once")
    assert (outcome.code, outcome.err) == (
        1,
        "isotone: there is no file site.db; --create creates it, with the worker's tables\n",
    )
    assert not Path("site.db").exists()
    isotone("create", "site.db", "other", "id")
    outcome = isotone("worker", f"{site}:notes", "site.db", "--once")
    assert (outcome.code, outcome.err) == (
        1,
        "isotone: there is no table 'site' in site.db; --create creates it\n",
    )
    for option in ("--dead-letters", "--redrive"):
        outcome = isotone("worker", f"{site}:notes", "site.db", option)
        assert (outcome.code, outcome.err) == (
            1,
            "isotone: worker 'notes' has no tables yet: it has never run\n",
        )


def test_settings_are_checked(site: str, isotone: Run) -> None:
    outcome = isotone("worker", f"{site}:notes", "site.db", "--create", "--once", "--batch", 5000)
    assert (outcome.code, outcome.err) == (
        1,
        "isotone: batch must be 1 to 1000, not 5000\n",
    )
