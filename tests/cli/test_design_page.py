"""`isotone design` as a live page: a module is saved, broken and mended, and the page has its newest good version."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import programs
from tests.cli.conftest import Run
from tests.cli.test_seeding import MODULE
from tests.workbench.page import Browserless

import isotone
from isotone.cli.design_page import LiveDesign
from isotone.cli.design_process import DesignedModule, LoadFault
from isotone.cli.workbench import PagesAlone
from isotone.design import SampleRequest, SheetRequest
from isotone.errors import UnknownOperationException, UsageError
from isotone.server import running_server

WAIT_SECONDS = 120


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of entities."""
    monkeypatch.chdir(tmp_path)
    Path("shop.py").write_text(MODULE)
    return tmp_path


class LivePage:
    """The page of a module, and the faults that were reported."""

    def __init__(self, url: str, faults: list[LoadFault]) -> None:
        self.url = url
        self.page = Browserless(url)
        self.faults = faults
        self.version = 0

    def next(self) -> Any:
        """The fault of the next version; None for a good one."""
        end = time.monotonic() + WAIT_SECONDS
        while (answer := self.page.call("design_wait", {"version": self.version}))[
            "version"
        ] == self.version:
            assert time.monotonic() < end, "there is no other version"
        self.version = answer["version"]
        return answer["fault"]

    def entities(self) -> list[str]:
        (part,) = self.page.call("design")["design"]["parts"]
        assert part
        model = self.page.call("model", {"table": "shop"})
        return [each["name"] for each in model["model"]["entities"]]


@contextlib.contextmanager
def live(text: str = "shop", **sample: Any) -> Iterator[LivePage]:
    faults: list[LoadFault] = []
    asked = SheetRequest(sample=SampleRequest(**sample))
    with contextlib.closing(LiveDesign(DesignedModule(text, asked), faults.append)) as pages:
        pages.start()
        with running_server(PagesAlone(), pages=pages) as url:
            yield LivePage(url, faults)


def test_the_page_has_the_sample_of_the_module(site: Path) -> None:
    with live(items={"Customer": 12}) as page:
        assert page.next() is None
        session = page.page.call("session")
        assert session["design"] == {"name": "shop", "live": True}
        assert session["models"] == ["shop"]
        assert page.entities() == ["Customer", "Order"]
        sheet = page.page.call("design_sheet")
        assert sheet["entities"]["Customer"] == 12
        (table,) = page.page.call("tables")["tables"]
        assert table["items"] == sum(sheet["entities"].values()) + 1  # and the record of keys
        assert page.page.call("unlock", {"writable": True}) == {"writable": True}
    assert not list(site.rglob("__pycache__"))


def test_a_saved_file_is_another_design_without_the_old_classes(site: Path) -> None:
    with live() as page:
        assert page.next() is None
        module = Path("shop.py")
        module.write_text(MODULE.replace("Customer", "Client"))
        assert page.next() is None
        assert page.entities() == ["Client", "Order"]
        assert page.page.call("design")["design"]["asked"]["items"] == {}
        # Also by an editor that writes another file and renames it, and with the same size.
        Path("saved.tmp").write_text(MODULE.replace("Customer", "Patron"))
        Path("saved.tmp").replace(module)
        assert page.next() is None
        assert page.entities() == ["Patron", "Order"]
    assert page.faults == []


def test_a_broken_file_leaves_the_last_good_design(site: Path) -> None:
    with live() as page:
        assert page.next() is None
        module = Path("shop.py")
        module.write_text(MODULE + "\nclass (\n")
        line = MODULE.count("\n") + 2
        fault = page.next()
        assert (fault["file"], fault["line"], fault["text"]) == ("shop.py", line, "class (")
        assert fault["message"].startswith("SyntaxError: ")
        assert page.entities() == ["Customer", "Order"]
        module.write_text(MODULE.replace("field(max=999)", "feld(max=999)"))
        fault = page.next()
        assert fault["message"] == "NameError: name 'feld' is not defined"
        assert fault["text"] == "number: Attr[int] = feld(max=999)"
        module.write_text(MODULE.replace(", table=shop)", ', table="shop")', 1))
        fault = page.next()
        assert "is not a table" in fault["message"]
        assert fault["text"] == 'class Customer(Entity, table="shop"):'
        assert page.entities() == ["Customer", "Order"]
        module.unlink()
        assert "there is no module 'shop'" in page.next()["message"]
        module.write_text(MODULE.replace("Order", "Purchase"))
        assert page.next() is None
        assert page.entities() == ["Customer", "Purchase"]
    assert [each.line for each in page.faults][:1] == [line]
    assert len(page.faults) == 4


