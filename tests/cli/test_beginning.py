"""`isotone new`: from a file, from questions, and what it does not overwrite."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from isotone.cli.beginning import asked
from isotone.inference import begin, read_patterns

PATTERNS = """\
Customer(customer_id; name)
Order(customer_id, number: int <= 99_999; status: OPEN|PAID, placed_at: datetime)

Order of Customer by number desc
Order of status by placed_at
Order of status by placed_at desc
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Path("patterns.txt").write_text(PATTERNS)
    yield tmp_path
    for name in ("begun_shop", "other_shop"):
        sys.modules.pop(name, None)


def test_a_module_from_a_file_is_what_the_other_commands_take(isotone: Run, folder: Path) -> None:
    made = isotone("new", "begun_shop.py", "--from", "patterns.txt")
    assert made.code == 0, made.err
    assert made.out.splitlines() == [
        "Order of Customer by number desc: Order.primary",
        "Order of status by placed_at: Order.by_status",
        "Order of status by placed_at desc: Order.by_status, with .descending()",
        "begun_shop.py has 3 access patterns; next: isotone design begun_shop, isotone lint begun_shop",
    ]
    assert isotone("lint", "begun_shop").code == 0
    sheet = isotone("design", "begun_shop", "--sheet", "text")
    assert sheet.code == 0
    assert "Order.by_status" in sheet.out
    seeded = isotone("seed", "begun_shop", "shop.db", "--items", "Customer=5", "--quiet")
    assert seeded.code == 0, seeded.err
    assert isotone("verify", "begun_shop", "shop.db").code == 0
    assert "begun_shop" in isotone("tables", "shop.db").out


def test_the_next_commands_are_those_of_the_modules_folder(isotone: Run, folder: Path) -> None:
    Path("models").mkdir()
    made = isotone("new", "models/begun_shop.py", "--from", "patterns.txt")
    assert "; next, in models: isotone design begun_shop, isotone lint begun_shop" in made.out
    assert isotone("design", "begun_shop", "--sheet", "text").code == 2  # not here


def test_the_table_may_have_another_name(isotone: Run, folder: Path) -> None:
    assert isotone("new", "s.py", "--from", "patterns.txt").err == (
        "isotone: 's' is no name of a table, which has 3 to 255 letters, digits, _, - and .; give --table NAME\n"
    )
    assert isotone("new", "s.py", "--from", "patterns.txt", "--table", "shop-dev").code == 0
    assert 'shop_dev = Table("shop-dev",' in Path("s.py").read_text()


def test_only_what_it_has_written_is_replaced_and_only_with_force(
    isotone: Run, folder: Path
) -> None:
    words = ("new", "other_shop.py", "--from", "patterns.txt")
    assert isotone(*words).code == 0
    first = Path("other_shop.py").read_text()
    Path("patterns.txt").write_text("Order(id;)")
    refused = isotone(*words)
    assert refused.code == 1
    assert "other_shop.py exists; --force replaces" in refused.err
    assert Path("other_shop.py").read_text() == first
    assert isotone(*words, "--force").code == 0
    assert Path("other_shop.py").read_text() != first
    Path("other_shop.py").write_text("precious = 1\n")
    refused = isotone(*words, "--force")
    assert refused.code == 1
    assert "is nothing that FILE writes" in refused.err
    assert Path("other_shop.py").read_text() == "precious = 1\n"


