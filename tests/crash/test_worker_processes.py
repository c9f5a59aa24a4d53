"""Workers as processes on one file: killed at any moment, stopped by signals, started again."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests import programs
from tests.crash.worker_site import Delivery, Journal, Post, journal

import isotone
from isotone import Store

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

Process = programs.Command | subprocess.Popen[str]

AUTHORS, POSTS, KILLS = "abcdef", 50, 6
HERE = Path(__file__).parent


@contextlib.contextmanager
def started(file: Path, *options: str) -> Iterator[Process]:
    words = ("worker", "worker_site:journal", file, *options)
    process = programs.isotone(*words, cwd=HERE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with posts that nobody has handled yet."""
    path = tmp_path / "site.db"
    with isotone.open(path, stream_shards=4) as database, isotone.connect(database) as store:
        journal.create_tables(store)
        for author in AUTHORS:
            store.put(Journal(author=author))
        store.put_many(Post(author=author, number=n) for n in range(POSTS) for author in AUTHORS)
    return path


def journals(store: Store) -> dict[str, list[int]]:
    return {each.author: each.numbers for each in store.all(Journal.primary.scan())}


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the workers do not get on"
        time.sleep(0.005)


def is_up(process: Process) -> None:
    """Wait for a line of `--metrics`, before which signals may find no handlers yet."""
    assert process.stdout is not None
    assert '"worker":"journal"' in process.stdout.readline()


def test_killed_workers_lose_nothing_and_do_nothing_twice(file: Path) -> None:
    chance = random.Random(7)
    with isotone.connect(file, report=None) as store, contextlib.ExitStack() as stack:

        def handled() -> int:
            return sum(map(len, journals(store).values()))

        def another() -> Process:
            options = ("--metrics", "--lease", "0.6", "--batch", "20")
            return stack.enter_context(started(file, *options))

        workers = [another(), another()]
        for kill in range(1, KILLS + 1):
            reached = kill * len(AUTHORS) * POSTS // (KILLS + 2)
            until(lambda reached=reached: handled() >= reached)
            victim = workers.pop(chance.randrange(len(workers)))
            victim.kill()
            victim.wait()
            workers.append(another())
        until(lambda: handled() >= len(AUTHORS) * POSTS)
        for worker in workers:
            is_up(worker)  # the last one may be no further than its imports
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(20) == 0
        assert journals(store) == {author: [*range(POSTS)] for author in AUTHORS}
        assert store.count(Delivery.primary.scan()) == len(AUTHORS) * POSTS
        assert journal.dead_letters(store) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_gracefully(file: Path, number: int) -> None:
    with isotone.connect(file, report=None) as store, started(file, "--metrics") as process:
        is_up(process)
        process.send_signal(number)
        process.communicate(timeout=20)
        assert process.returncode == 0
        # Nothing has to run out before somebody else goes on.
        journal.run(store, until_idle=True)
        assert journals(store) == {author: [*range(POSTS)] for author in AUTHORS}


def test_once_handles_what_there_is_and_ends(file: Path) -> None:
    with started(file, "--once", "--workers", "2") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert all(line.startswith("journal: lag ") for line in err.splitlines())  # if it took seconds
    assert out.startswith("journal: ")
    with isotone.connect(file, report=None) as store:
        assert journals(store) == {author: [*range(POSTS)] for author in AUTHORS}


HANGING = """
import time
from worker_site import *

stuck = Worker("stuck", site)


@stuck.on(Post)
def hang(event, context):
    print("hanging", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_it_whatever_a_handler_is_at(
    file: Path, tmp_path: Path, number: int
) -> None:
    (tmp_path / "hanging_site.py").write_text(HANGING)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    words = ("worker", "hanging_site:stuck", file)
    process = programs.isotone(*words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "hanging\n"
        assert process.stderr is not None
        assert "handling the changes of site" in process.stderr.readline()
        process.send_signal(number)
        assert "press again to stop immediately" in process.stderr.readline()
        assert process.poll() is None
        process.send_signal(number)
        process.communicate(timeout=10)
        assert process.returncode == -number
    finally:
        process.kill()
        process.communicate()


KILLING = """
import os
from worker_site import *

fragile = Worker("fragile", site)


@fragile.on(Post)
def fall(event, context):
    if (event.entity.author, event.entity.number) == ("a", 7):
        os._exit(9)
"""


def test_a_record_that_kills_processes_is_found(file: Path, tmp_path: Path) -> None:
    (tmp_path / "killing_site.py").write_text(KILLING)
    words = ("worker", "killing_site:fragile", file, "--once", "--lease", "0.5", "--attempts", "2")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    ends = []
    while 0 not in ends and len(ends) < 10:
        process = programs.isotone(*words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
        process.communicate(timeout=60)
        ends.append(process.returncode)
    # Where it is slow, a checkpoint moves towards the record between two crashes, and counting begins again.
    assert set(ends[:-1]) == {9}
    assert ends[-1] == 0
    assert 5 <= len(ends) <= 7
    with isotone.connect(file, report=None) as store:
        (letter,) = journal.named("fragile").dead_letters(store)
    assert (letter.handler, letter.keys) == ("fall", "{'PK': 'AUTHOR#a', 'SK': 'POST#0007'}")
