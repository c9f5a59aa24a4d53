"""What holds for all tests: an example is judged by what it finds, never by how long it took.

By default Hypothesis fails a test whose example takes more than 200 ms, or whose examples are slow to
make. On a machine that runs other things as well, both measure the machine.

Two profiles: `quick` is what `make test` runs, `long` what `make long` runs. A test that sets its own number
of examples passes it through `tests.effort.examples` where it takes more than a second.
"""

import gc
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import effort, parallel
from tests.effort import LONG
from tests.figures import pytest_terminal_summary
from tests.parallel import pytest_runtestloop

from isotone.backends.embedded import import_for_files
from isotone.testing.sessions import make_sessions_cheap

__all__ = ["pytest_runtestloop", "pytest_terminal_summary"]

settings.register_profile("long", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "quick", settings.get_profile("long"), max_examples=20, stateful_step_count=20
)
settings.load_profile("long" if LONG else "quick")


# A background job of a shell ignores Ctrl-C, and so would the processes that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
FIRST = ("typing", "browser", "crash", "demo", "sdks", "docs", "structures", "moving", "advisor")

gc.disable()  # until everything is imported and collected, of which nothing is garbage


def pytest_addoption(parser: pytest.Parser) -> None:
    parallel.pytest_addoption(parser)
    effort.add_option(parser)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the tests that take longest, or share what takes long to make; so that all processes end together."""
    items[:] = effort.sample(items, config.getoption("--sample"))
    place = {folder: number for number, folder in enumerate(FIRST)}
    items.sort(key=lambda item: place.get(item.path.relative_to(TESTS).parts[0], len(FIRST)))


@settings(max_examples=1, database=None)
@given(st.integers())
def read_constants(_: int) -> None:
    """Hypothesis reads the constants of all imported modules before its first example."""


def pytest_collection_finish() -> None:
    """Prepare what the processes of the tests share; collect garbage less often, and never what was imported."""
    read_constants()
    import_for_files()  # now, and not in each process with its first requests
    if "botocore" in sys.modules:  # a client of a new session takes a fifth of the time
        make_sessions_cheap(setattr)
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000, 20, 50)