def test_new_and_model_replace_only_their_own_modules(isotone: Run, folder: Path) -> None:
    assert isotone("create", "shop.db", "Orders", "id").code == 0
    new = ("new", "begun_shop.py", "--from", "patterns.txt", "--force")
    model = ("model", "shop.db", "Orders", "--force", "--output")
    for first, second in (
        (new, (*model, "begun_shop.py")),
        ((*model, "other_shop.py"), ("new", "other_shop.py", *new[2:])),
    ):
        assert isotone(*first).code == 0
        before = {path.name: path.read_bytes() for path in folder.glob("*.py")}
        refused = isotone(*second)
        assert refused.code in (1, 2)
        assert "exists, and is nothing that" in refused.err
        assert {path.name: path.read_bytes() for path in folder.glob("*.py")} == before
        assert isotone(*first).code == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("shop.py",), "there is no terminal to ask at; give a file of access patterns"),
        (("shop", "--from", "patterns.txt"), "shop is no name of a module"),
        (("my-shop.py", "--from", "patterns.txt"), "my-shop.py is no name of a module"),
        (("class.py", "--from", "patterns.txt"), "class.py is no name of a module"),
        (("json.py", "--from", "patterns.txt"), "json.py would hide the module json of Python"),
        (("isotone.py", "--from", "patterns.txt"), "isotone.py would hide the package isotone"),
        (("shop.py", "--from", "missing.txt"), "missing.txt: No such file or directory"),
        (("shop.py", "--from", "wrong.txt"), "wrong.txt: line 2: there is no entity 'orders'"),
        (("none/shop.py", "--from", "patterns.txt"), "the folder none does not exist"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(
    isotone: Run, folder: Path, words: tuple[str, ...], why: str
) -> None:
    Path("wrong.txt").write_text("Order(id;)\norders of a customer, newest first\n")
    before = set(folder.iterdir())
    refused = isotone("new", *words)
    assert refused.code == 1
    assert why in refused.err
    assert refused.err.count("\n") == 1
    assert set(folder.iterdir()) == before


# Questions


def answering(*answers: str) -> tuple[list[str], object]:
    """A person who gives these answers, and the questions."""
    questions: list[str] = []
    left = iter(answers)

    def ask(question: str) -> str:
        questions.append(question)
        return next(left)

    return questions, ask


def test_questions_make_the_same_as_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    questions, ask = answering(
        *("Customer", "customer_id", "name"),
        *("Order", "Customer", "number: int <= 99_999", "status: OPEN|PAID, placed_at: datetime"),
        "",
        *("Order of Customer by number desc", "Order of status by placed_at"),
        *("Order of status by placed_at desc", ""),
    )
    found = asked(ask)  # type: ignore[arg-type]
    assert begin(found, "shop").source == begin(read_patterns(PATTERNS), "shop").source
    assert "  what Order belongs to, of Customer: " in questions
    assert "  what identifies it within its Customer, such as number: int <= 99_999: " in questions


def test_a_wrong_answer_is_said_and_asked_for_again(capsys: pytest.CaptureFixture[str]) -> None:
    questions, ask = answering(
        *("order", "Order", "", "number: int", "number: int <= 99", "total: money", ""),
        *("Refund", "Sale", "Order", "at: datetime", ""),
        "",
        *("newest orders first", "Refund of Order by at desc", ""),
    )
    found = asked(ask)  # type: ignore[arg-type]
    assert found.entities["Refund"].identity == ("number", "at")
    (pattern,) = found.patterns
    assert pattern.equal == ("number",)
    said = capsys.readouterr().out
    for part in (
        "'order' is no name for an entity; write Order",
        "write number: int <= 99_999",
        "'money' is no type of 'total'",
        "there is no 'Sale'",
        "'newest orders first' is neither an entity nor a pattern",
    ):
        assert part in said, said
    assert questions.count("  what identifies it, such as number: int <= 99_999: ") == 3


def test_the_end_of_input_writes_nothing(
    isotone: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Closed("Order\nid\n"))
    outcome = isotone("new", "begun_shop.py")
    assert (outcome.code, outcome.err) == (
        1,
        "isotone: the input has ended before the questions; nothing was written\n",
    )
    assert not Path("begun_shop.py").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_at_a_terminal_it_asks(folder: Path) -> None:
    import pty

    person, terminal = pty.openpty()
    command = [sys.executable, "-m", "isotone", "new", "begun_shop.py"]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, text=True) as process:
        os.close(terminal)
        os.write(person, b"Order\nnumber: int <= 99\n\n\nOrder by number desc\n\n")
        printed = process.communicate(timeout=60)[0]
    os.close(person)
    assert process.returncode == 0, printed
    assert "Which kinds of items are there?" in printed
    assert "class Order(Entity, table=begun_shop)" in Path("begun_shop.py").read_text()