def test_other_files_of_the_program_are_followed_too(site: Path) -> None:
    Path("shop.py").write_text(
        "from shop_tables import shop\n" + MODULE.replace('shop = Table("shop")', "")
    )
    with live() as page:
        fault = page.next()  # of which half is not written yet
        assert fault["message"] == "ModuleNotFoundError: No module named 'shop_tables'"
        assert page.page.call("design") == {"design": None}
        assert page.page.call("tables") == {"tables": []}
        Path("shop_tables.py").write_text('from isotone import Table\nshop = Table("shop")\n')
        assert page.next() is None
        Path("shop_tables.py").write_text('from isotone import Table\nshop = Table("shop2")\n')
        assert page.next() is None
        assert page.page.call("design")["design"]["tables"] == ["shop2"]


def test_what_a_module_prints_and_how_it_ends_is_no_answer(
    site: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    Path("shop.py").write_text(MODULE + '\nprint("hello")\n')
    with live() as page:
        assert page.next() is None
        assert "hello" in capfd.readouterr().err
        Path("shop.py").write_text(MODULE + '\nraise SystemExit("enough")\n')
        assert page.next()["message"] == "SystemExit: enough"
        Path("shop.py").write_text(MODULE + "\nimport os\nos._exit(3)\n")
        assert "the process that loaded the module ended" in page.next()["message"]
        assert page.entities() == ["Customer", "Order"]
        Path("shop.py").write_text(MODULE + "\nwhile True: pass\n")
        time.sleep(1)
        Path("shop.py").write_text(MODULE.replace("Customer", "Client"))
        assert page.next() is None
        assert page.entities() == ["Client", "Order"]


def test_an_sdk_is_told_what_answers_requests(site: Path) -> None:
    refused = pytest.raises(UnknownOperationException, match="`isotone serve` answers requests")
    with live() as page, isotone.connect(page.url) as store, refused:
        store.backend.execute("ListTables", {})


def test_there_must_be_a_module(site: Path, isotone: Run) -> None:
    with pytest.raises(UsageError, match="there is no module 'shopp' in "), live("shopp"):
        pass
    done = isotone("design", "shop.py", "--no-open")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("isotone: there is no module 'shop.py' in ")
    assert done.err.endswith("; write shop\n")
    assert "'' is not the name of a module" in isotone("design", ":Order", "--no-open").err


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_the_command_prints_the_address_and_ends_with_its_processes(site: Path) -> None:
    process = programs.isotone(
        "design", "shop:Order", "--no-open", cwd=site, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(
            r"the design of shop:Order is at (http://127\S+)/workbench/#/design\n", line
        )
        assert found is not None
        page = LivePage(found[1], [])
        assert page.next() is None
        design = page.page.call("design")["design"]
        assert [each["name"] for each in design["entities"]] == ["Order"]
        Path("shop.py").write_text("x = (\n")
        assert page.next()["line"] == 1
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT_SECONDS)
        assert (out, process.returncode) == ("", 0)
        assert err == "isotone: shop.py:1: SyntaxError: '(' was never closed\n"
    finally:
        process.kill()
        process.communicate()
    if sys.platform == "linux":
        assert not [each for each in _processes_in(site) if "design_process" in each]


def _processes_in(folder: Path) -> list[str]:
    """The processes whose current directory is a folder, other than this one."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is of another user
            if each.name != str(os.getpid()) and (each / "cwd").resolve() == folder.resolve():
                found.append((each / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found
